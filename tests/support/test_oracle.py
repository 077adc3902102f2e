"""The oracle itself, on systems whose equations are known by hand or printed in the literature."""

from __future__ import annotations

from math import cos, sin

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from oracle import Oracle
from special_systems import free_body, shaken_pendulum, turning_rod
from systems import example, model_of, oracle_for, states
from tolerances import ORACLE_CLOSED_FORM


def parameters(name: str, **options: str) -> dict[str, float]:
    return {str(symbol): value for symbol, value in model_of(name, **options).parameters.items()}


def assert_close(actual: object, expected: object) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=ORACLE_CLOSED_FORM * scale)


def test_holonomic_particle_follows_the_printed_equations() -> None:
    """Bajodah (2003), equations (73)-(75) and (281)-(283), which hold off the manifold too."""
    module, p = example("constrained_particle"), parameters("constrained_particle")
    for state in states("constrained_particle"):
        assert_close(state.reference.udot, module.accelerations(state.q, state.u, p))
        assert_close(state.reference.constraint_force, module.constraint_forces(state.q, state.u, p))


def test_rheonomic_particle_follows_the_printed_equations() -> None:
    module, p = example("rheonomic_particle"), parameters("rheonomic_particle")
    for state in states("rheonomic_particle"):
        assert_close(state.reference.udot, module.accelerations(state.t, state.q, state.u, p))


def test_rolling_disk_follows_the_lecture() -> None:
    module = example("rolling_disk")
    for state in states("rolling_disk"):
        assert_close(state.reference.udot[:3], module.accelerations(state.q, state.u))


def test_varying_pendulum_follows_the_printed_equations() -> None:
    """Equations (310)-(311), and (314)-(315) with Baumgarte's gains."""
    module, oracle = example("varying_pendulum"), oracle_for("varying_pendulum")
    gains = (np.array([[-20.0]]), np.array([[-100.0]]), np.zeros((0, 0)))
    for state in states("varying_pendulum"):
        assert_close(state.reference.udot, module.accelerations(state.q, state.u))
        stabilized = oracle(state.t, state.q, state.u, gains=gains)
        assert_close(stabilized.udot, module.accelerations(state.q, state.u, gains=(-20.0, -100.0)))


def test_motor_arm_has_the_rates_of_its_states_and_the_inertia_of_its_rotor() -> None:
    module, p = example("dc_motor_arm"), parameters("dc_motor_arm")
    for state in states("dc_motor_arm"):
        reference = state.reference
        expected = module.by_hand(p, np.concatenate([state.q, state.u, state.s]))
        assert_close(reference.udot, expected[1:2])
        assert_close(reference.sdot, expected[2:])
        assert_close(reference.M - reference.Q, p["N"] ** 2 * p["Jr"])


def test_elliptic_wire_reaction() -> None:
    """Equation (269) holds on the wire only."""
    start = states("elliptic_wire")[0]
    module, p = example("elliptic_wire"), parameters("elliptic_wire")
    assert_close(start.reference.constraint_force, module.reaction(start.q, start.u, p))
    assert_close(start.reference.outputs["reaction_x"], start.reference.constraint_force[0])


def test_slider_crank_multipliers_are_the_pin_force() -> None:
    for state in states("slider_crank"):
        outputs = state.reference.outputs
        assert_close(state.reference.multipliers, [outputs["slider_pin_y"], outputs["slider_pin_x"]])


def test_appell_hamel_matrices() -> None:
    """Q and P of (199) and (200), A and B of the nonlinear set, (171) and (172)."""
    a, b, rho, m, M, I, g = (parameters("appell_hamel")[n] for n in ("a", "b", "rho", "m", "M", "I", "g"))
    for state in states("appell_hamel", constraints="nonlinear"):
        u1, u2, u3, u4, _ = state.u
        s, c = sin(state.q[3]), cos(state.q[3])
        Q = np.diag([M * rho**2 + I, I, M + m, M + m, m])
        Q[0, 2] = Q[2, 0] = M * rho * s
        Q[0, 3] = Q[3, 0] = -M * rho * c
        assert_close(state.reference.Q, Q)
        assert_close(state.reference.P, [0, 0, -M * rho * u1**2 * c, -M * rho * u1**2 * s, -m * g])
        n1 = rho**2 * u1 + rho * u3 * s - rho * u4 * c
        n2, n3, n4 = -(a**2) * u2, u3 + rho * u1 * s, u4 - rho * u1 * c
        n5, n6 = n3 * c + n4 * s, u3 * c + u4 * s
        A = np.array([[-rho * n4 - n1 * c, -n2 * c], [rho * n3 - n1 * s, -n2 * s], [0, -n5 * b]]) / n5
        B = n6 / n5 * np.array([-u1 * (n4 + rho * u1 * c), u1 * (n3 - rho * u1 * s), 0])
        partitioned = state.reference.partitioned((2, 3, 4))
        assert_close(partitioned["A"], A)
        assert_close(partitioned["B"], B)


