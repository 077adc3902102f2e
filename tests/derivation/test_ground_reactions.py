"""Loads on the ground are no loads of a set of bodies: springs and motors anchored in the inertial frame."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from tolerances import SOLVE

import kanegen as kg
from kanegen.derivation import Equations
from kanegen.graph import evaluate, reachable

t = me.dynamicsymbols._t
g = sm.Rational(981, 100)
STATE = (0.3, np.array([0.4, -0.7]), np.array([1.3, -0.8]))
PULL, DRIVE, HOLD = 2.5, 1.7, 0.6


class Arm:
    """Two bodies on skew pins: A turns about N.z at O, B about A.x at the pin. No load of it is on a body alone.

    A spring between a point of the frame and the tip of B, another between the frame and a point of A; motors between
    the inertial frame and A, and between a frame bolted to it and B.
    """

    def __init__(self) -> None:
        self.q, self.u = me.dynamicsymbols("q1:3"), me.dynamicsymbols("u1:3")
        self.N, self.A, self.B, self.bolted = (me.ReferenceFrame(name) for name in ("N", "A", "B", "bolted"))
        N, A, B = self.N, self.A, self.B
        A.orient_axis(N, N.z, self.q[0])
        B.orient_axis(A, A.x, self.q[1])
        self.bolted.orient_axis(N, N.x, sm.Rational(1, 3))
        self.O = me.Point("O")
        self.O.set_vel(N, 0)
        self.anchor = self.O.locatenew("anchor", 2 * N.x - N.y + N.z / 2)
        self.at_a = self.O.locatenew("at_a", A.x / 5 + A.y / 3 + A.z / 9)
        self.Ao = self.O.locatenew("Ao", 3 * A.x / 10 + A.y / 10)
        self.pin = self.O.locatenew("pin", 3 * A.x / 5 + A.z / 5)
        self.Bo = self.pin.locatenew("Bo", B.y / 4 + B.x / 10)
        self.tip = self.pin.locatenew("tip", B.y / 2)
        self.central = {
            "A": me.inertia(A, sm.Rational(1, 10), sm.Rational(1, 5), sm.Rational(1, 4), sm.Rational(1, 50)),
            "B": me.inertia(B, sm.Rational(1, 20), sm.Rational(1, 30), sm.Rational(1, 15), 0, sm.Rational(1, 99)),
        }
        self.bodies = (
            me.RigidBody("A", self.Ao, A, 2, (self.central["A"], self.Ao)),
            me.RigidBody("B", self.Bo, B, 1, (self.central["B"], self.Bo)),
        )

    @property
    def loads(self) -> list[Any]:
        long = me.LinearPathway(self.anchor, self.tip)
        short = me.LinearPathway(self.O, self.at_a)
        actuators = (
            me.ForceActuator(PULL, long),
            me.LinearSpring(3, short, sm.Rational(1, 10)),
            me.TorqueActuator(DRIVE, self.N.z, self.A, self.N),
            me.TorqueActuator(HOLD, self.N.y, self.B, self.bolted),
        )
        return [load for actuator in actuators for load in actuator.to_loads()]

    def model(self, **options: Any) -> kg.Model:
        settings = {
            "name": "arm",
            "frame": self.N,
            "coordinates": self.q,
            "speeds": self.u,
            "kinematics": [x.diff(t) - v for x, v in zip(self.q, self.u, strict=True)],
            "bodies": self.bodies,
            "loads": self.loads,
            "gravity": -g * self.N.z,
            "reactions": {
                "ground": kg.Reaction(("A", "B"), self.O, self.N),
                "pin": kg.Reaction("B", self.pin, self.A),
            },
        }
        return kg.Model(**{**settings, **options})


@cache
def arm() -> tuple[Arm, kg.Solver]:
    parts = Arm()
    return parts, kg.build(parts.model())


def newton_euler(parts: Arm, names: tuple[str, ...], about: Any, loads: list[Any], udot: np.ndarray) -> np.ndarray:
    """Force and torque about a point, inertial components, by differentiating positions and direction cosines.

    ``loads`` are (point or None, force or torque) as written here by hand.
    """
    N = parts.N
    force, torque = sm.zeros(3, 1), sm.zeros(3, 1)
    origin = about.pos_from(parts.O).to_matrix(N)
    for body in parts.bodies:
        if body.name in names:
            r = body.masscenter.pos_from(parts.O).to_matrix(N)
            R = body.frame.dcm(N).T
            tensor = R * parts.central[body.name].to_matrix(body.frame) * R.T
            spin = R.diff(t) * R.T
            omega = sm.Matrix([spin[2, 1], spin[0, 2], spin[1, 0]])
            change = body.mass * (r.diff(t, 2) + sm.Matrix([0, 0, g]))
            force += change
            torque += (r - origin).cross(change) + (tensor * omega).diff(t)
    for point, vector in loads:
        given = vector.to_matrix(N)
        if point is None:
            torque -= given
        else:
            force -= given
            torque -= (point.pos_from(parts.O).to_matrix(N) - origin).cross(given)
    _, q, u = STATE
    motions = zip(parts.q, q, u, udot, strict=True)
    numbers = {x.diff(t, order): value for x, *values in motions for order, value in enumerate(values)}
    return np.array(sm.Matrix([*force, *torque]).xreplace(numbers).xreplace(numbers).evalf(), dtype=float).ravel()


def loads_on(parts: Arm, names: tuple[str, ...]) -> list[Any]:
    """What springs and motors do to the bodies, in words of mechanics: the spring pulls along its line."""
    N = parts.N
    line = parts.tip.pos_from(parts.anchor)
    stretched = parts.at_a.pos_from(parts.O)
    along = stretched.express(N).to_matrix(N)
    length = sm.sqrt(along.dot(along))
    reach = line.to_matrix(N)
    on_b = [(parts.tip, PULL * line / sm.sqrt(reach.dot(reach))), (None, HOLD * N.y)]
    on_a = [(parts.at_a, -3 * (length - sm.Rational(1, 10)) * stretched / length), (None, DRIVE * N.z)]
    return [*(on_a if "A" in names else []), *(on_b if "B" in names else [])]


def in_frame(values: np.ndarray, frame: Any, parts: Arm) -> np.ndarray:
    R = np.array(frame.dcm(parts.N).xreplace(dict(zip(parts.q, STATE[1], strict=True))).evalf(), dtype=float)
    return np.concatenate([R @ values[:3], R @ values[3:]])


@pytest.mark.parametrize(("name", "members"), [("ground", ("A", "B")), ("pin", ("B",))])
def test_reactions_are_those_of_newton_and_euler(name: str, members: tuple[str, ...]) -> None:
    parts, solver = arm()
    _, udot = solver.rhs(*STATE)
    at, frame = {"ground": (parts.O, parts.N), "pin": (parts.pin, parts.A)}[name]
    expected = in_frame(newton_euler(parts, members, at, loads_on(parts, members), udot), frame, parts)
    found = np.concatenate(solver.reaction(name, *STATE))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=SOLVE * np.abs(expected).max())


def test_pins_without_friction_have_no_torque_about_their_axes() -> None:
    _, solver = arm()
    for k in range(3):
        time, q, u = STATE
        ground, pin = (solver.reaction(name, time, q + 0.5 * k, u - 0.3 * k) for name in ("ground", "pin"))
        assert abs(ground.torque[2]) < SOLVE
        assert abs(pin.torque[0]) < SOLVE


# -- which places are the ground ---------------------------------------------------------------------------------


def force_of(loads: list[Any], reaction: Any = None, **options: Any) -> list[Any]:
    """The nodes of the reaction at O of both bodies, under other loads."""
    parts = arm()[0]
    reaction = reaction or kg.Reaction(("A", "B"), parts.O, parts.N)
    model = parts.model(loads=loads, reactions={"joint": reaction}, **options)
    equations = kg.derive(model)
    return equations.system.samples(equations.reactions["joint"].nodes)


def test_loads_on_points_and_frames_at_rest_leave_the_set_alone() -> None:
    parts = arm()[0]
    far = parts.anchor.locatenew("far", 3 * parts.bolted.y)
    places = [(parts.O, 5 * parts.N.x), (far, 7 * parts.N.y), (parts.N, parts.N.x), (parts.bolted, parts.A.z)]
    assert force_of(places) == force_of([])


def test_a_point_at_rest_that_is_placed_from_a_body_belongs_to_it() -> None:
    """The pin of a body that is located from its mass center, and the mass center of a body that turns about it."""
    parts = arm()[0]
    hub = parts.Ao.locatenew("hub", -3 * parts.A.x / 10 - parts.A.y / 10)
    pushed = np.array(force_of([(hub, 5 * parts.N.x)])) - np.array(force_of([]))
    np.testing.assert_allclose(pushed[0], -5.0)
    np.testing.assert_allclose(pushed[1:], 0.0, atol=SOLVE)


def test_a_load_that_nothing_carries_must_be_placed() -> None:
    """A point that slides along body A, and a frame between the bodies: the set is everything, or one body."""
    parts = arm()[0]
    slider = parts.O.locatenew("slider", parts.q[1] * parts.A.x)
    between = me.ReferenceFrame("between")
    between.orient_axis(parts.A, parts.A.x, parts.q[1] / 2)
    for place, vector in ((slider, parts.N.x), (between, parts.N.y)):
        for names in (("A", "B"), ("B",)):
            with raises(kg.ModelError, place, "load", "Reaction(loads="):
                force_of([(place, vector)], kg.Reaction(names, parts.O, parts.N))
        free, named = (
            np.array(force_of([(place, vector)], kg.Reaction(("A", "B"), parts.O, parts.N, loads=loads)))
            for loads in ((), (place,))
        )
        assert np.abs(free - named).max() > 0.1


def test_the_inertial_frame_as_the_frame_of_a_body_is_ambiguous() -> None:
    """A carriage that does not turn and is given the inertial frame: does the motor sit on it, or on the ground?"""
    x, v, q, u = me.dynamicsymbols("x v q u")
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    O.set_vel(N, 0)
    A.orient_axis(N, N.z, q)
    center = O.locatenew("center", x * N.x)
    wheel = me.RigidBody("wheel", center, A, 1, (me.inertia(A, 1, 1, 1), center))
    carriage = me.RigidBody("carriage", center, N, 2, (me.inertia(N, 1, 1, 1), center))

    def reaction(members: Any, **loads: Any) -> Any:
        model = kg.Model(
            name="carriage",
            frame=N,
            coordinates=[x, q],
            speeds=[v, u],
            kinematics=[x.diff(t) - v, q.diff(t) - u],
            bodies=[wheel, carriage],
            loads=me.TorqueActuator(3, N.z, A, N).to_loads(),
            reactions={"rail": kg.Reaction(members, center, N, **loads)},
        )
        equations = kg.derive(model)
        state = {"t": [0.0], "q": [0.1, 0.2], "u": [0.3, 0.4], "udot": [0.0, 3.0], "p": [], "r": []}
        return evaluate(equations.reactions["rail"].nodes, state)

    with raises(kg.ModelError, "load", "N", "carriage", "ground"):
        reaction(("wheel", "carriage"))
    assert reaction("wheel") == [0.0] * 6
    assert reaction(("wheel", "carriage"), loads=(A, N))[5] == 3.0
    assert reaction(("wheel", "carriage"), loads=(A,))[5] == 0.0


# -- bodies at rest ------------------------------------------------------------------------------------------------


def test_a_body_at_rest_is_the_ground() -> None:
    """A set that it belongs to has the loads on the ground among its own; what they pull on is in the set as well."""
    parts = arm()[0]
    ground = me.RigidBody("G", parts.O.locatenew("Go", parts.N.x), parts.N, 2, (me.inertia(parts.N, 1, 1, 1), parts.O))
    ground.inertia = (me.inertia(parts.N, 1, 1, 1), ground.masscenter)
    bodies = (ground, *parts.bodies)
    assert force_of(parts.loads, bodies=bodies) == force_of(parts.loads)
    with_it = np.array(force_of(parts.loads, kg.Reaction(("G", "A", "B"), parts.O, parts.N), bodies=bodies))
    without = np.array(force_of([], kg.Reaction(("G", "A", "B"), parts.O, parts.N), bodies=bodies))
    np.testing.assert_allclose(with_it, without, rtol=0.0, atol=SOLVE)  # springs and motors are within the set


def quantities(e: Equations) -> list[Any]:
    return [e.Q, e.P, e.F, e.L, e.N, e.momentum, e.kinetic_energy, *e.reactions.values()]


def test_a_body_at_rest_does_nothing() -> None:
    """The ground body of SymPy's System: no equation contains its mass, its inertia or its place."""
    parts = arm()[0]
    mass, moments = sm.Symbol("G_mass"), sm.symbols("G_ixx G_iyy G_izz")
    ground = me.RigidBody("G", parts.anchor, parts.bolted, mass, (me.inertia(parts.bolted, *moments), parts.anchor))
    e, alone = kg.derive(parts.model(bodies=(ground, *parts.bodies))), kg.derive(parts.model())
    numbers, own = ([x for quantity in quantities(equations) for x in quantity.nodes] for equations in (e, alone))
    assert not {node.index for node in reachable(numbers)} & {node.index for node in e.system.p}
    with_ground, without = (
        [values[0] for values in equations.system.samples(nodes)] for equations, nodes in ((e, numbers), (alone, own))
    )
    np.testing.assert_allclose(with_ground, without, rtol=SOLVE, atol=SOLVE)
