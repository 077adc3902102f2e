"""Expressions of equal value stand for each other only where all have a value, and lose no digits by it.

Each family contains forms of one function. Whatever form comes first, the values that a graph computes must be those
of the form that the user wrote: finite where it is finite, and as accurate, near removable singularities too.
"""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest
import sympy as sm
from shares import share

from kanegen.graph import Graph, Identities, Lowering, Node, evaluate, mpmath_context

x, y, k = sm.symbols("x y k", real=True)
SMALL = tuple(10.0**-n for n in range(1, 9))
XS = (0.0, *SMALL, *(-s for s in SMALL[::3]), 1e-3 + 1e-12, 1.3, math.pi / 2, math.pi)
EPS = 2.3e-16

FAMILIES = {
    "tan(x/2)": (sm.sin(x) / (1 + sm.cos(x)), (1 - sm.cos(x)) / sm.sin(x)),
    "sinc squared": (sm.sin(x) ** 2 / x**2, (1 - sm.cos(x) ** 2) / x**2, sm.sin(x) * sm.sin(x) / x / x),
    "1 - cos x": (1 - sm.cos(x), sm.sin(x) ** 2 / (1 + sm.cos(x)), sm.sin(x) * (sm.sin(x) / (1 + sm.cos(x)))),
    "versed over square": ((1 - sm.cos(x)) / x**2, sm.sin(x) ** 2 / (1 + sm.cos(x)) / x**2),
    "root": (sm.sqrt(sm.sin(x) ** 2 + 0 * y), sm.sqrt(1 - sm.cos(x) ** 2)),
    "x + y": (x + y, (x**2 - y**2) / (x - y), (x**2 + 2 * x * y + y**2) / (x + y)),
    "x": (x, x * y / sm.sin(y) * sm.sin(y) / y, 1 / (1 / x), x * (x + k) / (x + k)),
    "cancelled parameter": (x * (1 + y), (k * x + k * x * y) / k, (x * y + x) * (1 + k) / (1 + k)),
    "distance": (x / (1 + sm.sqrt(1 - x**2)), (x * sm.cos(y)) / (sm.cos(y) + sm.sqrt(1 - x**2) * sm.cos(y))),
    "difference of sines": (
        (sm.sin(x) * sm.cos(y) - sm.cos(x) * sm.sin(y)) / (x - y),
        (sm.tan(0) + sm.sin(x) * sm.cos(y) - sm.cos(x) * sm.sin(y)) * sm.cos(y) / (sm.cos(y) * (x - y)),
    ),
}


WRAPPED = {
    "plain": lambda form: form,
    "in sinh": sm.sinh,
    "in a square root": lambda form: sm.sqrt(sm.Abs(form)),
    "guarded": lambda form: sm.Piecewise((form, sm.Abs(x) > sm.Float(1e-3)), (x / 2, True)),
    "guarded, outer": lambda form: sm.Piecewise((form * y + 1, sm.Abs(x) > sm.Float(1e-7)), (y, True)),
    "divided": lambda form: form / (2 + sm.cos(y)),
    # With more than two sums, expressions were not compared: sin(x)**2/x**2 became (1 - cos(x)**2)/x**2, 0 at 1e-8.
    "times sums": lambda form: form * (1 + y) * (2 + y) * (3 + y),
    "among sums": lambda form: (form * (1 + y) + 2) * sm.sin(y + 2) * (3 + y),
    "in a quotient": lambda form: 1 / (2 + form * form),
}


def _nodes(*expressions: sm.Expr) -> list[Node]:
    graph = Graph()
    leaves = {x: graph.input("q", 0), y: graph.input("q", 1), k: graph.input("p", 0)}
    lowering = Lowering(graph, leaves)
    return [lowering.lower(e) for e in expressions]


def _value(node: Node, state: tuple[float, float, float], digits: int = 0) -> float | None:
    values = {"q": list(state[:2]), "p": [state[2]]}
    try:
        if digits:
            with mpmath.workdps(digits):
                exact = {name: [mpmath.mpf(v) for v in given] for name, given in values.items()}
                return evaluate([node], exact, mpmath_context(digits))[0]
        found = evaluate([node], values)[0]
    except (ZeroDivisionError, ValueError, OverflowError):
        return None
    return float(found) if isinstance(found, (int, float)) and math.isfinite(found) else None


def _states() -> list[tuple[float, float, float]]:
    return [(a, b, c) for a in XS for b, c in ((0.7, 2.0), (0.0, 2.0), (a, 2.0), (0.7, 0.0), (0.7, -a))]


@pytest.mark.parametrize(("family", "wrapped"), share(itertools.product(FAMILIES, WRAPPED), of=4))
def test_the_form_that_comes_first_changes_no_value(family: str, wrapped: str) -> None:
    wrap = WRAPPED[wrapped]
    for first, second in itertools.permutations(FAMILIES[family], 2):
        for companion in (first, wrap(first)):
            nodes = _nodes(companion, wrap(second))
            _, found = Identities(nodes[0].graph).canonical(nodes)
            for state in _states():
                own, exact = _value(nodes[1], state), _value(nodes[1], state, 60)
                if own is None or exact is None:
                    continue
                value = _value(found, state)
                assert value is not None, (first, second, state)
                # Plain sums and products may differ by rounding errors of their largest term.
                scale = 1.0 if wrapped == "plain" and not second.has(sm.Pow) else abs(exact)
                assert abs(value - exact) <= 2 * abs(own - exact) + 16 * EPS * scale, (first, second, state)


def test_the_guarded_quotient_of_the_issue() -> None:
    """Beside its equal, ``(1 - cos x)/sin x`` with a series at x = 0 is exact near 0, and so is the other one."""
    half = sm.sin(x) / (1 + sm.cos(x))
    guarded = sm.Piecewise(((1 - sm.cos(x)) / sm.sin(x), sm.Abs(x) > sm.Float(1e-3)), (x / 2, True))
    for order in ((sm.sinh(half), guarded), (guarded, sm.sinh(half))):
        nodes = _nodes(*order)
        found = Identities(nodes[0].graph).canonical(nodes)
        for a in XS:
            for node, expression in zip(found, order, strict=True):
                with mpmath.workdps(50):
                    exact = mpmath.tan(mpmath.mpf(a) / 2)
                    exact = mpmath.sinh(exact) if expression.has(sm.sinh) else exact
                if a == math.pi:
                    continue
                error = abs(_value(node, (a, 0.7, 2.0)) - exact)
                # The series has an error of x^3/24, the quotient above it of eps/x^2.
                allowed = 1e-14 * abs(exact) if expression.has(sm.sinh) else abs(exact) * max(a**2 / 10, 1e-9)
                assert error <= allowed, (expression, a)
