"""Derivatives on the graph: forward mode along one direction, reverse mode for a sum of outputs; substitution.

At points where a function has no finite slope, the chain rule multiplies infinity by zero. For example, the slopes of
``x*sqrt(abs(x))`` and of ``u*sqrt(q**2 + u**2)`` at the origin are 0, but the chain rule gives NaN. The derivative of a
root therefore uses a reciprocal that is 0 at 0 (``reciprocal`` of the graph). The result is correct if the derivative
of the whole expression is finite and the other factors vanish with the root. ``sqrt(q**2)`` gets the slope 0 at its
kink, which is a subgradient, and ``sqrt(q)`` gets the slope 0 at q = 0 instead of infinity. The same rule applies to
powers with an exponent below 1, cube roots, asin, acos and acosh.

A branch that is not chosen (``select``, ``min``, ``max``) does not contribute to a derivative, even if its own is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

import sympy

from kanegen.graph.functions import Function, Tabulated
from kanegen.graph.lower import Lowering
from kanegen.graph.nodes import Graph, Node


def reachable(roots: Iterable[Node], given: Callable[[Node], bool] | None = None) -> list[Node]:
    """The roots and all their operands, operands first; nodes that are ``given`` need no operands."""
    seen: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.index not in seen:
            seen[node.index] = node
            if given is None or not given(node):
                stack.extend(node.args)
    return [seen[index] for index in sorted(seen)]


def count_operations(roots: Iterable[Node], excluding_constant: bool = True) -> int:
    """The number of arithmetic operations, comparisons, selections and function calls that the roots need.

    Shared operations count once. With ``excluding_constant``, operations that depend only on parameters do not count,
    because they are evaluated once before a run.
    """
    leaves = ("const", "input")
    return sum(node.op not in leaves and not (excluding_constant and node.constant) for node in reachable(roots))


def partials(node: Node, moves: Callable[[Node], bool]) -> list[tuple[Node, Node]]:
    """The pairs (operand, derivative of ``node`` with respect to it) of the operands that move.

    Pairs of constant operands can be included, but never derivatives of a user's function that are not needed.
    """
    g, op = node.graph, node.op
    if op in ("const", "input", "lt", "le", "eq", "ne", "and", "or", "not", "floor", "ceil"):
        return []
    if op == "gather":
        index = node.args[0]
        return [(x, g.apply("eq", index, g.const(k))) for k, x in enumerate(node.args[1:]) if moves(x)]
    if op == "call":
        return [(x, _call_derivative(node, i)) for i, x in enumerate(node.args) if moves(x)]
    if len(node.args) == 1:
        (a,) = node.args
        return [(a, _SLOPES[op](g, node, a))]
    a, b = node.args
    if op == "add":
        return [(a, g.one), (b, g.one)]
    if op == "sub":
        return [(a, g.one), (b, g.neg(g.one))]
    if op == "mul":
        return [(a, Fraction(3, 2) * b)] if _is_power_three_halves(a, b) else [(a, b), (b, a)]
    if op == "div":
        return [(a, g.div(g.one, b)), (b, g.neg(g.div(node, b)))]
    if op == "atan2":
        norm = a * a + b * b
        return [(a, b / norm), (b, -(a / norm))]
    if op == "pow":
        base = [(a, _slope_in_base(node))] if moves(a) else []
        # 0**b is 0 for every b > 0.
        exponent = [(b, g.select(g.apply("eq", a, g.zero), g.zero, node * g.apply("log", a)))] if moves(b) else []
        return base + exponent
    raise ValueError(f"no derivative for {op!r}")


def _branches(node: Node) -> tuple[Node, Node, Node] | None:
    """The condition, the operand if it is true, and the operand if it is false; None for other operations."""
    g, args = node.graph, node.args
    match node.op:
        case "select":
            return args[0], args[1], args[2]
        case "min":
            return g.apply("le", *args), args[0], args[1]
        case "max":
            return g.apply("lt", args[1], args[0]), args[0], args[1]
    return None


def _is_power_three_halves(a: Node, b: Node) -> bool:
    """Whether ``a*b`` is ``a*sqrt(a)``, as ``a**(3/2)`` is lowered; the newer factor comes second."""
    return b.op == "sqrt" and b.args[0] is a


def _slope_in_base(node: Node) -> Node:
    """The derivative of ``a**b`` with respect to a; 0 where it is infinite, at a = 0 with b < 1."""
    g = node.graph
    a, b = node.args
    if b.op == "const":
        # b is not an integer here; a division is cheaper than another pow().
        return b * (node * g.apply("reciprocal", a))
    infinite = g.apply("and", g.apply("lt", b, g.one), g.apply("eq", a, g.zero))
    return g.select(infinite, g.zero, b * g.apply("pow", a, b - 1))


def _call_derivative(node: Node, index: int) -> Node:
    """The derivative of a user's function, which its author gave as a function or as a SymPy expression."""
    given = node.payload.derivative_at(index)
    if isinstance(given, Function | Tabulated):
        return node.graph.call(given, *node.args)
    arguments = [sympy.Symbol(f"x{k + 1}", real=True) for k in range(len(node.args))]
    return Lowering(node.graph, dict(zip(arguments, node.args, strict=True))).lower(given(*arguments))


