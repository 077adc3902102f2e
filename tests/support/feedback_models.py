"""Models whose inputs have feedback laws, and the same motions without laws."""

from __future__ import annotations

from functools import cache
from typing import Any

import sympy as sm
import sympy.physics.mechanics as me
from systems import model_of

import kanegen as kg

x, y, v, w, a = me.dynamicsymbols("x y v w a")
F, G, H = me.dynamicsymbols("F G H")
k, c, most, band = sm.symbols("k c most band")
GROUPS = {"F": (0.05, 0.0), "G": (0.03, 0.07)}
"""Sample time and delay of the sampled inputs of `sampled`; H is continuous."""


@cache
def balanced() -> kg.Solver:
    """The cart-pole of the example with a linear-quadratic regulator, with all functions."""
    return kg.build(model_of("lqr_cart_pole"), functions="all")


def particle(forces: Any, **options: Any) -> kg.Model:
    """A particle of 2 kg in the plane under forces along x and y."""
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    given = {
        "name": "particle",
        "frame": N,
        "coordinates": (x, y),
        "speeds": (v, w),
        "kinematics": (x.diff() - v, y.diff() - w),
        "bodies": (me.Particle("P", P, 2),),
        "loads": ((P, forces[0] * N.x + forces[1] * N.y),),
    }
    return kg.Model(**{**given, **options})


def sampled_model() -> kg.Model:
    """Two groups of samples and a continuous law, which drive the same particle."""
    laws = {F: -3 * x - w, G: sm.floor(10 * y) / 5 - x, H: -v * sm.cos(y)}
    inputs = [
        kg.Input(symbol, law=law, **dict(zip(("sample_time", "delay"), GROUPS.get(symbol.name, ()), strict=False)))
        for symbol, law in laws.items()
    ]
    return particle((F + H, G - w), inputs=inputs)


@cache
def sampled() -> kg.Solver:
    return kg.build(sampled_model(), functions="all")


def servo_model() -> kg.Model:
    """A law beside a servo-constraint x = 1, whose error decays as (1 + 2 t) exp(-2 t)."""
    servo = kg.Servo([x - 1], [(-4, -4)], [G])
    return particle((G + F, F), inputs=[kg.Input(F, law=-3 * y - x * w), G], control=servo)


def hybrid_model(with_law: bool) -> kg.Model:
    """A particle that falls on a floor and is pulled by a force that a state and an event change.

    The force along x is an input with a law, dead band and saturation; or the same expression is a load.
    """
    law = -k * (x - a) - c * v
    dead = law - sm.Max(sm.Min(law, band), -band)
    value = F if with_law else sm.Min(sm.Max(dead, -most), most)
    return particle(
        (value, -20 + value / 2),
        inputs=[kg.Input(F, law=law, saturation=most, dead_band=band)] if with_law else [],
        states={a: -a + y},
        contacts=[kg.Unilateral(y, kg.Restitution(0.5), name="floor")],
        events=[kg.Event("passes", x - sm.Rational(1, 2), 1, reset={a: -a})],
        outputs={"force": value},
        parameters={k: 40, c: 1, most: 9, band: 1},
    )


@cache
def hybrid(with_law: bool) -> kg.Solver:
    return kg.build(hybrid_model(with_law), functions="all")


@cache
def limited() -> kg.Solver:
    """The particle held at (0, 1) by saturated laws, of which that along y has a dead band: y is in 1 +- band / k."""
    laws = {F: -k * x - c * v, G: -k * (y - 1) - c * w}
    bands = {F: None, G: band}
    inputs = [kg.Input(symbol, law=law, saturation=most, dead_band=bands[symbol]) for symbol, law in laws.items()]
    model = particle((F, G), inputs=inputs, parameters={k: 4, c: 1, most: 2, band: 0.5})
    return kg.build(model, functions=("rhs", "residuals", "jacobians"))


def pendulum_model() -> kg.Model:
    """The particle on a circle of 1 m under gravity along -x, with a law that follows its tangential speed."""
    turn = x * w - y * v
    push = kg.Input(F, law=-3 * sm.atan2(y, x) - turn, saturation=most)
    load = (-20 - F * y, F * x)
    return particle(load, inputs=[push], holonomic_constraints=[x**2 + y**2 - 1], parameters={most: 5})
