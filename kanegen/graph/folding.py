"""Constant folding: the value of an operation whose operands are numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final, TypeAlias

Number: TypeAlias = int | Fraction | float

_FUNCTIONS: Final[dict[str, Callable[[float], float]]] = {
    name: getattr(math, name)
    for name in (
        *("sqrt", "cbrt", "exp", "log", "erf", "sin", "cos", "tan", "asin", "acos", "atan"),
        *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    )
}

_EXACT: Final[dict[str, Callable[[Number], Number]]] = {
    "abs": lambda x: x if x >= 0 else -x,
    "floor": math.floor,
    "ceil": math.ceil,
    "reciprocal": lambda x: quotient(1, x) if x else 0,
}

_BINARY: Final[dict[str, Callable[[Number, Number], Number]]] = {
    "atan2": lambda y, x: math.atan2(y, x),
    "pow": lambda a, b: math.pow(a, b),
    "min": min,
    "max": max,
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "and": lambda a, b: int(bool(a) and bool(b)),
    "or": lambda a, b: int(bool(a) or bool(b)),
}


def exact(value: Number) -> Number:
    """The same number as an int where it is integer-valued, else as a Fraction or a plain float."""
    if isinstance(value, float):
        # From 2**53 on every float is an integer, and none is more exact than it was before.
        return int(value) if value.is_integer() and abs(value) < 2**53 else float(value)
    return int(value) if value.denominator == 1 else value


def quotient(a: Number, b: Number) -> Number:
    """a / b, exact where both are, else with one rounding."""
    return a / b if isinstance(a, float) or isinstance(b, float) else Fraction(a) / b


def fold_unary(op: str, value: Number) -> Number | None:
    """The value of ``op`` at a number, or None where it is undefined (left for run time to report)."""
    if op == "not":
        return int(not value)
    try:
        if op in _EXACT:
            return _EXACT[op](value)
        if op == "sqrt" and not isinstance(value, float):
            return _rational_root(value)
        return _FUNCTIONS[op](float(value))
    except (ValueError, OverflowError):
        return None


def fold_binary(op: str, a: Number, b: Number) -> Number | None:
    """The value of ``op`` at two numbers, or None where it is undefined (left for run time to report)."""
    try:
        return _BINARY[op](a, b)
    except (ValueError, OverflowError):
        return None


def _rational_root(value: int | Fraction) -> Number:
    """The square root, exact where it is rational."""
    if value > 0:
        above, below = math.isqrt(value.numerator), math.isqrt(value.denominator)
        if above * above == value.numerator and below * below == value.denominator:
            return Fraction(above, below)
    return math.sqrt(value)
