"""Comparison of compiled functions with interpreters of the program, and with the equations that they must satisfy.

The functions are those of any back end; with ``"interpreted"`` they are called interpreted functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.derivation.states import Numbers, State
from kanegen.errors import BuildError, SolveError
from kanegen.graph import Context, Node, mpmath_context, numpy_context
from kanegen.graph.nodes import CONDITIONS
from kanegen.solve import Solver
from kanegen.verification.report import Check, NotApplicableError, Vector, Worst, deviation
from kanegen.verification.subject import DOUBLE, Motion, Subject

COARSE_DIGITS: Final = (22, 25, 28)
"""Decimal digits of further evaluations: their errors against 50 digits show how much a function amplifies rounding."""

ROUNDING: Final = 1e-25
"""Random relative error of every operation for values that seem wrong. With fewer digits, equal products have equal
errors, which cancel in a difference; compiled code rounds one of them only (fused operations)."""

ROUNDINGS: Final = 4
"""Evaluations with such errors."""

EXACT_OPERATIONS: Final = CONDITIONS.keys() | {
    "abs", "call", "ceil", "const", "floor", "input", "max", "min", "neg", "not", "select"
}  # fmt: skip
"""Operations without a rounding error of their own, and functions of the user, which have that of double precision."""

NUDGE: Final = 1e-7
"""Relative change of the arguments that estimates this amplification if user functions have double precision only."""


class Compiled:
    """The compiled functions of a solver; ``stabilized`` selects the gains of the states instead of zero gains."""

    def __init__(self, solver: Solver, stabilized: bool) -> None:
        self._module = solver.extension.module
        self._stabilized = stabilized
        self.names: tuple[str, ...] = tuple(self._module.FUNCTIONS)
        self.kind = "interpreted" if solver.extension.backend == "interpreted" else "compiled"

    def __call__(self, name: str, state: State) -> Array:
        """The value as a flat array. Raises SolveError if the function is undefined at the state."""
        gains = state.gains if self._stabilized else np.zeros(len(state.gains))
        prepared = self._module.Prepared(state.p, gains)
        function = self._module.Function(name, prepared)
        s = state.s if len(state.s) else None
        at = Point(state.t, state.q, state.u, state.r, s, state.multipliers, state.free)
        return np.atleast_1d(np.array(at.evaluate(function.value))).ravel()


def interpreters(subject: Subject) -> tuple[Check, Check]:
    """Compare every compiled function, and the program in NumPy, with the program in 50 digits."""
    names = [function.name for function in subject.program.functions if not function.internal]
    digits = "50-digit" if subject.exact else "double-precision (functions of the user)"
    context = numpy_context()

    def interpreted(name: str, state: State) -> Numbers:
        return subject.interpret(name, {key: np.array(array) for key, array in state.values().items()}, context)

    compiled = Compiled(subject.solver, stabilized=True)
    checks = first, second = Worst(f"{compiled.kind} functions", DOUBLE), Worst("NumPy interpreter", DOUBLE)
    evaluations: tuple[Callable[[str, State], Vector], ...] = (compiled, interpreted)
    for name in names:
        for state in subject.states:
            try:
                reference = _reference(subject, name, state)
            except SolveError:
                continue  # the function is undefined at this state
            for worst, evaluate in zip(checks, evaluations, strict=True):
                try:
                    actual = evaluate(name, state)
                except SolveError:
                    worst.add(name, state)
                else:
                    worst.add(name, state, _difference(subject, name, state, actual, reference))
    return (
        first.check(f"{len(names)} functions against the {digits} interpreter, gains included"),
        second.check(f"the same program against the {digits} interpreter"),
    )


def _difference(subject: Subject, name: str, state: State, actual: Vector, reference: tuple[Numbers, Numbers]) -> float:
    """The deviation of a function's value; if it seems too large, it is computed with a more accurate sensitivity."""
    first = deviation(actual, *reference)
    if first <= DOUBLE:
        return first
    result, sensitivity = reference
    return deviation(actual, result, _sensitivity(subject, name, result, sensitivity, _rounded(subject, state)))


def _reference(subject: Subject, name: str, state: State) -> tuple[Numbers, Numbers]:
    """Value and sensitivity in the numbers of the subject. Raises `SolveError` if the function is undefined there."""
    values = subject.values(state)
    result = subject.interpret(name, values)
    return result, _sensitivity(subject, name, result, abs(result), _disturbed(subject, values))


Disturbed: TypeAlias = Iterator[tuple[float, Context, Mapping[str, Numbers]]]
"""Sizes of relative errors, and evaluations with them."""


