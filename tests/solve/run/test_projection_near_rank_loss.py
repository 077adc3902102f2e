"""Projection of states that lie near a position where constraint rows become dependent.

Parallel cranks of a four-bar have one degree of freedom: 5/3 a'' = -2 g cos a (three rods of 1 kg and 1 m, of which one
does not turn). The errors of a projection are divided by the angle of the cranks from the flat position: the result of
a run must not depend on how near to it a step happens to end.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from mechanisms import four_bars
from scipy.integrate import solve_ivp
from tolerances import PROJECTED

import kanegen as kg

START = (0.3, -5.0)
# Steps to the flat position and after it; rk4 with so many has an error of some 1e-10.
BEFORE, AFTER = 40, 10
CASES = {"vanishing row": False, "parallel rows": True}
FORMS = ("pseudoinverse", "canonical")


def flat(_t: float, y: np.ndarray) -> float:
    return float(y[0])


def crank(t_end: float, **options: Any) -> Any:
    """The motion of the cranks by SciPy."""
    return solve_ivp(
        lambda _, y: [y[1], -9.81 * (1.5 + 0.5) / (5.0 / 3.0) * np.cos(y[0])],
        (0.0, t_end),
        START,
        method="DOP853",
        rtol=1e-13,
        atol=1e-13,
        **options,
    )


@cache
def solver_of(tilted: bool, form: str = "pseudoinverse") -> kg.Solver:
    projection = kg.Projection(integrals=("energy",))
    return kg.build(four_bars(1, tilted), form=form, stabilization=projection)


@cache
def time_of_flat() -> tuple[float, float]:
    """When the cranks are flat, and their rate there."""
    run = crank(1.0, events=flat)
    return float(run.t_events[0][0]), float(run.y_events[0][0, 1])


@pytest.mark.parametrize("integrals", [(), ("energy",)], ids=["constraints", "with energy"])
@pytest.mark.parametrize("tilted", CASES.values(), ids=CASES)
def test_a_step_may_end_anywhere_near_the_flat_position(tilted: bool, integrals: tuple[str, ...]) -> None:
    solver = solver_of(tilted).with_stabilization(kg.Projection(integrals=integrals))
    passage, rate = time_of_flat()
    rng = np.random.default_rng(20031)
    for exponent in range(3, 13):
        angle = 10.0**-exponent * (-1) ** exponent
        step = (passage + angle / rate) / BEFORE
        t_end = step * (BEFORE + AFTER)
        # An assembly that is satisfied to rounding only.
        q = np.array([START[0], START[0], 0.0]) + rng.uniform(-5e-14, 5e-14, 3)
        run = solver.integrate((0.0, t_end), q, (START[1], START[1], 0.0), method="rk4", step=step)
        near = np.abs(run.q[:, 0]).argmin()
        assert np.abs(run.q[near, 0]) == pytest.approx(abs(angle), rel=1e-2, abs=1e-11)
        # Where the rows keep 1e-3 of their size, rounding of 1e-15 stands for 1e-12 rad and 5 rad/s * 1e-12 / 1e-3.
        assert np.ptp(run.u[:, :2], axis=1).max() < 1e-7
        energy = [solver.energy(*state) for state in zip(run.t, run.q, run.u, strict=True)]
        assert np.ptp(energy) < 1e-9
        exact = crank(t_end).y[:, -1]
        np.testing.assert_allclose([run.q[-1, 0], run.u[-1, 0]], exact, rtol=0.0, atol=1e-9)
        for state in zip(run.t, run.q, run.u, strict=True):
            position, velocity = solver.residuals(*state)
            assert np.abs(position).max() < PROJECTED
            assert np.abs(velocity).max() < 1e2 * PROJECTED  # 5 rad/s times 1e-12 rad, for sums of a few terms


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tilted", CASES.values(), ids=CASES)
def test_adaptive_steps_pass_flat_positions_on_the_same_branch(tilted: bool, form: str) -> None:
    """``"canonical"`` turned into the other branch, with an energy that moved by 5.2 J."""
    solver = solver_of(tilted, form).with_stabilization(kg.Projection())
    t_end = 3.0
    run = solver.integrate(
        (0.0, t_end), (START[0], START[0], 0.0), (START[1], START[1], 0.0), rtol=1e-10, atol=1e-12, method="dop853"
    )
    passages = np.count_nonzero(np.diff(np.sign(np.sin(run.q[:, 0]))))
    assert passages >= 2
    assert np.ptp(run.q[:, :2], axis=1).max() < 1e-7
    energy = [solver.energy(*state) for state in zip(run.t, run.q, run.u, strict=True)]
    assert np.ptp(energy) < 1e-6
    np.testing.assert_allclose([run.q[-1, 0], run.u[-1, 0]], crank(t_end).y[:, -1], rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tilted", CASES.values(), ids=CASES)
def test_accelerations_in_the_flat_position_belong_to_the_branch(tilted: bool, form: str) -> None:
    """Parallel cranks, and the cranks folded: the first at rest, the others turning as one bar (two rods of 1 m).

    A row that is zero in all bits was not replaced: folded cranks had the accelerations of parallel ones.
    """
    solver, g = solver_of(tilted, form), 9.81
    # Folded: both moving rods turn about the pin of the second crank, 2/3 a'' = -g cos a.
    branches = (((-5.0, -5.0, 0.0), (-1.2 * g, -1.2 * g, 0.0)), ((0.0, -5.0, -5.0), (0.0, -1.5 * g, -1.5 * g)))
    for u, expected in branches:
        for angle in (0.0, 1e-12, -1e-7, 1e-5):
            q = angle * np.sign(np.abs(u))
            udot = solver.rhs(0.0, q, u)[1]
            np.testing.assert_allclose(udot, expected, rtol=0.0, atol=1e-8)
            if form == "canonical":
                parts = solver.acceleration_parts(0.0, q, u)
                np.testing.assert_allclose(parts.udot_constraint + parts.udot_momentum, udot, rtol=0.0, atol=1e-11)
                assert abs(parts.udot_constraint @ solver.Q(0.0, q, u) @ parts.udot_momentum) < 1e-11
                assert abs(parts.wdot_constraint @ parts.wdot_momentum) < 1e-11
