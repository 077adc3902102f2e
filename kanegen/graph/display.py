"""Conversion of graph nodes to SymPy expressions, for display and for symbolic work."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import sympy
from sympy.core.function import AppliedUndef

from kanegen.errors import DerivationError
from kanegen.graph.derivatives import reachable, substitute
from kanegen.graph.functions import applied_class
from kanegen.graph.interpret import evaluate, numpy_context
from kanegen.graph.nodes import COMPARISONS, LOGICAL, SAME_NAME, Graph, Node, Number

Names = Mapping[tuple[str, int], Any]


def to_sympy(roots: Sequence[Node], names: Names) -> list[Any]:
    """The roots as SymPy expressions.

    ``names`` maps ``(array, index)`` of each input to its expression; an input without a name becomes a symbol
    ``array[index]``. Shared subexpressions are repeated: for large results, use :func:`to_sympy_cse`.
    """
    shown: dict[int, Any] = {}
    for node in _displayed(roots):
        shown[node.index] = _show(node, shown, names)
    return [_as_number(root, shown[root.index]) for root in roots]


def _operands(node: Node) -> tuple[Node, ...]:
    """The operands that an expression shows: of the coefficients of a table, only which one is taken."""
    return node.args[:1] if node.op == "gather" else node.args


def _displayed(roots: Iterable[Node]) -> list[Node]:
    """As `reachable`, with the operands that an expression shows."""
    seen: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.index not in seen:
            seen[node.index] = node
            stack.extend(_operands(node))
    return [seen[index] for index in sorted(seen)]


class Coefficient:
    """A coefficient of a table whose values are parameters: a function of its place and of all parameters in it."""

    name = "coefficient"

    def __init__(self, node: Node, leaves: Sequence[Node]) -> None:
        self._node, self._leaves, self.arity = node, leaves, 1 + len(leaves)
        self.domains = (None,) * self.arity
        self._applied = applied_class(self)
        self._applied._sympystr = lambda expr, printer: f"coefficient({printer._print(expr.args[0])})"

    def __call__(self, *arguments: Any) -> Any:
        return self._applied(*arguments)

    def python(self, index: Any, *values: Any) -> Any:
        """The coefficient, with the values of the parameters."""
        known: dict[str, Any] = {}
        for leaf, value in zip(self._leaves, values, strict=True):
            array, place = leaf.payload
            known.setdefault(array, {})[place] = value
        context = numpy_context()
        return context.operations["gather"](index, *evaluate(self._node.args[1:], known, context))

    def node(self, graph: Graph, arguments: Sequence[Node]) -> Node:
        """The node of the coefficient of some nodes."""
        elements = self._node.args[1:]
        known = {x: graph.const(x.payload) for x in reachable(elements) if x.op == "const"}
        known |= dict(zip(self._leaves, arguments[1:], strict=True))
        return graph.gather(arguments[0], substitute(elements, known))

    def derivative_at(self, index: int) -> Any:
        """Refused: the graph differentiates before it is shown."""
        raise DerivationError("coefficients of tables have no derivatives in SymPy: differentiate the table")


def to_sympy_cse(roots: Sequence[Node], names: Names) -> tuple[list[tuple[Any, Any]], list[Any]]:
    """``(replacements, expressions)`` as of :func:`sympy.cse`: every expression used more than once becomes a symbol.

    The symbols are ``x0, x1, ...``, except those whose name occurs in ``names``.
    """
    order = _displayed(roots)
    uses = Counter(a.index for node in order for a in _operands(node))
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
    if op == "gather":
        leaves = [leaf for leaf in reachable(node.args[1:]) if leaf.op == "input"]
        return Coefficient(node, leaves)(shown[node.args[0].index], *(_show(leaf, shown, names) for leaf in leaves))
    if op in LOGICAL:
        return _OPERATIONS[op](*(_as_condition(a, shown[a.index]) for a in node.args))
    arguments = [_as_number(a, shown[a.index]) for a in node.args]
    return node.payload(*arguments) if op == "call" else _OPERATIONS[op](*arguments)


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
    "reciprocal": lambda a: 1 / a,
    "cbrt": lambda x: sympy.sign(x) * sympy.Abs(x) ** sympy.Rational(1, 3),
    "min": sympy.Min,
    "max": sympy.Max,
    **{name: getattr(sympy, name.capitalize()) for name in COMPARISONS | LOGICAL},
}
