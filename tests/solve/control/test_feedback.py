"""Inputs that Python code or a C function computes from the state, continuously or at samples, against closed forms of
a linear system, motions that SciPy integrates piece by piece, and what is refused."""

from __future__ import annotations

import ctypes
import pickle
import signal
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from control_models import solver_of as control_solver
from feedback_models import GROUPS
from feedback_models import sampled as sampled_laws
from hybrid_models import block
from hypothesis import given
from hypothesis import strategies as st
from messages import raises
from scipy import LowLevelCallable
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline, PPoly
from scipy.linalg import expm
from scipy_calls import Crossing, call_rates
from state_models import cart, cart_matrix, solver_of
from systems import solver_for

import kanegen as kg

STRICT: dict[str, Any] = {"method": "dop853", "rtol": 1e-12, "atol": 1e-14}
START = {"q0": [0.4], "u0": [-0.2], "s0": [0.1, 0.0]}
Y0 = np.array([0.4, -0.2, 0.1, 0.0])
GAIN = np.array([3.0, 1.0, 0.5, 0.0])  # of f = -GAIN (x, v, a, z)
POINTER = ctypes.POINTER(ctypes.c_double)


def law(t: float, q: Any, u: Any, s: Any) -> list[float]:
    return [float(-GAIN @ [*q, *u, *s])]


@ctypes.CFUNCTYPE(None, ctypes.c_double, POINTER, POINTER, POINTER, ctypes.c_void_p)
def law_in_c(t: float, q: Any, u: Any, r: Any, data: int | None) -> None:
    r[0] = -GAIN @ [q[0], u[0], u[1], u[2]]  # the states follow the speeds


LAWS: dict[str, Any] = {
    "list": law,
    "array": lambda t, q, u, s: np.array(law(t, q, u, s)),
    "number": lambda t, q, u, s: law(t, q, u, s)[0],
    "mapping": {"f": lambda t, q, u, s: law(t, q, u, s)[0]},
    "C": LowLevelCallable(law_in_c),
    "C with const": LowLevelCallable(
        law_in_c, signature="void (double, const double *, double const *, double *, void *)"
    ),
}


def held_motion(f: Callable[[float, Any], float], period: float, delay: float, end: float, before: float) -> Any:
    """States of the cart at the instants of its samples, and the values that act from them on, in closed form."""
    A, B = cart_matrix()
    extended = np.zeros((5, 5))
    extended[:4, :4], extended[:4, 4] = A, B
    n = round(end / period)
    instants = sorted({round(x, 12) for k in range(n + 1) for x in (k * period, k * period + delay) if x < end} | {end})
    samples: list[tuple[float, float]] = []
    y, states, acting = Y0, [], []
    for k, t in enumerate(instants):
        if abs(t / period - round(t / period)) < 1e-9:
            samples.append((t + delay, f(t, y)))
        begun = [value for begins, value in samples if begins <= t + 1e-9]
        states.append(y)
        acting.append(begun[-1] if begun else before)
        if k + 1 < len(instants):
            y = (expm(extended * (instants[k + 1] - t)) @ [*y, acting[-1]])[:4]
    return np.array(instants), np.array(states), np.array(acting)


def states_of(solution: kg.Solution) -> Any:
    return np.hstack([solution.q, solution.u, solution.s])


# -- continuous ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", LAWS)
def test_a_feedback_of_the_state_is_that_of_the_closed_loop(which: str) -> None:
    A, B = cart_matrix()
    solution = solver_of("cart").integrate((0.0, 2.0), r=LAWS[which], **START, **STRICT)
    exact = np.array([expm((A - np.outer(B, GAIN)) * t) @ Y0 for t in solution.t])
    np.testing.assert_allclose(states_of(solution), exact, atol=1e-10)
    np.testing.assert_allclose(solution.inputs[:, 0], -exact @ GAIN, atol=1e-9)


