"""Periodic motions, their multipliers and curves, against closed forms and other programs."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any

import jump_models
import numpy as np
import pytest
import sympy as sm
from messages import raises
from numpy.testing import assert_allclose
from orbit_models import (
    cartesian_pendulum,
    duffing,
    forced_van_der_pol,
    mathieu,
    pendulum,
    relay_oscillator,
    simplest_walker,
    van_der_pol,
)
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, fsolve
from scipy.special import ellipk
from systems import example, solver_for

import kanegen as kg

VAN_DER_POL = 6.6632868593231301896996820305
"""The period at mu = 1 (OEIS A138222)."""


def monodromy(force: Callable[..., float], slopes: Callable[..., tuple[float, float]], y: Any, T: float) -> Any:
    """The end and the monodromy matrix of x'' = force(t, x, v), whose slopes in x and v are given, by SciPy."""

    def rates(t: float, z: Any) -> Any:
        a, b = slopes(t, z[0], z[1])
        return [z[1], force(t, z[0], z[1]), z[4], z[5], a * z[2] + b * z[4], a * z[3] + b * z[5]]

    end = solve_ivp(rates, (0.0, T), [*y, 1.0, 0.0, 0.0, 1.0], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    return end[:2], end[2:].reshape(2, 2)


@pytest.mark.parametrize("segments", [1, 5])
def test_van_der_pol(segments: int) -> None:
    """The multiplier is exp of the integral of the divergence mu (1 - x^2) (Liouville)."""
    orbit = van_der_pol().periodic_motion({"x": 1.0, "v": 0.5}, period=6.0, segments=segments)
    assert orbit.period == pytest.approx(VAN_DER_POL, abs=1e-10)
    times = np.linspace(0.0, orbit.period, 400, endpoint=False)
    x = orbit.solution(times)[0][:, 0]
    expected = math.exp((1.0 - (x**2).mean()) * orbit.period)  # the mean is exact to rounding for a smooth period
    assert orbit.transverse[0].real == pytest.approx(expected, rel=1e-8)
    assert orbit.multipliers[0] == 1.0
    assert orbit.stable
    assert orbit.kind == "none"
    assert not orbit.forced
    np.testing.assert_allclose(np.linalg.det(orbit.monodromy), expected, rtol=1e-8)
    assert orbit.residual < 1e-12
    last = orbit.solution.last
    np.testing.assert_allclose(np.concatenate(last[1:3]), [orbit["x"], orbit["v"]], atol=1e-10)


def test_section_of_the_van_der_pol_oscillator() -> None:
    orbit = van_der_pol().periodic_motion({"x": 0.0, "v": 1.0}, period=6.0, section="rises")
    assert orbit.period == pytest.approx(VAN_DER_POL, abs=1e-10)
    assert orbit["x"] == pytest.approx(0.0, abs=1e-12)
    whole = van_der_pol().periodic_motion(orbit, period=6.0)
    np.testing.assert_allclose(orbit.multipliers, whole.transverse, rtol=1e-7)
    several = van_der_pol().periodic_motion(orbit, segments=3, section="rises")
    np.testing.assert_allclose(several.multipliers, whole.transverse, rtol=1e-7)


def test_pendulum_of_an_amplitude() -> None:
    """The family of motions of a conservative model: a start value selects one."""
    g, l, amplitude = 9.81, 0.7, 2.0
    orbit = pendulum().periodic_motion({"theta": amplitude, "omega": 0.0}, period=2.0, fixed=["theta"])
    assert orbit["theta"] == amplitude
    omega = orbit["omega"]
    k = math.sin(math.acos(math.cos(amplitude) - omega**2 * l / (2.0 * g)) / 2.0)  # of the energy
    assert orbit.period == pytest.approx(4.0 * math.sqrt(l / g) * ellipk(k**2), rel=1e-10)
    np.testing.assert_allclose(orbit.multipliers, [1.0, 1.0], atol=1e-8)
    assert orbit.stability == "marginal"
    assert not orbit.stable


def test_pendulum_of_a_period() -> None:
    g, l = 9.81, 0.7
    orbit = pendulum().periodic_motion({"theta": 1.5, "omega": 0.0}, period=2.2, forced=True)
    assert orbit.period == 2.2
    energy = orbit["omega"] ** 2 * l / (2.0 * g) - math.cos(orbit["theta"])
    k = math.sin(math.acos(-energy) / 2.0)
    assert 4.0 * math.sqrt(l / g) * ellipk(k**2) == pytest.approx(2.2, rel=1e-9)


def test_rotating_pendulum() -> None:
    """Full turns: the angle advances by 2 pi."""
    g, l = 9.81, 0.7
    orbit = pendulum().periodic_motion(
        {"theta": 0.0, "omega": 12.0}, period=0.6, advance={"theta": 2.0 * math.pi}, fixed="omega"
    )
    m = 4.0 * g / (l * 12.0**2)
    assert orbit.period == pytest.approx(4.0 / 12.0 * ellipk(m), rel=1e-10)


def test_constraints_take_their_directions_away() -> None:
    g, l = 9.81, 0.7
    orbit = cartesian_pendulum().periodic_motion({"x": 0.5, "z": -0.4898979, "v_x": 0.0, "v_z": 0.0}, period=1.8)
    height = orbit["z"] + (orbit["v_x"] ** 2 + orbit["v_z"] ** 2) / (2.0 * g)
    assert orbit.period == pytest.approx(4.0 * math.sqrt(l / g) * ellipk((1.0 + height / l) / 2.0), rel=1e-9)
    np.testing.assert_allclose(orbit.multipliers, [1.0, 1.0], atol=1e-7)
    assert orbit.basis.shape == (4, 2)
    assert orbit["x"] ** 2 + orbit["z"] ** 2 == pytest.approx(l**2, abs=1e-12)


@pytest.mark.parametrize("stabilization", [None, kg.Baumgarte(alpha=5.0, beta=5.0), kg.Projection()])
def test_limit_cycle_on_a_constraint(stabilization: Any) -> None:
    """In the angle phi: phi'' = -g / l sin phi + c (1 - 4 sin(phi)^2) phi', whose divergence gives the multiplier."""
    g, l, c = 9.81, 0.7, 0.8
    solver = cartesian_pendulum().with_parameters(c=c).with_stabilization(stabilization)
    orbit = solver.periodic_motion({"x": 0.6, "z": -0.36, "v_x": 0.0, "v_z": 0.0}, period=1.8, segments=2)

    def force(t: float, phi: float, rate: float) -> float:
        return -g / l * math.sin(phi) + c * (1.0 - 4.0 * math.sin(phi) ** 2) * rate

    def slopes(t: float, phi: float, rate: float) -> tuple[float, float]:
        return (
            -g / l * math.cos(phi) - 8.0 * c * math.sin(phi) * math.cos(phi) * rate,
            c * (1.0 - 4.0 * math.sin(phi) ** 2),
        )

    phi, rate = math.atan2(orbit["x"], -orbit["z"]), orbit["v_x"] / -orbit["z"] * l * l / l**2
    end, matrix = monodromy(force, slopes, [phi, rate], orbit.period)
    np.testing.assert_allclose(end, [phi, rate], atol=1e-9)
    assert orbit.transverse[0].real == pytest.approx(np.linalg.det(matrix), rel=1e-7)
    assert len(orbit.multipliers) == 2
    assert orbit.stable


