"""Random expression trees with a meaning of their own, against which the expression graph is checked.

A tree is ``("q", i)``, ``("p", i)``, ``("const", Fraction)`` or ``(operation, *trees)``: nothing is
simplified or shared, and nothing of kanegen.graph takes part in its value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import sympy
from hypothesis import strategies as st

from kanegen.graph import Graph, Node

Tree = tuple[Any, ...]

N_Q, N_P = 3, 2
DIGITS = 50

q_symbols = sympy.symbols(f"q:{N_Q}", real=True)
p_symbols = sympy.symbols(f"p:{N_P}", real=True)

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}
SMOOTH = ("sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "exp", "sqrt", "log", "erf")
POWERS = (-3, -2, -1, 2, 3, 4)


class Undefined(Exception):  # noqa: N818 - no error of the program, the tree just has no value
    """The tree has no finite real value of moderate size."""


def trees(smooth: bool = True) -> st.SearchStrategy[Tree]:
    numbers = st.fractions(min_value=-4, max_value=4, max_denominator=6)
    leaves = st.one_of(
        st.tuples(st.just("q"), st.integers(0, N_Q - 1)),
        st.tuples(st.just("p"), st.integers(0, N_P - 1)),
        st.tuples(st.just("const"), numbers),
    )

    def grown(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        operations = [
            st.tuples(st.sampled_from(sorted(BINARY)), inner, inner),
            st.tuples(st.sampled_from(sorted(BINARY)), inner, inner),
            st.tuples(st.just("neg"), inner),
            st.tuples(st.just("power"), inner, st.sampled_from(POWERS)),
            st.tuples(st.sampled_from(SMOOTH), inner),
        ]
        if not smooth:
            operations.append(st.tuples(st.sampled_from(("min", "max")), inner, inner))
            operations.append(st.tuples(st.just("abs"), inner))
            operations.append(st.tuples(st.just("select"), inner, inner, inner, inner))
        return st.one_of(operations)

    return st.recursive(leaves, grown, max_leaves=12)


def numbers(count: int) -> st.SearchStrategy[list[Fraction]]:
    return st.lists(st.fractions(min_value=-2, max_value=2, max_denominator=97), min_size=count, max_size=count)


def in_graph(graph: Graph, tree: Tree) -> Node:
    """The node of the tree; may raise ZeroDivisionError where a denominator is zero identically."""
    op, *rest = tree
    if op in ("q", "p"):
        return graph.input(op, rest[0])
    if op == "const":
        return graph.const(rest[0])
    if op == "power":
        return graph.power(in_graph(graph, rest[0]), rest[1])
    arguments = [in_graph(graph, a) for a in rest]
    if op in BINARY:
        return BINARY[op](*arguments)
    if op == "neg":
        return -arguments[0]
    if op == "select":
        a, b, true, false = arguments
        return graph.select(graph.apply("lt", a, b), true, false)
    return graph.apply(op, *arguments)


def in_sympy(tree: Tree) -> Any:
    """The same tree, smooth, as a SymPy expression."""
    op, *rest = tree
    if op in ("q", "p"):
        return (q_symbols if op == "q" else p_symbols)[rest[0]]
    if op == "const":
        return sympy.Rational(rest[0].numerator, rest[0].denominator)
    if op == "power":
        return in_sympy(rest[0]) ** rest[1]
    arguments = [in_sympy(a) for a in rest]
    if op == "neg":
        return -arguments[0]
    return BINARY[op](*arguments) if op in BINARY else getattr(sympy, op)(*arguments)


def value(tree: Tree, q: list[Any], p: list[Any], library: Any = mpmath) -> Any:
    """The value by the functions of ``library`` (mpmath or math); raises Undefined where there is none."""
    op, *rest = tree
    if op in ("q", "p"):
        return (q if op == "q" else p)[rest[0]]
    number = mpmath.mpf if library is mpmath else float
    if op == "const":
        return number(rest[0].numerator) / rest[0].denominator
    arguments = [value(a, q, p, library) for a in rest if not isinstance(a, int)]
    try:
        result = _applied(op, arguments, rest, library)
    except (ZeroDivisionError, ValueError, OverflowError):
        raise Undefined from None
    if isinstance(result, complex | mpmath.mpc) or not mpmath.isfinite(result) or abs(result) > 1e6:
        raise Undefined
    return result


def _applied(op: str, arguments: list[Any], rest: list[Any], library: Any) -> Any:
    if op == "power":
        return arguments[0] ** rest[1]
    if op == "neg":
        return -arguments[0]
    if op in BINARY:
        return BINARY[op](*arguments)
    if op == "select":
        a, b, true, false = arguments
        return true if a < b else false
    if op in ("min", "max", "abs"):
        return {"min": min, "max": max, "abs": abs}[op](*arguments)
    return getattr(library, op)(*arguments)


def in_mpmath(values: list[Fraction]) -> list[Any]:
    return [mpmath.mpf(v.numerator) / v.denominator for v in values]


def is_well_conditioned(tree: Tree, q: list[Fraction], p: list[Fraction], bound: float) -> bool:
    """Whether the float64 value of the tree exists and is within ``bound`` (relative) of the 50-digit one."""
    try:
        with mpmath.workdps(DIGITS):
            reference = value(tree, in_mpmath(q), in_mpmath(p))
            rough = value(tree, [float(x) for x in q], [float(x) for x in p], math)
            return bool(abs(rough - reference) <= bound * max(1, abs(reference)))
    except Undefined:
        return False
