"""The C search for events: none lost, touches, simultaneous ones, surfaces, directions, cost."""

from __future__ import annotations

import event_host as eh
import numpy as np
import pytest
from event_host import EventHost, GuardOf
from hypothesis import given, settings
from hypothesis import strategies as hs
from steppers import FINISHED, METHODS
from tolerances import EVENT_OF_CLOSE_ROOTS, EVENT_ROUNDING, FINE_INTEGRATION

# One step over the whole interval, wherever the events are.
WHOLE = {"first_step": 1.0, "tolerance": 1e-12}


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> EventHost:
    return EventHost(tmp_path_factory.mktemp("events"))


def polynomial(*roots: float, scale: float = 1.0, rule: int = eh.ANY) -> GuardOf:
    return GuardOf(eh.POLYNOMIAL, tuple(scale * np.poly(roots)), rule=rule)


@pytest.mark.parametrize("method", METHODS)
def test_crossings_have_the_accuracy_of_the_integration(host: EventHost, method: str) -> None:
    guard = GuardOf(eh.COMPONENT)
    run = host.find([guard], 20.0, y0=(1.0, 0.0), problem=eh.OSCILLATOR, method=method, tolerance=1e-9, step=0.01)
    assert run.status == FINISHED
    assert run.t == pytest.approx((np.arange(6) + 0.5) * np.pi, abs=FINE_INTEGRATION)
    assert np.abs(run.g).max() < EVENT_ROUNDING  # the state at the event is on the surface
    assert set(run.kind) == {eh.CROSSING}


def test_event_times_follow_the_tolerance(host: EventHost) -> None:
    run = host.find(
        [GuardOf(eh.COMPONENT)], 100.0, y0=(1.0, 0.0), problem=eh.OSCILLATOR, method="dop853", tolerance=1e-13
    )
    assert run.t == pytest.approx((np.arange(32) + 0.5) * np.pi, rel=1e-12)


@pytest.mark.parametrize("omega", [1.0, 20.0, 400.0])
def test_no_sign_change_is_lost_in_a_step_that_spans_many(host: EventHost, omega: float) -> None:
    run = host.find([GuardOf(eh.SINE, (omega,))], 10.0, first_step=10.0)
    assert run.t == pytest.approx(np.arange(1, int(10 * omega / np.pi) + 1) * np.pi / omega, rel=EVENT_ROUNDING)


@pytest.mark.parametrize("period", [0.25, 0.5, 1.0, 2.0])
def test_periods_that_fit_the_step_are_no_trap(host: EventHost, period: float) -> None:
    run = host.find([GuardOf(eh.SINE, (2 * np.pi / period,))], 3.9, method="rk4", step=1.0)
    expected = np.arange(1, int(3.9 / (period / 2)) + 1) * period / 2
    assert run.t == pytest.approx(expected, rel=EVENT_ROUNDING)


@hs.composite
def spread_roots(draw: hs.DrawFn) -> list[float]:
    """Up to eight roots in and about [0, 1], some of them close to each other."""
    roots = sorted(draw(hs.lists(hs.floats(-0.3, 1.3), min_size=1, max_size=6)))
    roots += [root + 10 ** draw(hs.floats(-3, -1)) for root in roots[: draw(hs.integers(0, 2))]]
    roots.sort()
    return roots


@settings(max_examples=300, deadline=None)
@given(spread_roots(), hs.sampled_from([-1, 0, 1]), hs.floats(-3, 3))
def test_every_root_of_a_polynomial_is_found_once(
    host: EventHost, roots: list[float], rule: int, exponent: float
) -> None:
    """Roots apart from each other and from the ends, by more than the tolerance makes of a double root."""
    inside = [root for root in roots if 0 < root < 1]
    if np.diff([-0.4, *roots, 1.4]).min() < 3e-4 or np.abs(np.subtract.outer([0, 1], roots)).min() < 3e-4:
        return
    run = host.find([polynomial(*roots, scale=10**exponent, rule=rule)], 1.0, **WHOLE)
    rises = [len([other for other in roots if other > root]) % 2 == 0 for root in inside]
    expected = [root for root, up in zip(inside, rises, strict=True) if rule == 0 or up == (rule == 1)]
    assert run.t == pytest.approx(expected, abs=EVENT_OF_CLOSE_ROOTS)
    assert set(run.kind) <= {eh.CROSSING}


def test_a_touch_is_reported_where_any_direction_counts(host: EventHost) -> None:
    run = host.find([polynomial(0.3, 0.3), polynomial(0.6, 0.6, scale=-1.0)], 1.0, **WHOLE)
    assert run.t == pytest.approx([0.3, 0.6], abs=FINE_INTEGRATION)
    assert run.kind == (eh.TOUCH, eh.TOUCH)
    assert run.guard == (0, 1)
    for rule in (eh.FALLING, eh.RISING, eh.CONDITION):
        assert host.find([polynomial(0.3, 0.3, rule=rule)], 1.0, **WHOLE).t.size == 0


def test_a_dip_close_to_zero_is_two_crossings_or_no_event(host: EventHost) -> None:
    deep, missed = (GuardOf(eh.POLYNOMIAL, (1.0, -0.6, 0.09 + d)) for d in (-1e-8, 1e-8))
    run = host.find([deep], 1.0, **WHOLE)
    assert run.t == pytest.approx([0.2999, 0.3001], abs=FINE_INTEGRATION)
    assert run.kind == (eh.CROSSING, eh.CROSSING)
    assert host.find([missed], 1.0, **WHOLE).t.size == 0


