"""User functions and piecewise polynomials in SymPy expressions.

Calling a :class:`Function` or :class:`Spline` on SymPy expressions gives an applied SymPy function. The attribute
``kanegen_function`` of its class is the object, by which the lowering recognizes it. Tables of other kinds are in
:mod:`kanegen.graph.grids`.

Each of them has ``domains``, one for each argument: the interval in which the argument must lie, or None. Programs test
it (:mod:`kanegen.graph.domains`), and ``extended`` is the value without the test: random states at which a model is
examined can lie outside of its tables.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import chain
from typing import Any, Final, Union

import numpy as np
import sympy
from numpy.typing import ArrayLike
from sympy.core.function import ArgumentIndexError

from kanegen.arrays import Array
from kanegen.errors import DerivationError, ModelError, SolveError, brief
from kanegen.graph import fits
from kanegen.graph.knots import notable_knots
from kanegen.precision import Tolerance

Derivative = Union["Function", "Tabulated", Callable[..., Any]]


def applied_class(owner: Any) -> Any:
    """The SymPy function class of ``owner``, created at run time because the user chooses its name."""

    def fdiff(self: Any, argindex: int = 1) -> Any:
        if not 1 <= argindex <= owner.arity:
            raise ArgumentIndexError(self, argindex)
        return owner.derivative_at(argindex - 1)(*self.args)

    body = {
        "kanegen_function": owner,
        "nargs": owner.arity,
        "fdiff": fdiff,
        "is_real": True,
        "_imp_": staticmethod(owner.python),
    }
    return type(owner.name, (sympy.Function,), body)


BEYOND: Final = Tolerance(1e-9, 1e-5)
"""How far beyond the ends of a table, relative to its length, an argument counts as inside.

