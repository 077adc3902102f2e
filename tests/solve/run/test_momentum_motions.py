"""Motions in the momentum forms and by Hamilton's equations: integrals, equal trajectories, large systems."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from beads import TIME, beads
from special_systems import free_body, shaken_pendulum, turning_rod
from systems import example, initial, model_of, solver_for, states
from tolerances import EVALUATION, FINE_INTEGRATION

import kanegen as kg
from kanegen.derivation.equations import SQUARE_LIMIT

TIGHT = {"method": "dop853", "rtol": 1e-12, "atol": 1e-12}


def test_integrals_of_the_spherical_pendulum() -> None:
    solver, start = solver_for("spherical_pendulum", "hamilton"), initial("spherical_pendulum")
    assert solver.cyclic_coordinates == ("phi",)
    assert solver.description.form == "hamilton"
    solution = solver.integrate((0.0, 20.0), start["q"], start["u"], **TIGHT)
    at = list(zip(solution.t, solution.q, solution.u, strict=True))
    p_phi = np.array([solver.momentum(*state)[1] for state in at])
    H = np.array([solver.hamiltonian(*state) for state in at])
    h = np.array([solver.jacobi_integral(*state) for state in at])
    p = solver.parameters
    theta, rates = solution.q[:, 0], solution.u
    assert np.ptp(p_phi) < 1e-14 * abs(p_phi[0])  # p_phi' is zero in the code: only the conversion to u rounds
    assert np.allclose(p_phi, p["m"] * p["l"] ** 2 * rates[:, 1] * np.sin(theta) ** 2, rtol=1e-13, atol=0.0)
    assert np.ptp(H) < 1e-10
    assert np.abs(H - h).max() < 1e-13
    constant = [H[k] - solver.energy(*state) for k, state in enumerate(at)]
    assert np.ptp(constant) < 1e-13


def test_canonical_equations_of_the_lecture() -> None:
    """theta' = p_theta / (m l^2), phi' = p_phi / (m l^2 s^2), p_theta' = p_phi^2 c / (m l^2 s^3) - m g l s."""
    solver = solver_for("spherical_pendulum", "hamilton")
    m, l, g = (solver.parameters[name] for name in ("m", "l", "g"))
    assert m is not None
    assert l is not None
    assert g is not None
    theta, p_theta, p_phi = 0.7, 0.4, -0.9
    qdot, pdot = solver.momentum_rhs(0.0, [theta, 0.3], [p_theta, p_phi])
    s, c, inertia = np.sin(theta), np.cos(theta), m * l**2
    assert np.allclose(qdot, [p_theta / inertia, p_phi / (inertia * s**2)], rtol=1e-14)
    assert pdot[0] == pytest.approx(p_phi**2 * c / (inertia * s**3) - m * g * l * s, rel=1e-13)
    assert pdot[1] == 0.0


def test_rolling_disk_in_all_forms_side_by_side() -> None:
    start, span = initial("rolling_disk"), (0.0, 5.0)
    solutions = {
        form: solver_for("rolling_disk", form).integrate(
            span, start["q"], start["u"], **TIGHT, t_eval=np.linspace(*span, 51)
        )
        for form in ("reduced", "momentum", "momentum_unreduced")
    }
    reference = solutions["reduced"]
    for form in ("momentum", "momentum_unreduced"):
        assert np.abs(solutions[form].q - reference.q).max() < 1e-9
        assert np.abs(solutions[form].u - reference.u).max() < 1e-9
    solver, solution = solver_for("rolling_disk", "momentum"), solutions["momentum"]
    slip = [solver.residuals(t, q, u)[1] for t, q, u in zip(solution.t, solution.q, solution.u, strict=True)]
    assert np.abs(slip).max() < 1e-14 * np.abs(solution.u).max()


def test_reduced_momentum_equations_of_the_rolling_disk() -> None:
    """The lecture's final equations times the reduced inertias m R^2 (5, 1, 6) / 4."""
    solver = solver_for("rolling_disk", "momentum")
    m, R = solver.parameters["m"], solver.parameters["R"]
    assert m is not None
    assert R is not None
    inertias = m * R**2 * np.array([5.0, 1.0, 6.0]) / 4
    for state in states("rolling_disk"):
        momenta = solver.reduced_momentum(state.t, state.q, state.u)
        u = solver.speeds_from_momentum(state.t, state.q, momenta)
        assert np.allclose(momenta, inertias * u[:3], rtol=1e-12)
        _, rates = solver.momentum_rhs(state.t, state.q, momenta)
        assert np.allclose(rates, inertias * example("rolling_disk").accelerations(state.q, u), rtol=1e-11, atol=1e-12)


