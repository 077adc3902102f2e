"""Additional states: values, motions in every form and by every method, results, arguments."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import sympy as sm
import sympy.physics.mechanics as me
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import raises
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp
from scipy_calls import call_rates
from state_models import VALUES, cart, cart_matrix, pendulum, pendulum_rates, point_mass, solver_of
from tolerances import FORMS_AGREE

import kanegen as kg
from kanegen.derivation import Equations, Quantity
from kanegen.forms import FORMS

Q0, U0, S0, F = [0.4], [-0.3], [0.2, 0.1], 0.5
ROUNDING = 1e-14  # a few operations in double precision


def exact(t: float) -> np.ndarray[Any, Any]:
    """The motion of the cart, by the matrix exponential."""
    A, B = cart_matrix()
    augmented = np.zeros((5, 5))
    augmented[:4, :4], augmented[:4, 4] = A, B * F
    return np.asarray((scipy.linalg.expm(t * augmented) @ [*Q0, *U0, *S0, 1.0])[:4])


def test_a_reset_names_its_state_by_symbol_or_name() -> None:
    """A name was refused as "no state", although it was that of one."""
    x, v, mode = me.dynamicsymbols("x v mode")
    m = sm.Symbol("m")

    def model(reset: Any) -> kg.Model:
        options = {"states": {mode: 0}, "parameters": {m: 1.0}, "initial": {"t": 0, x: 0.5, v: 0, mode: 1.0}}
        return point_mass("switched", -4 * mode * x, events=[kg.Event("off", x, reset=reset)], **options)

    by_symbol, by_name = (kg.build(model({key: 0})).integrate((0.0, 2.0)) for key in (mode, "mode"))
    np.testing.assert_array_equal(by_symbol.q, by_name.q)
    assert by_name.s[-1, 0] == 0.0
    for key, words in {"v": ("speed", "impulse="), "x": ("coordinate",), "m": ("parameter", "rate 0")}.items():
        with raises(kg.ModelError, "resets", *words):
            model({key: 0})


def test_the_right_hand_side_returns_the_rates_of_the_states() -> None:
    solver = solver_of("cart")
    A, B = cart_matrix()
    y = np.array([*Q0, *U0, *S0])
    expected = A @ y + B * 2.0
    qdot, udot, sdot = solver.rhs(0.0, Q0, U0, [2.0], S0)
    assert_allclose(np.concatenate([qdot, udot, sdot]), expected, rtol=ROUNDING)
    assert_allclose(solver.ode(0.0, y, [2.0]), expected, rtol=ROUNDING)
    assert_allclose(solver.state_rates(0.0, Q0, U0, [2.0], S0), expected[2:], rtol=ROUNDING)
    assert_allclose(solver.output("lag", 0.0, Q0, U0, [2.0], S0), expected[2], rtol=ROUNDING)
    assert_allclose(solver.output("jerky", 0.0, Q0, U0, [2.0], S0), expected[1] + S0[0], rtol=ROUNDING)
    out = (np.empty(1), np.empty(1), np.empty(2))
    assert solver.rhs(0.0, Q0, U0, [2.0], S0, out) is out
    assert_array_equal(np.concatenate(out), np.concatenate([qdot, udot, sdot]))


POSITIVE, ANY = st.floats(0.1, 10.0), st.floats(-10.0, 10.0)


@settings(deadline=None)  # the first example compiles the model
@given(parameters=st.fixed_dictionaries(dict.fromkeys(VALUES, POSITIVE)), y=st.tuples(*[ANY] * 4), f=ANY)
def test_rates_and_their_derivatives_are_those_of_the_matrix(
    parameters: dict[str, float], y: tuple[float, ...], f: float
) -> None:
    solver = solver_of("cart").with_parameters(parameters)
    A, B = cart_matrix(**parameters)
    state = 0.0, [y[0]], [y[1]], [f], [y[2], y[3]]
    size = np.abs(A) @ np.abs(y) + np.abs(B * f) + 1.0
    assert np.all(np.abs(np.concatenate(solver.rhs(*state)) - (A @ y + B * f)) <= ROUNDING * size)
    jacobian = solver.jacobian(*state)
    assert_allclose(np.hstack([jacobian.q, jacobian.u, jacobian.s]), A, rtol=1e-13, atol=1e-13)
    assert_allclose(jacobian.r[:, 0], B, rtol=1e-13)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_carries_the_states_along(form: str) -> None:
    solver = kg.build(cart(), form=form)
    solution = solver.integrate((0.0, 2.0), Q0, U0, s0=S0, rtol=1e-11, atol=1e-13)
    q, u, s = solution(1.3)
    assert_allclose(np.concatenate([q, u, s]), exact(1.3), atol=1e-8)  # dense output is of order 4
    assert_allclose(np.concatenate([solution.q[-1], solution.u[-1], solution.s[-1]]), exact(2.0), atol=1e-10)


METHODS: list[tuple[str, dict[str, float], float]] = [
    ("dopri5", {"rtol": 1e-11, "atol": 1e-13}, 1e-10),
    ("dop853", {"rtol": 1e-11, "atol": 1e-13}, 1e-10),
    ("verner9", {"rtol": 1e-11, "atol": 1e-13}, 1e-10),
    ("rodas", {"rtol": 1e-9, "atol": 1e-11}, 1e-7),
    ("rk4", {"step": 1e-3}, 1e-10),
    ("kutta_merson", {"step": 1e-3}, 1e-10),
]


@pytest.mark.parametrize(("method", "options", "tolerance"), METHODS, ids=[method for method, *_ in METHODS])
def test_methods_agree_with_the_matrix_exponential(method: str, options: dict[str, Any], tolerance: float) -> None:
    solution = solver_of("cart").integrate((0.0, 2.0), Q0, U0, s0=S0, method=method, **options)
    assert_allclose(np.concatenate(solution.last[1:]), exact(2.0), atol=tolerance)
    assert solution.s.shape == (solution.t.size, 2)
    assert_array_equal(solution.s[-1], solution.last[3])


def test_the_interpreted_back_end_integrates_states() -> None:
    solver = kg.build(cart(), backend="interpreted")
    solution = solver.integrate((0.0, 0.5), Q0, U0, s0=S0, rtol=1e-9, atol=1e-11)
    assert_allclose(np.concatenate(solution.last[1:]), exact(0.5), atol=1e-8)
    assert_allclose(solver.rhs(0.0, Q0, U0, s=S0)[2], solver_of("cart").rhs(0.0, Q0, U0, s=S0)[2], rtol=ROUNDING)
    with raises(kg.SolveError, "a", "s="):
        solver.rhs(0.0, Q0, U0)


STABILIZED = [
    *(
        (form, None)
        for form in ("reduced", "nonminimal", "pseudoinverse", "momentum", "momentum_unreduced", "hamilton")
    ),
    *((form, kg.Baumgarte(alpha=5, beta=5)) for form in ("reduced", "range_space", "hamilton")),
    *((form, kg.Projection()) for form in ("reduced", "range_space", "pseudoinverse")),
]


@pytest.mark.parametrize(("form", "stabilization"), STABILIZED, ids=[f"{f}-{type(s).__name__}" for f, s in STABILIZED])
def test_constraints_and_states(form: str, stabilization: Any) -> None:
    solver = kg.build(pendulum(), form=form, stabilization=stabilization)
    theta, length = 0.6, 0.8
    q0, u0 = [length * np.sin(theta), -length * np.cos(theta)], [0.0, 0.0]
    # The dependent speed of the reduced momenta is fixed; its equation is singular where the pendulum hangs.
    end = 0.4 if form == "momentum" else 2.0
    solution = solver.integrate((0.0, end), q0, u0, s0=[0.3], rtol=1e-10, atol=1e-12)
    reference = solve_ivp(pendulum_rates, (0.0, end), [theta, 0.0, 0.3], method="DOP853", rtol=1e-12, atol=1e-13)
    theta, _, a = reference.y[:, -1]
    assert_allclose(solution.q[-1], [length * np.sin(theta), -length * np.cos(theta)], atol=1e-7)
    assert_allclose(solution.s[-1], [a], atol=1e-7)


def test_jacobians_agree_with_complex_numbers_and_differences() -> None:
    solver = solver_of("pendulum")
    q, u, s = np.array([0.5, -0.7]), np.array([0.7, 0.5]), np.array([0.4])
    jacobian = solver.jacobian(0.0, q, u, s=s)
    y, step = np.concatenate([q, u, s]), 1e-6

    def rates(z: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.concatenate(solver.rhs(0.0, z[:2], z[2:4], s=z[4:]))

    differences = np.array([(rates(y + h) - rates(y - h)) / (2 * step) for h in step * np.eye(5)]).T
    assert_allclose(np.hstack([jacobian.q, jacobian.u, jacobian.s]), differences, atol=1e-7)
    assert jacobian.r.shape == (5, 0)
    assert jacobian.p.shape == (5, 5)


def test_linearize_appends_the_states() -> None:
    linear = solver_of("cart").linearize(0.0, [0.0], [0.0], [0.0], [0.0, 0.0])
    A, B = cart_matrix()
    assert linear.states == ("x", "v", "a", "z")
    assert linear.additional_states == ("a", "z")
    assert_allclose(linear.A, A, atol=ROUNDING)
    assert_allclose(linear.B[:, 0], B, atol=ROUNDING)
    assert linear.steady
    assert_allclose(linear.C_outputs, [A[2], A[1] + [0, 0, 1, 0]], atol=1e-13)
    reduced = linear.without_ignorable()
    assert reduced.additional_states == ("a", "z")
    hanging = solver_of("pendulum").linearize(0.0, [0.0, -0.8], [0.0, 0.0], s=[0.0])
    assert len(hanging.states) == 3
    m, length, g, d, tau = 1.2, 0.8, 9.81, 0.4, 0.2
    expected = [[0, 1, 0], [-g / length, 0, -d / m / length], [0, length / tau, -1 / tau]]
    assert_allclose(hanging.eigenvalues, sorted_eigenvalues(np.array(expected)), atol=1e-10)


def sorted_eigenvalues(A: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    values = np.linalg.eigvals(A).astype(complex)
    return np.asarray(values[np.lexsort((-values.imag, -values.real))])


def test_other_integrators_read_the_states() -> None:
    solver = solver_of("cart")
    y0 = [*Q0, *U0, *S0]
    by_scipy = solve_ivp(solver.ode, (0.0, 1.0), y0, rtol=1e-10, atol=1e-12)
    assert_allclose(by_scipy.y[:, -1], exact(1.0), atol=1e-8)
    status, rates = call_rates(solver.low_level_callable(), 0.0, y0)
    assert status == 0
    assert_allclose(rates, solver.ode(0.0, y0), rtol=ROUNDING)


def test_results_can_be_stored_at_times_and_pickled() -> None:
    solver = pickle.loads(pickle.dumps(solver_of("cart")))
    times = np.linspace(0.0, 1.0, 5)
    solution = solver.integrate((0.0, 1.0), Q0, U0, s0={"z": 0.1, "a": 0.2}, t_eval=times, atol=[1e-9] * 4)
    copy = pickle.loads(pickle.dumps(solution))
    assert_array_equal(copy.s, solution.s)
    assert copy.s.shape == (5, 2)
    q, u, s = copy(times)
    assert (q.shape, u.shape, s.shape) == ((5, 1), (5, 1), (5, 2))
    assert_allclose(np.hstack([q, u, s]), [exact(t) for t in times], atol=1e-6)


def test_a_model_without_states_has_the_shapes_it_had() -> None:
    solver = kg.build(cart(states={}, loads=[], inputs=[], outputs={}, parameters={"m": 1.0}))
    qdot, udot = solver.rhs(0.0, Q0, U0)
    solution = solver.integrate((0.0, 1.0), Q0, U0)
    q, u = solution(0.5)
    assert solution.s.shape == (solution.t.size, 0)
    assert len(solution.last) == 3
    assert (qdot.shape, udot.shape, q.shape, u.shape) == ((1,), (1,), (1,), (1,))


def test_other_speeds_leave_the_states_alone() -> None:
    model = pendulum()
    w1, w2 = me.dynamicsymbols("w1 w2")
    u, w = model.speeds
    other = kg.build(model.with_speeds([w1, w2], [2 * u + w, w]))
    solver = solver_of("pendulum")
    q, u0, s = [0.5, -0.62], [0.3, 0.24], [0.7]
    new = other.new_speeds(0.0, q, u0)
    assert_allclose(other.rhs(0.0, q, new, s=s)[2], solver.rhs(0.0, q, u0, s=s)[2], rtol=1e-12)
    assert_allclose(other.rhs(0.0, q, new, s=s)[0], solver.rhs(0.0, q, u0, s=s)[0], rtol=1e-12)


def test_kanes_method_with_states() -> None:
    x, v, a, e = me.dynamicsymbols("x v a e")
    m, tau = sm.symbols("m tau")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    method = me.KanesMethod(N, [x], [v], [x.diff() - v])
    method.kanes_equations([me.Particle("P", P, m)], [(P, a * N.x)])
    model = kg.Model.from_kane(method, states={a.diff(): (e - a) / tau}, parameters={"m": 2, "tau": 0.5})
    assert tuple(map(str, model.states)) == ("a(t)",)
    assert [item.name for item in model.inputs] == ["e"]
    qdot, udot, sdot = kg.build(model).rhs(0.0, [0.0], [1.0], [3.0], [1.0])
    assert_allclose([*qdot, *udot, *sdot], [1.0, 0.5, 4.0], rtol=ROUNDING)


def voice_coil(name: str = "voice coil") -> kg.Model:
    """A mass with a coil: the current i has the energy L i^2 / 2, and its rate contains the acceleration."""
    v, i = me.dynamicsymbols("v i")
    inductance, resistance, c = sm.symbols("La R c")
    rate = (-resistance * i - c * v + v.diff()) / inductance
    return point_mass(name, c * i, states={i: rate}, potential_energy=inductance * i**2 / 2)


def test_verification_checks_rates_and_power() -> None:
    checks = {check.principle: check for check in kg.verify(voice_coil(), states=4).checks}
    assert checks["power of states"].deviation is not None
    assert checks["rates of states"].deviation is not None


def test_verification_finds_wrong_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    derived = Equations.__dict__["sdot"].func

    def wrong(equations: Equations) -> Quantity:
        quantity: Quantity = derived(equations)
        return replace(quantity, nodes=tuple(1.001 * node for node in quantity.nodes))

    monkeypatch.setattr(Equations, "sdot", property(wrong))
    with pytest.raises(kg.VerificationError) as caught:
        kg.verify(voice_coil("voice coil with wrong rates"), states=2, forms=("reduced",))
    assert caught.value.report is not None
    assert "rates of states" in {check.principle for check in caught.value.report.failed}


@pytest.mark.parametrize("form", ["reduced", "momentum"])
def test_forms_agree_at_random_states(form: str) -> None:
    rng = np.random.default_rng(11)
    reference, other = solver_of("cart"), kg.build(cart(), form=form)
    for _ in range(20):
        t, q, u, r, s = rng.uniform(), rng.normal(size=1), rng.normal(size=1), rng.normal(size=1), rng.normal(size=2)
        expected = np.concatenate(reference.rhs(t, q, u, r, s))
        assert_allclose(np.concatenate(other.rhs(t, q, u, r, s)), expected, rtol=FORMS_AGREE, atol=FORMS_AGREE)


def test_arguments_that_do_not_fit_are_named() -> None:
    solver, plain = solver_of("cart"), kg.build(cart(states={}, loads=[], inputs=[], outputs={}, parameters={"m": 1.0}))
    with raises(kg.SolveError, "s=", "a, z"):
        solver.rhs(0.0, Q0, U0)
    with raises(kg.SolveError, "s", "(3,)", "(2,)", "a, z"):
        solver.rhs(0.0, Q0, U0, None, [1.0, 2.0, 3.0])
    with raises(kg.SolveError, "a", "nan"):
        solver.rhs(0.0, Q0, U0, None, [np.nan, 1.0])
    with raises(kg.SolveError, "no states"):
        plain.rhs(0.0, Q0, U0, None, [1.0])
    with raises(kg.SolveError, "s0", "cart", "a, z"):
        solver.integrate((0.0, 1.0), Q0, U0)
    with raises(kg.SolveError, "s0", "z"):
        solver.integrate((0.0, 1.0), Q0, U0, s0={"a": 1.0})
    with raises(kg.SolveError, "b", "state"):
        solver.integrate((0.0, 1.0), Q0, U0, s0={"a": 1.0, "z": 0.0, "b": 2.0})
    with raises(kg.SolveError, "s0", "(1,)", "(2,)"):
        solver.integrate((0.0, 1.0), Q0, U0, s0=[1.0])
    with raises(kg.SolveError, "s0", "cart"):
        plain.integrate((0.0, 1.0), Q0, U0, s0=[1.0])
    with raises(kg.SolveError, "out", "sdot"):
        solver.rhs(0.0, Q0, U0, None, S0, (np.empty(1), np.empty(1)))
    both = np.empty(3)
    with raises(kg.SolveError, "sdot", "udot"):
        solver.rhs(0.0, Q0, U0, None, S0, (np.empty(1), both[:1], both[:2]))
    s = np.array(S0, dtype=float)
    with raises(kg.SolveError, "sdot", "shares memory with s"):
        solver.rhs(0.0, Q0, U0, None, s, (np.empty(1), np.empty(1), s))


def test_a_rate_that_is_no_number_at_the_start_is_named() -> None:
    x, v, a, z = me.dynamicsymbols("x v a z")
    solver = kg.build(cart(states={a: v / x, z: 1}, inputs=[], outputs={}, parameters={"m": 1.0, "k": 1.0, "c": 0.1}))
    with raises(kg.SolveError, "a'", "x=0.0"):
        solver.integrate((0.0, 1.0), [0.0], [1.0], s0=[1.0, 0.0])
    with raises(kg.SolveError, "sdot", "a'"):
        solver.rhs(0.0, [0.0], [1.0], s=[1.0, 0.0])


@pytest.mark.parametrize("sample_time", [None, 0.01])
def test_servo_constraints_know_the_states_in_loads(sample_time: float | None) -> None:
    """The control f cancels the force a of the actuator, which has an equation of its own."""
    x, v, a, f = me.dynamicsymbols("x v a f")
    model = point_mass(
        "servo cart",
        f + sm.Symbol("c") * a,
        states={a: v - a},
        inputs=[f],
        control=kg.Servo([x - 1], [(-4, -4)], y=0),
        parameters={"m": 2.0, "c": 3.0},
    )
    solver = kg.build(model)
    t, q, u, s = 0.0, [0.2], [0.3], [0.7]
    expected = 2.0 * (-4 * u[0] - 4 * (q[0] - 1)) - 3.0 * s[0]
    assert_allclose(solver.control(t, q, u, s=s), [expected], rtol=1e-13)
    S, right = solver.servo_system(t, q, u, s=s)
    assert_allclose(S @ [expected], right, rtol=1e-13)
    assert solver.feasibility(t, q, u, s=s).kind == "unique"
    solution = solver.integrate((0.0, 5.0), q, u, s0=s, control=True, sample_time=sample_time, rtol=1e-9, atol=1e-11)
    decay = np.exp(-2 * solution.t)
    error = (q[0] - 1) * decay + (u[0] + 2 * (q[0] - 1)) * solution.t * decay
    held = 0.0 if sample_time is None else 0.02  # an error of the order of the sample time
    assert_allclose(solution.q[:, 0] - 1, error, atol=1e-8 + held)
    assert solution.control is not None
    if sample_time is None:
        last = solution.last
        assert_allclose(solution.control.values[-1], solver.control(*last[:3], s=last[3]), rtol=1e-9)


@pytest.mark.parametrize("form", ["reduced", "pseudoinverse"])
def test_rates_with_accelerations_of_constrained_systems(form: str) -> None:
    """z' = u' + 2 w': the accelerations of the constrained, stabilized motion."""
    u, w, a, z = me.dynamicsymbols("u w a z")
    tau = sm.Symbol("tau")
    model = pendulum(states={a: (u - a) / tau, z: u.diff() + 2 * w.diff()})
    solver = kg.build(model, form=form, stabilization=kg.Baumgarte(alpha=3, beta=3), functions="all")
    q, speeds, s = [0.5, -0.7], [0.7, 0.6], [0.1, 0.0]
    _, udot, sdot = solver.rhs(0.0, q, speeds, s=s)
    assert_allclose(sdot[1], udot[0] + 2 * udot[1], rtol=1e-13)
    assert_allclose(solver.state_rates(0.0, q, speeds, s=s), sdot, rtol=1e-13)
    jacobian = solver.jacobian(0.0, q, speeds, s=s)
    for part in (jacobian.q, jacobian.u, jacobian.s, jacobian.p):
        assert_allclose(part[5], part[2] + 2 * part[3], atol=1e-11)


