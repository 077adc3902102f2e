"""The compiled feedback laws compared with the user's expressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import sympy
from sympy.physics.vector import dynamicsymbols

from kanegen.derivation.states import Numbers, State, numbers
from kanegen.model.expressions import atoms
from kanegen.model.inputs import Input
from kanegen.solve.feedback.laws import UNLIMITED_LAWS
from kanegen.verification.compiled import Compiled
from kanegen.verification.report import NotApplicableError, Worst
from kanegen.verification.subject import Subject, slopes


def feedback_laws(subject: Subject, worst: Worst) -> str:
    """``laws`` against the expressions of the user, evaluated by SymPy, and its derivatives against differences.

    In models with limits, ``unlimited_laws`` as well.
    """
    model = subject.equations.model
    items = [model.inputs[k] for k in model.inputs_with_law]
    if not items:
        raise NotApplicableError("no input has a law")
    subject.require_digits()
    compiled, evaluated = Compiled(subject.solver, stabilized=True), [_evaluated(subject, item) for item in items]
    unlimited = [_evaluated(subject, replace(item, saturation=None, dead_band=None)) for item in items]
    names = [name for name in compiled.names if name.startswith("laws_")]
    for state in subject.states:
        values = subject.values(state)

        def laws(values: dict[str, Numbers], state: State = state) -> Numbers:
            return numbers(evaluate(state, values) for evaluate in evaluated)

        expected = laws(values)
        worst.compare("laws", state, compiled("laws", state), expected, abs(expected) + 1.0)
        if UNLIMITED_LAWS in compiled.names:
            expected = numbers(evaluate(state, values) for evaluate in unlimited)
            worst.compare(UNLIMITED_LAWS, state, compiled(UNLIMITED_LAWS, state), expected, abs(expected) + 1.0)
        for name in names:
            array = name.removeprefix("laws_")

            def moved(x: Numbers, array: str = array, values: Any = values) -> Numbers:
                return laws({**values, array: x})

            derivatives = slopes(moved, values[array]).T.ravel()
            worst.compare(name, state, compiled(name, state), derivatives, abs(derivatives) + 1.0)
    return ", ".join(["the laws evaluated by SymPy in 50 digits", *names])


def _evaluated(subject: Subject, item: Input) -> Callable[[State, dict[str, Numbers]], Any]:
    """The value of a law at a state; dead band and saturation follow their definition, case by case."""
    system, limits = subject.equations.system, item.limits
    expressions = [item.law, *limits.values()]
    symbols = sorted(atoms(expressions), key=str)
    nodes = [system.lower(symbol) for symbol in symbols]
    function = sympy.lambdify([dynamicsymbols._t, symbols], expressions, "mpmath", dummify=True)

    def evaluate(state: State, values: dict[str, Numbers]) -> Any:
        x, *given = function(values["t"][0], subject.evaluate(nodes, state, **values).tolist())
        known = dict(zip(limits, given, strict=True))
        band, low, high = (known.get(what) for what in ("dead band", "lowest value", "highest value"))
        if band is not None:
            x = 0 * x if abs(x) <= band else x - band if x > 0 else x + band
        if low is not None and x < low:
            return low
        return high if high is not None and x > high else x

    return evaluate
