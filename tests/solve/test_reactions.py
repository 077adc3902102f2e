"""Reactions of sets of bodies against hand balances, multipliers, momentum rates and auxiliary speeds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from systems import example, initial, model_of, states
from tolerances import MOMENTUM_RATE, SOLVE

import kanegen as kg
from kanegen.derivation import fingerprint, lower_model
from kanegen.model.geometry import breadth_first

t = me.dynamicsymbols._t
g = 9.81


def body(model: kg.Model, name: str) -> Any:
    return next(item for item in model.bodies if item.name == name)


def point(model: kg.Model, name: str) -> Any:
    known = breadth_first(model.bodies[0].masscenter, lambda item: item._pos_dict)
    return next(item for item in known if item.name == name)


def assert_close(actual: Any, expected: Any, tolerance: float = SOLVE) -> None:
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * scale)


# -- against the balances of the examples ------------------------------------------------------------------


@cache
def slider_crank() -> kg.Solver:
    """The pins of the mechanism; the multipliers are the force of the slider on the rod, (y, x) components."""
    model = example("slider_crank").model()
    N, rod = model.frame, body(model, "rod")
    pin = point(model, "crank_pin")
    end = pin.locatenew("rod_end", -sm.Symbol("l2") * rod.frame.y)
    from_slider = {0: (end, N.y), 1: (end, N.x)}
    return kg.build(
        model.with_reactions(
            {
                "ground_pin": kg.Reaction(("crank", rod), point(model, "O"), N, multipliers=from_slider),
                "crank_pin": kg.Reaction("rod", pin, N, multipliers=from_slider),
                "slider": kg.Reaction("slider", body(model, "slider").masscenter, N),
                "all": kg.Reaction(("crank", "rod", "slider"), point(model, "O"), N),
            }
        )
    )


def on_the_loop() -> list[tuple[float, np.ndarray, np.ndarray]]:
    starts = [example("slider_crank")._start(theta, rate) for theta, rate in ((0.3, 0.5), (1.4, -3.0), (4.0, 6.0))]
    return [(start["t"], np.array(start["q"]), np.array(start["u"])) for start in starts]


@pytest.mark.parametrize("state", on_the_loop(), ids=["0.3", "1.4", "4.0"])
def test_pins_of_the_slider_crank(state: tuple[float, np.ndarray, np.ndarray]) -> None:
    """Newton's and Euler's equations of the separate bodies, written by hand in the example."""
    solver = slider_crank()
    outputs = solver.outputs(*state)
    for name in ("ground_pin", "crank_pin"):
        force, torque = solver.reaction(name, *state)
        assert_close(force, [outputs[f"{name}_x"], outputs[f"{name}_y"], 0.0])
        assert_close(torque, np.zeros(3))  # a pin transmits none; tau on the crank is a load, not a reaction


def test_a_set_cut_twice_gives_the_sum() -> None:
    """The rod's pin and the guide both act on the slider; ground pin and guide on everything."""
    solver, state = slider_crank(), on_the_loop()[1]
    outputs = solver.outputs(*state)
    expected = [-outputs["slider_pin_x"], outputs["guide"] - outputs["slider_pin_y"], 0.0]
    assert_close(solver.reaction("slider", *state).force, expected)
    assert_close(solver.reactions(*state)["slider"].force, expected)
    force, torque = solver.reaction("all", *state)
    assert_close(force, [outputs["ground_pin_x"], outputs["ground_pin_y"] + outputs["guide"], 0.0])
    assert_close(torque, [0.0, 0.0, state[1][2] * outputs["guide"]])


@pytest.mark.parametrize("constraints", ["linear", "nonlinear"])
def test_thread_of_the_appell_hamel_mechanism(constraints: str) -> None:
    """The thread's tension is the multiplier of its constraint, on the manifold and off it, stabilized or not."""
    model = model_of("appell_hamel", constraints=constraints)
    weight = body(model, "weight")
    solver = kg.build(model.with_reactions({"thread": kg.Reaction("weight", weight.masscenter, model.frame)}))
    for solver_ in (solver, solver.with_stabilization(kg.Baumgarte(alpha=3.0, beta=5.0))):
        for state in states("appell_hamel", constraints=constraints):
            force, torque = solver_.reaction("thread", state.t, state.q, state.u)
            udot = solver_.rhs(state.t, state.q, state.u)[1]
            assert_close(force, udot[2:] + np.array([0.0, 0.0, g]))
            assert_close(force[2], solver_.multipliers(state.t, state.q, state.u)[0])
            assert_close(torque, np.zeros(3))


