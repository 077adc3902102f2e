"""Masses and inertias given as functions of time or of inputs: KanesMethod's law, closed forms, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from scipy.integrate import solve_ivp
from scipy_calls import Crossing
from shares import share
from tolerances import EVALUATION, FINE_INTEGRATION, MOMENTUM_RATE, SOLVE

import kanegen as kg
from kanegen.derivation import Equations
from kanegen.derivation.momenta import Momenta
from kanegen.forms import FORMS
from kanegen.graph import evaluate

t = me.dynamicsymbols._t
m0 = sm.Symbol("m0")
SPAN = (0.0, 2.0)
TIGHT = {"method": "dop853", "rtol": 1e-12, "atol": 1e-12}


def tank(inputs: bool = True) -> tuple[kg.Model, me.KanesMethod]:
    """A tank that turns freely about a fixed point off its mass center, and a leaking pendulum bob on it.

    The mass of the tank is an input, its inertia depends on time and on this input, the bob's mass on time.
    """
    q, u = me.dynamicsymbols("q1:5"), me.dynamicsymbols("u1:5")
    fill, flow = me.dynamicsymbols("fill flow")
    mass = fill if inputs else fill.subs(fill, level(t))
    N, B, P = (me.ReferenceFrame(name) for name in ("N", "B", "P"))
    B.orient_body_fixed(N, q[:3], "312")
    P.orient_axis(B, B.x, q[3])
    O = me.Point("O")
    O.set_vel(N, 0)
    center = O.locatenew("center", sm.Rational(3, 10) * B.x - sm.Rational(1, 5) * B.z)
    hinge = O.locatenew("hinge", sm.Rational(1, 2) * B.y)
    bob = hinge.locatenew("bob", -sm.Rational(7, 10) * P.z)
    for point, frame in ((center, B), (hinge, B)):
        point.v2pt_theory(O, N, frame)
    bob.v2pt_theory(hinge, N, P)
    central = me.inertia(B, 2 + t / 3, m0 + mass / 5, 1 + sm.exp(-t) / 2, t / 10, 0, sm.sin(t) / 8)
    bodies = (
        me.RigidBody("tank", center, B, mass, (central, center)),
        me.Particle("bob", bob, 1 + t / 2),
    )
    loads = [(point, -9.81 * m * N.z) for point, m in ((center, mass), (bob, 1 + t / 2))]
    kinematics = [x.diff(t) - v for x, v in zip(q, u, strict=True)]
    kane = me.KanesMethod(N, q, u, kinematics)
    kane.kanes_equations(bodies, loads)
    model = kg.Model(
        name="tank",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=kinematics,
        bodies=bodies,
        gravity=-9.81 * N.z,
        inputs=(kg.Input(fill, rate=flow, default=2.0), kg.Input(flow, default=0.5)) if inputs else (),
        parameters={m0: 1.5},
        reactions={"pin": kg.Reaction(("tank", "bob"), O, N), "hinge": kg.Reaction("bob", hinge, B)},
    )
    return model, kane


def level(time: Any) -> Any:
    return 2 + sm.sin(2 * time) / 2


def tumbling() -> tuple[kg.Model, me.KanesMethod]:
    """A free body whose mass and inertia change, with a knife edge on it: speeds are components in the body."""
    q, u = me.dynamicsymbols("q1:7"), me.dynamicsymbols("u1:7")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_body_fixed(N, q[3:], "123")
    rates = B.ang_vel_in(N)
    B.set_ang_vel(N, u[3] * B.x + u[4] * B.y + u[5] * B.z)
    O, center = me.Point("O"), me.Point("center")
    O.set_vel(N, 0)
    center.set_pos(O, q[0] * N.x + q[1] * N.y + q[2] * N.z)
    center.set_vel(N, u[0] * B.x + u[1] * B.y + u[2] * B.z)
    edge = center.locatenew("edge", sm.Rational(2, 5) * B.x + sm.Rational(1, 10) * B.z)
    edge.v2pt_theory(center, N, B)
    mass = 2 - sm.Rational(1, 2) * t
    inertia = me.inertia(B, 1 - t / 5, 2 + t / 4, m0 + t / 6, sm.Rational(1, 10), t / 9, 0)
    body = me.RigidBody("body", center, B, mass, (inertia, center))
    velocity = q[0].diff(t) * N.x + q[1].diff(t) * N.y + q[2].diff(t) * N.z
    kinematics = [(velocity - center.vel(N)).dot(a) for a in N] + [(rates - B.ang_vel_in(N)).dot(a) for a in B]
    knife = edge.vel(N).dot(B.y)
    loads = [(center, 3 * N.x - q[1] * N.y), (B, 2 * B.z - u[3] * B.x)]
    order = (u[0], u[2], u[3], u[4], u[5])
    kane = me.KanesMethod(
        N, q, order, kinematics, u_dependent=(u[1],), velocity_constraints=[knife], constraint_solver="CRAMER"
    )
    kane.kanes_equations([body], loads)
    model = kg.Model(
        name="tumbling",
        frame=N,
        coordinates=q,
        speeds=(*order, u[1]),
        kinematics=kinematics,
        bodies=(body,),
        loads=loads,
        nonholonomic_constraints=(knife,),
        dependent_speeds=(u[1],),
        parameters={m0: 1.5},
    )
    return model, kane


def reference(
    kane: me.KanesMethod, inputs: dict[Any, Any], q0: list[float], u0: list[float]
) -> Callable[[float], np.ndarray]:
    """The motion (q, u) by KanesMethod's own mass matrix and forcing, SymPy's rates of the inputs included."""
    values = {symbol.diff(t): function.diff(t) for symbol, function in inputs.items()} | inputs | {m0: sm.Float(1.5)}
    M, f = (x.xreplace(values) for x in (kane.mass_matrix_full, kane.forcing_full))
    states = sm.symbols(f"y:{M.shape[0]}")
    names = dict(zip((*kane.q, *kane.u), states, strict=True))
    equations = sm.lambdify([t, states], [M.xreplace(names), f.xreplace(names)], cse=True)

    def rhs(time: float, y: np.ndarray) -> np.ndarray:
        left, right = equations(time, y)
        return np.linalg.solve(left, right.ravel())

    return solve_ivp(rhs, SPAN, [*q0, *u0], method="DOP853", rtol=1e-12, atol=1e-12, dense_output=True).sol


@cache
def tank_model() -> tuple[kg.Model, me.KanesMethod]:
    return tank()


@cache
def tank_reference() -> Callable[[float], np.ndarray]:
    fill, flow = me.dynamicsymbols("fill flow")
    return reference(tank_model()[1], {fill: level(t), flow: level(t).diff(t)}, *TANK_START)


TANK_START = ([0.3, 0.4, -0.2, 0.6], [0.7, -0.5, 1.2, 0.4])
TUMBLING_START = ([0.1, -0.2, 0.3, 0.4, 0.3, -0.2], [1.0, 0.3, 0.9, -0.6, 0.7])
TIMES = np.linspace(*SPAN, 9)


def fill_and_flow(time: float) -> np.ndarray:
    return np.array([2 + np.sin(2 * time) / 2, np.cos(2 * time)])


@pytest.mark.parametrize("form", share(FORMS, of=3))
def test_the_tank_moves_as_kanes_method_says(form: str) -> None:
    """Every form without constraints, with the mass an input: 2 s to 1e-8 of the size of the motion."""
    solver = kg.build(tank_model()[0], form=form)
    found = solver.integrate(SPAN, *TANK_START, r=fill_and_flow, t_eval=TIMES, **TIGHT)
    expected = np.array([tank_reference()(time) for time in TIMES])
    np.testing.assert_allclose(np.hstack([found.q, found.u]), expected, rtol=0.0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("form", share([form for form in FORMS if form != "hamilton"], of=2))
def test_a_constrained_body_moves_as_kanes_method_says(form: str) -> None:
    """Every form with a nonholonomic constraint, speeds that are no rates, inertia and mass functions of time."""
    model, _ = tumbling_model()
    q0, u0 = TUMBLING_START
    solver = kg.build(model, form=form)
    start = solver.make_consistent(0.0, q0, [*u0, 0.0], fixed=("u1", "u3", "u4", "u5", "u6"))
    found = solver.integrate(SPAN, *start, t_eval=TIMES, **TIGHT)
    motion = tumbling_reference(tuple(start[1]))
    expected = np.array([motion(time) for time in TIMES])
    np.testing.assert_allclose(np.hstack([found.q, found.u]), expected, rtol=0.0, atol=1e-8 * np.abs(expected).max())


@cache
def tumbling_model() -> tuple[kg.Model, me.KanesMethod]:
    return tumbling()


@cache
def tumbling_reference(u0: tuple[float, ...]) -> Callable[[float], np.ndarray]:
    return reference(tumbling_model()[1], {}, TUMBLING_START[0], list(u0))


@pytest.mark.parametrize("make", [tank_model, tumbling_model], ids=["tank", "tumbling"])
def test_all_principles_agree(make: Callable[[], tuple[kg.Model, me.KanesMethod]]) -> None:
    report = kg.verify(make()[0], states=2, forms=())
    applied = {check.principle for check in report.checks if check.ok}
    assert applied >= {"Lagrange", "Gibbs-Appell", "active forces", "power balance", "Gauss"}


def test_the_velocity_form_splits_the_rate_of_the_kinetic_energy_matrix() -> None:
    """``Q' = Dm + Dm^T`` and ``Q u' + Dm u = e``."""
    e = kg.derive(tank_model()[0])
    momenta = Momenta(e)
    n = len(e.system.u)
    Dm, Q, rate, e_, P = (np.array(at_a_state(e, x.nodes)) for x in (momenta.Dm, e.Q, e.Qdot, momenta.e, e.P))
    Dm, Q, rate = (x.reshape(n, n) for x in (Dm, Q, rate))
    np.testing.assert_allclose(Dm + Dm.T, rate, rtol=0.0, atol=EVALUATION * np.abs(rate).max())
    u = np.array(STATE["u"])
    np.testing.assert_allclose(e_ - Dm @ u, P, rtol=0.0, atol=EVALUATION * np.abs(e_).max())


STATE = {"t": [0.7], "q": TANK_START[0], "u": TANK_START[1], "r": [2.3, -0.4], "p": [1.5]}


def at_a_state(equations: Equations, nodes: Any) -> list[float]:
    return evaluate(nodes, {**STATE, "udot": [0.0] * 4})


# -- reactions -------------------------------------------------------------------------------------------------


def test_reactions_are_the_rate_of_momentum() -> None:
    """Force and torque at the pin: rates of linear and angular momentum, by SymPy, less the weights."""
    model, _ = tank_model()
    solver = kg.build(model)
    time, q, u, r = STATE["t"][0], np.array(STATE["q"]), np.array(STATE["u"]), np.array(STATE["r"])
    qdot, udot = solver.rhs(time, q, u, r)
    momentum = momentum_of(model)
    h = 1e-5

    def moved(s: float) -> np.ndarray:
        return np.array(momentum(time + s, q + s * qdot, u + s * udot, r[0] + s * r[1]))

    expected = (moved(h) - moved(-h))[:6] / (2 * h) - moved(0.0)[6:]
    found = np.concatenate(solver.reaction("pin", time, q, u, r))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=MOMENTUM_RATE * np.abs(expected).max())


def momentum_of(model: kg.Model) -> Any:
    """Linear and angular momentum about O (6), then force and moment of the weights (6), as functions of the state."""
    N, fill = model.frame, model.inputs[0].symbol
    rates = dict(zip((x.diff(t) for x in model.coordinates), model.speeds, strict=True))
    O = next(p for p in model.bodies[0].masscenter._pos_dict if p.name == "O")
    sums = [sm.zeros(3, 1) for _ in range(4)]
    for body in model.bodies:
        arm = body.masscenter.pos_from(O)
        linear = body.mass * arm.dt(N)
        spin = body.central_inertia.dot(body.frame.ang_vel_in(N)) if hasattr(body, "inertia") else 0 * N.x
        weight = -9.81 * body.mass * N.z
        for k, vector in enumerate((linear, spin + arm.cross(linear), weight, arm.cross(weight))):
            sums[k] += vector.to_matrix(N)
    values = [x.xreplace(rates).subs(m0, 1.5) for part in sums for x in part]
    return sm.lambdify([t, list(model.coordinates), list(model.speeds), fill], values, cse=True)


# -- closed forms, cost --------------------------------------------------------------------------------------------


def sliding(mass: Any, pull: Any = 0, **options: Any) -> kg.Model:
    """A particle on a line under a constant force 3 N, and another."""
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    settings = {
        "name": "sliding",
        "frame": N,
        "coordinates": [x],
        "speeds": [v],
        "kinematics": [x.diff(t) - v],
        "bodies": [me.Particle("p", P, mass)],
        "loads": [(P, (3 + pull) * N.x)],
    }
    return kg.Model(**{**settings, **options})


def test_momentum_grows_by_the_force_alone() -> None:
    """``(m v)' = 3`` with ``m = 1 + t/2``: ``v = (v0 + 3 t) / m``; work becomes ``3 v - 1/2 m' v^2`` of energy."""
    solver = kg.build(sliding(1 + t / 2), form="reduced")
    solution = solver.integrate(SPAN, [0.0], [0.8], **TIGHT)
    assert solution.u[-1, 0] == pytest.approx((0.8 + 3 * 2.0) / 2.0, rel=1e-10)
    (x,), (v,) = solver.rhs(1.0, [0.0], [1.4])
    assert x == 1.4
    assert v == pytest.approx((3 - 0.5 * 1.4) / 1.5, rel=EVALUATION)


def test_inverse_dynamics_takes_the_same_law() -> None:
    """The control that gives ``x = t^2`` to the mass ``1 + t/2`` is ``(m v)' - 3 = 2 (1 + t/2) + t - 3``."""
    control = me.dynamicsymbols("control")
    model = sliding(1 + t / 2, pull=control, name="pulled", inputs=[control])
    times = np.linspace(0.1, 2.0, 5)
    found = kg.build(model).inverse_dynamics({"x": t**2}, times)
    np.testing.assert_allclose(found.controls[:, 0], 2 * times - 1, rtol=0.0, atol=SOLVE)


