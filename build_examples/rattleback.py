"""Rattleback
==========

A half ellipsoid that reverses its spin.

The body is an ellipsoid with the semi-axes ``a``, ``b``, ``c`` whose mass center is ``h`` below its center. Its
principal axes of inertia are turned against those of the surface (``Ixy``), so that rattling and spin are coupled: spun
in one direction, it begins to rattle, stops, and spins in the other direction. It rests on a rough plane, a contact of
``kg.geometry``; with ``mu`` = 1 it sticks throughout, so that it rolls. Z points up, (x, y, z) is the position of the
mass center, and the body is oriented by yaw, roll and pitch (3-1-2). The speeds are the angular velocity along the axes
of the body and the velocity of the mass center.

The rolling ellipsoid is the model of T. R. Kane, D. A. Levinson, Realistic mathematical modeling of the rattleback,
International Journal of Non-Linear Mechanics 17 (1982). The script compares the motion with Newton's and Euler's
equations of the rolling ellipsoid, in the vertical and the angular velocity along the axes of the body, which SciPy
integrates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import radians
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {
    "m": 1.0,
    "g": 9.81,
    "a": 0.2,
    "b": 0.03,
    "c": 0.02,
    "h": 0.01,
    "Ixx": 2e-4,
    "Iyy": 1.6e-3,
    "Izz": 1.7e-3,
    "Ixy": -2e-5,
    "mu": 1.0,
}
CONTACT = "table"
END = 3.5
TILT, SPIN = radians(0.5), -5.0


def model() -> kg.Model:
    """The ellipsoid, free in space, and its contact with the plane."""
    x, y, z, yaw, roll, pitch = q = me.dynamicsymbols("x y z yaw roll pitch")
    w1, w2, w3, vx, vy, vz = u = me.dynamicsymbols("w1 w2 w3 v_x v_y v_z")
    m, g, a, b, c, h, Ixx, Iyy, Izz, Ixy, mu = symbols = sm.symbols("m g a b c h Ixx Iyy Izz Ixy mu")
    time = me.dynamicsymbols._t

    N, body, O = me.ReferenceFrame("N"), me.ReferenceFrame("body"), me.Point("O")
    O.set_vel(N, 0)
    body.orient_body_fixed(N, (yaw, roll, pitch), "312")
    turning = body.ang_vel_in(N)
    body.set_ang_vel(N, w1 * body.x + w2 * body.y + w3 * body.z)
    mass_center = O.locatenew("mass_center", x * N.x + y * N.y + z * N.z)
    mass_center.set_vel(N, vx * N.x + vy * N.y + vz * N.z)
    center = mass_center.locatenew("center", h * body.z)

    ellipsoid = kg.geometry.ellipsoid(center, a, b, c, frame=body)
    table = kg.geometry.plane(O, N.z)
    inertia = me.inertia(body, Ixx, Iyy, Izz, ixy=Ixy)
    return kg.Model(
        name="rattleback",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[
            *(w - turning.dot(axis) for w, axis in zip((w1, w2, w3), body, strict=True)),
            *(v - p.diff(time) for v, p in zip((vx, vy, vz), (x, y, z), strict=True)),
        ],
        bodies=[me.RigidBody("body", mass_center, body, m, (inertia, mass_center))],
        gravity=-g * N.z,
        contacts=[kg.geometry.contact(CONTACT, ellipsoid, table, friction=mu)],
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in symbols},
        shapes={body: kg.shapes.Ellipsoid(0.2, 0.03, 0.02, offset=(0, 0, 0.01)), N: kg.shapes.Plane(0.5)},
    )


def contact_arm(vertical: np.ndarray) -> np.ndarray:
    """From the mass center to the lowest point, from the vertical (3,), both in the axes of the body."""
    p = DEFAULTS
    squares = np.array([p["a"], p["b"], p["c"]]) ** 2
    arm: np.ndarray = np.array([0.0, 0.0, p["h"]]) - squares * vertical / np.sqrt(vertical @ (squares * vertical))
    return arm


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The cross product; NumPy's takes ten times as long for two vectors."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def rolling_rates(_: float, state: np.ndarray) -> np.ndarray:
    """The rates of the vertical (3,) and of the angular velocity (3,) of the rolling ellipsoid, in its axes."""
    p, n, w = DEFAULTS, state[:3], state[3:]
    squares = np.array([p["a"], p["b"], p["c"]]) ** 2
    inertia = np.array([[p["Ixx"], p["Ixy"], 0.0], [p["Ixy"], p["Iyy"], 0.0], [0.0, 0.0, p["Izz"]]])
    size = np.sqrt(n @ (squares * n))
    r, n_rate = contact_arm(n), cross(n, w)
    r_rate = -squares * n_rate / size + squares * n * (n @ (squares * n_rate)) / size**3
    v = cross(r, w)
    # The contact force is m (v' + w x v + g n) with v = r x w; what it has of w' is on the left.
    rest = cross(r_rate, w) + cross(w, v) + p["g"] * n
    at_contact = inertia + p["m"] * (r @ r * np.eye(3) - np.outer(r, r))
    moment = p["m"] * cross(r, rest) - cross(w, inertia @ w)
    return np.concatenate([n_rate, np.linalg.solve(at_contact, moment)])


def vertical(q: np.ndarray) -> np.ndarray:
    """The vertical in the axes of the body, (..., 3), from the coordinates (..., 6)."""
    roll, pitch = q[..., 4], q[..., 5]
    return np.stack([-np.cos(roll) * np.sin(pitch), np.sin(roll), np.cos(roll) * np.cos(pitch)], axis=-1)


def _start() -> dict[str, Any]:
    """Spinning about the vertical with a little tilt, and rolling."""
    q = np.array([0.0, 0.0, 0.0, 0.0, TILT, TILT])
    n = vertical(q)
    w = SPIN * n
    q[2] = -contact_arm(n) @ n
    cr, sr, cp, sp = np.cos(TILT), np.sin(TILT), np.cos(TILT), np.sin(TILT)
    axes = np.array([[cp, 0, sp], [sr * sp, cr, -sr * cp], [-cr * sp, sr, cr * cp]])
    return {"t": 0.0, "q": tuple(q), "u": (*w, *(axes @ cross(contact_arm(n), w))), "r": None}


INITIAL: dict[str, Any] = _start()


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    return solver, solver.integrate((0.0, END), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12)


def spin(solution: kg.Solution) -> np.ndarray:
    """The angular velocity about the vertical, rad/s."""
    return np.asarray(np.sum(vertical(solution.q) * solution.u[:, :3], axis=1))


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    from scipy.integrate import solve_ivp

    start = np.concatenate([vertical(solution.q[0]), solution.u[0, :3]])
    times = np.linspace(0.0, END, 101)
    run = solve_ivp(rolling_rates, (0.0, END), start, "DOP853", rtol=1e-10, atol=1e-12, t_eval=times)
    q, u = solution(times)
    yield "vertical in the body", np.abs(run.y[:3].T - vertical(q)).max(), 1e-6
    yield "angular velocity (rad/s)", np.abs(run.y[3:].T - u[:, :3]).max(), 1e-4
    yield "energy drift (J)", float(np.ptp(solution.energy)), 1e-8
    yield "phases other than rolling", float(len(solution.contacts.phases) - 1), 0.5
    yield "spin from -5 rad/s to less than 1 rad/s (0: it is reversed)", float(spin(solution).max() < 1.0), 0.5


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot(solution.t, spin(solution))
    upper.axhline(0.0, color="k", linewidth=0.6)
    upper.set_ylabel("spin (rad/s)")
    for name, angle in zip(("roll", "pitch"), solution.q[:, 4:].T, strict=True):
        lower.plot(solution.t, np.degrees(angle), label=name)
    lower.set(xlabel="t (s)", ylabel="angle (degrees)")
    lower.legend()


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
