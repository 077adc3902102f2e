"""Hypothesis strategy for random constrained systems: trees of bodies, loads and constraints of every kind.

Each example is a :class:`RandomSystem`: a model with numbers instead of parameters where that keeps it small,
and one state away from t = 0. Everything is drawn from small tables, so that a failure shrinks to few bodies,
few terms and short numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from hypothesis import reject
from hypothesis import strategies as st

import kanegen as kg

TIME = me.dynamicsymbols._t
NUMBERS = st.sampled_from([sm.Rational(n, 4) for n in range(-7, 8) if n])
LENGTHS = st.sampled_from([sm.Rational(n, 5) for n in range(-6, 7)])
POSITIVE = st.sampled_from([sm.Rational(n, 4) for n in range(1, 9)])
VALUES = st.floats(-1.0, 1.0, width=32)
SPECIAL = st.sampled_from([0.0, np.pi / 2, -np.pi / 2, np.pi])
"""Coordinates at which sines and cosines vanish, or are as large as the rounding of pi."""


@dataclass(frozen=True)
class RandomSystem:
    model: kg.Model
    t: float
    q: list[float]
    u: list[float]
    p: list[float]
    r: list[float]


@st.composite
def vectors(draw: st.DrawFn, frame: Any, numbers: st.SearchStrategy[Any] = NUMBERS) -> Any:
    x, y, z = (draw(numbers) for _ in range(3))
    return x * frame.x + y * frame.y + z * frame.z


class Builder:
    """Grows a tree of bodies, one joint at a time; every joint takes one new coordinate."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.N = me.ReferenceFrame("N")
        origin = me.Point("O")
        origin.set_vel(self.N, 0)
        self.nodes: list[tuple[Any, Any]] = [(self.N, origin)]
        self.q: list[Any] = []
        self.bodies: list[Any] = []
        self.stiffness = sm.Symbol("k")
        self.input, self.rate, self.acceleration = me.dynamicsymbols("r r1 r2")

    def coordinate(self) -> Any:
        self.q.append(me.dynamicsymbols(f"q{len(self.q)}"))
        return self.q[-1]

    def grow(self) -> None:
        """Add a joint and a body at one of the nodes."""
        draw = self.draw
        frame, point = draw(st.sampled_from(self.nodes))
        k = len(self.bodies)
        joint = draw(st.sampled_from(["revolute", "prismatic", "universal"]))
        if joint == "prismatic":
            along = draw(st.sampled_from([frame.x, frame.z, frame.x + 2 * frame.y]))
            new_frame, offset = frame, self.coordinate() * along + draw(vectors(frame, LENGTHS))
        else:
            new_frame = frame
            for axis in "xy" if joint == "universal" else draw(st.sampled_from("xyz")):
                turned = me.ReferenceFrame(f"B{k}{axis}")
                turned.orient_axis(new_frame, getattr(new_frame, axis), self.coordinate())
                new_frame = turned
            offset = draw(vectors(new_frame, LENGTHS))
        new_point = point.locatenew(f"P{k}", offset)
        self.bodies.append(self._body(k, new_frame, new_point))
        self.nodes.append((new_frame, new_point))

    def _body(self, k: int, frame: Any, point: Any) -> Any:
        draw = self.draw
        mass = draw(POSITIVE)
        if frame == self.N or draw(st.booleans()):
            return me.Particle(f"particle{k}", point, mass)
        a, b, c = (draw(POSITIVE) for _ in range(3))
        # Principal moments of a real body satisfy the triangle inequalities; one product of inertia.
        inertia = me.inertia(frame, b + c, a + c, a + b, draw(st.sampled_from([0, a / 8])))
        about = point
        if draw(st.booleans()):
            about = point.locatenew(f"A{k}", mass / 4 * frame.x)
            inertia += me.inertia_of_point_mass(mass, about.pos_from(point), frame)
        return me.RigidBody(f"body{k}", point, frame, mass, (inertia, about))

    def kinematics(self) -> tuple[list[Any], list[Any]]:
        """u = q', or a mixture that depends on the configuration and on time."""
        u = [me.dynamicsymbols(f"u{k}") for k in range(len(self.q))]
        mixed = self.draw(st.booleans())
        rows = []
        for k, (q, speed) in enumerate(zip(self.q, u, strict=True)):
            row = speed - q.diff(TIME)
            if mixed and k:
                row += sm.cos(self.q[k - 1]) * self.q[k - 1].diff(TIME) / 2 - sm.sin(TIME) / 4
            rows.append(row)
        return u, rows

    def loads(self, u: list[Any]) -> list[Any]:
        draw = self.draw
        loads = [(self.nodes[1][1], self.input * self.N.x)]
        for frame, point in self.nodes[1:]:
            scale = draw(
                st.sampled_from([sm.Integer(1), -self.stiffness * self.q[0], -u[-1], sm.sin(3 * TIME), self.input])
            )
            loads.append((point, scale * draw(vectors(draw(st.sampled_from([self.N, frame]))))))
            if frame != self.N and draw(st.booleans()):
                loads.append((frame, scale * frame.z))
        return loads

    def constraints(self, u: list[Any]) -> dict[str, list[Any]]:
        """At most n_u - 1 rows, of every kind; they need not hold at the random state."""
        draw = self.draw
        n = len(u)
        first, last = self.q[0], self.q[-1]
        rows = {
            "holonomic_constraints": [
                sm.sin(first) + 2 * last - sm.Rational(1, 3) * TIME**2,
                first**2 + last + self.input * first,
            ],
            "nonholonomic_constraints": [
                u[-1] - sm.cos(first) * u[0] - sm.sin(TIME),
                u[0] ** 2 + 3 * u[-1] * u[0] + 4 * u[-1] - last,
                self.q[-1].diff(TIME) + self.input * u[0] - 1,
            ],
            "acceleration_constraints": [u[-1].diff(TIME) + (2 + first) * u[0].diff(TIME) + u[0] * u[-1] - self.input],
        }
        chosen: dict[str, list[Any]] = {kind: [] for kind in rows}
        for kind, row in draw(st.permutations([(kind, row) for kind, some in rows.items() for row in some])):
            if sum(map(len, chosen.values())) < n - 1 and draw(st.booleans()):
                chosen[kind].append(row)
        return chosen


