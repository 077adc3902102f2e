"""Names, comments, numbers and expressions in C.

Text from the user occurs only in comments and string literals, escaped so that it cannot end them.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from kanegen.errors import BuildError
from kanegen.precision import DOUBLE, Precision
from kanegen.program.passes.lower import Value

# In a comment: characters that are not printable ASCII, comment delimiters, and the start of trigraphs. A backslash
# matters only at the end of a line, where comments have no names.
_COMMENT = re.compile(r"[^ -~]|(?<=[*/])[*/]|\?(?=\?)")
_STRING = re.compile(r"[^ !#-&(-<>@-\[\]-~=]")
_NOT_IN_IDENTIFIER = re.compile(r"[^A-Za-z0-9]+")


def comment(text: str) -> str:
    """The text for the inside of a ``/* */`` comment; characters that could end it become ``<U+002F>``."""
    return _COMMENT.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)


def wrapped(text: str) -> list[str]:
    """The lines of a separate C comment; none for an empty text."""
    lines = textwrap.wrap(comment(text), 112, break_long_words=False, break_on_hyphens=False)
    return [f"{'/*' if k == 0 else ' *'} {line}{' */' * (k == len(lines) - 1)}" for k, line in enumerate(lines)]


def string(text: str) -> str:
    """The C string literal of the UTF-8 bytes of a text. Raises `BuildError` for a NUL character."""
    if "\0" in text:
        raise BuildError(f"the name {text!r} contains a NUL character, which ends a string in C; choose another name")
    data = text.encode("utf-8", errors="backslashreplace").decode("latin-1")
    # Octal escapes have three digits, so that a digit that follows is not part of them.
    return '"' + _STRING.sub(lambda match: f"\\{ord(match[0]):03o}", data) + '"'


LONGEST_STEM: Final = 80
"""File systems limit names to 255 bytes or fewer, and the names of files and folders have further parts."""


def stem(name: str) -> str:
    """A C identifier that resembles the name of a model; short enough for the name of a file."""
    result = _NOT_IN_IDENTIFIER.sub("_", name).strip("_")[:LONGEST_STEM].rstrip("_")
    return result if result and not result[0].isdigit() else f"model_{result}".rstrip("_")


SUM, PRODUCT, PREFIX, ATOM = range(4)
"""Binding strength of an expression, weakest first."""

_INFIX: Final = {"add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT)}
_COMPARISON: Final = {"lt": "<", "le": "<=", "eq": "==", "ne": "!="}
_LOGICAL: Final = {"and": "&", "or": "|"}  # on comparisons, which are 0 or 1: both sides, and no branch


def literal(value: int | Fraction | float, precision: Precision = DOUBLE) -> str:
    """The C literal of the double nearest to ``value``: the shortest decimal that is converted to this double.

    Raises `BuildError` for a number outside the range of the scalar type.
    """
    precision.require(value, f"the constant {value}")
    number = float(precision.value(value))
    if math.isnan(number):
        return "(kg_real)NAN"
    if math.isinf(number):
        return "(kg_real)HUGE_VAL" if number > 0 else "-(kg_real)HUGE_VAL"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    return f"{sign}KG_C({abs(number)!r})"


class Printer:
    """Prints values as C expressions.

    ``functions``: the C names of user functions. ``kept``: indices of values in the array ``kept``, which is read
    unless a value has a name in ``names``. ``arrays``: the arrays that have occurred so far.
    ``precision``: the scalar type.
    """

    def __init__(
        self, functions: Mapping[object, str], kept: Mapping[Value, int], precision: Precision = DOUBLE
    ) -> None:
        self.names: dict[Value, str] = {}
        self.arrays: set[str] = set()
        self._functions = functions
        self._kept = kept
        self.precision = precision

    def definition(self, value: Value) -> str:
        """The C expression that computes a value, even if the value has a name."""
        return self._spell(value)[0]

    def expression(self, value: Value) -> str:
        """The C expression of a value."""
        return self._text(value)[0]

    def condition(self, value: Value) -> str:
        """The C condition that is true if the value is not zero; a comparison with NaN is false."""
        if value not in self.names and value not in self._kept:
            if value.op in _COMPARISON:
                a, b = (self._operand(x, SUM) for x in value.args)
                return f"{a} {_COMPARISON[value.op]} {b}"
            if value.op in _LOGICAL:
                return f" {_LOGICAL[value.op]} ".join(f"({self.condition(x)})" for x in value.args)
            if value.op == "not":
                return f"!({self.condition(value.args[0])})"
        return f"{self._operand(value, SUM)} != KG_C(0.0)"

    def holds(self, value: Value) -> str:
        """Like `condition`, but also false for a number that is NaN."""
        if value.op in _COMPARISON or value.op in _LOGICAL or value.op == "not":
            return self.condition(value)
        text = self.expression(value)
        return f"{text} < KG_C(0.0) || {text} > KG_C(0.0)"

    def _operand(self, value: Value, at_least: int) -> str:
        text, strength = self._text(value)
        return text if strength >= at_least else f"({text})"

    def _text(self, value: Value) -> tuple[str, int]:
        name = self.names.get(value)
        if name is not None:
            return name, ATOM
        if value in self._kept:
            return self._element("kept", self._kept[value]), ATOM
        return self._spell(value)

    def _spell(self, value: Value) -> tuple[str, int]:
        op, args = value.op, value.args
        if op in _INFIX:
            sign, strength = _INFIX[op]
            # Parentheses around a right operand of equal strength preserve the order of rounding of the graph.
            a, b = self._operand(args[0], strength), self._operand(args[1], strength + 1)
            return f"{a} {sign} {'(' + b + ')' if b.startswith('-') else b}", strength
        if op == "neg":
            return f"-{self._operand(args[0], ATOM)}", PREFIX
        if op == "const":
            text = literal(value.payload, self.precision)
            return text, PREFIX if text.startswith("-") else ATOM
        return self._atom(value), ATOM

    def _atom(self, value: Value) -> str:
        op, args = value.op, value.args
        if op == "input" and value.payload[0] == "t":
            self.arrays.add("t")
            return "t"
        if op == "input":
            return self._element(*value.payload)
        if op in ("sine", "cosine"):
            return self._element(op, value.payload)
        if op == "select":
            return f"KG_SELECT({self.condition(args[0])}, {self.expression(args[1])}, {self.expression(args[2])})"
        if op in _COMPARISON or op in _LOGICAL or op == "not":
            return f"KG_TRUTH({self.condition(value)})"
        inner = ", ".join(self.expression(x) for x in args)
        return f"{self._functions[value.payload]}({inner})" if op == "call" else f"KG_{op.upper()}({inner})"

    def _element(self, array: str, index: int) -> str:
        self.arrays.add(array)
        return f"{array}[{index}]"