def test_the_stiff_method_knows_the_slope_of_a_feedback() -> None:
    """An actuator with a gain of 2000 makes the loop stiff: with the Jacobian of the plant alone steps are short."""
    A, B = cart_matrix()
    stiff = np.array([10.0, 5.0, 2000.0, 0.0])
    feedback = {"f": lambda t, q, u, s: -stiff @ [*q, *u, *s]}
    options: dict[str, Any] = {"method": "rodas", "rtol": 1e-7, "atol": 1e-9}
    solution = solver_of("cart").integrate((0.0, 2.0), r=feedback, **START, **options)
    np.testing.assert_allclose(states_of(solution)[-1], expm((A - np.outer(B, stiff)) * 2.0) @ Y0, atol=1e-6)
    assert solution.statistics.steps < 300  # dopri5 takes thousands


def test_the_arguments_that_a_callable_requires_decide_what_it_gets() -> None:
    seen: dict[str, tuple[Any, ...]] = {}

    class Controller:
        def __call__(self, t: float, q: Any, u: Any) -> float:
            seen["object"] = (t, q.copy(), u.copy())
            return 0.0

        def of_time(self, t: float, gain: float = 2.0) -> float:
            seen["method"] = (t, gain)
            return 0.0

    controller, solver = Controller(), solver_of("cart")
    for r in (controller, controller.of_time, np.sin, lambda t, q, u, s, gain=1.0: 0.0):
        solver.integrate((0.0, 0.1), r=r if r is not np.sin else {"f": np.sin}, t_eval=[0.1], **START)
    assert seen["object"][1].shape == seen["object"][2].shape == (1,)
    assert seen["method"][1] == 2.0


def test_a_c_function_of_the_right_hand_side_has_feedback() -> None:
    y = np.array([0.3, -0.1, 0.7, 0.2])
    status, rates = call_rates(solver_of("cart").low_level_callable(LowLevelCallable(law_in_c)), 0.0, y)
    assert status >= 0
    A, B = cart_matrix()
    np.testing.assert_allclose(rates, (A - np.outer(B, GAIN)) @ y, rtol=1e-13)


# -- samples -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", [None, 0.03, 0.1, 0.25])
@pytest.mark.parametrize("which", ["list", "mapping", "C"])
def test_samples_are_held_and_act_after_their_delay(which: str, delay: float | None) -> None:
    """The input has the default 0.5, which acts before the first sample."""
    times, states, acting = held_motion(lambda t, y: -GAIN @ y, 0.1, delay or 0.0, 2.0, 0.5)
    solution = solver_of("cart").integrate(
        (0.0, 2.0), r=LAWS[which], sample_time=0.1, delay=delay, t_eval=times, **START, **STRICT
    )
    np.testing.assert_allclose(states_of(solution), states, atol=1e-11)
    np.testing.assert_allclose(solution.inputs[:, 0], acting, atol=1e-11)


@pytest.mark.parametrize("method", ["rk4", "rodas"])
def test_samples_are_instants_of_every_method(method: str) -> None:
    _, states, _ = held_motion(lambda t, y: -GAIN @ y, 0.1, 0.04, 2.0, 0.5)
    options = {"step": 0.013} if method == "rk4" else {"rtol": 1e-9, "atol": 1e-11}
    solution = solver_of("cart").integrate(
        (0.0, 2.0), r=law, sample_time=0.1, delay=0.04, method=method, **START, **options
    )
    np.testing.assert_allclose(states_of(solution)[-1], states[-1], atol=1e-7 if method == "rk4" else 1e-8)


TABLE = np.linspace(0.0, 3.0, 40)


