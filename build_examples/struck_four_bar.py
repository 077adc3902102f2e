"""Struck four-bar linkage
=======================

A four-bar linkage that is struck at a joint.

The pins are at O = (0, 0) and C = (0, L4), y points up, and the rods are massless. P1 = ``L1`` (cos q1, sin q1) has
the mass ``m1``, and P2 = C + (q2, q3) the mass ``m2``; the rods P2 - C and P2 - P1 have the lengths ``L3`` and ``L2``.
u = (L1 q1', q2', q3'). The linkage is at rest at q1 = 0 when the impulse (1e6, 1e6) N s acts on P2.

Source: Bajodah (2003), Example 6.1, (440) to (461): u after the impulse is (2.7250e4, -0.6021e4, 0.6846e4) m/s, with
the impulse in kN s where "KN" is printed. Here the impulse is applied by an event, and the linkage continues to move
after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import hypot, sqrt
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"m1": 1.0, "m2": 1.0, "L1": 1.0, "L2": 3.0, "L3": 2.5, "L4": 2.5}
IMPULSE = (1e6, 1e6)
THESIS = (2.7250e4, -0.6021e4, 0.6846e4)
T_BLOW, T_END = 1e-4, 6e-4


def _start() -> dict[str, Any]:
    """At rest at q1 = 0, with P2 at the intersection of two circles on the side away from P1."""
    L1, L2, L3, L4 = (DEFAULTS[name] for name in ("L1", "L2", "L3", "L4"))
    distance = hypot(L1, L4)
    along = (L3**2 - L2**2 + distance**2) / (2 * distance)
    across = sqrt(L3**2 - along**2)
    towards = (L1 / distance, -L4 / distance)
    q2 = along * towards[0] + across * towards[1]
    q3 = along * towards[1] - across * towards[0]
    return {"t": 0.0, "q": (0.0, q2, q3), "u": (0.0, 0.0, 0.0), "r": None}


INITIAL: dict[str, Any] = _start()


def model(struck: bool = True) -> kg.Model:
    """The linkage with its two loop equations; if ``struck``, the event "struck" applies the impulse "blow"."""
    q1, q2, q3 = me.dynamicsymbols("q1 q2 q3")
    u1, u2, u3 = me.dynamicsymbols("u1 u2 u3")
    m1, m2, L1, L2, L3, L4 = symbols = sm.symbols(tuple(DEFAULTS))
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    P1 = O.locatenew("P1", L1 * (sm.cos(q1) * N.x + sm.sin(q1) * N.y))
    P2 = O.locatenew("P2", q2 * N.x + (L4 + q3) * N.y)
    pivot = O.locatenew("pivot", L4 * N.y)
    rod = P2.pos_from(P1)
    blow: dict[str, Any] = {
        "impulses": {"blow": [(P2, IMPULSE[0] * N.x + IMPULSE[1] * N.y)]},
        "events": (kg.Event("struck", time - T_BLOW, direction=1, impulse="blow"),),
    }

    return kg.Model(
        name="struck_four_bar" if struck else "four_bar",
        frame=N,
        coordinates=(q1, q2, q3),
        speeds=(u1, u2, u3),
        kinematics=(u1 - L1 * q1.diff(time), u2 - q2.diff(time), u3 - q3.diff(time)),
        bodies=(me.Particle("P1", P1, m1), me.Particle("P2", P2, m2)),
        holonomic_constraints=(q2**2 + q3**2 - L3**2, rod.dot(rod) - L2**2),
        dependent_speeds=(u2, u3),
        potential_energy=0,
        **(blow if struck else {}),
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in symbols},
        shapes={
            "P1": [kg.shapes.Sphere(0.05), kg.shapes.Link(O, P1)],
            "P2": [kg.shapes.Sphere(0.05), kg.shapes.Link(pivot, P2)],
            N: kg.shapes.Link(P1, P2),
        },
    )


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    return solver, solver.integrate((0.0, T_END), INITIAL["q"], INITIAL["u"], rtol=1e-11, atol=1e-9)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    struck = solver.impulse(T_BLOW, INITIAL["q"], INITIAL["u"], "blow")
    yield "speeds after the impulse against the five digits of the thesis (m/s)", np.abs(struck.u - THESIS).max(), 0.5
    (event,) = solution.events
    yield "speeds after the event against solver.impulse (m/s)", np.abs(event.u_after - struck.u).max(), 1e-9
    momentum = solver.momentum(T_BLOW, INITIAL["q"], struck.u) - (0.0, *IMPULSE) - struck.constraint_impulse
    yield "balance of momentum (N s)", np.abs(momentum).max(), 1e-8
    yield "power of the constraint impulse (W s)", float(abs(struck.constraint_impulse @ struck.u)) / 1e10, 1e-14
    states = list(zip(solution.t, solution.q, solution.u, strict=True))
    moving = [solver.energy(*state) for state in states if state[0] > T_BLOW]
    yield "relative energy drift after the impulse", np.ptp(moving) / moving[0], 1e-8
    residuals = [solver.residuals(*state)[0] for state in states]
    yield "loop equations (m^2)", np.abs(residuals).max(), 1e-7


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    _, speeds = solution.plot("coordinates", "speeds", ax=left)
    speeds.plot([T_BLOW] * 3, THESIS, "k+", label="thesis")
    speeds.legend(fontsize="small")
    kg.plot.strobe(solution, _joints, times=np.linspace(T_BLOW, T_END, 8), ax=right).set_title("after the blow")


def _joints(q1: Any, q2: Any, q3: Any) -> list[tuple[Any, Any]]:
    L1, L4 = DEFAULTS["L1"], DEFAULTS["L4"]
    return [(0.0, 0.0), (L1 * np.cos(q1), L1 * np.sin(q1)), (q2, L4 + q3), (0.0, L4)]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
