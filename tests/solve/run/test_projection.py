"""Projection after the steps of an integration: drift, order, dense output, inputs, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from handmade_track import solver as track
from linkages import solver_of
from messages import raises
from scipy.interpolate import CubicSpline
from systems import initial, solver_for
from tolerances import FINE_INTEGRATION, PROJECTED

import kanegen as kg
from kanegen.errors import ModelError, SolveError
from kanegen.solve import IntegrationError, Outcome

FIXED = {"method": "kutta_merson", "step": 1e-3}
METHODS: list[dict[str, Any]] = [
    {"method": "rk4", "step": 1e-3},
    FIXED,
    {"method": "dopri5"},
    {"method": "dop853"},
]
START = ((1.0, 0.0), (0.0, 0.0))


def pendulum(stabilization: Any = None) -> kg.Solver:
    return solver_for("varying_pendulum").with_stabilization(stabilization)


def violation(solution: kg.Solution) -> tuple[float, float]:
    """The largest residuals of the varying pendulum: of the position, of the speeds."""
    x, y, u1, u2 = *solution.q.T, *solution.u.T
    return np.abs(y + x**2 - 1.0).max(), np.abs(u2 + 2.0 * x * u1).max()


def energy_error(solution: kg.Solution) -> float:
    energy = (solution.u**2).sum(axis=1) / 2.0 + 9.81 * (1.0 - solution.q[:, 1])
    return float(np.ptp(energy))


@pytest.mark.parametrize("options", METHODS)
def test_violations_stay_below_rounding(options: dict[str, Any]) -> None:
    free = pendulum().integrate((0.0, 60.0), *START, **options)
    projected = pendulum(kg.Projection()).integrate((0.0, 60.0), *START, **options)
    assert max(violation(projected)) < PROJECTED
    assert max(violation(free)) > 10.0 * max(violation(projected))
    assert energy_error(projected) <= 1.1 * energy_error(free)
    assert 0 < projected.statistics.projections <= projected.statistics.steps
    assert free.statistics.projections == 0


@pytest.mark.parametrize("name", ["slider_crank", "rolling_disk"])
def test_speeds_change_least_in_the_metric_of_the_kinetic_energy(name: str) -> None:
    """After one long step: du = -Q^-1 J^T (J Q^-1 J^T)^-1 psi, of which the positions are moved by the same order."""
    plain, start = solver_for(name), initial(name)
    options: dict[str, Any] = {"method": "rk4", "step": 0.01, "dense_output": False}
    free = plain.integrate((0.0, 0.01), start["q"], start["u"], **options)
    solver = plain.with_stabilization(kg.Projection())
    projected = solver.integrate((0.0, 0.01), start["q"], start["u"], **options)
    q, u = projected.q[-1], free.u[-1]
    assert np.abs(np.concatenate(solver.residuals(0.01, q, projected.u[-1]))).max() < PROJECTED
    J, Q = plain.J(0.01, q, u), plain.Q(0.01, q, u)
    psi = J @ (u - projected.u[-1])
    along = np.linalg.solve(Q, J.T)
    expected = -along @ np.linalg.solve(J @ along, psi)
    size = np.abs(expected).max()
    assert size > 1e3 * PROJECTED
    np.testing.assert_allclose(projected.u[-1] - u, expected, atol=0.01 * size)


@pytest.mark.parametrize("name", ["slider_crank", "rolling_disk"])
def test_corrections_with_the_mass_matrix_of_an_earlier_step_are_hardly_longer(name: str) -> None:
    """Q is evaluated in every fourth step. If it changes by the fraction e until then, corrections are e^2/2 longer."""
    plain, start = solver_for(name), initial(name)
    solver, step = plain.with_stabilization(kg.Projection()), 0.02
    options: dict[str, Any] = {"method": "rk4", "step": step, "dense_output": False}
    run = solver.integrate((0.0, 24 * step), start["q"], start["u"], **options)
    longer, changes = [], []
    for k in range(1, run.t.size):
        free = plain.integrate((run.t[k - 1], run.t[k]), run.q[k - 1], run.u[k - 1], **options).u[-1]
        J, Q = plain.J(run.t[k], run.q[k], free), plain.Q(run.t[k], run.q[k], free)
        correction, along = run.u[k] - free, np.linalg.solve(Q, J.T)
        shortest = along @ np.linalg.solve(J @ along, J @ correction)
        longer.append(np.sqrt(correction @ Q @ correction / (shortest @ Q @ shortest)) - 1.0)
        earlier = plain.Q(run.t[max(0, k - 3)], run.q[max(0, k - 3)], free)
        changes.append(np.linalg.norm(np.linalg.solve(Q, earlier) - np.eye(len(Q)), 2))
    assert 1e-6 < max(longer) < max(changes) ** 2 / 2.0


@pytest.mark.parametrize("name", ["slider_crank", "rolling_disk"])
def test_derivatives_at_the_ends_of_steps_are_kept_where_they_are_hardly_moved(name: str) -> None:
    plain, start = solver_for(name), initial(name)
    solvers = (plain, plain.with_stabilization(kg.Projection()))
    free, projected = (solver.integrate((0.0, 5.0), start["q"], start["u"], method="dopri5") for solver in solvers)
    assert projected.statistics.projections > 0.9 * projected.statistics.steps
    assert projected.statistics.evaluations <= free.statistics.evaluations + 0.1 * projected.statistics.steps


def test_the_order_of_the_method_is_kept() -> None:
    solver = pendulum(kg.Projection())
    exact = solver.integrate((0.0, 2.0), *START, method="dop853", rtol=1e-13, atol=1e-13)
    errors = []
    for step in (0.02, 0.01, 0.005):
        found = solver.integrate((0.0, 2.0), *START, method="rk4", step=step)
        errors.append(np.abs(found.q[-1] - exact.q[-1]).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx([4.0, 4.0], abs=0.35)


@pytest.mark.parametrize("options", METHODS)
def test_dense_output_passes_through_the_projected_states(options: dict[str, Any]) -> None:
    solution = pendulum(kg.Projection()).integrate((0.0, 3.0), *START, **options)
    q, u = solution(solution.t)
    np.testing.assert_array_equal(q[:-1], solution.q[:-1])
    np.testing.assert_array_equal(u[:-1], solution.u[:-1])
    middle = (solution.t[1:] + solution.t[:-1]) / 2.0
    x, y = solution(middle)[0].T
    assert np.abs(y + x**2 - 1.0).max() < FINE_INTEGRATION
    asked = pendulum(kg.Projection()).integrate((0.0, 3.0), *START, t_eval=middle, **options)
    np.testing.assert_allclose(asked.q, solution(middle)[0], rtol=PROJECTED, atol=PROJECTED)


def test_the_change_is_along_the_gradient() -> None:
    """The mass matrix is a multiple of the identity: the smallest change is orthogonal to the constraint."""
    one_step = {"method": "rk4", "step": 0.1}
    free = pendulum().integrate((0.0, 0.1), *START, **one_step)
    moved = pendulum(kg.Projection()).integrate((0.0, 0.1), *START, **one_step)
    dq, du = moved.q[-1] - free.q[-1], moved.u[-1] - free.u[-1]
    for change, x, limit in ((dq, free.q[-1, 0], 10.0 * np.abs(dq).max()), (du, moved.q[-1, 0], FINE_INTEGRATION)):
        across = change[0] - 2.0 * x * change[1]
        assert np.abs(change).max() > 1e2 * PROJECTED
        assert abs(across) <= limit * np.abs(change).max()


def test_every_so_many_steps_and_at_the_end() -> None:
    solution = pendulum(kg.Projection(every=7)).integrate((0.0, 1.0), *START, method="rk4", step=0.01)
    assert solution.statistics.projections == 100 // 7 + 1
    residuals = [
        np.abs(np.concatenate(pendulum().residuals(0.0, q, u))).max()
        for q, u in zip(solution.q, solution.u, strict=True)
    ]
    assert max(residuals[7::7]) < PROJECTED < max(residuals)
    assert residuals[-1] < PROJECTED


def test_backwards() -> None:
    solution = pendulum(kg.Projection()).integrate((0.0, -5.0), *START)
    assert max(violation(solution)) < PROJECTED


def test_invariants_are_kept() -> None:
    solver = solver_of("hinged_body").with_stabilization(kg.Projection())
    q, u = solver.make_consistent(0.0, (0.9, 0.1, -0.1, 0.3), (1.0, 2.0, 3.0))
    solution = solver.integrate((0.0, 20.0), q, u)
    for state in zip(solution.q[::50], solution.u[::50], strict=True):
        assert max(np.abs(values).max() for values in solver.residuals(0.0, *state)) < PROJECTED
    free = solver.with_stabilization(None).integrate((0.0, 20.0), q, u)
    assert abs(np.linalg.norm(free.q[-1]) - 1.0) > 1e2 * PROJECTED
    np.testing.assert_allclose(solution.q[-1], free.q[-1], atol=1e2 * FINE_INTEGRATION)


def test_constraints_nonlinear_in_the_speeds() -> None:
    solver = solver_for("appell_hamel", constraints="nonlinear").with_stabilization(kg.Projection())
    start = initial("appell_hamel")
    solution = solver.integrate((0.0, 20.0), start["q"], start["u"])
    limit = PROJECTED * max(1.0, np.abs(solution.q).max(), np.abs(solution.u).max())
    for state in zip(solution.q, solution.u, strict=True):
        assert max(np.abs(values).max() for values in solver.residuals(0.0, *state)) < limit


@pytest.mark.parametrize("kind", ["spline", "python"])
def test_the_constraints_are_those_at_the_time_of_the_state(kind: str) -> None:
    radius = CubicSpline([0.0, 1.0, 2.0, 3.0], [1.0, 1.5, 0.8, 1.2])
    inputs: Any = {"r": radius} if kind == "spline" else lambda t: [float(radius(t, k)) for k in range(3)]
    solver = solver_of("lifted_ball").with_stabilization(kg.Projection())
    r0 = [float(radius(0.0, k)) for k in range(3)]
    q, u = solver.make_consistent(0.0, (1.0, 0.0, -0.5), (0.0, 1.0, 0.0), r0)
    solution = solver.integrate((0.0, 3.0), q, u, inputs)
    np.testing.assert_allclose((solution.q**2).sum(axis=1), radius(solution.t) ** 2, rtol=10.0 * PROJECTED)


def test_a_python_input_that_fails_during_a_projection() -> None:
    solver = solver_of("lifted_ball").with_stabilization(kg.Projection())
    q, u = solver.make_consistent(0.0, (1.0, 0.0, -0.5), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))

    def inputs(t: float) -> list[float]:
        if t >= 0.5:
            raise ValueError("out of range")
        return [1.0, 0.0, 0.0]

    with raises(IntegrationError, "ValueError", "out of range"):
        solver.integrate((0.0, 0.5), q, u, inputs, method="rk4", step=0.5 - 1e-12)


def test_constraints_that_cannot_be_met_stop_the_run() -> None:
    solver = solver_of("lifted_ball").with_stabilization(kg.Projection())
    q, u = solver.make_consistent(0.0, (1.0, 0.0, -0.5), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))

    def inputs(t: float) -> list[float]:
        # From t = 0.5 s on the radius is further away than Newton's method gets from here.
        return [1e150 if t >= 0.5 else 1.0, 0.0, 0.0]

    with raises(IntegrationError, "constraints", "state") as caught:
        solver.integrate((0.0, 1.0), q, u, inputs, method="rk4", step=0.5)
    assert caught.value.solution.status is Outcome.INCONSISTENT
    assert caught.value.solution.t.size == 1


def test_massless_parts_are_moved() -> None:
    solver = solver_of("lifted_ball", form="reduced", massless=True)
    q, _ = solver.make_consistent(0.0, (0.3, 0.4, 1.0), (0.0, 0.0, 0.0), (1.3, 0.0, 0.0))
    np.testing.assert_allclose(q, [0.3, 0.4, 1.2], rtol=1e-4)


def test_what_cannot_be_projected_is_refused() -> None:
    with raises(SolveError, "functions="):
        track(stabilization=kg.Projection()).integrate((0.0, 1.0), [0.0, 0.0], [0.0, 0.0], start_tolerance=None)
    with raises(SolveError, "stabilize"):
        solver_for("n_link_pendulum", n=3).with_stabilization(kg.Projection())
    with raises(ModelError, "every=0"):
        kg.Projection(every=0)
    with raises(ModelError, "2"):
        kg.Projection(every=True, tolerance=-1.0)


def test_automatic_gains() -> None:
    gains = kg.Baumgarte.for_period(np.pi)
    assert (gains.G1, gains.G2, gains.G) == (-8.0, -16.0, -4.0)
    solution = pendulum(kg.Baumgarte.for_period(1.2)).integrate((0.0, 60.0), *START, **FIXED)
    assert violation(solution)[0] < 1e-10
    wrong: Any
    for wrong in (0.0, -1.0, np.inf, True, "2 s"):
        with raises(ModelError, "positive"):
            kg.Baumgarte.for_period(wrong)


def test_gains_do_not_enter_a_projected_right_hand_side() -> None:
    off = ((0.9, 0.3), (1.0, -1.0))
    projected = pendulum(kg.Projection())
    np.testing.assert_array_equal(projected.rhs(0.0, *off)[1], pendulum().rhs(0.0, *off)[1])
    assert projected.with_parameters(m=2.0).stabilization == kg.Projection()