def test_forced_duffing() -> None:
    """The motion and its multipliers are those of SciPy; their product is exp(-2 delta T)."""
    T = 2.0 * math.pi / 1.4
    orbit = duffing().periodic_motion({"x": 1.0, "v": 0.0}, period=T)
    assert orbit.forced
    assert orbit.period == T
    end, matrix = monodromy(
        lambda t, x, v: -0.1 * v - x - x**3 + 0.3 * math.cos(1.4 * t),
        lambda t, x, v: (-1.0 - 3.0 * x**2, -0.1),
        [orbit["x"], orbit["v"]],
        T,
    )
    np.testing.assert_allclose(end, [orbit["x"], orbit["v"]], atol=1e-9)
    np.testing.assert_allclose(orbit.monodromy, matrix, rtol=1e-7, atol=1e-8)
    assert np.prod(orbit.multipliers) == pytest.approx(math.exp(-0.1 * T), rel=1e-9)


def test_relay_oscillator() -> None:
    """A half cycle takes the amplitude A to 1 + (A + 1) E with E = exp(-delta pi / omega)."""
    delta = 0.1
    omega = math.sqrt(1.0 - delta**2)
    E = math.exp(-delta * math.pi / omega)
    solver = relay_oscillator()
    for segments in (1, 2):
        orbit = solver.periodic_motion({"x": -5.0, "v": 0.0, "s": 1.0}, period=6.0, section="left", segments=segments)
        assert orbit["x"] == pytest.approx(-(1.0 + E) / (1.0 - E), rel=1e-9)
        assert orbit.period == pytest.approx(2.0 * math.pi / omega, rel=1e-9)
        np.testing.assert_allclose(orbit.multipliers, [E**2, 0.0], atol=1e-8)
        assert orbit.stable


