"""Stiff motions by the implicit method: contacts, strong stabilization, inputs, and what it asks of a build."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from scipy.integrate import solve_ivp
from systems import example
from tolerances import COARSE_INTEGRATION, CONVERGENCE_ORDER, FINE_INTEGRATION, STIFF_PROPORTIONALITY

import kanegen as kg
from kanegen.errors import SolveError

FUNCTIONS = ("rhs", "residuals", "jacobians")
TIME = me.dynamicsymbols._t
SLIDING = ((0.0, 0.0), (1.0, 0.3))


@cache
def contact() -> kg.Solver:
    """A particle pressed by its weight onto a wavy road through a stiff spring and damper: rates to 1e5 / s."""
    x, y, u, v = me.dynamicsymbols("x y u v")
    m, g, k, c = sm.symbols("m g k c")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    road = sm.sin(3 * x) / 10
    slope = sm.diff(road, x)
    push = k * (road - y) + c * (slope * u - v)
    model = kg.Model(
        name="stiff_contact",
        frame=N,
        coordinates=(x, y),
        speeds=(u, v),
        kinematics=(u - x.diff(TIME), v - y.diff(TIME)),
        bodies=(me.Particle("particle", P, m),),
        loads=((P, -m * g * N.y), (P, push * (N.y - slope * N.x))),
        parameters={m: 1.0, g: 9.81, k: 1e8, c: 1e5},
    )
    return kg.build(model, functions=FUNCTIONS)


@cache
def driven(as_input: bool) -> kg.Solver:
    """A damped bead on a line behind a driver that moves as cos(3 t): as an input, or as a function of time."""
    x, u = me.dynamicsymbols("x u")
    driver = me.dynamicsymbols("driver") if as_input else sm.cos(3 * TIME)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    model = kg.Model(
        name=f"driven_bead_{as_input}".lower(),
        frame=N,
        coordinates=(x,),
        speeds=(u,),
        kinematics=(u - x.diff(TIME),),
        bodies=(me.Particle("bead", P, 1),),
        loads=((P, (1e6 * (driver - x) - 1e4 * u) * N.x),),
        inputs=(kg.Input(driver),) if as_input else (),
    )
    return kg.build(model, functions=FUNCTIONS)


@cache
def pendulum() -> kg.Solver:
    return kg.build(example("varying_pendulum").model(), functions="all")


def derivatives(solver: kg.Solver, t: float, y: np.ndarray) -> np.ndarray:
    n_q = len(solver.description.coordinates)
    found = solver.jacobian(t, y[:n_q], y[n_q:])
    return np.hstack([found.q, found.u])


@pytest.mark.parametrize(("tolerance", "ratio"), [(1e-4, 80), (1e-6, 25), (1e-8, 10)])
def test_a_stiff_contact_in_a_fraction_of_the_steps(tolerance: float, ratio: float) -> None:
    """Accuracy against Radau IIA of SciPy with the same Jacobian; steps against an explicit method."""
    options: dict[str, Any] = {"rtol": tolerance, "atol": tolerance}
    stiff = contact().integrate((0.0, 1.0), *SLIDING, method="rodas", **options)
    explicit = contact().integrate((0.0, 1.0), *SLIDING, dense_output=False, **options)
    start = np.concatenate(SLIDING)
    peer = solve_ivp(
        contact().ode,
        (0.0, 1.0),
        start,
        "Radau",
        rtol=1e-10,
        atol=1e-12,
        jac=lambda t, y: derivatives(contact(), t, y),
    )
    assert stiff.statistics.steps * ratio < explicit.statistics.steps
    assert np.abs(stiff.q[-1] - peer.y[:2, -1]).max() < STIFF_PROPORTIONALITY * tolerance
    assert stiff.statistics.jacobians == stiff.statistics.steps
    assert stiff.statistics.factorizations == stiff.statistics.steps + stiff.statistics.rejected


def test_strong_stabilization() -> None:
    """Gains that decay at 1e4 / s, whose motion is that of the constraint itself."""
    initial = example("varying_pendulum").INITIAL
    start = (initial["q"], initial["u"])
    strong = pendulum().with_stabilization(kg.Baumgarte(alpha=1e4, beta=1e4))
    reference = pendulum().integrate((0.0, 2.0), *start, method="dop853", rtol=1e-13, atol=1e-13)
    explicit = strong.integrate((0.0, 2.0), *start, rtol=1e-6, atol=1e-6, dense_output=False)
    stiff = strong.integrate((0.0, 2.0), *start, method="rodas", rtol=1e-6, atol=1e-6)
    assert stiff.statistics.steps * 3 < explicit.statistics.steps
    np.testing.assert_allclose(stiff.q[-1], reference.q[-1], atol=COARSE_INTEGRATION)
    position, _ = strong.residuals(2.0, stiff.q[-1], stiff.u[-1])
    assert abs(position[0]) < 1e-9


@pytest.mark.parametrize("span", [(0.0, 2.0), (0.0, -2.0)])
def test_a_motion_that_is_not_stiff(span: tuple[float, float]) -> None:
    """Constraints without stabilization, in both directions, with dense output and projection."""
    initial = example("varying_pendulum").INITIAL
    start = (initial["q"], initial["u"])
    times = np.linspace(*span, 41)
    reference = pendulum().integrate(span, *start, method="dop853", rtol=1e-13, atol=1e-13, t_eval=times)
    projected = pendulum().with_stabilization(kg.Projection())
    for solver in (pendulum(), projected):
        found = solver.integrate(span, *start, method="rodas", rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found(times)[0], reference.q, atol=1e-6)
        np.testing.assert_allclose(found(times)[1], reference.u, atol=1e-6)
        assert found.t[-1] == span[1]


@pytest.mark.parametrize("name", ["rheonomic_particle", "slider_crank", "rolling_disk"])
def test_order_of_convergence_on_models(name: str) -> None:
    """Only the right Jacobian and the right derivative in time give the order: explicit time, closed loop, rolling."""
    initial = example(name).INITIAL
    solver = kg.build(example(name).model(), functions=FUNCTIONS).with_stabilization(kg.Baumgarte(alpha=5, beta=5))
    t0, start = initial["t"], (initial["q"], initial["u"], initial["r"])
    reference = solver.integrate((t0, t0 + 1.0), *start, method="dop853", rtol=1e-13, atol=1e-13)
    errors = []
    for size in (0.02, 0.01, 0.005):
        huge: dict[str, Any] = {"rtol": 1e6, "atol": 1e6, "first_step": size, "max_step": size}
        run = solver.integrate((t0, t0 + 1.0), *start, method="rodas", **huge)
        difference = np.concatenate([run.q[-1] - reference.q[-1], run.u[-1] - reference.u[-1]])
        errors.append(np.abs(difference).max())
    assert np.log2(np.array(errors[:-1]) / errors[1:]).min() > 4.0 - CONVERGENCE_ORDER


def exact_bead() -> complex:
    """Amplitude of the bead's motion, relative to that of the driver."""
    return 1e6 / (1e6 - 9.0 + 3e4j)


