"""SymPy in and out: values are kept, nodes do not depend on the hash seed, and errors name what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys

import mpmath
import pytest
import sympy as sm
from graph_trees import (
    DIGITS,
    N_P,
    N_Q,
    in_mpmath,
    in_sympy,
    is_well_conditioned,
    numbers,
    p_symbols,
    q_symbols,
    trees,
    value,
)
from hypothesis import assume, given
from messages import raises, says
from sympy.codegen.cfunctions import Cbrt, hypot
from sympy.physics.mechanics import dynamicsymbols
from tolerances import GRAPH_EXACT, GRAPH_FOLDED, GRAPH_ILL_CONDITIONED

from kanegen.errors import DerivationError
from kanegen.graph import (
    Function,
    Graph,
    Lowering,
    Spline,
    evaluate,
    mpmath_context,
    reachable,
    to_sympy,
    to_sympy_cse,
)

q1, q2, u1 = dynamicsymbols("q1 q2 u1", real=True)
m, l = sm.symbols("m l", positive=True)
t = dynamicsymbols._t


@pytest.fixture
def lowering() -> Lowering:
    graph = Graph()
    named = {("q", 0): q1, ("q", 1): q2, ("u", 0): u1, ("w", 0): q1.diff(t), ("p", 0): m, ("p", 1): l}
    symbols = {expr: graph.input(*where) for where, expr in named.items()}
    return Lowering(graph, {**symbols, t: graph.input("t", 0)})


NAMES = {
    **{("q", i): s for i, s in enumerate(q_symbols)},
    **{("p", i): s for i, s in enumerate(p_symbols)},
}


def generic(graph: Graph) -> Lowering:
    return Lowering(graph, {symbol: graph.input(*where) for where, symbol in NAMES.items()})


@given(trees(), numbers(N_Q), numbers(N_P))
def test_lowering_and_display_keep_the_value(tree, q, p):
    assume(is_well_conditioned(tree, q, p, GRAPH_ILL_CONDITIONED))
    graph = Graph()
    expression = in_sympy(tree)
    assume(not expression.has(sm.nan, sm.zoo, sm.oo, sm.I))
    node = generic(graph).lower(expression)
    (shown,) = to_sympy([node], NAMES)
    again = generic(graph).lower(shown)
    replacements, (short,) = to_sympy_cse([node], NAMES)
    for symbol, meaning in reversed(replacements):
        short = short.xreplace({symbol: meaning})
    unfolded = generic(graph).lower(short)
    with mpmath.workdps(DIGITS):
        values = {"q": in_mpmath(q), "p": in_mpmath(p)}
        expected = value(tree, values["q"], values["p"])
        folded = any(isinstance(n.payload, float) for n in reachable([node]))
        tolerance = GRAPH_FOLDED if folded else GRAPH_EXACT * 1e10
        for found in evaluate([node, again, unfolded], values, mpmath_context(DIGITS)):
            assert abs(found - expected) <= tolerance * max(1, abs(expected))


SCALARS = [
    m * l**2 / q2 * sm.cos(q1) / 3,
    (q1**2 + l**2) ** sm.Rational(-3, 2),
    q2 ** sm.Rational(5, 2),
    q2**sm.pi,
    m**q1,
    q2**2.0,
    q2**0.5,
    (q1 + 2) ** sm.Rational(1, 3),
    Cbrt(q2),
    hypot(q1, q2),
    sm.Max(q1, m, 1),
    sm.Min(q1, q2, m),
    sm.sec(q1),
    sm.csc(q1),
    sm.cot(q1),
    sm.sech(q1),
    sm.csch(q1),
    sm.coth(q1),
    sm.asec(q2 + 1),
    sm.acsc(q2 + 1),
    sm.acot(q1),
    sm.asech(q1),
    sm.acsch(q1),
    sm.acoth(q2 + 1),
    sm.asinh(q1),
    sm.acosh(q2 + 1),
    sm.atanh(q1),
    sm.log(q2, 10),
    sm.log(q2, m, evaluate=False),
    sm.exp(-q1),
    sm.erf(q1),
    sm.atan2(q1, -q2),
    sm.Mod(q2, q1),
    sm.frac(q2),
    sm.floor(q2 * 3),
    sm.ceiling(q2 * 3),
    sm.Abs(q1 - q2),
    sm.sign(q1 - q2),
    sm.sign(q2),
    sm.Heaviside(q1 - q2),
    sm.Heaviside(q2),
    sm.Piecewise((q1, q1 < q2), (m, True)),
    sm.E * q1 + sm.pi,
    sm.Piecewise((q1, sm.And(q1 < 0, q2 > m)), (m, sm.Or(q1 >= 1, sm.Ne(q2, 1))), (l, True)),
    sm.GoldenRatio * q1,
    sm.Piecewise((q1, q1 > m), (q2, q1 <= m)),
    sm.Piecewise((1, sm.Not(sm.Eq(q1, q2)) & (q1 > 0)), (2, True)),
    sm.UnevaluatedExpr(q1 + m) * 2,
    sm.Mul(sm.Float(0.1), q1) + sm.Rational(1, 7),
    q1 - q2 - m - l + 4,
    u1 + t,
    sm.Add(q1, q1, evaluate=False),
    sm.re(q1) + sm.im(u1),
    sm.conjugate(m),
    q1.diff(t) * 2,
]
POINT = {q1: 0.3, q2: 1.7, u1: -0.9, q1.diff(t): 2.5, m: 1.1, l: 0.8, t: 0.6}


@pytest.mark.parametrize("expression", SCALARS, ids=str)
def test_every_kind_of_expression(lowering, expression):
    node = lowering.lower(expression)
    values = {"q": [0.3, 1.7], "u": [-0.9], "w": [2.5], "p": [1.1, 0.8], "t": [0.6]}
    exact = sm.sympify(expression).xreplace({q1.diff(t): sm.Float(2.5)})
    exact = exact.xreplace({s: sm.Float(v) for s, v in POINT.items()})
    expected = sm.lambdify([], exact, [{"Cbrt": mpmath.cbrt}, "mpmath"])()
    assert evaluate([node], values)[0] == pytest.approx(float(expected), rel=1e-13)


def test_equal_expressions_are_one_node(lowering):
    assert lowering.lower(sm.sin(q1 - q2)) is lowering.lower(-sm.sin(q2 - q1))
    assert lowering.lower(m * q1 + l) is lowering.lower(l + q1 * m)
    assert lowering.lower(q1.diff(t)) is lowering.graph.input("w", 0)
    assert lowering.lower(3) is lowering.graph.const(3)


def test_half_integer_powers_need_one_root_and_no_pow(lowering):
    node = lowering.lower((q1**2 + l**2) ** sm.Rational(-3, 2))
    assert sorted(n.op for n in reachable([node]) if n.op not in ("input", "const")) == sorted(
        ["mul", "mul", "add", "sqrt", "mul", "div"]
    )


def test_functions_and_splines_become_calls(lowering):
    spline = Spline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])
    force = Function("force", 2, python=lambda x, v: x * v, c="x1*x2")
    node = lowering.lower(2 * spline(q1) + force(q2, u1))
    assert {n.payload for n in reachable([node]) if n.op == "call"} == {spline, force}
    (found,) = evaluate([node], {"q": [0.5, 3.0], "u": [2.0]})
    assert found == pytest.approx(2 * spline.python(0.5) + 6.0)
    (shown,) = to_sympy([node], {("q", 0): q1, ("q", 1): q2, ("u", 0): u1})
    assert lowering.lower(shown) is node


def test_expressions_deeper_than_the_recursion_limit(lowering):
    expression = q1
    for _ in range(3000):
        expression = sm.Add(sm.Pow(expression, 2, evaluate=False), -1, evaluate=False)
    assert lowering.lower(expression).op == "sub"


unknown = sm.Symbol("k")
ERRORS = {
    "unknown symbol": (m * (unknown + 1), ("k", "m*(k + 1)")),
    "other assumptions": (
        sm.Symbol("m") * q1,
        ("m", "positive=True"),
    ),
    "misspelt": (sm.Symbol("q11") + m, ("q11", "q1(t)")),
    "unknown derivative": (q1.diff(t, 2) * m, ("Derivative(q1(t), (t, 2))",)),
    "unknown function of time": (dynamicsymbols("f") + m, ("f(t)",)),
    "no counterpart in C": (
        sm.gamma(q1) * m,
        ("gamma", "C99", "kg.Function", "m*gamma(q1(t))"),
    ),
    "open Piecewise": (
        sm.Piecewise((q1, q1 < m), (m, q1 > 3)),
        ("conditions", "True"),
    ),
    "complex": (sm.I * q1, ("I", "real")),
    "infinite": (sm.Max(q1, sm.oo, evaluate=False), ("oo", "finite")),
    "nan": (sm.nan, ("nan", "finite")),
    "zero denominator": (q1 / (sm.UnevaluatedExpr(m) - m), ("zero", "q1")),
    "not an expression": ("text", ("'text'", "SymPy")),
}


@pytest.mark.parametrize("case", sorted(ERRORS))
def test_error_names_what_was_found_and_where(lowering, case):
    expression, names = ERRORS[case]
    with raises(DerivationError, *names):
        lowering.lower(expression)


def test_a_failed_lowering_leaves_the_next_one_alone(lowering):
    with pytest.raises(DerivationError):
        lowering.lower(sm.sin(unknown))
    assert lowering.lower(sm.sin(q1)).op == "sin"


def test_large_expressions_are_quoted_in_part(lowering):
    swollen = sum(sm.sin(k * q1) * sm.cos(k * q2) for k in range(1, 200)) + m * unknown
    with pytest.raises(DerivationError) as caught:
        lowering.lower(swollen)
    says(caught.value, "k", "k*m")
    assert len(str(caught.value)) < 300


def test_cse_symbols_avoid_those_of_the_user():
    graph = Graph()
    taken = sm.Symbol("x0")
    a, b = graph.input("q", 0), graph.input("p", 0)
    shared = a * graph.apply("sin", b)
    roots = [graph.apply("exp", shared), graph.apply("cos", shared)]
    replacements, expressions = to_sympy_cse(roots, {("q", 0): taken, ("p", 0): dynamicsymbols("x1")})
    assert [symbol.name for symbol, _ in replacements] == ["x2"]
    assert [e.func for e in expressions] == [sm.exp, sm.cos]


def test_conditions_and_inputs_without_names_are_shown():
    graph = Graph()
    a, b = graph.input("q", 0), graph.input("c", 1)
    condition = graph.apply("and", graph.apply("lt", a, b), a)
    (value, number) = to_sympy([graph.select(condition, a, b), graph.apply("lt", a, b) + 1], {("q", 0): q1})
    unnamed = sm.Symbol("c[1]", real=True)
    assert value == sm.Piecewise((q1, (q1 < unnamed) & sm.Ne(q1, 0)), (unnamed, True))
    assert number.subs({q1: 0, unnamed: 1}) == 2


SCRIPT = """
import sympy as sm
from sympy.physics.mechanics import dynamicsymbols
from kanegen.graph import Graph, Lowering, Tangent, gradient, to_sympy_cse
q, p, graph = dynamicsymbols("q:5"), sm.symbols("m k l g"), Graph()
names = {**{("q", i): s for i, s in enumerate(q)}, **{("p", i): s for i, s in enumerate(p)}}
lowering = Lowering(graph, {s: graph.input(*where) for where, s in names.items()})
m, k, l, g = p
e = sum(m * k * q[i] * sm.sin(q[i] - q[(i + 1) % 5]) ** 2 / (l * q[i - 1]) for i in range(5)) + g * l
inside = sm.And(q[0] < m, q[1] > k, q[3] < l)
e += sm.Max(q[0], m, q[1], k) * sm.Piecewise((q[2], inside), (q[4], True)) + (m + g + q[0]) ** 3
node = lowering.lower(e)
Tangent(graph, {graph.input("q", i): graph.input("u", i) for i in range(5)})(node)
gradient([node], [graph.one], [graph.input("q", i) for i in range(5)])
print(graph.nodes, to_sympy_cse([node], names))
"""


def test_nodes_do_not_depend_on_the_hash_seed():
    def nodes(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    first = nodes("0")
    assert "sin" in first
    assert nodes("1") == nodes("4242") == first
