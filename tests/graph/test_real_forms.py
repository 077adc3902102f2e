"""Derivatives of potentials in symbols that SymPy does not know to be real: ``-V.diff(x)`` lowers, at kinks too."""

from __future__ import annotations

import math

import pytest
import sympy as sm
from messages import raises
from sympy.physics.mechanics import dynamicsymbols

from kanegen.errors import DerivationError
from kanegen.graph import Graph, Lowering, evaluate, gradient

x, v = dynamicsymbols("x v")
a = sm.Symbol("a")
TIME = dynamicsymbols._t
STATES = (-1.2, -0.3, 0.0, 0.3, 0.8, math.pi)
A = 0.3

POTENTIALS = (
    sm.Abs(x),
    sm.Abs(sm.sin(x)),
    sm.Abs(x) ** 3,
    sm.Abs(x) ** sm.Rational(3, 2),
    sm.Abs(x - a * sm.sin(x)),
    sm.Abs(x * (1 + x)),
    sm.Abs(sm.exp(x) - 2) * a,
    sm.Abs(sm.Abs(x) - a),
    sm.Abs(sm.tan(x / 3)),  # SymPy expands re(tan(x)): a division by tan(x/3) was left
    a * x * sm.Abs(sm.tan(x / 3)) ** 3,
    sm.Abs(sm.tan(x / 3)) * sm.Abs(sm.atan(x)),
    sm.sqrt(1 + sm.Abs(sm.sqrt(2 + x) - sm.sqrt(2))),
    sm.Abs(sm.log(1 + x**2) * (a + x)),
    sm.re(x) ** 2,
    sm.re(a * x) * sm.im(x) + sm.re(x),
    sm.im(x) ** 2,
    x * sm.conjugate(x),
    sm.sign(x) * x,
    sm.sign(x - a) * (x - a),
    a * sm.sign(sm.sin(x)) * sm.sin(x) * sm.cos(x),
    sm.Heaviside(x - a) * (x - a) ** 2,
    sm.Max(x, 0) ** 2,
)


def _lowered(*expressions: sm.Expr) -> tuple[Graph, list]:
    graph = Graph()
    leaves = {x: graph.input("q", 0), v: graph.input("u", 0), x.diff(TIME): graph.input("w", 0), a: graph.input("p", 0)}
    lowering = Lowering(graph, {**leaves, TIME: graph.input("t", 0)})
    return graph, [lowering.lower(e) for e in expressions]


def _at(node, state: float) -> float:
    values = {"q": [state], "u": [0.7], "w": [0.7], "p": [A], "t": [0.0]}
    return float(evaluate([node], values)[0])


@pytest.mark.parametrize("potential", POTENTIALS, ids=str)
def test_the_derivative_that_sympy_writes_is_that_of_the_graph(potential: sm.Expr) -> None:
    graph, (force, node, q) = _lowered(potential.diff(x), potential, x)
    (slope,) = gradient([node], [graph.one], [q])
    for state in STATES:
        # At a kink, where several slopes are possible, SymPy's sign(0) is 0 and the graph takes one of the branches.
        left, right = (_at(slope, state + h) for h in (-1e-9, 1e-9))
        low, high = min(left, right) - 1e-8, max(left, right) + 1e-8
        assert low <= _at(force, state) <= high, state


@pytest.mark.parametrize("potential", [sm.Abs(x), sm.Abs(sm.sin(x)), sm.re(x) ** 2, sm.sign(x) * x], ids=str)
def test_the_rate_of_a_potential_is_its_force_times_the_speed(potential: sm.Expr) -> None:
    _, (rate, force) = _lowered(potential.diff(TIME), potential.diff(x))
    for state in STATES:
        assert _at(rate, state) == pytest.approx(0.7 * _at(force, state), rel=1e-15, abs=1e-15)


@pytest.mark.parametrize("potential", [sm.sign(x), sm.sign(x) * sm.cos(x), sm.Heaviside(x) * sm.exp(x)], ids=str)
def test_a_step_of_the_potential_is_refused_because_its_force_is_an_impulse(potential: sm.Expr) -> None:
    with raises(DerivationError, "DiracDelta", "impulses="):
        _lowered(potential.diff(x))