def test_damped_mathieu_oscillator_at_rest() -> None:
    """The rest position is a periodic motion; its multipliers are those of SciPy."""
    orbit = mathieu().periodic_motion({"x": 0.0, "v": 0.0}, period=math.pi)
    assert [orbit["x"], orbit["v"]] == [0.0, 0.0]
    _, matrix = mathieu_matrix(1.0, 0.1)
    expected = np.linalg.eigvals(matrix)
    np.testing.assert_allclose(np.sort_complex(orbit.multipliers), np.sort_complex(expected), atol=1e-9)
    assert np.prod(orbit.multipliers) == pytest.approx(math.exp(-0.2 * math.pi), rel=1e-10)


def mathieu_matrix(a: float, q: float) -> Any:
    return monodromy(
        lambda t, x, v: -0.2 * v - (a + q * math.cos(2.0 * t)) * x,
        lambda t, x, v: (-(a + q * math.cos(2.0 * t)), -0.2),
        [0.0, 0.0],
        math.pi,
    )


def test_period_doubling_and_branching_of_the_mathieu_oscillator() -> None:
    """The first tongue, near a = 1, has a multiplier -1; the second, near a = 4, a multiplier 1."""
    solver = mathieu()
    start = solver.periodic_motion({"x": 0.0, "v": 0.0}, period=math.pi)
    curve = solver.periodic_motions_curve("q", (0.1, 1.0), start, step=0.2)
    (point,) = curve.bifurcations
    assert point.kind == "period doubling"
    assert point.orbit.kind == "period doubling"
    expected = brentq(lambda q: np.linalg.det(mathieu_matrix(1.0, q)[1] + np.eye(2)), 0.1, 1.0, xtol=1e-12)
    assert point.value == pytest.approx(expected, rel=1e-8)
    assert curve.stability[0] == "stable"
    assert curve.stability[-1] == "unstable"
    other = solver.with_parameters(a=4.0)
    curve = other.periodic_motions_curve("q", (0.5, 6.0), start, step=0.1)
    (point,) = curve.bifurcations
    expected = brentq(lambda q: np.linalg.det(mathieu_matrix(4.0, q)[1] - np.eye(2)), 0.5, 6.0, xtol=1e-12)
    assert point.kind == "branching"
    assert point.value == pytest.approx(expected, rel=1e-8)


def fold_of_the_duffing_oscillator(z: Any) -> Any:
    """By how much the motion from x, v with the force F misses its start, and whether 1 is a multiplier."""
    end, matrix = monodromy(
        lambda t, x, v: -0.1 * v - x - x**3 + z[2] * math.cos(1.4 * t),
        lambda t, x, v: (-1.0 - 3.0 * x**2, -0.1),
        z[:2],
        2.0 * math.pi / 1.4,
    )
    return [*(end - z[:2]), np.linalg.det(matrix - np.eye(2))]


def test_folds_of_the_duffing_oscillator() -> None:
    """Both folds are where SciPy finds a periodic motion with the multiplier 1."""
    solver, T = duffing(), 2.0 * math.pi / 1.4
    start = solver.periodic_motion({"x": 0.0, "v": 0.0}, period=T, r={"F": 0.02})
    curve = solver.periodic_motions_curve("F", (0.02, 0.6), start, step=0.2)
    assert [point.kind for point in curve.bifurcations] == ["fold", "fold"]
    assert {"stable", "unstable"} == set(curve.stability)
    for point in curve.bifurcations:
        x, _v, F = fsolve(fold_of_the_duffing_oscillator, [point.orbit["x"], point.orbit["v"], point.value], xtol=1e-10)
        assert point.value == pytest.approx(F, rel=1e-7)
        assert point.orbit["x"] == pytest.approx(x, rel=1e-5)
    assert np.ptp(curve["x"]) > 0.5
    assert len(curve) == len(curve.periods) < 100


