"""The examples with additional states against equations written by hand, SymPy's own equations, and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import solve_ivp
from sympy.physics import biomechanics as bio
from systems import STATEFUL, example, initial, model_of, names, oracle_for, solver_for, states
from tolerances import DIFFERENCES, EVALUATION, SAME_EQUATIONS

import kanegen as kg

MOTOR = 1e-11
"""Relative to the sum of the magnitudes of all terms of an equation: about ten roundings."""

STEPS = 2000
"""Largest number of steps for 10 s of motion, of which the fastest part takes 0.4 ms."""

MUSCLES = 1e-9
"""State at the end of a run with the tolerance 1e-12 against one of SciPy with 1e-12; 1e-10 was seen."""


def motor_terms(y: np.ndarray, p: dict[str, float]) -> tuple[list[float], ...]:
    """The terms of theta', theta'', i' and z', as in the description of the system."""
    theta, omega, i, z = y
    inertia = p["m"] * p["l"] ** 2 / 3 + p["N"] ** 2 * p["Jr"]
    unlimited = [p["Kp"] * p["theta_ref"], -p["Kp"] * theta, p["Ki"] * z, -p["Kd"] * omega]
    v = sum(unlimited)
    V = min(max(v, -p["Vmax"]), p["Vmax"])
    torques = [p["N"] * p["kt"] * i, -p["b"] * omega, -p["m"] * p["g"] * p["l"] / 2 * np.cos(theta)]
    return (
        [omega],
        [torque / inertia for torque in torques],
        [x / p["La"] for x in (V, -p["R"] * i, -p["ke"] * p["N"] * omega)],
        [p["theta_ref"], -theta, p["Kaw"] * V, *(-p["Kaw"] * x for x in unlimited)],
    )


def test_motor_arm_has_the_equations_of_its_description() -> None:
    solver, rng = solver_for("dc_motor_arm"), np.random.default_rng(1)
    p = dict(solver.parameters)
    limited = set()
    for _ in range(200):
        y = rng.uniform(-1.0, 1.0, 4) * (2.0, 5.0, 10.0, 1.0)
        terms = motor_terms(y, p)
        rates = np.concatenate(solver.rhs(0.3, y[:1], y[1:2], s=y[2:]))
        expected, scale = (np.array([sum(map(f, row)) for row in terms]) for f in (float, abs))
        assert np.all(np.abs(rates - expected) <= MOTOR * scale)
        V = solver.output("V", 0.3, y[:1], y[1:2], s=y[2:])
        limited.add(0.0 if abs(V) < p["Vmax"] else np.sign(V))
    assert limited == {-1.0, 0.0, 1.0}


def test_motor_arm_agrees_with_the_oracle() -> None:
    solver = solver_for("dc_motor_arm")
    for state in states("dc_motor_arm"):
        _, udot, sdot = solver.rhs(state.t, state.q, state.u, s=state.s)
        reference = state.reference
        np.testing.assert_allclose(udot, reference.udot, rtol=EVALUATION)
        np.testing.assert_allclose(sdot, reference.sdot, rtol=EVALUATION, atol=EVALUATION)
        np.testing.assert_allclose(solver.M(state.t, state.q, state.u), reference.M, rtol=EVALUATION)


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-8])
def test_motor_arm_takes_few_steps_of_rodas(rtol: float) -> None:
    solver = kg.build(model_of("dc_motor_arm"), functions="all")
    p, start = dict(solver.parameters), initial("dc_motor_arm")
    options = {"method": "rodas", "rtol": rtol, "atol": 0.01 * rtol}
    solution = solver.integrate((0.0, 10.0), start["q"], start["u"], s0=start["s"], **options)
    assert solution.statistics.steps < STEPS

    def by_hand(t: float, y: np.ndarray) -> list[float]:
        return [sum(row) for row in motor_terms(y, p)]

    times = np.linspace(0.0, 10.0, 201)
    peer = solve_ivp(by_hand, (0.0, 10.0), np.zeros(4), "LSODA", times, rtol=1e-11, atol=1e-12).y.T
    # The error of the current, 20 A at its peak, may be some tolerances.
    assert np.abs(np.hstack(solution(times)) - peer).max() < 50.0 * rtol


