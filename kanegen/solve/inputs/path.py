"""A prescribed path q(t) with its derivatives: expressions of time, or splines of samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.errors import DerivationError, SolveError
from kanegen.graph import Graph, Lowering, Spline, Tangent, evaluate, numpy_context
from kanegen.solve.names import by_name

DEGREE = 5
"""Degree of the splines through samples: their second derivatives, which determine the forces, are of class C2."""

ACCEPTED = (
    "a table (times (n,), values (n, n_q)), a SciPy spline of (n_q,) values, or a mapping from coordinates to SymPy "
    "expressions of time, numbers, tables and splines"
)


class Path(NamedTuple):
    """``q``, ``qdot`` and ``qddot`` at ``times`` (n_t,): (n_t, n_q)."""

    times: Array
    q: Array
    qdot: Array
    qddot: Array


def sampled_path(given: Any, times: Any, description: Description, parameters: Mapping[str, float | None]) -> Path:
    """The path at ``times``; expressions may contain parameters of the model.

    Raises
    ------
    SolveError
        For paths of other kinds or shapes, coordinates without one, unknown symbols, and times beyond the samples.
    """
    wanted = _times(times)
    names = description.coordinates
    if isinstance(given, Mapping):
        by_coordinate = by_name(given, names, "coordinate")
        missing = [name for name in names if name not in by_coordinate]
        if missing:
            raise SolveError(f"the path gives no motion of {', '.join(missing)}: give every coordinate one")
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


Curve = Callable[[Array, int], Array]
"""Values of the k-th derivative at times."""


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
    """An expression of time and parameters, lowered and differentiated on a graph like the model's expressions."""
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
                f"{what} is given for t from {first!r} to {last!r} s; t = {float(times[outside][0])!r} lies outside"
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
        raise SolveError(f"the table of {what} must hold finite numbers, its times increasing")
    return make_interp_spline(x, y, k=DEGREE if x.size > DEGREE else 3)


def _spline(spline: Any, what: str, width: int) -> Curve:
    derivatives = [spline, spline.derivative(1), spline.derivative(2)]
    knots: Sequence[float] | None = getattr(spline, "t", None) if hasattr(spline, "k") else getattr(spline, "x", None)

    def values(times: Array, k: int) -> Array:
        rows = np.asarray(derivatives[k](times), dtype=np.float64)
        if rows.size != times.size * width:
            raise SolveError(f"{what} gives values of shape {rows.shape[1:]} at each time; expected ({width},)")
        return rows

    return values if knots is None else _within(values, what, float(np.min(knots)), float(np.max(knots)))
