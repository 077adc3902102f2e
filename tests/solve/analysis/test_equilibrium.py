"""Equilibria and steady motions against closed forms and against roots that SciPy finds for hand-written equations."""

from __future__ import annotations

from functools import cache
from math import cos, sin, sqrt, tan

import hypothesis
import numpy as np
import pytest
from feedback_models import balanced, limited, sampled
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import raises
from scipy.optimize import brentq
from state_models import VALUES, cart
from systems import example, initial, model_of, solver_for
from tolerances import SOLVE
from trim_models import (
    ARM,
    BELT,
    CAR,
    CONVEYOR,
    arm_solver,
    belt,
    car,
    conveyor,
    grain_solver,
    hoop_solver,
    puck_solver,
)

import kanegen as kg

POSITION = 1e-12
"""Newton's method converges to rounding; coordinates are of order one."""


def settled_car() -> np.ndarray:
    m1, m2, k1, _, k2, _, g = CAR.values()
    z2 = -(m1 + m2) * g / k2
    return np.array([z2 - m1 * g / k1, z2])


@pytest.mark.parametrize("start", [[0.0, 0.0], [-0.2, -0.02], [0.3, 0.3], [-1.0, -0.5]])
def test_car_settles_on_its_tire_from_the_air_and_from_below(start: list[float]) -> None:
    found = car().equilibrium(start)
    np.testing.assert_allclose(found.q, settled_car(), atol=POSITION)
    m1, m2, *_, g = CAR.values()
    assert found.isolated
    assert found.stability == "stable"
    assert found.contacts["tire"].mode == "closed"
    np.testing.assert_allclose(found.contacts["tire"].force, [(m1 + m2) * g], rtol=SOLVE)
    np.testing.assert_allclose(found.eigenvalues, car().linearize(0.0, found.q, found.u).eigenvalues, rtol=SOLVE)
    assert found["z1"] == found.q[0]
    start = car().with_initial(found.initial)
    np.testing.assert_allclose(start.integrate((0.0, 0.1)).q[-1], settled_car(), atol=1e-9)
    with raises(kg.SolveError, "'z3'", "z1"):
        found["z3"]


POSITIVE = st.floats(0.2, 5.0)


@settings(max_examples=8, deadline=None)
@given(factors=st.tuples(*[POSITIVE] * 6), start=st.tuples(st.floats(-0.5, 0.5), st.floats(-0.1, 0.5)))
@hypothesis.example(factors=(1.0, 0.375, 2.0, 1.0, 1.0, 1.0), start=(0.0, 0.5))  # far above the road
def test_cars_of_all_sizes_settle(factors: tuple[float, ...], start: tuple[float, float]) -> None:
    values = {name: CAR[name] * factor for name, factor in zip(CAR, factors, strict=False)}
    m1, m2, k1, _, k2, _ = values.values()
    z2 = -(m1 + m2) * CAR["g"] / k2
    found = car().with_parameters(values).equilibrium(start)
    np.testing.assert_allclose(found.q, [z2 - m1 * CAR["g"] / k1, z2], rtol=1e-9)
    assert found.stability == "stable"


def test_input_holds_a_given_height() -> None:
    """The force on the body is the weight less the spring force; the tire carries both masses less it."""
    m1, m2, k1, _, k2, _, g = CAR.values()
    found = car().equilibrium({"z1": -0.1, "z2": 0.0}, fixed="z1", free_inputs="push")
    z2 = -(m2 * g + k1 * 0.1) / (k1 + k2)
    np.testing.assert_allclose(found.q, [-0.1, z2], atol=POSITION)
    np.testing.assert_allclose(found["push"], m1 * g + k1 * (-0.1 - z2), rtol=SOLVE)
    np.testing.assert_allclose(found.r, [found["push"]])


def test_what_nothing_balances_is_named() -> None:
    with raises(kg.SolveError, "quarter_car", "v1'", "v2'", "free_inputs"):
        car().equilibrium([0.0, 0.0], r=[1e6])
    with raises(kg.SolveError, "puck", "time", "slip"):
        puck_solver().equilibrium([0.1, 0.1, 0.1], s0=[0.0])
    with raises(kg.SolveError, "'pull'", "push"):
        car().equilibrium([0.0, 0.0], free_inputs="pull")
    with raises(kg.SolveError, "'z3'", "z1"):
        car().equilibrium([0.0, 0.0], fixed=("z3",))
    with raises(kg.SolveError, "tolerance", "-1"):
        car().equilibrium([0.0, 0.0], tolerance=-1)
    with raises(kg.SolveError, "F", "free_inputs"):
        solver_for("cart_pole").equilibrium([0.1, 3.0])
    with raises(kg.SolveError, "z2", "quarter_car"):
        car().equilibrium({"z1": 0.0})


