"""The simplest walker
===================

Two legs walk down a slope: gait, stability, and the road to chaos.

The legs are massless and have the length ``l``; a point mass is at the hip, and infinitesimal ones are at the feet,
which do not act on the hip. theta is the angle of the stance leg from the normal of the slope, whose angle is
``gamma``, and phi that between the legs. As in the paper, ``l`` and ``g`` are 1. At heel strike, phi = 2 theta, the
legs change their roles, and theta' is multiplied by cos 2 theta. Where the legs pass each other, the foot scuffs, which
is ignored.

``periodic_motion`` finds the gait with its Floquet multipliers, ``periodic_motions_curve`` follows it to steeper
slopes: at 0.0151 its period doubles. Simulations show what follows: gaits of 2, 4, 8 ... steps, and falls beyond 0.019.

Source: Garcia, Chatterjee, Ruina and Coleman, The simplest walking model: stability, complexity, and scaling, Journal
of Biomechanical Engineering 120 (1998), 281-288. The start of the gait and its multipliers at the slope 0.009 are
printed there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

INITIAL: dict[str, Any] = {"t": 0.0, "q": (0.0,), "u": (0.0,), "r": None, "s": (0.2003, 0.4006, -0.1998, -0.0158)}
ANGLES: Final = ("theta", "phi", "dtheta", "dphi")
GAIT: Final = (0.200310900544287, -0.199832473004977)
"""Published: theta and theta' after heel strike, at the slope 0.009."""

MULTIPLIERS: Final = (-0.19010 + 0.55760j, -0.19010 - 0.55760j)
"""Published: the multipliers of this gait."""

DOUBLING: Final = 0.0151
"""Published: the slope at which the period of the gait doubles."""

SLOPES: Final = np.arange(0.0090, 0.01905, 0.0001)
STRIDES: Final = 32
"""Heel strikes of each slope that the picture of the cascade shows."""


def model() -> kg.Model:
    """The walker in states, which heel strike resets; the only body of the model rests."""
    theta, phi, dtheta, dphi = me.dynamicsymbols(" ".join(ANGLES))
    rest, speed = me.dynamicsymbols("rest speed")
    gamma, g, l, k, c = sm.symbols("gamma g l k c")
    swing, kept = g / l * sm.sin(theta - gamma), sm.cos(2 * theta)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    R = O.locatenew("R", rest * N.x)
    R.set_vel(N, speed * N.x)
    ground = N.orientnew("ground", "Axis", (-gamma, N.z))
    hip = O.locatenew("hip", l * (-sm.sin(theta) * ground.x + sm.cos(theta) * ground.y))
    foot = hip.locatenew("foot", -l * (sm.sin(phi - theta) * ground.x + sm.cos(phi - theta) * ground.y))
    strike = {theta: -theta, phi: -2 * theta, dtheta: kept * dtheta, dphi: kept * (1 - kept) * dtheta}

    return kg.Model(
        name="simplest_walker",
        frame=N,
        coordinates=[rest],
        speeds=[speed],
        kinematics=[rest.diff() - speed],
        bodies=[me.Particle("resting", R, 1)],
        loads=[(R, -(k * rest + c * speed) * N.x)],
        states={
            theta: dtheta,
            phi: dphi,
            dtheta: swing,
            dphi: swing + (dtheta**2 - g / l * sm.cos(theta - gamma)) * sm.sin(phi),
        },
        events=[kg.Event("heel strike", phi - 2 * theta, direction=1, reset=strike)],
        parameters={gamma: 0.009, g: 1.0, l: 1.0, k: 1.0, c: 1.0},
        shapes={N: [kg.shapes.Link(O, hip), kg.shapes.Link(hip, foot)]},
    )


@cache
def gait() -> kg.results.PeriodicMotion:
    """The stable gait at the slope 0.009, from the state after heel strike."""
    guess = {"rest": 0.0, "speed": 0.0, **dict(zip(ANGLES, INITIAL["s"], strict=True))}
    return kg.build(model()).periodic_motion(guess, period=3.9, section="heel strike")


@cache
def gaits() -> kg.results.PeriodicCurve:
    """The gaits of one step at steeper and steeper slopes, beyond the bifurcation."""
    walker: kg.Solver = gait().solution.solver
    return walker.periodic_motions_curve("gamma", (SLOPES[0], SLOPES[-1]), gait(), step=0.2)


