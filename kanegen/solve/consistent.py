"""Consistent states and controls: corrections, and checks of the start of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.points import Point, array_of
from kanegen.codegen.description import ControlConstraintLabels, Description
from kanegen.codes import Status
from kanegen.errors import SolveError, warn_user
from kanegen.forms import FORMS
from kanegen.model import Baumgarte, Projection
from kanegen.model.control import largest_exponent
from kanegen.program.catalogue import CONTROL_GAINS
from kanegen.solve.analysis.sizes import terms_of
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.inputs import run_inputs
from kanegen.solve.values import (
    Variables,
    beyond,
    by_array,
    listed,
    names_in,
    numbers,
    one_state,
    positive,
    require_none,
    size,
    unknown,
)

_NONE: Array = np.empty(0)
_ITERATIONS = 50
_TOLERANCE = 1e-13
_GUESSES = 8
"""Random guesses of missing values, after one and zero."""
_DIFFERENCE = 1e-5
"""Step of central differences relative to the largest component; their relative error is about 1e-10."""
_NO_INFLUENCE = 1e-8
"""Derivatives below this fraction of the largest count as zero."""
_DEPENDENT = 1e-6
"""Singular values below this fraction of the largest count as zero in matrices of differences."""
_SINGULAR = 1e-9
"""Singular values below this fraction of the largest count as zero, as in kg_generalized.h."""


class RunStart(NamedTuple):
    """The start of a run, and how far it may violate the constraints (:func:`violations`); None: not checked."""

    t: float
    q: Any
    u: Any
    s: Array
    tolerance: float | None


@dataclass(frozen=True, eq=False)
class Guess:
    """A state to be corrected, with its inputs, and the functions of the constraints."""

    functions: CompiledFunctions
    at: Point
    tolerance: float

    def corrected(self, fixed: Iterable[int]) -> tuple[int, Array, Array]:
        """Status and corrected state; the components ``fixed`` of (q, u) do not change."""
        t, q, u, r, s, *_ = self.at
        state = self.functions.prepared, t, q, u, r
        status, q, u, _ = self.functions.module.make_consistent(*state, sorted(fixed), self.tolerance, s)
        return status, q, u


def make_consistent(
    functions: CompiledFunctions,
    t: float,
    q: Any,
    u: Any,
    r: Any,
    fixed: str | Iterable[Any],
    tolerance: float,
    s: Any = None,
) -> tuple[Array, Array]:
    """Correct a state; see :meth:`kanegen.Solver.make_consistent`, whose arguments these are."""
    description = functions.description
    fixed_indices = _fixed(fixed, (*description.coordinates, *description.speeds))
    positive(tolerance, "tolerance")
    if not description.constraints.levels:
        given = functions.beside_laws((), r)[0] if isinstance(r, Mapping) else r
        state: tuple[Array, Array] = functions.module.checked_state(t, q, u, given, s)
        return state
    functions, needed = _required(functions)
    if isinstance(r, Mapping) or (r is None and not functions.inputs_read(needed).isdisjoint(description.laws)):
        # Laws that constraints read depend on positions, which a second pass does not change any more.
        for _ in range(2):
            inputs = functions.with_laws(needed, t, q, u, r, s)
            q, u = make_consistent(functions, t, q, u, inputs, fixed, tolerance, s)
        return q, u
    at = Point(t, q, u, r, s)
    at.evaluate(functions.get("residuals").value)  # checks the arguments
    guess = Guess(functions, functions.complete(at._replace(t=float(t)), needed), tolerance)
    status, new_q, new_u = guess.corrected(fixed_indices.values())
    if status == Status.OK:
        return new_q, new_u
    if status != Status.INCONSISTENT:
        last = at._replace(q=new_q, u=new_u)
        functions.require_finite(("Q", "position_level", "velocity_level", "displacements"), last)
        raise SolveError(f"the constraints cannot be evaluated at t = {t!r} s: status {status} of a function")
    best = replace(guess, at=guess.at._replace(q=new_q, u=new_u))
    raise SolveError(_impossible(best, fixed_indices))


def completed(
    functions: CompiledFunctions,
    t: float,
    known: Mapping[str, float],
    fixed: Collection[str],
    r: Any,
    allowed: float | None = None,
    s: Any = None,
) -> tuple[Array, Array]:
    """A state (q, u) from the values of some coordinates and speeds; constraints must determine the others.

    Parameters
    ----------
    known
        Values by name. If some coordinates (or speeds) are missing, the known ones do not change.
    fixed
        Names of values that do not change in any case. Others change as little as the constraints demand, and only if
        the state violates them by more than ``allowed`` (see :func:`violations`; None: by any amount).
    r
        Inputs (n_r,) at ``t``, or None for the defaults.
    s
        States (n_s,), or None where the constraints and the masses do not depend on them.

    Raises
    ------
    SolveError
        If the constraints do not determine a missing value, or cannot be satisfied with the fixed ones.
    """
    d = functions.description
    names = (*d.coordinates, *d.speeds)
    missing = [name for name in names if name not in known]
    state = np.array([known.get(name, 0.0) for name in names])
    q, u = np.split(state, [len(d.coordinates)])
    if missing:
        return _with_missing(functions, Point(t, q, u, r, s), missing, fixed, allowed)
    if allowed is None or not d.constraints.levels or set(names) <= set(fixed):
        return q, u
    if not violations(functions, Point(t, q, u, r, s), allowed):
        return q, u
    return make_consistent(functions, t, q, u, r, fixed, _TOLERANCE, s)


def start_state(
    functions: CompiledFunctions,
    initial: Mapping[str, float],
    t: float,
    given: tuple[Any, Any, Any],
    r: Any,
    allowed: float | None,
) -> tuple[Any, Any, Array]:
    """The state (q, u, s) at the start of a run.

    ``given`` are values in order, which the compiled code checks, mappings by name or symbol, or None; ``initial`` and
    the constraints complete them (:func:`completed`). ``r`` are the inputs of the run.
    """
    d, complete = functions.description, by_array(given[0]) and by_array(given[1])
    if complete:
        given = array_of(given[0], "q0"), array_of(given[1], "u0"), given[2]  # not again by each reader
        one_state(t, *given[:2])
    if complete and not d.states and given[2] is None:
        return given[0], given[1], _NONE
    q, u, s = Variables.of(d, "0")
    states = s.array({**initial, **s.read(given[2])})
    if complete:
        return given[0], given[1], states
    named = {**q.read(given[0]), **u.read(given[1])}
    own = {name: value for name, value in initial.items() if name in (*q.names, *u.names)}
    inputs = inputs_of_constraints(functions, t, r)
    of_model = states if d.states else None
    return *completed(functions, t, own | named, named or own, inputs, allowed, of_model), states


def named_values(d: Description, *given: Any) -> tuple[str, ...]:
    """The names of the coordinates and speeds that mappings of start values (q0, u0) contain."""
    variables = Variables.of(d, "0")
    named = [known.read(values) for known, values in zip(variables, given, strict=False) if isinstance(values, Mapping)]
    return tuple(name for values in named for name in values)


def inputs_of_constraints(functions: CompiledFunctions, t: float, r: Any) -> Array | None:
    """The inputs (n_r,) that the constraints read, before the state is known; ``r`` are the inputs of a run.

    Raises `SolveError` if they depend on the state.
    """
    d = functions.description
    if not d.inputs:
        return None
    needed = functions.inputs_read(["residuals", "position_level", "velocity_level", "displacements", "Q"])
    source = run_inputs(functions.module, d, r, needed, functions.law_values)
    if source.laws is not None and needed.isdisjoint(source.laws.slots):
        source = source.without_laws or source
    return source.at(t) if needed or not source.of_state else None


def _with_missing(
    functions: CompiledFunctions,
    at: Point,
    missing: Sequence[str],
    fixed: Collection[str],
    allowed: float | None,
) -> tuple[Array, Array]:
    """The state with the values that the constraints determine in place of those that are ``missing``.

    A `ModelWarning` says if the constraints admit other positions as well (assembly modes of closed loops).
    """
    d = functions.description
    names, n_q, state = (*d.coordinates, *d.speeds), len(d.coordinates), np.concatenate([at.q, at.u])
    if not d.constraints.levels:
        raise SolveError(_undetermined_message(d, missing))
    functions, needed = _required(functions)
    complete = functions.complete(at._replace(t=float(at.t)), needed)
    known = [name for level in (d.coordinates, d.speeds) for name in level if not set(level).isdisjoint(missing)]
    held = {names.index(name) for name in (*known, *fixed) if name not in missing}
    is_placed = set(d.coordinates).isdisjoint(missing)
    tolerance = _accuracy(functions, at, allowed) if is_placed else _TOLERANCE
    undetermined, solutions = list[str](), list[tuple[Array, Array]]()
    for guess in _guesses(state, [names.index(name) for name in missing]):
        attempt = Guess(functions, complete._replace(q=guess[:n_q], u=guess[n_q:]), tolerance)
        status, q, u = attempt.corrected(held)
        if status == Status.OK:
            undetermined = _undetermined(functions, at._replace(q=q, u=u), missing)
        if status == Status.OK and not undetermined:
            solutions.append((q, u))
            if is_placed:
                break
    if solutions:
        _warn_of_others(d, at.t, solutions, missing)
        return solutions[0]
    if undetermined:
        raise SolveError(_undetermined_message(d, undetermined))
    try:
        kept = [names[k] for k in sorted(held)]
        return make_consistent(functions, at.t, at.q, at.u, at.r, kept, tolerance, at.s)
    except SolveError as error:
        raise SolveError(f"the start gives no value of {', '.join(missing)}, and {error}") from error


def _warn_of_others(d: Description, t: float, solutions: Sequence[tuple[Array, Array]], missing: Sequence[str]) -> None:
    """Warn if the solutions differ by more than full turns of angles."""
    first = solutions[0][0]
    for q, _ in solutions[1:]:
        turns = np.round((q - first) / (2.0 * np.pi))
        if np.abs(q - first - 2.0 * np.pi * turns).max(initial=0.0) > _DEPENDENT * size(first):
            own = [(k, name) for k, name in enumerate(d.coordinates) if name in missing]
            taken, other = (", ".join(f"{name} = {values[k]:.6g}" for k, name in own) for values in (first, q))
            warn_user(
                f"the start of {d.name!r} leaves {', '.join(name for _, name in own)} open, and the constraints admit "
                f"several positions: {taken} is taken, but {other} is another one; to choose, give a guess of all "
                f"values to q, u = solver.make_consistent({t:g}, q, u, fixed=...)"
            )
            return


def _accuracy(functions: CompiledFunctions, at: Point, allowed: float | None) -> float:
    """The tolerance with which complete positions do not change if their violation is allowed."""
    n_p = len(functions.description.constraints.positions)
    values, units = (level[:n_p] for level in functions.get("residuals").with_units(*at[:5]))
    error = 1.01 * float(np.abs(values / np.maximum(units, np.finfo(float).tiny)).max(initial=0.0))
    return max(_TOLERANCE, error) if allowed is None or error <= allowed else _TOLERANCE


def _guesses(state: Array, missing: list[int]) -> Iterator[Array]:
    """The state with guesses of the missing values: ones, because many mechanisms are singular at zero, then others."""
    rng, n = np.random.default_rng(0), len(missing)
    for values in (np.ones(n), np.zeros(n), *(rng.normal(size=n) for _ in range(_GUESSES))):
        guess = state.copy()
        guess[missing] = values
        yield guess


def _undetermined(functions: CompiledFunctions, at: Point, missing: Sequence[str]) -> list[str]:
    """The missing coordinates and speeds that can move while the others are fixed.

    Derivatives of the residuals are central differences: constraints on positions in the coordinates, constraints on
    velocities in the speeds.
    """
    d = functions.description
    n_p = len(d.constraints.positions)
    found: list[str] = []
    for level, names, rows in (("q", d.coordinates, slice(0, n_p)), ("u", d.speeds, slice(n_p, None))):
        own = [name for name in names if name in missing]
        matrix = np.zeros((len(range(len(d.constraints.levels))[rows]), len(own)))
        for column, name in enumerate(own):
            state: Array = getattr(at, level)
            step = _DIFFERENCE * size(state)
            values = []
            for sign in (1.0, -1.0):
                moved = state.copy()
                moved[names.index(name)] += sign * step
                values.append(at._replace(**{level: moved}).evaluate(functions.get("residuals").value)[rows])
            matrix[:, column] = (values[0] - values[1]) / (2.0 * step)
        found += [name for name, moves in zip(own, _in_null_space(matrix), strict=True) if moves]
    return found


def _in_null_space(matrix: Array) -> list[bool]:
    """For each unknown x_j, whether ``matrix x = 0`` leaves it undetermined."""
    n = matrix.shape[1]
    if not matrix.size:
        return [True] * n
    scale = np.abs(matrix).max()
    rows = matrix / np.maximum(np.abs(matrix).max(axis=1, keepdims=True), _NO_INFLUENCE * scale or 1.0)
    sizes = np.linalg.norm(rows, axis=0)
    scaled = np.where(sizes > _NO_INFLUENCE, rows / np.maximum(sizes, _NO_INFLUENCE), 0.0)
    _, values, directions = np.linalg.svd(scaled)
    rank = int((values > _DEPENDENT * values[0]).sum()) if values[0] else 0
    return [bool(x) for x in np.linalg.norm(directions[rank:], axis=0) > _DEPENDENT]


def _undetermined_message(d: Description, names: Sequence[str]) -> str:
    groups = []
    for kind, own in (("coordinate", d.coordinates), ("speed", d.speeds)):
        if part := [name for name in own if name in names]:
            groups.append(f"the {kind}{'s' if len(part) > 1 else ''} {', '.join(part)}")
    them = "them" if len(names) > 1 else "it"
    reason = ", which its constraints do not determine from the given values" if d.constraints.levels else ""
    return (
        f"the start of {d.name!r} has no value of {' and '.join(groups)}{reason}: give {them} in q0 or u0, or in "
        "Model(initial=...) or solver.with_initial(...)"
    )


def projection_of(stabilization: Baumgarte | Projection | None, functions: CompiledFunctions) -> Projection | None:
    """The stabilization if it is a projection, else None.

    Raises `SolveError` for a form whose state does not contain the speeds, and if functions it needs were not built.
    """
    if not isinstance(stabilization, Projection):
        return None
    form = FORMS[functions.description.form]
    if form.momenta:
        raise SolveError(
            f'the state of form="{form.name}" holds momenta, but Projection corrects speeds: use another form, or '
            "integrate with_stabilization(None)"
        )
    if stabilization.integrals:
        functions.get("Q")
    if functions.description.constraints.levels:
        _required(functions)
    return stabilization


def functions_of_constraints(d: Description) -> list[str]:
    """Names of the functions with which states are corrected."""
    needed = ["Q", "residuals"]
    needed += ["position_level", "displacements"] if d.constraints.positions else []
    needed += ["velocity_level"] if d.constraints.velocities else []
    return needed


def _required(functions: CompiledFunctions) -> tuple[CompiledFunctions, list[str]]:
    """The functions of the constraints, in one module, and their names.

    Raises `SolveError` for a model that was built without them.
    """
    needed = functions_of_constraints(functions.description)
    functions = functions.having(*needed)
    functions.require(needed)
    return functions, needed


def fixed_names(fixed: str | Iterable[Any], known: Sequence[str]) -> list[str]:
    """The names of the components that keep their values. Raises `SolveError` for unknown names."""
    return list(_fixed(fixed, known))


def _fixed(fixed: str | Iterable[Any], known: Sequence[str]) -> dict[str, int]:
    """Indices in (q, u) of the components that keep their values, by name."""
    names = names_in(fixed, "fixed")
    require_none([unknown(name, known, "coordinate or speed") for name in names if name not in known], "fixed: ")
    return {name: known.index(name) for name in names}


def violations(functions: CompiledFunctions, at: Point, tolerance: float) -> list[str]:
    """One message for each constraint that a state violates at position or velocity level.

    A state violates a constraint if its residual exceeds the change that follows when coordinates and speeds change by
    ``tolerance`` times the largest of them: so the unit of the constraint does not matter.
    """
    values, units = functions.get("residuals").with_units(*at[:5])
    # Python's floats, because NumPy takes ten times as long for so few of them, and every run starts here.
    if all(abs(value) <= tolerance * unit for value, unit in zip(values.tolist(), units.tolist(), strict=True)):
        return []
    return _beyond(functions.description, values, tolerance * units)


def _beyond(description: Description, values: Array, limits: Array) -> list[str]:
    constraints = description.constraints
    labels = [f"{label} at position level" for label in constraints.positions]
    labels += [f"{label} at velocity level" for label in constraints.velocities]
    return beyond(labels, values, limits)


def _impossible(guess: Guess, fixed_indices: dict[str, int]) -> str:
    """The error message with the constraints that remain violated, and advice."""
    description = guess.functions.description
    values, units = guess.functions.get("residuals").with_units(*guess.at[:5])
    limits = 1e3 * guess.tolerance * units
    # The speeds are corrected only after the position constraints are satisfied.
    n = len(description.constraints.positions)
    violated = _beyond(description, np.append(values[:n], np.zeros(values.size - n)), limits)
    violated = violated or _beyond(description, values, limits)
    where = f"at t = {guess.at.t!r} s from the given state"
    headline = f"the constraints cannot be satisfied {where}; the best state violates"
    return listed(f"{headline} {len(violated)} of them", violated, _advice(guess, fixed_indices))


def _advice(guess: Guess, fixed_indices: dict[str, int]) -> str:
    if fixed_indices and guess.corrected(())[0] == Status.OK:
        others = {name: set(fixed_indices.values()) - {index} for name, index in fixed_indices.items()}
        single = [name for name, rest in others.items() if guess.corrected(rest)[0] == Status.OK]
        if single:
            return f"the fixed values prevent it: free one of {', '.join(single)}, or give it another value"
        return f"the fixed values prevent it: free several of {', '.join(fixed_indices)}"
    return (
        "this also fails with nothing fixed: give a guess nearer to a possible position, and look for "
        "constraints that contradict each other and for lengths that cannot close a loop"
    )


def control_constraints(functions: CompiledFunctions) -> ControlConstraintLabels:
    """The control constraints of the model. Raises `SolveError` for a model without control constraints."""
    d = functions.description
    if d.control_constraints is None:
        raise SolveError(
            f"the model {d.name!r} has no control constraints: give control=kg.ControlConstraints(...) to kg.Model"
        )
    return d.control_constraints


def with_controls(labels: ControlConstraintLabels, r: Array, z: Array) -> Array:
    """The inputs ``r`` (n_r,), with the controls ``z`` of the state inserted."""
    inputs = np.array(r, dtype=np.float64)
    inputs[list(labels.states)] = z
    return inputs


def require_decay(functions: CompiledFunctions) -> None:
    """Raise `SolveError` if errors of control constraints grow with the parameters of a solver."""
    d = functions.description
    if CONTROL_GAINS not in d.functions or functions.problem(CONTROL_GAINS) is not None:
        return
    rows = functions.of_parameters(CONTROL_GAINS)
    problems = []
    levels = d.control_constraints.levels if d.control_constraints else ()
    labels = iter([level.label for level in levels if level.decays])
    for count, *gains in rows:
        theta = gains[: int(count)]
        label, *_ = (next(labels) for _ in theta)
        exponent = largest_exponent(theta)
        if not exponent < 0.0:
            values = ", ".join(f"{x:g}" for x in theta)
            problems.append(f"theta = ({values}) of {label} has the exponent {exponent:.3g} 1/s")
    require_none(
        problems,
        f"the control constraints of {d.name!r} are not stable with these parameters: ",
        "; expected coefficients whose characteristic roots have negative real parts, because otherwise errors grow",
    )


def consistent_controls(
    functions: CompiledFunctions, t: float, q: Any, u: Any, tau: Any, r: Array, tolerance: float
) -> Array:
    """Controls nearest to ``tau`` that satisfy the control constraints; see :meth:`kanegen.Solver.consistent_controls`.

    ``r`` (n_r,): all inputs; the entries of the controls are not read.
    """
    labels = control_constraints(functions)
    names = functions.description.input_names(labels.states)
    positive(tolerance, "tolerance")
    z = np.zeros(len(names)) if tau is None else numbers(tau, "tau", names)
    if "control_level" not in functions.description.functions:
        return z
    function = functions.get("control_level")
    best, smallest = z, np.inf
    for _ in range(_ITERATIONS):
        rows = function.value(t, q, u, with_controls(labels, r, z))
        matrix, residual = rows[:, :-1], rows[:, -1]
        # The terms of a residual that is affine in the controls.
        terms = np.abs(matrix) @ np.abs(z) + np.abs(residual - matrix @ z)
        size = float((np.abs(residual) / np.maximum(terms, np.finfo(float).tiny)).max(initial=0.0))
        if size >= smallest and smallest <= tolerance:
            return best
        best, smallest = (z, size) if size < smallest else (best, smallest)
        if size == 0.0:
            return z
        units = np.maximum(np.abs(matrix).max(axis=1, initial=0.0), np.finfo(float).tiny)
        z = z - np.linalg.lstsq(matrix / units[:, None], residual / units, rcond=_SINGULAR)[0]
        if not np.isfinite(z).all():
            break
    if smallest <= tolerance:
        return best
    _require_rounding(functions, t, (q, u, with_controls(labels, r, best)), tolerance)
    return best


def _require_rounding(functions: CompiledFunctions, t: float, state: tuple[Any, ...], tolerance: float) -> None:
    """Raise `SolveError` unless the residuals, which no control changes, are rounding errors."""
    rows = functions.get("control_level").value(t, *state)
    if (np.abs(rows) <= tolerance * terms_of(functions, "control_level", rows, t, state))[:, -1].all():
        return
    values = functions.get("control_residuals").value(t, *state)
    levels = control_constraints(functions).levels
    held = [(level.label, value) for level, value in zip(levels, values, strict=True) if level.held]
    raise SolveError(
        listed(
            f"no controls satisfy the control constraints at t = {t!r} s; the residuals of the best ones are",
            [f"{label}: residual {value:.6g}" for label, value in held],
            "at this state the constraints do not depend on the controls, or they contradict each other: change the "
            "state or the constraints, or give a nearer guess tau",
        )
    )


def start_problems(functions: CompiledFunctions, start: RunStart, z: Array, r: Array) -> list[str]:
    """The control constraints that a start violates and whose errors would not decay, because they have no theta."""
    labels = control_constraints(functions)
    if not labels.levels or start.tolerance is None:
        return []
    state = np.asarray(start.q, dtype=np.float64), np.asarray(start.u, dtype=np.float64), with_controls(labels, r, z)
    values, units = functions.get("control_residuals").with_units(start.t, *state)
    limits = start.tolerance * (units + terms_of(functions, "control_residuals", values, start.t, state))
    rows = [k for k, level in enumerate(labels.levels) if not level.decays]
    return beyond([labels.levels[k].label for k in rows], values[rows], limits[rows])