@settings(max_examples=12, deadline=None)
@given(x=st.floats(-0.29, 0.29))
def test_sticking_grain_stays_where_it_is(x: float) -> None:
    """It rests on the parabola wherever the slope |x| is below mu = 0.3."""
    found = grain_solver().equilibrium([x, x**2 / 2])
    np.testing.assert_allclose(found.q, [x, x**2 / 2], atol=POSITION)
    assert not found.isolated
    assert "x" in found.undetermined
    assert found.stability == "stable"
    normal, friction = found.contacts["bowl"].force
    np.testing.assert_allclose(friction, x * normal, atol=1e-10)


@pytest.mark.parametrize("start", [[1.0, 0.5], [-1.0, 2.0], [0.5, 0.0]])
def test_grain_off_the_friction_cone_goes_to_its_edge(start: list[float]) -> None:
    found = grain_solver().equilibrium(start)
    x = np.sign(start[0]) * 0.3
    np.testing.assert_allclose(found.q, [x, x**2 / 2], atol=1e-9)
    assert not found.isolated
    assert found.stability == "undetermined"
    assert "bowl" in found.reason


def test_grain_without_friction_swings_at_the_bottom() -> None:
    """z = x^2 / 2 has the curvature 1: the frequency is sqrt(g)."""
    found = grain_solver().with_parameters(mu=0.0).equilibrium([1.0, 2.0])
    np.testing.assert_allclose(found.q, [0.0, 0.0], atol=1e-9)
    assert (found.isolated, found.stability) == (True, "marginal")
    np.testing.assert_allclose(found.eigenvalues, [1j * sqrt(9.81), -1j * sqrt(9.81)], atol=1e-9)


def test_trailing_arm_on_its_tire() -> None:
    """A closed loop: the moment about the pivot, by hand, and the bounce mode from its derivatives."""
    a, h, m, k, c, k_t, c_t, R, g = ARM.values()

    def moment(phi: float, rate: float) -> float:
        """About the pivot, with the arm at phi below the horizontal; positive lowers the wheel."""
        x, z = a * cos(phi), h - a * sin(phi)
        along = np.array([-a * sin(phi), -a * cos(phi)])
        spring = np.array([x - a / 2, z - h - 0.5])
        length = np.linalg.norm(spring)
        unit = spring / length
        force = -(k * (length - 0.9) + c * unit @ along * rate) * unit + np.array([0.0, -m * g])
        force[1] += k_t * (R - z) - c_t * along[1] * rate
        return float(along @ force)

    phi = brentq(lambda x: moment(x, 0.0), 0.34, 0.8, xtol=1e-15)
    found = arm_solver().equilibrium({"x": 0.5, "z": 0.35})
    np.testing.assert_allclose(found.q, [a * cos(phi), h - a * sin(phi)], atol=POSITION)
    d = 1e-6
    of_phi = (moment(phi + d, 0.0) - moment(phi - d, 0.0)) / (2 * d)
    of_rate = (moment(phi, d) - moment(phi, -d)) / (2 * d)
    expected = np.linalg.eigvals([[0.0, 1.0], [of_phi / (m * a**2), of_rate / (m * a**2)]])
    np.testing.assert_allclose(np.sort_complex(found.eigenvalues), np.sort_complex(expected), rtol=1e-7)
    assert found.stability == "stable"
    assert abs(found.eigenvalues[0].imag) > 50.0
    assert len(found.multipliers) == 1


def test_belt_drags_the_block_as_far_as_kinetic_friction() -> None:
    """k x = mu_k N, while the belt slips under the block; the eigenvalues are those of the spring."""
    m, k, _, mu_k, load, _ = BELT.values()
    found = kg.build(belt()).equilibrium([0.0])  # without Jacobians: central differences
    np.testing.assert_allclose(found.q, [mu_k * load / k], atol=POSITION)
    assert found.contacts["belt"].mode == "slip"
    np.testing.assert_allclose(found.eigenvalues, [1j * sqrt(k / m), -1j * sqrt(k / m)], atol=1e-6)
    assert found.stability == "marginal"


