"""Compiled functions against the interpreters of the program, and against the laws they must satisfy together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import BuildError, SolveError
from kanegen.graph import Context, mpmath_context, numpy_context
from kanegen.program.interpret import interpret
from kanegen.solve import Solver
from kanegen.verification.arithmetic import DOUBLE, Vector, deviation
from kanegen.verification.report import Check
from kanegen.verification.states import State
from kanegen.verification.subject import Motion, Subject
from kanegen.verification.worst import Worst, not_applicable

COARSE_DIGITS: Final = (22, 25, 28)
"""Precisions whose errors, against 50 digits, tell how much a function amplifies one relative rounding error."""

MORE_DIGITS: Final = tuple(range(18, 38))
"""The same, for a second opinion: a few precisions may happen to give no error where terms cancel to zero."""

NUDGE: Final = 1e-7
"""Relative change of the arguments that tells it roughly where functions of the user have double precision only."""


class Compiled:
    """The compiled functions of a solver at the parameters of states; ``stabilized`` with their gains, else none."""

    def __init__(self, solver: Solver, stabilized: bool) -> None:
        self._module = solver.extension.module
        self._stabilized = stabilized
        self.names: tuple[str, ...] = tuple(self._module.FUNCTIONS)

    def __call__(self, name: str, state: State) -> Array:
        """The value as a flat array. Raises SolveError where the function does not exist."""
        gains = state.gains if self._stabilized else np.zeros(len(state.gains))
        prepared = self._module.Prepared(state.p, gains)
        function = self._module.Function(name, prepared)
        return np.atleast_1d(np.array(function.value(state.t, state.q, state.u, state.r))).ravel()


def interpreters(subject: Subject) -> tuple[Check, Check]:
    """Every compiled function against the program in 50 digits, and the program in NumPy likewise."""
    names = [function.name for function in subject.program.functions if not function.internal]
    digits = "50-digit" if subject.arithmetic.exact else "double-precision (functions of the user)"
    checks = first, second = Worst("compiled functions", DOUBLE), Worst("NumPy interpreter", DOUBLE)
    evaluations: tuple[Callable[[str, State], Vector | None], ...] = (_compiled(subject), _interpreted(subject))
    for name in names:
        for state in subject.states:
            reference = _reference(subject, name, state, COARSE_DIGITS)
            if reference is None:
                continue
            for worst, evaluate in zip(checks, evaluations, strict=True):
                worst.add(name, state, _difference(subject, name, state, evaluate(name, state), reference))
    return (
        first.check(f"{len(names)} functions against the {digits} interpreter, gains included"),
        second.check(f"the same program against the {digits} interpreter"),
    )


def _difference(
    subject: Subject, name: str, state: State, actual: Vector | None, reference: tuple[list[Any], list[Any]]
) -> float:
    """The deviation of a function's value; one that seems too large is judged with a better known sensitivity."""
    if actual is None:
        return float("nan")
    first = deviation(actual, *reference)
    better = None if first <= DOUBLE else _reference(subject, name, state, MORE_DIGITS)
    return first if better is None else deviation(actual, *better)


def _compiled(subject: Subject) -> Callable[[str, State], Array | None]:
    compiled = Compiled(subject.solver, stabilized=True)

    def evaluate(name: str, state: State) -> Array | None:
        try:
            return compiled(name, state)
        except SolveError:
            return None

    return evaluate


def _interpreted(subject: Subject) -> Callable[[str, State], list[Any] | None]:
    context = numpy_context()

    def evaluate(name: str, state: State) -> list[Any] | None:
        values = {key: list(np.array(array)) for key, array in state.values().items()}
        status, result = interpret(subject.program, name, values, context)
        return None if status < 0 else result

    return evaluate


def _reference(subject: Subject, name: str, state: State, digits: Sequence[int]) -> tuple[list[Any], list[Any]] | None:
    """Value and sensitivity in the numbers of the subject; None where the function does not exist at the state."""
    values = subject.values(state)
    status, result = interpret(subject.program, name, values, subject.arithmetic.context)
    if status < 0:
        return None
    sensitivity = [abs(x) for x in result]
    for unit, context, arguments in _disturbed(subject, values, digits):
        status, other = interpret(subject.program, name, arguments, context)
        if status >= 0:
            changes = [abs(a - b) / unit for a, b in zip(other, result, strict=True)]
            sensitivity = [max(a, b) for a, b in zip(sensitivity, changes, strict=True)]
    return result, sensitivity


