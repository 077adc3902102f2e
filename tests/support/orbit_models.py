"""Oscillators whose periodic motions are known from closed forms or from other programs."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy as sm
import sympy.physics.mechanics as me
from trim_models import TIME, point_masses

import kanegen as kg


def oscillator(name: str, force: Any, **options: Any) -> kg.Solver:
    """A particle of mass 1 on a line; ``force(x, v)`` contains parameters and the time."""

    def loads(q: Any, u: Any, points: Any, N: Any) -> Any:
        return [(points[0], force(q[0], u[0]) * N.x)]

    return kg.build(point_masses(name, "x", "v", lambda x: [(x, 0, 0)], [1], loads=loads, **options))


@cache
def van_der_pol() -> kg.Solver:
    """x'' = mu (1 - x^2) x' - x, with the event that x passes zero upward."""
    mu = sm.Symbol("mu")
    return oscillator(
        "van_der_pol",
        lambda x, v: mu * (1 - x**2) * v - x,
        parameters={mu: 1.0},
        events=lambda q, u, points, N: [
            kg.Event("rises", q[0], direction=1),
            kg.Event("stop", q[0] - 9, terminal=True),
        ],
    )


@cache
def forced_van_der_pol() -> kg.Solver:
    """x'' = mu (1 - x^2) x' - x + F cos(omega t)."""
    mu, F, omega = sm.symbols("mu F omega")
    return oscillator(
        "forced_van_der_pol",
        lambda x, v: mu * (1 - x**2) * v - x + F * sm.cos(omega * TIME),
        parameters={mu: 0.2, F: 1.0, omega: 1.2},
    )


@cache
def duffing() -> kg.Solver:
    """x'' = -2 delta x' - x - beta x^3 + F cos(omega t), with F as an input."""
    delta, beta, omega = sm.symbols("delta beta omega")
    F = me.dynamicsymbols("F")
    return oscillator(
        "duffing",
        lambda x, v: -2 * delta * v - x - beta * x**3 + F * sm.cos(omega * TIME),
        parameters={delta: 0.05, beta: 1.0, omega: 1.4},
        inputs=[kg.Input(F, default=0.3)],
    )


@cache
def mathieu() -> kg.Solver:
    """x'' = -2 delta x' - (a + q cos(2 t)) x."""
    delta, a, q = sm.symbols("delta a q")
    return oscillator(
        "mathieu",
        lambda x, v: -2 * delta * v - (a + q * sm.cos(2 * TIME)) * x,
        parameters={delta: 0.1, a: 1.0, q: 0.1},
    )


@cache
def pendulum() -> kg.Solver:
    """A pendulum of length l with the angle theta."""
    g, l = sm.symbols("g l")
    return kg.build(
        point_masses(
            "angle_pendulum",
            "theta",
            "omega",
            lambda theta: [(l * sm.sin(theta), 0, -l * sm.cos(theta))],
            [1],
            gravity=lambda q, u, points, N: -g * N.z,
            parameters={g: 9.81, l: 0.7},
        )
    )


@cache
def cartesian_pendulum() -> kg.Solver:
    """The same pendulum in Cartesian coordinates, with a constraint, and a damper that negative friction feeds."""
    g, l, c = sm.symbols("g l c")
    return kg.build(
        point_masses(
            "cartesian_pendulum",
            "x z",
            "v_x v_z",
            lambda x, z: [(x, 0, z)],
            [1],
            gravity=lambda q, u, points, N: -g * N.z,
            loads=lambda q, u, points, N: [
                (points[0], c * (1 - 4 * (q[0] / l) ** 2) * (u[0] * N.x + u[1] * N.z)),
            ],
            holonomic_constraints=lambda q, u, points, N: [q[0] ** 2 + q[1] ** 2 - l**2],
            parameters={g: 9.81, l: 0.7, c: 0.0},
        )
    )


@cache
def relay_oscillator() -> kg.Solver:
    """x'' = -2 delta x' - x + s, where the state s becomes the sign of x' when x' passes zero."""
    delta, s = sm.Symbol("delta"), me.dynamicsymbols("s")

    def events(q: Any, u: Any, points: Any, N: Any) -> Any:
        return [
            kg.Event("left", u[0], direction=1, reset={s: 1}),
            kg.Event("right", u[0], direction=-1, reset={s: -1}),
        ]

    return oscillator(
        "relay_oscillator",
        lambda x, v: -2 * delta * v - x + s,
        parameters={delta: 0.1},
        states={s: 0},
        events=events,
    )


def simplest_walker() -> kg.Solver:
    """The walker of Garcia, Chatterjee, Ruina and Coleman (1998) in states, beside a damped oscillator at rest."""
    theta, phi, dtheta, dphi = me.dynamicsymbols("theta phi dtheta dphi")
    gamma = sm.Symbol("gamma")
    swing, kept = sm.sin(theta - gamma), sm.cos(2 * theta)
    reset = {theta: -theta, phi: -2 * theta, dtheta: kept * dtheta, dphi: kept * (1 - kept) * dtheta}
    states = {theta: dtheta, phi: dphi, dtheta: swing, dphi: swing + (dtheta**2 - sm.cos(theta - gamma)) * sm.sin(phi)}
    strike = kg.Event("strike", phi - 2 * theta, direction=1, reset=reset)

    N, O = me.ReferenceFrame("N"), me.Point("O")
    x, v = me.dynamicsymbols("x v")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    return kg.build(
        kg.Model(
            name="simplest_walker",
            frame=N,
            coordinates=(x,),
            speeds=(v,),
            kinematics=(v - x.diff(me.dynamicsymbols._t),),
            bodies=(me.Particle("rest", P, 1),),
            loads=((P, -(x + v) * N.x),),
            states=states,
            events=(strike,),
            parameters={gamma: 0.009},
        )
    )
