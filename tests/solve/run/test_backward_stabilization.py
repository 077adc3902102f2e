"""Baumgarte's stabilization backward in time: violations decay toward the end of the run, whatever its start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from scipy.integrate import solve_ivp

import kanegen as kg

GAINS: dict[str, Any] = {
    "scalars": {"alpha": 6.0, "beta": 5.0},
    "separate": {"G1": -9.0, "G2": -30.0, "G": -7.0},
    "matrices": {"G1": [[-9.0]], "G2": [[-30.0]], "G": [[-7.0]]},
}
ALPHA, BETA = 6.0, 5.0


def wire() -> kg.Model:
    """A bead in space on the cylinder x^2 + y^2 = 1 (holonomic), whose climb follows x' (nonholonomic)."""
    x, y, z, u, v, w = me.dynamicsymbols("x y z u v w")
    m, g = sm.symbols("m g", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y + z * N.z)
    P.set_vel(N, u * N.x + v * N.y + w * N.z)
    t = me.dynamicsymbols._t
    return kg.Model(
        name="wire",
        frame=N,
        coordinates=[x, y, z],
        speeds=[u, v, w],
        kinematics={x.diff(t): u, y.diff(t): v, z.diff(t): w},
        bodies=[me.Particle("P", P, m)],
        loads=[(P, -m * g * N.y)],
        holonomic_constraints=[x**2 + y**2 - 1],
        nonholonomic_constraints=[w - y * u / 2],
        parameters={m: 1.0, g: 9.81},
    )


@pytest.fixture(scope="module")
def solver() -> kg.Solver:
    return kg.build(wire(), stabilization=kg.Baumgarte(ALPHA, BETA))


def start(solver: kg.Solver) -> tuple[np.ndarray, np.ndarray]:
    return solver.make_consistent(0.0, [0.6, -0.8, 0.0], [0.8, 0.6, 0.0])


def violation(solver: kg.Solver, solution: kg.Solution, row: int = -1) -> float:
    parts = solver.residuals(float(solution.t[row]), solution.q[row], solution.u[row])
    return float(np.abs(np.concatenate(parts)).max())


@pytest.mark.parametrize("gains", GAINS.values(), ids=list(GAINS))
@pytest.mark.parametrize("method", ["dopri5", "rodas", "rk4"])
def test_a_run_backward_keeps_the_constraints(solver: kg.Solver, gains: Any, method: str) -> None:
    solver, options = solver.with_stabilization(kg.Baumgarte(**gains)), {"step": 1e-3} if method == "rk4" else {}
    if method == "rodas":
        solver = kg.build(wire(), stabilization=kg.Baumgarte(**gains), functions="all")
    back = solver.integrate((10.0, 0.0), *start(solver), method=method, **options)
    ahead = solver.integrate((0.0, 10.0), *start(solver), method=method, **options)
    assert violation(solver, back) < 1e-5
    assert violation(solver, back) < 100 * max(violation(solver, ahead), 1e-9)


def test_violations_decay_backward_as_they_do_forward(solver: kg.Solver) -> None:
    # The position row obeys phi'' + 2 alpha phi' + beta^2 phi = 0 in the time that passes, forward and backward.
    q, u = start(solver)
    q = q * np.array([1.001, 1.001, 1.0])
    sizes = []
    for span in ((0.0, 1.0), (0.0, -1.0)):
        turned = u if span[1] > 0 else -u  # the same motion of the violation: phi' changes its sign with time
        run = solver.integrate(span, q, turned, start_tolerance=None, rtol=1e-11, atol=1e-13)
        sizes.append(solver.residuals(float(run.t[-1]), run.q[-1], run.u[-1])[0][0])
    rates = np.roots([1.0, 2 * ALPHA, BETA**2])
    phi, rate = q[0] ** 2 + q[1] ** 2 - 1, 2 * (q[0] * u[0] + q[1] * u[1])
    factors = np.linalg.solve([[1, 1], rates], [phi, rate])
    expected = factors @ np.exp(rates)
    assert sizes == pytest.approx([expected, expected], rel=1e-6, abs=1e-12)


def test_there_and_back_ends_at_the_start(solver: kg.Solver) -> None:
    q, u = start(solver)
    ahead = solver.integrate((0.0, 2.0), q, u, rtol=1e-11, atol=1e-12)
    back = solver.integrate((2.0, 0.0), ahead.q[-1], ahead.u[-1], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(np.r_[back.q[-1], back.u[-1]], np.r_[q, u], atol=1e-8)
    assert violation(solver, back) < 1e-9


@pytest.mark.parametrize("options", [{}, {"control": False, "sample_time": None, "step": 1e-3, "method": "rk4"}])
def test_ensembles_backward(solver: kg.Solver, options: Any) -> None:
    q, u = start(solver)
    many = solver.integrate_many((10.0, 0.0), np.tile(q, (5, 1)), u, parameters={"g": np.linspace(8, 10, 5)}, **options)
    assert not many.failures
    for row in range(5):
        parts = solver.residuals(0.0, many.q[row, -1], many.u[row, -1])
        assert np.abs(np.concatenate(parts)).max() < 1e-5
    single = solver.with_parameters(g=9.0).integrate((10.0, 0.0), q, u, **options)
    np.testing.assert_allclose(many.q[2, -1], single.q[-1], rtol=1e-9, atol=1e-9)


def test_hosts_that_do_not_know_the_direction_get_the_gains_by_name(solver: kg.Solver) -> None:
    q, u = start(solver)
    turned = solver.with_stabilization(kg.Baumgarte(ALPHA, BETA, backward=True))
    run = solve_ivp(turned.ode, (10.0, 0.0), np.r_[q, u], rtol=1e-8, atol=1e-10)
    assert np.abs(np.concatenate(solver.residuals(0.0, run.y[:3, -1], run.y[3:, -1]))).max() < 1e-5
    # Runs choose by their direction, whatever the option says.
    for span in ((0.0, 5.0), (5.0, 0.0)):
        ends = [x.integrate(span, q, u) for x in (solver, turned)]
        assert np.array_equal(ends[0].q, ends[1].q)
    with raises(kg.ModelError, "backward", "1"):
        kg.Baumgarte(1.0, 1.0, backward=1)  # type: ignore[arg-type]
