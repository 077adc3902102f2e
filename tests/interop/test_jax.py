"""The rates of a model as a JAX function: values, derivatives, batches, and an optimization through it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import feedback_models as feedback
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from feedback_models import F, G, particle
from messages import raises
from systems import initial, model_of

import kanegen as kg

pytestmark = pytest.mark.target
jax = pytest.importorskip("jax")
TIME = me.dynamicsymbols._t

MODELS = ("lqr_cart_pole", "slider_crank", "dc_motor_arm", "rheonomic_particle")
"""Inputs; loops; states; constraints that depend on time."""


@pytest.fixture(autouse=True)
def doubles() -> Iterator[None]:
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@cache
def solver_of(name: str) -> kg.Solver:
    return kg.build(model_of(name), functions=("rhs", "residuals", "jacobians"))


def arguments(name: str) -> tuple[Any, ...]:
    """t, y, r, p near the start of an example."""
    begin, solver = initial(name), solver_of(name)
    y = np.array([*begin["q"], *begin["u"], *begin.get("s", ())], dtype=float)
    random = np.random.default_rng(2)
    r = random.uniform(0.1, 1.0, len(solver.description.inputs))
    return 0.3, y + 0.05 * random.uniform(-1.0, 1.0, y.size), r, np.array([*solver.parameters.values()], dtype=float)


def differences(f: Any, given: tuple[Any, ...], which: int) -> np.ndarray:
    """Central differences of f with respect to one argument."""
    x = np.atleast_1d(given[which])
    columns = []
    for k in range(x.size):
        h, values = 1e-6 * (abs(x[k]) if which == 3 else max(1.0, abs(x[k]))), []
        for sign in (1.0, -1.0):
            moved = x.copy()
            moved[k] += sign * h
            values.append(np.asarray(f(*given[:which], moved if which else moved[0], *given[which + 1 :])))
        columns.append((values[0] - values[1]) / (2.0 * h))
    return np.array(columns).T


@pytest.mark.parametrize("name", MODELS)
def test_values_and_derivatives(name: str) -> None:
    f, given = kg.interop.jax.ode(solver_of(name)), arguments(name)
    t, y, r, _ = given
    expected = solver_of(name).ode(t, y, r if r.size else None)
    np.testing.assert_array_equal(f(*given), expected)
    np.testing.assert_array_equal(jax.jit(f)(*given), expected)
    np.testing.assert_array_equal(f(t, y, r), expected)
    forward = jax.jit(jax.jacfwd(f, (0, 1, 2, 3)))(*given)
    reverse = jax.jit(jax.jacrev(f, (0, 1, 2, 3)))(*given)
    for k in range(4):
        found, back = (np.asarray(J[k]).reshape(y.size, -1) for J in (forward, reverse))
        np.testing.assert_allclose(back, found, rtol=1e-12, atol=1e-12)
        if found.size:
            difference = differences(f, given, k).reshape(found.shape)
            np.testing.assert_allclose(found, difference, rtol=0.0, atol=2e-8 * max(1.0, np.abs(found).max()))


def test_batches_of_states_and_of_parameters() -> None:
    f, (t, y, r, p) = kg.interop.jax.ode(solver_of("lqr_cart_pole")), arguments("lqr_cart_pole")
    Y = y + 0.1 * np.arange(5.0)[:, None]
    P = p * (1.0 + 0.1 * np.array([0, 1, 0, 2, 1]))[:, None]
    one_by_one = np.array([f(t, a, r, b) for a, b in zip(Y, P, strict=True)])
    np.testing.assert_array_equal(jax.vmap(f, (None, 0, None, 0))(t, Y, r, P), one_by_one)
    times = np.arange(3.0)
    nested = jax.vmap(jax.vmap(f, (None, 0, None)), (0, None, None))(times, Y, r)
    np.testing.assert_array_equal(nested, np.array([[f(s, a, r) for a in Y] for s in times]))
    jacobians = jax.vmap(jax.jacrev(f, 1), (None, 0, None, 0))(t, Y, r, P)
    np.testing.assert_allclose(jacobians, np.array([jax.jacfwd(f, 1)(t, a, r, b) for a, b in zip(Y, P, strict=True)]))


def test_gradient_through_an_integration() -> None:
    """The forces that bring the cart and the pole to rest, by gradients through 40 steps of Kutta's method."""
    f, h, n = kg.interop.jax.ode(solver_of("lqr_cart_pole")), 0.025, 40

    def step(y: Any, force: Any) -> Any:
        rate = lambda z: f(0.0, z, force[None])  # noqa: E731
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(y + h * k3)), None

    def cost(forces: Any) -> Any:
        end, _ = jax.lax.scan(step, jax.numpy.array([0.0, 0.1, 0.0, 0.0]), forces)
        return jax.numpy.sum(end**2) + 1e-4 * jax.numpy.sum(forces**2)

    both = jax.jit(jax.value_and_grad(cost))
    forces = np.ones(n)
    value, slope = both(forces)
    difference = [(cost(forces + d) - cost(forces - d)) / 2e-6 for d in 1e-6 * np.eye(n)[[0, 17, 39]]]
    np.testing.assert_allclose(slope[np.array([0, 17, 39])], difference, rtol=1e-6)
    from scipy.optimize import minimize

    found = minimize(lambda x: [np.array(part) for part in both(x)], forces, jac=True, method="BFGS")
    assert found.fun < 0.05 * value