def test_appell_hamel_linear_set() -> None:
    """(209)-(211), and the equations of motion (215) and (216) with their errata."""
    a, b, rho, m, M, I, g = (parameters("appell_hamel")[n] for n in ("a", "b", "rho", "m", "M", "I", "g"))
    for state in states("appell_hamel", constraints="linear"):
        u1, u2 = state.u[:2]
        s, c = sin(state.q[3]), cos(state.q[3])
        partitioned = state.reference.partitioned((2, 3, 4))
        assert_close(partitioned["A"], [[-rho * s, a * c], [rho * c, a * s], [0, -b]])
        B = [-a * u1 * u2 * s - rho * u1**2 * c, -rho * u1**2 * s + a * u1 * u2 * c, 0]
        assert_close(partitioned["B"], B)
        d1, d2, d3, d4, d5 = state.reference.udot
        assert_close(I * d1 - m * rho * s * d3 + m * rho * c * d4, 0.0)
        left = I * d2 + a * (M + m) * (c * d3 + s * d4) - b * m * d5
        assert_close(left, -a * M * rho * u1**2 + b * m * g)


def test_prescribed_pivot_moves_the_pendulum() -> None:
    """theta'' = -(g + r'') sin(theta) / l for a pivot at the height r(t); N and the energies with v_t."""
    reference = Oracle(shaken_pendulum())(0.4, [0.9], [1.1], r=[0.3, -0.7, 4.0])
    assert_close(reference.udot, [-14.0 * sin(0.9) / 0.5])
    assert_close(reference.N, [2 * -0.7 * 0.5 * sin(0.9)])
    assert_close(reference.kinetic_energy, (0.55 * cos(0.9)) ** 2 + (0.55 * sin(0.9) - 0.7) ** 2)
    assert_close(reference.potential_energy, 20 * (0.3 - 0.5 * cos(0.9)))


def test_bead_on_a_turning_rod() -> None:
    """Rheonomic positions: s'' = Omega^2 s; the kinetic energy keeps the term without speeds."""
    reference = Oracle(turning_rod())(0.7, [0.4], [1.5])
    assert_close(reference.udot, [9 * 0.4])
    assert_close(reference.kinetic_energy, 1.5**2 + 9 * 0.4**2)


def test_euler_parameters() -> None:
    """Four coordinates, three speeds: Euler's equations; the norm is an invariant, not a row of J."""
    q = np.array([0.1, 0.7, -0.5, 0.5])
    reference = Oracle(free_body())(0.3, q, [0.4, -0.6, 0.9])
    euler = [(3 - 5) * -0.6 * 0.9 / 2, (5 - 2) * 0.9 * 0.4 / 3, (2 - 3) * 0.4 * -0.6 / 5]
    assert_close(reference.udot, euler)
    assert reference.J.shape == (0, 3)
    assert_close(reference.position_residuals, [0.0])
    assert_close(q @ reference.qdot, 0.0)


@pytest.mark.parametrize("n", [1, 2])
def test_spatial_chain_agrees_with_kanes_method(n: int) -> None:
    """SymPy's own derivation, as a second opinion on bodies in space."""
    model = model_of("spatial_chain", n=n)
    weights = [(body.masscenter, body.mass * model.gravity) for body in model.bodies]
    method = me.KanesMethod(model.frame, model.coordinates, model.speeds, kd_eqs=list(model.kinematics))
    method.kanes_equations(model.bodies, weights)
    arguments = (*model.coordinates, *model.speeds, *model.parameters)
    evaluate = sm.lambdify(arguments, (method.mass_matrix, method.forcing), cse=True)
    for state in states("spatial_chain", n=n):
        Q, P = evaluate(*state.q, *state.u, *model.parameters.values())
        assert_close(state.reference.Q, Q)
        assert_close(state.reference.P, P[:, 0])
