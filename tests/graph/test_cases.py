"""Expressions with cases: whether they vanish, or are constant in a variable, in all of them."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm

import kanegen as kg
from kanegen.graph import Graph, Lowering, gradient
from kanegen.graph.cases import jump_with, may_differ_elsewhere
from kanegen.graph.piecewise import cover_of, spline_of

x, y = sm.symbols("x y")
STEPS = kg.Spline(np.arange(5.0), [0.0, 0.0, 1.0, 1.0, 3.0], kind="linear", name="steps")


def lowered(expression: sm.Expr) -> tuple[Graph, object]:
    graph = Graph()
    symbols = {x: graph.input("q", 0), y: graph.input("q", 1)}
    return graph, Lowering(graph, symbols).lower(expression)


@pytest.mark.parametrize(
    ("expression", "differs"),
    [
        (sm.sin(x) ** 2 + sm.cos(x) ** 2 - 1, False),
        (sm.Max(x - 2, 0), True),
        (sm.Piecewise((y, x > 2), (0, True)), True),
        (STEPS(x), True),
        (sm.Max(x, 0) * (sm.sin(y) ** 2 + sm.cos(y) ** 2 - 1), False),
        (STEPS(x) - (sm.sin(y) ** 2 + sm.cos(y) ** 2) * STEPS(x), False),
    ],
)
def test_expressions_that_are_zero_at_some_states_can_differ_at_others(expression: sm.Expr, differs: bool) -> None:
    assert may_differ_elsewhere([lowered(expression)[1]]) == differs


@pytest.mark.parametrize(
    ("expression", "jumps"),
    [
        (3 * x + sm.Max(y, 0), False),
        (sm.Abs(x), True),
        (sm.Max(x, y), True),
        (x * sm.Piecewise((1, y > 2), (2, True)), False),
        (y * sm.Piecewise((1, x > 2), (2, True)), True),
        (sm.floor(x) * y, True),
        (STEPS(x), True),
    ],
)
def test_slopes_of_kinked_expressions_jump_with_their_variable(expression: sm.Expr, jumps: bool) -> None:
    graph, node = lowered(expression)
    variable = graph.input("q", 0)
    slopes = gradient([node], [graph.one], [variable]) if expression.has(sm.Abs, sm.Max) else [node]
    assert jump_with(slopes, [variable]) == jumps


@pytest.mark.parametrize(("jump", "fits"), [(1e-8, False), (1e-10, True)])
def test_polynomials_that_meet_but_for_rounding_are_a_spline(jump: float, fits: bool) -> None:
    pieces = sm.Piecewise((x, (x >= 0) & (x < 1)), (1 + jump + 2 * (x - 1), (x >= 1) & (x <= 2)))
    cover = cover_of(pieces)
    assert cover is not None
    assert (spline_of(pieces, cover) is not None) == fits