def test_torus_of_the_forced_van_der_pol_oscillator() -> None:
    """Where a complex pair leaves the unit circle, the mean of the divergence mu (1 - x^2) is zero."""
    solver = forced_van_der_pol()
    period = 2 * sm.pi / sm.Symbol("omega")
    guess = solver.integrate((0.0, 300.0), {"x": 0.0}, {"v": 0.0})
    first = float(2.0 * math.pi / 1.2)
    start = round(guess.t[-1] / first - 2.0) * first
    orbit = solver.periodic_motion(dict(zip("xv", np.concatenate(guess(start)).tolist(), strict=False)), period=period)
    curve = solver.periodic_motions_curve("omega", (1.2, 1.5), orbit, step=0.1)
    (point,) = [each for each in curve.bifurcations if each.kind == "Neimark-Sacker"]
    assert point.orbit.period == pytest.approx(2.0 * math.pi / point.value, rel=1e-12)
    x = point.orbit.solution(np.linspace(0.0, point.orbit.period, 400, endpoint=False))[0][:, 0]
    assert (x**2).mean() == pytest.approx(1.0, abs=1e-7)
    assert point.orbit.critical is not None
    assert abs(point.orbit.critical) == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("segments", [1, 3])
def test_curves_with_moving_constraints(segments: int) -> None:
    """The length is a parameter of the constraint."""
    solver = cartesian_pendulum().with_parameters(c=0.8)
    start = {"x": 0.6, "z": -0.36, "v_x": 0.0, "v_z": 0.0}
    orbit = solver.periodic_motion(start, period=1.8, segments=segments)
    curve = solver.periodic_motions_curve("l", (0.7, 0.8), orbit, step=0.5)
    assert curve.values[-1] == 0.8
    scaled = solver.with_parameters(l=0.8).periodic_motion(orbit)
    assert curve.periods[-1] == pytest.approx(scaled.period, rel=1e-9)
    np.testing.assert_allclose(curve.multipliers[-1], scaled.transverse, rtol=1e-6)
    assert len(curve) <= 4  # the derivatives with respect to the parameter are right


def test_curves_of_return_maps() -> None:
    solver = relay_oscillator()
    orbit = solver.periodic_motion({"x": -5.0, "v": 0.0, "s": 1.0}, period=6.0, section="left", segments=2)
    curve = solver.periodic_motions_curve("delta", (0.1, 0.2), orbit, step=0.3)
    E = math.exp(-0.2 * math.pi / math.sqrt(1.0 - 0.2**2))
    assert curve.orbits[-1]["x"] == pytest.approx(-(1.0 + E) / (1.0 - E), rel=1e-9)
    np.testing.assert_allclose(curve.multipliers[-1], [E**2, 0.0], atol=1e-8)
    assert curve["x"][-1] == pytest.approx((1.0 + E) / (1.0 - E), rel=1e-5)


@pytest.mark.parametrize("segments", [1, 3])
def test_derivatives_where_the_period_depends_on_the_parameter(segments: int) -> None:
    """The columns of the equations are those of central differences."""
    from dataclasses import replace

    from kanegen.solve.gradients.directions import Direction, Kind
    from kanegen.solve.gradients.shooting import Nodes, Shooting, Varied

    solver = forced_van_der_pol()
    orbit = solver.periodic_motion({"x": 1.0, "v": 0.5}, period=2 * math.pi / 1.2, segments=segments)
    index = solver.description.parameters.index("omega")

    def equations(omega: float, nodes: Nodes) -> Any:
        varied = Varied(Direction("omega", Kind.PARAMETER, index), 1.0, -2.0 * math.pi / omega**2)
        shooting = Shooting(solver.with_parameters(omega=omega), orbit.setting, varied)
        return shooting.system(replace(nodes, period=2.0 * math.pi / omega))

    h, nodes = 1e-5, orbit.nodes
    matrix = equations(1.2, nodes).matrix
    above, below = (equations(1.2 + sign * h, nodes).residual for sign in (1.0, -1.0))
    np.testing.assert_allclose(matrix[:, -1], (above - below) / (2.0 * h), rtol=1e-6, atol=1e-7)
    for k in range(2 * segments):
        dy = np.zeros(2 * segments)
        dy[k] = h
        step = dy.reshape(-1, 2) * orbit.setting.scale
        above, below = (equations(1.2, replace(nodes, y=nodes.y + sign * step)).residual for sign in (1.0, -1.0))
        np.testing.assert_allclose(matrix[:, k], (above - below) / (2.0 * h), rtol=1e-6, atol=1e-7)


