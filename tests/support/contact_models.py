"""Models with contacts for the tests: one with every kind of row, its companions without, and smaller ones."""

from __future__ import annotations

from typing import Any

import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

TIME = me.dynamicsymbols._t


class Sledge:
    """A body in the plane in speeds of its own axes with a pendulous particle; one rheonomic bilateral constraint.

    Its contacts: a gap with an input and two directions of slip, compliant stops, a ratchet nonlinear in the speeds,
    friction under a given load and at a constraint, latches at both levels.
    """

    def __init__(self) -> None:
        self.q = x, y, theta, phi = me.dynamicsymbols("x y theta phi")
        self.u = forward, sideways, turn, swing = me.dynamicsymbols("forward sideways turn swing")
        self.height = me.dynamicsymbols("height")
        self.N, B, C = (me.ReferenceFrame(name) for name in "NBC")
        B.orient_axis(self.N, self.N.z, theta)
        C.orient_axis(B, B.z, phi)
        C.set_ang_vel(B, swing * B.z)
        B.set_ang_vel(self.N, turn * self.N.z)
        self.O = me.Point("O")
        self.O.set_vel(self.N, 0)
        self.center = self.O.locatenew("center", x * self.N.x + y * self.N.y)
        self.center.set_vel(self.N, forward * B.x + sideways * B.y)
        self.bob = self.center.locatenew("bob", sm.Rational(1, 5) * B.x - sm.Symbol("l") * C.y)
        self.B = B
        inertia = (me.inertia(B, 0, 0, sm.Symbol("I")), self.center)
        self.bodies = (
            me.RigidBody("sledge", self.center, B, sm.Symbol("m"), inertia),
            me.Particle("bob", self.bob, sm.Symbol("m_b")),
        )

    @property
    def gaps(self) -> dict[str, Any]:
        """Each normal row: expressions of positions, then of speeds."""
        x, y, theta, phi = self.q
        forward, _, turn, swing = self.u
        return {
            "floor": y + sm.cos(theta) / 3 - self.height,
            "stop": x - sm.Rational(1, 2) * sm.sin(phi),
            "spring": theta - phi * x + TIME / 10,
            "pad": y * sm.sin(x) - phi / 2,
            "guide": x * theta - y**2 / 3,
            "hook": x**2 + phi**2 - 1,
            "ratchet": turn + swing**2 / 5 + forward * turn / 3 - sm.Symbol("omega"),
            "clutch": turn - swing * sm.cos(x) + TIME,
        }

    @property
    def slips(self) -> dict[str, tuple[Any, ...]]:
        """Slip velocities, affine in the speeds."""
        x, y, theta, _ = self.q
        forward, sideways, turn, swing = self.u
        return {
            "floor": (forward * sm.cos(theta) - sideways * sm.sin(theta) + TIME, sideways + turn / 4),
            "guide": (swing + y * turn,),
            "brake": (x.diff(TIME) + turn * sm.sin(theta),),
        }

    def model(self, **changes: Any) -> kg.Model:
        """The model; ``changes`` replace its arguments."""
        return kg.Model(**{**self.description, **self.contacts, **changes})

    @property
    def description(self) -> dict[str, Any]:
        """The arguments without contacts."""
        x, y, theta, phi = self.q
        forward, sideways, turn, swing = self.u
        return {
            "name": "sledge",
            "frame": self.N,
            "coordinates": self.q,
            "speeds": self.u,
            "kinematics": (
                x.diff(TIME) - forward * sm.cos(theta) + sideways * sm.sin(theta),
                y.diff(TIME) - forward * sm.sin(theta) - sideways * sm.cos(theta),
                theta.diff(TIME) - turn,
                phi.diff(TIME) - swing,
            ),
            "bodies": self.bodies,
            "loads": [(self.bob, -2 * self.bob.vel(self.N))],
            "gravity": -sm.Symbol("g") * self.N.y,
            "holonomic_constraints": [x - sm.sin(TIME) / 3 - y * phi / 4],
            "inputs": [kg.Input(self.height, rate=sm.cos(TIME) / 5)],
            "parameters": {"m": 1.3, "m_b": 0.4, "I": 0.2, "l": 0.3, "g": 9.81},
        }

    @property
    def contacts(self) -> dict[str, Any]:
        """The arguments of the contacts; values of laws partly parameters."""
        gaps, slips = self.gaps, self.slips
        mu, k, e = sm.symbols("mu k e")
        _, y, _, _ = self.q
        return {
            "contacts": [
                kg.Unilateral(
                    gaps["floor"], kg.Restitution(e, decay_rate=7), kg.Coulomb(mu, mu / 2), slips["floor"], "floor"
                ),
                kg.Unilateral(gaps["stop"], kg.Stabilized(damping=300, stiffness=100), name="stop"),
                kg.Unilateral(gaps["spring"], kg.KelvinVoigt(k, 3), name="spring"),
                kg.Unilateral(gaps["pad"], kg.HuntCrossley(k, 0.6, quantity="acceleration"), name="pad"),
                kg.Unilateral(gaps["ratchet"], kg.Stabilized(damping=9), name="ratchet"),
                kg.Friction(
                    slips["guide"], kg.Coulomb(0.4, creep=1e-3, decay_rate=2), kg.Bilateral(gaps["guide"]), "guide"
                ),
                kg.Friction(slips["brake"], kg.Coulomb(0.5), 2 + y**2, "brake"),
                kg.Latch("hook", gaps["hook"]),
                kg.Latch("clutch", gaps["clutch"], closed=True, decay_rate=4),
            ],
            "events": [
                kg.Event("overload", kg.Multiplier("floor", 2) - 5, impose="hook", remove="clutch"),
                kg.Event("knock", y - 1, direction=-1, terminal=True, impulse="blow"),
            ],
            "impulses": {"blow": [(self.bob, 2 * self.B.x - self.N.y), (self.B, sm.Symbol("T") * self.N.z)]},
            "parameters": {**self.description["parameters"], "mu": 0.7, "k": 50.0, "e": 0.8, "omega": 0.1, "T": 0.3},
            "outputs": {"floor force": [kg.Multiplier("floor", k) for k in range(3)], "lift": self.u[1].diff(TIME)},
        }

    @property
    def rows(self) -> tuple[tuple[str, Any], ...]:
        """Name and expression of every contact row, in the order of the rows."""
        gaps, slips = self.gaps, self.slips
        return (
            ("floor", gaps["floor"]),
            *(("floor slip", v) for v in slips["floor"]),
            *((name, gaps[name]) for name in ("stop", "spring", "pad", "ratchet", "guide")),
            ("guide slip", *slips["guide"]),
            ("brake slip", *slips["brake"]),
            *((name, gaps[name]) for name in ("hook", "clutch")),
        )

    @property
    def velocity_rows(self) -> tuple[str, ...]:
        """Names of the rows at velocity level."""
        return ("floor slip", "ratchet", "guide slip", "brake slip", "clutch")

    def companion(self, row: int | None = None) -> kg.Model:
        """The model without contacts, one contact row as a constraint more."""
        description = self.description
        if row is None:
            return kg.Model(**{**description, "inputs": ()})
        name, expression = self.rows[row]
        kind = "nonholonomic_constraints" if name in self.velocity_rows else "holonomic_constraints"
        uses_height = name == "floor"
        changes = {
            kind: [*description.get(kind, ()), expression],
            "inputs": description["inputs"] if uses_height else (),
            "parameters": {**description["parameters"], **({"omega": 0.1} if name == "ratchet" else {})},
        }
        return kg.Model(**{**description, **changes})


def ball(**changes: Any) -> kg.Model:
    """A particle over a rough floor."""
    (x, z), (u, w) = me.dynamicsymbols("x z"), me.dynamicsymbols("u w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + z * N.z)
    P.set_vel(N, u * N.x + w * N.z)
    e, mu = sm.symbols("e mu")
    arguments: dict[str, Any] = {
        "name": "ball",
        "frame": N,
        "coordinates": (x, z),
        "speeds": (u, w),
        "kinematics": (x.diff(TIME) - u, z.diff(TIME) - w),
        "bodies": (me.Particle("ball", P, sm.Symbol("m")),),
        "gravity": -sm.Symbol("g") * N.z,
        "contacts": [kg.Unilateral(z, kg.Restitution(e), kg.Coulomb(mu), u, "floor")],
    }
    return kg.Model(**{**arguments, **changes})
