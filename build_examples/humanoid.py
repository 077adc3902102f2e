"""Humanoid in free flight
=======================

A humanoid in free flight: a tree of 13 bodies with 30 degrees of freedom, its base free in Euler parameters.

x points forward, y to the left, z up; gravity ``g`` acts along -z. With all angles zero the humanoid stands upright,
arms hanging, feet forward, and the frames of all segments are parallel. The base is the pelvis: (x, y, z) is the point
half-way between the hips, (e0, e1, e2, e3) are the Euler parameters of the pelvis, with e0 the scalar. The other
coordinates are angles about the axes of the segments: ``waist``, ``neck``, ``shoulder`` and ``hip`` turn about y, then
about the new x, then about the new z; ``elbow``, ``knee`` and ``ankle`` turn about y. Suffixes ``_l`` and ``_r`` are
left and right. Angles are positive about the positive axis, on both sides.

q = (x, y, z, e0, e1, e2, e3, the angles in the order of ``ANGLES``), u = (x', y', z', w1, w2, w3, rates of the angles)
with the angular velocity of the pelvis in its own frame. The torque of each angle is ``-k angle - d angle'``. A segment
has the mass ``m_NAME``, its center at (``cx_NAME``, 0, ``cz_NAME``) from the joint that carries it, and the central
inertias ``Ixx_NAME``, ``Iyy_NAME``, ``Izz_NAME``. A joint is at (0, ``y_NAME``, ``z_NAME``) in the frame of its parent,
from the joint that carries the parent; on the right side at ``-y_NAME``. Parameters that would be zero are left out.

The segments are those of a man of 73 kg and 1.74 m, rounded, after de Leva (1996), J. Biomech. 29, table 4: the pelvis
is his lower trunk, the thorax the middle and upper one, and the forearm includes the hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg


class Segment(NamedTuple):
    """Mass (kg), x and z of the center (m), central inertias about x, y, z (kg m^2)."""

    mass: float
    center: tuple[float, float]
    inertia: tuple[float, float, float]


class Joint(NamedTuple):
    """The segments that it connects, the axes of its rotations, y and z of its position in the parent (m)."""

    parent: str
    child: str
    axes: str
    position: tuple[float, float]


SEGMENTS: Final = {
    "pelvis": Segment(8.15, (0.0, 0.057), (0.066, 0.053, 0.06)),
    "thorax": Segment(23.57, (0.0, 0.226), (0.579, 0.427, 0.269)),
    "head": Segment(5.07, (0.0, 0.121), (0.0274, 0.0297, 0.0204)),
    "upper_arm": Segment(1.98, (0.0, -0.163), (0.0128, 0.0114, 0.0039)),
    "forearm": Segment(1.63, (0.0, -0.182), (0.0226, 0.0217, 0.0018)),
    "thigh": Segment(10.34, (0.0, -0.173), (0.2, 0.2, 0.041)),
    "shank": Segment(3.16, (0.0, -0.194), (0.0387, 0.0369, 0.0063)),
    "foot": Segment(1.0, (0.055, -0.04), (0.001, 0.004, 0.0044)),
}
JOINTS: Final = {
    "waist": Joint("pelvis", "thorax", "yxz", (0.0, 0.146)),
    "neck": Joint("thorax", "head", "yxz", (0.0, 0.458)),
    "shoulder": Joint("thorax", "upper_arm", "yxz", (0.19, 0.4)),
    "elbow": Joint("upper_arm", "forearm", "y", (0.0, -0.282)),
    "hip": Joint("pelvis", "thigh", "yxz", (0.085, 0.0)),
    "knee": Joint("thigh", "shank", "y", (0.0, -0.422)),
    "ankle": Joint("shank", "foot", "y", (0.0, -0.44)),
}
TRUNK: Final = ("pelvis", "thorax", "head")
"""The segments in the middle; the others exist on both sides, and so do the joints that carry them."""

DEFAULTS: Final = {
    "k": 20.0,
    "d": 0.3,
    "g": 9.81,
    **{f"m_{name}": segment.mass for name, segment in SEGMENTS.items()},
    **{f"c{i}_{name}": c for name, segment in SEGMENTS.items() for i, c in zip("xz", segment.center, strict=True) if c},
    **{f"I{i}{i}_{name}": I for name, segment in SEGMENTS.items() for i, I in zip("xyz", segment.inertia, strict=True)},
    **{f"{i}_{name}": c for name, joint in JOINTS.items() for i, c in zip("yz", joint.position, strict=True) if c},
}
MASS: Final = sum(segment.mass * (1 if name in TRUNK else 2) for name, segment in SEGMENTS.items())


def sided() -> Iterator[tuple[str, str, Joint]]:
    """All joints with their parents first: the side ("", "_l" or "_r"), the name without it, and the joint."""
    for side in ("", "_l", "_r"):
        for name, joint in JOINTS.items():
            if (joint.child in TRUNK) == (not side):
                yield side, name, joint


ANGLES: Final = tuple(f"{name}{side}_{axis}" for side, name, joint in sided() for axis in joint.axes)
POSTURE: Final = {
    "waist_y": 0.2,
    "shoulder_l_x": 1.0,
    "shoulder_r_x": -0.4,
    "elbow_l_y": -0.5,
    "elbow_r_y": -0.9,
    "hip_l_y": -0.6,
    "hip_r_y": -0.8,
    "knee_l_y": 0.9,
    "knee_r_y": 1.1,
}
INITIAL: dict[str, Any] = {
    "t": 0.0,
    "q": (0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, *(POSTURE.get(name, 0.0) for name in ANGLES)),
    "u": (0.5, 0.0, 4.0, 0.4, 5.0, 0.2, *(0.0 for _ in ANGLES)),
    "r": None,
}
DURATION = 1.0


def model() -> kg.Model:
    """The humanoid. The output ``center`` is the position of its mass center."""
    *position, e0, e1, e2, e3 = me.dynamicsymbols("x y z e0:4")
    angles = dict(zip(ANGLES, me.dynamicsymbols(ANGLES), strict=True))
    u = me.dynamicsymbols(f"u1:{7 + len(ANGLES)}")
    rates = dict(zip(ANGLES, u[6:], strict=True))
    p = {name: sm.Symbol(name) for name in DEFAULTS}
    time = me.dynamicsymbols._t

    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    pelvis = me.ReferenceFrame("pelvis")
    pelvis.orient_quaternion(N, (e0, e1, e2, e3))
    pelvis.set_ang_vel(N, u[3] * pelvis.x + u[4] * pelvis.y + u[5] * pelvis.z)
    turning = sm.Matrix([[-e1, -e2, -e3], [e0, -e3, e2], [e3, e0, -e1], [-e2, e1, e0]]) * sm.Matrix(u[3:6]) / 2
    hips = O.locatenew("hips", sum((c * axis for c, axis in zip(position, N, strict=True)), 0 * N.x))
    hips.set_vel(N, sum((v * axis for v, axis in zip(u, N, strict=False)), 0 * N.x))

    places = {"pelvis": (hips, pelvis)}
    loads = []
    for side, name, joint in sided():
        origin, parent = places[joint.parent if joint.parent in TRUNK else joint.parent + side]
        y, z = p.get(f"y_{name}", 0), p.get(f"z_{name}", 0)
        point = origin.locatenew(name + side, (-y if side == "_r" else y) * parent.y + z * parent.z)
        frame = parent
        for axis in joint.axes:
            angle = f"{name}{side}_{axis}"
            before, frame = frame, me.ReferenceFrame(angle)
            line = getattr(before, axis)
            frame.orient_axis(before, line, angles[angle])
            frame.set_ang_vel(before, rates[angle] * line)
            torque = (-p["k"] * angles[angle] - p["d"] * rates[angle]) * line
            loads += [(frame, torque), (before, -torque)]
        places[joint.child + side] = (point, frame)
    bodies = [_body(name, *place, p) for name, place in places.items()]
    mass = sm.Add(*(body.mass for body in bodies))
    center = sum((body.mass / mass * body.masscenter.pos_from(O) for body in bodies), 0 * N.x)
    return kg.Model(
        name="humanoid",
        frame=N,
        coordinates=(*position, e0, e1, e2, e3, *angles.values()),
        speeds=u,
        kinematics=(
            *(v - c.diff(time) for v, c in zip(u, position, strict=False)),
            *(e.diff(time) - rate for e, rate in zip((e0, e1, e2, e3), turning, strict=True)),
            *(rates[name] - angle.diff(time) for name, angle in angles.items()),
        ),
        bodies=bodies,
        gravity=-p["g"] * N.z,
        loads=loads,
        potential_energy=p["k"] / 2 * sm.Add(*(angle**2 for angle in angles.values())),
        parameters={p[name]: value for name, value in DEFAULTS.items()},
        outputs={"center": (center, N)},
    )


def _body(name: str, joint: me.Point, frame: me.ReferenceFrame, p: Mapping[str, sm.Symbol]) -> me.RigidBody:
    kind = name.removesuffix("_l").removesuffix("_r")
    center = joint.locatenew(f"{name}_center", p.get(f"cx_{kind}", 0) * frame.x + p[f"cz_{kind}"] * frame.z)
    inertia = me.inertia(frame, *(p[f"I{axis}{axis}_{kind}"] for axis in "xyz"))
    return me.RigidBody(name, center, frame, p[f"m_{kind}"], (inertia, center))


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    span = (0.0, DURATION)
    return solver, solver.integrate(span, INITIAL["q"], INITIAL["u"], method="dop853", rtol=1e-10, atol=1e-12)


def momenta(solver: kg.Solver, solution: kg.Solution) -> tuple[np.ndarray, np.ndarray]:
    """Momentum, and angular momentum about the mass center, (n_t, 3) each, in the inertial frame.

    The generalized momenta of x', y', z' are those of the whole body. Those of w1, w2, w3 are its angular momentum
    about the point between the hips, in the frame of the pelvis.
    """
    general = np.array([solver.momentum(*state) for state in zip(solution.t, solution.q, solution.u, strict=True)])
    momentum, about_hips = general[:, :3], np.einsum("tij,tj->ti", rotations(solution.q[:, 3:7]), general[:, 3:6])
    center = solver.output("center", solution.t, solution.q, solution.u)
    return momentum, about_hips + np.cross(solution.q[:, :3] - center, momentum)


def rotations(e: np.ndarray) -> np.ndarray:
    """Rotation matrices (n, 3, 3) from the pelvis to the inertial frame, of Euler parameters (n, 4)."""
    e0, e1, e2, e3 = e.T
    rows = [
        [1 - 2 * (e2**2 + e3**2), 2 * (e1 * e2 - e0 * e3), 2 * (e1 * e3 + e0 * e2)],
        [2 * (e1 * e2 + e0 * e3), 1 - 2 * (e1**2 + e3**2), 2 * (e2 * e3 - e0 * e1)],
        [2 * (e1 * e3 - e0 * e2), 2 * (e2 * e3 + e0 * e1), 1 - 2 * (e1**2 + e2**2)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    t, q, u = solution.t, solution.q, solution.u
    momentum, angular = momenta(solver, solution)
    falling = np.array([0.0, 0.0, -MASS * solver.parameters["g"]])
    yield "change of momentum less M g t (kg m/s)", np.abs(np.ptp(momentum - t[:, None] * falling, axis=0)).max(), 1e-9
    yield "change of angular momentum (kg m^2/s)", np.abs(np.ptp(angular, axis=0)).max(), 1e-8
    center = solver.output("center", t, q, u)
    parabola = center[0] + (momentum[0] * t[:, None] + falling * t[:, None] ** 2 / 2) / MASS
    yield "mass center off its parabola (m)", np.abs(center - parabola).max(), 1e-9
    yield "energy and loss by the dampers (J)", np.ptp(solver.energy(t, q, u) + loss(solver, solution)), 1e-6


def loss(solver: kg.Solver, solution: kg.Solution) -> np.ndarray:
    """Energy (n_t,) that the dampers have taken up, by Gauss-Legendre quadrature of their power in each step."""
    nodes, weights = np.polynomial.legendre.leggauss(6)
    steps = np.diff(solution.t)
    times = solution.t[:-1, None] + steps[:, None] * (1 + nodes) / 2
    rates = solution(times.ravel())[1][:, 6:]
    power = solver.parameters["d"] * (rates**2).sum(axis=1).reshape(times.shape)
    return np.concatenate([[0.0], np.cumsum(steps / 2 * (power @ weights))])


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((solver, solution),) = runs.values()
    left, right = figure.subfigures(1, 2)
    above, below = left.subplots(2, 1, sharex=True)
    above.plot(solution.t, solution.u[:, 3:6], label=["w1", "w2", "w3"])
    above.set_ylabel("pelvis (rad/s)")
    shown = ("hip_l_y", "knee_l_y", "shoulder_l_x", "waist_y")
    below.plot(solution.t, solution.q[:, [7 + ANGLES.index(name) for name in shown]], label=shown)
    below.set(xlabel="t (s)", ylabel="angles (rad)")
    for axes in (above, below):
        axes.legend(fontsize="small")
    above, below = right.subplots(2, 1, sharex=True)
    _, angular = momenta(solver, solution)
    above.plot(solution.t, angular, label=["x", "y", "z"])
    above.set_ylabel("angular momentum (kg m$^2$/s)")
    above.legend(fontsize="small")
    energy = solver.energy(solution.t, solution.q, solution.u)
    below.plot(solution.t, energy, label="energy")
    below.plot(solution.t, energy + loss(solver, solution), label="with the loss by the dampers")
    below.set(xlabel="t (s)", ylabel="J")
    below.legend(fontsize="small")


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