@pytest.mark.parametrize(
    "r",
    [
        lambda t: [np.sin(4.0 * t)],
        {"f": lambda t: np.sin(4.0 * t)},
        {"f": lambda t, q, u: np.sin(4.0 * t)},
        (TABLE, np.sin(4.0 * TABLE)),
    ],
    ids=["function", "mapping", "of the state", "table"],
)
def test_functions_of_time_are_held_too(r: Any) -> None:
    def value(t: float, y: Any) -> float:
        return float(np.interp(t, TABLE, np.sin(4.0 * TABLE)) if isinstance(r, tuple) else np.sin(4.0 * t))

    times, states, acting = held_motion(value, 0.2, 0.0, 2.0, 0.5)
    solution = solver_of("cart").integrate((0.0, 2.0), r=r, sample_time=0.2, t_eval=times, **START, **STRICT)
    np.testing.assert_allclose(states_of(solution), states, atol=1e-11)
    np.testing.assert_allclose(solution.inputs[:, 0], acting, atol=1e-12)


def test_a_sampled_callable_is_called_once_at_every_instant() -> None:
    instants: list[float] = []

    def controller(t: float, q: Any, u: Any) -> float:
        instants.append(t)
        return 300.0 * (-1.0) ** len(instants)  # rejects steps

    solution = solver_of("cart").integrate((0.3, 1.25), r=controller, sample_time=0.1, delay=0.05, **START)
    assert solution.statistics.rejected > 0
    assert instants == [0.3 + k * 0.1 for k in range(10)]
    copy = pickle.loads(pickle.dumps(solution))
    assert copy.kinetic_energy.shape == solution.t.shape
    np.testing.assert_array_equal(copy.inputs, solution.inputs)
    np.testing.assert_array_equal(np.unique(solution["f"]), [-300.0, 0.5, 300.0])
    assert len(instants) == 10


@given(
    period=st.floats(0.05, 0.5),
    delay=st.floats(0.0, 1.2) | st.sampled_from([0.25, 0.5]),
    start=st.floats(-3.0, 3.0),
    at=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5),
)
def test_at_every_time_the_latest_sample_acts_whose_delay_is_over(
    period: float, delay: float, start: float, at: list[float]
) -> None:
    times = np.sort([start + x for x in at])
    solution = solver_of("cart").integrate(
        (start, start + 1.0), r=lambda t: [t - start], sample_time=period, delay=delay, t_eval=times, **START
    )
    for t, value in zip(times - start, solution["f"], strict=True):
        index = (t - delay) / period
        if abs(index - round(index)) > 1e-6:  # else rounding decides
            assert value == pytest.approx(period * np.floor(index) if index > 0 else 0.5, abs=1e-12)


def test_arrays_that_a_callable_keeps_or_changes_are_its_own() -> None:
    kept: list[tuple[Any, Any]] = []

    def tidy(t: float, q: Any, u: Any) -> float:
        return -2.0 * q[0]

    def careless(t: float, q: Any, u: Any) -> float:
        kept.append((q, u[:1]))
        value = -2.0 * q[0]
        q += 100.0
        u.resize(0, refcheck=False) if len(kept) % 2 else None
        return float(value)

    runs = [solver_of("cart").integrate((0.0, 1.0), r=r, sample_time=0.1, **START, **STRICT) for r in (tidy, careless)]
    np.testing.assert_array_equal(states_of(runs[0]), states_of(runs[1]))
    at_samples = [runs[0](0.1 * k)[0][0] for k in range(11)]
    np.testing.assert_allclose([q[0] - 100.0 for q, _ in kept], at_samples, atol=1e-11)


@cache
def interpreted_cart() -> kg.Solver:
    return kg.build(cart(), backend="interpreted")


def test_the_interpreted_back_end_samples_too() -> None:
    interpreted, compiled = interpreted_cart(), solver_of("cart")
    for options in ({}, {"sample_time": 0.1}, {"sample_time": 0.1, "delay": 0.15}):
        times = [0.0, 0.1, 0.25, 0.3, 0.5]
        a, b = (
            solver.integrate((0.0, 0.5), r=law, t_eval=times, rtol=1e-10, atol=1e-12, **START, **options)
            for solver in (interpreted, compiled)
        )
        np.testing.assert_allclose(states_of(a), states_of(b), atol=1e-8)
        np.testing.assert_allclose(a.inputs, b.inputs, atol=1e-7)


