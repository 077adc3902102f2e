"""Functions that SymPy does not try to simplify: in expressions of this size, each attempt takes seconds.

They are SymPy's own classes, also by name, so that what knows ``sympy.Max`` knows `Max`. With numbers all of them have
values.
"""

from __future__ import annotations

from typing import Any

import sympy


class Max(sympy.Max):  # type: ignore[misc]
    """The larger one of two expressions."""

    def __new__(cls, a: Any, b: Any, **assumptions: Any) -> Any:
        return _unevaluated(cls, sympy.Max, a, b)


class Min(sympy.Min):  # type: ignore[misc]
    """The smaller one of two expressions."""

    def __new__(cls, a: Any, b: Any, **assumptions: Any) -> Any:
        return _unevaluated(cls, sympy.Min, a, b)


class Held(sympy.UnevaluatedExpr):  # type: ignore[misc]
    """An expression that SymPy does not look into when it becomes part of others."""

    def could_extract_minus_sign(self) -> bool:
        """No: SymPy would take signs out of odd functions and put them in again without end."""
        return False

    def _parenthesized(self, printer: Any) -> str:
        """Always in parentheses: SymPy takes the sign of a first term for that of the whole, as in a + (-b + c)."""
        return f"({printer._print(self.args[0])})"

    _sympystr = _pythoncode = _numpycode = _scipycode = _mpmathcode = _ccode = _parenthesized


def held(value: Any) -> Any:
    """An expression as a part that is held; a number or a symbol as it is."""
    value = sympy.sympify(value)
    return value if value.is_Atom or value.is_number else Held(value)


def atan(value: Any) -> Any:
    """The arc tangent."""
    return sympy.atan(held(value))


def asin(value: Any) -> Any:
    """The arc sine."""
    return sympy.asin(held(value))


def sin(value: Any) -> Any:
    """The sine."""
    return sympy.sin(held(value))


def cos(value: Any) -> Any:
    """The cosine."""
    return sympy.cos(held(value))


def tan(value: Any) -> Any:
    """The tangent."""
    return sympy.tan(held(value))


def exp(value: Any) -> Any:
    """The exponential function."""
    return sympy.exp(held(value))


def sqrt(value: Any) -> Any:
    """The square root."""
    return sympy.sqrt(held(value))


def signum(value: Any) -> Any:
    """-1, 0 or 1; held, because products with signs could contain derivatives of absolute values."""
    return held(sign(value))


def _unevaluated(cls: type, of: Any, a: Any, b: Any) -> Any:
    pair = sympy.sympify(a), sympy.sympify(b)
    if all(value.is_number for value in pair):
        return of(*pair)
    made: Any = sympy.Expr.__new__(cls, *pair)
    made._argset = frozenset(pair)
    return made


class Abs(sympy.Abs):  # type: ignore[misc]
    """The absolute value."""

    @classmethod
    def eval(cls, arg: Any) -> Any:
        """A number for a number."""
        return sympy.Abs(arg) if arg.is_number else None


class sign(sympy.sign):  # type: ignore[misc]  # noqa: N801
    """-1, 0 or 1."""

    @classmethod
    def eval(cls, arg: Any) -> Any:
        """A number for a number."""
        return sympy.sign(arg) if arg.is_number else None
