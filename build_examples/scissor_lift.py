"""Scissor lift
============

A scissor lift of n stages in a vertical plane: 2n bars, 2n closed loops, one degree of freedom.

y points up. The bars A_i and B_i (i = 1 .. n) are uniform, of length ``l`` and mass ``m``, and pinned to each other
half-way. A_1 starts at L_0 = (0, 0), B_1 at R_0 = (x, 0), a massless slider. A_i runs from L_(i-1) to R_i, and B_i from
R_(i-1) to L_i. A particle of mass ``M`` sits at each of L_n and R_n. The force ``F`` acts on R_0 along +x, gravity
``g`` along -y. The coordinates are x and the angles alpha_i of A_i and beta_i of B_i from +x, and u = q'. The
constraints say that the midpoints of A_i and B_i coincide; their multipliers are the forces in these pins.

All stages move alike: alpha_i = alpha, beta_i = pi - alpha, x = l cos(alpha). The script compares kinetic and
potential energy with their closed forms in alpha, and the motion with the equation of motion for alpha.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import pi
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

STAGES = 4
DEFAULTS = {"l": 0.8, "m": 1.2, "M": 5.0, "F": -150.0, "g": 9.81}


def initial(n: int = STAGES, alpha: float = 0.5, rate: float = 0.2) -> dict[str, Any]:
    """The initial state of all stages."""
    l = DEFAULTS["l"]
    q = (l * np.cos(alpha), *(alpha, pi - alpha) * n)
    return {"t": 0.0, "q": q, "u": (-l * np.sin(alpha) * rate, *(rate, -rate) * n), "r": None}


INITIAL: dict[str, Any] = initial()


def model(n: int = STAGES) -> kg.Model:
    """The lift with ``n`` stages: 2n + 1 coordinates, 2n holonomic constraints."""
    x, *angles = coordinates = me.dynamicsymbols("x " + " ".join(f"alpha_{i} beta_{i}" for i in range(1, n + 1)))
    speeds = me.dynamicsymbols(f"u_0:{2 * n + 1}")
    l, m, M, F, g = symbols = sm.symbols("l m M F g")
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    left = me.Point("L_0")
    left.set_vel(N, 0)
    right = slider = left.locatenew("R_0", x * N.x)
    bodies, closure = [], []
    for i in range(n):
        centers, ends = [], []
        for name, end, start, angle in (("A", "R", left, angles[2 * i]), ("B", "L", right, angles[2 * i + 1])):
            bar = me.ReferenceFrame(f"{name}_{i + 1}")
            bar.orient_axis(N, N.z, angle)
            center = start.locatenew(f"center_{name}_{i + 1}", l / 2 * bar.x)
            bodies.append(me.RigidBody(bar.name, center, bar, m, (me.inertia(bar, 0, 0, m * l**2 / 12), center)))
            centers.append(center)
            ends.append(start.locatenew(f"{end}_{i + 1}", l * bar.x))
        gap = centers[0].pos_from(centers[1])
        closure += [gap.dot(N.x), gap.dot(N.y)]
        right, left = ends
    bodies += [me.Particle(f"load_{point.name}", point, M) for point in (left, right)]

    return kg.Model(
        name=f"scissor_lift_{n}",
        frame=N,
        coordinates=coordinates,
        speeds=speeds,
        kinematics=[u - q.diff(time) for q, u in zip(coordinates, speeds, strict=True)],
        bodies=bodies,
        loads=[(slider, F * N.x)],
        gravity=-g * N.y,
        holonomic_constraints=closure,
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in symbols},
    )


def inertia(n: int, alpha: Any) -> tuple[Any, Any]:
    """I and dI/dalpha of the kinetic energy ``I(alpha) alpha'^2 / 2``."""
    l, m, M = (DEFAULTS[name] for name in ("l", "m", "M"))
    squares = sum((i - 0.5) ** 2 for i in range(1, n + 1))
    along = n * m * l**2 / 2 + M * l**2  # factor of sin^2
    across = 2 * m * l**2 * squares + 2 * M * l**2 * n**2  # factor of cos^2
    value = along * np.sin(alpha) ** 2 + across * np.cos(alpha) ** 2 + n * m * l**2 / 6
    return value, (along - across) * np.sin(2 * alpha)


def potential(n: int, alpha: Any) -> tuple[Any, Any]:
    """V and dV/dalpha of the weights."""
    l, m, M, g = (DEFAULTS[name] for name in ("l", "m", "M", "g"))
    factor = (m * n**2 + 2 * M * n) * g * l  # the sum of i - 1/2 is n^2 / 2
    return factor * np.sin(alpha), factor * np.cos(alpha)


def acceleration(n: int, alpha: Any, rate: Any) -> Any:
    """alpha'' from ``I alpha'' + I' alpha'^2 / 2 + V' = -F l sin(alpha)``."""
    (I, slope), force = inertia(n, alpha), -DEFAULTS["F"] * DEFAULTS["l"] * np.sin(alpha)
    return (force - potential(n, alpha)[1] - slope * rate**2 / 2) / I


def simulate(n: int = STAGES) -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model(n))
    start = initial(n)
    return solver, solver.integrate((0.0, 0.4), start["q"], start["u"], rtol=1e-10, atol=1e-12)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    from scipy.integrate import solve_ivp

    n, states = solution.u.shape[1] // 2, list(zip(solution.t, solution.q, solution.u, strict=True))
    alpha, rate = solution.q[:, 1], solution.u[:, 1]
    kinetic, heights = inertia(n, alpha)[0] * rate**2 / 2, potential(n, alpha)[0]
    differences = [solver.kinetic_energy(*state) - K for state, K in zip(states, kinetic, strict=True)]
    yield "kinetic energy against the closed form (J)", np.abs(differences).max(), 1e-6
    differences = [solver.potential_energy(*state) - V for state, V in zip(states, heights, strict=True)]
    yield "potential energy against the closed form (J)", np.abs(differences).max(), 1e-6
    motion = solve_ivp(
        lambda t, y: (y[1], acceleration(n, *y)),
        solution.t[[0, -1]],
        (alpha[0], rate[0]),
        method="DOP853",
        t_eval=solution.t,
        rtol=1e-12,
        atol=1e-13,
    ).y
    l = DEFAULTS["l"]
    expected = np.column_stack([l * np.cos(motion[0]), *[motion[0], pi - motion[0]] * n])
    yield "coordinates against the equation for alpha (m, rad)", np.abs(solution.q - expected).max(), 1e-8
    yield "loop closure (m)", max(np.abs(solver.residuals(*state)[0]).max() for state in states), 1e-9


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((solver, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    solution.plot("x", "alpha_1", ["kinetic_energy", "potential_energy"], ax=left)
    times = np.linspace(0.0, 0.4, 3)
    kg.plot.strobe(solution, partial(_bars, solver.parameters["l"]), times=times, ax=right).set_title("0 to 0.4 s")


def _bars(l: float, x: Any, *angles: Any) -> list[tuple[Any, Any]]:
    """The bars as one line: up along A_1, B_2, A_3 and so on, and back down along the others."""
    directions = [(l * np.cos(angle), l * np.sin(angle)) for angle in angles]
    chains = []
    for start, first in (((0.0 * x, 0.0 * x), 0), ((x, 0.0 * x), 1)):
        points = [start]
        for i in range(len(angles) // 2):
            dx, dy = directions[2 * i + (first + i) % 2]
            points.append((points[-1][0] + dx, points[-1][1] + dy))
        chains.append(points)
    return [*chains[0], *reversed(chains[1])]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
