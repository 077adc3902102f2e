"""States in models with contacts and events: rates with contact forces, resets, impacts."""

from __future__ import annotations

import numpy as np
import pytest
import sympy.physics.mechanics as me
from messages import raises
from numpy.testing import assert_allclose, assert_array_equal
from state_models import SLIDING, point_mass, ticking, worn_block
from tolerances import EVENT_ROUNDING

import kanegen as kg


def test_wear_reads_the_normal_force_of_a_sliding_contact() -> None:
    """The block slides v0^2 / (2 mu g) and then sticks; wear is the work of m g over this distance times a factor."""
    m, g, mu, wear = SLIDING.values()
    solver, v0 = kg.build(worn_block()), 1.5
    solution = solver.integrate((0.0, 2.0), [0.0, 0.0], [v0, 0.0], s0=[0.0, 0.0], rtol=1e-10, atol=1e-12)
    assert_allclose(solution.q[-1], [v0**2 / (2 * mu * g), 0.0], atol=1e-9)
    assert_allclose(solution.s[-1], [wear * m * g * v0**2 / (2 * mu * g), 0.0], atol=1e-11)
    t = 0.2
    assert_allclose(solution(t)[2][0], wear * m * g * (v0 * t - mu * g * t**2 / 2), atol=1e-10)


def test_contacts_give_the_rates_with_contact_forces() -> None:
    m, g, _, wear = SLIDING.values()
    solver = kg.build(worn_block())
    contacts = solver.contacts(0.0, [0.0, 0.0], [1.0, 0.0], s=[0.0, 0.0])
    assert contacts["floor"].mode == "slip"
    assert_allclose(contacts.sdot, [wear * m * g, 0.0], atol=1e-12)
    open_rates = solver.rhs(0.0, [0.0, 0.0], [1.0, 0.0], s=[0.0, 0.0])[2]
    assert_allclose(open_rates, [0.0, -g], atol=1e-12)


def test_impulses_leave_the_states_unchanged() -> None:
    """The block falls: z integrates the acceleration of the fall, but not the jump of the speed at the impact."""
    g, height = SLIDING["g"], 0.5
    solver = kg.build(worn_block())
    solution = solver.integrate((0.0, 1.0), [0.0, height], [0.0, 0.0], s0=[0.0, 0.0], rtol=1e-10, atol=1e-12)
    impact = next(event for event in solution.events if event.kind == "impact")
    assert_array_equal(impact.s_before, impact.s_after)
    assert impact.jumps
    assert_allclose(impact.t, np.sqrt(2 * height / g), rtol=1e-10)
    assert_allclose(solution.s[-1, 1], -np.sqrt(2 * g * height), rtol=1e-9)


@pytest.mark.parametrize("method", ["dopri5", "dop853", "rodas"])
def test_events_reset_states(method: str) -> None:
    solver = kg.build(ticking(), functions="all")
    tolerances = {"rtol": 1e-9, "atol": 1e-11}
    solution = solver.integrate((0.0, 3.5), [0.0], [0.0], s0=[0.25, 0.0], method=method, **tolerances)
    assert_allclose([event.t for event in solution.events], [0.75, 1.75, 2.75], rtol=EVENT_ROUNDING)
    assert all(event.jumps and event.kind == "user" for event in solution.events)
    for count, event in enumerate(solution.events):
        assert_allclose(event.s_before, [1.0, count], atol=1e-11)
        assert_allclose(event.s_after, [0.0, count + 1], atol=1e-11)
        assert_array_equal(event.u_before, event.u_after)
    assert_allclose(solution.s[-1], [0.75, 3.0], atol=1e-10)
    # v' = z / m: the integral of the sawtooth over the ticks.
    impulse = (1 - 0.25**2) / 2 + 2 * 0.5 + 0.75**2 / 2
    assert_allclose(solution.u[-1], [impulse / 2.0], atol=1e-9)
    twice = solution.t[:-1][np.diff(solution.t) == 0.0]
    assert_allclose(twice, [0.75, 1.75, 2.75], rtol=EVENT_ROUNDING)
    assert_allclose(solution(0.75 + 1e-9)[2], [0.0, 1.0], atol=1e-8)


def test_resets_of_simultaneous_events_follow_one_another() -> None:
    z, n = me.dynamicsymbols("z n")
    first = kg.Event("first", z - 1, direction=1, reset={z: 0, n: n + 1})
    second = kg.Event("second", z - 1, direction=1, reset={n: 10 * n}, terminal=True)
    solution = kg.build(ticking(events=[first, second])).integrate((0.0, 3.0), [0.0], [0.0], s0=[0.0, 2.0])
    assert solution.status.value == "terminal event"
    assert_allclose(solution.s[-1], [0.0, 30.0], atol=1e-9)
    assert_allclose(solution.last[0], 1.0, rtol=EVENT_ROUNDING)


def test_a_reset_changes_the_modes_of_contacts() -> None:
    """The force that presses the block to the floor is a state; the event removes it, so that the block lifts off."""
    x, a = me.dynamicsymbols("x a")
    model = point_mass(
        "pressed",
        1 - a,
        contacts=[kg.Unilateral(x, name="floor")],
        states={a: 0},
        events=[kg.Event("release", me.dynamicsymbols._t - 0.5, reset={a: 0})],
        parameters={"m": 1.0},
    )
    solution = kg.build(model).integrate((0.0, 1.5), [0.0], [0.0], s0=[3.0])
    assert [event.kind for event in solution.events] == ["user", "opens"]
    assert_allclose(solution.q[-1], [0.5], rtol=1e-9)


def test_what_does_not_go_together_is_named() -> None:
    z, other = me.dynamicsymbols("z other")
    with raises(kg.ModelError, "tick", "other", "z, n"):
        ticking(events=[kg.Event("tick", z - 1, reset={other: 0})])
    with raises(kg.SolveError, "backwards", "tick"):
        kg.build(ticking()).integrate((1.0, 0.0), [0.0], [0.0], s0=[0.5, 0.0])
    with raises(kg.BuildError, "events", "momentum"):
        kg.build(ticking(), form="momentum")