def test_reaction_of_a_constraint_in_components_of_the_speeds() -> None:
    """Where the speeds are the components of one velocity, Fc is the reaction (Bajodah 2003, chapter 4)."""
    model = model_of("constrained_particle")
    P = model.bodies[0].masscenter
    ((_, triad),) = P.vel(model.frame).args
    solver = kg.build(model.with_reactions({"wire": kg.Reaction(model.bodies, P, triad)}))
    for state in states("constrained_particle"):
        force = solver.reaction("wire", state.t, state.q, state.u).force
        assert_close(force, solver.constraint_force(state.t, state.q, state.u))
        assert_close(force, state.reference.constraint_force)


# -- against the rate of momentum ----------------------------------------------------------------------------


def momenta(model: kg.Model, bodies: list[Any], about: Any) -> Any:
    """Linear momentum and angular momentum about a point, (6,), by SymPy alone, as a function of (q, u)."""
    N = model.frame
    rates = dict(zip((q.diff(t) for q in model.coordinates), model.speeds, strict=True))
    linear, angular = sm.zeros(3, 1), sm.zeros(3, 1)
    for item in bodies:
        arm = item.masscenter.pos_from(point(model, "O"))
        momentum = item.mass * arm.dt(N)
        spin = item.central_inertia.dot(item.frame.ang_vel_in(N))
        linear += momentum.to_matrix(N)
        angular += (spin + item.masscenter.pos_from(about).cross(momentum)).to_matrix(N)
    values = [*linear, *angular]
    expressions = [x.xreplace(rates).xreplace(dict(model.parameters)) for x in values]
    return sm.lambdify([list(model.coordinates), list(model.speeds)], expressions, cse=True)


@pytest.mark.parametrize(("names", "joint"), [(("link_1", "link_2"), "O"), (("link_2",), "joint_1")])
def test_joints_of_the_spatial_chain(names: tuple[str, ...], joint: str) -> None:
    """Force and torque of a universal joint against the rates of linear and angular momentum and the weights."""
    model = example("spatial_chain").model(2)
    N, O, at = model.frame, point(model, "O"), point(model, joint)
    members = [body(model, name) for name in names]
    solver = kg.build(model.with_reactions({joint: kg.Reaction(names, at, N)}))
    momentum = momenta(model, members, at)
    q, u = np.array(initial("spatial_chain", n=2)["q"]), np.array([1.3, -0.7, 0.4, 2.1])
    qdot, udot = solver.rhs(0.0, q, u)
    h = 1e-5
    there, back = (np.array(momentum(q + s * qdot, u + s * udot)) for s in (h, -h))
    rate = (there - back) / (2 * h)

    def position(vector: Any) -> np.ndarray:
        matrix = vector.to_matrix(N).xreplace(dict(model.parameters))
        return np.array(matrix.xreplace(dict(zip(model.coordinates, q, strict=True))), dtype=float).ravel()

    # The joint's point moves: d/dt of the angular momentum about it lacks v_point x p.
    velocity = at.pos_from(O).dt(N).xreplace(dict(zip((x.diff(t) for x in model.coordinates), u, strict=True)))
    carried = np.cross(position(velocity), np.array(momentum(q, u))[:3])
    weights = [np.array([0.0, 0.0, -g]) for _ in members]
    arms = [position(item.masscenter.pos_from(at)) for item in members]
    moment = sum(np.cross(arm, weight) for arm, weight in zip(arms, weights, strict=True))
    force, torque = solver.reaction(joint, 0.0, q, u)
    assert_close(force, rate[:3] - sum(weights), MOMENTUM_RATE)
    assert_close(torque, rate[3:] + carried - moment, MOMENTUM_RATE)
    cross = body(model, names[0]).frame
    assert abs(torque @ position(cross.y)) < SOLVE  # the joint is free about its second axis