_TWO_OVER_ROOT_PI: Final = 1.1283791670955126

_SLOPES: Final[Mapping[str, Callable[[Graph, Node, Node], Node]]] = {
    "neg": lambda g, node, a: g.const(-1),
    "sqrt": lambda g, node, a: Fraction(1, 2) * g.apply("reciprocal", node),
    "sin": lambda g, node, a: g.apply("cos", a),
    "cos": lambda g, node, a: -g.apply("sin", a),
    "tan": lambda g, node, a: 1 + node * node,
    "asin": lambda g, node, a: g.apply("reciprocal", g.apply("sqrt", 1 - a * a)),
    "acos": lambda g, node, a: -g.apply("reciprocal", g.apply("sqrt", 1 - a * a)),
    "atan": lambda g, node, a: 1 / (1 + a * a),
    "sinh": lambda g, node, a: g.apply("cosh", a),
    "cosh": lambda g, node, a: g.apply("sinh", a),
    "tanh": lambda g, node, a: 1 - node * node,
    "asinh": lambda g, node, a: 1 / g.apply("sqrt", a * a + 1),
    "acosh": lambda g, node, a: g.apply("reciprocal", g.apply("sqrt", a - 1) * g.apply("sqrt", a + 1)),
    "atanh": lambda g, node, a: 1 / (1 - a * a),
    "exp": lambda g, node, a: node,
    "log": lambda g, node, a: 1 / a,
    "cbrt": lambda g, node, a: g.apply("reciprocal", 3 * node * node),
    "reciprocal": lambda g, node, a: -(node * node),
    "abs": lambda g, node, a: g.select(g.apply("lt", a, g.zero), g.const(-1), g.one),
    "erf": lambda g, node, a: _TWO_OVER_ROOT_PI * g.apply("exp", -(a * a)),
}
"""The derivatives of functions of one argument ``a``; ``node`` is the value."""


class Tangent:
    """Forward mode: the derivative of any node along one direction.

    ``seeds`` maps each input node that varies to its derivative; all others are constant. Results are cached, so
    that one Tangent differentiates shared subexpressions once.
    """

    def __init__(self, graph: Graph, seeds: Mapping[Node, Node]) -> None:
        self._graph = graph
        self._known: dict[int, Node] = {node.index: value for node, value in seeds.items()}

    def __call__(self, node: Node) -> Node:
        known = self._known
        value = known.get(node.index)
        if value is not None:
            return value
        pending: dict[int, Node] = {}
        stack = [node]
        while stack:
            top = stack.pop()
            if top.index not in known and top.index not in pending:
                pending[top.index] = top
                stack.extend(top.args)
        for index in sorted(pending):
            known[index] = self._rule(pending[index])
        return known[node.index]

    def _rule(self, node: Node) -> Node:
        args = node.args
        if node.op == "gather":
            return self._graph.gather(args[0], [self._known[x.index] for x in args[1:]])
        if len(args) == 2:
            return self._binary_rule(node, *args)
        g, known, zero = self._graph, self._known, self._graph.zero
        if len(args) == 1:
            moved = known[args[0].index]
            if moved is zero:
                return zero
            return g.neg(moved) if node.op == "neg" else self._chain(node)
        if node.op == "select":
            return g.select(args[0], known[args[1].index], known[args[2].index])
        return self._chain(node)

    def _binary_rule(self, node: Node, a: Node, b: Node) -> Node:
        g, op, known, zero = self._graph, node.op, self._known, self._graph.zero
        da, db = known[a.index], known[b.index]
        if da is zero and db is zero:
            return zero
        if op == "mul":
            if a is b:
                return g.mul(g.const(2), g.mul(a, da))
            if _is_power_three_halves(a, b):
                return g.mul(Fraction(3, 2) * b, da)
            return g.add(g.mul(da, b), g.mul(a, db))
        if op == "add":
            return g.add(da, db)
        if op == "sub":
            return g.sub(da, db)
        if op == "div":
            return g.div(da if db is zero else g.sub(da, g.mul(node, db)), b)
        branches = _branches(node)
        if branches is not None:
            return g.select(branches[0], da, db)
        return self._chain(node)

    def _chain(self, node: Node) -> Node:
        g, known, zero = self._graph, self._known, self._graph.zero
        total = zero
        for operand, derivative in partials(node, lambda x: known[x.index] is not zero):
            moved = known[operand.index]
            if moved is not zero:
                total = g.add(total, g.mul(derivative, moved))
        return total


