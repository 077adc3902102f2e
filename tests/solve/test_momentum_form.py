"""Momentum forms, reduced and unreduced, the velocity form and Hamilton's equations against the other derivations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from beads import TIME, beads
from messages import raises
from state_models import point_mass
from systems import NAMES, SYSTEMS, State, initial, model_of, oracle_for, solver_for, states
from tolerances import EVALUATION, FINE_INTEGRATION, SOLVE

import kanegen as kg
from kanegen.graph import Node, evaluate

CANONICAL = (
    "elliptic_wire",
    "varying_pendulum",
    "spherical_pendulum",
    "slider_crank",
    "n_link_pendulum",
    "spatial_chain",
)
NOT_LINEAR = [{"constraints": "nonlinear"}]
LINEAR = [system for system in SYSTEMS if system[1] not in NOT_LINEAR]
LINEAR_NAMES = [" ".join([name, *map(str, options.values())]) for name, options in LINEAR]

Array = np.ndarray


@cache
def equations_of(name: str, **options: Any) -> Any:
    return kg.derive(model_of(name, **options))


def rate(equations: Any, nodes: Sequence[Node], state: State) -> Array:
    """d/dt of nodes along the motion with the oracle's accelerations."""
    model = equations.model
    derivatives = [equations.system.full_rate(node) for node in nodes]
    inputs = {"t": [state.t], "q": list(state.q), "u": list(state.u), "udot": list(state.reference.udot)}
    inputs |= {"p": list(model.parameters.values()), "g": [0.0] * len(equations.gain_names)}
    return np.array(evaluate(derivatives, inputs))


def consistent(solver: kg.Solver, state: State, name: str, options: dict[str, Any]) -> State:
    """The state with the speeds that its reduced momenta determine."""
    momenta = solver.reduced_momentum(state.t, state.q, state.u)
    u = solver.speeds_from_momentum(state.t, state.q, momenta)
    return State(state.t, state.q, u, oracle_for(name, **options)(state.t, state.q, u))


def size(*arrays: Array) -> float:
    return 1.0 + max(float(np.abs(array).max(initial=0.0)) for array in arrays)


# -- agreement with the accelerations of an independent derivation ------------------------------------------------


@pytest.mark.parametrize(("name", "options"), SYSTEMS, ids=NAMES)
def test_unreduced_momenta_have_the_rate_of_the_accelerations(name: str, options: dict[str, Any]) -> None:
    solver, equations = solver_for(name, "momentum_unreduced", **options), equations_of(name, **options)
    for state in states(name, **options):
        momenta = solver.momentum(state.t, state.q, state.u)
        qdot, rates = solver.momentum_rhs(state.t, state.q, momenta)
        expected = rate(equations, equations.momentum.nodes, state)
        assert np.abs(qdot - state.reference.qdot).max() < EVALUATION * size(qdot)
        assert np.abs(rates - expected).max() < EVALUATION * size(expected, state.reference.P)
        assert np.abs(solver.rhs(state.t, state.q, state.u)[1] - state.reference.udot).max() < SOLVE * size(
            state.reference.udot
        )


@pytest.mark.parametrize(("name", "options"), LINEAR, ids=LINEAR_NAMES)
def test_reduced_momenta_have_the_rate_of_the_accelerations(name: str, options: dict[str, Any]) -> None:
    solver, equations = solver_for(name, "momentum", **options), equations_of(name, **options)
    n_u = len(equations.system.u)
    for found in states(name, **options):
        state = consistent(solver, found, name, options)
        assert np.abs(state.reference.velocity_residuals).max(initial=0.0) < SOLVE * size(state.u)
        momenta = solver.reduced_momentum(state.t, state.q, state.u)
        expected_momenta = solver.reduced_momentum(found.t, found.q, found.u)
        assert np.abs(momenta - expected_momenta).max() < EVALUATION * size(momenta)
        qdot, rates = solver.momentum_rhs(state.t, state.q, momenta)
        A2, momentum = equations.A2.nodes, equations.momentum.nodes
        rows = [A2[i : i + n_u] for i in range(0, len(A2), n_u)]
        nodes = [equations.graph.sum(a * m for a, m in zip(row, momentum, strict=True)) for row in rows]
        expected = rate(equations, nodes, state)
        assert np.abs(qdot - state.reference.qdot).max() < EVALUATION * size(qdot)
        assert np.abs(rates - expected).max() < EVALUATION * size(expected, state.reference.P)


