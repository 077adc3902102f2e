"""User functions and splines in SymPy expressions.

Calling a :class:`Function` or :class:`Spline` on SymPy expressions gives an applied SymPy function. The attribute
``kanegen_function`` of its class is the object, by which the lowering recognizes it.

Each of them has ``domains``, one for each argument: the interval in which the argument must lie, or None. Programs test
it (:mod:`kanegen.graph.domains`), and ``extended`` is the value without the test: random states at which a model is
examined can lie outside of its tables.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, Final, Union

import numpy as np
import sympy
from numpy.typing import ArrayLike
from sympy.core.function import ArgumentIndexError

from kanegen.arrays import Array
from kanegen.errors import DerivationError, ModelError, SolveError, brief
from kanegen.precision import Tolerance

Derivative = Union["Function", "Spline", Callable[..., Any]]


def _applied_class(owner: Function | Spline) -> Any:
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
    'say what is beyond, by extrapolate="constant" or "polynomial" of kg.Spline, or a last branch (value, True) of a '
    "Piecewise, or give points that reach further"
)


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
            f"{self.highest:.9g} only: {ADVICE}"
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
        object.__setattr__(self, "_applied", _applied_class(self))

    def __call__(self, *arguments: Any) -> Any:
        """The SymPy expression of the function applied to SymPy expressions."""
        return self._applied(*arguments)

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


def _name_problems(kind: str, name: Any) -> list[str]:
    """The problem of a name that no Python class and no file can have: empty, with NUL or half a character."""
    if isinstance(name, str) and name and not re.search("[\0\ud800-\udfff]", name):
        return []
    return [
        f"a {kind} has the name {brief(name)}: expected text that is not empty, without NUL and surrogate characters"
    ]


def _function_problems(function: Function) -> list[str]:
    name, arity, names, derivatives = function.name, function.arity, function.arguments, function.derivatives
    what, problems = f"kg.Function {brief(name)}", _name_problems("kg.Function", name)
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


EXTRAPOLATIONS: Final = ("error", "constant", "polynomial")
"""What a spline is beyond its points."""


class Spline:
    """A piecewise polynomial of one argument through given points.

    Parameters
    ----------
    x, y
        Abscissae, strictly increasing, and ordinates; arrays of one length, at least 2 points.
    kind
        ``"cubic"`` (not-a-knot ends), ``"natural"`` (cubic, second derivative zero at the ends) or
        ``"linear"``.
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
    __slots__ = ("_applied", "_derivative", "breakpoints", "coefficients", "domain", "name")

    name: str
    breakpoints: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    domain: Domain | None

    def __init__(
        self, x: ArrayLike, y: ArrayLike, kind: str = "cubic", name: str = "spline", extrapolate: str = "error"
    ) -> None:
        abscissae, ordinates = _spline_points(x, y, kind, name, extrapolate)
        breakpoints, pieces = tuple(abscissae.tolist()), _fit(abscissae, ordinates, kind)
        if extrapolate == "constant":
            breakpoints, pieces = _with_constant_ends(breakpoints, pieces, ordinates.tolist())
        ends = breakpoints[0], breakpoints[-1]
        domain = Domain(f"the spline {name!r}", *ends) if extrapolate == "error" else None
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
        self._derivative: Spline | None = None
        self._applied = _applied_class(self)

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
    def domains(self) -> tuple[Domain | None]:
        """The domain of the argument."""
        return (self.domain,)

    @property
    def degree(self) -> int:
        """The degree of the polynomials."""
        return len(self.coefficients[0]) - 1

    def python(self, x: Any) -> Any:
        """The value at ``x``, a number (also of mpmath) or an array. Raises `SolveError` outside of the domain."""
        if self.domain is not None:
            self.domain.require(x)
        return self.extended(x)

    def extended(self, x: Any) -> Any:
        """The value at ``x``; the first and the last polynomial continue beyond the domain."""
        last = len(self.coefficients) - 1
        if getattr(x, "ndim", 0):
            knots = np.array(self.breakpoints)
            pieces = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, last)
            return _horner(np.moveaxis(np.array(self.coefficients)[pieces], -1, 0), x - knots[pieces])
        i = min(max(bisect_right(self.breakpoints, x) - 1, 0), last)
        return _horner(self.coefficients[i], x - self.breakpoints[i])

    def derivative(self, order: int = 1) -> Spline:
        """The exact derivative, again a piecewise polynomial; constant zero beyond the degree."""
        if order == 0:
            return self
        # Cached, so that equal derivatives are the same SymPy function and share a node of the graph.
        if self._derivative is None:
            pieces = tuple(tuple(k * c for k, c in enumerate(piece) if k) or (0.0,) for piece in self.coefficients)
            self._derivative = Spline.of_pieces(f"{self.name}'", self.breakpoints, pieces, self.domain)
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
    problems = []
    problems += _name_problems("kg.Spline", name)
    if not isinstance(kind, str) or kind not in ("cubic", "natural", "linear"):
        problems.append(f"{what} has kind={brief(kind)}: expected 'cubic', 'natural' or 'linear'")
    if not isinstance(extrapolate, str) or extrapolate not in EXTRAPOLATIONS:
        problems.append(f"{what} has extrapolate={brief(extrapolate)}: expected 'error', 'constant' or 'polynomial'")
    if abscissae.ndim != 1 or abscissae.shape != ordinates.shape or abscissae.size < 2:
        problems.append(
            f"{what} has x of shape {abscissae.shape} and y of shape {ordinates.shape}: "
            "expected one dimension, one length, at least 2 points"
        )
    elif not (np.all(np.isfinite(abscissae)) and np.all(np.isfinite(ordinates))):
        problems.append(f"{what} has points that are not finite")
    elif np.any(np.diff(abscissae) <= 0.0):
        k = int(np.argmax(np.diff(abscissae) <= 0.0))
        problems.append(
            f"{what} has x[{k}] = {abscissae[k]} and x[{k + 1}] = {abscissae[k + 1]}: x must increase strictly"
        )
    if problems:
        raise ModelError(problems)
    return abscissae, ordinates


def _fit(x: Array, y: Array, kind: str) -> tuple[tuple[float, ...], ...]:
    """Ascending coefficients of every piece."""
    if kind == "linear" or x.size == 2:
        slopes = np.diff(y) / np.diff(x)
        return tuple(zip(y[:-1].tolist(), slopes.tolist(), strict=True))
    from scipy.interpolate import CubicSpline

    fitted = CubicSpline(x, y, bc_type="natural" if kind == "natural" else "not-a-knot")
    return tuple(tuple(piece) for piece in fitted.c[::-1].T.tolist())


def _with_constant_ends(
    x: tuple[float, ...], pieces: tuple[tuple[float, ...], ...], y: list[float]
) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
    """Breakpoints and pieces with a constant piece on each side, as long as its neighbor, which continues beyond."""
    zeros = (0.0,) * (len(pieces[0]) - 1)
    longer = (2.0 * x[0] - x[1], *x, 2.0 * x[-1] - x[-2])
    return longer, ((y[0], *zeros), *pieces, (y[-1], *zeros))