def test_a_ball_that_loses_mass_bounces() -> None:
    """``(m v)' = -m g`` between the impacts, restitution 1/2 at them, as SciPy integrates it."""
    solver = kg.build(falling(2 - t / 2))
    found = solver.integrate((0.0, 1.0), [1.0], [0.0], rtol=1e-11, atol=1e-12, t_eval=[1.0])

    def rhs(time: float, y: np.ndarray) -> list[float]:
        return [y[1], -9.81 + 0.5 * y[1] / (2 - time / 2)]

    height = Crossing(lambda time, y: y[0], direction=-1.0)
    start, y, impacts = 0.0, [1.0, 0.0], []
    while True:
        run = solve_ivp(rhs, (start, 1.0), y, method="DOP853", rtol=1e-11, atol=1e-12, events=height)
        if run.status == 0:
            break
        start, y = run.t[-1], [0.0, -run.y[1, -1] / 2]
        impacts.append(start)
    times = [event.t for event in found.events if event.kind == "impact"]
    np.testing.assert_allclose(times, impacts, rtol=0.0, atol=FINE_INTEGRATION)
    np.testing.assert_allclose([found.q[-1, 0], found.u[-1, 0]], run.y[:, -1], rtol=0.0, atol=FINE_INTEGRATION)


def falling(mass: Any) -> kg.Model:
    """A ball above the floor, whose weight belongs to its present mass."""
    z, w = me.dynamicsymbols("z w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    return kg.Model(
        name="falling",
        frame=N,
        coordinates=[z],
        speeds=[w],
        kinematics=[z.diff(t) - w],
        bodies=[me.Particle("ball", O.locatenew("P", z * N.z), mass)],
        gravity=-9.81 * N.z,
        contacts=(kg.Unilateral(z, law=kg.Restitution(0.5), name="floor"),),
    )


