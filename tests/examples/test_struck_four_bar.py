"""The struck four-bar linkage against a solve with multipliers in 30 digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpmath import mp
from systems import example, solver_for
from tolerances import BLOW

BLOWS = {"at P2": (0.0, 1e6, 1e6), "at P1": (3e5, 0.0, 0.0), "everywhere": (-2e5, 4e5, 7e5)}


def struck(p: dict[str, float], q: Any, u: Any, impulse: Any) -> tuple[list[Any], list[Any]]:
    """Speeds after, and multipliers of the loop equations, by the multiplier form: Q du - J^T Lambda = I, J du = 0."""
    q1, q2, q3 = map(mp.mpf, q)
    m1, m2, L1, L4 = (mp.mpf(p[name]) for name in ("m1", "m2", "L1", "L4"))
    mass = mp.diag([m1, m2, m2])
    # u = (L1 q1', q2', q3'); rows of q2^2 + q3^2 and of |P2 - P1|^2.
    across, up = q2 - L1 * mp.cos(q1), L4 + q3 - L1 * mp.sin(q1)
    rows = mp.matrix([[0, 2 * q2, 2 * q3], [2 * (across * mp.sin(q1) - up * mp.cos(q1)), 2 * across, 2 * up]])
    system = mp.zeros(5)
    system[:3, :3], system[:3, 3:], system[3:, :3] = mass, -rows.T, rows
    solution = mp.lu_solve(system, mp.matrix([*map(mp.mpf, impulse), 0, 0]))
    return [mp.mpf(before) + change for before, change in zip(u, solution[:3], strict=True)], list(solution[3:])


@pytest.mark.parametrize("blow", BLOWS.values(), ids=BLOWS)
@pytest.mark.parametrize("moving", [0.0, 3.0])
def test_speeds_against_30_digits(blow: tuple[float, ...], moving: float) -> None:
    module, solver = example("struck_four_bar"), solver_for("struck_four_bar")
    q = module.INITIAL["q"]
    u = np.array([moving, 0.0, 0.0])
    u[1:] = solver.A(0.0, q, u) @ u[:1]
    with mp.workdps(30):
        expected, multipliers = struck(module.DEFAULTS, q, u, blow)
        change = mp.matrix([after - before for after, before in zip(expected, map(mp.mpf, u), strict=True)])
    found = solver.impulse(0.0, q, u, blow)
    np.testing.assert_allclose(found.u, np.array(expected, dtype=float), rtol=0.0, atol=BLOW)
    np.testing.assert_allclose(found.multipliers, np.array(multipliers, dtype=float), rtol=1e-13, atol=BLOW)
    masses = np.array([module.DEFAULTS[name] for name in ("m1", "m2", "m2")])
    balance = masses * np.array(change, dtype=float).ravel() - blow
    np.testing.assert_allclose(found.constraint_impulse, balance, rtol=1e-13, atol=BLOW)
    np.testing.assert_allclose(found.momentum_after, masses * found.u, rtol=1e-14)


def test_blow_of_an_event_is_the_same() -> None:
    module = example("struck_four_bar")
    solver, solution = module.simulate()
    (event,) = solution.events
    assert (event.name, event.kind) == ("struck", "user")
    assert event.t == pytest.approx(module.T_BLOW, abs=1e-16)
    expected = solver.impulse(event.t, event.q, event.u_before, "blow").u
    np.testing.assert_array_equal(event.u_after, expected)
    before, after = np.flatnonzero(solution.t == event.t)
    np.testing.assert_array_equal(solution.u[before], event.u_before)
    np.testing.assert_array_equal(solution.u[after], event.u_after)
    np.testing.assert_array_equal(solution(event.t)[1], event.u_after)