def test_what_cannot_be_computed_is_nan() -> None:
    """A batch of two: the mass of the first model vanishes."""
    f, (t, y, r, p) = kg.interop.jax.ode(solver_of("lqr_cart_pole")), arguments("lqr_cart_pole")
    names = list(solver_of("lqr_cart_pole").parameters)
    P = np.array([p, p])
    P[0, names.index("l")] = 0.0
    found = np.asarray(jax.vmap(f, (None, None, None, 0))(t, y, r, P))
    assert np.isnan(found[0]).all()
    np.testing.assert_array_equal(found[1], f(t, y, r, p))
    found = np.asarray(jax.vmap(f, (None, 0, None))(t, np.array([np.full_like(y, np.nan), y]), r))
    assert np.isnan(found[0]).all()
    np.testing.assert_array_equal(found[1], f(t, y, r, p))


def test_refusals() -> None:
    solver, (t, y, r, _) = solver_of("lqr_cart_pole"), arguments("lqr_cart_pole")
    f = kg.interop.jax.ode(solver)
    with raises(kg.SolveError, "(2, 4)", "(4,)", "jax.vmap"):
        f(t, np.array([y, y]), r)
    with raises(kg.SolveError, "Jacobians", "functions="):
        kg.interop.jax.ode(kg.build(model_of("lqr_cart_pole")))
    with raises(kg.SolveError, "bouncing_ball", "contacts"):
        kg.interop.jax.ode(kg.build(model_of("bouncing_ball"), functions="all"))
    m = sm.Symbol("m")
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    open_model = kg.Model(
        name="falling",
        frame=N,
        coordinates=(x,),
        speeds=(v,),
        kinematics=(v - x.diff(me.dynamicsymbols._t),),
        bodies=(me.Particle("P", P, m),),
        loads=((P, -v * N.x),),
    )
    g = kg.interop.jax.ode(kg.build(open_model, functions="all"))
    with raises(kg.SolveError, "p=", "m"):
        g(0.0, [1.0, 2.0])
    np.testing.assert_array_equal(g(0.0, [1.0, 2.0], p=[4.0]), [2.0, -0.5])
    jax.config.update("jax_enable_x64", False)
    for refused in (lambda: kg.interop.jax.ode(solver), lambda: f(t, y, r)):
        with raises(kg.SolveError, "32", "jax.config.update('jax_enable_x64', True)"):
            refused()


