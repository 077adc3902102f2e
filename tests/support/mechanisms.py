"""Mechanisms with redundant constraints, or with constraints that become dependent on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

TIME = me.dynamicsymbols._t
BRICARD_START = np.array([-1.0, 1.0, -1.0, 1.0, -1.0]) * np.pi / 2


def _rod(name: str, frame: Any, start: Any, inertia: Any) -> tuple[me.RigidBody, Any]:
    """A uniform rod (1 m, 1 kg) along x of its frame from ``start``, and its end."""
    center = start.locatenew(f"center of {name}", frame.x / 2)
    end = start.locatenew(f"end of {name}", frame.x)
    return me.RigidBody(name, center, frame, sm.Integer(1), (inertia, center)), end


def bricard() -> kg.Model:
    """Bricard's loop of six rods with six revolute joints, each perpendicular to its rods and to the next one.

    The benchmark of the IFToMM library: one rod is fixed, five of 1 m and 1 kg move under gravity. Grubler's count
    gives no degree of freedom, the mechanism has one. Coordinates are the angles of five joints; the loop is cut at
    the sixth, where place and direction of its axis give five equations, four of them independent.
    """
    angles, speeds = me.dynamicsymbols("a1:6"), me.dynamicsymbols("w1:6")
    N = base = me.ReferenceFrame("N")
    origin = end = me.Point("O")
    origin.set_vel(N, 0)
    bodies = []
    for k, angle in enumerate(angles):
        frame = me.ReferenceFrame(f"A{k}")
        frame.orient_axis(base, base.z, angle)
        body, end = _rod(f"rod {k}", frame, end, me.inertia(frame, 0, sm.Rational(1, 12), sm.Rational(1, 12)))
        bodies.append(body)
        base = me.ReferenceFrame(f"B{k}")
        base.orient_axis(frame, frame.x, (-1) ** k * sm.pi / 2)
    gap = end.pos_from(origin) + N.x
    closure = [gap.dot(axis) for axis in (N.x, N.y, N.z)] + [base.z.dot(axis) for axis in (N.x, N.z)]
    return _loop("bricard", N, angles, speeds, bodies, closure)


def four_bars(loops: int, tilted: bool = False) -> kg.Model:
    """A chain of ``loops`` four-bars: ``loops + 1`` cranks on pins 1 m apart, their ends connected, all rods alike.

    The benchmark of the IFToMM library. All loops are flat at once: there each of them loses a row of rank. One of the
    two rows of a loop vanishes there; with ``tilted``, its axes at 45 degrees, both rows become parallel instead.
    """
    count = 2 * loops + 1
    angles, speeds = me.dynamicsymbols(f"a0:{count}"), me.dynamicsymbols(f"w0:{count}")
    N = me.ReferenceFrame("N")
    origin = me.Point("O")
    origin.set_vel(N, 0)
    bodies, tips, closure = [], [], []
    for k, angle in enumerate(angles):
        frame = me.ReferenceFrame(f"A{k}")
        frame.orient_axis(N, N.z, angle)
        crank = k <= loops
        start = origin.locatenew(f"pin {k}", k * N.x) if crank else tips[k - loops - 1]
        if crank:
            start.set_vel(N, 0)
        body, end = _rod(f"rod {k}", frame, start, me.inertia(frame, 0, 0, sm.Rational(1, 12)))
        bodies.append(body)
        if crank:
            tips.append(end)
        else:
            gap = end.pos_from(tips[k - loops])
            axes = ((N.x + N.y) / sm.sqrt(2), (N.x - N.y) / sm.sqrt(2)) if tilted else (N.x, N.y)
            closure += [gap.dot(axis) for axis in axes]
    return _loop(f"four_bars_{loops}{'_tilted' * tilted}", N, angles, speeds, bodies, closure)


def upright(loops: int) -> tuple[np.ndarray, np.ndarray]:
    """Position and speeds of the chain with its cranks upright, turning at 1 rad/s towards the right."""
    return (
        np.array([np.pi / 2] * (loops + 1) + [0.0] * loops),
        np.array([-1.0] * (loops + 1) + [0.0] * loops),
    )


def blocks(constraints: Any = None, *, masses: tuple[int, int] = (1, 2), pushed: int = 0, **fields: Any) -> kg.Model:
    """Two blocks (kg) on a line at x and y, the one ``pushed`` by 3 N; ``constraints(x, y)`` in positions.

    Further ``fields`` of the model may be functions of the coordinates and speeds x, y, u, v.
    """
    x, y, u, v = me.dynamicsymbols("x y u v")
    N = me.ReferenceFrame("N")
    origin = me.Point("O")
    origin.set_vel(N, 0)
    points = [origin.locatenew(name, c * N.x) for name, c in (("A", x), ("B", y))]
    return kg.Model(
        name="two blocks",
        frame=N,
        coordinates=[x, y],
        speeds=[u, v],
        kinematics=[x.diff(TIME) - u, y.diff(TIME) - v],
        bodies=[me.Particle(f"block {p.name}", p, m) for p, m in zip(points, masses, strict=True)],
        loads=[(points[pushed], 3 * N.x)],
        holonomic_constraints=constraints(x, y) if constraints else [],
        **{name: make(x, y, u, v) if callable(make) else make for name, make in fields.items()},
    )


def _loop(name: str, N: Any, angles: Any, speeds: Any, bodies: Any, closure: Any) -> kg.Model:
    return kg.Model(
        name=name,
        frame=N,
        coordinates=angles,
        speeds=speeds,
        kinematics=[a.diff(TIME) - w for a, w in zip(angles, speeds, strict=True)],
        bodies=bodies,
        gravity=-9.81 * N.y,
        holonomic_constraints=closure,
    )
