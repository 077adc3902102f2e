"""Reactions that contain contact forces: against loads of the same sizes, auxiliary speeds, and a body in the air."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from contact_models import ball
from messages import raises
from tolerances import SOLVE

import kanegen as kg
from kanegen.program.assemble import assemble
from kanegen.program.options import BuildOptions

t = me.dynamicsymbols._t
ROWS = ("tip", "tip slip", "bumper", "brake slip", "latch")
LAMBDA = np.array([3.1, -1.7, 2.3, 0.9, -4.2])
STATES = ((0.0, [0.3, -0.8], [0.5, -1.1]), (0.4, [-1.2, 0.4], [2.0, 0.7]))


class Leg:
    """Two links in a plane: the tip on a rough floor, a bumper between the links, a brake and a latch in the knee."""

    def __init__(self, held: bool = True) -> None:
        self.q = a, b = me.dynamicsymbols("a b")
        self.u = ua, ub = me.dynamicsymbols("ua ub")
        self.aside = me.dynamicsymbols("aside")
        self.N = N = me.ReferenceFrame("N")
        A, B = me.ReferenceFrame("A"), me.ReferenceFrame("B")
        A.orient_axis(N, N.z, a)
        B.orient_axis(N, N.z, b)
        A.set_ang_vel(N, ua * N.z)
        B.set_ang_vel(N, ub * N.z)
        self.hip = hip = me.Point("hip")
        hip.set_vel(N, 0 if held else self.aside * N.y)
        self.knee = hip.locatenew("knee", -A.y)
        self.tip = self.knee.locatenew("tip", -0.8 * B.y)
        centers = hip.locatenew("C1", -0.4 * A.y), self.knee.locatenew("C2", -0.3 * B.y)
        self.pads = hip.locatenew("pad 1", -0.7 * A.y + 0.1 * A.x), self.knee.locatenew("pad 2", -0.2 * B.y + 0.1 * B.x)
        self.bodies = tuple(
            me.RigidBody(name, center, frame, mass, (me.inertia(frame, 0, 0, 0.1), center))
            for name, center, frame, mass in (("thigh", centers[0], A, 2.0), ("shank", centers[1], B, 1.5))
        )
        self.A, self.B = A, B

    @property
    def span(self) -> Any:
        """From one pad to the other; only its expression in q matters."""
        return self.pads[0].pos_from(self.pads[1])

    @property
    def applied_at(self) -> tuple[tuple[tuple[Any, Any], ...], ...]:
        """Where the force of each row is applied."""
        along, axis, N = self.span.normalize(), self.N.z, self.N
        first, second = self.pads
        return (
            ((self.tip, N.y),),
            ((self.tip, N.x),),
            ((first, along), (second, -along)),
            ((self.B, axis), (self.A, -axis)),
            ((self.B, axis), (self.A, -axis)),
        )

    @property
    def contacts(self) -> dict[str, Any]:
        (a, b), (ua, ub) = self.q, self.u
        where = self.tip.pos_from(self.hip)
        turned = {q.diff(t): u for q, u in zip(self.q, self.u, strict=True)}
        slip = sm.sympify(where.dot(self.N.x)).diff(t).xreplace(turned)
        tip, tip_slip, bumper, brake, latch = self.applied_at
        return {
            "contacts": [
                kg.Unilateral(
                    where.dot(self.N.y) + 1.6, kg.Restitution(0.5), kg.Coulomb(0.4), slip, "tip", (*tip, *tip_slip)
                ),
                kg.Unilateral(self.span.magnitude() - 0.1, kg.KelvinVoigt(900, 3), name="bumper", applied_at=[bumper]),
                kg.Friction(ub - ua, kg.Coulomb(0.2), 5, "brake", [brake]),
                kg.Latch("latch", b - a, applied_at=[latch]),
            ],
        }

    def model(self, **changes: Any) -> kg.Model:
        arguments = {
            "name": "leg",
            "frame": self.N,
            "coordinates": self.q,
            "speeds": self.u,
            "kinematics": [q.diff(t) - u for q, u in zip(self.q, self.u, strict=True)],
            "bodies": self.bodies,
            "gravity": -9.81 * self.N.y,
        }
        return kg.Model(**{**arguments, **changes})

    @property
    def reactions(self) -> dict[str, kg.Reaction]:
        return {
            "hip": kg.Reaction(("thigh", "shank"), self.hip, self.N),
            "knee": kg.Reaction("shank", self.knee, self.B),
        }


@cache
def with_contacts() -> kg.Solver:
    leg = Leg()
    return kg.build(leg.model(**leg.contacts, reactions=leg.reactions), functions=["rhs", "reactions"])


@cache
def with_loads() -> kg.Solver:
    """The same forces as loads whose sizes are inputs."""
    leg = Leg()
    sizes = me.dynamicsymbols("s:5")
    loads = [
        (place, size * vector) for size, pairs in zip(sizes, leg.applied_at, strict=True) for place, vector in pairs
    ]
    model = leg.model(loads=loads, inputs=[kg.Input(size) for size in sizes], reactions=leg.reactions)
    return kg.build(model, functions=["rhs", "reactions"])


@pytest.mark.parametrize("state", STATES, ids=["0", "1"])
def test_contact_forces_enter_reactions_as_loads_do(state: tuple[float, list[float], list[float]]) -> None:
    touching, loaded = with_contacts(), with_loads()
    assert touching.description.contacts.rows == ROWS
    np.testing.assert_allclose(touching.rhs(*state, LAMBDA), loaded.rhs(*state, LAMBDA), rtol=SOLVE)
    for name in ("hip", "knee"):
        for forces in (np.zeros(5), *np.diag(LAMBDA), LAMBDA):
            found, expected = touching.reaction(name, *state, forces), loaded.reaction(name, *state, forces)
            np.testing.assert_allclose(found.force, expected.force, rtol=SOLVE, atol=1e2 * SOLVE)
            np.testing.assert_allclose(found.torque, expected.torque, rtol=SOLVE, atol=1e2 * SOLVE)


def test_auxiliary_speeds_bring_out_the_same_reaction() -> None:
    """The vertical force in the hip by an auxiliary speed (Kane and Levinson 1985, section 4.9)."""
    leg = Leg(held=False)
    solver = kg.build(leg.model(**leg.contacts, auxiliary_speeds=[leg.aside]), functions=["rhs", "outputs"])
    for state in STATES:
        found = solver.outputs(*state, LAMBDA)["aside"]
        expected = with_contacts().reaction("hip", *state, LAMBDA).force[1]
        np.testing.assert_allclose(found, expected, rtol=SOLVE)


def test_reactions_at_the_forces_of_a_motion() -> None:
    """Sliding on the floor: hip, floor and weight together change the momentum of both links."""
    solver = with_contacts()
    a, b = np.arccos(1.6 - 0.8 * 0.9), -np.arccos(0.9)
    state = (0.0, [a, b], [1.0, -np.sin(a) / (0.8 * np.sin(b))])
    found = solver.contacts(*state)
    forces = found.forces
    assert found["tip"].mode == "slip"
    np.testing.assert_allclose(solver.rhs(*state, forces)[1], found.udot, rtol=SOLVE)
    hip, floor = solver.reaction("hip", *state, forces).force, found["tip"].force
    outside = hip[:2] + floor[::-1] - [0.0, 3.5 * 9.81]
    np.testing.assert_allclose(outside, _momentum_rate(*state[1:], found.udot), rtol=SOLVE)


def _momentum_rate(q: Any, u: Any, udot: Any) -> Any:
    """Of both links, by hand: masses times accelerations of the mass centers."""
    thigh, shank = (
        acceleration * np.array([np.cos(x), np.sin(x)]) + rate**2 * np.array([-np.sin(x), np.cos(x)])
        for x, rate, acceleration in zip(q, u, udot, strict=True)
    )
    return 2.0 * 0.4 * thigh + 1.5 * (thigh + 0.3 * shank)


CONTRADICTIONS = [
    ("sign", lambda P, N: ((P, -N.z), (P, N.x)), ("'floor'", "(P, - N.z)", "-1", "w", "1")),
    ("order", lambda P, N: ((P, N.x), (P, N.z)), ("applied_at", "'floor'")),
    ("length", lambda P, N: ((P, N.z), (P, 2 * N.x)), ("'floor slip'", "2", "u", "1")),
]


@pytest.mark.parametrize(("what", "applied_at", "names"), CONTRADICTIONS, ids=[what for what, _, _ in CONTRADICTIONS])
def test_places_that_contradict_the_rows_are_refused(what: str, applied_at: Any, names: tuple[str, ...]) -> None:
    with raises(kg.DerivationError, *names):
        assemble(kg.derive(_touching_at(applied_at)), BuildOptions.of("reduced"))


def test_each_row_needs_a_place() -> None:
    names = ("applied_at", "1", "2", "(point, direction)", "floor", "floor slip")
    with raises(kg.ModelError, *names):
        _touching_at(lambda P, N: (P, N.z))


def _touching_at(applied_at: Any) -> kg.Model:
    model = ball()
    (floor,) = model.contacts
    changed = replace(floor, applied_at=applied_at(model.bodies[0].masscenter, model.frame))
    return ball(bodies=model.bodies, frame=model.frame, gravity=None, contacts=[changed])