@pytest.mark.parametrize("height", [0.0, 0.4])
def test_block_falls_on_the_conveyor_and_is_dragged_along(height: float) -> None:
    m, k, mu, _, g = CONVEYOR.values()
    found = kg.build(conveyor()).equilibrium([0.0, height])
    np.testing.assert_allclose(found.q, [mu * m * g / k, 0.0], atol=POSITION)
    assert found.contacts["belt"].mode == "slip"
    np.testing.assert_allclose(found.contacts["belt"].force, [m * g, mu * m * g], rtol=1e-9)


def test_states_are_at_rest_too() -> None:
    """k x = a, a = f; z integrates v' + v, so that it is not determined and keeps its value."""
    found = kg.build(cart()).equilibrium([0.0], s0={"a": 0.0, "z": 0.7}, r={"f": 0.9})
    np.testing.assert_allclose([found["x"], found["a"], found["z"]], [0.9 / VALUES["k"], 0.9, 0.7], atol=POSITION)
    assert found.undetermined == ("z",)
    assert found.stability == "stable"


def test_equilibrium_of_the_hoop_is_unstable_at_the_bottom() -> None:
    hoop = hoop_solver()
    bottom, side = hoop.equilibrium([0.0]), hoop.equilibrium([0.8])
    assert (bottom.q[0], bottom.stability) == (0.0, "unstable")
    np.testing.assert_allclose(np.cos(side.q), 9.81 / (0.4 * 64.0), atol=POSITION)
    assert side.stability == "marginal"


@cache
def built(name: str) -> kg.Solver:
    return kg.build(model_of(name), functions=("rhs", "residuals", "consistency", "outputs", "jacobians"))


def test_conical_pendulum() -> None:
    """phi'^2 = g / (l cos theta)."""
    found = built("spherical_pendulum").steady_motion([0.8, 0.2], [0.0, 4.0], fixed="theta")
    assert found.cyclic == ("phi",)
    np.testing.assert_allclose([found["u1"], found["u2"]], [0.0, sqrt(9.81 / (0.7 * cos(0.8)))], atol=POSITION)
    rate = found["u2"] * sqrt(1 + 3 * cos(0.8) ** 2)  # small deviations of theta at constant angular momentum
    np.testing.assert_allclose(sorted(found.eigenvalues.imag), [-rate, 0.0, rate], atol=1e-9)


def test_disk_rolls_in_a_circle() -> None:
    """6 u2 u3 = u2^2 cot theta - 4 (g / R) cos theta; X' and Y' vary, the other speeds do not."""
    start, R, g = initial("rolling_disk"), 0.3, 9.81
    theta, u2 = start["q"][0], start["u"][1]
    found = built("rolling_disk").steady_motion(start["q"], start["u"], fixed=("theta", "u2"))
    assert found.cyclic == ("phi", "psi", "X", "Y")
    assert found.speeds == ("u1", "u2", "u3")
    np.testing.assert_allclose(found["u3"], (u2**2 / tan(theta) - 4 * g / R * cos(theta)) / (6 * u2), rtol=SOLVE)
    assert found["u1"] == pytest.approx(0.0, abs=POSITION)
    free = built("rolling_disk").steady_motion(start["q"], start["u"])
    assert free.family == found.family == 2
    np.testing.assert_allclose(free["theta"], theta, atol=1e-6)  # the nearest of the family


def test_disk_that_sticks_to_the_plane_rolls_as_with_rolling_constraints() -> None:
    """Contact and stick hold three accelerations; u4' and u5' are not zero."""
    R, g, theta, phi, u2, u3 = 0.3, 9.81, 1.2, 0.3, 0.4, -19.0
    disk = kg.build(model_of("rolling_disk", friction=0.6), functions=("rhs", "residuals", "jacobians"))
    q = [theta, phi, 0.0, 0.0, 0.0, R * sin(theta)]
    found = disk.steady_motion(q, [0.0, u2, u3, -R * cos(phi) * u3, -R * sin(phi) * u3, 0.0], fixed=("theta", "u2"))
    assert found.contacts["plane"].mode == "stick"
    np.testing.assert_allclose(found["u3"], (u2**2 / tan(theta) - 4 * g / R * cos(theta)) / (6 * u2), rtol=SOLVE)
    rolling = built("rolling_disk").steady_motion(
        q[:5], [0.0, u2, u3, -R * cos(phi) * u3, -R * sin(phi) * u3], fixed=("theta", "u2")
    )
    order = np.lexsort((rolling.eigenvalues.real, rolling.eigenvalues.imag))
    other = np.lexsort((found.eigenvalues.real, found.eigenvalues.imag))
    np.testing.assert_allclose(found.eigenvalues[other], rolling.eigenvalues[order], atol=1e-6)


