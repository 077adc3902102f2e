"""Conversion of SymPy expressions to graph nodes ("lowering").

The conversion is one pass over the expression with a cache, without substitution, simplification or symbolic
evaluation, which would be slow for every model. SymPy keeps the arguments of sums and products in an order that
does not depend on the hash seed, so the same expressions give the same nodes in every process.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

import sympy
from sympy.core.function import AppliedUndef

from kanegen.errors import DerivationError, SolveError
from kanegen.graph.lower_functions import C_FUNCTIONS, FUNCTIONS, UnsupportedError, in_known_functions
from kanegen.graph.nodes import Graph, Node
from kanegen.graph.real_forms import may_differ, real_form

_LONGEST_QUOTE = 160


class Lowering:
    """Lowers SymPy expressions into ``graph``.

    Parameters
    ----------
    graph
        The graph that receives the nodes.
    symbols
        The node of every leaf: coordinates and speeds ``q(t)``, their derivatives ``q(t).diff(t)``, inputs,
        parameters and time. Derivatives such as ``q(t).diff(t)`` need entries of their own.
    """

    def __init__(self, graph: Graph, symbols: Mapping[Any, Node]) -> None:
        self.graph = graph
        self.symbols = symbols
        self._known: dict[Any, Node] = dict(symbols)

    def lower(self, expr: Any) -> Node:
        """The node of ``expr``, a scalar SymPy expression, a condition or a Python number.

        Raises
        ------
        DerivationError
            For a symbol without a node, a function without a C counterpart, a number that is complex,
            infinite or undefined, a Piecewise without a last branch, a division by zero.
        """
        node = self._known.get(expr)
        if node is not None:
            return node
        if not isinstance(expr, sympy.Basic):
            expr = _sympified(expr)
        try:
            try:
                return self.visit(expr)
            except RecursionError:
                return self._visit_bottom_up(expr)
        except UnsupportedError as problem:
            raise DerivationError(f"{problem}{_where(expr, problem.culprit)}") from None
        except ZeroDivisionError:
            raise DerivationError(f"division by zero in {_quoted(expr)}: a denominator is identically zero") from None

    def visit(self, expr: Any) -> Node:
        """The node of a subexpression, called by :meth:`lower` and by the rules of single types."""
        known = self._known
        node = known.get(expr)
        if node is None:
            rule = _RULES.get(type(expr)) or _inherited_rule(expr)
            node = known[expr] = rule(self, expr)
        return node

    def _visit_bottom_up(self, expr: Any) -> Node:
        """Like :meth:`visit`, for expressions that are nested deeper than Python's recursion limit."""
        known = self._known
        stack = [expr]
        while stack:
            top = stack[-1]
            # Derivatives are looked up as a whole; an exponent is not always lowered to a node.
            inner = () if isinstance(top, sympy.Derivative | sympy.Subs) else (top.base,) if top.is_Pow else top.args
            pending = [a for a in inner if a not in known and isinstance(a, sympy.Expr)]
            if pending:
                stack.extend(pending)
            else:
                self.visit(stack.pop())
        return known[expr]

    def unknown(self, symbol: Any) -> UnsupportedError:
        """The error for a leaf without a node."""
        name = str(symbol)
        twins = [s for s in self.symbols if str(s) == name]
        if twins:
            hint = (
                f"; another symbol of the same name is known, with the assumptions {_assumptions(twins[0])}: "
                "use the same object everywhere"
            )
        else:
            names = {str(s).removesuffix("(t)"): str(s) for s in self.symbols}
            close = [names[s] for s in difflib.get_close_matches(name.removesuffix("(t)"), names, n=1)]
            hint = f"; did you mean {close[0]}?" if close else ""
        return UnsupportedError(
            symbol, f"{name} is not a coordinate, speed, input or parameter of the model, nor time{hint}"
        )


_Rule = Callable[[Lowering, Any], Node]


def _sympified(value: Any) -> Any:
    try:
        return sympy.sympify(value, strict=True)
    except (sympy.SympifyError, TypeError):
        raise DerivationError(f"{value!r} is not a scalar SymPy expression") from None


# -- leaves -------------------------------------------------------------------------------------------------