def test_a_constant_mass_costs_nothing() -> None:
    """Without a rate ``v' = 3 / m`` is one division; with one ``v' = (3 - m' v) / m`` takes two operations more."""
    m, m_dot = me.dynamicsymbols("m mdot")
    held = kg.derive(sliding(m, inputs=[kg.Input(m, rate=0)])).udot
    changing = kg.derive(sliding(m, inputs=[kg.Input(m, rate=m_dot), kg.Input(m_dot)])).udot
    assert changing.operation_count == held.operation_count + 2
    (constant,) = kg.derive(sliding(sm.Symbol("m"))).bodies
    assert constant.mass_rate.is_zero


def test_an_input_that_is_a_mass_needs_its_rate() -> None:
    m = me.dynamicsymbols("m")
    with raises(kg.ModelError, "rate", "mass", "p", "kg.Input(m, rate"):
        sliding(m, inputs=[kg.Input(m)])


@pytest.mark.parametrize("mass", [lambda x, v: 1 + x**2, lambda x, v: 1 + v**2], ids=["position", "speed"])
def test_a_mass_that_depends_on_the_motion_is_refused(mass: Callable[[Any, Any], Any]) -> None:
    with raises(kg.ModelError, "mass", "p", "F*", "(m v)'"):
        sliding(mass(*me.dynamicsymbols("x v")))
