"""Models with additional states, and their equations written by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

VALUES = {"m": 1.3, "k": 4.0, "c": 0.6, "tau": 0.3, "b": 0.7}


def point_mass(name: str, force: Any, **options: Any) -> kg.Model:
    """A particle of mass m at x on a line, with the speed v and this force; ``options`` of the model replace others."""
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    description = {
        "frame": N,
        "coordinates": [x],
        "speeds": [v],
        "kinematics": [x.diff() - v],
        "bodies": [me.Particle("P", P, sm.Symbol("m"))],
        "loads": [(P, force * N.x)],
    }
    return kg.Model(name=name, **(description | options))


def cart(**options: Any) -> kg.Model:
    """A mass on a spring, moved by an actuator with lag: ``m v' = -k x - c v + a``, ``tau a' = f - a + b v``.

    The second state integrates the acceleration and the speed, ``z' = v' + v``; f is an input.
    """
    x, v, a, z, f = me.dynamicsymbols("x v a z f")
    k, c, tau, b = sm.symbols("k c tau b")
    description = {
        "states": {a: (f - a + b * v) / tau, z: v.diff() + v},
        "inputs": [kg.Input(f, default=0.5)],
        "outputs": {"lag": a.diff(), "jerky": v.diff() + a},
        "parameters": VALUES,
    }
    return point_mass("cart", -k * x - c * v + a, **(description | options))


def cart_matrix(**values: float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """A and B of y' = A y + B f for y = (x, v, a, z)."""
    m, k, c, tau, b = (VALUES | values).values()
    A = np.zeros((4, 4))
    A[0, 1] = 1.0
    A[1] = [-k / m, -c / m, 1 / m, 0.0]
    A[2] = [0.0, b / tau, -1 / tau, 0.0]
    A[3] = A[1] + [0.0, 1.0, 0.0, 0.0]
    return A, np.array([0.0, 0.0, 1 / tau, 0.0])


PENDULUM = {"m": 1.2, "l": 0.8, "g": 9.81, "d": 0.4, "tau": 0.2}


def pendulum(**options: Any) -> kg.Model:
    """A pendulum in Cartesian coordinates, ``x^2 + y^2 = l^2``, with a damping force -d a that lags: tau a' = u - a."""
    x, y, u, w, a = me.dynamicsymbols("x y u w a")
    m, length, g, d, tau = sm.symbols("m l g d tau")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + w * N.y)
    description = {
        "name": "lagging pendulum",
        "frame": N,
        "coordinates": [x, y],
        "speeds": [u, w],
        "kinematics": [x.diff() - u, y.diff() - w],
        "bodies": [me.Particle("P", P, m)],
        "loads": [(P, -d * a * N.x)],
        "gravity": -g * N.y,
        "holonomic_constraints": [x**2 + y**2 - length**2],
        "states": {a: (u - a) / tau},
        "parameters": PENDULUM,
    }
    return kg.Model(**(description | options))


def pendulum_rates(t: float, y: np.ndarray[Any, Any]) -> list[float]:
    """theta', omega', a' with the angle from the downward vertical."""
    m, length, g, d, tau = PENDULUM.values()
    theta, omega, a = y
    force = -d * a
    u = length * omega * np.cos(theta)
    return [omega, (-g * np.sin(theta) + force / m * np.cos(theta)) / length, (u - a) / tau]


@cache
def solver_of(name: str, form: str = "auto", **options: Any) -> kg.Solver:
    """The solver of ``cart`` or ``pendulum`` with all functions."""
    return kg.build({"cart": cart, "pendulum": pendulum}[name](), form=form, functions="all", **options)


SLIDING = {"m": 2.0, "g": 9.81, "mu": 0.3, "wear": 1e-3}


def worn_block(**options: Any) -> kg.Model:
    """A block that slides on a floor: its wear h grows with ``wear * N * |v|``; z integrates the acceleration.

    The rate of h contains the multiplier of the contact, that of z the acceleration, with contact forces.
    """
    x, y, v, w, h, z = me.dynamicsymbols("x y v w h z")
    m, g, mu, wear = sm.symbols("m g mu wear")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    floor = kg.Unilateral(y, friction=kg.Coulomb(mu), slip=v, name="floor", law=kg.Restitution(0))
    description = {
        "name": "worn block",
        "frame": N,
        "coordinates": [x, y],
        "speeds": [v, w],
        "kinematics": [x.diff() - v, y.diff() - w],
        "bodies": [me.Particle("P", P, m)],
        "gravity": -g * N.y,
        "contacts": [floor],
        "states": {h: wear * kg.Multiplier("floor") * sm.Abs(v), z: w.diff()},
        "parameters": SLIDING,
    }
    return kg.Model(**(description | options))


def ticking(**options: Any) -> kg.Model:
    """A mass pushed by the force z, with two states: z has the rate 1, n the rate 0.

    z is reset to 0 whenever it reaches 1, and n then counts the resets.
    """
    z, n = me.dynamicsymbols("z n")
    description = {
        "states": {z: 1, n: 0},
        "events": [kg.Event("tick", z - 1, direction=1, reset={z: 0, n: n + z})],
        "parameters": {"m": 2.0},
    }
    return point_mass("ticking mass", z, **(description | options))