def test_an_unstable_motion_by_several_segments() -> None:
    """The limit cycle of the reversed van der Pol oscillator repels by 1 / 8.6e-4 per period."""
    solver = van_der_pol()
    stable = solver.periodic_motion({"x": 1.0, "v": 0.5}, period=6.0)
    backward = solver.with_parameters(mu=-1.0)
    orbit = backward.periodic_motion({"x": stable["x"], "v": -stable["v"]}, period=6.6, segments=6)
    assert orbit.period == pytest.approx(VAN_DER_POL, abs=1e-9)
    assert orbit.transverse[0].real == pytest.approx(1.0 / stable.transverse[0].real, rel=1e-7)
    assert not orbit.stable


def test_a_solution_is_a_guess() -> None:
    """The last period of a motion that has approached a stable periodic motion."""
    solver = van_der_pol()
    motion = solver.integrate((0.0, 40.0), {"x": 0.1}, {"v": 0.0})
    orbit = solver.periodic_motion(motion, period=6.6, segments=3)
    assert orbit.period == pytest.approx(VAN_DER_POL, abs=1e-10)
    assert orbit.t == 40.0 - 6.6
    with raises(kg.SolveError, "lasts at least the period"):
        solver.periodic_motion(motion, period=50.0)
    with raises(kg.SolveError, "is a motion of 'van_der_pol'"):
        pendulum().periodic_motion(motion, period=2.0)


def test_texts() -> None:
    solver = van_der_pol()
    orbit = solver.periodic_motion({"x": 1.0, "v": 0.5}, period=6.0)
    assert "period 6.66329 s" in repr(orbit)
    assert "Periodic motion" in orbit._repr_html_()
    curve = solver.periodic_motions_curve("mu", (1.0, 1.2), orbit, step=0.3)
    assert "mu = 1 to 1.2" in repr(curve)
    assert f"{len(curve)} periodic motions" in curve._repr_html_()
    with raises(kg.SolveError, "no coordinate, speed or state 'y'"):
        orbit["y"]
    again = pickle.loads(pickle.dumps(orbit))
    np.testing.assert_array_equal(again.multipliers, orbit.multipliers)
    assert solver.periodic_motion(again).period == pytest.approx(orbit.period, rel=1e-12)
    assert solver.with_initial(orbit.initial).periodic_motion(period=orbit.period).iterations == 0


def test_plots() -> None:
    from matplotlib.figure import Figure

    solver = mathieu()
    start = solver.periodic_motion({"x": 0.0, "v": 0.0}, period=math.pi)
    curve = solver.periodic_motions_curve("q", (0.1, 1.0), start, step=0.2)
    axis = kg.plot.orbit_curve(curve, ax=Figure())
    (mark,) = [line for line in axis.get_lines() if line.get_marker() == "^"]
    assert mark.get_xdata()[0] == curve.bifurcations[0].value
    assert {"-", "--"} <= {line.get_linestyle() for line in axis.get_lines()}
    assert axis.get_xlabel() == "q"
    orbit = van_der_pol().periodic_motion({"x": 1.0, "v": 0.5}, period=6.0)
    motion, plane = kg.plot.orbit(orbit, "x", "v", ax=Figure())
    np.testing.assert_array_equal(plane.get_lines()[-1].get_xdata(), orbit.multipliers.real)
    assert motion.get_xlabel() == "x (m)" or motion.get_xlabel() == "x"
    with raises(kg.SolveError, "PeriodicMotion"):
        kg.plot.orbit(curve, "x", "v")
    with raises(kg.SolveError, "PeriodicCurve"):
        kg.plot.orbit_curve(orbit)