def _disturbed(
    subject: Subject, values: Mapping[str, Sequence[Any]], precisions: Sequence[int]
) -> Iterator[tuple[float, Context, Any]]:
    """Evaluations with relative errors of a known unit: in fewer digits; of arguments where there are no digits."""
    if subject.arithmetic.exact:
        for digits in precisions:
            yield 10.0**-digits, mpmath_context(digits), values
    else:
        moved = {name: [x * (1 + (-1) ** k * NUDGE) for k, x in enumerate(array)] for name, array in values.items()}
        yield NUDGE, subject.arithmetic.context, moved


def constrained_motion(subject: Subject) -> Check:
    """``Q u' = P + J^T lambda``, ``J u' = b`` and ``T u' = V`` of the compiled functions together."""
    compiled = Compiled(subject.solver, stabilized=False)
    worst = Worst("equations of motion", DOUBLE)
    laws = ["Q u' = P + J^T lambda"]
    if subject.equations.constraints.rows:
        laws.append("J u' = b")
    if {"T", "V"} <= set(compiled.names):
        laws.append("T u' = V")
    for state, motion in zip(subject.states, subject.motions, strict=True):
        try:
            _compare_laws(subject, compiled, worst, state, motion)
        except SolveError as error:
            worst.add(str(error), state, float("nan"))
    return worst.check(f"{', '.join(laws)} of the compiled functions")


def _compare_laws(subject: Subject, compiled: Compiled, worst: Worst, state: State, motion: Motion) -> None:
    n = subject.n_u
    n_c = len(subject.equations.constraints.rows)
    udot = compiled("rhs", state)[len(state.q) :]
    worst.compare("u'", state, udot, motion.udot, motion.sizes)
    Q, P = compiled("Q", state).reshape(n, n), compiled("P", state)
    inertia, forces = Q @ udot, np.zeros(n)
    sizes = np.abs(Q) @ np.abs(udot) + np.abs(P)
    if n_c:
        J, b = compiled("J", state).reshape(n_c, n), compiled("b", state)
        multipliers = compiled("multipliers", state)
        forces = J.T @ multipliers
        sizes = sizes + np.abs(J.T) @ np.abs(multipliers)
        worst.compare("J u' = b", state, J @ udot, b, np.abs(J) @ np.array(motion.sizes) + np.abs(b))
        worst.compare("Fc", state, compiled("constraint_force", state), motion.constraint_force, sizes)
    worst.compare("Q u' = P + J^T lambda", state, inertia, P + forces, sizes)
    if {"T", "V"} <= set(compiled.names):
        # T and V belong to the model's own dependent speeds: they do not exist where these cannot be solved for.
        with suppress(SolveError):
            T, V = compiled("T", state).reshape(n, n), compiled("V", state)
            worst.compare("T u' = V", state, T @ udot, V, np.abs(T) @ np.abs(udot) + np.abs(V))


def form_check(subject: Subject, form: str, build: Callable[[str], Solver]) -> Check:
    """q' and u' of another form, compiled, against the motion in the numbers of the subject."""
    name = f"form {form}"
    try:
        compiled = Compiled(build(form), stabilized=False)
    except BuildError as error:
        return not_applicable(name, str(error))
    worst = Worst(name, DOUBLE)
    for state, motion in zip(subject.states, subject.motions, strict=True):
        try:
            values = compiled("rhs", state)
        except SolveError as error:
            if not motion.has_inverse:
                return not_applicable(name, f"Q is singular. {error}")
            worst.add(str(error), state, float("nan"))
            continue
        n_q = len(state.q)
        worst.compare(
            "q'", state, values[:n_q], subject.evaluate(subject.equations.system.qdot, state), state_size(state)
        )
        worst.compare("u'", state, values[n_q:], motion.udot, motion.sizes)
    return worst.check("q' and u' of the compiled form against the bordered solve of Q, P, J, b")


def state_size(state: State) -> list[float]:
    """Sizes for comparing q': that of the speeds."""
    return [float(np.abs(state.u).max(initial=0.0))] * len(state.q)