def _sensitivity(subject: Subject, name: str, result: Numbers, known: Numbers, disturbed: Disturbed) -> Numbers:
    """The largest changes per unit of relative error, at least the ``known`` ones."""
    for unit, context, arguments in disturbed:
        with suppress(SolveError):
            change = abs(subject.interpret(name, arguments, context) - result) / unit
            known = np.where(change > known, change, known)
    return known


def _disturbed(subject: Subject, values: Mapping[str, Numbers]) -> Disturbed:
    """Evaluations with fewer digits or, in double precision, changed arguments."""
    if subject.exact:
        for digits in COARSE_DIGITS:
            yield 10.0**-digits, mpmath_context(digits), values
    else:
        moved = {name: array * (1 + NUDGE * (-1.0) ** np.arange(len(array))) for name, array in values.items()}
        yield NUDGE, subject.context, moved


def _rounded(subject: Subject, state: State) -> Disturbed:
    """Evaluations in which every operation has a random error."""
    unit = ROUNDING if subject.exact else NUDGE
    for seed in range(ROUNDINGS):
        rng = np.random.default_rng(seed)

        def rounded(node: Node, value: Any, rng: np.random.Generator = rng) -> Any:
            sign = subject.context.number(int(rng.integers(2)) * 2 - 1)
            return value if node.op in EXACT_OPERATIONS else value * (1 + unit * sign)

        yield unit, replace(subject.context, result=rounded), subject.values(state)


def constrained_motion(subject: Subject, worst: Worst) -> str:
    """``M u' = P + J^T lambda``, ``J u' = b`` and ``T u' = V`` of the compiled functions together."""
    compiled = Compiled(subject.solver, stabilized=False)
    laws = [f"{subject.equations.M.name} u' = P + J^T lambda"]
    if subject.equations.constraints.rows:
        laws.append("J u' = b")
    if {"T", "V"} <= set(compiled.names):
        laws.append("T u' = V")
    for state, motion in subject.motions:
        try:
            _compare_laws(subject, compiled, worst, state, motion)
        except SolveError as error:
            worst.add(str(error), state)
    return f"{', '.join(laws)} of the {compiled.kind} functions"


def _compare_laws(subject: Subject, compiled: Compiled, worst: Worst, state: State, motion: Motion) -> None:
    n = subject.n_u
    udot = compiled("rhs", state)[len(state.q) :][:n]
    worst.compare("u'", state, udot, motion.udot, motion.sizes)
    mass = subject.equations.M.name
    M, P = compiled(mass, state).reshape(n, n), compiled("P", state)
    forces, sizes = P, np.abs(M) @ np.abs(udot) + np.abs(P)
    if subject.equations.constraints.rows:
        J, b = compiled("J", state).reshape(-1, n), compiled("b", state)
        multipliers = compiled("multipliers", state)
        forces = P + J.T @ multipliers
        sizes = sizes + np.abs(J.T) @ np.abs(multipliers)
        worst.compare("J u' = b", state, J @ udot, b, np.abs(J) @ motion.sizes + np.abs(b))
        worst.compare("Fc", state, compiled("constraint_force", state), motion.constraint_force, sizes)
    worst.compare(f"{mass} u' = P + J^T lambda", state, M @ udot, forces, sizes)
    if {"T", "V"} <= set(compiled.names):
        # T and V use the model's own dependent speeds: they are undefined where the system for these is singular.
        with suppress(SolveError):
            T, V = compiled("T", state).reshape(n, n), compiled("V", state)
            worst.compare("T u' = V", state, T @ udot, V, np.abs(T) @ np.abs(udot) + np.abs(V))


def form_motion(subject: Subject, worst: Worst, build: Callable[[], Solver]) -> str:
    """q' and u' of another form that ``build`` compiles, against the motion in the numbers of the subject."""
    try:
        compiled = Compiled(build(), stabilized=False)
    except BuildError as error:
        raise NotApplicableError(str(error)) from error
    for state, motion in subject.motions:
        try:
            qdot, udot, sdot = np.split(compiled("rhs", state), np.cumsum([len(state.q), subject.n_u]))
        except SolveError as error:
            if not motion.has_inverse:
                raise NotApplicableError(f"the mass matrix is singular. {error}") from error
            worst.add(str(error), state)
            continue
        expected = subject.evaluate(subject.equations.system.qdot, state)
        worst.compare("q'", state, qdot, expected, np.full(len(state.q), np.abs(state.u).max(initial=0.0)))
        worst.compare("u'", state, udot, motion.udot, motion.sizes)
        if len(sdot):
            rates = subject.evaluate(subject.equations.sdot.nodes, state, udot=motion.udot)
            worst.compare("s'", state, sdot, rates, np.full(len(sdot), float(abs(rates).max())))
    return f"q' and u' of the {compiled.kind} form against the bordered solve of {subject.equations.M.name}, P, J, b"