def test_bicycle_that_rides_straight() -> None:
    """A steady motion whose wheels turn: the multipliers are exp(lambda T) of the published eigenvalues lambda."""
    bicycle, speed, T = example("whipple_bicycle"), 5.0, 0.4
    q, u = bicycle.upright(speed)
    turns = {"thR": -speed * T / bicycle.DEFAULTS["rR"], "thF": -speed * T / bicycle.DEFAULTS["rF"]}
    orbit = solver_for("whipple_bicycle").periodic_motion(
        [*q, *u], period=T, forced=True, advance={"x": speed * T, **turns}
    )
    for value in np.exp(np.array(bicycle.EIGENVALUES[5]) * T):
        assert np.abs(orbit.transverse - value).min() < 1e-9
    assert len(orbit.multipliers) == 10  # of 16 coordinates and speeds
    rest = np.abs(np.sort(-np.abs(orbit.multipliers))[:6])
    np.testing.assert_allclose(rest, 1.0, atol=1e-6)  # place, heading, wheels, speed


def test_errors() -> None:
    solver = van_der_pol()
    start = {"x": 1.0, "v": 0.5}
    with raises(kg.SolveError, "the guess is an equilibrium of 'van_der_pol'"):
        solver.periodic_motion({"x": 0.0, "v": 0.0}, period=6.0)
    with raises(kg.SolveError, "ended at an equilibrium"):
        solver.periodic_motion({"x": 1e-4, "v": 0.0}, period=1.0)
    with raises(kg.SolveError, "period", "positive number of seconds"):
        solver.periodic_motion(start, period=-1.0)
    with raises(kg.SolveError, "period is None"):
        solver.periodic_motion(start)
    with raises(kg.SolveError, "no coordinate, speed or state 'w'"):
        solver.periodic_motion({"w": 1.0}, period=6.0)
    with raises(kg.SolveError, "no event 'falls'", "rises"):
        solver.periodic_motion(start, period=6.0, section="falls")
    with raises(kg.SolveError, "does not reach the section 'stop'"):
        solver.periodic_motion(start, period=6.0, section="stop")
    with raises(kg.SolveError, "segments"):
        solver.periodic_motion(start, period=6.0, segments=0)
    with raises(kg.SolveError, "no parameter or input 'nu'"):
        solver.periodic_motions_curve("nu", (1.0, 2.0), solver.periodic_motion(start, period=6.0))
    with raises(kg.SolveError, "no option sensitivities"):
        solver.periodic_motion(start, period=6.0, sensitivities=("mu",))
    with raises(kg.SolveError, "nu is no parameter"):
        solver.periodic_motion(start, period=sm.Symbol("nu"))
    with raises(kg.SolveError, "two different numbers"):
        solver.periodic_motions_curve("mu", (1.0, 1.0), solver.periodic_motion(start, period=6.0))
    with raises(kg.SolveError, "raise max_steps="):
        solver.periodic_motions_curve("mu", (1.0, 3.0), solver.periodic_motion(start, period=6.0), max_steps=1)
    with raises(kg.SolveError, "does not repeat after the period"):
        duffing().periodic_motion({"x": 1.0, "v": 0.0}, period=3.0)


def test_a_search_that_fails_ends_with_the_residual() -> None:
    solver = forced_van_der_pol().with_parameters(omega=0.3, mu=3.0)
    with raises(kg.SolveError, "no periodic motion of 'forced_van_der_pol'", "misses its start by", "segments="):
        solver.periodic_motion({"x": 8.0, "v": 0.0}, period=2.0 * math.pi / 0.3)


# -- contacts ---------------------------------------------------------------------------------------------------------


