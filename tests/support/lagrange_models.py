"""Systems for LagrangesMethod, with their bodies, so that the same system can also be described for Kane's method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

t = me.dynamicsymbols._t
m, length, g, k, c, omega = sm.symbols("m l g k c Omega", positive=True)
VALUES = {m: 1.3, length: 0.7, g: 9.81, k: 5.0, c: 0.4, omega: 2.1}


@dataclass(frozen=True)
class Case:
    """A LagrangesMethod, its bodies and potential energy, and the loads of all forces for Kane's method.

    Loads and constraints are written with q'.
    """

    frame: Any
    coordinates: tuple[Any, ...]
    bodies: tuple[Any, ...]
    potential: Any
    weights: tuple[Any, ...]
    loads: tuple[Any, ...] = ()
    holonomic: tuple[Any, ...] = ()
    nonholonomic: tuple[Any, ...] = ()
    inputs: tuple[Any, ...] = ()

    def method(self, **changes: Any) -> me.LagrangesMethod:
        """The LagrangesMethod, without bodies."""
        kinetic = me.kinetic_energy(self.frame, *self.bodies)
        given = {"forcelist": list(self.loads), "frame": self.frame}
        given |= {"hol_coneqs": list(self.holonomic), "nonhol_coneqs": list(self.nonholonomic)}
        return me.LagrangesMethod(kinetic - self.potential, list(self.coordinates), **(given | changes))

    def lagrange(self, **options: Any) -> kg.Model:
        """The model from the LagrangesMethod."""
        return bound(lambda parameters: kg.Model.from_lagrange(self.method(), parameters=parameters, **options))

    def with_bodies(self, **options: Any) -> kg.Model:
        return self.lagrange(bodies=self.bodies, **options)

    def kane(self, **options: Any) -> kg.Model:
        """The same system by Kane's method, with the same speeds u = q'."""
        speeds = [me.dynamicsymbols(f"{q.func.__name__}_dot") for q in self.coordinates]
        given: dict[str, Any] = {
            "name": "kane",
            "frame": self.frame,
            "coordinates": self.coordinates,
            "speeds": speeds,
            "kinematics": [q.diff(t) - u for q, u in zip(self.coordinates, speeds, strict=True)],
            "bodies": self.bodies,
            "loads": (*self.loads, *self.weights),
            "holonomic_constraints": self.holonomic,
            "nonholonomic_constraints": self.nonholonomic,
            "inputs": self.inputs,
            "potential_energy": self.potential,
        }
        return bound(lambda parameters: kg.Model(**{**given, **options}, parameters=parameters))


def bound(make: Callable[[dict[Any, float]], kg.Model]) -> kg.Model:
    """The model with the values of the parameters that it has."""
    free = make({})
    return make({symbol: VALUES[symbol] for symbol in free.parameters if symbol in VALUES})


def double_pendulum() -> Case:
    """Two particles on rods, a force on the lower one and friction in the upper joint."""
    a, b, F = me.dynamicsymbols("theta phi F")
    N, A, B = (me.ReferenceFrame(name) for name in "NAB")
    A.orient_axis(N, a, N.z)
    B.orient_axis(N, b, N.z)
    O = fixed(N)
    P, R = O.locatenew("P", -length * A.y), me.Point("R")
    R.set_pos(P, -length * B.y)
    P.v2pt_theory(O, N, A)
    R.v2pt_theory(P, N, B)
    bodies = me.Particle("P", P, m), me.Particle("R", R, 2 * m)
    V = -m * g * length * (3 * sm.cos(a) + 2 * sm.cos(b))
    weights = (P, -m * g * N.y), (R, -2 * m * g * N.y)
    return Case(N, (a, b), bodies, V, weights, ((R, F * N.x), (A, -c * a.diff(t) * N.z)), inputs=(F,))


def spherical_pendulum() -> Case:
    theta, phi = me.dynamicsymbols("theta phi")
    N, A, B = (me.ReferenceFrame(name) for name in "NAB")
    A.orient_axis(N, phi, N.z)
    B.orient_axis(A, theta, A.y)
    O = fixed(N)
    P = O.locatenew("P", -length * B.z)
    P.v2pt_theory(O, N, B)
    return Case(N, (theta, phi), (me.Particle("P", P, m),), -m * g * length * sm.cos(theta), ((P, -m * g * N.z),))


def bead_on_hoop() -> Case:
    """A bead on a hoop that turns with a given rate: K has a part without speeds, and the energy changes."""
    theta = me.dynamicsymbols("theta")
    N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    A.orient_axis(N, omega * t, N.z)
    O = fixed(N)
    P = O.locatenew("P", length * (sm.sin(theta) * A.x - sm.cos(theta) * A.z))
    P.set_vel(
        N, length * theta.diff(t) * (sm.cos(theta) * A.x + sm.sin(theta) * A.z) + length * sm.sin(theta) * omega * A.y
    )
    return Case(N, (theta,), (me.Particle("P", P, m),), -m * g * length * sm.cos(theta), ((P, -m * g * N.z),))


def shaken_pendulum() -> Case:
    """A pendulum on a shaken pivot: K has a part linear in the speeds."""
    theta, x = me.dynamicsymbols("theta x")
    N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    A.orient_axis(N, theta, N.z)
    O = fixed(N)
    C = O.locatenew("C", (x + length / 3 * sm.sin(omega * t)) * N.x)
    C.set_vel(N, C.pos_from(O).dt(N))
    P = C.locatenew("P", -length * A.y)
    P.v2pt_theory(C, N, A)
    bodies = me.Particle("C", C, 2 * m), me.Particle("P", P, m)
    spring = (C, -k * x * N.x)
    return Case(N, (theta, x), bodies, -m * g * length * sm.cos(theta) + k * x**2 / 2, ((P, -m * g * N.y), spring))


def slider_crank() -> Case:
    """A crank, a rod and a slider on a line, closed by one holonomic constraint."""
    a, b, x = me.dynamicsymbols("alpha beta x")
    N, A, B = (me.ReferenceFrame(name) for name in "NAB")
    A.orient_axis(N, a, N.z)
    B.orient_axis(N, b, N.z)
    O = fixed(N)
    C, E, S = O.locatenew("C", length / 2 * A.x), O.locatenew("E", length * A.x), O.locatenew("S", x * N.x)
    D = E.locatenew("D", length * B.x)
    C.v2pt_theory(O, N, A)
    E.v2pt_theory(O, N, A)
    D.v2pt_theory(E, N, B)
    S.set_vel(N, x.diff(t) * N.x)
    crank = me.RigidBody("crank", C, A, m, (me.inertia(A, 0, 0, m * length**2 / 12), C))
    rod = me.RigidBody("rod", D, B, m, (me.inertia(B, 0, 0, m * length**2 / 3), D))
    bodies = crank, rod, me.Particle("S", S, m)
    closing = (2 * length * B.x + length * A.x - x * N.x).to_matrix(N)[:2]
    V = m * g * (length / 2 * sm.sin(a) + length * (sm.sin(a) + sm.sin(b)))
    weights = (C, -m * g * N.y), (D, -m * g * N.y)
    return Case(N, (a, b, x), bodies, V, weights, ((S, -c * x.diff(t) * N.x),), tuple(closing))


def rolling_disk() -> Case:
    """A disk that rolls on a plane: the coordinates of its center are bound by two nonholonomic constraints."""
    x, y, yaw, lean, spin = me.dynamicsymbols("x y psi theta sigma")
    N, A, B, D = (me.ReferenceFrame(name) for name in "NABD")
    A.orient_axis(N, yaw, N.z)
    B.orient_axis(A, lean, A.x)
    D.orient_axis(B, spin, B.y)
    O, C = fixed(N), me.Point("C")
    C.set_pos(O, x * N.x + y * N.y + length * B.z)
    C.set_vel(N, C.pos_from(O).dt(N))
    inertia = me.inertia(B, m * length**2 / 4, m * length**2 / 2, m * length**2 / 4)
    disk = me.RigidBody("disk", C, D, m, (inertia, C))
    slip = C.vel(N) + D.ang_vel_in(N).cross(-length * B.z)
    rows = tuple(slip.dot(axis).doit() for axis in (N.x, N.y))
    V = m * g * length * sm.cos(lean)
    return Case(N, (x, y, yaw, lean, spin), (disk,), V, ((C, -m * g * N.z),), nonholonomic=rows)


def fixed(frame: Any) -> Any:
    """A point at rest."""
    O = me.Point("O")
    O.set_vel(frame, 0)
    return O


CASES: dict[str, Callable[[], Case]] = {
    "double_pendulum": double_pendulum,
    "spherical_pendulum": spherical_pendulum,
    "bead_on_hoop": bead_on_hoop,
    "shaken_pendulum": shaken_pendulum,
    "slider_crank": slider_crank,
    "rolling_disk": rolling_disk,
}