def _rational(lowering: Lowering, expr: Any) -> Node:
    return lowering.graph.const(expr.p if expr.q == 1 else Fraction(expr.p, expr.q))


def _not_finite(lowering: Lowering, expr: Any) -> Node:
    raise UnsupportedError(expr, f"{expr} is not a finite real number")


def _symbol(lowering: Lowering, expr: Any) -> Node:
    raise lowering.unknown(expr)


def _derivative(lowering: Lowering, expr: Any) -> Node:
    if isinstance(expr.expr, (AppliedUndef, sympy.Symbol)):
        raise lowering.unknown(expr)
    if isinstance(expr.expr, sympy.floor | sympy.ceiling):
        return lowering.graph.zero
    done = expr.doit()
    if done == expr:
        done = real_form(expr)
    if done == expr and isinstance(expr.expr, sympy.Mod | sympy.frac):
        done = expr.func(expr.expr.rewrite(sympy.floor), *expr.variables).doit()
    if done == expr:
        raise UnsupportedError(
            expr, f"{expr} has no closed form; declare the symbols in it real, or differentiate by hand"
        )
    return lowering.visit(done)


DELAYS: Final = (
    "models have no values at other times: approximate a delay tau by a chain of n states, z1' = n/tau*(x - z1), z2' = "
    "n/tau*(z1 - z2), ..., whose last one is x(t - tau) up to tau**2/(2*n)*x'' (docs/states.md); sampled laws of "
    "inputs have delay="
)


def is_delayed(expr: Any) -> bool:
    """Whether a Subs moves functions of time to another time, as SymPy's ``x(t).diff(t).subs(t, t - tau)`` does."""
    return any(variable in atom.args for atom in expr.expr.atoms(AppliedUndef) for variable in expr.variables)


def _subs(lowering: Lowering, expr: Any) -> Node:
    if is_delayed(expr):
        raise UnsupportedError(expr, f"{expr} has functions of time at another time: {DELAYS}")
    points = {variable: lowering.visit(point) for variable, point in zip(expr.variables, expr.point, strict=True)}
    return Lowering(lowering.graph, {**lowering.symbols, **points}).visit(expr.expr)


def _foreign(lowering: Lowering, expr: Any) -> Node:
    known = in_known_functions(expr, lambda cls: _rule_of(cls) is not None or issubclass(cls, AppliedUndef))
    if known is None:
        name = type(expr).__name__
        message = f"{name} has no counterpart in C99; write it with the functions of math.h or as a kg.Function"
        raise UnsupportedError(expr, message)
    return lowering.visit(known)


def _user_function(lowering: Lowering, expr: Any) -> Node:
    function, arguments = expr.kanegen_function, [lowering.visit(a) for a in expr.args]
    for domain, argument in zip(function.domains, arguments, strict=True):
        if domain is not None and argument.op == "const":
            try:
                domain.require(argument.payload)
            except SolveError as outside:
                raise UnsupportedError(expr, str(outside)) from None
    node: Node = function.node(lowering.graph, arguments)
    return node


# -- sums, products, powers ---------------------------------------------------------------------------------


def _by_constancy(node: Node) -> tuple[bool, int]:
    """Sorting key: nodes that are constant during a run first, then older nodes, so that partial sums are shared."""
    return (not node.constant, node.index)


def _add(lowering: Lowering, expr: Any) -> Node:
    visit, graph = lowering.visit, lowering.graph
    terms = [visit(term) for term in expr.args]
    plus = [node for node in terms if node.op != "neg"]
    minus = [node.args[0] for node in terms if node.op == "neg"]
    total = graph.zero
    for constant in (True, False):
        for combine, nodes in ((graph.add, plus), (graph.sub, minus)):
            for node in sorted(nodes, key=_by_constancy):
                if node.constant is constant:
                    total = combine(total, node)
    return total


def _mul(lowering: Lowering, expr: Any) -> Node:
    real = real_form(expr) if may_differ(expr) else expr
    return _quotient(lowering, expr) if real == expr else lowering.visit(real)


