"""Models with controls in their constraints, each with a solution in closed form or a simpler peer."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

t = me.dynamicsymbols._t


def _frame() -> tuple[Any, Any]:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    return N, O


def slider(constraints: Any = None, **options: Any) -> kg.Model:
    """A mass m on a line with a spring k and a force tau; the target is x = sin(t), or others in x and t."""
    x, u, tau = me.dynamicsymbols("x u tau")
    m, k = sm.symbols("m k")
    N, O = _frame()
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, u * N.x)
    record = kg.ControlConstraints([x - sm.sin(t)] if constraints is None else constraints, **options)
    return kg.Model(
        name="slider",
        frame=N,
        coordinates=[x],
        speeds=[u],
        kinematics=[x.diff(t) - u],
        bodies=[me.Particle("particle", P, m)],
        loads=[(P, (tau - k * x) * N.x)],
        inputs=[tau],
        parameters={m: 2.0, k: 3.0},
        control=record,
    )


def steered_particle() -> kg.Model:
    """A particle that goes where it is steered, x' = v cos(delta), y' = v sin(delta), driven by F; both are controls.

    The position shall go round a circle. Its third derivative contains F' and delta''.
    """
    x, y, v, F, delta = me.dynamicsymbols("x y v F delta")
    rate, acceleration = me.dynamicsymbols("delta1 delta2")
    m, R = sm.symbols("m R")
    N, O = _frame()
    P = O.locatenew("P", x * N.x + y * N.y)
    direction = sm.cos(delta) * N.x + sm.sin(delta) * N.y
    P.set_vel(N, v * direction)
    return kg.Model(
        name="steered_particle",
        frame=N,
        coordinates=[x, y],
        speeds=[v],
        kinematics=[x.diff(t) - v * sm.cos(delta), y.diff(t) - v * sm.sin(delta)],
        bodies=[me.Particle("particle", P, m)],
        loads=[(P, F * direction)],
        inputs=[F, kg.Input(delta, rate=rate, acceleration=acceleration)],
        parameters={m: 1.5, R: 2.0},
        control=kg.ControlConstraints(
            [x - R * sm.cos(t), y - R * sm.sin(t)], controls=[F, delta], theta=[(-6, -12, -8)] * 2
        ),
    )


def belt() -> kg.Model:
    """A mass on a belt whose velocity is the control: x is relative to the belt, a spring holds the mass to it.

    u' contains tau'. The relative velocity shall be cos(t).
    """
    x, u, tau, rate = me.dynamicsymbols("x u tau tau1")
    m, k = sm.symbols("m k")
    N, _ = _frame()
    P = me.Point("P")
    P.set_vel(N, (u + tau) * N.x)
    return kg.Model(
        name="belt",
        frame=N,
        coordinates=[x],
        speeds=[u],
        kinematics=[x.diff(t) - u],
        bodies=[me.Particle("particle", P, m)],
        loads=[(P, -k * x * N.x)],
        inputs=[kg.Input(tau, rate=rate)],
        parameters={m: 2.0, k: 3.0},
        control=kg.ControlConstraints([u - sm.cos(t)]),
    )


def variable_gear() -> kg.Model:
    """Two rotors coupled by a gear whose ratio is the control: u1 = tau u2, a passive constraint. u2 shall be U(t)."""
    a, b, u1, u2, tau, rate = me.dynamicsymbols("a b u1 u2 tau tau1")
    I1, I2 = sm.symbols("I1 I2")
    N, O = _frame()
    rotors = []
    for name, angle, speed, inertia in (("first", a, u1, I1), ("second", b, u2, I2)):
        frame = me.ReferenceFrame(name)
        frame.orient_axis(N, N.z, angle)
        frame.set_ang_vel(N, speed * N.z)
        rotors.append(me.RigidBody(name, O, frame, 0, (me.inertia(frame, 0, 0, inertia), O)))
    return kg.Model(
        name="variable_gear",
        frame=N,
        coordinates=[a, b],
        speeds=[u1, u2],
        kinematics=[a.diff(t) - u1, b.diff(t) - u2],
        bodies=rotors,
        nonholonomic_constraints=[u1 - tau * u2],
        inputs=[kg.Input(tau, rate=rate)],
        parameters={I1: 1.2, I2: 0.7},
        control=kg.ControlConstraints([u2 - 2 - sm.sin(t) / 2]),
    )


def winch() -> kg.Model:
    """A pendulum in x, y on a rope, a passive constraint; its length is the control, with l'' = -4 (l - 1)."""
    x, y, u, v, length = me.dynamicsymbols("x y u v l")
    rate, acceleration = me.dynamicsymbols("l1 l2")
    m, g = sm.symbols("m g")
    N, O = _frame()
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    return kg.Model(
        name="winch",
        frame=N,
        coordinates=[x, y],
        speeds=[u, v],
        kinematics=[x.diff(t) - u, y.diff(t) - v],
        bodies=[me.Particle("particle", P, m)],
        gravity=-g * N.y,
        holonomic_constraints=[(x**2 + y**2 - length**2) / 2],
        inputs=[kg.Input(length, rate=rate, acceleration=acceleration)],
        parameters={m: 1.1, g: 9.81},
        control=kg.ControlConstraints(y=-4 * (length - 1)),
    )


def actuator() -> kg.Model:
    """A mass pushed by an actuator of first order, tau' = (v - tau) / T, v an input like others."""
    x, u, tau, v = me.dynamicsymbols("x u tau v")
    m, T = sm.symbols("m T")
    N, O = _frame()
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, u * N.x)
    return kg.Model(
        name="actuator",
        frame=N,
        coordinates=[x],
        speeds=[u],
        kinematics=[x.diff(t) - u],
        bodies=[me.Particle("particle", P, m)],
        loads=[(P, tau * N.x)],
        inputs=[tau, v],
        parameters={m: 2.0, T: 0.5},
        control=kg.ControlConstraints(controls=[tau], y=(v - tau) / T),
    )


@cache
def solver_of(name: str) -> kg.Solver:
    """One of the models above without options, compiled once per session."""
    makers = {f.__name__: f for f in (steered_particle, belt, variable_gear, winch, actuator)}
    return kg.build(makers[name]())