def test_reactions_and_multipliers_depend_on_states() -> None:
    solver = solver_of("pendulum")
    q, u = [0.0, -0.8], [0.0, 0.0]
    m, length, g, d, _ = 1.2, 0.8, 9.81, 0.4, 0.2
    force = solver.constraint_force(0.0, q, u, s=[5.0])
    assert_allclose(force, [0.0, m * g], atol=1e-12)
    q = [length, 0.0]
    assert_allclose(solver.constraint_force(0.0, q, u, s=[5.0]), [d * 5.0, 0.0], atol=1e-12)
    before = solver.impulse(0.0, q, u, [0.0, 1.0], s=[5.0])
    assert_allclose(before.u, [0.0, 1 / m], atol=1e-12)


def test_inverse_dynamics_refuses_states_in_forces() -> None:
    """In the cart the input f acts through the state a, so that forces contain no control; here it acts directly."""
    v, a, f = me.dynamicsymbols("v a f")
    options = {"inputs": [f], "states": {a: v - a}, "parameters": {"m": 2.0}}
    path = {"x": me.dynamicsymbols._t**2}
    with raises(kg.SolveError, "driven", "a", "r="):
        kg.build(point_mass("driven", f + a, **options)).inverse_dynamics(path, [0.0, 1.0])
    free = kg.build(point_mass("driven", f, **options)).inverse_dynamics(path, [0.0, 1.0])
    assert_allclose(free.controls[:, 0], [4.0, 4.0], rtol=1e-12)