@cache
def cascade() -> np.ndarray[Any, Any]:
    """theta after each of the last heel strikes at each slope, (slopes, strides), by walking to steeper slopes."""
    angles, state = [], [gait()[name] for name in ANGLES]
    for slope in SLOPES:
        walker = gait().solution.solver.with_parameters(gamma=slope)
        walk = walker.integrate((0.0, 400.0), [0.0], [0.0], s0=state, rtol=1e-9, atol=1e-11)
        angles.append([event.s_after[0] for event in walk.events[-STRIDES:]])
        state = list(walk.events[-1].s_after)
    return np.array(angles)


def simulate() -> tuple[kg.Solver, kg.Solution]:
    """Five steps of the gait."""
    solver = gait().solution.solver
    start = [gait()[name] for name in ANGLES]
    return solver, solver.integrate((0.0, 5.0 * gait().period), [0.0], [0.0], s0=start, rtol=1e-11, atol=1e-13)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    for name, published in zip(("theta", "dtheta"), GAIT, strict=True):
        yield f"{name} after heel strike, against the paper", gait()[name] - published, 1e-9
    found = gait().multipliers[:2]
    yield "multipliers of the gait, against the paper", float(np.abs(found - MULTIPLIERS).max()), 1e-5
    (bifurcation,) = gaits().bifurcations
    yield "slope of the period doubling, against the paper", bifurcation.value - DOUBLING, 5e-5
    event = solution.events[2]
    theta, dtheta = event.s_after[0], event.s_before[2]
    descent = 2.0 * np.sin(theta) * np.sin(solver.parameters["gamma"])
    yield (
        "work of gravity in a step less the loss at heel strike",
        descent - 0.5 * (dtheta * np.sin(2 * theta)) ** 2,
        1e-9,
    )
    for slope, steps in ((0.0120, 1), (0.0165, 2), (0.0181, 4)):
        angles = cascade()[np.abs(SLOPES - slope).argmin()]
        kinds = np.unique(np.round(angles, 4)).size
        yield f"different steps of the gait at the slope {slope}, less {steps}", kinds - steps, 0.0


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    above, below = figure.subfigures(2, 1, height_ratios=(1, 2))
    _draw_walk(above.subplots(), solution)
    left, right = below.subplots(1, 2, width_ratios=(2, 3))
    t = np.linspace(0.0, gait().period, 200, endpoint=False)
    theta, phi, dtheta, dphi = solution(t)[2].T
    left.plot(theta, dtheta, label="stance leg")
    left.plot(phi - theta, dphi - dtheta, label="swing leg")
    left.set(xlabel="angle from the normal (rad)", ylabel="rate", title="one step of the gait")
    left.legend(fontsize="small", loc="upper center")
    gait_angles = [orbit["theta"] for orbit in gaits().orbits]
    right.plot(np.repeat(SLOPES, STRIDES), cascade().ravel(), ".", markersize=1, color="tab:blue")
    right.plot(gaits().values, gait_angles, "--", color="tab:orange", linewidth=1, label="one step")
    (bifurcation,) = gaits().bifurcations
    right.plot(bifurcation.value, bifurcation.orbit["theta"], "ko", markersize=4, label="period doubling")
    right.set(xlabel="slope (rad)", ylabel="theta after heel strike (rad)", title="gaits of 1, 2, 4 ... steps")
    right.legend(fontsize="small")


def _draw_walk(axis: Any, solution: kg.Solution) -> None:
    """The legs at equal intervals of time, with the stance foot a step further after each heel strike."""
    strikes = np.array([event.t for event in solution.events])
    length = 2.0 * np.sin(gait()["theta"])
    for t in np.linspace(0.0, 5.0 * gait().period, 40, endpoint=False):
        theta, phi, _, _ = solution(t)[2]
        foot = length * np.count_nonzero(strikes <= t)
        hip = foot - np.sin(theta), np.cos(theta)
        swing = hip[0] - np.sin(phi - theta), hip[1] - np.cos(phi - theta)
        axis.plot(*np.transpose([(foot, 0.0), hip]), color="tab:blue", linewidth=1.0)
        axis.plot(*np.transpose([hip, swing]), color="tab:orange", linewidth=1.0)
        axis.plot(*hip, "k.", markersize=4)
    axis.axhline(0.0, color="0.6", linewidth=0.8)
    axis.set(aspect="equal", xlabel="along the slope", title="five steps: stance leg (blue) and swing leg")


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
