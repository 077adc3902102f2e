"""Numbers that belong to a whole motion as SymPy expressions: integrals, values at single times, sums over samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import sympy

from kanegen.arrays import Array, real_array
from kanegen.errors import SolveError, brief
from kanegen.model.expressions import atoms, symbol_name
from kanegen.solve.values import number


class Term(sympy.Expr):  # type: ignore[misc]
    """A number that belongs to a whole motion, made of an expression of the model, its first argument."""

    is_commutative = True

    def __new__(cls, inner: Any) -> Any:
        return sympy.Expr.__new__(cls, momentary(inner, f"the argument of kg.{cls.__name__}"))

    # SymPy looks for methods of printers by the names of classes, and has another class Integral.

    def _sympystr(self, printer: Any) -> str:
        return f"{type(self).__name__}({', '.join(printer._print(x) for x in self.args)})"

    def _latex(self, printer: Any) -> str:
        return rf"\mathrm{{{type(self).__name__}}}\left({', '.join(printer._print(x) for x in self.args)}\right)"

    def _pretty(self, printer: Any) -> Any:
        return printer._print(sympy.Symbol(str(self)))


class AtStart(Term):
    """An expression at the start of the motion, for ``minimize=`` and ``subject_to=`` of `OptimalControl`."""


class AtEnd(Term):
    """An expression at the end of the motion, for ``minimize=`` and ``subject_to=`` of `OptimalControl`.

    Examples
    --------
    >>> import kanegen as kg
    >>> from sympy.physics.mechanics import dynamicsymbols
    >>> x = dynamicsymbols("x")
    >>> kg.AtEnd(x) - kg.AtStart(x)
    AtEnd(x(t)) - AtStart(x(t))
    """


class AtTime(Term):
    """An expression at a time inside the motion, for ``minimize=`` and ``subject_to=`` of `OptimalControl`.

    Its arguments are an expression of t, coordinates, speeds, states, inputs that have rates and parameters of the
    model, and the time in s, from 0 to the duration of the motion, which must be given.

    Examples
    --------
    >>> import kanegen as kg
    >>> from sympy.physics.mechanics import dynamicsymbols
    >>> x = dynamicsymbols("x")
    >>> (kg.AtTime(x, 0.5), 0.9, 1.1)  # a condition: x is between 0.9 and 1.1 half a second after the start
    (AtTime(x(t), 0.5), 0.9, 1.1)
    """

    def __new__(cls, inner: Any, time: Any) -> Any:
        inner = momentary(inner, "the argument of kg.AtTime")
        found = number(float(time) if isinstance(time, sympy.Number) else time, "the time of kg.AtTime")
        if not found >= 0.0:
            raise SolveError(f"the time of kg.AtTime is {found:g} s; expected one after the start, which is at 0")
        return sympy.Expr.__new__(cls, inner, sympy.Float(found, precision=53))

    @property
    def time(self) -> float:
        """The time, s."""
        return float(self.args[1])


class Integral(Term):
    """The integral of an expression over the whole motion, a term of ``minimize=`` of :class:`kanegen.OptimalControl`.

    Its argument is an expression of t, coordinates, speeds, their rates, states, inputs and parameters of the model.
    Integrals can be multiplied by numbers and added to each other, to :data:`kanegen.Duration`, and to values at ends.

    Examples
    --------
    >>> import kanegen as kg
    >>> from sympy.physics.mechanics import dynamicsymbols
    >>> F = dynamicsymbols("F")
    >>> kg.Duration + 2 * kg.Integral(F**2)
    _duration + 2*Integral(F(t)**2)
    """

    @property
    def integrand(self) -> Any:
        """The expression that is integrated."""
        return self.args[0]


class Samples(sympy.Atom):  # type: ignore[misc]
    """Times (n,) of samples, and the values (n, k) that the ``symbols`` have there."""

    def __new__(cls, times: Array, symbols: tuple[Any, ...], values: Array) -> Any:
        found = sympy.Atom.__new__(cls)
        found.times, found.symbols, found.values = times, symbols, values
        return found

    def _hashable_content(self) -> tuple[Any, ...]:
        return self.times.tobytes(), self.symbols, self.values.tobytes()

    def __reduce__(self) -> Any:
        return Samples, (self.times, self.symbols, self.values)

    def _sympystr(self, printer: Any) -> str:
        n = len(self.times)
        return f"{n} sample{'s' * (n != 1)}"

    _latex = _sympystr


class SampleSum(Term):
    """The sum of an expression over samples at given times, a term of ``minimize=`` of :class:`kanegen.OptimalControl`.

    Parameters
    ----------
    expression
        An expression of t, coordinates, speeds, states, inputs that have rates, parameters of the model, and symbols of
        ``data``.
    times
        The times of the samples, s, (n,), from 0 to the duration of the motion, which must be given.
    data
        Values (n,) of further symbols of the expression at these times, such as measurements. A sample with a NaN is
        left out of the sum.

    Raises
    ------
    SolveError
        For times and values of wrong shapes, and data of symbols that are not in the expression.

    Examples
    --------
    >>> import kanegen as kg
    >>> import sympy as sm
    >>> from sympy.physics.mechanics import dynamicsymbols
    >>> theta, z = dynamicsymbols("theta"), sm.Symbol("z")
    >>> kg.SampleSum((theta - z) ** 2, [0.0, 0.1, 0.2], {z: [0.50, 0.45, 0.31]})
    SampleSum((-z + theta(t))**2, 3 samples)
    """

    def __new__(cls, expression: Any, times: Any, data: Mapping[Any, Any] | None = None) -> Any:
        inner = momentary(expression, "the argument of kg.SampleSum")
        samples = times if isinstance(times, Samples) else _samples(inner, times, data)
        return sympy.Expr.__new__(cls, inner, samples)

    @property
    def samples(self) -> Samples:
        """The times, symbols and values of the samples."""
        found: Samples = self.args[1]
        return found


Duration: Final = sympy.Dummy("duration", positive=True)
"""The duration of the motion, s, as a SymPy symbol for ``minimize=`` of :class:`kanegen.OptimalControl`."""


def expression(value: Any, what: str) -> Any:
    """A scalar SymPy expression. Raises `SolveError`."""
    try:
        found = None if isinstance(value, str) else sympy.sympify(value, strict=True)
    except sympy.SympifyError:
        found = None
    if not isinstance(found, sympy.Expr):
        raise SolveError(f"{what} is {brief(value)}; expected a scalar SymPy expression or a number")
    return found


def momentary(value: Any, what: str) -> Any:
    """A scalar SymPy expression of values at one time. Raises `SolveError`."""
    found = expression(value, what)
    for term in sorted(found.atoms(Term), key=str) or sorted(found.atoms(sympy.Dummy) & {Duration}, key=str):
        name = "kg.Duration" if term is Duration else str(term)
        raise SolveError(f"{what} contains {name}, which belongs to the whole motion; expected values at one time")
    return found


def times_of(expressions: Iterable[Any]) -> tuple[float, ...]:
    """The times inside the motion at which expressions are evaluated, ascending."""
    return tuple(sorted({term.time for x in expressions for term in x.atoms(AtTime)}))


def inside(value: Any) -> list[Any]:
    """The expressions at single times in a cost or condition."""
    return [term.args[0] for term in sorted(value.atoms(AtStart, AtEnd, AtTime), key=str)]


def _samples(inner: Any, times: Any, data: Any) -> Samples:
    t = real_array(times, "times of kg.SampleSum")
    if t.ndim != 1 or not t.size or not np.isfinite(t).all() or (t < 0.0).any():
        raise SolveError("times of kg.SampleSum: expected times (n,) after the start of the motion, which is at 0")
    if data is not None and not isinstance(data, Mapping):
        raise SolveError(f"data of kg.SampleSum is {brief(data)}; expected a mapping from symbols to values (n,)")
    used = {symbol_name(symbol): symbol for symbol in atoms([inner])}
    columns: dict[Any, Array] = {}
    for key, values in (data or {}).items():
        name = key if isinstance(key, str) else symbol_name(key)
        if name not in used:
            raise SolveError(
                f"data of kg.SampleSum has values of {name}, which the expression {inner} does not contain"
            )
        column = real_array(values, f"the values of {name} in kg.SampleSum")
        if column.shape != t.shape:
            raise SolveError(f"the values of {name} in kg.SampleSum have the shape {column.shape}, the times {t.shape}")
        columns[used[name]] = column
    rows = np.array(list(columns.values())).reshape(len(columns), t.size).T
    known = np.isfinite(rows).all(axis=1)
    if not known.any():
        raise SolveError("kg.SampleSum: each sample has a NaN")
    found: Samples = Samples(t[known], tuple(columns), np.ascontiguousarray(rows[known]))
    return found
