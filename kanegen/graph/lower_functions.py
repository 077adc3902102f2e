"""Lowering rules of functions, conditions and branches, by SymPy type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

import sympy
from sympy.codegen import cfunctions
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import BooleanFalse, BooleanTrue

from kanegen.graph.nodes import Graph, Node


class Lowerer(Protocol):
    """What a rule needs: the graph, and the nodes of subexpressions."""

    @property
    def graph(self) -> Graph: ...

    def visit(self, expr: Any) -> Node: ...


Rule: TypeAlias = Callable[[Lowerer, Any], Node]


class UnsupportedError(Exception):
    """A subexpression that cannot be lowered; the message of :class:`Lowering` adds the expression around it."""

    def __init__(self, culprit: Any, message: str) -> None:
        super().__init__(message)
        self.culprit = culprit


def _named(op: str) -> Rule:
    def rule(lowering: Lowerer, expr: Any) -> Node:
        return lowering.graph.apply(op, *(lowering.visit(a) for a in expr.args))

    return rule


def _folded(op: str) -> Rule:
    """An operation of two arguments applied to any number of them, from the left."""

    def rule(lowering: Lowerer, expr: Any) -> Node:
        nodes = sorted((lowering.visit(a) for a in expr.args), key=lambda n: (not n.constant, n.index))
        result = nodes[0]
        for node in nodes[1:]:
            result = lowering.graph.apply(op, result, node)
        return result

    return rule


def _one_over(op: str) -> Rule:
    """``1 / op(x)``: secant, cosecant ..."""

    def rule(lowering: Lowerer, expr: Any) -> Node:
        graph = lowering.graph
        return graph.div(graph.one, graph.apply(op, lowering.visit(expr.args[0])))

    return rule


def _of_reciprocal(op: str) -> Rule:
    """``op(1/x)``: the inverses of the reciprocal functions, on SymPy's branches."""

    def rule(lowering: Lowerer, expr: Any) -> Node:
        graph = lowering.graph
        return graph.apply(op, graph.div(graph.one, lowering.visit(expr.args[0])))

    return rule


def _compared(op: str, swap: bool = False) -> Rule:
    def rule(lowering: Lowerer, expr: Any) -> Node:
        left, right = (lowering.visit(a) for a in expr.args)
        return lowering.graph.apply(op, right, left) if swap else lowering.graph.apply(op, left, right)

    return rule


def _log(lowering: Lowerer, expr: Any) -> Node:
    logarithms = [lowering.graph.apply("log", lowering.visit(a)) for a in expr.args]
    return logarithms[0] if len(logarithms) == 1 else lowering.graph.div(*logarithms)


def _cot(lowering: Lowerer, expr: Any) -> Node:
    graph, x = lowering.graph, lowering.visit(expr.args[0])
    return graph.div(graph.apply("cos", x), graph.apply("sin", x))


def _sign(lowering: Lowerer, expr: Any) -> Node:
    graph, x = lowering.graph, lowering.visit(expr.args[0])
    negative = graph.select(graph.apply("lt", x, graph.zero), graph.const(-1), graph.zero)
    return graph.select(graph.apply("lt", graph.zero, x), graph.one, negative)


def _heaviside(lowering: Lowerer, expr: Any) -> Node:
    graph, x = lowering.graph, lowering.visit(expr.args[0])
    negative = graph.select(graph.apply("lt", x, graph.zero), graph.zero, lowering.visit(expr.args[1]))
    return graph.select(graph.apply("lt", graph.zero, x), graph.one, negative)


def _impulse(lowering: Lowerer, expr: Any) -> Node:
    raise UnsupportedError(
        expr,
        f"{expr} is infinite at one place and no number; it is the derivative of a step (of Heaviside or sign, or the "
        "second one of Abs, Max or Min). Let an event act with impulses= instead, or leave the term out",
    )


def _implies(lowering: Lowerer, expr: Any) -> Node:
    premise, conclusion = (lowering.visit(a) for a in expr.args)
    return lowering.graph.apply("or", lowering.graph.apply("not", premise), conclusion)


def _mod(lowering: Lowerer, expr: Any) -> Node:
    graph = lowering.graph
    a, b = (lowering.visit(x) for x in expr.args)
    return graph.sub(a, graph.mul(b, graph.apply("floor", graph.div(a, b))))