@pytest.mark.parametrize("kind", ["python", "spline"])
def test_inputs_that_change_are_differentiated(kind: str) -> None:
    """The same steps as with the input written as a function of time, whose derivative is compiled."""
    amplitude = exact_bead()
    start = ([amplitude.real], [-3.0 * amplitude.imag])
    knots = np.linspace(-0.1, 5.1, 2001)
    inputs: dict[str, Any] = {
        "python": lambda t: [np.cos(3.0 * t)],
        "spline": (knots, np.cos(3.0 * knots)[:, None]),
    }
    compiled = driven(as_input=False).integrate((0.0, 5.0), *start, method="rodas", rtol=1e-7, atol=1e-7)
    expected = (amplitude * np.exp(15.0j)).real
    assert compiled.q[-1, 0] == pytest.approx(expected, abs=STIFF_PROPORTIONALITY * 1e-7)
    found = driven(as_input=True).integrate((0.0, 5.0), *start, inputs[kind], method="rodas", rtol=1e-7, atol=1e-7)
    assert found.q[-1, 0] == pytest.approx(expected, abs=1e-5)
    if kind == "python":
        # With tighter tolerances the rounding of the differences contributes to the error that is estimated.
        loose: dict[str, Any] = {"method": "rodas", "rtol": 1e-6, "atol": 1e-6}
        steps = driven(as_input=False).integrate((0.0, 5.0), *start, **loose).statistics.steps
        found = driven(as_input=True).integrate((0.0, 5.0), *start, inputs[kind], **loose)
        assert found.statistics.steps == pytest.approx(steps, rel=0.02)