@pytest.mark.parametrize(("name", "options"), SYSTEMS, ids=NAMES)
def test_velocity_form(name: str, options: dict[str, Any]) -> None:
    """``Q u' + Dm u = e + J^T lambda``, ``Q' = Dm + Dm^T``, ``u.Dm u = 1/2 u.Q' u``."""
    solver, equations = solver_for(name, "momentum_unreduced", **options), equations_of(name, **options)
    n_u = len(equations.system.u)
    for state in states(name, **options):
        reference = state.reference
        Dm, e = solver.Dm(state.t, state.q, state.u), solver.e(state.t, state.q, state.u)
        Q_rate = rate(equations, equations.Q.nodes, state).reshape(n_u, n_u)
        assert np.abs(Dm + Dm.T - Q_rate).max() < EVALUATION * size(Dm)
        assert abs(state.u @ Dm @ state.u - state.u @ Q_rate @ state.u / 2) < EVALUATION * size(Dm) * size(state.u) ** 2
        left = reference.Q @ reference.udot + Dm @ state.u
        assert np.abs(left - e - reference.constraint_force).max() < EVALUATION * size(left, e)
        assert np.abs(e - reference.F).max() < EVALUATION * size(e, Dm @ state.u)  # scleronomic: nothing is prescribed


@pytest.mark.parametrize(("name", "options"), [s for s in SYSTEMS if s[0] in CANONICAL], ids=CANONICAL)
def test_canonical_equations(name: str, options: dict[str, Any]) -> None:
    """p' and q' from Kane's accelerations, and from differences of H(q, p)."""
    solver, equations = solver_for(name, "hamilton", **options), equations_of(name, **options)
    for state in states(name, **options):
        t, q, u = state.t, state.q, state.u
        momenta = solver.momentum(t, q, u)
        qdot, rates = solver.momentum_rhs(t, q, momenta)
        expected = rate(equations, equations.momentum.nodes, state)
        assert np.abs(qdot - u).max() < EVALUATION * size(u)
        assert np.abs(rates - expected).max() < EVALUATION * size(expected, state.reference.P)
        H = solver.hamiltonian(t, q, u)
        assert abs(H - solver.jacobi_integral(t, q, u)) < EVALUATION * (1.0 + abs(H))
        slope_q, slope_p = hamiltonian_slopes(solver, t, q, momenta)
        potential = conservative_force(solver, t, q)
        nonconservative = state.reference.F - potential + state.reference.constraint_force
        assert np.abs(slope_p - qdot).max() < FINE_INTEGRATION * size(qdot)
        assert np.abs(-slope_q + nonconservative - rates).max() < FINE_INTEGRATION * size(rates, potential)


def hamiltonian_slopes(solver: kg.Solver, t: float, q: Array, p: Array) -> tuple[Array, Array]:
    """Central differences of H(q, p)."""

    def H(x: Array) -> float:
        return solver.hamiltonian(t, x[: len(q)], solver.speeds_from_momentum(t, x[: len(q)], x[len(q) :]))

    slopes = differences(H, np.concatenate([q, p]))
    return slopes[: len(q)], slopes[len(q) :]


def conservative_force(solver: kg.Solver, t: float, q: Array) -> Array:
    return -differences(lambda x: solver.potential_energy(t, x, np.zeros(len(q))), q)


def differences(function: Any, x: Array, step: float = 1e-5) -> Array:
    moves = step * np.eye(len(x))
    return np.array([(function(x + move) - function(x - move)) / (2 * step) for move in moves])


# -- refusals -----------------------------------------------------------------------------------------------------


def test_nonlinear_constraint_has_no_reduced_momentum_form() -> None:
    with raises(kg.BuildError, "linear", "momentum_unreduced", "u2(t)**2"):
        solver_for("appell_hamel", "momentum", constraints="nonlinear")


def test_acceleration_level_constraint_has_no_reduced_momentum_form() -> None:
    x, y, u, v = me.dynamicsymbols("x y u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    model = kg.Model(
        name="driven",
        frame=N,
        coordinates=(x, y),
        speeds=(u, v),
        kinematics=(u - x.diff(TIME), v - y.diff(TIME)),
        bodies=(me.Particle("P", O.locatenew("P", x * N.x + y * N.y), sm.Integer(2)),),
        acceleration_constraints=(u.diff(TIME) - 3 + v.diff(TIME) / 2,),
    )
    with raises(kg.BuildError, "acceleration level"):
        kg.build(model, form="momentum")
    solver = kg.build(model, form="momentum_unreduced")
    udot = solver.rhs(0.0, [0.1, 0.2], [0.3, 0.4])[1]
    assert np.allclose(solver.momentum_rhs(0.0, [0.1, 0.2], [0.6, 0.8])[1], 2 * udot)


