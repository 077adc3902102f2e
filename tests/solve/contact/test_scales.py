"""Contacts in any unit of length: what touches and what rests follows from the tolerances of the state."""

from __future__ import annotations

from functools import cache

import pytest
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

t = me.dynamicsymbols._t
GRAVITY = 9.81


@cache
def ball() -> kg.Solver:
    """A ball over a floor; the gap times a factor."""
    x, u = me.dynamicsymbols("x u")
    factor = sm.Symbol("factor")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, u * N.x)
    return kg.build(
        kg.Model(
            name="scaled_ball",
            frame=N,
            coordinates=[x],
            speeds=[u],
            kinematics=[x.diff(t) - u],
            bodies=[me.Particle("P", P, 1)],
            gravity=-GRAVITY * N.x,
            contacts=[kg.Unilateral(factor * x, kg.Restitution(sm.Rational(1, 2)), name="floor")],
            parameters={factor: 1.0},
        )
    )


@pytest.mark.parametrize("atol", [1e-10, 1e-13, 1e-16])
def test_ball_one_nanometer_above_the_floor_falls(atol):
    """It counted as touching, and did not fall, whatever the tolerance."""
    run = ball().integrate((0.0, 1e-5), [1e-9], [0.0], atol=atol)
    assert run.q[-1, 0] == pytest.approx(1e-9 - GRAVITY / 2 * 1e-10, rel=1e-9)
    assert not run.events


@pytest.mark.parametrize("height", [1e-9, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("factor", [1e-9, 1.0, 1e9])
def test_ball_bounces_in_any_unit(height, factor):
    """Two impacts at the times of the closed form."""
    fall = (2 * height / GRAVITY) ** 0.5
    run = (
        ball()
        .with_parameters(factor=factor)
        .integrate((0.0, 2.5 * fall), [height], [0.0], rtol=1e-10, atol=[1e-12 * height, 1e-12 * height / fall])
    )
    assert [event.t / fall for event in run.events] == pytest.approx([1.0, 2.0], rel=1e-9)
    assert run.q[-1, 0] == pytest.approx(_after(height, fall), rel=1e-7, abs=1e-9 * height)


def _after(height: float, fall: float) -> float:
    """The height half a fall after the second impact, which leaves a quarter of the speed."""
    speed, time = GRAVITY * fall / 4, fall / 2
    return speed * time - GRAVITY / 2 * time**2


def test_contacts_at_a_state_with_tolerances():
    """A ball 0.3 nm above the floor touches within 0.5 nm, the default; tolerances of a run are those of a state."""
    state = 0.0, [3e-10], [0.0]
    assert ball().contacts(*state)["floor"].mode == "closed"
    for atol in (1e-13, [1e-13, 1e-10], {"x": 1e-13}):
        found = ball().contacts(*state, atol=atol)
        assert found["floor"].mode == "open"
        assert found.udot == pytest.approx([-GRAVITY])
    assert ball().contacts(0.0, [3e-5], [0.0], atol=1e-5)["floor"].mode == "closed"
    with pytest.raises(kg.SolveError, match="positive"):
        ball().contacts(*state, atol=0.0)