def test_an_input_that_raises_ends_the_run() -> None:
    def failing(t: float) -> list[float]:
        if t > 0.5:
            raise ValueError("no more input")
        return [1.0]

    with raises(SolveError, "no more input"):
        driven(as_input=True).integrate((0.0, 1.0), [1.0], [0.0], failing, method="rodas")


def test_a_build_without_jacobians_says_what_to_build() -> None:
    solver = kg.build(example("varying_pendulum").model(), functions=("rhs", "residuals"))
    with raises(SolveError, "jacobian_q", 'functions=("rhs", "residuals", "jacobians")'):
        solver.integrate((0.0, 1.0), (1.0, 0.0), (0.0, 0.0), method="rodas")


def test_redundant_constraints_with_the_pseudoinverse() -> None:
    x, y, u, v = me.dynamicsymbols("x y u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    model = kg.Model(
        name="twice_on_a_circle",
        frame=N,
        coordinates=(x, y),
        speeds=(u, v),
        kinematics=(u - x.diff(TIME), v - y.diff(TIME)),
        bodies=(me.Particle("particle", O.locatenew("P", x * N.x + y * N.y), 1),),
        holonomic_constraints=(x**2 + y**2 - 1, 2 * x**2 + 2 * y**2 - 2),
    )
    solver = kg.build(model, form="pseudoinverse", functions=FUNCTIONS)
    solution = solver.integrate((0.0, 1.0), (1.0, 0.0), (0.0, 1.0), method="rodas", rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(solution.q[-1], [np.cos(1.0), np.sin(1.0)], atol=FINE_INTEGRATION)


def test_momenta_have_no_jacobian() -> None:
    solver = kg.build(example("varying_pendulum").model(), form="momentum", functions=FUNCTIONS)
    with raises(SolveError, "momentum_rhs"):
        solver.integrate((0.0, 1.0), (1.0, 0.0), (0.0, 0.0), method="rodas")


def test_options_of_methods_that_choose_their_steps() -> None:
    with raises(SolveError, "rodas", "step"):
        contact().integrate((0.0, 1.0), *SLIDING, method="rodas", step=0.1)


@pytest.mark.parametrize("length", [1e-9, 1e-6, 1e6])
def test_differences_along_feedback_suit_any_unit(length: float) -> None:
    """Slopes of laws in Python are differences over a fraction of the state, and not over 5e-11 m at least."""
    x, u, force = me.dynamicsymbols("x u F")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, u * N.x)
    model = kg.Model(
        name="fed",
        frame=N,
        coordinates=[x],
        speeds=[u],
        kinematics=[x.diff(TIME) - u],
        bodies=[me.Particle("P", P, 1)],
        loads=[(P, force * N.x)],
        inputs=[force],
    )
    solver = kg.build(model, functions=FUNCTIONS)

    def run(size: float) -> kg.Solution:
        def law(t: float, q: Any, u: Any) -> list[float]:
            return [-1e4 * u[0] - 1e5 * size * np.sinh(q[0] / size / 0.1)]

        start = ([0.2 * size], [0.0])
        return solver.integrate((0.0, 0.02), *start, law, method="rodas", rtol=1e-6, atol=1e-8 * size)

    small, usual = run(length), run(1.0)
    np.testing.assert_allclose(small.q[-1] / length, usual.q[-1], rtol=1e-5)
    assert small.statistics.steps <= 1.1 * usual.statistics.steps