# -- three routes to one force -------------------------------------------------------------------------------


def pendulum(kind: str) -> kg.Model:
    """A bob on a massless arm: the pull of the arm as reaction and as load of an auxiliary speed."""
    m, length = sm.symbols("m l")
    N = me.ReferenceFrame("N")
    O, P = me.Point("O"), me.Point("P")
    O.set_vel(N, 0)
    common: dict[str, Any] = {"name": f"pendulum_{kind}", "frame": N, "loads": [(P, -m * g * N.y)]}
    if kind == "polar":
        q, u, ua = me.dynamicsymbols("q u ua")
        arm = me.ReferenceFrame("arm")
        arm.orient_axis(N, N.z, q)
        P.set_pos(O, length * arm.x)
        P.set_vel(N, length * u * arm.y + ua * arm.x)
        specific = {
            "coordinates": [q], "speeds": [u], "kinematics": [q.diff(t) - u], "auxiliary_speeds": [ua],
            "reactions": {"arm": kg.Reaction("bob", P, arm), "hinge": kg.Reaction("bob", O, arm)},
        }  # fmt: skip
    else:
        x, y, vx, vy = me.dynamicsymbols("x y vx vy")
        P.set_pos(O, x * N.x + y * N.y)
        specific = {
            "coordinates": [x, y], "speeds": [vx, vy], "kinematics": [x.diff(t) - vx, y.diff(t) - vy],
            "holonomic_constraints": [x**2 + y**2 - length**2], "reactions": {"arm": kg.Reaction("bob", P, N)},
        }  # fmt: skip
    return kg.Model(**common, **specific, bodies=[me.Particle("bob", P, m)], parameters={m: 2.0, length: 0.5})


def test_reaction_auxiliary_speed_and_constraint_force_agree() -> None:
    """Newton's law, Kane and Levinson's auxiliary speed, and the generalized constraint force of the thesis."""
    polar, cartesian = kg.build(pendulum("polar")), kg.build(pendulum("cartesian"))
    for angle, rate in ((0.3, 0.0), (-1.2, 4.0), (2.5, -7.0)):
        force, torque = polar.reaction("arm", 0.0, [angle], [rate])
        assert_close(polar.output("ua", 0.0, [angle], [rate]), force[0])
        assert_close(force, [2.0 * (g * np.sin(angle) - 0.5 * rate**2), 0.0, 0.0])
        assert_close(torque, np.zeros(3))
        assert_close(np.hstack(polar.reaction("hinge", 0.0, [angle], [rate])), np.hstack([force, torque]))
        radial, tangential = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
        state = (0.0, 0.5 * radial, 0.5 * rate * tangential)
        assert_close(cartesian.constraint_force(*state), force[0] * radial)
        assert_close(cartesian.reaction("arm", *state).force[:2], force[0] * radial)


# -- which loads act on the set ------------------------------------------------------------------------------


def two_links(**reaction: Any) -> kg.Model:
    """A double pendulum of two rods with a force on the pin between them and a torque on a frame fixed in rod 1."""
    q1, q2, u1, u2 = me.dynamicsymbols("q1 q2 u1 u2")
    N, A, B = (me.ReferenceFrame(name) for name in "NAB")
    A.orient_axis(N, N.z, q1)
    B.orient_axis(N, N.z, q2)
    fixed = me.ReferenceFrame("fixed")
    fixed.orient_axis(A, A.z, 0.4)
    O = me.Point("O")
    O.set_vel(N, 0)
    Ao, pin = O.locatenew("Ao", 0.5 * A.x), O.locatenew("pin", A.x)
    Bo = pin.locatenew("Bo", 0.5 * B.x)
    rods = [
        me.RigidBody(name, center, frame, 1.0, (me.inertia(frame, 0, 0, sm.Rational(1, 12)), center))
        for name, center, frame in (("a", Ao, A), ("b", Bo, B))
    ]
    arguments = {"bodies": "b", "point": pin, "frame": N} | reaction
    if arguments.get("loads") == "pin":
        arguments["loads"] = (pin,)
    return kg.Model(
        name="two_links",
        frame=N,
        coordinates=[q1, q2],
        speeds=[u1, u2],
        kinematics=[q1.diff(t) - u1, q2.diff(t) - u2],
        bodies=rods,
        loads=[(pin, 3.0 * N.x), (fixed, 2.0 * N.z)],
        reactions={"pin": kg.Reaction(**arguments)},
    )


