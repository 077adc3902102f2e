"""``kg.plot``: drift, phase portraits, work-precision diagrams."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from messages import raises
from systems import example, initial, solver_for

import kanegen as kg


def pendulum(stabilization: Any = None) -> kg.Solver:
    return solver_for("varying_pendulum").with_stabilization(stabilization)


@cache
def motion(projected: bool = False) -> kg.Solution:
    start = initial("varying_pendulum")
    solver = pendulum(kg.Projection() if projected else None)
    solution: kg.Solution = solver.integrate((0.0, 20.0), start["q"], start["u"], rtol=1e-6)
    return solution


def test_drift_is_the_violation_of_the_constraint() -> None:
    """The particle is on the parabola y = 1 - x^2."""
    solution = motion()
    position, velocity, energy = kg.plot.drift(solution, ax=Figure())
    (x, y), (u1, u2) = solution.q.T, solution.u.T
    for axis, error in ((position, y + x**2 - 1.0), (velocity, u2 + 2.0 * x * u1)):
        (line,) = axis.get_lines()
        np.testing.assert_allclose(line.get_ydata(), np.abs(error), atol=1e-14)
        assert axis.get_yscale() == "log"
    total = 0.5 * (u1**2 + u2**2) - 9.81 * y
    change = np.abs(total - total[0])
    np.testing.assert_allclose(energy.get_lines()[0].get_ydata(), change, atol=1e-13)
    assert energy.get_xlabel() == "t (s)"
    assert energy.get_ylabel() == "energy change (J)"  # impacts and friction take energy without any error


def test_drifts_of_several_solutions_are_compared() -> None:
    axes = kg.plot.drift({"none": motion(), "projection": motion(projected=True)}, ax=Figure())
    free, kept = axes[0].get_lines()
    assert [free.get_label(), kept.get_label()] == ["none", "projection"]
    assert free.get_ydata().max() > 1e3 * kept.get_ydata().max()


def test_drift_refuses_what_is_no_solution() -> None:
    with raises(kg.SolveError, "b", "Solution"):
        kg.plot.drift({"a": motion(), "b": 3.0})
    with raises(kg.SolveError, "empty"):
        kg.plot.drift({})


def test_phase_portrait_of_the_pendulum() -> None:
    axis = kg.plot.phase(motion(), "x", "u1", ax=Figure())
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("x", "u1")
    curve, start = axis.get_lines()
    x, u = curve.get_data()
    assert (start.get_xdata()[0], start.get_ydata()[0]) == (motion().q[0, 0], motion().u[0, 0])
    # Energy: u1^2 (1 + 4 x^2) / 2 + g x^2 = g x0^2, also between the steps.
    energy = 0.5 * u**2 * (1.0 + 4.0 * x**2) + 9.81 * x**2
    np.testing.assert_allclose(energy, 9.81, rtol=1e-4)


def test_phase_portrait_has_gaps_at_impacts() -> None:
    start = initial("bouncing_ball")
    solution = solver_for("bouncing_ball").integrate((0.0, 1.5), start["q"], start["u"])
    curve = kg.plot.phase(solution, "z", "u1", ax=Figure()).get_lines()[0]
    x, y = curve.get_data()
    impacts = sum(event.jumps for event in solution.events)
    assert np.isnan(x).sum() == np.isnan(y).sum() == impacts > 0


def test_phase_portrait_of_a_quantity_uses_the_stored_times() -> None:
    solution = motion()
    curve = kg.plot.phase(solution, "x", "energy", ax=Figure()).get_lines()[0]
    np.testing.assert_array_equal(curve.get_xdata(), solution["x"])
    np.testing.assert_array_equal(curve.get_ydata(), solution.energy)
    with raises(kg.SolveError, "momentum", 2):
        kg.plot.phase(solution, "x", "momentum")


def test_work_and_error_of_a_fixed_step_have_the_slope_of_the_order() -> None:
    start, steps = initial("varying_pendulum"), 0.02 / 2.0 ** np.arange(5)
    arguments = ((0.0, 1.0), start["q"], start["u"])
    axis = kg.plot.work_precision(pendulum(), *arguments, methods="rk4", steps=steps, ax=Figure())
    (line,) = axis.get_lines()
    work, error = line.get_data()
    np.testing.assert_array_equal(work, 4.0 / steps)
    slope, _ = np.polyfit(np.log(work), np.log(error), 1)
    assert slope == pytest.approx(-4.0, abs=0.2)


def test_tighter_tolerances_need_more_work() -> None:
    start = initial("varying_pendulum")
    solvers = {"free": pendulum(), "projected": pendulum(kg.Projection())}
    arguments = ((0.0, 2.0), start["q"], start["u"])
    tolerances = (1e-9, 1e-3, 1e-6)
    axis = kg.plot.work_precision(solvers, *arguments, tolerances=tolerances, methods=["dopri5"], ax=Figure())
    assert [line.get_label() for line in axis.get_lines()] == ["free, dopri5", "projected, dopri5"]
    for line in axis.get_lines():
        work, error = line.get_data()
        assert len(work) == 3
        assert (np.diff(work) > 0).all()
        assert (np.diff(error) < 0).all()
    assert axis.get_xscale() == axis.get_yscale() == "log"
    timed = kg.plot.work_precision(pendulum(), *arguments, tolerances=1e-3, work="seconds", ax=Figure())
    assert (timed.get_lines()[0].get_xdata() < 1.0).all()


def test_arguments_of_work_precision_are_checked() -> None:
    start = initial("varying_pendulum")
    arguments: tuple[Any, ...] = (pendulum(), (0.0, 1.0), start["q"], start["u"])
    with raises(kg.SolveError, "rk4", "steps"):
        kg.plot.work_precision(*arguments, methods=["rk4"])
    with raises(kg.SolveError, "rk5", "rk4"):
        kg.plot.work_precision(*arguments, methods=["rk5"])
    with raises(kg.SolveError, "time", "seconds"):
        kg.plot.work_precision(*arguments, work="time")
    with raises(kg.SolveError, "tolerances", -1.0):
        kg.plot.work_precision(*arguments, tolerances=[-1.0])
    with raises(kg.SolveError, "reference", 3, 4):
        kg.plot.work_precision(*arguments, reference=([1.0, 0.0], [0.0]))
    with raises(kg.SolveError, "reference"):
        kg.plot.work_precision(*arguments, reference=3.0)
    with raises(kg.SolveError, "max_steps"):
        kg.plot.work_precision(*arguments, reference=([1.0, 0.0], [0.0, 0.0]), max_steps=1)
    with raises(kg.SolveError, "Solver"):
        kg.plot.work_precision({}, *arguments[1:])


def on_the_parabola(x: Any, y: Any) -> list[tuple[Any, Any]]:
    return [(0.0, 0.0), (x, y)]


def test_stroboscopic_picture_draws_the_mechanism_at_the_times() -> None:
    times = np.array([0.0, 0.3, 0.7])
    axis = kg.plot.strobe(motion(), on_the_parabola, times=times, ax=Figure())
    path, *instants = axis.get_lines()
    np.testing.assert_array_equal([line.get_xdata()[0] for line in instants], 0.0)
    np.testing.assert_array_equal([line.get_xdata()[1] for line in instants], motion()(times)[0][:, 0])
    np.testing.assert_allclose(path.get_ydata(), 1.0 - path.get_xdata() ** 2, atol=1e-6)
    shades = [line.get_alpha() for line in instants]
    assert shades == sorted(set(shades))
    assert axis.get_aspect() == 1.0


def test_arguments_of_stroboscopic_pictures_are_checked() -> None:
    with raises(kg.SolveError, "times", 0):
        kg.plot.strobe(motion(), on_the_parabola, times=0)
    with raises(kg.SolveError, "points"):
        kg.plot.strobe(motion(), lambda x, y: [x, y])
    with raises(kg.SolveError, "Solution"):
        kg.plot.strobe({"a": motion()}, on_the_parabola)
    with raises(kg.SolveError, 30.0):
        kg.plot.strobe(motion(), on_the_parabola, times=[30.0])


@pytest.mark.target
def test_modes_over_the_speed_are_shaded_where_the_bicycle_is_unstable() -> None:
    bicycle = example("whipple_bicycle")
    branch = bicycle.solver().steady_motions("u_x", np.linspace(3.0, 7.0, 9), *bicycle.upright(3.0))
    real, imaginary = kg.plot.modes(branch, ax=Figure())
    assert imaginary.get_xlabel() == "u_x"
    assert len(real.get_lines()) == branch.eigenvalues.shape[1] + 1
    drawn = np.array([line.get_ydata() for line in real.get_lines()[:-1]])
    np.testing.assert_allclose(np.sort(drawn, axis=0), np.sort(branch.eigenvalues.real.T, axis=0))
    borders = sorted({x for patch in real.patches for x in (patch.get_x(), patch.get_x() + patch.get_width())})
    # Weave and capsize speed (Meijaard and others 2007), interpolated between the speeds.
    assert np.abs(np.array(borders) - 4.292).min() < 0.02
    assert np.abs(np.array(borders) - 6.024).min() < 0.02
    axis = kg.plot.modes([state.linear for state in branch.states], branch.values, kind="plane", ax=Figure())[0]
    assert axis.get_xlabel() == "real part (1/s)"
    (one,) = kg.plot.modes(branch.states[0], ax=Figure())
    (line,) = [line for line in one.get_lines() if len(line.get_xdata()) > 2]
    np.testing.assert_allclose(np.sort(line.get_xdata()), np.sort(branch.states[0].eigenvalues.real))


def test_modes_need_eigenvalues() -> None:
    with raises(kg.SolveError, "3.0", "Branch"):
        kg.plot.modes(3.0)
    bicycle = example("whipple_bicycle")
    linear = bicycle.linear(5.0, bicycle.solver())
    with raises(kg.SolveError, "values", "(2,)", "(1,)"):
        kg.plot.modes([linear], [1.0, 2.0])
    with raises(kg.SolveError, "kind", "'locus'", "'parts'", "'plane'"):
        kg.plot.modes([linear], [1.0], kind="locus")