def test_a_sampled_callable_acts_beside_sampled_laws() -> None:
    """Three groups with a clock each: two laws, and a callable in place of the third law, F + H and G - w on 2 kg."""
    laws: dict[str, tuple[float, float, Callable[[Any], float]]] = {
        "F": (*GROUPS["F"], lambda y: -3.0 * y[0] - y[3]),
        "G": (*GROUPS["G"], lambda y: np.floor(10.0 * y[1]) / 5.0 - y[0]),
        "H": (0.04, 0.02, lambda y: -y[2] * y[0]),
    }
    end, start = 0.5, np.array([0.7, -0.44, 0.3, 0.9])
    solution = sampled_laws().integrate(
        (0.0, end), start[:2], start[2:], {"H": lambda t, q, u: -u[0] * q[0]}, sample_time=0.04, delay=0.02, **STRICT
    )
    instants = {round(n * T + d, 9) for T, delay, _ in laws.values() for n in range(20) for d in (0.0, delay)}
    stops = sorted({t for t in instants if t < end} | {end})
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in laws}
    y = start
    for t, after in pairwise(stops):
        for name, (T, delay, law) in laws.items():
            if abs(t / T - round(t / T)) < 1e-6:
                samples[name].append((t + delay, law(y)))
        acting = {name: ([x for t0, x in rows if t0 <= t + 1e-9] or [rows[0][1]])[-1] for name, rows in samples.items()}
        forces = [(acting["F"] + acting["H"]) / 2.0, acting["G"] / 2.0]
        y = solve_ivp(
            lambda t, y, a, b: [y[2], y[3], a, b - y[3] / 2.0], (t, after), y, args=forces, rtol=1e-11, atol=1e-13
        ).y[:, -1]
    np.testing.assert_allclose(np.hstack([solution.q, solution.u])[-1], y, atol=1e-9)
    assert solution.inputs[-2].tolist() == pytest.approx(list(acting.values()), abs=1e-8)


# -- contacts, constraints, events ---------------------------------------------------------------------------

LENGTH, WALL = 0.8, 0.3


@cache
def pendulum() -> kg.Solver:
    """A pendulum in Cartesian coordinates with a force F along x, a pivot at y = lift and a wall at x = -0.3 m."""
    x, y, u, w, F, lift, rate, acceleration = me.dynamicsymbols("x y u w F lift lift1 lift2")
    m, length, g = sm.symbols("m l g")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + w * N.y)
    model = kg.Model(
        name="driven pendulum",
        frame=N,
        coordinates=[x, y],
        speeds=[u, w],
        kinematics=[x.diff() - u, y.diff() - w],
        bodies=[me.Particle("P", P, m)],
        loads=[(P, F * N.x)],
        gravity=-g * N.y,
        inputs=[F, kg.Input(lift, rate=rate, acceleration=acceleration)],
        holonomic_constraints=[x**2 + (y - lift) ** 2 - length**2],
        contacts=[kg.Unilateral(x + WALL, kg.Restitution(0.6), name="wall")],
        parameters={m: 1.2, length: LENGTH, g: 9.81},
    )
    return kg.build(model)


def push(t: float, q: Any, u: Any) -> float:
    return 4.0 * q[1] - 2.0 * u[0]