def gradient(outputs: Sequence[Node], weights: Sequence[Node], inputs: Sequence[Node]) -> list[Node]:
    """Reverse mode: the derivatives of ``sum weights_k outputs_k`` with respect to the inputs, for fixed weights."""
    if not outputs:
        return []
    g = outputs[0].graph
    zero = g.zero
    order = reachable(outputs)
    moves = {x.index for x in inputs}
    for node in order:
        if any(a.index in moves for a in node.args):
            moves.add(node.index)
    adjoint: dict[int, Node] = {}
    taken: dict[int, Node] = {}
    for output, weight in zip(outputs, weights, strict=True):
        adjoint[output.index] = adjoint.get(output.index, zero) + weight
        taken[output.index] = g.one
    for node in reversed(order):
        bar = adjoint.get(node.index, zero)
        if bar is zero or node.index not in moves:
            continue
        for operand, share, condition in _shares(node, bar, taken[node.index], moves):
            if operand.index in moves and share is not zero:
                adjoint[operand.index] = adjoint.get(operand.index, zero) + share
                taken[operand.index] = g.apply("or", taken.get(operand.index, zero), condition)
    return [adjoint.get(x.index, zero) for x in inputs]


def _shares(node: Node, bar: Node, taken: Node, moves: set[int]) -> Iterator[tuple[Node, Node, Node]]:
    """The contribution of the adjoint ``bar`` of ``node`` to each operand, and the condition under which it counts.

    ``taken`` is the condition under which the node itself contributes to the result; if it is false, ``bar`` is 0, and
    the derivatives can be NaN.
    """
    g = node.graph
    branches = _branches(node)
    if branches is not None:
        condition, true, false = branches
        yield true, g.select(condition, bar, g.zero), g.apply("and", taken, condition)
        yield false, g.select(condition, g.zero, bar), g.apply("and", taken, g.apply("not", condition))
        return
    for operand, derivative in partials(node, lambda x: x.index in moves):
        share = bar * derivative
        if derivative.op not in ("const", "input"):
            share = g.select(taken, share, g.zero)
        yield operand, share, taken


def substitute(roots: Sequence[Node], replacements: Mapping[Node, Node]) -> list[Node]:
    """The roots with input nodes replaced, rebuilt through the Graph so that its rules apply again."""
    new: dict[int, Node] = {node.index: value for node, value in replacements.items()}
    for node in reachable(roots):
        if node.index not in new:
            args = tuple(new[a.index] for a in node.args)
            new[node.index] = node if args == node.args else rebuild(node, args)
    return [new[root.index] for root in roots]


def copied(roots: Iterable[Node], graph: Graph) -> list[Node]:
    """The roots as nodes of another graph."""
    roots = list(roots)
    leaves = (node for node in reachable(roots) if not node.args)
    new = {x: graph.const(x.payload) if x.op == "const" else graph.input(*x.payload) for x in leaves}
    return substitute(roots, new)


def rebuild(node: Node, args: tuple[Node, ...]) -> Node:
    """The same operation as ``node`` on other operands, possibly of another graph."""
    g = args[0].graph
    if node.op == "call":
        return g.call(node.payload, *args)
    if node.op == "gather":
        return g.gather(args[0], args[1:])
    if node.op in ("add", "sub", "mul", "div", "neg", "select"):
        built: Node = getattr(g, node.op)(*args)
        return built
    return g.apply(node.op, *args)
