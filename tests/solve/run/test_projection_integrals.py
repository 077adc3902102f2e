"""Projection onto integrals of motion: what is kept, what it does to the motion, and where nothing can be corrected."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from systems import example, initial, model_of, solver_for
from tolerances import CONVERGENCE_ORDER, PROJECTED

import kanegen as kg
from kanegen.errors import ModelError, SolveError
from kanegen.solve import IntegrationError, Outcome

MASS, LENGTH, GRAVITY = 1.3, 0.7, 9.81
BOTH = kg.Projection(integrals=("energy", "angular_momentum"))
REST = ((1.0, 0.0), (0.0, 0.0))


@cache
def spherical() -> kg.Solver:
    return kg.build(model_of("spherical_pendulum"), stabilization=BOTH)


@cache
def varying() -> kg.Solver:
    return kg.build(model_of("varying_pendulum"), stabilization=kg.Projection(integrals="energy"))


def spherical_integrals(solution: kg.Solution) -> tuple[np.ndarray, np.ndarray]:
    """Energy and angular momentum about the vertical, from their formulas."""
    (theta, _), (u1, u2) = solution.q.T, solution.u.T
    inertia = MASS * LENGTH**2
    energy = inertia * (u1**2 + u2**2 * np.sin(theta) ** 2) / 2.0 - MASS * GRAVITY * LENGTH * np.cos(theta)
    return energy, inertia * u2 * np.sin(theta) ** 2


def varying_energy(solution: kg.Solution) -> np.ndarray:
    return (solution.u**2).sum(axis=1) / 2.0 + GRAVITY * (1.0 - solution.q[:, 1])


@pytest.mark.parametrize(
    "options",
    [
        {"method": "rk4", "step": 0.01},
        {"method": "kutta_merson", "step": 0.01},
        {"method": "dopri5"},
        {"method": "dop853"},
    ],
    ids=lambda options: str(options["method"]),
)
def test_energy_and_momentum_stay_at_rounding_for_200_s(options: dict[str, Any]) -> None:
    start = initial("spherical_pendulum")
    kept = spherical().integrate((0.0, 200.0), start["q"], start["u"], **options)
    free = spherical().with_stabilization(None).integrate((0.0, 200.0), start["q"], start["u"], **options)
    assert kept.statistics.projections > 0.9 * kept.statistics.steps
    for mine, other in zip(spherical_integrals(kept), spherical_integrals(free), strict=True):
        off = np.abs(mine - mine[0]) > PROJECTED
        assert off.sum() <= kept.statistics.integrals_left <= 2
        assert np.abs(other - other[0]).max() > 1e-7


def test_the_motion_is_nearer_to_hamiltons_equations() -> None:
    times = np.linspace(0.0, 100.0, 201)
    exact = example("spherical_pendulum").hamilton(times)[:, :2]
    start = initial("spherical_pendulum")
    errors = [
        np.abs(solver.integrate((0.0, 100.0), start["q"], start["u"], t_eval=times).q - exact).max()
        for solver in (spherical(), spherical().with_stabilization(None))
    ]
    assert errors[0] < 0.2 * errors[1]


def test_the_order_is_kept_through_turning_points() -> None:
    """From rest to rest and on: ten points at which the gradient of the energy vanishes."""
    exact = varying().with_stabilization(None).integrate((0.0, 8.0), *REST, method="dop853", rtol=1e-13, atol=1e-13)
    errors = []
    for step in (0.016, 0.008, 0.004):
        found = varying().integrate((0.0, 8.0), *REST, method="rk4", step=step)
        errors.append(np.abs(found.q[-1] - exact.q[-1]).max())
        assert found.statistics.integrals_left > 0
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert orders == pytest.approx([4.0, 4.0], abs=CONVERGENCE_ORDER)


def test_energy_beside_the_constraints() -> None:
    solution = varying().integrate((0.0, 200.0), *REST)
    energy = varying_energy(solution)
    free = varying().with_stabilization(kg.Projection()).integrate((0.0, 200.0), *REST)
    off = np.abs(energy - energy[0]) > PROJECTED * GRAVITY
    assert 0 < off.sum() <= solution.statistics.integrals_left < 0.02 * solution.statistics.steps
    assert np.abs(energy - energy[0]).max() < 1e-3 * np.abs(varying_energy(free) - energy[0]).max()
    (x, y), (u1, u2) = solution.q.T, solution.u.T
    assert np.abs(y + x**2 - 1.0).max() < PROJECTED
    assert np.abs(u2 + 2.0 * x * u1).max() < PROJECTED


def test_projection_at_rest_does_not_divide_by_zero() -> None:
    solution = varying().integrate((0.0, 1.0), (0.0, 1.0), (0.0, 0.0), method="rk4", step=0.1)
    np.testing.assert_array_equal(solution.q[-1], [0.0, 1.0])
    np.testing.assert_array_equal(solution.u[-1], [0.0, 0.0])
    off = varying().integrate((0.0, 1.0), (1e-9, 1.0), (0.0, 0.0), method="rk4", step=0.1)
    assert np.isfinite(off.u).all()
    assert np.abs(off.q[:, 0]).max() <= 1e-9


def test_dependent_integrals_the_first_is_kept() -> None:
    """On a circle the gradients of energy and momentum are parallel."""
    theta = 0.6
    start = ((theta, 0.0), (0.0, np.sqrt(GRAVITY / (LENGTH * np.cos(theta)))))
    for integrals in (("energy", "angular_momentum"), ("angular_momentum", "energy")):
        solver = spherical().with_stabilization(kg.Projection(integrals=integrals))
        solution = solver.integrate((0.0, 50.0), *start, method="rk4", step=0.05)
        found = dict(zip(("energy", "angular_momentum"), spherical_integrals(solution), strict=True))
        assert np.ptp(found[integrals[0]]) < PROJECTED * GRAVITY
        assert np.abs(solution.q[:, 0] - theta).max() < 1e-6


def test_every_so_many_steps() -> None:
    start = initial("spherical_pendulum")
    solver = spherical().with_stabilization(kg.Projection(every=10, integrals=BOTH.integrals))
    solution = solver.integrate((0.0, 2.0), start["q"], start["u"], method="rk4", step=0.01)
    error = np.abs(spherical_integrals(solution)[0] - spherical_integrals(solution)[0][0])
    assert solution.statistics.projections == 20
    assert error[::10].max() < PROJECTED < error.max()


def spinning_top(outputs: dict[str, Any], **options: Any) -> kg.Model:
    """A rigid body about its fixed mass center in body axes, with a damping couple ``c w`` along each axis."""
    u = sm.Matrix(me.dynamicsymbols("u1:4"))
    q = sm.Matrix(me.dynamicsymbols("q1:4"))
    t, c = me.dynamicsymbols._t, sm.Symbol("c")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_body_fixed(N, tuple(q), "ZXY")
    w = u[0] * B.x + u[1] * B.y + u[2] * B.z
    rates = sm.solve((B.ang_vel_in(N) - w).to_matrix(B), q.diff(t).T.tolist()[0])
    B.set_ang_vel(N, w)
    O = me.Point("O")
    O.set_vel(N, 0)
    body = me.RigidBody("top", O, B, sm.Integer(1), (me.inertia(B, 1, 2, 3), O))
    momentum = body.angular_momentum(O, N)
    return kg.Model(
        name="spinning_top",
        frame=N,
        coordinates=tuple(q),
        speeds=tuple(u),
        kinematics=tuple(qi.diff(t) - rates[qi.diff(t)] for qi in q),
        bodies=(body,),
        loads=((B, -c * w),),
        outputs={"H": momentum.to_matrix(N), "spin": u[2].diff(t), "tilt": sm.cos(q[1])} | outputs,
        parameters={c: 0.0},
        **options,
    )


@cache
def top() -> kg.Solver:
    return kg.build(spinning_top({"inverse": 1 / me.dynamicsymbols("u1")}), functions=("outputs", "Q", "integrals"))


def test_outputs_with_several_components_are_kept_each() -> None:
    solver = top().with_stabilization(kg.Projection(integrals=("H",)))
    start = ((0.3, 0.2, -0.4), (0.01, 5.0, 0.02))  # the middle axis: the body tumbles
    solution = solver.integrate((0.0, 20.0), *start, method="rk4", step=0.005)
    assert np.ptp(solution.u[:, 1]) > 8.0
    H = np.array([solver.outputs(0.0, q, u)["H"] for q, u in zip(solution.q, solution.u, strict=True)])
    assert np.abs(H - H[0]).max() < 10.0 * PROJECTED
    assert solution.statistics.integrals_left == 0


def test_a_quantity_that_is_not_conserved_is_kept_and_its_drift_reported() -> None:
    start = ((0.3, 0.2, -0.4), (0.01, 5.0, 0.02))
    kept = top().with_stabilization(kg.Projection(integrals=("H",)))
    options: dict[str, Any] = {"method": "rk4", "step": 0.005}
    true = kept.integrate((0.0, 1.0), *start, **options).statistics.integral_drift
    false = kept.with_parameters(c=0.5).integrate((0.0, 1.0), *start, **options).statistics.integral_drift
    assert true < 1e-6
    assert false == pytest.approx(0.5 / 2.0 * 0.005, rel=0.05)  # w' = -c w / I about the middle axis, one step


def test_an_integral_without_a_value_at_the_start() -> None:
    solver = top().with_stabilization(kg.Projection(integrals=("inverse",)))
    with pytest.raises(IntegrationError) as caught:
        solver.integrate((0.0, 1.0), (0.3, 0.2, -0.4), (0.0, 5.0, 0.02))
    assert caught.value.solution.status is Outcome.NOT_FINITE


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("spin", ("'spin'", "accelerations")),
        ("tilt", ("'tilt'", "speeds")),
        ("energy", ("'energy'", "potential energy")),
        ("inverse_", ("'inverse_'", "'inverse'")),
    ],
)
def test_outputs_that_cannot_be_integrals_are_refused(name: str, names: tuple[str, ...]) -> None:
    with raises(SolveError, *names):
        top().with_stabilization(kg.Projection(integrals=("H", name)))


def test_what_was_not_built_is_refused() -> None:
    with raises(SolveError, "'energy'", "kanegen.build"):
        solver_for("spherical_pendulum").with_stabilization(kg.Projection(integrals=("energy",)))
    wrong: Any
    for wrong in (("energy", "energy"), (1.0,)):
        with raises(ModelError, "'energy'", "outputs"):
            kg.Projection(integrals=wrong)


def test_an_output_called_energy_is_ambiguous() -> None:
    two = spinning_top({"energy": me.dynamicsymbols("u1") ** 2}, potential_energy=sm.Integer(0))
    solver = kg.build(two, functions=("rhs",))
    with raises(SolveError, "energy", "output"):
        solver.with_stabilization(kg.Projection(integrals="energy"))
