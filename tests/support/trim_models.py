"""Models whose equilibria, steady motions and linear models are known in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

TIME = me.dynamicsymbols._t
FUNCTIONS = ("rhs", "residuals", "consistency", "outputs", "energies", "jacobians")

CAR = {"m1": 300.0, "m2": 40.0, "k1": 2.0e4, "c1": 1.5e3, "k2": 1.8e5, "c2": 150.0, "g": 9.81}


def point_masses(
    name: str, coordinates: str, speeds: str, positions: Any, masses: Sequence[Any], **options: Any
) -> kg.Model:
    """Particles at ``positions(q)`` (x, y, z); speeds are the rates of the coordinates. ``options(q, u)`` of the model
    are functions of the symbols or values."""
    q, u = me.dynamicsymbols(coordinates), me.dynamicsymbols(speeds)
    q, u = (tuple(x) if isinstance(x, (list, tuple)) else (x,) for x in (q, u))
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    rates = {a.diff(TIME): b for a, b in zip(q, u, strict=True)}
    points, bodies = [], []
    for k, (mass, place) in enumerate(zip(masses, positions(*q), strict=True)):
        vector = sum((x * e for x, e in zip(place, (N.x, N.y, N.z), strict=True)), me.Vector(0))
        point = O.locatenew(f"P{k}", vector)
        point.set_vel(N, vector.dt(N).subs(rates))
        points.append(point)
        bodies.append(me.Particle(f"B{k}", point, mass))
    description = {
        "frame": N,
        "coordinates": q,
        "speeds": u,
        "kinematics": tuple(b - a.diff(TIME) for a, b in zip(q, u, strict=True)),
        "bodies": tuple(bodies),
    }
    made = {key: value(q, u, points, N) if callable(value) else value for key, value in options.items()}
    return kg.Model(name=name, **(description | made))


def quarter_car(*latches: str) -> kg.Model:
    """Body z1 and wheel z2 (upward, from the unloaded suspension and tire), on a Kelvin-Voigt tire; a force on the
    body is an input. A latch can lock the suspension, 0.1 m compressed."""
    m1, m2, k1, c1, k2, c2, g = sm.symbols("m1 m2 k1 c1 k2 c2 g")
    push = me.dynamicsymbols("push")

    def loads(q: Any, u: Any, points: Any, N: Any) -> Any:
        spring = -k1 * (q[0] - q[1]) - c1 * (u[0] - u[1])
        return [(points[0], (spring + push) * N.z), (points[1], -spring * N.z)]

    return point_masses(
        "quarter_car",
        "z1 z2",
        "v1 v2",
        lambda z1, z2: [(0, 0, z1), (1, 0, z2)],
        (m1, m2),
        loads=loads,
        gravity=lambda q, u, points, N: -g * N.z,
        contacts=lambda q, u, points, N: [
            kg.Unilateral(q[1], kg.KelvinVoigt(stiffness=k2, damping=c2), name="tire"),
            *(kg.Latch(name, q[0] - q[1] + sm.Rational(1, 10), closed=True) for name in latches),
        ],
        inputs=[kg.Input(push, default=0.0)],
        parameters=CAR,
    )


@cache
def car(*latches: str) -> kg.Solver:
    return kg.build(quarter_car(*latches), functions=FUNCTIONS)


def puck() -> kg.Model:
    """A particle on a wavy rigid floor ``z = sin(2 x) / 5``, with a wall, a guide rail with friction and a brake.

    Its wear is a state that grows with the power of the wall. The outputs contain forces of contacts.
    """
    mu, k = sm.symbols("mu k")
    drive, wear = me.dynamicsymbols("drive wear")

    def contacts(q: Any, u: Any, points: Any, N: Any) -> Any:
        (x, y, z), (v, w, _) = q, u
        return [
            kg.Unilateral(z - sm.sin(2 * x) / 5, kg.Restitution(0), kg.Coulomb(2 * mu, mu), (v, w - TIME / 7), "floor"),
            kg.Unilateral(1 - x - y**2 / 3, kg.HuntCrossley(k, 0.3), kg.Coulomb(mu), (w,), "wall"),
            kg.Friction((v - w * x,), kg.Coulomb(0.2), 3 + z**2 + y, "brake"),
            kg.Latch("rail", y - x**2 / 2 - 1),
        ]

    def loads(q: Any, u: Any, points: Any, N: Any) -> Any:
        x, y, z = q
        return [(points[0], (drive - 3 * x) * N.x - y * u[1] * N.y - (20 + z) * N.z)]

    return point_masses(
        "puck",
        "x y z",
        "v w h",
        lambda x, y, z: [(x, y, z)],
        (sm.Symbol("m"),),
        loads=loads,
        contacts=contacts,
        events=lambda q, u, points, N: [kg.Event("join", q[0] + 50, impose="rail")],
        inputs=[kg.Input(drive, default=1.5)],
        states={wear: kg.Multiplier("wall") * mu - wear},
        outputs={"floor": kg.Multiplier("floor"), "grip": kg.Multiplier("floor", 1) + wear},
        parameters={"m": 1.3, "k": 900.0, "mu": 0.3},
    )


@cache
def puck_solver() -> kg.Solver:
    return kg.build(puck(), functions=FUNCTIONS)


def grain() -> kg.Model:
    """A particle on the parabola ``z = x^2 / (2 L)`` with friction; it rests where the slope |x| / L is at most mu."""
    mu, g, L = sm.symbols("mu g L")

    def contacts(q: Any, u: Any, points: Any, N: Any) -> Any:
        x, z = q
        length = sm.sqrt(1 + (x / L) ** 2)
        along = (u[0] + x / L * u[1]) / length
        normal = (z - x**2 / (2 * L)) / length
        return [kg.Unilateral(normal, kg.Restitution(0), kg.Coulomb(mu), (along,), "bowl")]

    return point_masses(
        "grain",
        "x z",
        "v w",
        lambda x, z: [(x, 0, z)],
        (sm.Symbol("m"),),
        gravity=lambda q, u, points, N: -g * N.z,
        contacts=contacts,
        parameters={"m": 0.7, "mu": 0.3, "g": 9.81, "L": 1.0},
    )


@cache
def grain_solver() -> kg.Solver:
    return kg.build(grain(), functions=FUNCTIONS)


ARM = {"a": 0.6, "h": 0.5, "m": 25.0, "k": 1.2e4, "c": 800.0, "k_t": 1.5e5, "c_t": 200.0, "R": 0.3, "g": 9.81}


def trailing_arm() -> kg.Model:
    """A wheel of mass m at (x, z) on an arm of length a about the pivot (0, h) of a fixed chassis, a closed loop:
    the spring k and the damper c between (0, h) + (a/2, 1/2) and the wheel, and a Kelvin-Voigt tire of radius R."""
    a, h, k, c, k_t, c_t, R, g = sm.symbols("a h k c k_t c_t R g")

    def loads(q: Any, u: Any, points: Any, N: Any) -> Any:
        x, z = q
        to = ((x - a / 2) * N.x + (z - h - sm.Rational(1, 2)) * N.z).normalize()
        length = sm.sqrt((x - a / 2) ** 2 + (z - h - sm.Rational(1, 2)) ** 2)
        force = k * (length - sm.Rational(9, 10)) + c * to.dot(u[0] * N.x + u[1] * N.z)
        return [(points[0], -force * to)]

    return point_masses(
        "trailing_arm",
        "x z",
        "v w",
        lambda x, z: [(x, 0, z)],
        (sm.Symbol("m"),),
        loads=loads,
        gravity=lambda q, u, points, N: -g * N.z,
        holonomic_constraints=lambda q, u, points, N: (q[0] ** 2 + (q[1] - h) ** 2 - a**2,),
        contacts=lambda q, u, points, N: [kg.Unilateral(q[1] - R, kg.KelvinVoigt(k_t, c_t), name="tire")],
        parameters=ARM,
    )


@cache
def arm_solver() -> kg.Solver:
    return kg.build(trailing_arm(), functions=(*FUNCTIONS, "forces"))


BELT = {"m": 0.5, "k": 40.0, "mu_s": 0.5, "mu_k": 0.3, "N": 6.0, "V": 0.8}


def belt() -> kg.Model:
    """A block on a spring, dragged by a belt that moves with the velocity V under the normal load N."""
    m, k, mu_s, mu_k, load, V = sm.symbols("m k mu_s mu_k N V")
    return point_masses(
        "belt",
        "x",
        "v",
        lambda x: [(x, 0, 0)],
        (m,),
        loads=lambda q, u, points, N: [(points[0], -k * q[0] * N.x)],
        contacts=lambda q, u, points, N: [kg.Friction((u[0] - V,), kg.Coulomb(mu_s, mu_k), load, "belt")],
        parameters=BELT,
    )


CONVEYOR = {"m": 0.5, "k": 40.0, "mu": 0.3, "V": 0.8, "g": 9.81}


def conveyor() -> kg.Model:
    """The block lies on the belt, at z = 0, with its weight as the normal force."""
    m, k, mu, V, g = sm.symbols("m k mu V g")
    return point_masses(
        "conveyor",
        "x z",
        "v w",
        lambda x, z: [(x, 0, z)],
        (m,),
        loads=lambda q, u, points, N: [(points[0], -k * q[0] * N.x - m * g * N.z)],
        contacts=lambda q, u, points, N: [kg.Unilateral(q[1], friction=kg.Coulomb(mu), slip=(u[0] - V,), name="belt")],
        parameters=CONVEYOR,
    )


HOOP = {"m": 0.2, "R": 0.4, "g": 9.81, "Omega": 8.0}


def hoop() -> kg.Model:
    """A bead at the angle theta on a hoop of radius R that rotates about its vertical diameter with Omega."""
    theta, u = me.dynamicsymbols("theta u")
    m, R, g, Omega = sm.symbols("m R g Omega")
    N, H = me.ReferenceFrame("N"), me.ReferenceFrame("H")
    H.orient_axis(N, N.z, Omega * TIME)
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", R * sm.sin(theta) * H.x - R * sm.cos(theta) * H.z)
    P.set_vel(N, P.pos_from(O).dt(N).subs({theta.diff(TIME): u}))
    return kg.Model(
        name="hoop",
        frame=N,
        coordinates=(theta,),
        speeds=(u,),
        kinematics=(u - theta.diff(TIME),),
        bodies=(me.Particle("bead", P, m),),
        gravity=-g * N.z,
        parameters=HOOP,
    )


@cache
def hoop_solver() -> kg.Solver:
    return kg.build(hoop(), functions=FUNCTIONS)


TRUSS = {"m": 1.0, "k": 1e3, "b": 1.0, "h": 0.5, "c": 5.0}


def truss() -> kg.Model:
    """Von Mises truss: two bars of stiffness k from (-b, 0) and (b, 0) to a mass at the height y, pushed down by the
    input load; the bars are unstressed at y = h."""
    k, b, h, c = sm.symbols("k b h c")
    load = me.dynamicsymbols("load")

    def loads(q: Any, u: Any, points: Any, N: Any) -> Any:
        length = sm.sqrt(b**2 + q[0] ** 2)
        force = -2 * k * (length - sm.sqrt(b**2 + h**2)) * q[0] / length - c * u[0] - load
        return [(points[0], force * N.z)]

    return point_masses(
        "truss",
        "y",
        "v",
        lambda y: [(0, 0, y)],
        (sm.Symbol("m"),),
        loads=loads,
        inputs=[kg.Input(load, default=0.0)],
        parameters=TRUSS,
    )


@cache
def truss_solver() -> kg.Solver:
    return kg.build(truss(), functions=FUNCTIONS)
