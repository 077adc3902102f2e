"""Robot arm from a file
=====================

A six-axis arm with a gripper, read from the URDF file robot_arm.urdf, that swings down from a raised posture.

The motors give no torque; the joints have viscous damping. ``kg.from_urdf`` makes the coordinates ``q_turn``,
``q_lift``, ``q_bend``, ``q_roll``, ``q_pitch`` and ``q_spin`` (rad), their rates ``u_turn`` and so on, and the torques
``tau_turn`` and so on as inputs, zero by default. x points forward, z up, and with all angles zero the upper arm stands
upright and the forearm points forward. Flange and gripper, which a fixed joint connects, are one body; the base is part
of the world.

The reference is the recursive Newton-Euler algorithm (Luh, Walker and Paul 1980) in NumPy, which reads the same file by
itself: from the accelerations of the solver it must find the torques that acted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

import kanegen as kg

FILE = Path(__file__).with_name("robot_arm.urdf")
INITIAL: dict[str, Any] = {
    "t": 0.0,
    "q": (0.3, 0.4, -0.9, 0.5, 0.4, 0.0),
    "u": (1.5, 0.0, 0.0, 2.0, 0.0, -3.0),
    "r": (0.0,) * 6,
}
DURATION = 0.9


class Segment(NamedTuple):
    """A joint and the link that it carries: place, axis (None: fixed), damping; mass, center, inertia."""

    position: np.ndarray
    rotation: np.ndarray
    axis: np.ndarray | None
    damping: float
    mass: float
    center: np.ndarray
    inertia: np.ndarray


def model() -> kg.RobotModel:
    """The arm, with the position of the gripper as an output."""
    arm = kg.from_urdf(FILE)
    gripper = arm.link("gripper").point.pos_from(arm.ground.point)
    return arm.extended(outputs={"gripper": (gripper, arm.frame)})


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    return solver, solver.integrate((0.0, DURATION), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12)


@cache
def segments() -> tuple[Segment, ...]:
    """The chain of joints, as the file has it."""
    root: Any = ElementTree.parse(FILE).getroot()
    links = {link.attrib["name"]: link.find("inertial") for link in root.findall("link")}
    return tuple(_segment(joint, links[joint.find("child").attrib["link"]]) for joint in root.findall("joint"))


def _segment(joint: Any, inertial: Any) -> Segment:
    origin, axis = joint.find("origin"), joint.find("axis")
    inertia = inertial.find("inertia").attrib
    return Segment(
        position=_numbers(origin.attrib["xyz"]),
        rotation=Rotation.from_euler("xyz", _numbers(origin.get("rpy", "0 0 0"))).as_matrix(),
        axis=None if axis is None else _numbers(axis.attrib["xyz"]),
        damping=0.0 if axis is None else float(joint.find("dynamics").attrib["damping"]),
        mass=float(inertial.find("mass").attrib["value"]),
        center=_numbers(inertial.find("origin").attrib["xyz"]),
        inertia=np.diag([float(inertia[key]) for key in ("ixx", "iyy", "izz")]),
    )


def _numbers(text: str) -> np.ndarray:
    return np.array(text.split(), dtype=float)


def newton_euler(q: np.ndarray, u: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """The torques (6,) of the joints, N m, that give the accelerations ``rates``."""
    state = iter(zip(q, u, rates, strict=True))
    spin, turn, lift = np.zeros(3), np.zeros(3), np.array((0.0, 0.0, 9.81))
    places, forces, moments = [], [], []
    for part in segments():
        angle, rate, gain = next(state) if part.axis is not None else (0.0, 0.0, 0.0)
        axis = np.zeros(3) if part.axis is None else part.axis
        to_parent = part.rotation @ Rotation.from_rotvec(angle * axis).as_matrix()
        lift = to_parent.T @ (lift + np.cross(turn, part.position) + np.cross(spin, np.cross(spin, part.position)))
        before = to_parent.T @ spin
        turn = to_parent.T @ turn + gain * axis + np.cross(before, rate * axis)
        spin = before + rate * axis
        center = lift + np.cross(turn, part.center) + np.cross(spin, np.cross(spin, part.center))
        force = part.mass * center
        moment = part.inertia @ turn + np.cross(spin, part.inertia @ spin) + np.cross(part.center, force)
        places.append((to_parent, part.position))
        forces.append(force)
        moments.append(moment)
    for k in range(len(places) - 1, 0, -1):
        to_parent, position = places[k]
        force = to_parent @ forces[k]
        forces[k - 1] = forces[k - 1] + force
        moments[k - 1] = moments[k - 1] + to_parent @ moments[k] + np.cross(position, force)
    pairs = zip(segments(), moments, strict=True)
    return np.array([part.axis @ moment for part, moment in pairs if part.axis is not None])


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    damping = np.array([part.damping for part in segments() if part.axis is not None])
    off = [
        np.abs(newton_euler(q, u, solver.rhs(t, q, u)[1]) + damping * u).max()
        for t, q, u in zip(solution.t, solution.q, solution.u, strict=True)
    ]
    yield "torques off the Newton-Euler algorithm (N m)", max(off), 1e-10
    energy = solver.energy(solution.t, solution.q, solution.u)
    yield "energy and loss by the dampers (J)", np.ptp(energy + loss(solution, damping)), 1e-6


def loss(solution: kg.Solution, damping: np.ndarray) -> np.ndarray:
    """Energy (n_t,) that the dampers have taken up, by Gauss-Legendre quadrature of their power in each step."""
    nodes, weights = np.polynomial.legendre.leggauss(6)
    steps = np.diff(solution.t)
    times = solution.t[:-1, None] + steps[:, None] * (1 + nodes) / 2
    power = (damping * solution(times.ravel())[1] ** 2).sum(axis=1).reshape(times.shape)
    return np.concatenate([[0.0], np.cumsum(steps / 2 * (power @ weights))])


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((solver, solution),) = runs.values()
    left, right = figure.subplots(1, 2)
    left.plot(solution.t, solution.q, label=[part.name for part in _moving(solver)])
    left.set(xlabel="t (s)", ylabel="rad")
    left.legend(fontsize="small")
    gripper = solver.output("gripper", solution.t, solution.q, solution.u)
    right.plot(np.hypot(gripper[:, 0], gripper[:, 1]), gripper[:, 2])
    right.set(title="path of the gripper", xlabel="distance from the vertical axis (m)", ylabel="height (m)", aspect=1)


def _moving(solver: kg.Solver) -> list[Any]:
    robot: Any = solver.model
    return [joint for joint in robot.joints.values() if joint.kind != "fixed"]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