A motion along the end of a table, and the last time of a run to the end of a table of t, differ from it by the errors
of the integration and by rounding.
"""

ROUNDINGS: Final = Tolerance(16 * 2.0**-52, 16 * 2.0**-23)
"""The same relative to the larger end: rounding errors of the argument."""


ADVICE: Final = (
    'say what is beyond, by extrapolate="constant" or "polynomial" of the table, or a last branch (value, True) of a '
    "Piecewise, or give points that reach further"
)


CLOSEST: Final = "the closest point"
"""How the label of a domain begins that is not the end of a table: where closest points of surfaces are not unique."""

SEVERAL: Final = (
    "the closest point is not unique there: give a disk that comes to lie flat points on its rim (rim=), and surfaces "
    "that interpenetrate so far a stiffer law, or start from another state"
)


def advice(label: str) -> str:
    """What to do about an argument outside of the domain with this label."""
    return SEVERAL if label.startswith(CLOSEST) else ADVICE


@dataclass(frozen=True)
class Domain:
    """The interval of an argument in which a table has values. Its ends are inside.

    ``label``: the table in messages, such as "the spline 'lift'". An end can be infinite.
    """

    label: str
    lowest: float
    highest: float

    @cached_property
    def limits(self) -> tuple[Tolerance, Tolerance]:
        """The least and the largest argument that count as inside."""
        ends = [x for x in (self.lowest, self.highest) if math.isfinite(x)]
        length, size = max(ends) - min(ends), max(map(abs, ends))
        beyond, rounding = BEYOND * length, ROUNDINGS * size
        double, single = float(beyond) + float(rounding), beyond.single + rounding.single
        return (
            Tolerance(self.lowest - double, self.lowest - single),
            Tolerance(self.highest + double, self.highest + single),
        )

    def require(self, x: Any) -> None:
        """Raise `SolveError` if a number is outside, or an entry of an array."""
        lowest, highest = self.limits
        outside = (np.real(x) < lowest) | (np.real(x) > highest)
        if np.any(outside):
            raise SolveError(self.refusal(np.extract(outside, np.real(x))[0]))

    def refusal(self, value: Any) -> str:
        """What to say about an argument outside."""
        return (
            f"the argument of {self.label} is {float(value):.9g}, but it has values from {self.lowest:.9g} to "
            f"{self.highest:.9g} only: {advice(self.label)}"
        )


MOST_ARGUMENTS: Final = 1000
"""Largest arity of a :class:`Function`."""


@dataclass(frozen=True, eq=False)
class Function:
    """A scalar function of scalars that the user supplies in Python and in C.

    Parameters
    ----------
    name
        Printed name; any string.
    arity
        Number of arguments, at least 1.
    python
        Callable of ``arity`` floats (or arrays of one shape) that returns the value.
    c
        C99 text of the same function: an expression, or the body of a function with its ``return``. The
        arguments are ``double`` and named by ``arguments``; ``<math.h>`` is included.
    derivatives
        One entry per argument: another ``Function`` or ``Spline`` of the same arguments, or a callable that
        takes the SymPy arguments and returns a SymPy expression. Required only if the derivation differentiates the
        function.
    arguments
        Names of the arguments in ``c``; ``("x",)`` for one argument and ``("x1", "x2", ...)`` for more
        by default.

    Raises
    ------
    ModelError
        If an argument has another type, or the numbers of arguments and derivatives differ from ``arity``.
    """

    name: str
    arity: int
    python: Callable[..., Any]
    c: str
    derivatives: tuple[Derivative, ...] = ()
    arguments: tuple[str, ...] = ()
    _applied: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("derivatives", "arguments"):
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Sequence):
                raise ModelError(f"kg.Function has {name}={brief(given)}: expected a sequence")
            object.__setattr__(self, name, tuple(given))
        if not self.arguments and isinstance(self.arity, int) and self.arity <= MOST_ARGUMENTS:
            names = ("x",) if self.arity == 1 else tuple(f"x{k + 1}" for k in range(self.arity))
            object.__setattr__(self, "arguments", names)
        problems = _function_problems(self)
        if problems:
            raise ModelError(problems)
        object.__setattr__(self, "_applied", applied_class(self))

    def __call__(self, *arguments: Any) -> Any:
        """The SymPy expression of the function applied to SymPy expressions."""
        return self._applied(*arguments)

    def node(self, graph: Any, arguments: Sequence[Any]) -> Any:
        """The node of the function of some nodes."""
        return graph.call(self, *arguments)

    @property
    def content(self) -> str:
        """Text that changes whenever the generated code would."""
        return repr((self.name, self.arguments, self.c))

    @property
    def domains(self) -> tuple[Domain | None, ...]:
        """The domain of each argument: none is tested."""
        return (None,) * self.arity

    @property
    def extended(self) -> Callable[..., Any]:
        """The value at any arguments."""
        return self.python

    @property
    def c_body(self) -> str:
        """The body of the C function, ending in a ``return`` statement."""
        text = self.c.strip()
        return text if re.search(r"\breturn\b", text) else f"return {text.rstrip(';')};"

    def derivative_at(self, index: int) -> Callable[..., Any]:
        """The callable that returns the derivative with respect to argument ``index`` (from 0) as a SymPy expression.

        Raises ``DerivationError`` if the user gave none.
        """
        if index >= len(self.derivatives):
            raise DerivationError(
                f"kg.Function {self.name!r} is differentiated with respect to its argument "
                f"{self.arguments[index]}, but has no derivatives: give derivatives=, one per argument"
            )
        return self.derivatives[index]


def name_problems(kind: str, name: Any) -> list[str]:
    """The problem of a name that no Python class and no file can have: empty, with NUL or half a character."""
    if isinstance(name, str) and name and not re.search("[\0\ud800-\udfff]", name):
        return []
    return [
        f"a {kind} has the name {brief(name)}: expected text that is not empty, without NUL and surrogate characters"
    ]


def _function_problems(function: Function) -> list[str]:
    name, arity, names, derivatives = function.name, function.arity, function.arguments, function.derivatives
    what, problems = f"kg.Function {brief(name)}", name_problems("kg.Function", name)
    if not isinstance(arity, int) or isinstance(arity, bool) or not 1 <= arity <= MOST_ARGUMENTS:
        return [*problems, f"{what} has the arity {brief(arity)}: expected an integer from 1 to {MOST_ARGUMENTS}"]
    is_text = isinstance(function.c, str) and function.c.strip() and not re.search("[\ud800-\udfff]", function.c)
    are_names = len(names) == arity and all(
        isinstance(item, str) and re.fullmatch(r"[A-Za-z_]\w*", item, re.ASCII) for item in names
    )
    checks = (
        (callable(function.python), f"has python={brief(function.python)}: expected a callable"),
        (is_text, f"has c={brief(function.c)}: expected a C expression or function body"),
        (are_names, f"has arguments={brief(names)}: expected {arity} C identifier(s)"),
        (len(derivatives) in (0, arity), f"has {len(derivatives)} derivatives: expected {arity}, or none"),
        (all(map(callable, derivatives)), "has a derivative that is neither a kg.Function nor a callable"),
    )
    return problems + [f"{what} {message}" for holds, message in checks if not holds]


@dataclass(frozen=True)
class TableUnits:
    """The units of the arguments of a table, and that of its value as powers of units."""

    arguments: tuple[str, ...]
    value: tuple[tuple[str, int], ...]

    def derivative(self, index: int) -> TableUnits:
        """Those of the derivative with respect to an argument."""
        return TableUnits(self.arguments, (*self.value, (self.arguments[index], -1)))


def derived_units(units: TableUnits | None, index: int) -> TableUnits | None:
    """The units of a derivative, None for a table without units."""
    return None if units is None else units.derivative(index)


class Tabulated(ABC):
    """A function of arguments that are searched in tables: what compiled code evaluates of a table.

    ``knots``: the abscissae of each argument; ``numbers``: all numbers that its code contains. ``levels``: by argument,
    the abscissae at which steps of an integration end if the argument depends on time only.
    """

    __slots__ = ()

    arity: int
    name: str
    knots: tuple[tuple[float, ...], ...]
    domains: tuple[Domain | None, ...]
    numbers: tuple[float, ...]
    levels: tuple[tuple[float, ...], ...]
    units: TableUnits | None

    @property
    @abstractmethod
    def content(self) -> str:
        """Text that changes whenever the generated code would."""

    @abstractmethod
    def extended(self, *arguments: Any) -> Any:
        """The value at any arguments; the first and the last pieces continue beyond the domains."""

    @abstractmethod
    def derivative_at(self, index: int) -> Any:
        """The derivative with respect to an argument."""

    def node(self, graph: Any, arguments: Sequence[Any]) -> Any:
        """The node of the function of some nodes."""
        return graph.call(self, *arguments)

    @abstractmethod
    def __call__(self, *arguments: Any) -> Any:
        """The SymPy expression of the function applied to SymPy expressions."""

    def python(self, *arguments: Any) -> Any:
        """The value at numbers (also of mpmath) or arrays. Raises `SolveError` outside of the domains."""
        for domain, x in zip(self.domains, arguments, strict=True):
            if domain is not None:
                domain.require(x)
        return self.extended(*arguments)


EXTRAPOLATIONS: Final = ("error", "constant", "polynomial")
"""What a table is beyond its points."""


class Spline(Tabulated):
    """A piecewise polynomial of one argument through given points: a :class:`kanegen.Table` of numbers.

    Parameters
    ----------
    x, y
        Abscissae, strictly increasing, and ordinates; arrays of one length, at least 2 points.
    kind
        ``"cubic"`` (not-a-knot ends), ``"natural"`` (cubic, second derivative zero at the ends), ``"monotone"`` (cubic
        pieces that rise and fall with the points) or ``"linear"``.
    name
        Printed name; any string. Messages about arguments beyond the points contain it.
    extrapolate
        What the spline and its derivatives are outside of ``[x[0], x[-1]]``: ``"error"``, nothing: evaluations raise
        an error and runs end there; ``"constant"``, the first or last value; ``"polynomial"``, the first or last
        polynomial, which departs from the points quickly.

    The ends ``x[0]`` and ``x[-1]`` are inside, as are arguments that differ from them by 1e-9 of the length of the
    table. At a breakpoint, the piece to its right is used, which affects only the derivatives of a linear spline.

    Attributes
    ----------
    breakpoints : tuple of n floats
        The abscissae; with ``extrapolate="constant"``, one more on each side, where constant pieces begin and end.
    coefficients : n - 1 tuples ``(c0, c1, ...)``: the value is ``c0 + c1 d + ...`` with
    ``d = x - breakpoints[i]``
    domain : the interval in which arguments must lie, None without one

    Raises
    ------
    ModelError
        For points that do not define a function, such as abscissae that do not increase.
    """

    arity = 1
    __slots__ = ("_applied", "_derivative", "breakpoints", "coefficients", "domain", "name", "units")

    name: str
    breakpoints: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    domain: Domain | None

    def __init__(
        self, x: ArrayLike, y: ArrayLike, kind: str = "cubic", name: str = "spline", extrapolate: str = "error"
    ) -> None:
        abscissae, ordinates = _spline_points(x, y, kind, name, extrapolate)
        self._fit(abscissae, ordinates, kind, name, extrapolate, f"the spline {name!r}")

    @classmethod
    def through(cls, x: Array, y: Array, kind: str, name: str, extrapolate: str) -> Spline:
        """The table of these points, which were checked."""
        spline = cls.__new__(cls)
        spline._fit(x, y, kind, name, extrapolate, f"the table {name!r}")
        return spline

    def _fit(self, x: Array, y: Array, kind: str, name: str, extrapolate: str, label: str) -> None:
        breakpoints, pieces = tuple(x.tolist()), _fit(x, y, kind)
        if extrapolate == "constant":
            breakpoints, pieces = _with_constant_ends(breakpoints, pieces, y.tolist())
        domain = Domain(label, breakpoints[0], breakpoints[-1]) if extrapolate == "error" else None
        self._set(name, breakpoints, pieces, domain)

    @classmethod
    def of_pieces(
        cls, name: str, breakpoints: Sequence[float], pieces: Sequence[Sequence[float]], domain: Domain | None
    ) -> Spline:
        """A spline of given polynomials."""
        spline = cls.__new__(cls)
        spline._set(name, tuple(breakpoints), tuple(map(tuple, pieces)), domain)
        return spline

    def _set(
        self, name: str, breakpoints: tuple[float, ...], pieces: tuple[tuple[float, ...], ...], domain: Domain | None
    ) -> None:
        self.name = name
        self.breakpoints = breakpoints
        self.coefficients = pieces
        self.domain = domain
        self.units: TableUnits | None = None
        self._derivative: Spline | None = None
        self._applied = applied_class(self)

    def __call__(self, argument: Any) -> Any:
        """The SymPy expression of the spline applied to a SymPy expression."""
        return self._applied(argument)

    def __repr__(self) -> str:
        return f"<Spline {self.name!r}: {len(self.breakpoints)} breakpoints, degree {self.degree}>"

    @property
    def content(self) -> str:
        """Text that changes whenever the generated code would."""
        return repr((self.name, self.breakpoints, self.coefficients, self.domain))

    @property
    def domains(self) -> tuple[Domain | None]:  # type: ignore[override]
        """The domain of the argument."""
        return (self.domain,)

    @property
    def knots(self) -> tuple[tuple[float, ...]]:  # type: ignore[override]
        """The breakpoints."""
        return (self.breakpoints,)

    @property
    def numbers(self) -> tuple[float, ...]:  # type: ignore[override]
        """Breakpoints and coefficients."""
        return (*self.breakpoints, *chain.from_iterable(self.coefficients))

    @property
    def levels(self) -> tuple[tuple[float, ...]]:  # type: ignore[override]
        """The breakpoints with a kink or a turning point."""
        return (tuple(self.breakpoints[k] for k in notable_knots(self.breakpoints, self.coefficients)),)

    @property
    def degree(self) -> int:
        """The degree of the polynomials."""
        return len(self.coefficients[0]) - 1

    def extended(self, x: Any) -> Any:
        """The value at ``x``; the first and the last polynomial continue beyond the domain."""
        i = place(self.breakpoints, x)
        if getattr(x, "ndim", 0):
            return _horner(np.moveaxis(np.array(self.coefficients)[i], -1, 0), x - np.array(self.breakpoints)[i])
        return _horner(self.coefficients[i], x - self.breakpoints[i])

    def derivative(self, order: int = 1) -> Spline:
        """The exact derivative, again a piecewise polynomial; constant zero beyond the degree."""
        if order == 0:
            return self
        # Cached, so that equal derivatives are the same SymPy function and share a node of the graph.
        if self._derivative is None:
            pieces = tuple(tuple(k * c for k, c in enumerate(piece) if k) or (0.0,) for piece in self.coefficients)
            self._derivative = Spline.of_pieces(f"{self.name}'", self.breakpoints, pieces, self.domain)
            self._derivative.units = derived_units(self.units, 0)
        return self._derivative.derivative(order - 1)

    def derivative_at(self, index: int) -> Spline:
        """The derivative with respect to the only argument, ``index`` 0."""
        if index != 0:
            raise IndexError(f"a spline has one argument, not {index + 1}")
        return self.derivative()


def _horner(coefficients: Sequence[Any] | Array, d: Any) -> Any:
    return reduce(lambda value, coefficient: value * d + coefficient, coefficients[::-1])


def _spline_points(x: Any, y: Any, kind: str, name: str, extrapolate: str) -> tuple[Any, Any]:
    what = f"kg.Spline {brief(name)}"
    try:
        abscissae, ordinates = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{what}: x and y must be arrays of numbers ({error})") from error
    problems = name_problems("kg.Spline", name)
    problems += choice_problems(what, kind, extrapolate)
    if abscissae.ndim != 1 or abscissae.shape != ordinates.shape or abscissae.size < 2:
        problems.append(
            f"{what} has x of shape {abscissae.shape} and y of shape {ordinates.shape}: "
            "expected one dimension, one length, at least 2 points"
        )
    elif not (np.all(np.isfinite(abscissae)) and np.all(np.isfinite(ordinates))):
        problems.append(f"{what} has points that are not finite")
    else:
        problems += increase_problems(what, "x", abscissae)
    if problems:
        raise ModelError(problems)
    return abscissae, ordinates


def choice_problems(what: str, kind: Any, extrapolate: Any, kinds: Sequence[str] = fits.KINDS) -> list[str]:
    """The problems of the options of a table; ``what``: the table in messages."""
    problems = []
    for option, value, legal in (("kind", kind, kinds), ("extrapolate", extrapolate, EXTRAPOLATIONS)):
        if not isinstance(value, str) or value not in legal:
            listed = f"{', '.join(map(repr, legal[:-1]))} or {legal[-1]!r}"
            problems.append(f"{what} has {option}={brief(value)}: expected {listed}")
    return problems


def increase_problems(what: str, axis: str, abscissae: Array) -> list[str]:
    """The problem of abscissae that do not increase, by finite steps."""
    with np.errstate(over="ignore"):
        wrong = ~((np.diff(abscissae) > 0.0) & np.isfinite(np.diff(abscissae)))
    if not np.any(wrong):
        return []
    k = int(np.argmax(wrong))
    return [
        f"{what} has {axis}[{k}] = {abscissae[k]} and {axis}[{k + 1}] = {abscissae[k + 1]}: {axis} must increase "
        "strictly"
    ]


def place(knots: Sequence[float], x: Any) -> Any:
    """The index of the interval between knots that contains ``x``, a number or an array; the nearest one beyond."""
    if getattr(x, "ndim", 0):
        return np.clip(np.searchsorted(np.array(knots), np.real(x), side="right") - 1, 0, len(knots) - 2)
    return min(max(bisect_right(knots, x.real if isinstance(x, complex) else x) - 1, 0), len(knots) - 2)


def _fit(x: Array, y: Array, kind: str) -> tuple[tuple[float, ...], ...]:
    """Ascending coefficients of every piece."""
    if kind == "linear" or x.size == 2:
        slopes = np.diff(y) / np.diff(x)
        return tuple(zip(y[:-1].tolist(), slopes.tolist(), strict=True))
    points = x.tolist(), y.tolist()
    return tuple(fits.pieces(*points, fits.slopes(*points, kind)))


def _with_constant_ends(
    x: tuple[float, ...], pieces: tuple[tuple[float, ...], ...], y: list[float]
) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
    """Breakpoints and pieces with a constant piece on each side, as long as its neighbor, which continues beyond."""
    zeros = (0.0,) * (len(pieces[0]) - 1)
    longer = (2.0 * x[0] - x[1], *x, 2.0 * x[-1] - x[-2])
    return longer, ((y[0], *zeros), *pieces, (y[-1], *zeros))