@pytest.mark.parametrize(("speed", "stability"), [(3.0, "unstable"), (5.0, "stable"), (7.0, "unstable")])
def test_bicycle_rides_straight(speed: float, stability: str) -> None:
    """Stable between weave and capsize speed, 4.292 and 6.024 m/s (Meijaard and others 2007)."""
    bicycle = example("whipple_bicycle")
    q, u = bicycle.upright(speed)
    pushed = {"phi": 0.03, "de": -0.02}
    found = bicycle.solver().steady_motion(dict(zip(bicycle.COORDINATES, q, strict=True)) | pushed, u, fixed="u_x")
    assert set(found.cyclic) == {"x", "y", "psi", "thR", "thF"}
    np.testing.assert_allclose([found["phi"], found["de"]], 0.0, atol=1e-9)
    assert found.stability == stability
    for value in bicycle.EIGENVALUES[int(speed)]:
        assert np.abs(found.eigenvalues - value).min() < 1e-9


def test_names_of_steady_motions() -> None:
    solver, start = built("rolling_disk"), initial("rolling_disk")
    with raises(kg.SolveError, "'beta'", "theta"):
        solver.steady_motion(start["q"], start["u"], cyclic=("beta",))
    with raises(kg.SolveError, "u3", "rolling_disk"):
        solver.steady_motion(start["q"], {"u1": 0.0})


def test_coordinates_that_matter_are_not_cyclic() -> None:
    """At the lowest point of a swing nothing accelerates the pendulum, but this is no steady motion."""
    solver = kg.build(model_of("n_link_pendulum", n=1), functions=("rhs", "jacobians"))
    names = solver.description.coordinates
    with raises(kg.SolveError, "no steady motion", names[1], "cyclic="):
        solver.steady_motion([0.0, -np.pi / 2], [2.0, 2.0], fixed=solver.description.speeds, cyclic=names)
    disk, start = built("rolling_disk"), initial("rolling_disk")
    named = disk.steady_motion(start["q"], start["u"], fixed=("theta", "u2"), cyclic=("phi", "psi", "X", "Y"))
    found = disk.steady_motion(start["q"], start["u"], fixed=("theta", "u2"))
    np.testing.assert_allclose(named.u, found.u, rtol=1e-9, atol=1e-9)


def test_regulator_stands_at_the_target_of_its_law() -> None:
    """From a start at which the law is saturated; the linear model is that of the closed loop."""
    cart = balanced()
    found = cart.equilibrium([0.3, 0.1])
    np.testing.assert_allclose([*found.q, *found.r], 0.0, atol=POSITION)
    assert (found.isolated, found.stability) == (True, "stable")
    closed = cart.linearize(0.0, found.q, found.u, closed_loop=True)
    np.testing.assert_allclose(found.eigenvalues, closed.eigenvalues, rtol=1e-9)
    without = cart.equilibrium([0.3, 0.1], r={"F": 0.0})
    assert without.undetermined == ("x",)
    assert without.stability == "unstable"


@settings(max_examples=6, deadline=None)
@given(start=st.tuples(*[st.floats(-1e3, 1e3)] * 2))
@hypothesis.example(start=(1.0, 1.05))  # saturated along x, in the dead band along y
@hypothesis.example(start=(0.1, 3.0))
def test_laws_at_their_limits_lead_back(start: tuple[float, float]) -> None:
    """Nothing but the laws determines the position, and where they are at a limit they have no slope."""
    found = limited().equilibrium(start)
    edge = 0.5 / 4.0
    assert abs(found["x"]) <= 1e-9
    assert abs(found["y"] - 1.0) <= edge + 1e-9
    if abs(start[0]) + abs(start[1]) < 10.0:
        assert found["y"] == pytest.approx(np.clip(start[1], 1.0 - edge, 1.0 + edge), abs=1e-9)
    np.testing.assert_allclose(found.r, 0.0, atol=1e-9)


@pytest.mark.parametrize("start", [[3.0, 0.0], [-1000.0, 0.5]])
def test_cart_returns_from_far(start: list[float]) -> None:
    found = balanced().equilibrium(start)
    np.testing.assert_allclose([*found.q, *found.r], 0.0, atol=POSITION)
    assert found.stability == "stable"


def test_sampled_laws_leave_the_stability_open() -> None:
    found = sampled().equilibrium([0.3, 0.2])
    assert found["x"] == pytest.approx(0.0, abs=POSITION)
    assert found.stability == "undetermined"
    assert "sampled" in found.reason