def _frac(lowering: Lowerer, expr: Any) -> Node:
    x = lowering.visit(expr.args[0])
    return lowering.graph.sub(x, lowering.graph.apply("floor", x))


def _hypot(lowering: Lowerer, expr: Any) -> Node:
    graph = lowering.graph
    x, y = (lowering.visit(a) for a in expr.args)
    return graph.apply("sqrt", graph.add(graph.mul(x, x), graph.mul(y, y)))


def _real_part(lowering: Lowerer, expr: Any) -> Node:
    # Every quantity of a model is real; SymPy does not know that of a plain dynamicsymbols().
    return lowering.visit(expr.args[0])


def _imaginary_part(lowering: Lowerer, expr: Any) -> Node:
    return lowering.graph.zero


def _piecewise(lowering: Lowerer, expr: Any) -> Node:
    *branches, (value, condition) = expr.args
    if not (isinstance(condition, BooleanTrue) or (branches and _exhausts(branches[-1][1], condition))):
        raise UnsupportedError(
            expr,
            f"{expr} has no value where none of its conditions holds; end it with a branch (value, True)",
        )
    result = lowering.visit(value)
    for value, condition in reversed(branches):
        result = lowering.graph.select(lowering.visit(condition), lowering.visit(value), result)
    return result


def _exhausts(last_but_one: Any, last: Any) -> bool:
    """Whether one of the last two conditions always holds, as for ``x < 0`` and ``x >= 0``."""
    return bool(sympy.Or(last_but_one, last) == sympy.true)


def _pair(lowering: Lowerer, expr: Any) -> Node:
    raise UnsupportedError(expr, f"{expr} is outside a Piecewise")


def _ite(lowering: Lowerer, expr: Any) -> Node:
    return lowering.graph.select(*(lowering.visit(a) for a in expr.args))


def _true(lowering: Lowerer, expr: Any) -> Node:
    return lowering.graph.one


def _false(lowering: Lowerer, expr: Any) -> Node:
    return lowering.graph.zero


_SAME_NAME = (
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "floor", "erf"),
)

FUNCTIONS: Final[dict[type, Rule]] = {
    **{getattr(sympy, name): _named(name) for name in _SAME_NAME},
    sympy.Abs: _named("abs"),
    sympy.ceiling: _named("ceil"),
    sympy.log: _log,
    cfunctions.Cbrt: _named("cbrt"),
    cfunctions.Sqrt: _named("sqrt"),
    cfunctions.hypot: _hypot,
    sympy.sec: _one_over("cos"),
    sympy.csc: _one_over("sin"),
    sympy.cot: _cot,
    sympy.sech: _one_over("cosh"),
    sympy.csch: _one_over("sinh"),
    sympy.coth: _one_over("tanh"),
    sympy.asec: _of_reciprocal("acos"),
    sympy.acsc: _of_reciprocal("asin"),
    sympy.acot: _of_reciprocal("atan"),
    sympy.asech: _of_reciprocal("acosh"),
    sympy.acsch: _of_reciprocal("asinh"),
    sympy.acoth: _of_reciprocal("atanh"),
    sympy.sign: _sign,
    sympy.DiracDelta: _impulse,
    sympy.Heaviside: _heaviside,
    sympy.Mod: _mod,
    sympy.frac: _frac,
    sympy.Min: _folded("min"),
    sympy.Max: _folded("max"),
    sympy.re: _real_part,
    sympy.conjugate: _real_part,
    sympy.UnevaluatedExpr: _real_part,
    sympy.im: _imaginary_part,
    sympy.Piecewise: _piecewise,
    ExprCondPair: _pair,
    sympy.ITE: _ite,
    sympy.And: _folded("and"),
    sympy.Or: _folded("or"),
    sympy.Xor: _folded("ne"),
    sympy.Implies: _implies,
    sympy.Not: _named("not"),
    sympy.StrictLessThan: _compared("lt"),
    sympy.LessThan: _compared("le"),
    sympy.StrictGreaterThan: _compared("lt", swap=True),
    sympy.GreaterThan: _compared("le", swap=True),
    sympy.Equality: _compared("eq"),
    sympy.Unequality: _compared("ne"),
    BooleanTrue: _true,
    BooleanFalse: _false,
}
