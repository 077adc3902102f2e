"""Contacts in C: guards of the modes, and the modes that guards announce when they fall."""

from __future__ import annotations

import numpy as np
import pytest
from contact_rows import (
    CLOSED,
    GUARDS,
    IMPACT,
    LOAD,
    OPEN,
    PROPOSE,
    RHS,
    SETTLE,
    SLIP,
    STABILIZED,
    STICK,
    Case,
    Contact,
    Runtime,
)
from tolerances import CONTACT_SOLVE

G = 9.81


def test_guards_are_positive_after_settling_and_say_what_they_mean(runtime: Runtime) -> None:
    contact = Contact([0.0, 1.0], ([1.0, 0.0],), mu=(0.5, 0.4))
    case = Case(np.eye(2), [1.0, -G], (contact,))
    stuck = runtime(case, SETTLE | RHS | GUARDS)
    assert stuck.guards[0] == pytest.approx([G, 1.0, 0.5 * G - 1.0, 1.0], rel=CONTACT_SOLVE)
    slipping = runtime(case.at(u=[0.3, 0.0]), SETTLE | RHS | GUARDS)
    assert slipping.guards[0] == pytest.approx([G, 1.0, 0.3, 1.0], rel=CONTACT_SOLVE)
    open_ = runtime(case.at(contacts=(Contact([0.0, 1.0], gap=0.7),)), SETTLE | RHS | GUARDS)
    assert open_.guards[0] == pytest.approx([0.7, 1.0, 1.0, 1.0])
    touching = runtime(case.at(a=[0.0, G]), SETTLE | RHS | GUARDS)
    assert touching.modes == [OPEN]
    assert 0.0 < touching.guards[0, 0] < 1e-9


def test_release_announced_by_a_guard_is_kept(runtime: Runtime) -> None:
    # At the instant of release both modes agree with the forces.
    case = Case(np.eye(1), [0.0], (Contact([1.0]), Contact([1.0], gap=1.0)))
    assert runtime(case, modes=[CLOSED, OPEN], direction=np.zeros((2, 2))).modes == [CLOSED, OPEN]
    released = runtime(case, PROPOSE | SETTLE | RHS, modes=[CLOSED, OPEN], direction=np.zeros((2, 2)), guard=0)
    assert released.modes == [OPEN, OPEN]


@pytest.mark.parametrize("left", [0.0, 1e-7])
@pytest.mark.parametrize("pull", [(0.5, 0.0), (-0.3, 0.4)])
def test_onset_of_slip_announced_by_a_guard(runtime: Runtime, pull: tuple[float, float], left: float) -> None:
    # Sticking may have left a velocity of the size of the error of integration: it does not tell where slip goes.
    contact = Contact(None, ([1.0, 0.0], [0.0, 1.0]), law=LOAD, load=1.0, mu=(0.5, 0.3))
    case = Case(np.eye(2), pull, (contact,), u=[-left * pull[0], left])
    result = runtime(case, PROPOSE | SETTLE | RHS, modes=[STICK], direction=[1, 0], guard=2)
    assert result.modes == [SLIP]
    assert result.direction[0] == pytest.approx(np.array(pull) / 0.5, rel=CONTACT_SOLVE, abs=CONTACT_SOLVE)
    assert result.udot == pytest.approx(np.array(pull) * (1 - 0.6), rel=CONTACT_SOLVE, abs=CONTACT_SOLVE)


def test_end_of_slip_sticks_or_reverses(runtime: Runtime) -> None:
    for pull, mode in ((0.4, STICK), (-0.9, SLIP)):
        case = Case(np.eye(1), [pull], (Contact(None, ([1.0],), law=LOAD, load=1.0, mu=0.5),), u=[1e-13])
        result = runtime(case, PROPOSE | SETTLE | RHS, modes=[SLIP], direction=[1, 0], guard=2)
        assert result.modes == [mode]
        assert result.udot == pytest.approx([0.0 if mode == STICK else pull + 0.5], abs=CONTACT_SOLVE)


