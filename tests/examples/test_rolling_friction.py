"""The disk on a rough plane against Newton's and Euler's equations, and against the model that always rolls."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from oracle_rolling_disk import Onset, forces, onset_of_rolling, rolled, slip_velocity
from systems import example, solver_for
from tolerances import CONTACT_FORCE, SWITCH_STATE, SWITCH_TIME

import kanegen as kg

MU = 0.4
T_END = 3.0
PLANE = "plane"


@cache
def parameters() -> dict[str, float]:
    return {**example("rolling_disk").DEFAULTS, "mu": MU}


@cache
def reference() -> Onset:
    start = example("rolling_disk").INITIAL_SLIPPING
    return onset_of_rolling(np.array(start["q"]), np.array(start["u"]), parameters(), T_END)


@cache
def run() -> kg.Solution:
    start = example("rolling_disk").INITIAL_SLIPPING
    solver = solver_for("rolling_disk", friction=MU)
    return solver.integrate((0.0, T_END), start["q"], start["u"], rtol=1e-11, atol=1e-13)


def states(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random states in contact that slip."""
    rng, R = np.random.default_rng(5), parameters()["R"]
    found = []
    for _ in range(count):
        q, u = rng.uniform(-1.0, 1.0, 6), rng.uniform(-3.0, 3.0, 6)
        q[0] = rng.uniform(0.5, 2.6)
        q[5], u[5] = R * np.sin(q[0]), R * np.cos(q[0]) * u[0]
        found.append((q, u))
    return found


def test_it_starts_slipping_and_ends_rolling() -> None:
    onset, solution = reference(), run()
    (event,) = solution.events
    assert (event.name, event.kind) == (PLANE, "sticks")
    assert event.t == pytest.approx(onset.t, abs=SWITCH_TIME)
    np.testing.assert_allclose(event.q, onset.q, rtol=0.0, atol=SWITCH_STATE)
    np.testing.assert_allclose(event.u_after, onset.u, rtol=0.0, atol=SWITCH_STATE)
    assert [phase.modes[PLANE] for phase in solution.contacts.phases] == ["slip", "stick"]


def test_where_it_has_rolled_to() -> None:
    expected = rolled(reference(), parameters(), T_END)
    np.testing.assert_allclose(run().q[-1], expected[:6], rtol=0.0, atol=SWITCH_STATE)
    np.testing.assert_allclose(run().u[-1], expected[6:], rtol=0.0, atol=SWITCH_STATE)


def test_it_goes_on_as_the_disk_that_always_rolls() -> None:
    onset = reference()
    solution = solver_for("rolling_disk").integrate((onset.t, T_END), onset.q[:5], onset.u[:5], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(run().q[-1][:5], solution.q[-1], rtol=0.0, atol=SWITCH_STATE)
    np.testing.assert_allclose(run().u[-1][:5], solution.u[-1], rtol=0.0, atol=SWITCH_STATE)


def test_what_rolling_keeps() -> None:
    solver, solution, onset = solver_for("rolling_disk", friction=MU), run(), reference()
    rolling = solution.t > onset.t + SWITCH_TIME  # the disk still slips at the switch itself
    energy = [
        solver.energy(*state)
        for state in zip(solution.t[rolling], solution.q[rolling], solution.u[rolling], strict=True)
    ]
    assert np.ptp(energy) < SWITCH_STATE
    for q, u in zip(solution.q[rolling], solution.u[rolling], strict=True):
        np.testing.assert_allclose(slip_velocity(q, u, parameters()), 0.0, atol=SWITCH_STATE)
    heights = solution.q[:, 5] - parameters()["R"] * np.sin(solution.q[:, 0])
    np.testing.assert_allclose(heights, 0.0, atol=SWITCH_STATE)
    friction = np.hypot(solution.contacts.forces[rolling, 1], solution.contacts.forces[rolling, 2])
    assert (friction < MU * solution.contacts.forces[rolling, 0]).all()


def test_slip_takes_the_power_of_friction() -> None:
    """Energy lost until rolling is the integral of mu N |v| over the stored states' dense output."""
    solver, solution, onset = solver_for("rolling_disk", friction=MU), run(), reference()
    nodes, weights = np.polynomial.legendre.leggauss(60)
    times = onset.t / 2 * (nodes + 1.0)
    lost = 0.0
    for t, weight in zip(times, weights, strict=True):
        q, u = solution(t)
        v = slip_velocity(q, u, parameters())
        lost += weight * onset.t / 2 * MU * forces(q, u, parameters(), v / np.hypot(*v)).normal * np.hypot(*v)
    start = solver.energy(0.0, solution.q[0], solution.u[0])
    assert start - solver.energy(onset.t, onset.q, onset.u) == pytest.approx(lost, abs=1e-6)


def test_forces_while_it_slips() -> None:
    solver = solver_for("rolling_disk", friction=MU)
    for q, u in states(6):
        v = slip_velocity(q, u, parameters())
        expected = forces(q, u, parameters(), v / np.hypot(*v))
        found = solver.contacts(0.0, q, u)
        assert found[PLANE].mode == ("slip" if expected.normal > 0.0 else "open")
        np.testing.assert_allclose(found[PLANE].slip, v, rtol=0.0, atol=1e-13)
        if expected.normal > 0.0:
            force = [expected.normal, *expected.friction]
            np.testing.assert_allclose(found[PLANE].force, force, rtol=CONTACT_FORCE, atol=CONTACT_FORCE)
            np.testing.assert_allclose(found.udot, expected.udot, rtol=CONTACT_FORCE, atol=CONTACT_FORCE)


def test_forces_while_it_rolls() -> None:
    solver, R = solver_for("rolling_disk", friction=MU), parameters()["R"]
    for q, u in states(6):
        u[3:5] -= slip_velocity(q, u, parameters())
        expected = forces(q, u, parameters(), None)
        found = solver.contacts(0.0, q, u)
        assert found[PLANE].gap == pytest.approx(q[5] - R * np.sin(q[0]), abs=1e-15)
        if np.hypot(*expected.friction) < MU * expected.normal:
            assert found[PLANE].mode == "stick"
            force = [expected.normal, *expected.friction]
            np.testing.assert_allclose(found[PLANE].force, force, rtol=CONTACT_FORCE, atol=CONTACT_FORCE)
        elif expected.normal > 0.0:
            assert found[PLANE].mode == "slip"
