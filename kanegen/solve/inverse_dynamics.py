"""Inverse dynamics: the controls, multipliers and reactions of a given motion.

The motion is a path q(t) with its derivatives, from expressions of time or from splines through samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.codegen.description import REACTION, Description
from kanegen.errors import DerivationError, SolveError
from kanegen.graph import Graph, Lowering, Spline, Tangent, evaluate, numpy_context
from kanegen.solve.evaluation import Wrench
from kanegen.solve.feedback.closed_loop import other_inputs
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.inputs import RunInputs
from kanegen.solve.values import beyond, by_name, largest, listed

FEASIBLE: Final = 1e-9
"""A residual below this fraction of the forces counts as rounding error."""

DEGREE: Final = 5
"""Degree of the splines through samples; the second derivatives, which determine the forces, are of class C2."""

ACCEPTED: Final = (
    "a table (times (n,), values (n, n_q)), a SciPy spline of (n_q,) values, or a mapping from coordinates to SymPy "
    "expressions of time, numbers, tables and splines"
)

Curve = Callable[[Array, int], Array]
"""A function of times (n,) and k that returns the k-th derivative at these times."""

_RESULTS: Final = ("u", "udot", "controls", "multipliers", "residual")


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """A motion with the controls that drive it.

    Attributes
    ----------
    t, q, u, udot
        The path, (n_t,), (n_t, n_q), (n_t, n_u), (n_t, n_u).
    controls
        (n_t, n_tau), in the order of ``control_names``: the controls of least norm among all that drive the motion.
    multipliers
        (n_t, n_c) of ``M u' = P + J^T lambda``, in the order of ``description.constraints.rows``.
    reactions
        Force (n_t, 3) and torque (n_t, 3) of each reaction of the model.
    residual
        Generalized forces (n_t, n_u) that neither controls nor constraints supply; nonzero where the controls cannot
        drive the motion.
    feasible
        Whether the controls drive the motion, (n_t,).
    freedom
        Dimension of the family of controls that drive the motion, (n_t,); 0: unique.
    """

    t: Array
    q: Array
    u: Array
    udot: Array
    controls: Array
    control_names: tuple[str, ...]
    multipliers: Array
    reactions: Mapping[str, Wrench]
    residual: Array
    feasible: NDArray[np.bool_]
    freedom: NDArray[np.int_] = field(repr=False)


def inverse_dynamics(
    functions: CompiledFunctions, parameters: Mapping[str, float | None], path: Any, times: Any, r: Any, tolerance: Any
) -> InverseDynamics:
    """See :meth:`kanegen.Solver.inverse_dynamics`, whose arguments these are."""
    d, module = functions.description, functions.module
    if not d.path_controls:
        raise SolveError(
            f"inverse dynamics of the model {d.name!r} has no unknowns: it needs inputs that occur in the forces only, "
            "affinely, and the functions control_forces and kinematics, which are built by default"
        )
    reactions = [REACTION + name for name in d.reactions]
    needed = ("control_forces", "kinematics", d.mass, "P", *reactions)
    functions.require(needed)
    _require_no_states(functions, needed)
    names = d.input_names(d.path_controls)
    inputs = other_inputs(functions, names, r)
    if inputs.laws is not None:
        by_law = ", ".join(d.input_names(inputs.laws.slots))
        raise SolveError(
            f"inverse dynamics of the model {d.name!r} does not evaluate the feedback laws of {by_law}: give their "
            "values along the path by r="
        )
    motion = sampled_path(path, times, d, parameters)
    residuals = ["residuals"] if "residuals" in d.functions else []
    inverse = module.Inverse(d.path_controls)
    values = inverse.along(functions.prepared, inputs.compiled, *motion, (*reactions, *residuals))
    _require_evaluated(functions, motion, values, inputs)
    if tolerance is not None:
        _require_consistent(d, motion, values, tolerance)
    scale = np.abs(values["controls"]).max(axis=1, initial=0.0) + np.abs(values["multipliers"]).max(axis=1, initial=0.0)
    forces = np.abs(values["residual"]).max(axis=1, initial=0.0)
    return InverseDynamics(
        t=motion.times,
        q=motion.q,
        control_names=names,
        reactions={name: Wrench(*np.split(values[REACTION + name], 2, axis=1)) for name in d.reactions},
        feasible=forces <= FEASIBLE * np.maximum(1.0, scale),
        freedom=len(names) - values["rank"].astype(int),
        **{name: values[name] for name in _RESULTS},
    )


def _require_no_states(functions: CompiledFunctions, needed: Iterable[str]) -> None:
    """Raise `SolveError` if forces depend on states, whose values along the path are unknown."""
    d, read = functions.description, functions.inputs_read(needed)
    names = [name for k, name in enumerate(d.states, d.input_layout.state_slots.start) if k in read]
    if names:
        raise SolveError(
            f"inverse dynamics of the model {d.name!r} needs the states {', '.join(names)}, which the path does not "
            "determine: build a model in which they are inputs, and give their values by r="
        )


def _require_evaluated(
    functions: CompiledFunctions, motion: Path, values: Mapping[str, Array], inputs: RunInputs
) -> None:
    """Raise `SolveError` if the equations cannot be solved or are not finite somewhere along the path."""
    status = values["status"]
    finite = [np.isfinite(values[name]).all(axis=1) for name in _RESULTS]
    failed = np.flatnonzero((status < 0) | ~np.logical_and.reduce(finite))
    if not failed.size:
        return
    i = int(failed[0])
    t, q, u = float(motion.times[i]), motion.q[i], np.nan_to_num(values["u"][i])
    names = functions.description.coordinates
    place = ", ".join(f"{name}={x!r}" for name, x in zip(names, q.tolist(), strict=True))
    reason = "the kinematics or the forces are singular there"
    try:
        mass = functions.description.mass
        functions.require_finite(("kinematics", mass, "P", "J", "b"), t, q, u, inputs.at(t))
    except SolveError as error:
        reason = str(error)
    raise SolveError(
        f"the equations cannot be evaluated at {failed.size} of {status.size} times, first at t = {t!r} s ({place}): "
        f"{reason}; change the path so that it avoids this configuration"
    )


def _require_consistent(d: Description, motion: Path, values: Mapping[str, Array], tolerance: float) -> None:
    """Raise `SolveError` for a path that violates constraints at any level, or the kinematic equations."""
    speed = largest(values["u"])
    labels, n = d.constraints, len(d.constraints.positions)
    residuals = values.get("residuals", np.empty((motion.times.size, 0)))
    problems: list[str] = []
    for names, rows, scale in (
        (labels.positions, residuals[:, :n], largest(motion.q)),
        (labels.velocities, residuals[:, n:], speed),
        ([f"the kinematics of {name}" for name in d.coordinates], values["slip"], speed),
        (
            [f"acceleration level of {label}" for label in labels.rows],
            values["violation"],
            max(speed, largest(values["udot"])),
        ),
    ):
        worst = np.abs(rows).argmax(axis=0)
        at = [f"{name} at t = {t!r} s" for name, t in zip(names, motion.times[worst].tolist(), strict=True)]
        problems += beyond(at, np.abs(rows).max(axis=0), tolerance * scale)
    if problems:
        advice = (
            "correct the path (solver.make_consistent gives states on the constraints), allow more by path_tolerance=, "
            "or pass path_tolerance=None"
        )
        raise SolveError(listed(f"the path violates {len(problems)} constraint(s) of {d.name!r}", problems, advice))


class Path(NamedTuple):
    """``q``, ``qdot`` and ``qddot``, (n_t, n_q) each, at ``times`` (n_t,)."""

    times: Array
    q: Array
    qdot: Array
    qddot: Array


def sampled_path(given: Any, times: Any, description: Description, parameters: Mapping[str, float | None]) -> Path:
    """The path at ``times``; expressions may contain parameters of the model.

    Raises `SolveError` for paths of other types or shapes, coordinates without a motion, unknown symbols, and times
    outside the samples.
    """
    wanted, names = _times(times), description.coordinates
    if isinstance(given, Mapping):
        by_coordinate = by_name(given, names, "coordinate")
        missing = [name for name in names if name not in by_coordinate]
        if missing:
            raise SolveError(f"the path gives no motion of {', '.join(missing)}: give a motion of every coordinate")
        curves = [_curve(by_coordinate[name], name, 1, parameters) for name in names]
        rows = [np.stack([curve(wanted, k).reshape(wanted.size) for curve in curves], axis=1) for k in range(3)]
    else:
        curve = _curve(given, "the path", len(names), parameters)
        rows = [curve(wanted, k).reshape(wanted.size, len(names)) for k in range(3)]
    for k, row in enumerate(rows):
        if not np.isfinite(row).all():
            i, j = np.argwhere(~np.isfinite(row))[0]
            raise SolveError(f"the path gives {names[j]}{chr(39) * k} = {row[i, j]} at t = {float(wanted[i])!r} s")
    return Path(wanted, *rows)


def _times(times: Any) -> Array:
    try:
        wanted = np.atleast_1d(np.asarray(times, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise SolveError(f"times is {times!r}; expected numbers (n_t,), seconds") from error
    if wanted.ndim != 1 or not wanted.size or not np.isfinite(wanted).all():
        raise SolveError(f"times has shape {wanted.shape}; expected finite times (n_t,), seconds, at least one")
    return wanted


def _curve(value: Any, what: str, width: int, parameters: Mapping[str, float | None]) -> Curve:
    import sympy
    from sympy.physics.vector import dynamicsymbols

    if isinstance(value, sympy.Expr) or (isinstance(value, int | float) and width == 1):
        return _expression(sympy.sympify(value), what, parameters)
    if isinstance(value, Spline):
        curve = _expression(value(dynamicsymbols._t), what, parameters)
        return _within(curve, what, value.breakpoints[0], value.breakpoints[-1])
    if type(value) is tuple and len(value) == 2:
        return _spline(_through(value, what, width), what, width)
    if callable(getattr(value, "derivative", None)) and callable(value):
        return _spline(value, what, width)
    raise SolveError(f"{what} is a {type(value).__name__}; expected {ACCEPTED}")


def _expression(expression: Any, what: str, parameters: Mapping[str, float | None]) -> Curve:
    """An expression of time and parameters, differentiated on a graph as are the expressions of the model."""
    from sympy.physics.vector import dynamicsymbols

    graph = Graph()
    t = graph.input("t", 0)
    known = {name: value for name, value in parameters.items() if value is not None}
    symbols = {x: graph.const(known[str(x)]) for x in expression.free_symbols if str(x) in known}
    try:
        node = Lowering(graph, {dynamicsymbols._t: t, **symbols}).lower(expression)
    except DerivationError as error:
        raise SolveError(
            f"the motion of {what}, {expression}, is not an expression of time ({dynamicsymbols._t}) and of parameters "
            f"that have a value: {error}"
        ) from error
    rate = Tangent(graph, {t: graph.one})
    nodes = (node, rate(node), rate(rate(node)))

    def evaluate_at(times: Array, k: int) -> Array:
        with np.errstate(all="ignore"):  # sampled_path checks that the values are finite
            (values,) = evaluate([nodes[k]], {"t": [times]}, numpy_context())
        return np.broadcast_to(np.asarray(values, dtype=np.float64), times.shape)

    return evaluate_at


def _within(curve: Curve, what: str, first: float, last: float) -> Curve:
    """The curve, limited to times from ``first`` to ``last``."""

    def values(times: Array, k: int) -> Array:
        outside = (times < first) | (times > last)
        if outside.any():
            raise SolveError(
                f"{what} is given for t from {first!r} to {last!r} s, but needed at t = {float(times[outside][0])!r} s"
            )
        return curve(times, k)

    return values


def _through(table: tuple[Any, Any], what: str, width: int) -> Any:
    """The interpolating spline of samples (times, values)."""
    from scipy.interpolate import make_interp_spline

    try:
        x, y = (np.asarray(item, dtype=np.float64) for item in table)
    except (TypeError, ValueError) as error:
        raise SolveError(f"the table of {what} must hold numbers: {error}") from error
    if x.ndim != 1 or y.shape not in ((x.size, width), (x.size,) * (width == 1)) or x.size < 4:
        raise SolveError(
            f"the table of {what} has times {x.shape} and values {y.shape}; expected (n,) and (n, {width}) with n >= 4"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all() and (np.diff(x) > 0.0).all()):
        raise SolveError(f"the table of {what} must hold finite numbers, with increasing times")
    return make_interp_spline(x, y, k=DEGREE if x.size > DEGREE else 3)


def _spline(spline: Any, what: str, width: int) -> Curve:
    derivatives = [spline, spline.derivative(1), spline.derivative(2)]
    knots = getattr(spline, "t" if hasattr(spline, "k") else "x", None)

    def values(times: Array, k: int) -> Array:
        rows = np.asarray(derivatives[k](times), dtype=np.float64)
        if rows.size != times.size * width:
            raise SolveError(f"{what} gives values of shape {rows.shape[1:]} at each time; expected ({width},)")
        return rows

    return values if knots is None else _within(values, what, float(np.min(knots)), float(np.max(knots)))