@pytest.mark.parametrize("speed", [1e-9, 0.2])
def test_end_of_slip_in_a_plane(runtime: Runtime, speed: float) -> None:
    # Its guard falls where the velocity has turned by a right angle, or counts as rest: then static friction comes
    # first.
    contact = Contact(None, ([1.0, 0.0], [0.0, 1.0]), law=LOAD, load=1.0, mu=(0.5, 0.3))
    case = Case(np.eye(2), [0.4, 0.0], (contact,), u=[0.0, speed / 2])
    result = runtime(case, PROPOSE | SETTLE | RHS, modes=[SLIP], direction=[1, 0], guard=2)
    assert result.modes == [STICK if speed < 1e-8 else SLIP]
    assert result.udot == pytest.approx([0.0, 0.0] if speed < 1e-8 else [0.4, -0.3], abs=CONTACT_SOLVE)


@pytest.mark.parametrize("gap", [-1e-3, -1e-12])
def test_gap_does_not_sink_from_impact_to_impact(runtime: Runtime, gap: float) -> None:
    # The error of the state leaves a gap below zero: its guard starts above zero by less than that.
    contact = Contact([1.0], gap=gap, restitution=0.5)
    case = Case(np.eye(1), [-G], (contact,), u=[-1.0])
    result = runtime(case, IMPACT | SETTLE | GUARDS)
    assert result.modes == [OPEN]
    assert 0.0 < result.guards[0, 0] <= 2e-15


def test_flight_lost_in_rounding_is_rest(runtime: Runtime) -> None:
    contact = Contact([1.0], restitution=0.5)
    assert runtime(Case(np.eye(1), [-G], (contact,), u=[-1e-6]), IMPACT | SETTLE).modes == [OPEN]
    slow = runtime(Case(np.eye(1), [-G], (contact,), u=[-1e-7]), IMPACT | SETTLE)
    assert (slow.modes, slow.u[0]) == ([CLOSED], pytest.approx(0.0, abs=1e-20))
    weightless = runtime(Case(np.eye(1), [0.0], (contact,), u=[-1e-7]), IMPACT | SETTLE)
    assert (weightless.modes, weightless.u[0]) == ([OPEN], pytest.approx(5e-8, rel=CONTACT_SOLVE))


def test_violated_stabilized_gap_stays_violated_when_its_force_vanishes(runtime: Runtime) -> None:
    contact = Contact([1.0], law=STABILIZED, gap=-0.1, target=(2.0,))
    released = runtime(Case(np.eye(1), [2.0], (contact,)), PROPOSE | SETTLE | RHS, modes=[CLOSED], direction=[0, 0])
    assert (released.modes, released.force[0]) == ([1], 0.0)
    resumed = runtime(Case(np.eye(1), [2.0], (contact,)), PROPOSE | SETTLE | RHS, modes=[1], direction=[0, 0], guard=1)
    assert resumed.modes == [CLOSED]


def test_gap_of_a_lasting_contact_is_not_opened_by_rounding(runtime: Runtime) -> None:
    # Its exponential decay ends in rounding, which must not open it again and again.
    contact = Contact([1.0], law=STABILIZED, gap=-1e-13)
    resting = runtime(Case(np.eye(1), [-G], (contact,)), SETTLE | RHS | GUARDS)
    assert resting.modes == [CLOSED]
    assert resting.guards[0, 1] == 1e-13
    above = Contact([1.0], law=STABILIZED, gap=1e-13)
    still = runtime(
        Case(np.eye(1), [-G], (above,)), PROPOSE | SETTLE | GUARDS, modes=[CLOSED], direction=[0, 0], guard=1
    )
    assert still.modes == [CLOSED]
    assert still.guards[0, 1] == pytest.approx(1e-9, rel=1e-3)
