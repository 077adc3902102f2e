"""The oracles of contacts against each other and against the laws they stand for."""

from __future__ import annotations

import numpy as np
import oracle_rolling_disk as disk
import pytest
from certified_roots import first_fall
from contact_references import OBSTRUCTED_SWITCHES
from mpmath import mp
from oracle_obstructed import DEFAULTS, switches
from oracle_pendulum import Pendulum
from oracle_stick_slip import Blocks, Signal, exact_events
from systems import example

BLOCKS = example("stick_slip_blocks").DEFAULTS


@pytest.mark.parametrize("slip", [(1, -1), (1, 0), (0, -1), (0, 0)])
def test_motions_of_the_blocks_solve_their_equations(slip: tuple[int, int]) -> None:
    with mp.workdps(34):
        blocks, start = Blocks(BLOCKS | {"m2": 0.3, "K2": 7.0}), mp.mpf("0.3")
        q, u = (mp.mpf("0.4"), mp.mpf("-1.1")), tuple(mp.mpf(speed) for speed in slip)
        places = blocks.motion(start, q, u, slip)
        for block in (0, 1):
            assert abs(places[block](start) - q[block]) < mp.mpf(10) ** -30
            assert abs(places[block](start, 1) - u[block]) < mp.mpf(10) ** -30
            if slip[block]:
                for t in (start, mp.mpf("1.7")):
                    net = blocks.load(block, places)(t) - slip[block] * blocks.kinetic[block]
                    assert abs(blocks.masses[block] * places[block](t, 2) - net) < mp.mpf(10) ** -29


def test_fifty_events_in_twenty_seconds() -> None:
    events = exact_events(BLOCKS, 20.0)
    assert len(events) == 50
    assert events[0].t == pytest.approx(np.arcsin(9.81 * 0.1 / 10.0) / 1.5, abs=1e-15)
    assert [event.t for event in events] == sorted(event.t for event in events)
    # A block never slips or reverses while it sticks, nor sticks twice.
    for block in (1, 2):
        kinds = [event.kind for event in events if event.block == block]
        resting = [True, *(kind == "sticks" for kind in kinds)]
        assert all(rests == (kind == "slips") for rests, kind in zip(resting, kinds, strict=False))


def test_search_does_not_miss_a_brief_fall() -> None:
    """A guard that is negative for 2e-6 of its period."""
    with mp.workdps(34):
        depth = mp.mpf(10) ** -11
        guard = Signal(1 - depth, ((mp.one, mp.zero, mp.one),))
        root = first_fall(guard, mp.zero, mp.mpf(100))
        assert abs(guard(root)) < mp.mpf(10) ** -29
        assert 0 < 3 * mp.pi / 2 - root < mp.mpf(10) ** -5


def test_series_and_scipy_switch_together() -> None:
    series = switches(DEFAULTS, (1, 1), (0, 0), 3)
    scipy, _ = Pendulum(DEFAULTS, 3 * DEFAULTS["L"] / 4, obstructed_law, "acceleration").run(
        np.array([1.0, 1.0, 0.0, 0.0]), 2.1
    )
    assert [mode for _, mode in scipy] == [mode for mode, _ in OBSTRUCTED_SWITCHES[: len(scipy)]]
    times = [float(time) for _, time in OBSTRUCTED_SWITCHES]
    np.testing.assert_allclose([float(switch.t) for switch in series], times[:3], rtol=0.0, atol=1e-15)
    np.testing.assert_allclose([t for t, _ in scipy], times[: len(scipy)], rtol=0.0, atol=1e-11)


def obstructed_law(x: float, rate: float) -> float:
    return DEFAULTS["Delta1"] * rate + DEFAULTS["Delta2"] * x


def test_power_of_friction_on_the_disk() -> None:
    """Energy changes by the power of friction while the disk slips, and not while it rolls."""
    p = {"m": 1.2, "R": 0.3, "g": 9.81, "mu": 0.4}
    q, u = np.array([1.1, 0.4, 0.0, 0.0, 0.0, 0.3 * np.sin(1.1)]), np.array([0.3, 0.5, -4.0, 0.6, -0.1, 0.0])
    u[5] = p["R"] * np.cos(q[0]) * u[0]
    slip = disk.slip_velocity(q, u, p)
    contact = disk.forces(q, u, p, slip / np.hypot(*slip))
    assert _power(u, contact, p) == pytest.approx(contact.friction @ slip, rel=1e-12)
    u[3:5] -= slip
    assert _power(u, disk.forces(q, u, p, None), p) == pytest.approx(0.0, abs=1e-12)


def _power(u: np.ndarray, contact: disk.Forces, p: dict[str, float]) -> float:
    """Rate of kinetic and potential energy."""
    inertia = p["m"] * p["R"] ** 2 / 4 * np.array([1.0, 1.0, 2.0])
    return float(u[:3] * inertia @ contact.udot[:3] + p["m"] * u[3:] @ contact.udot[3:] + p["m"] * p["g"] * u[5])