@st.composite
def random_systems(draw: st.DrawFn) -> RandomSystem:
    """A random model (1 to 3 joints with up to 6 coordinates) and a state."""
    builder = Builder(draw)
    for _ in range(draw(st.integers(1, 3))):
        builder.grow()
    u, kinematics = builder.kinematics()
    item = kg.Input(builder.input, rate=builder.rate, acceleration=builder.acceleration)
    description = {
        "name": "random",
        "frame": builder.N,
        "coordinates": builder.q,
        "speeds": u,
        "kinematics": kinematics,
        "bodies": builder.bodies,
        "loads": builder.loads(u),
        "gravity": draw(st.sampled_from([None, -10 * builder.N.z, builder.N.x - 9 * builder.N.y])),
        "potential_energy": builder.stiffness * builder.q[0] ** 2 / 2,
        "inputs": (item,),
        **builder.constraints(u),
    }
    try:
        model = kg.Model(**description)
    except kg.ModelWarning:
        reject()  # no state satisfies its constraints
    p = [draw(st.floats(0.5, 2.0, width=32)) for _ in model.parameters]
    q, speeds = ([draw(VALUES) for _ in range(len(u))] for _ in range(2))
    r = [draw(VALUES) for _ in model.inputs]
    return RandomSystem(model, draw(st.floats(0.25, 2.0, width=32)), q, speeds, p, r)


@st.composite
def random_special_systems(draw: st.DrawFn) -> RandomSystem:
    """The same models at zeros, right and straight angles and equal coordinates, with some or all speeds zero."""
    system = draw(random_systems())
    common = draw(st.one_of(SPECIAL, VALUES))
    q = [draw(st.one_of(SPECIAL, st.just(common), st.just(own))) for own in system.q]
    at_rest = draw(st.booleans())
    u = [0.0 if at_rest or draw(st.booleans()) else own for own in system.u]
    return replace(system, q=q, u=u)
