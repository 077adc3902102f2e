"""Which functions of time switch, at which levels, and how they depend on time."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm

import kanegen as kg
from kanegen.codes import SwitchShape
from kanegen.graph import Graph
from kanegen.graph.display import to_sympy
from kanegen.graph.knots import notable_knots
from kanegen.graph.lower import Lowering
from kanegen.graph.switches import Switch, switches

t, x, p, w = sm.symbols("t x p w")
AFFINE, PIECES, CURVED = SwitchShape


def found_in(*expressions: sm.Expr) -> tuple[Switch, ...]:
    graph = Graph()
    places = {t: ("t", 0), x: ("q", 0), p: ("p", 0), w: ("p", 1)}
    lowering = Lowering(graph, {symbol: graph.input(*place) for symbol, place in places.items()})
    return switches([lowering.lower(e) for e in expressions], graph.input("t", 0))


def summary(*expressions: sm.Expr) -> list[tuple[str, tuple[float, ...], SwitchShape]]:
    """The argument as text (q[0] is x), the levels and the shape of each switch."""
    return [(text(switch.argument), switch.levels, switch.shape) for switch in found_in(*expressions)]


def text(node: object) -> str:
    return str(to_sympy([node], {("t", 0): t, ("p", 0): p, ("p", 1): w})[0])


STEP = sm.Piecewise((1, t < 5), (0, True))


@pytest.mark.parametrize(
    "expression",
    [STEP, sm.Heaviside(t - 5), sm.sign(10 - 2 * t), sm.Max(0, t - 5), sm.Min(5, t), sm.Abs(3 * (t - 5)), x * STEP],
    ids=str,
)
def test_numbers_are_levels_of_time(expression: sm.Expr) -> None:
    assert summary(expression) == [("t", (5.0,), AFFINE)]


def test_levels_of_one_function_are_collected() -> None:
    pulse = sm.Piecewise((0, t < 4), (1, t <= 6), (0, True))
    assert summary(pulse, sm.Max(0, 1 - sm.Abs(t - 5) / 2)) == [
        ("t", (4.0, 5.0, 6.0), AFFINE),
        ("Abs(t - 5)", (2.0,), PIECES),
    ]


def test_parameters_as_times() -> None:
    assert summary(sm.Piecewise((1, t < p), (0, True))) == [("-p + t", (0.0,), AFFINE)]
    assert summary(sm.Heaviside(w * t - p)) == [("-p + t*w", (0.0,), AFFINE)]
    assert summary(sm.Piecewise((1, p < w), (t, True))) == []  # decided once


def test_conditions_that_depend_on_the_state_are_events() -> None:
    assert summary(sm.Piecewise((1, x < t), (0, True))) == []
    assert summary(sm.Max(0, t - x)) == []
    nested = sm.Piecewise((sm.Piecewise((1, t < 2), (2, True)), x < 0), (sm.Piecewise((3, t < 7), (4, True)), True))
    assert summary(nested) == [("t", (2.0, 7.0), AFFINE)]
    both = sm.Piecewise((1, sm.And(x < 1, t > 3, sm.Or(t < 4, sm.Not(t < 6)))), (0, True))
    assert summary(both) == [("t", (3.0, 4.0, 6.0), AFFINE)]


def test_floors_and_sawtooth_waves() -> None:
    assert summary(sm.floor(t / p)) == [("t/p", (), AFFINE)]
    assert summary(sm.ceiling(3 * t - 1)) == [("3*t", (), AFFINE)]
    inside, outside = summary(sm.Piecewise((1, sm.Mod(t, p) < w), (0, True)))
    assert inside == ("t/p", (), AFFINE)
    assert outside[1:] == ((0.0,), PIECES)
    odd = sm.Piecewise((1, sm.Eq(sm.Mod(sm.floor(t), 2), 1)), (0, True))
    assert summary(odd) == [("t", (), AFFINE)]  # floor(t)/2 only changes where floor(t) does


def test_curved_functions_with_the_rate_of_their_fastest_angle() -> None:
    (switch,) = found_in(sm.Piecewise((1, sm.sin(3 * t) + sm.cos(w * t) > p), (0, True)))
    assert switch.shape is CURVED
    assert text(switch.rate) == "Max(3, Abs(w))"
    (switch,) = found_in(sm.Max(0, t**2 - p))
    assert switch.shape is CURVED
    assert switch.rate.is_zero


def test_roots_and_angles() -> None:
    assert summary(sm.sqrt((t - 5) ** 2)) == [("t", (5.0,), AFFINE)]
    assert summary((t - 5) ** sm.Rational(1, 3)) == [("t", (5.0,), AFFINE)]
    assert summary(sm.sqrt(1 + t**2)) == []
    assert summary(sm.atan2(t - 2, p)) == [("t", (2.0,), AFFINE)]


def test_functions_of_the_user() -> None:
    """What they do in time is not known, but what is done with their values is."""
    f = kg.Function("f", 1, lambda x: x, "x")
    assert summary(f(t)) == []
    ((_, levels, shape),) = summary(sm.Max(f(t), 1))
    assert (levels, shape) == ((1.0,), CURVED)


def test_what_switches_inside_of_another_one_comes_first() -> None:
    arguments = [switch.argument.index for switch in found_in(sm.Max(0, 1 - sm.Abs(2 - sm.Abs(sm.Mod(t, p) - w))))]
    assert len(arguments) == 4
    assert arguments == sorted(arguments)


@pytest.mark.parametrize("kind", ["linear", "cubic"])
def test_splines_of_time(kind: str) -> None:
    knots = [0.0, 5.0, 5.001, 6.999, 7.0, 25.0]
    pulse = kg.Spline(knots, [0, 0, 1, 1, 0, 0], kind="linear")
    assert summary(pulse(t)) == [("t", (5.0, 5.001, 6.999, 7.0), AFFINE)]
    assert summary(pulse(2 * t - 1)) == [("t", (3.0, 3.0005, 3.9995, 4.0), AFFINE)]
    assert summary(pulse(x)) == []
    smooth = kg.Spline(np.linspace(0, 1, 50), np.linspace(0, 1, 50) ** 2, kind=kind)
    assert summary(smooth(t)) == []


# -- breakpoints ---------------------------------------------------------------------------------------------


def knots_of(x: object, y: object, kind: str) -> list[int]:
    spline = kg.Spline(x, y, kind=kind)
    return notable_knots(spline.breakpoints, spline.coefficients)


@pytest.mark.parametrize("kind", ["natural", "cubic", "linear"])
def test_a_long_table_of_a_smooth_function_has_two_notable_points_in_a_period(kind: str) -> None:
    times = np.linspace(0.0, 100.0, 100_001)
    found = knots_of(times, np.sin(2 * np.pi * times), kind)
    assert np.allclose(times[found], 0.25 + 0.5 * np.arange(200), atol=2e-3)


@pytest.mark.parametrize("kind", ["natural", "linear"])
def test_a_pulse_is_noted_however_finely_it_is_sampled(kind: str) -> None:
    """Its rise has no kink to speak of, but its top is a turning point."""
    for n in (2501, 50_001):
        times = np.linspace(0.0, 25.0, n)
        pulse = np.where(np.abs(times - 6.0) < 1.0, np.cos(np.pi / 2 * (times - 6.0)) ** 2, 0.0)
        found = times[knots_of(times, pulse, kind)]
        assert np.any(np.abs(found - 6.0) < 1e-9)
        assert found.size < 12


def test_noise_below_the_threshold_is_not_noted() -> None:
    times = np.linspace(0.0, 25.0, 10_001)
    noise = 2e-4 * np.random.default_rng(1).uniform(-1.0, 1.0, times.size)
    assert len(knots_of(times, times + noise, "linear")) == 0
    assert len(knots_of(times, np.zeros_like(times), "linear")) == 0


@pytest.mark.parametrize(("change", "found"), [(0.03, [1]), (-0.03, [1]), (0.01, [])])
def test_a_change_of_slope_counts_from_a_hundredth_of_the_range(change: float, found: list[int]) -> None:
    """Beyond the kink the first piece would end half a change of slope away from the second one."""
    assert notable_knots((0.0, 1.0, 2.0), ((0.0, 1.0), (1.0, 1.0 + change))) == found


def test_pieces_that_jump() -> None:
    """The second derivative of a linear spline, and pieces that do not meet."""
    assert notable_knots((0.0, 1.0, 2.0, 3.0), ((0.0,), (1.0,), (1.0,))) == [1]