def swing(angle: float, period: float, delay: float, n: int, lift: Any) -> np.ndarray[Any, Any]:
    """Angle and rate after n samples from rest, integrated by SciPy from one instant or impact to the next."""

    def rates(t: float, y: Any, F: float) -> list[float]:
        weight = 1.2 * (9.81 + lift(t, 2))
        return [y[1], (F * np.cos(y[0]) - weight * np.sin(y[0])) / (1.2 * LENGTH)]

    wall = Crossing(lambda t, y, F: LENGTH * np.sin(y[0]) + WALL, direction=-1.0)
    y, waiting = np.array([angle, 0.0]), []
    for k in range(n):
        q = [LENGTH * np.sin(y[0]), lift(k * period) - LENGTH * np.cos(y[0])]
        waiting.append(push(0.0, q, LENGTH * y[1] * np.array([np.cos(y[0]), np.sin(y[0])])))
        # Before the first sample acts, its own value does: the input has no default.
        pieces = [(delay, waiting[max(k - 1, 0)]), (period - delay, waiting[k])] if delay else [(period, waiting[k])]
        t = k * period
        for length, F in pieces:
            end = t + length
            while end - t > 1e-14:
                piece = solve_ivp(rates, (t, end), y, args=(F,), events=wall, method="DOP853", rtol=1e-12, atol=1e-14)
                t, y = piece.t[-1], piece.y[:, -1]
                if piece.t_events[0].size:
                    y = np.array([y[0], -0.6 * y[1]])
    return np.array(y)


REST = PPoly(np.zeros((1, 1)), [0.0, 2.0])
HEAVING = CubicSpline(np.linspace(0.0, 2.0, 9), 0.2 * np.sin(np.linspace(0.0, 6.0, 9)))


@pytest.mark.parametrize(
    ("stabilization", "delay", "lift"),
    [
        (kg.Projection(), None, REST),
        (kg.Projection(), 0.02, REST),
        (kg.Baumgarte(alpha=10.0, beta=10.0), 0.02, REST),
        (kg.Projection(), 0.02, HEAVING),
    ],
    ids=["projection", "delay", "Baumgarte", "moving pivot"],
)
def test_a_sampled_controller_goes_on_after_impacts(stabilization: Any, delay: float | None, lift: Any) -> None:
    """The position of the pivot, whose rates the equations contain, is not held."""
    calls = []

    def controller(t: float, q: Any, u: Any) -> float:
        calls.append(t)
        return push(t, q, u)

    start, rate = [LENGTH * np.sin(0.9), lift(0.0) - LENGTH * np.cos(0.9)], float(lift(0.0, 1))
    solution = (
        pendulum()
        .with_stabilization(stabilization)
        .integrate(
            (0.0, 2.0), start, [0.0, rate], {"F": controller, "lift": lift}, sample_time=0.05, delay=delay, **STRICT
        )
    )
    impacts = [event for event in solution.events if event.kind == "impact"]
    assert len(impacts) >= 2
    angle, speed = swing(0.9, 0.05, delay or 0.0, 40, lift)
    np.testing.assert_allclose(solution.q[-1], [LENGTH * np.sin(angle), lift(2.0) - LENGTH * np.cos(angle)], atol=1e-9)
    np.testing.assert_allclose(solution.u[-1, 0], LENGTH * speed * np.cos(angle), atol=1e-8)
    np.testing.assert_allclose(solution["lift"], lift(solution.t), atol=1e-12)
    assert calls == [k * 0.05 for k in range(41)]


def test_inputs_with_rates_are_held_by_no_other_form_of_r() -> None:
    with raises(kg.SolveError, "rates", "lift", "mapping"):
        pendulum().integrate((0.0, 1.0), r=lambda t: [0.0, 0.0, 0.0, 0.0], sample_time=0.1, q0=[0.3, -0.7], u0=[0, 0])


def test_contact_forces_are_those_of_the_samples_that_acted() -> None:
    """A block that sticks: friction balances the force that is held."""
    solution = block().integrate(
        (0.0, 1.0), [0.0, 0.0], [0.0, 0.0], lambda t, q, u: 5.0 * t, sample_time=0.2, events=(), max_step=0.07
    )
    expected = np.floor(solution.t / 0.2 + 1e-9)
    np.testing.assert_allclose(solution.contacts.forces[:, 1], -expected, atol=1e-12)
    np.testing.assert_allclose(solution["F"], expected, atol=1e-12)
    np.testing.assert_allclose(solution.momentum, 0.0, atol=1e-12)