def test_a_load_on_a_shared_point_must_be_placed() -> None:
    with raises(kg.ModelError, "load", "pin", "a", "b", "Reaction(loads=(...))"):
        _ = kg.derive(two_links()).reactions
    state = (0.0, [0.3, 1.1], [0.5, -2.0])
    without = kg.build(two_links(loads=())).reaction("pin", *state)
    counted = kg.build(two_links(loads="pin")).reaction("pin", *state)
    assert_close(counted.force, without.force - [3.0, 0.0, 0.0])
    assert_close(counted.torque, without.torque)


def test_the_digest_tells_reactions_apart() -> None:
    models = (two_links(loads=()), two_links(loads="pin"), two_links(bodies=("a", "b")))
    assert len({fingerprint(lower_model(model)) for model in models}) == 3


def test_reactions_do_not_depend_on_the_speeds() -> None:
    """The same pins after a change of speeds, with orthogonal ones."""
    model = example("slider_crank").model()
    pins = {"slider": kg.Reaction("slider", body(model, "slider").masscenter, model.frame)}
    changed = kg.build(model.with_reactions(pins).with_orthogonal_speeds(), functions=["reactions", "new_speeds"])
    for t_, q, u in on_the_loop():
        force, torque = changed.reaction("slider", t_, q, changed.new_speeds(t_, q, u))
        assert_close(np.hstack([force, torque]), np.hstack(slider_crank().reaction("slider", t_, q, u)))


def test_massless_bodies_carry_loads_only() -> None:
    """A massless rod between its pin and a force: the pin's reaction is minus the force, with its moment."""
    q, u = me.dynamicsymbols("q u")
    k = sm.Symbol("k")
    N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    A.orient_axis(N, N.z, q)
    O = me.Point("O")
    O.set_vel(N, 0)
    tip, bob = O.locatenew("tip", k * A.x), O.locatenew("bob", -A.x)
    rod = me.RigidBody("rod", O.locatenew("Ro", k / 2 * A.x), A, 0, (me.inertia(A, 0, 0, 0), O))
    model = kg.Model(
        name="massless_rod",
        frame=N,
        coordinates=[q],
        speeds=[u],
        kinematics=[q.diff(t) - u],
        bodies=[rod, me.Particle("bob", bob, 1.0)],
        loads=[(tip, 4.0 * N.y)],
        parameters={k: 2.0},
        reactions={"hub": kg.Reaction("rod", O, N)},
    )
    force, torque = kg.build(model).reaction("hub", 0.0, [0.3], [2.0])
    assert_close(force, [0.0, -4.0, 0.0])
    assert_close(torque, [0.0, 0.0, -4.0 * 2.0 * np.cos(0.3)])


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"bodies": "rot"}, ("'rot'", "a", "b")),
        ({"point": me.Point("X")}, ("X", "Ao", "Bo", "O", "pin")),
        ({"loads": (me.Point("X"),)}, ("X", "pin", "fixed")),
        ({"multipliers": {0: (me.Point("X"), me.ReferenceFrame("Y").x)}}, ("0", "J")),
        ({"frame": me.ReferenceFrame("loose")}, ("loose", "reactions['pin']")),
        ({"frame": "N"}, ("frame", "'N'", "ReferenceFrame")),
        ({"bodies": ()}, ("bodies",)),
        ({"multipliers": {0: 1.0}}, ("multipliers[0]", "1.0", "J")),
    ],
)
def test_what_a_reaction_cannot_be(arguments: dict[str, Any], names: tuple[str, ...]) -> None:
    with raises(kg.ModelError, *names):
        two_links(**arguments)


def test_unknown_reactions_name_the_known() -> None:
    with raises(kg.SolveError, "'ground'", "'ground_pin'"):
        slider_crank().reaction("ground", *on_the_loop()[0])