def test_a_ball_on_an_oscillating_table_has_the_multipliers_of_its_impact_map() -> None:
    """The motion that bounces once a period; the map of time and speed of the impacts is known in closed form."""
    solver = kg.build(jump_models.table())
    e, a, omega, g = 0.7, 0.05, 20.0, 9.81
    T = 2 * np.pi / omega
    at = (
        np.arccos((1 - e) / (1 + e) * g * T / 2 / (a * omega)) / omega
    )  # the time of an impact, with speed g T / 2 after
    top = a * np.sin(omega * at) + g * T**2 / 8
    orbit = solver.periodic_motion({"z": top + 5e-4, "v_z": 5e-3}, period=T, t=at + T / 2)
    assert orbit.forced
    assert_allclose([orbit["z"], orbit["v_z"]], [top, 0.0], atol=1e-9)
    t1, t2, v = sm.symbols("t1 t2 v")
    gap = a * sm.sin(omega * t1) + v * (t2 - t1) - g * (t2 - t1) ** 2 / 2 - a * sm.sin(omega * t2)
    after = -e * (v - g * (t2 - t1)) + (1 + e) * a * omega * sm.cos(omega * t2)
    times = [-gap.diff(x) / gap.diff(t2) for x in (t1, v)]
    speeds = [after.diff(x) + after.diff(t2) * dt for x, dt in zip((t1, v), times, strict=True)]
    values = {t1: at, t2: at + T, v: g * T / 2}
    jacobian = np.array(sm.Matrix([times, speeds]).subs(values).tolist(), dtype=float)
    assert_allclose(np.sort(orbit.multipliers.real), np.sort(np.linalg.eigvals(jacobian)), rtol=1e-7)


def test_a_rimless_wheel_has_its_multiplier() -> None:
    """((I + m l^2 cos 2 alpha) / (I + m l^2))^2; cos^2 of twice the half-angle for a point mass (Coleman 1998)."""
    solver = kg.build(jump_models.rimless_wheel())
    I, alpha, gamma, g = 0.01, 0.3, 0.08, 9.81
    kept = (I + np.cos(2 * alpha)) / (I + 1.0)
    before = np.sqrt(2 * g / (1 + I) * 2 * np.sin(alpha) * np.sin(gamma) / (1 - kept**2))
    speed = np.sqrt((kept * before) ** 2 + 2 * g / (1 + I) * (np.cos(alpha + gamma) - np.cos(gamma)))
    start = {"x": 0.0, "z": 1.0, "th": 0.0, "u_x": speed, "u_z": 0.0, "om": speed}
    orbit = solver.periodic_motion(start, period=0.5, advance={"th": 2 * alpha, "x": 2 * np.sin(alpha)})
    assert_allclose(np.abs(orbit.multipliers).min(), kept**2, rtol=1e-9)
    assert [event.kind for event in orbit.solution.events] == ["opens", "impact", "closes"]


@pytest.mark.parametrize(
    ("theta", "dtheta", "multipliers"),
    [
        (0.200310900544287, -0.199832473004977, (-0.19010 + 0.55760j, -0.19010 - 0.55760j)),
        (0.193937369810188, -0.203866927442012, (4.00, 0.459)),
    ],
    ids=["long period", "short period"],
)
def test_the_simplest_walker_has_its_published_gaits(
    theta: float, dtheta: float, multipliers: tuple[complex, ...]
) -> None:
    """Garcia et al. (1998), to the digits they print; half a digit of the last one for the multipliers."""
    start = {"x": 0.0, "v": 0.0, "theta": round(theta, 4), "phi": 2 * round(theta, 4), "dtheta": round(dtheta, 4)}
    start["dphi"] = (1.0 - math.cos(2 * theta)) * dtheta
    orbit = simplest_walker().periodic_motion(start, period=3.85, section="strike")
    assert_allclose([orbit["theta"], orbit["dtheta"]], [theta, dtheta], atol=1e-9)
    found = [min(orbit.multipliers, key=lambda x: abs(x - wanted)) for wanted in multipliers]
    assert_allclose(found, multipliers, atol=5e-3 if multipliers[0] == 4.0 else 1e-5)


def test_the_gaits_of_the_simplest_walker_double_their_period() -> None:
    """Near 0.0151 rad."""
    start = {"x": 0.0, "v": 0.0, "theta": 0.2003, "phi": 0.4006, "dtheta": -0.1998, "dphi": -0.0158}
    walker = simplest_walker()
    orbit = walker.periodic_motion(start, period=3.88, section="strike")
    curve = walker.periodic_motions_curve("gamma", (0.009, 0.0155), orbit, step=0.2)
    (doubling,) = [point for point in curve.bifurcations if point.kind == "period doubling"]
    assert_allclose(doubling.value, 0.0151, atol=5e-5)