def test_a_continuous_feedback_acts_in_every_mode_of_a_contact() -> None:
    """F = 12 - 40 x pushes a block from stick to slip and back: while it sticks, friction balances F."""
    for method in ("dopri5", "rodas"):
        solution = block().integrate(
            (0.0, 3.0),
            [0.0, 0.0],
            [0.0, 0.0],
            lambda t, q, u: 12.0 - 40.0 * q[0] - 4.0 * u[0],
            events=(),
            method=method,
        )
        assert [event.kind for event in solution.events] == ["sticks"]
        stopped = solution.t > solution.events[0].t
        np.testing.assert_allclose(solution.contacts.forces[stopped, 1], -solution["F"][stopped], atol=1e-9)
        # m x'' + 4 x' + 40 x = 12 - mu m g
        x = solve_ivp(
            lambda t, y: [y[1], (6.0 - 4.0 * y[1] - 40.0 * y[0]) / 2.0],
            (0.0, 3.0),
            [0.0, 0.0],
            rtol=1e-10,
            atol=1e-12,
            events=Crossing(lambda t, y: y[1], direction=-1.0),
        ).y_events[0][0][0]
        np.testing.assert_allclose(solution.q[-1, 0], x, atol=1e-6)


# -- ends and refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sample_time", [None, 0.1])
def test_an_exception_of_a_callable_ends_the_run(sample_time: float | None) -> None:
    def broken(t: float, q: Any, u: Any) -> float:
        if t > 0.35:
            raise ValueError("no measurement")
        return 0.0

    with raises(kg.IntegrationError, "ValueError", "no measurement") as caught:
        solver_of("cart").integrate((0.0, 1.0), r=broken, sample_time=sample_time, **START)
    assert 0.2 < caught.value.solution.t[-1] <= 0.4
    with raises(kg.SolveError, "ZeroDivisionError"):
        solver_of("cart").integrate((0.0, 1.0), r=lambda t, q, u: 1 / 0, sample_time=sample_time, **START)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("sample_time", [None, 0.1])
def test_ctrl_c_in_a_callable_ends_the_run(sample_time: float | None) -> None:
    def interrupted(t: float, q: Any, u: Any) -> float:
        if t > 0.35:
            signal.raise_signal(signal.SIGINT)
        return 0.0

    with pytest.raises(kg.IntegrationInterrupted) as caught:
        solver_of("cart").integrate((0.0, 1.0), r=interrupted, sample_time=sample_time, **START)
    assert 0.2 < caught.value.solution.t[-1] <= 0.4


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ([1.0, 2.0], ("(2,)", "(1,)", "f")),
        ([[1.0]], ("(1, 1)", "(1,)")),
        (np.nan, ("f", "nan")),
        ([np.inf], ("f", "inf")),
        ("1", ("r", "str")),
        (None, ("r",)),
    ],
)
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("sample_time", [None, 0.1])
def test_wrong_values_are_refused(value: Any, names: tuple[str, ...], later: bool, sample_time: float | None) -> None:
    with raises(kg.SolveError, *(names if later or value != "1" else ())):
        solver_of("cart").integrate(
            (0.0, 1.0), r=lambda t, q, u: value if t > 0.35 or not later else 0.0, sample_time=sample_time, **START
        )


@pytest.mark.parametrize(
    ("r", "names"),
    [
        (lambda t, q: 0.0, ("t, q", "(t, q, u)")),
        (lambda: 0.0, ("r", "(t, q, u)")),
        (lambda *arguments: 0.0, ("r", "(t, q, u)")),
        (lambda t, *, gain: 0.0, ("gain=", "(t)")),
        (lambda t, q, u, s: 0.0, ("t, q, u, s", "no states")),
        ({"F": lambda t, q: 0.0}, ("input F", "t, q")),
    ],
)
def test_callables_with_other_arguments_are_refused(r: Any, names: tuple[str, ...]) -> None:
    with raises(kg.SolveError, *names):
        block().integrate((0.0, 1.0), [0.0, 0.0], [0.0, 0.0], r)