def test_simultaneous_events_are_reported_together(host: EventHost) -> None:
    guards = [GuardOf(eh.COMPONENT), GuardOf(eh.PRODUCT), polynomial(0.0), GuardOf(eh.COMPONENT, (0.5,))]
    run = host.find(guards, 2.0, y0=(1.0, 0.0), problem=eh.OSCILLATOR)
    assert run.guard == (3, 0, 1, 2)
    assert run.t == pytest.approx([np.pi / 3, *[np.pi / 2] * 3], abs=FINE_INTEGRATION)
    assert len(set(run.t[1:])) == 1


@pytest.mark.parametrize("scale", [1.0, -1.0])
@pytest.mark.parametrize("rule", [eh.FALLING, eh.ANY, eh.RISING])
def test_a_guard_that_leaves_zero_gives_no_event_but_one_that_returns_does(
    host: EventHost, scale: float, rule: int
) -> None:
    falls = scale > 0
    counts = rule == eh.ANY or falls == (rule == eh.FALLING)
    returns = polynomial(0.0, 1e-5, scale=-scale, rule=rule)
    run = host.find([returns], 1.0, **WHOLE)
    assert run.t == pytest.approx([1e-5] if counts else [], rel=EVENT_ROUNDING)
    for leaves in ((0.0, -1.0), (0.0, 0.0, -1.0), (0.0, 0.0, 0.0)):
        assert host.find([polynomial(*leaves, scale=scale, rule=rule)], 1.0, **WHOLE).t.size == 0


@pytest.mark.parametrize(("rule", "half_turns"), [(eh.FALLING, [2, 4]), (eh.RISING, [1, 3]), (eh.ANY, [1, 2, 3, 4])])
@pytest.mark.parametrize("sign", [1, -1])
def test_directions_are_those_of_time_also_backward(
    host: EventHost, rule: int, half_turns: list[int], sign: int
) -> None:
    guard = GuardOf(eh.COMPONENT, component=1, rule=rule)
    run = host.find([guard], sign * 13.0, y0=(1.0, 0.0), problem=eh.OSCILLATOR)
    assert run.t == pytest.approx([sign * n * np.pi for n in half_turns], abs=FINE_INTEGRATION)


def test_a_jump_of_a_guard_is_located(host: EventHost) -> None:
    run = host.find([GuardOf(eh.SIGN, (0.3,))], 1.0)
    assert run.t == pytest.approx([0.3], abs=FINE_INTEGRATION)


def test_a_jump_of_the_state_makes_other_guards_change_their_sign(host: EventHost) -> None:
    guards = [GuardOf(eh.COMPONENT, component=1), GuardOf(eh.COMPONENT, (0.5,)), GuardOf(eh.ZERO)]
    run = host.find(guards, 1.0, action=eh.FLIP)
    assert run.guard == (1, 0)
    assert run.t == pytest.approx([0.5, 0.5], rel=EVENT_ROUNDING)
    assert run.y[:, 1] == pytest.approx([1.0, -1.0])


def test_a_guard_that_is_zero_everywhere_has_no_events(host: EventHost) -> None:
    run = host.find([GuardOf(eh.ZERO), GuardOf(eh.COMPONENT, component=1)], 1.0, y0=(0.0, 0.0))
    assert run.status == FINISHED
    assert run.t.size == 0


def test_cheap_guards_cost_five_values_a_step(host: EventHost) -> None:
    run = host.find([GuardOf(eh.COMPONENT, (2.0,))], 50.0, y0=(1.0, 0.0), problem=eh.OSCILLATOR)
    assert run.t.size == 0
    assert run.guard_evaluations <= 5 * run.statistics.steps + 4  # at the start, and in the first step


@pytest.mark.parametrize("scale", [1.0, -1.0])
@pytest.mark.parametrize("rule", [eh.FALLING, eh.ANY, eh.RISING])
def test_a_touch_at_the_end_of_a_fixed_step_is_no_crossing(host: EventHost, scale: float, rule: int) -> None:
    """Rounding puts the expanded square a little below zero there."""
    for end in np.arange(1, 10) / 10:
        run = host.find([polynomial(end, end, scale=scale, rule=rule)], 1.0, method="rk4", step=0.1)
        assert run.kind == ((eh.TOUCH,) if rule == eh.ANY else ())
        assert run.t == pytest.approx([end] if rule == eh.ANY else [], abs=EVENT_OF_CLOSE_ROOTS)


@pytest.mark.parametrize("t0", [0.0, 1e6, 1.7e9])
@pytest.mark.parametrize("method", METHODS)
def test_a_fast_guard_keeps_its_zeros_at_large_times(host: EventHost, method: str, t0: float) -> None:
    run = host.find([GuardOf(eh.SINE, (100.0,))], t0 + 2.0, t0=t0, method=method, step=0.1)
    numbers = np.arange(np.floor(100.0 * t0 / np.pi) + 1, np.floor(100.0 * (t0 + 2.0) / np.pi) + 1)
    assert run.t == pytest.approx(numbers * np.pi / 100.0, rel=1e-15, abs=1e-12)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-6])
@pytest.mark.parametrize("method", ["dopri5", "dop853", "rodas"])
def test_no_zero_of_a_motion_is_lost_at_loose_tolerances(host: EventHost, method: str, tolerance: float) -> None:
    """A step of dop853 is as long as half a turn: it ends where the next zero is."""
    options = {"y0": (1.0, 0.0), "problem": eh.OSCILLATOR, "method": method, "tolerance": tolerance}
    run = host.find([GuardOf(eh.COMPONENT)], 1000.0, **options)
    assert np.diff(run.t) == pytest.approx(np.pi, abs=10.0 * tolerance)
    assert set(run.kind) == {eh.CROSSING}
