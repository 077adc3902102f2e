"""What tables become in the graph: intervals of arguments, grids, and tables whose values are parameters.

A table of numbers is one call: of a :class:`kanegen.graph.functions.Spline` or of a :class:`Grid`. In a table of
parameters, an :class:`Interval` finds the place of an argument, ``gather`` takes the coefficients there, and the value
is a sum of products, so that every derivative, also with respect to the values, follows from the rules of these
operations. Coefficients depend on parameters only: they are computed before a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from math import perm
from typing import Any, Final

import numpy as np
import sympy

from kanegen.errors import DerivationError
from kanegen.graph import fits
from kanegen.graph.functions import Domain, TableUnits, Tabulated, applied_class, derived_units, place
from kanegen.graph.interpret import evaluate, numpy_context
from kanegen.graph.nodes import Graph, Node

AXES: Final = ("x", "y")
"""The names of the arguments of a table."""


def weights(d: Any, inverse: Any, order: int, cubic: bool) -> list[Any]:
    """The weights of what is given at both ends of an interval in the value at the distance ``d`` from its start.

    ``cubic``: of value and slope at the start, and of value and slope at the end; otherwise of both values.
    ``inverse``: 1 divided by the length; ``order``: that of the derivative, up to 3.
    """
    s = d * inverse
    if not cubic:
        return [1 - s, s] if order == 0 else [-inverse, inverse]
    rest = 1 - s
    if order == 0:
        end = s * s * (3 - 2 * s)
        return [1 - end, d * (rest * rest), end, -(d * (s * rest))]
    if order == 1:
        end = 6 * (s * rest) * inverse
        return [-end, rest * (1 - 3 * s), end, s * (3 * s - 2)]
    if order == 2:
        end = (6 - 12 * s) * (inverse * inverse)
        return [-end, (6 * s - 4) * inverse, end, (6 * s - 2) * inverse]
    square = inverse * inverse
    return [12 * (square * inverse), 6 * square, -12 * (square * inverse), 6 * square]


class Interval(Tabulated):
    """The index of the interval between knots that contains an argument, counted from 0; the nearest one beyond."""

    arity = 1
    __slots__ = ("_applied", "domain", "name", "points")

    def __init__(self, name: str, points: Sequence[float], domain: Domain | None) -> None:
        self.name, self.points, self.domain = name, tuple(points), domain
        self._applied = applied_class(self)

    def __call__(self, *arguments: Any) -> Any:
        return self._applied(*arguments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interval) and self.content == other.content

    def __hash__(self) -> int:
        return hash(self.points)

    @property
    def content(self) -> str:
        """Text that changes whenever the generated code would."""
        return repr((self.name, self.points, self.domain))

    @property
    def domains(self) -> tuple[Domain | None]:  # type: ignore[override]
        """The domain of the argument."""
        return (self.domain,)

    @property
    def knots(self) -> tuple[tuple[float, ...]]:  # type: ignore[override]
        """The ends of the intervals."""
        return (self.points,)

    @property
    def numbers(self) -> tuple[float, ...]:  # type: ignore[override]
        """The ends of the intervals."""
        return self.points

    @property
    def levels(self) -> tuple[tuple[float, ...]]:  # type: ignore[override]
        """The ends that two intervals share."""
        return (self.points[1:-1],)

    def extended(self, x: Any) -> Any:
        """The index of the interval of ``x``."""
        return place(self.points, x)

    def derivative_at(self, index: int) -> Any:
        """Zero: the index is constant between the knots."""
        return lambda x: x * 0


class Grid(Tabulated):
    """A function of two arguments by its values at the points of a grid, or a derivative of it.

    ``values[i][j]``: what is given at (x_i, y_j): the value, or value, slope along y, slope along x, and the mixed
    derivative, of pieces that are cubic in each argument. ``orders``: of the derivatives along x and y.
    """

    arity = 2
    __slots__ = ("_applied", "_derivatives", "domains", "knots", "name", "orders", "units", "values")

    def __init__(
        self,
        name: str,
        knots: tuple[tuple[float, ...], ...],
        values: tuple[tuple[tuple[float, ...], ...], ...],
        domains: tuple[Domain | None, ...],
        orders: tuple[int, int] = (0, 0),
        units: TableUnits | None = None,
    ) -> None:
        self.name, self.knots, self.values, self.domains, self.orders = name, knots, values, domains, orders
        self.units = units
        self._derivatives: dict[int, Grid] = {}
        self._applied = applied_class(self)

    def __call__(self, *arguments: Any) -> Any:
        return self._applied(*arguments)

    @property
    def content(self) -> str:
        """Text that changes whenever the generated code would."""
        return repr((self.name, self.knots, self.values, self.domains, self.orders))

    @property
    def numbers(self) -> tuple[float, ...]:  # type: ignore[override]
        """Knots and what is given at them."""
        inside = (number for row in self.values for point in row for number in point)
        return (*self.knots[0], *self.knots[1], *inside)

    @property
    def levels(self) -> tuple[tuple[float, ...], ...]:  # type: ignore[override]
        """The inner knots."""
        return tuple(points[1:-1] for points in self.knots)

    @property
    def cubic(self) -> bool:
        """Whether slopes are given."""
        return len(self.values[0][0]) > 1

    def extended(self, x: Any, y: Any) -> Any:
        """The value; the outer pieces continue beyond the domains."""
        if getattr(x, "ndim", 0) or getattr(y, "ndim", 0):
            x, y = np.broadcast_arrays(x, y)
        (i, a), (j, b) = (self._along(axis, at) for axis, at in enumerate((x, y)))
        given = np.array(self.values) if getattr(i, "ndim", 0) else None

        def element(row: int, column: int, which: int) -> Any:
            if given is not None:
                return given[i + row, j + column, which]
            return self.values[i + row][j + column][which]

        return weighted(element, a, b)

    def _along(self, axis: int, x: Any) -> tuple[Any, list[Any]]:
        points: Any = self.knots[axis]
        i = place(points, x)
        if getattr(i, "ndim", 0):
            points = np.array(points)
        return i, weights(x - points[i], 1 / (points[i + 1] - points[i]), self.orders[axis], self.cubic)

    def derivative_at(self, index: int) -> Any:
        """The derivative with respect to an argument; zero beyond the degree."""
        orders = (self.orders[0] + (index == 0), self.orders[1] + (index == 1))
        if orders[index] > (3 if self.cubic else 1):
            return lambda *arguments: sympy.S.Zero
        # Kept, so that equal derivatives are the same SymPy function and share a node of the graph.
        if index not in self._derivatives:
            name = (
                f"{self.name}_{'x' * orders[0]}{'y' * orders[1]}" if not any(self.orders) else self.name + AXES[index]
            )
            known = self._derivatives.get(1 - index)
            twin = known._derivatives.get(index) if known is not None else None
            self._derivatives[index] = twin or Grid(
                name, self.knots, self.values, self.domains, orders, derived_units(self.units, index)
            )
        return self._derivatives[index]


def weighted(element: Callable[[int, int, int], Any], a: Sequence[Any], b: Sequence[Any]) -> Any:
    """The value in a cell of a grid by the weights along x and y.

    ``element(row, column, which)``: what is given at a corner: value, slope along y, slope along x, mixed derivative.
    """
    per = len(a) // 2
    total: Any = None
    for k, along_x in enumerate(a):
        inner: Any = None
        for m, along_y in enumerate(b):
            term = along_y * element(k // per, m // per, 2 * (k % per) + m % per)
            inner = term if inner is None else inner + term
        total = along_x * inner if total is None else total + along_x * inner
    return total


def grid_values(
    x: Sequence[Any], y: Sequence[Any], z: Sequence[Sequence[Any]], kind: str
) -> list[list[tuple[Any, ...]]]:
    """What a `Grid` has at its points, from ``z[i][j]``, numbers or nodes."""
    if kind == "linear":
        return [[(value,) for value in row] for row in z]
    along_x = _transposed([fits.slopes(x, column, kind) for column in _transposed(z)])
    along_y = [fits.slopes(y, row, kind) for row in z]
    mixed = [fits.slopes(y, row, kind) for row in along_x]
    return [list(zip(*rows, strict=True)) for rows in zip(z, along_y, along_x, mixed, strict=True)]


def _transposed(rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True))


# -- functions that become several nodes -------------------------------------------------------------------------------


class Composed:
    """A table that becomes several nodes: one that is constant beyond its ends, or whose values are parameters.

    The arguments of its SymPy expressions are those of the table and, after them, its values if they are parameters.
    ``orders``: of the derivatives with respect to the arguments of the table.
    """

    def __init__(self, points: Points, units: TableUnits | None = None, orders: tuple[int, ...] = ()) -> None:
        self.points = points
        self.orders = orders or (0,) * len(points.knots)
        self.name = points.name + "'" * sum(self.orders)
        self.units = units
        self.arity = len(self.orders) + (points.size if points.varies else 0)
        self.domains = (None,) * self.arity
        self._derivatives: dict[int, Any] = {}
        self._applied = applied_class(self)
        self._applied._sympystr = lambda expr, printer: self._text(expr, printer._print)
        self._applied._latex = lambda expr, printer, exp=None: self._latex(expr, printer, exp)

    def __call__(self, *arguments: Any) -> Any:
        """The SymPy expression of the function applied to SymPy expressions."""
        return self._applied(*arguments)

    def _text(self, expr: Any, show: Callable[[Any], str]) -> str:
        return f"{self.name}({', '.join(map(show, expr.args[: len(self.orders)]))})"

    def _latex(self, expr: Any, printer: Any, exp: Any) -> str:
        inner = ", ".join(map(printer._print, expr.args[: len(self.orders)]))
        power = "" if exp is None else f"^{{{exp}}}"
        return rf"\operatorname{{{self.points.name}}}{power}{chr(39) * sum(self.orders)}\left({inner}\right)"

    def derivative_at(self, index: int) -> Any:
        """The derivative with respect to an argument of the SymPy expression, for derivatives that SymPy takes."""
        n = len(self.orders)
        if index < n:
            if index not in self._derivatives:
                orders = tuple(order + (k == index) for k, order in enumerate(self.orders))
                self._derivatives[index] = Composed(self.points, derived_units(self.units, index), orders)
            return self._derivatives[index]
        if self.points.kind == "monotone":
            raise DerivationError(
                f"SymPy cannot differentiate the table {self.points.name!r} with respect to its values, because "
                'kind="monotone" is not linear in them; sensitivities and gradients of motions can'
            )
        return lambda *arguments: self(*arguments[:n], *(int(k == index - n) for k in range(self.points.size)))

    def python(self, *arguments: Any) -> Any:
        """The value at numbers."""
        n = len(self.orders)
        for domain, x in zip(self.points.domains, arguments, strict=False):
            if domain is not None:
                domain.require(x)
        values = {"q": arguments[:n], "p": arguments[n:]}
        return evaluate([self._root], values, numpy_context())[0]

    @cached_property
    def _root(self) -> Node:
        """The node of the function of inputs."""
        graph, n = Graph(), len(self.orders)
        nodes = [graph.input("q", k) for k in range(n)]
        return self.node(graph, [*nodes, *(graph.input("p", k) for k in range(self.arity - n))])

    def node(self, graph: Graph, arguments: Sequence[Node]) -> Node:
        """The node of the function of some nodes.

        Raises `DerivationError` for values that are no parameters, and for another table whose parameters have the same
        names.
        """
        n, points = len(self.orders), self.points
        if points.names_parameters and graph.named.setdefault(points.name, points) is not points:
            raise DerivationError(
                f"two tables with parameters=True have the name {points.name!r}, so that their values would be the "
                "same parameters: give each table a name= of its own"
            )
        given = arguments[n:]
        if not all(value.constant for value in given):
            raise DerivationError(
                f"the values of the table {points.name!r} depend on more than parameters: a table has values that are "
                "constant during a run; write a product or a sum of tables, or a Piecewise"
            )
        if max(self.orders) > (1 if points.kind == "linear" else 3):
            return graph.zero
        inside, outside = zip(*map(self._within, range(n), arguments[:n]), strict=True)
        if not points.varies:
            value = graph.call(points.grid(self.orders), *inside)
        else:
            value = (self._curve if n == 1 else self._surface)(graph, inside, given)
        for beyond in outside:
            value = value if beyond is None else graph.select(beyond, graph.zero, value)
        return value

    def _within(self, axis: int, x: Node) -> tuple[Node, Node | None]:
        """The argument, or that at the nearest end for a table that is constant beyond; where a derivative is zero."""
        if self.points.extrapolate != "constant":
            return x, None
        graph, (first, *_, last) = x.graph, self.points.knots[axis]
        low, high = graph.const(first), graph.const(last)
        if not self.orders[axis]:
            return graph.apply("min", graph.apply("max", x, low), high), None
        return x, graph.apply("or", graph.apply("lt", x, low), graph.apply("lt", high, x))

    def _place(self, graph: Graph, axis: int, x: Node) -> tuple[Node, Node]:
        """The index of the interval that contains an argument, and the distance from its start."""
        points = self.points.knots[axis]
        i = graph.call(self.points.intervals[axis], x)
        return i, x - graph.gather(i, [graph.const(knot) for knot in points[:-1]])

    def _curve(self, graph: Graph, arguments: Sequence[Node], given: Sequence[Node]) -> Node:
        (x,), points = self.points.knots, self.points
        if points.kind == "linear":
            rises = [
                (b - a) * (1 / (high - low)) for (a, b), (low, high) in zip(pairwise(given), pairwise(x), strict=True)
            ]
            coefficients = [tuple(given[:-1]), tuple(rises)]
        else:
            slopes = fits.slopes(x, given, points.kind, partial(_choose, graph))
            coefficients = _transposed(fits.pieces(x, given, slopes))
        i, d = self._place(graph, 0, arguments[0])
        (order,) = self.orders
        value = graph.zero
        for k in range(len(coefficients) - 1, order - 1, -1):
            value = value * d + perm(k, order) * graph.gather(i, coefficients[k])
        return value

    def _surface(self, graph: Graph, arguments: Sequence[Node], given: Sequence[Node]) -> Node:
        points = self.points
        x, y = points.knots
        z = [given[k : k + len(y)] for k in range(0, len(given), len(y))]
        blocks = _transposed([point for row in grid_values(x, y, z, points.kind) for point in row])
        cubic = len(blocks) > 1
        places, sides = [], []
        for axis, (argument, order) in enumerate(zip(arguments, self.orders, strict=True)):
            i, d = self._place(graph, axis, argument)
            inverses = [graph.const(1 / (b - a)) for a, b in pairwise(points.knots[axis])]
            places.append(i)
            sides.append(weights(d, graph.gather(i, inverses), order, cubic))
        corner = places[0] * len(y) + places[1]

        def element(row: int, column: int, which: int) -> Node:
            return graph.gather(corner + (row * len(y) + column), blocks[which])

        result: Node = weighted(element, *sides)
        return result


def _choose(graph: Graph, x: Node, positive: Node, other: Node) -> Node:
    return graph.select(graph.apply("lt", graph.zero, x), positive, other)


@dataclass(frozen=True, eq=False)
class Points:
    """What a `Composed` table is made of: see :class:`kanegen.Table`.

    ``given``: what a grid of numbers has at its points; None for values that are parameters. ``size``: their number.
    ``names_parameters``: whether the values are parameters that have the name of the table.
    """

    name: str
    knots: tuple[tuple[float, ...], ...]
    kind: str
    extrapolate: str
    domains: tuple[Domain | None, ...]
    size: int
    given: Any = None
    names_parameters: bool = False

    @property
    def varies(self) -> bool:
        """Whether the values are parameters."""
        return self.given is None

    @cached_property
    def intervals(self) -> tuple[Interval, ...]:
        """The intervals of each argument."""
        return tuple(Interval(self.name, *item) for item in zip(self.knots, self.domains, strict=True))

    @cached_property
    def _grid(self) -> Grid:
        return Grid(self.name, self.knots, self.given, self.domains)

    def grid(self, orders: Sequence[int]) -> Any:
        """The grid, or a derivative of it."""
        found: Any = self._grid
        for index, order in enumerate(orders):
            for _ in range(order):
                found = found.derivative_at(index)
        return found