def _quotient(lowering: Lowering, expr: Any) -> Node:
    visit, graph = lowering.visit, lowering.graph
    above: list[Node] = []
    below: list[Node] = []
    for factor in expr.args:
        if factor.is_Pow and factor.exp.is_Rational and factor.exp.p < 0:
            below.append(_rational_power(lowering, factor.base, -factor.exp.p, factor.exp.q))
        else:
            above.append(visit(factor))
    if not below:
        return _product(graph, above)
    fixed, moving = (
        graph.div(
            _product(graph, [a for a in above if a.constant is constant]),
            _product(graph, [b for b in below if b.constant is constant]),
        )
        for constant in (True, False)
    )
    return graph.mul(fixed, moving)


def _product(graph: Graph, factors: list[Node]) -> Node:
    product = graph.one
    for node in sorted(factors, key=_by_constancy):
        product = graph.mul(product, node)
    return product


def _pow(lowering: Lowering, expr: Any) -> Node:
    base, exponent = expr.args
    if not exponent.is_Rational:
        return lowering.graph.apply("pow", lowering.visit(base), lowering.visit(exponent))
    power = _rational_power(lowering, base, abs(exponent.p), exponent.q)
    return power if exponent.p > 0 else 1 / power


def _rational_power(lowering: Lowering, base: Any, p: int, q: int) -> Node:
    """``base**(p/q)``, p > 0, with products and one square root if q <= 2."""
    graph, node = lowering.graph, lowering.visit(base)
    if q == 1:
        return graph.power(node, p)
    if q == 2:
        return graph.mul(graph.power(node, p // 2), graph.apply("sqrt", node))
    return graph.apply("pow", node, graph.const(Fraction(p, q)))


# -- rules by type ------------------------------------------------------------------------------------------

_RULES: dict[type, _Rule] = {
    sympy.Add: _add,
    sympy.Mul: _mul,
    sympy.Pow: _pow,
    sympy.Rational: _rational,
    sympy.Float: lambda lowering, expr: lowering.graph.const(float(expr)),
    sympy.NumberSymbol: lambda lowering, expr: lowering.graph.const(float(expr)),
    sympy.Symbol: _symbol,
    sympy.Derivative: _derivative,
    sympy.Subs: _subs,
    **dict.fromkeys(map(type, (sympy.oo, -sympy.oo, sympy.nan, sympy.zoo, sympy.I)), _not_finite),
    **FUNCTIONS,
}


def _rule_of(cls: type) -> _Rule | None:
    """The rule of a type: its own, or that of the nearest type it inherits from."""
    if hasattr(cls, "kanegen_function"):
        return _user_function
    if cls.__module__ == "sympy.codegen.cfunctions" and cls.__name__ in C_FUNCTIONS:
        return C_FUNCTIONS[cls.__name__]
    return next((_RULES[base] for base in cls.__mro__ if base in _RULES), None)


def _inherited_rule(expr: Any) -> _Rule:
    return _rule_of(type(expr)) or (_symbol if isinstance(expr, AppliedUndef) else _foreign)


# -- messages -----------------------------------------------------------------------------------------------


def _assumptions(symbol: Any) -> str:
    given = {k: v for k, v in getattr(symbol, "_assumptions_orig", {}).items() if v is not None}
    return ", ".join(f"{k}={v}" for k, v in sorted(given.items())) or "none"


def _quoted(expr: Any) -> str:
    text = str(expr)
    return text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 4] + " ..."


def _where(expr: Any, culprit: Any) -> str:
    """The text " (in ...)" with the largest expression around ``culprit`` that is short enough to read."""
    path = _path(expr, culprit)
    if len(path) < 2:
        return ""
    quote = _quoted(path[-2])
    for outer in reversed(path[:-2]):
        text = str(outer)
        if len(text) > _LONGEST_QUOTE:
            break
        quote = text
    return f" (in {quote})"


def _path(expr: Any, culprit: Any) -> list[Any]:
    """The expressions from ``expr`` down to ``culprit``; empty if it is not a subexpression of ``expr``."""
    parents: dict[Any, Any] = {expr: None}
    stack = [expr]
    while stack:
        top = stack.pop()
        if top == culprit:
            path = [top]
            while parents[path[-1]] is not None:
                path.append(parents[path[-1]])
            return path[::-1]
        for a in top.args:
            if a not in parents:
                parents[a] = top
                stack.append(a)
    return []