def test_laws_give_their_inputs_wherever_r_does_not() -> None:
    """Beside an input without a law: values, and derivatives in all arguments, in the gain of the law too."""
    x, y, v, k = feedback.x, feedback.y, feedback.v, feedback.k
    inputs = [kg.Input(F, law=-k * x - v * sm.cos(TIME) + G * y), kg.Input(G)]
    solver = kg.build(particle((F + G, G - y), inputs=inputs, parameters={k: 3.0}), functions="all")
    f, rng = kg.interop.jax.ode(solver), np.random.default_rng(4)
    z = rng.normal(size=4)

    def by_hand(t: Any, y: Any, pull: Any, gain: Any) -> Any:
        force = -gain * y[0] - y[2] * jax.numpy.cos(t) + pull * y[1]
        return jax.numpy.array([y[2], y[3], (force + pull) / 2, (pull - y[1]) / 2])

    def compiled(t: Any, y: Any, pull: Any, gain: Any) -> Any:
        return f(t, y, {"G": pull}, jax.numpy.array([gain]))

    at = (0.7, z, 0.2, 3.0)
    np.testing.assert_allclose(compiled(*at), by_hand(*at), rtol=1e-13)
    np.testing.assert_allclose(f(0.7, z, {G: 0.2}), solver.ode(0.7, z, {"G": 0.2}), rtol=1e-13)
    np.testing.assert_allclose(f(0.7, z, [1.0, 0.2]), solver.ode(0.7, z, [1.0, 0.2]), rtol=1e-13)
    for argument in range(4):
        slopes = [jax.jacfwd(g, argument)(*at) for g in (compiled, by_hand)]
        np.testing.assert_allclose(*slopes, rtol=1e-12, atol=1e-12)
    rows = jax.vmap(compiled, (None, 0, 0, None))(0.7, np.array([z, 2 * z]), np.array([0.2, 0.3]), 3.0)
    np.testing.assert_allclose(rows[1], by_hand(0.7, 2 * z, 0.3, 3.0), rtol=1e-13)
    for r in (None, {"F": 1.0}):
        with raises(kg.SolveError, "r=", "G") if r is None else raises(kg.SolveError, "G"):
            f(0.7, z, r)
    t, start, _, _ = arguments("lqr_cart_pole")  # its only input has a law
    alone = solver_of("lqr_cart_pole")
    np.testing.assert_allclose(kg.interop.jax.ode(alone)(t, start), alone.ode(t, start), rtol=1e-13)


# -- whole motions ----------------------------------------------------------------------------------------------------


def test_a_motion_has_derivatives_by_jax() -> None:
    """An oscillator in closed form: values, forward and reverse derivatives, batches and compilation."""
    x, v = me.dynamicsymbols("x v")
    k, m = sm.symbols("k m")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    model = kg.Model(
        name="oscillator",
        frame=N,
        bodies=[me.Particle("P", P, m)],
        loads=[(P, -k * x * N.x)],
        coordinates=[x],
        speeds=[v],
        kinematics=[x.diff(TIME) - v],
        parameters={k: 4.0, m: 1.0},
    )
    times = np.linspace(0.0, 1.5, 4)
    motion = kg.interop.jax.motion(kg.build(model), times, ("k", "x"), u0={"v": 0.0}, rtol=1e-11, atol=1e-12)

    def exact(z: Any) -> Any:
        w = jax.numpy.sqrt(z[0])
        columns = z[1] * jax.numpy.cos(w * times), -z[1] * w * jax.numpy.sin(w * times)
        return jax.numpy.stack(columns, axis=1)

    z = jax.numpy.array([4.0, 0.7])
    np.testing.assert_allclose(motion(z), exact(z), rtol=1e-9, atol=1e-9)
    for derivative in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(derivative(motion)(z), derivative(exact)(z), rtol=1e-8, atol=1e-8)
    batch = jax.numpy.array([[4.0, 0.7], [5.0, -0.2]])
    slopes = jax.jit(jax.vmap(jax.grad(lambda z: motion(z)[-1, 0] ** 2)))(batch)
    np.testing.assert_allclose(slopes, jax.vmap(jax.grad(lambda z: exact(z)[-1, 0] ** 2))(batch), rtol=1e-7)
    assert np.isnan(motion(jax.numpy.array([-1.0, jax.numpy.nan]))).all()
    with raises(kg.SolveError, "z has shape (1,)", "(2,): k, x"):
        motion(jax.numpy.ones(1))
    with raises(kg.SolveError, "with_respect_to", "'y'"):
        kg.interop.jax.motion(kg.build(model), times, ("y",))
