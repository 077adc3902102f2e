"""The path of inverse dynamics: a motion q(t) with its derivatives, or of some coordinates and outputs.

The motions are expressions of time, or splines through samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.codegen.description import Description
from kanegen.errors import DerivationError, SolveError
from kanegen.graph import Graph, Lowering, Spline, Tangent, evaluate, numpy_context
from kanegen.graph.domains import requirements
from kanegen.solve.values import by_name, number

DEGREE: Final = 5
"""Degree of the splines through samples; the second derivatives, which determine the forces, are of class C2."""

ACCEPTED: Final = (
    "a table (times (n,), values (n, n_q)), a SciPy spline of (n_q,) values, or a mapping from coordinates and outputs "
    "to SymPy expressions of time, numbers, tables and splines"
)

Curve = Callable[[Array, int], Array]
"""A function of times (n,) and k that returns the k-th derivative at these times."""


class Path(NamedTuple):
    """``q``, ``qdot`` and ``qddot``, (n_t, n_q) each, at ``times`` (n_t,)."""

    times: Array
    q: Array
    qdot: Array
    qddot: Array


@dataclass(frozen=True, eq=False)
class PartialPath:
    """A path of some coordinates (indices, in order) and outputs: a curve for each, wanted at ``times`` (n_t,).

    ``labels`` names the columns: the coordinates, then the components of the outputs.
    """

    times: Array
    coordinates: tuple[int, ...]
    outputs: tuple[str, ...]
    labels: tuple[str, ...]
    curves: tuple[Curve, ...]

    def at(self, times: Array) -> Array:
        """Values, rates and accelerations (n_t, n, 3). Raises `SolveError` if one of them is not finite."""
        rows = [np.concatenate([f(times, k).reshape(times.size, -1) for f in self.curves], axis=1) for k in range(3)]
        _require_finite(rows, self.labels, times)
        return np.stack(rows, axis=2)


def sampled_path(
    given: Any, times: Any, description: Description, parameters: Mapping[str, float | None]
) -> Path | PartialPath:
    """The path at ``times``; expressions may contain parameters of the model.

    Raises `SolveError` for paths of other types or shapes, unknown symbols, and times outside the samples.
    """
    wanted, names = _times(times), description.coordinates
    if isinstance(given, Mapping):
        known = (*names, *(name for name in description.outputs if name not in names))
        motions = by_name(given, known, "coordinate or output")
        if not motions:
            raise SolveError(f"the path is an empty mapping; expected {ACCEPTED}")
        path = _partial_path(motions, wanted, description, parameters)
        if path.outputs or len(path.coordinates) < len(names):
            return path
        values = path.at(wanted)
        return Path(wanted, values[:, :, 0].copy(), values[:, :, 1].copy(), values[:, :, 2].copy())
    curve = _curve(given, "the path", len(names), parameters)
    rows = [curve(wanted, k).reshape(wanted.size, len(names)) for k in range(3)]
    _require_finite(rows, names, wanted)
    return Path(wanted, *rows)


def _partial_path(
    motions: Mapping[str, Any], times: Array, d: Description, parameters: Mapping[str, float | None]
) -> PartialPath:
    coordinates = tuple(k for k, name in enumerate(d.coordinates) if name in motions)
    outputs = tuple(name for name in d.outputs if name in motions and name not in d.coordinates)
    curves = [_curve(motions[d.coordinates[k]], d.coordinates[k], 1, parameters) for k in coordinates]
    labels = [d.coordinates[k] for k in coordinates]
    for name in outputs:
        shape = d.outputs[name]
        width = math.prod(shape)
        curves.append(_components(motions[name], name, width, parameters))
        labels += [f"{name}[{', '.join(map(str, index))}]" if shape else name for index in np.ndindex(shape)]
    return PartialPath(times, coordinates, outputs, tuple(labels), tuple(curves))


def _components(value: Any, what: str, width: int, parameters: Mapping[str, float | None]) -> Curve:
    """A motion of all components of an output: a list or matrix with a motion of each, or one table or spline."""
    import sympy

    if not isinstance(value, (list, sympy.MatrixBase)):
        return _curve(value, what, width, parameters)
    parts = [part for row in value for part in (row if isinstance(row, list) else [row])]
    if len(parts) != width:
        raise SolveError(f"the path gives {len(parts)} components of the output {what}; expected {width}")
    curves = [_curve(part, f"{what}[{k}]", 1, parameters) for k, part in enumerate(parts)]
    return lambda times, k: np.stack([curve(times, k).reshape(times.size) for curve in curves], axis=1)


def _require_finite(rows: Sequence[Array], names: Sequence[str], times: Array) -> None:
    for k, row in enumerate(rows):
        if not np.isfinite(row).all():
            i, j = np.argwhere(~np.isfinite(row))[0]
            raise SolveError(f"the path gives {names[j]}{chr(39) * k} = {row[i, j]} at t = {float(times[i])!r} s")


def _times(times: Any) -> Array:
    wanted = np.atleast_1d(real_array(times, "times"))
    if wanted.ndim != 1 or not wanted.size or not np.isfinite(wanted).all():
        raise SolveError(f"times has shape {wanted.shape}; expected finite times (n_t,), seconds, at least one")
    return wanted


def _curve(value: Any, what: str, width: int, parameters: Mapping[str, float | None]) -> Curve:
    import sympy
    from sympy.physics.vector import dynamicsymbols

    if isinstance(value, int | float | np.number) and width == 1:
        return _expression(sympy.Float(number(value, what)), what, parameters)
    if isinstance(value, sympy.Expr):
        return _expression(value, what, parameters)
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
        for need in requirements([nodes[k]]):
            need.domain.require(evaluate([need.argument], {"t": [times]}, numpy_context())[0])
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

    x, y = real_array(table[0], f"the times of {what}"), real_array(table[1], f"the values of {what}")
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
