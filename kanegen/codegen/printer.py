"""Expressions in C, and in languages that spell operators alike."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from kanegen.codegen.text import literal
from kanegen.precision import DOUBLE, Precision
from kanegen.program.passes.lower import Value

SUM, PRODUCT, PREFIX, ATOM = range(4)
"""Binding strength of an expression, weakest first."""

_INFIX: Final = {"add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT)}
_COMPARISON: Final = {"lt": "<", "le": "<=", "eq": "==", "ne": "!="}
_LOGICAL: Final = {"and": "&", "or": "|"}  # on comparisons, which are 0 or 1: both sides, and no branch


class Printer:
    """Prints values as C expressions.

    ``functions``: the C names of user functions. ``kept``: indices of values in the array ``kept``, which is read
    unless a value has a name in ``names``. ``arrays``: the arrays that have occurred so far.
    ``precision``: the scalar type. ``negation``, ``either``: operators of conditions. Printers of other languages spell
    numbers, choices, truth values and functions otherwise.
    """

    negation, either = "!", "||"

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
        known = value in self.names or value in self._kept
        if known or not _is_condition(value):
            return f"{self._operand(value, SUM)} != {self._number(0.0)}"
        return self._test(value)

    def _test(self, value: Value) -> str:
        """The C condition that a comparison or a logical operation computes, even if its value has a name."""
        if value.op in _COMPARISON:
            a, b = (self._operand(x, SUM) for x in value.args)
            return f"{a} {_COMPARISON[value.op]} {b}"
        if value.op in _LOGICAL:
            return f" {_LOGICAL[value.op]} ".join(f"({self.condition(x)})" for x in value.args)
        return f"{self.negation}({self.condition(value.args[0])})"

    def holds(self, value: Value) -> str:
        """Like `condition`, but also false for a number that is NaN."""
        if _is_condition(value):
            return self.condition(value)
        text = self.expression(value)
        return self._is_nonzero(text)

    def _is_nonzero(self, text: str) -> str:
        """The condition that is true if a number is neither zero nor NaN."""
        return f"{text} < KG_C(0.0) {self.either} {text} > KG_C(0.0)"

    def _number(self, value: int | Fraction | float) -> str:
        return literal(value, self.precision)

    def _choice(self, condition: str, true: str, false: str) -> str:
        return f"KG_SELECT({condition}, {true}, {false})"

    def _truth(self, condition: str) -> str:
        return f"KG_TRUTH({condition})"

    def _function(self, op: str) -> str:
        """The name of the function that computes an operation."""
        return f"KG_{op.upper()}"

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
            text = self._number(value.payload)
            return text, PREFIX if text.startswith("-") else ATOM
        return self._atom(value), ATOM

    def _atom(self, value: Value) -> str:
        op, args = value.op, value.args
        if op == "input" and value.payload[0] == "t":
            self.arrays.add("t")
            return "t"
        if op == "input":
            return self._element(*value.payload)
        if op == "gather":
            array, first, length = value.payload
            return self._gathered(array, first, length, self.expression(args[0]))
        if op in ("sine", "cosine"):
            return self._element(op, value.payload)
        if op == "select":
            return self._choice(self.condition(args[0]), self.expression(args[1]), self.expression(args[2]))
        if _is_condition(value):
            return self._truth(self._test(value))
        inner = ", ".join(self.expression(x) for x in args)
        return f"{self._functions[value.payload] if op == 'call' else self._function(op)}({inner})"

    def _gathered(self, array: str, first: int, count: int, index: str) -> str:
        """The element of an array at a computed index, counted from ``first``, of ``count`` ones."""
        self.arrays.add(array)
        return f"KG_GATHER({array} + {first}, {index})"

    def _element(self, array: str, index: int) -> str:
        self.arrays.add(array)
        return f"{array}[{index}]"


def _is_condition(value: Value) -> bool:
    return value.op in _COMPARISON or value.op in _LOGICAL or value.op == "not"
