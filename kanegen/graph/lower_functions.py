"""Lowering rules of functions, conditions and branches by SymPy type, and conversion of other functions to these.

``doit`` gives the expressions of the characteristic curves of ``sympy.physics.biomechanics``; ``log1p`` and similar
functions can be expanded; ``sinc``, ``erfc`` and others can be rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, TypeAlias

import sympy
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import BooleanFalse, BooleanTrue

from kanegen.graph.nodes import SAME_NAME, Graph, Node
from kanegen.graph.piecewise import cover_of, spline_of, within


class Lowerer(Protocol):
    """The part of ``Lowering`` that a rule uses: the graph, and the nodes of subexpressions."""

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
    return lambda lowering, expr: lowering.graph.apply(op, *(lowering.visit(a) for a in expr.args))


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
    return lambda lowering, expr: 1 / lowering.graph.apply(op, lowering.visit(expr.args[0]))


def _of_reciprocal(op: str) -> Rule:
    """``op(1/x)``: the inverses of the reciprocal functions, on SymPy's branches."""
    return lambda lowering, expr: lowering.graph.apply(op, 1 / lowering.visit(expr.args[0]))


def _swapped(op: str) -> Rule:
    """An operation on its arguments in reverse order."""
    return lambda lowering, expr: lowering.graph.apply(op, *[lowering.visit(a) for a in expr.args][::-1])


def _log(lowering: Lowerer, expr: Any) -> Node:
    logarithms = [lowering.graph.apply("log", lowering.visit(a)) for a in expr.args]
    return logarithms[0] if len(logarithms) == 1 else lowering.graph.div(*logarithms)


def _cot(lowering: Lowerer, expr: Any) -> Node:
    x = lowering.visit(expr.args[0])
    return lowering.graph.apply("cos", x) / lowering.graph.apply("sin", x)


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
        f"{expr} is infinite at one point and has no value there; it is the derivative of a step (of Heaviside or "
        "sign, or the second one of Abs, Max or Min). Give an event with impulses= instead, or remove the term",
    )


def _implies(lowering: Lowerer, expr: Any) -> Node:
    premise, conclusion = (lowering.visit(a) for a in expr.args)
    return lowering.graph.apply("or", lowering.graph.apply("not", premise), conclusion)


def _mod(lowering: Lowerer, expr: Any) -> Node:
    a, b = (lowering.visit(x) for x in expr.args)
    return a - b * lowering.graph.apply("floor", a / b)


def _frac(lowering: Lowerer, expr: Any) -> Node:
    x = lowering.visit(expr.args[0])
    return x - lowering.graph.apply("floor", x)


def _hypot(lowering: Lowerer, expr: Any) -> Node:
    x, y = (lowering.visit(a) for a in expr.args)
    return lowering.graph.apply("sqrt", x * x + y * y)


def _real_part(lowering: Lowerer, expr: Any) -> Node:
    # Every quantity of a model is real; SymPy does not know that of a plain dynamicsymbols().
    return lowering.visit(expr.args[0])


def _piecewise(lowering: Lowerer, expr: Any) -> Node:
    *branches, (_, condition) = expr.args
    if isinstance(condition, BooleanTrue) or (branches and _exhausts(branches[-1][1], condition)):
        return _selected(lowering, expr.args, {})
    cover = cover_of(expr)
    if cover is None or not (branches or expr.args[0][0].has(cover.argument)):
        message = f"{expr} has no value where none of its conditions holds; end it with a branch (value, True)"
        raise UnsupportedError(expr, message)
    spline = spline_of(expr, cover)
    return _selected(lowering, expr.args, {cover.argument: within(cover)}) if spline is None else lowering.visit(spline)


def _selected(lowering: Lowerer, branches: Any, inside: dict[Any, Any]) -> Node:
    """The value of the first branch whose condition holds, else of the last; ``inside`` replaces what is tested."""
    *others, (last, _) = branches
    result = lowering.visit(last if others else last.xreplace(inside))
    for value, condition in reversed(others):
        chosen = lowering.visit(condition.xreplace(inside))
        result = lowering.graph.select(chosen, lowering.visit(value), result)
    return result


def _exhausts(last_but_one: Any, last: Any) -> bool:
    """Whether one of the last two conditions always holds, as for ``x < 0`` and ``x >= 0``."""
    return bool(sympy.Or(last_but_one, last) == sympy.true)


def _pair(lowering: Lowerer, expr: Any) -> Node:
    raise UnsupportedError(expr, f"{expr} is outside a Piecewise")


FUNCTIONS: Final[dict[type, Rule]] = {
    **{getattr(sympy, name): _named(name) for name in SAME_NAME},
    sympy.Abs: _named("abs"),
    sympy.ceiling: _named("ceil"),
    sympy.log: _log,
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
    sympy.im: lambda lowering, expr: lowering.graph.zero,
    sympy.Piecewise: _piecewise,
    ExprCondPair: _pair,
    sympy.ITE: lambda lowering, expr: lowering.graph.select(*(lowering.visit(a) for a in expr.args)),
    sympy.And: _folded("and"),
    sympy.Or: _folded("or"),
    sympy.Xor: _folded("ne"),
    sympy.Implies: _implies,
    sympy.Not: _named("not"),
    sympy.StrictLessThan: _named("lt"),
    sympy.LessThan: _named("le"),
    sympy.StrictGreaterThan: _swapped("lt"),
    sympy.GreaterThan: _swapped("le"),
    sympy.Equality: _named("eq"),
    sympy.Unequality: _named("ne"),
    BooleanTrue: lambda lowering, expr: lowering.graph.one,
    BooleanFalse: lambda lowering, expr: lowering.graph.zero,
}

C_FUNCTIONS: Final[dict[str, Rule]] = {"Cbrt": _named("cbrt"), "Sqrt": _named("sqrt"), "hypot": _hypot}
"""Functions of ``sympy.codegen.cfunctions`` by name: importing them takes 5 ms, and most models have none."""


# -- functions without a rule --------------------------------------------------------------------------------

_TARGETS: Final = (sympy.Piecewise, sympy.sin, sympy.erf, sympy.atan2)


def in_known_functions(expr: Any, is_known: Callable[[type], bool]) -> Any:
    """An expression equal to ``expr`` in known functions, apart from its arguments; None if there is none.

    ``is_known`` returns whether a type has a lowering rule. Integrals are not tried, because this could take very long.
    """
    if not isinstance(expr, sympy.Function | sympy.Sum | sympy.Product):
        return None
    allowed = {cls for argument in expr.args for cls in _unknown(argument, is_known)}
    for candidate in _candidates(expr):
        if candidate != expr and not candidate.has(sympy.I) and _unknown(candidate, is_known) <= allowed - {type(expr)}:
            return candidate
    return None


def _candidates(expr: Any) -> Iterator[Any]:
    if not isinstance(expr, sympy.Function):
        yield expr.doit()
        return
    # Without evaluation, the curves keep their numerically stable order of operations.
    yield expr.doit(deep=False, evaluate=False)
    yield expr.expand(deep=False, func=True)
    for target in _TARGETS:
        yield expr.rewrite(target, deep=False)


def _unknown(expr: Any, is_known: Callable[[type], bool]) -> set[type]:
    """Types of the functions in an expression that have no lowering rule."""
    return {type(part) for part in expr.atoms(sympy.Function, sympy.Sum, sympy.Product) if not is_known(type(part))}
