"""Ball on a surface of points
===========================

A ball that is thrown onto an uneven surface, bounces, and rolls.

The surface z = f(x, y) is a ``kg.Table`` of two arguments: a bowl with hills, of which only points are known. The
ball has the mass ``m`` and the radius ``R``; ``e`` is the coefficient of restitution and ``mu`` that of friction. The
closest point of the surface has no closed form: its coordinates are further coordinates of the model
(``kg.geometry.foot``), which conditions of tangency determine. (x, y, z) is the position of the center. The attitude
of the ball has no effect and no coordinates; the speeds are the velocity of the center and the angular velocity, both
along fixed axes.

The script compares the first impact with a ballistic flight and a search for the closest point in SciPy, the gaps with
distances that SciPy finds, and the energy: impacts and slip decrease it, rolling does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"m": 0.2, "R": 0.1, "g": 9.81, "e": 0.6, "mu": 0.3}
CONTACT = "ball"
END = 4.0
POINTS = np.linspace(-1.5, 1.5, 25)


def surface() -> kg.Table:
    """Heights over a grid, m."""
    x, y = np.meshgrid(POINTS, POINTS, indexing="ij")
    return kg.Table(POINTS, POINTS, 0.3 * (x**2 + y**2) + 0.04 * np.cos(4.0 * x) * np.cos(3.0 * y), name="ground")


def model() -> kg.Model:
    """The ball with the coordinates of its foot on the surface."""
    x, y, z = place = me.dynamicsymbols("x y z")
    vx, vy, vz, w1, w2, w3 = u = me.dynamicsymbols("v_x v_y v_z w1 w2 w3")
    m, R, g, bounce, mu = symbols = sm.symbols("m R g e mu")
    time = me.dynamicsymbols._t

    N, frame, O = me.ReferenceFrame("N"), me.ReferenceFrame("ball"), me.Point("O")
    O.set_vel(N, 0)
    frame.set_ang_vel(N, w1 * N.x + w2 * N.y + w3 * N.z)
    center = O.locatenew("center", x * N.x + y * N.y + z * N.z)
    inertia = me.inertia(N, *[sm.Rational(2, 5) * m * R**2] * 3)
    ball = me.RigidBody("ball", center, frame, m, (inertia, center))

    sphere = kg.geometry.sphere(ball, R)
    ground = kg.geometry.height_field(surface(), O, frame=N)
    foot = kg.geometry.foot("foot", sphere, ground)
    contact = kg.geometry.contact(CONTACT, sphere, ground, restitution=bounce, friction=mu, foot=foot)
    return kg.Model(
        name="ball_on_table",
        frame=N,
        coordinates=[*place, *foot.coordinates],
        speeds=[*u, *foot.speeds],
        kinematics=[
            *(v - p.diff(time) for v, p in zip((vx, vy, vz), place, strict=True)),
            *foot.kinematics,
        ],
        bodies=[ball],
        gravity=-g * N.z,
        holonomic_constraints=foot.constraints,
        dependent_speeds=foot.speeds,
        contacts=[contact],
        outputs={"gap": contact.gap},
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in symbols},
        shapes={ball: kg.shapes.Sphere(0.1), N: _mesh()},
    )


def _mesh() -> kg.shapes.Mesh:
    """The surface as triangles."""
    count = len(POINTS)
    heights = surface().python(*np.meshgrid(POINTS, POINTS, indexing="ij"))
    vertices = [(POINTS[i], POINTS[j], heights[i, j]) for i in range(count) for j in range(count)]
    corners = [(i * count + j, (i + 1) * count + j) for i in range(count - 1) for j in range(count - 1)]
    return kg.shapes.Mesh(vertices, [face for a, b in corners for face in ((a, b, b + 1), (a, b + 1, a + 1))])


INITIAL: dict[str, Any] = {
    "t": 0.0,
    "q": (0.7, -0.2, 0.9, 0.7, -0.2),
    "u": (-0.5, 0.8, 0.0, 0.0, 0.0, 20.0, 0.0, 0.0),
    "r": None,
}


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    free = [str(x) for x in (*solver.description.coordinates[:3], *solver.description.speeds[:6])]
    q, u = solver.make_consistent(0.0, INITIAL["q"], INITIAL["u"], fixed=free)
    return solver, solver.integrate((0.0, END), q, u, rtol=1e-9, atol=1e-11)


@cache
def _spline() -> Any:
    from scipy.interpolate import RectBivariateSpline

    x, y = np.meshgrid(POINTS, POINTS, indexing="ij")
    return RectBivariateSpline(POINTS, POINTS, 0.3 * (x**2 + y**2) + 0.04 * np.cos(4.0 * x) * np.cos(3.0 * y))


def distance(center: np.ndarray) -> float:
    """From a point above the surface to its closest point, m, by a search."""
    from scipy.optimize import minimize

    def square(at: np.ndarray) -> float:
        return float((at[0] - center[0]) ** 2 + (at[1] - center[1]) ** 2 + (_spline()(*at)[0, 0] - center[2]) ** 2)

    runs = [minimize(square, center[:2] + move, tol=1e-15) for move in ((0.0, 0.0), (0.1, 0.1), (-0.1, 0.1))]
    return float(np.sqrt(min(run.fun for run in runs)))


def first_impact() -> float:
    """The time at which the ball that flies freely touches the surface, s."""
    from scipy.optimize import brentq

    place, speed = np.array(INITIAL["q"][:3]), np.array(INITIAL["u"][:3])
    fall = np.array([0.0, 0.0, -DEFAULTS["g"] / 2])

    def gap(t: float) -> float:
        return distance(place + speed * t + fall * t**2) - DEFAULTS["R"]

    end = next(t for t in np.linspace(0.0, 1.0, 51) if gap(t) < 0.0)
    return float(brentq(gap, end - 0.02, end, xtol=1e-12))


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    impacts = [event for event in solution.events if event.kind == "impact"]
    yield "time of the first impact (s)", impacts[0].t - first_impact(), 1e-7
    some = slice(None, None, len(solution.t) // 20)
    found = [distance(row[:3]) - DEFAULTS["R"] for row in solution.q[some]]
    yield "gaps less distances (m)", np.abs(solution.outputs["gap"][some] - found).max(), 1e-6
    yield "increase of the energy (J)", max(0.0, float(np.diff(solution.energy).max())), 1e-8
    rolling = solution.t > solution.contacts.phases[-1].t_start
    yield "energy drift while it rolls (J)", float(np.ptp(solution.energy[rolling])), 1e-8
    states = zip(solution.t, solution.q, solution.u, strict=True)
    positions = [np.abs(solver.residuals(*state)[0]).max() for state in states]
    yield "tangency at the foot (m)", max(positions), 1e-5


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    seen, over_time = figure.subplots(1, 2)
    heights = surface().python(*np.meshgrid(POINTS, POINTS, indexing="ij"))
    seen.contourf(POINTS, POINTS, heights.T, 20, cmap="Greys", alpha=0.6)
    seen.plot(*solution.q[:, :2].T)
    seen.set(xlabel="x (m)", ylabel="y (m)", aspect="equal", title="seen from above")
    over_time.plot(solution.t, solution.q[:, 2], label="height of the center (m)")
    over_time.plot(solution.t, solution.energy, label="energy (J)")
    over_time.set_xlabel("t (s)")
    over_time.legend()


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
