"""Conversion of graph nodes to SymPy expressions, for display and for symbolic work."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import sympy
from sympy.core.function import AppliedUndef

from kanegen.graph.derivatives import reachable
from kanegen.graph.nodes import COMPARISONS, LOGICAL, SAME_NAME, Node, Number

Names = Mapping[tuple[str, int], Any]


def to_sympy(roots: Sequence[Node], names: Names) -> list[Any]:
    """The roots as SymPy expressions.

    ``names`` maps ``(array, index)`` of each input to its expression; an input without a name becomes a symbol
    ``array[index]``. Shared subexpressions are repeated: for large results, use :func:`to_sympy_cse`.
    """
    shown: dict[int, Any] = {}
    for node in reachable(roots):
        shown[node.index] = _show(node, shown, names)
    return [_as_number(root, shown[root.index]) for root in roots]


def to_sympy_cse(roots: Sequence[Node], names: Names) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """``(replacements, expressions)`` as of :func:`sympy.cse`: every expression used more than once becomes a symbol.

    The symbols are ``x0, x1, ...``, except those whose name occurs in ``names``.
    """
    order = reachable(roots)
    uses = Counter(a.index for node in order for a in node.args)
    uses.update(root.index for root in roots)
    symbols = _fresh_symbols(names.values())
    shown: dict[int, Any] = {}
    replacements: list[tuple[Any, Any]] = []
    for node in order:
        expression = shown[node.index] = _show(node, shown, names)
        if uses[node.index] > 1 and node.op not in COMPARISONS | LOGICAL and not _is_short(expression):
            shown[node.index] = next(symbols)
            replacements.append((shown[node.index], expression))
    return replacements, [_as_number(root, shown[root.index]) for root in roots]


def _is_short(expression: Any) -> bool:
    """Whether the expression is a leaf or the negative of one, so that a symbol would not be shorter."""
    if isinstance(expression, sympy.Mul) and len(expression.args) == 2 and expression.args[0] == -1:
        expression = expression.args[1]
    return bool(expression.is_Atom) or isinstance(expression, AppliedUndef | sympy.Derivative)


def _fresh_symbols(expressions: Iterable[Any]) -> Iterator[Any]:
    taken = set()
    for expression in expressions:
        for part in sympy.preorder_traversal(sympy.sympify(expression)):
            if isinstance(part, sympy.Symbol | AppliedUndef):
                taken.add(part.name)
    return (symbol for symbol in sympy.numbered_symbols("x", real=True) if symbol.name not in taken)


def _show(node: Node, shown: Mapping[int, Any], names: Names) -> Any:
    op = node.op
    if op == "const":
        return _number(node.payload)
    if op == "input":
        array, index = node.payload
        name = names.get(node.payload)
        return sympy.Symbol(f"{array}[{index}]", real=True) if name is None else name
    if op == "select":
        condition, true, false = (shown[a.index] for a in node.args)
        return sympy.Piecewise(
            (_as_number(node.args[1], true), _as_condition(node.args[0], condition)),
            (_as_number(node.args[2], false), True),
        )
    if op in LOGICAL:
        return _OPERATIONS[op](*(_as_condition(a, shown[a.index]) for a in node.args))
    arguments = [_as_number(a, shown[a.index]) for a in node.args]
    return node.payload(*arguments) if op == "call" else _OPERATIONS[op](*arguments)


def _listed(index: Any, elements: Sequence[Any]) -> Any:
    cases = [(element, sympy.Eq(index, k)) for k, element in enumerate(elements[:-1])]
    return sympy.Piecewise(*cases, (elements[-1], True), evaluate=False)


def _number(value: Number) -> Any:
    if isinstance(value, Fraction):
        return sympy.Rational(value.numerator, value.denominator)
    return sympy.Integer(value) if isinstance(value, int) else sympy.Float(value)


def _is_condition(node: Node) -> bool:
    return node.op in COMPARISONS or node.op in LOGICAL


def _as_condition(node: Node, expression: Any) -> Any:
    return expression if _is_condition(node) else sympy.Ne(expression, 0)


def _as_number(node: Node, expression: Any) -> Any:
    return sympy.Piecewise((1, expression), (0, True)) if _is_condition(node) else expression


_OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    **{name: getattr(sympy, name) for name in (*SAME_NAME, "sqrt", "log")},
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "neg")},
    "div": operator.truediv,
    "pow": sympy.Pow,
    "abs": sympy.Abs,
    "ceil": sympy.ceiling,
    "gather": lambda index, *elements: _listed(index, elements),
    "reciprocal": lambda a: 1 / a,
    "cbrt": lambda x: sympy.sign(x) * sympy.Abs(x) ** sympy.Rational(1, 3),
    "min": sympy.Min,
    "max": sympy.Max,
    **{name: getattr(sympy, name.capitalize()) for name in COMPARISONS | LOGICAL},
}
