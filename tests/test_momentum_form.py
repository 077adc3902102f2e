"""Momentum forms, reduced and unreduced, the velocity form and Hamilton's equations against the other derivations."""

from __future__ import annotations

import itertools
import pickle
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from special_systems import free_body, shaken_pendulum, turning_rod
from systems import NAMES, SYSTEMS, State, example, initial, model_of, oracle_for, states
from tolerances import EVALUATION, FINE_INTEGRATION, SOLVE

import kanegen as kg
from kanegen.graph import Node, evaluate

TIME = me.dynamicsymbols._t
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
def built(name: str, form: str, **options: Any) -> kg.Solver:
    return kg.build(model_of(name, **options), form=form)


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
    solver, equations = built(name, "momentum_unreduced", **options), equations_of(name, **options)
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
    solver, equations = built(name, "momentum", **options), equations_of(name, **options)
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
    solver, equations = built(name, "momentum_unreduced", **options), equations_of(name, **options)
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
    solver, equations = built(name, "hamilton", **options), equations_of(name, **options)
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


# -- motions ------------------------------------------------------------------------------------------------------

TIGHT = {"method": "dop853", "rtol": 1e-12, "atol": 1e-12}


def test_integrals_of_the_spherical_pendulum() -> None:
    solver, start = built("spherical_pendulum", "hamilton"), initial("spherical_pendulum")
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
    solver = built("spherical_pendulum", "hamilton")
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
        form: built("rolling_disk", form).integrate(
            span, start["q"], start["u"], **TIGHT, t_eval=np.linspace(*span, 51)
        )
        for form in ("reduced", "momentum", "momentum_unreduced")
    }
    reference = solutions["reduced"]
    for form in ("momentum", "momentum_unreduced"):
        assert np.abs(solutions[form].q - reference.q).max() < 1e-9
        assert np.abs(solutions[form].u - reference.u).max() < 1e-9
    solver, solution = built("rolling_disk", "momentum"), solutions["momentum"]
    slip = [solver.residuals(t, q, u)[1] for t, q, u in zip(solution.t, solution.q, solution.u, strict=True)]
    assert np.abs(slip).max() < 1e-14 * size(solution.u)


def test_reduced_momentum_equations_of_the_rolling_disk() -> None:
    """The lecture's final equations times the reduced inertias m R^2 (5, 1, 6) / 4."""
    solver = built("rolling_disk", "momentum")
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
    solver, start = built("spherical_pendulum", "hamilton"), initial("spherical_pendulum")
    solution = solver.integrate((0.0, 1.0), start["q"], start["u"])
    again = pickle.loads(pickle.dumps(solution))
    assert np.array_equal(again(0.37)[1], solution(0.37)[1])
    assert np.array_equal(solution.last[2], solution.u[-1])


def test_stabilised_run_of_the_unreduced_form() -> None:
    start = initial("varying_pendulum")
    gains = kg.Baumgarte(alpha=10, beta=10)
    runs = [
        kg.build(model_of("varying_pendulum"), form=form, stabilisation=gains).integrate(
            (0.0, 3.0), start["q"], start["u"], rtol=1e-10, atol=1e-11
        )
        for form in ("momentum_unreduced", "hamilton", "reduced")
    ]
    for run in runs[:2]:
        assert np.abs(run(2.9)[1] - runs[2](2.9)[1]).max() < FINE_INTEGRATION


# -- large and degenerate systems ---------------------------------------------------------------------------------


def beads(n: int, mass: Any = 1) -> kg.Model:
    """Beads on a line joined by springs, the speeds of the first two tied by ``u0 = (1 + x2) u1``; the first's mass."""
    x, u = me.dynamicsymbols(f"x0:{n}"), me.dynamicsymbols(f"u0:{n}")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points = [O.locatenew(f"P{k}", xk * N.x) for k, xk in enumerate(x)]
    masses = [mass, *(sm.Rational(k + 2, 2) for k in range(1, n))]
    return kg.Model(
        name=f"beads{n}",
        frame=N,
        coordinates=x,
        speeds=u,
        kinematics=[uk - xk.diff(TIME) for uk, xk in zip(u, x, strict=True)],
        bodies=[me.Particle(f"b{k}", point, m) for k, (point, m) in enumerate(zip(points, masses, strict=True))],
        potential_energy=sum((a - b) ** 2 for a, b in itertools.pairwise(x)),
        loads=[(a, 2 * (b.pos_from(a) & N.x) * N.x) for a, b in itertools.pairwise(points)]
        + [(b, -2 * (b.pos_from(a) & N.x) * N.x) for a, b in itertools.pairwise(points)],
        nonholonomic_constraints=(u[0] - (1 + x[2]) * u[1],),
    )