def test_rheonomic_jacobi_integral_is_not_the_energy() -> None:
    """A bead on a rod turned at 3 rad/s: K = m (s'^2 + 9 s^2) / 2, and h = m (s'^2 - 9 s^2) / 2 is conserved."""
    solver = kg.build(turning_rod(), form="hamilton")
    solution = solver.integrate((0.0, 1.0), [0.2], [0.1], **TIGHT)
    h = [solver.jacobi_integral(*state) for state in zip(solution.t, solution.q, solution.u, strict=True)]
    H = [solver.hamiltonian(*state) for state in zip(solution.t, solution.q, solution.u, strict=True)]
    s, rate_s = solution.q[:, 0], solution.u[:, 0]
    assert np.allclose(h, rate_s**2 - 9 * s**2, rtol=0, atol=1e-12)
    assert np.allclose(h, H, rtol=0, atol=1e-12)
    assert np.ptp(h) < 1e-10
    assert solver.energy(0.0, solution.q[-1], solution.u[-1]) > 2 * solver.energy(0.0, solution.q[0], solution.u[0])


@pytest.mark.parametrize("form", ["momentum", "momentum_unreduced", "hamilton"])
def test_momenta_of_prescribed_motion(form: str) -> None:
    """A pendulum whose pivot is moved by an input: N is not zero, and the run converts with the inputs of its times."""
    solver, reference = kg.build(shaken_pendulum(), form=form), kg.build(shaken_pendulum(), form="reduced")

    def shake(t: float) -> list[float]:
        return [0.1 * np.sin(9 * t), 0.9 * np.cos(9 * t), -8.1 * np.sin(9 * t)]

    to = solver.reduced_momentum if form == "momentum" else solver.momentum
    assert abs(to(0.0, [0.7], [0.0], shake(0.0))[0]) > 0.1
    runs = [s.integrate((0.0, 2.0), [0.7], [0.2], r=shake, **TIGHT) for s in (solver, reference)]
    times = np.linspace(0.0, 2.0, 9)
    for mine, other in zip(runs[0](times), runs[1](times), strict=True):
        assert np.abs(mine - other).max() < 1e-8
    for k in (0, len(runs[0].t) // 2):
        q, u = runs[0](runs[0].t[k])
        assert np.allclose(q, runs[0].q[k], atol=1e-12)
        assert np.allclose(u, runs[0].u[k], atol=1e-11)


def test_momenta_of_quasivelocities() -> None:
    """Euler's equations: momenta (2, 3, 5) w; the energy stays, n_q = 4 > n_u = 3."""
    solver = kg.build(free_body(), form="momentum")
    w = np.array([0.3, -2.0, 0.5])
    solution = solver.integrate((0.0, 5.0), [1.0, 0.0, 0.0, 0.0], w, **TIGHT)
    assert np.allclose(solver.reduced_momentum(0.0, solution.q[0], w), [0.6, -6.0, 2.5])
    _, rates = solver.momentum_rhs(0.0, solution.q[0], [0.6, -6.0, 2.5])
    assert np.allclose(rates, -np.cross(w, [0.6, -6.0, 2.5]), rtol=1e-14)
    squares = (solution.u * [2, 3, 5]) @ np.eye(3)
    assert np.ptp(np.linalg.norm(squares, axis=1)) < 1e-10


def test_solution_pickles_with_its_conversion() -> None:
    solver, start = solver_for("spherical_pendulum", "hamilton"), initial("spherical_pendulum")
    solution = solver.integrate((0.0, 1.0), start["q"], start["u"])
    again = pickle.loads(pickle.dumps(solution))
    assert np.array_equal(again(0.37)[1], solution(0.37)[1])
    assert np.array_equal(solution.last[2], solution.u[-1])


def test_stabilized_run_of_the_unreduced_form() -> None:
    start = initial("varying_pendulum")
    gains = kg.Baumgarte(alpha=10, beta=10)
    runs = [
        kg.build(model_of("varying_pendulum"), form=form, stabilization=gains).integrate(
            (0.0, 3.0), start["q"], start["u"], rtol=1e-10, atol=1e-11
        )
        for form in ("momentum_unreduced", "hamilton", "reduced")
    ]
    for run in runs[:2]:
        assert np.abs(run(2.9)[1] - runs[2](2.9)[1]).max() < FINE_INTEGRATION


# -- large and degenerate systems ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["momentum", "momentum_unreduced", "hamilton"])
def test_many_speeds_are_solved_by_the_kernel(form: str) -> None:
    n = SQUARE_LIMIT + 3
    solver, reference = kg.build(beads(n), form=form), kg.build(beads(n), form="reduced")
    q = 0.1 * np.sin(np.arange(n))
    u = np.cos(np.arange(n))
    u[0] = (1 + q[2]) * u[1]
    runs = [s.integrate((0.0, 3.0), q, u, **TIGHT) for s in (solver, reference)]
    for mine, other in zip(runs[0].last[1:], runs[1].last[1:], strict=True):
        assert np.abs(mine - other).max() < 1e-9
    H = [solver.energy(*state) for state in zip(runs[0].t, runs[0].q, runs[0].u, strict=True)]
    assert np.ptp(H) < 1e-10


def test_where_the_named_speeds_fail_others_are_solved_for() -> None:
    """At the ends of the elliptic wire one coordinate's gradient vanishes: the unreduced form goes on from there."""
    solver = solver_for("elliptic_wire", "momentum_unreduced")
    reference = solver_for("elliptic_wire", "reduced")
    p = solver.parameters
    a, b, c, x0 = (p[name] for name in ("a", "b", "c", "x0"))
    assert a is not None
    assert b is not None
    assert c is not None
    assert x0 is not None
    for q, u in (([x0, np.sqrt(c / b)], [0.8, 0.0]), ([x0 + np.sqrt(c / a), 0.0], [0.0, 0.8])):
        _, rates = solver.momentum_rhs(0.0, q, solver.momentum(0.0, q, u))
        udot = reference.rhs(0.0, q, u)[1]
        assert np.abs(rates - reference.Q(0.0, q, u) @ udot).max() < EVALUATION * np.abs(rates).max()


@pytest.mark.parametrize("form", ["momentum", "momentum_unreduced"])
def test_momenta_of_other_speeds_give_the_same_motion(form: str) -> None:
    """Change of speeds by a matrix that depends on q: other momenta, N and Dm, the same coordinates."""
    model, start = model_of("rolling_disk"), initial("rolling_disk")
    (u1, u2, u3, u4, u5), theta = model.speeds, model.coordinates[0]
    w = me.dynamicsymbols("w1:6")
    definitions = [u1 + u2 * sm.cos(theta), 2 * u2, u3 - u1, u4, u5]
    changed = model.with_speeds(w, definitions, dependent_speeds=w[3:])
    u = np.array(start["u"])
    w0 = [u[0] + u[1] * np.cos(start["q"][0]), 2 * u[1], u[2] - u[0], u[3], u[4]]
    run = kg.build(changed, form=form).integrate((0.0, 2.0), start["q"], w0, **TIGHT)
    reference = solver_for("rolling_disk", form).integrate((0.0, 2.0), start["q"], u, **TIGHT)
    assert np.abs(run.q[-1] - reference.q[-1]).max() < 1e-9


@pytest.mark.parametrize("form", ["momentum", "momentum_unreduced", "hamilton"])
def test_a_model_without_free_speeds_in_momentum_form(form: str) -> None:
    """``u = cos t``: the reduced state has no momenta at all."""
    x, u = me.dynamicsymbols("x u")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    model = kg.Model(
        name="driven_bead",
        frame=N,
        coordinates=(x,),
        speeds=(u,),
        kinematics=(u - x.diff(TIME),),
        bodies=(me.Particle("P", O.locatenew("P", x * N.x), sm.Integer(2)),),
        nonholonomic_constraints=(u - sm.cos(TIME),),
    )
    solution = kg.build(model, form=form).integrate((0.0, 1.0), [0.0], [1.0], **TIGHT)
    assert abs(solution.q[-1, 0] - np.sin(1.0)) < 1e-10
    assert abs(solution.u[-1, 0] - np.cos(1.0)) < 1e-10
    assert abs(solution(0.5)[1][0] - np.cos(0.5)) < 1e-8