def test_c_functions_with_another_signature_are_refused() -> None:
    signature = "void (double, double *, double *, void *)"
    with raises(kg.SolveError, signature, "void (double, double *, void *)", "const double *"):
        block().integrate((0.0, 1.0), [0.0] * 2, [0.0] * 2, LowLevelCallable(law_in_c, signature=signature))


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"delay": 0.1}, ("delay", "sample_time=")),
        ({"sample_time": 0.0}, ("sample_time", "0.0")),
        ({"sample_time": 0.1, "delay": -0.1}, ("delay", "-0.1")),
        ({"sample_time": 0.1, "delay": np.nan}, ("delay", "nan")),
        ({"sample_time": 0.1, "r": None}, ("sample_time", "r")),
        ({"sample_time": 1e-20}, ("sample_time", "1e-20")),
        ({"sample_time": 0.1, "t_span": (1.0, 0.0)}, ("sampled", "backwards")),
    ],
)
def test_samples_that_make_no_sense_are_refused(options: dict[str, Any], names: tuple[str, ...]) -> None:
    for solver in (solver_of("cart"), interpreted_cart()):
        with raises(kg.SolveError, *names):
            solver.integrate(**{"t_span": (0.0, 1.0), "r": law, **START, **options})


def test_runs_backwards_have_continuous_feedback() -> None:
    A, B = cart_matrix()
    solution = solver_of("cart").integrate((1.0, 0.0), r=law, **START, **STRICT)
    np.testing.assert_allclose(states_of(solution)[-1], expm(np.outer(B, GAIN) - A) @ Y0, rtol=1e-9)


def test_what_has_no_state_refuses_feedback() -> None:
    solver = kg.build(cart(), form="momentum_unreduced")
    for options in ({"r": law}, {"r": lambda t: [0.0], "sample_time": 0.1}):
        with raises(kg.SolveError, "momentum_unreduced", "form="):
            solver.integrate((0.0, 1.0), **START, **options)
    winch = control_solver("winch")  # its length, an input with rates, occurs in a constraint
    with raises(kg.SolveError, "r", "state", "start"):
        winch.integrate((0.0, 1.0), {"x": 0.6}, {"u": 0.0}, lambda t, q, u: [1.0, 0.0, 0.0])


# -- servo-constraints ---------------------------------------------------------------------------------------


def test_the_controls_of_a_servo_can_be_delayed() -> None:
    start = {"q": (0.1, -0.1), "u": (0.3, -0.2)}
    solver = solver_for("energy_servo")
    run = solver.integrate((0.0, 1.0), start["q"], start["u"], control=True, sample_time=0.1, delay=0.04, **STRICT)
    states = [run(0.1 * k) for k in range(10)]
    samples = [solver.control(0.1 * k, q, u) for k, (q, u) in enumerate(states)]
    index = np.floor((run.t - 0.04) / 0.1 + 1e-9).astype(int)
    expected = np.array([samples[max(k, 0)] for k in index])
    np.testing.assert_allclose(run.control.values, expected, atol=1e-9)
    again = solver.integrate(
        (0.0, 1.0),
        start["q"],
        start["u"],
        lambda t, q, u: solver.control(t, q, u),
        sample_time=0.1,
        delay=0.04,
        **STRICT,
    )
    np.testing.assert_allclose(again.q[-1], run.q[-1], atol=1e-11)
    with raises(kg.SolveError, "delay", "sample_time="):
        solver.integrate((0.0, 1.0), start["q"], start["u"], control=True, delay=0.04)