def test_motor_arm_is_linearized_at_rest() -> None:
    solver = kg.build(model_of("dc_motor_arm"), functions="all")
    p = dict(solver.parameters)
    theta = p["theta_ref"]
    weight = p["m"] * p["g"] * p["l"] / 2
    current = weight * np.cos(theta) / (p["N"] * p["kt"])
    linear = solver.linearize(0.0, [theta], [0.0], s=[current, p["R"] * current / p["Ki"]])
    inertia = p["m"] * p["l"] ** 2 / 3 + p["N"] ** 2 * p["Jr"]
    A = [
        [0.0, 1.0, 0.0, 0.0],
        [weight * np.sin(theta) / inertia, -p["b"] / inertia, p["N"] * p["kt"] / inertia, 0.0],
        np.array([-p["Kp"], -p["Kd"] - p["ke"] * p["N"], -p["R"], p["Ki"]]) / p["La"],
        [-1.0, 0.0, 0.0, 0.0],
    ]
    assert linear.states == ("theta", "omega", "i", "z")
    assert linear.steady
    np.testing.assert_allclose(linear.A, A, rtol=MOTOR, atol=MOTOR)
    assert linear.eigenvalues.real.max() < 0.0


def muscle_states(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Values of (q, u, s) and of the excitations along the motion of the example, moved by a little.

    The fiber is stiff: far from the equilibrium with its tendon its speed overflows.
    """
    module, rng = example("muscle_arm"), np.random.default_rng(2)
    _, solution = module.simulate()
    moved = []
    for t in rng.uniform(0.0, solution.t[-1], count):
        y = np.concatenate(solution(t))
        y += rng.uniform(-1.0, 1.0, y.size) * (0.05, 0.05, 1.0, 1.0, 0.003, 0.02, 0.02, 0.02, 1.0)
        moved.append((y, rng.uniform(0.02, 0.6, 3)))
    return moved


def test_muscle_arm_agrees_with_kanes_method_of_sympy() -> None:
    """q', u' and s' against KanesMethod, and the rates that the muscles of SymPy give."""
    solver, kane = solver_for("muscle_arm"), example("muscle_arm").kane(model_of("muscle_arm"))
    assert solver.description.states == ("l_M_tilde_biceps", "a_biceps", "a_triceps", "a_deltoid", "work")
    for y, r in muscle_states(20):
        expected = kane(0.0, y, r)
        rates = np.concatenate(solver.rhs(0.0, y[:2], y[2:4], r, y[4:]))
        np.testing.assert_allclose(rates, expected, rtol=SAME_EQUATIONS, atol=SAME_EQUATIONS * np.abs(expected).max())


def test_muscle_arm_agrees_with_the_oracle() -> None:
    """The tendon forces in 80 digits, and the rates that follow from them."""
    solver, oracle = solver_for("muscle_arm"), oracle_for("muscle_arm")
    for y, r in muscle_states(2):
        arguments = 0.0, y[:2], y[2:4], r, y[4:]
        reference = oracle(0.0, y[:2], y[2:4], r=r, s=y[4:])
        _, udot, sdot = solver.rhs(*arguments)
        np.testing.assert_allclose([*udot, *sdot], [*reference.udot, *reference.sdot], rtol=SAME_EQUATIONS)
        for name, value in solver.outputs(*arguments).items():
            np.testing.assert_allclose(value, reference.outputs[name], rtol=SAME_EQUATIONS)


def test_muscle_arm_moves_as_in_scipy() -> None:
    """Constant excitations from the start of the example; the activations follow them."""
    module, solver = example("muscle_arm"), solver_for("muscle_arm")
    start, r, kane = initial("muscle_arm"), np.array([0.4, 0.1, 0.2]), module.kane(model_of("muscle_arm"))
    y0 = np.concatenate([start["q"], start["u"], start["s"]])
    peer = solve_ivp(lambda t, y: kane(t, y, r), (0.0, 0.6), y0, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    for method in ("dop853", "verner9"):
        options = {"method": method, "rtol": 1e-12, "atol": 1e-13}
        solution = solver.integrate((0.0, 0.6), start["q"], start["u"], r=r, s0=start["s"], **options)
        assert np.abs(np.concatenate(solution(0.6)) - peer).max() < MUSCLES


def test_muscle_arm_is_linearized_at_rest() -> None:
    """A and B against differences of SymPy's equations; the work does not act on the arm."""
    module, solver = example("muscle_arm"), kg.build(model_of("muscle_arm"), functions="all")
    start, kane = initial("muscle_arm"), module.kane(model_of("muscle_arm"))
    linear = solver.linearize(*(start[key] for key in ("t", "q", "u", "r", "s")))
    assert linear.steady
    y0, r0 = np.concatenate([start["q"], start["u"], start["s"]]), np.array(start["r"])

    def slopes(f: Any, x: np.ndarray) -> np.ndarray:
        h = 1e-6
        return np.column_stack([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(x.size)])

    scale = np.abs(linear.A).max()
    for found, expected in (
        (linear.A, slopes(lambda y: kane(0.0, y, r0), y0)),
        (linear.B, slopes(lambda r: kane(0.0, y0, r), r0)),
    ):
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=DIFFERENCES * scale)
    assert np.all(linear.A[:, linear.states.index("work")] == 0.0)


@pytest.mark.parametrize("formulation", [0, 1, 2], ids=["rigid tendon", "fiber length", "tendon force"])
def test_musculotendons_read_by_from_kane_have_their_states(formulation: int) -> None:
    """A mass on a muscle, in every formulation that SymPy has: u' and s' against numbers from SymPy's expressions."""
    x, v = me.dynamicsymbols("x v", positive=True)
    m = sm.Symbol("m")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    muscle = bio.MusculotendonDeGroote2016.with_defaults(
        "muscle",
        me.LinearPathway(O, P),
        bio.FirstOrderActivationDeGroote2016.with_defaults("muscle"),
        musculotendon_dynamics=bio.MusculotendonFormulation(formulation),
    )
    method = me.KanesMethod(N, [x], [v], kd_eqs=[x.diff() - v])
    method.kanes_equations([me.Particle("P", P, m)], muscle.to_loads())
    states = dict(zip(muscle.x, muscle.rhs(), strict=True))
    values = dict(zip(muscle.p, (0.2, 500.0, 0.1), strict=True)) | {m: 2.0}
    solver = kg.build(kg.Model.from_kane(method, states=states, parameters=values))
    s = {0: [0.3], 1: [0.98, 0.3], 2: [0.28, 0.3]}[formulation]
    _, udot, sdot = solver.rhs(0.0, [0.303], [0.04], [0.5], s)
    numbers = {x.diff(): v, x: 0.303, v: 0.04, muscle.e: 0.5, **dict(zip(muscle.x, s, strict=True)), **values}
    expected = [float(rate.doit().subs(numbers).evalf(30)) for rate in (muscle.force / m, *muscle.rhs())]
    np.testing.assert_allclose([*udot, *sdot], expected, rtol=SAME_EQUATIONS)


@pytest.mark.parametrize(("name", "options"), STATEFUL, ids=names(STATEFUL))
def test_examples_with_states_agree_with_themselves(name: str, options: dict[str, Any]) -> None:
    report = kg.verify(model_of(name, **options), start=initial(name), states=3, forms=())
    judged = {check.principle for check in report.checks if check.ok}
    assert {"Lagrange", "power balance", "rates of states", "power of states", "compiled functions"} <= judged