@pytest.mark.parametrize("form", ["momentum", "momentum_unreduced", "hamilton"])
def test_many_speeds_are_solved_by_the_kernel(form: str) -> None:
    n = 15
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
    solver = built("elliptic_wire", "momentum_unreduced")
    reference = built("elliptic_wire", "reduced")
    p = solver.parameters
    a, b, c, x0 = (p[name] for name in ("a", "b", "c", "x0"))
    assert a is not None
    assert b is not None
    assert c is not None
    assert x0 is not None
    for q, u in (([x0, np.sqrt(c / b)], [0.8, 0.0]), ([x0 + np.sqrt(c / a), 0.0], [0.0, 0.8])):
        _, rates = solver.momentum_rhs(0.0, q, solver.momentum(0.0, q, u))
        udot = reference.rhs(0.0, q, u)[1]
        assert np.abs(rates - reference.Q(0.0, q, u) @ udot).max() < SOLVE * size(rates)


# -- refusals -----------------------------------------------------------------------------------------------------


def refused(text: str) -> Any:
    return pytest.raises(kg.BuildError, match=re.escape(text))


def test_nonlinear_constraint_has_no_reduced_momentum_form() -> None:
    with refused("is not linear in the speeds") as caught:
        built("appell_hamel", "momentum", constraints="nonlinear")
    assert "momentum_unreduced" in str(caught.value)
    assert "u2(t)**2" in str(caught.value)


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
    with refused("is given at acceleration level only"):
        kg.build(model, form="momentum")
    solver = kg.build(model, form="momentum_unreduced")
    udot = solver.rhs(0.0, [0.1, 0.2], [0.3, 0.4])[1]
    assert np.allclose(solver.momentum_rhs(0.0, [0.1, 0.2], [0.6, 0.8])[1], 2 * udot)


def test_hamilton_needs_the_rates_as_speeds() -> None:
    with refused("the derivative of phi is not a speed of its own"):
        built("rolling_disk", "hamilton")


def test_massless_speed() -> None:
    with refused("the speed u0 moves no mass") as caught:
        kg.build(beads(4, mass=0), form="momentum_unreduced")
    assert 'form="momentum"' in str(caught.value)
    reduced = kg.build(beads(4, mass=0), form="momentum")
    assert reduced.reduced_momentum(0.0, [0.1] * 4, [0.22, 0.2, 0.3, 0.4]).shape == (3,)


def test_reduced_form_takes_no_stabilisation() -> None:
    solver, start = built("varying_pendulum", "momentum"), initial("varying_pendulum")
    stabilised = solver.with_stabilisation(kg.Baumgarte(alpha=10, beta=10))
    for call in (
        lambda: stabilised.integrate((0.0, 1.0), start["q"], start["u"]),
        lambda: stabilised.momentum_rhs(0.0, start["q"], [0.0]),
    ):
        with pytest.raises(kg.SolveError, match="reduced momentum form takes no stabilisation"):
            call()


@pytest.mark.parametrize("form", ["momentum", "momentum_unreduced"])
def test_momenta_are_not_projected(form: str) -> None:
    start = initial("varying_pendulum")
    solver = built("varying_pendulum", form).with_stabilisation(kg.Projection())
    with pytest.raises(kg.SolveError, match="Projection moves coordinates and speeds"):
        solver.integrate((0.0, 1.0), start["q"], start["u"])


def test_functions_of_other_forms_say_which() -> None:
    solver = built("spherical_pendulum", "reduced")
    start = initial("spherical_pendulum")
    for name, form in (("hamiltonian", "hamilton"), ("reduced_momentum", "momentum"), ("momentum_rhs", "momentum")):
        with pytest.raises(kg.SolveError, match=f"build with form='{form}'"):
            getattr(solver, name)(0.0, start["q"], start["u"])
    assert solver.cyclic_coordinates == ()


def test_reduced_momenta_of_the_wrong_number() -> None:
    with pytest.raises(kg.SolveError, match=re.escape("mom has shape (5,); expected (3,)")):
        built("rolling_disk", "momentum").speeds_from_momentum(0.0, [1.2, 0, 0, 0, 0], np.zeros(5))


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
    with pytest.raises(kg.SolveError, match="has no potential energy"):
        solver.hamiltonian(0.0, [0.0], [1.0])