def test_hamilton_needs_the_rates_as_speeds() -> None:
    with raises(kg.BuildError, "phi"):
        solver_for("rolling_disk", "hamilton")


def test_massless_speed() -> None:
    with raises(kg.BuildError, "u0", "mass", 'form="momentum"'):
        kg.build(beads(4, mass=0), form="momentum_unreduced")
    reduced = kg.build(beads(4, mass=0), form="momentum")
    assert reduced.reduced_momentum(0.0, [0.1] * 4, [0.22, 0.2, 0.3, 0.4]).shape == (3,)


def test_reduced_form_takes_no_stabilization() -> None:
    solver, start = solver_for("varying_pendulum", "momentum"), initial("varying_pendulum")
    stabilized = solver.with_stabilization(kg.Baumgarte(alpha=10, beta=10))
    for call in (
        lambda: stabilized.integrate((0.0, 1.0), start["q"], start["u"]),
        lambda: stabilized.momentum_rhs(0.0, start["q"], [0.0]),
    ):
        with raises(kg.SolveError, "momentum", "stabilization"):
            call()


@pytest.mark.parametrize("form", ["momentum", "momentum_unreduced"])
def test_momenta_are_not_projected(form: str) -> None:
    start = initial("varying_pendulum")
    solver = solver_for("varying_pendulum", form).with_stabilization(kg.Projection())
    with raises(kg.SolveError, "momenta", "Projection"):
        solver.integrate((0.0, 1.0), start["q"], start["u"])


def test_functions_of_other_forms_say_which() -> None:
    solver = solver_for("spherical_pendulum", "reduced")
    start = initial("spherical_pendulum")
    for name, form in (("hamiltonian", "hamilton"), ("reduced_momentum", "momentum"), ("momentum_rhs", "momentum")):
        with raises(kg.SolveError, f"form='{form}'"):
            getattr(solver, name)(0.0, start["q"], start["u"])
    assert solver.cyclic_coordinates == ()


def test_reduced_momenta_of_the_wrong_number() -> None:
    with raises(kg.SolveError, "mom", "(5,)", "(3,)"):
        solver_for("rolling_disk", "momentum").speeds_from_momentum(0.0, [1.2, 0, 0, 0, 0], np.zeros(5))


def test_hamiltonian_without_a_potential_is_refused() -> None:
    x, u = me.dynamicsymbols("x u")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    model = kg.Model(
        name="pushed",
        frame=N,
        coordinates=(x,),
        speeds=(u,),
        kinematics=(u - x.diff(TIME),),
        bodies=(me.Particle("P", O.locatenew("P", x * N.x), sm.Integer(2)),),
    )
    solver = kg.build(model, form="hamilton")
    assert solver.cyclic_coordinates == ("x",)
    with raises(kg.SolveError, "potential energy"):
        solver.hamiltonian(0.0, [0.0], [1.0])


def test_a_coordinate_with_a_bumper_is_not_cyclic() -> None:
    """The potential energy depends on x beyond x = 2 only."""
    x = me.dynamicsymbols("x")
    bumper = point_mass(
        "bumper", -100 * sm.Max(x - 2, 0), potential_energy=50 * sm.Max(x - 2, 0) ** 2, parameters={"m": 1.0}
    )
    assert kg.build(bumper, form="hamilton").cyclic_coordinates == ()


@pytest.mark.parametrize("stages", [6, 10])
def test_loops_that_all_depend_on_each_other_are_not_called_singular(stages: int) -> None:
    """The terms of an orthogonalization grow with every column; they called a regular lift of six stages singular."""
    options = {"n": stages}
    solver = kg.build(model_of("scissor_lift", **options), form="momentum", functions=("rhs", "A", "J", "consistency"))
    start, d = initial("scissor_lift", **options), solver.description
    state = start["t"], np.array(start["q"]), np.array(start["u"])
    J = solver.J(*state)
    expected = -np.linalg.solve(J[:, d.dependent], J[:, d.independent])
    np.testing.assert_allclose(solver.A(*state), expected, rtol=SOLVE, atol=SOLVE * np.abs(expected).max())
    q = solver.integrate((0.0, 0.2), *state[1:], rtol=1e-9, atol=1e-9).q[-1]
    reduced = kg.build(model_of("scissor_lift", **options), form="reduced")
    expected = reduced.integrate((0.0, 0.2), *state[1:], rtol=1e-9, atol=1e-9).q[-1]
    np.testing.assert_allclose(q, expected, rtol=0.0, atol=1e-6)  # the loops drift by the tolerance of the speeds
