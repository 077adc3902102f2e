"""Quadruped that jumps
====================

A quadruped from the URDF file quadruped.urdf lands on its feet, crouches, jumps and lands again.

``kg.from_urdf`` makes the coordinates: position and Euler parameters of the trunk, and twelve joints, three in each
leg (abduction, swing, knee). Feedback laws of the joint torques, springs and dampers, lead the joints to angles that
are functions of time: the legs bend by ``crouch``, leaning by ``lean`` so that the jump hardly turns the trunk, and
stretch within about 50 ms. The feet are spheres on a plane with friction, without rebound; where all of them touch the
ground, their forces depend on each other.

In flight the center of mass follows a parabola, and the angular momentum about it is constant; on the ground the forces
of the feet balance weight and momentum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import simpson

import kanegen as kg

FILE = Path(__file__).with_name("quadruped.urdf")
RADIUS = 0.02
LEGS = tuple(f"{end}_{side}" for end in ("front", "hind") for side in ("left", "right"))
STANCE = {"abduction": 0.0, "swing": 0.7, "knee": -1.4}
"""Angles of the joints of a leg, rad, with which the foot is below the hip."""

HEIGHT = 0.2 * (np.cos(0.7) + np.cos(0.7)) + RADIUS
"""Height of the hips over the ground in this stance, m."""

DURATION = 2.2
FUNCTIONS = ("rhs", "consistency", "outputs", "linear_momentum")
GAINS = {"kp": 90.0, "kd": 2.5, "mu": 0.7, "crouch": 0.3, "lean": 0.1}


def model() -> kg.RobotModel:
    """The robot with its feet on the ground and its joints led to angles over time."""
    robot = kg.from_urdf(FILE, floating_base=True)
    kp, kd, mu, crouch, lean = sm.symbols("kp kd mu crouch lean")
    t = me.dynamicsymbols._t
    bent = (sm.tanh((t - 0.55) / 0.08) - sm.tanh((t - 0.9) / 0.02)) / 2
    stretched = (sm.tanh((t - 0.9) / 0.02) - sm.tanh((t - 1.02) / 0.04)) / 2
    bend = crouch * bent - stretched / 10
    wanted = {"abduction": sm.S.Zero, "swing": STANCE["swing"] + bend, "knee": STANCE["knee"] - 2 * bend}
    efforts, contacts = {}, []
    for leg in LEGS:
        for joint, angle in wanted.items():
            motion = robot.motion(f"{leg}_{joint}")
            ahead = (1 if leg.startswith("hind") else -1) * lean * bent if joint == "swing" else 0
            efforts[motion.effort] = kp * (angle + ahead - motion.position) - kd * motion.rate
        contacts.append(_foot(robot, leg, mu))
    bodies = robot.bodies
    mass = sum(body.mass for body in bodies)
    center = (
        sum((body.mass * body.masscenter.pos_from(robot.ground.point) for body in bodies), 0 * robot.frame.x) / mass
    )
    angular = sum((_angular_momentum(robot, body) for body in bodies), 0 * robot.frame.x)
    inputs = [kg.Input(item.symbol, law=efforts[item.symbol]) for item in robot.inputs]
    return robot.extended(
        inputs=inputs,
        contacts=contacts,
        parameters=GAINS,
        outputs={"center": (center, robot.frame), "angular momentum": (angular, robot.frame)},
        initial=_start(robot),
    )


def _foot(robot: kg.RobotModel, leg: str, mu: Any) -> kg.Unilateral:
    """The sphere of a foot on the ground."""
    frame, center = robot.link(f"{leg}_foot")
    foot = kg.geometry.sphere(center, RADIUS, frame=frame)
    ground = kg.geometry.plane(robot.ground.point, robot.frame.z)
    return kg.geometry.contact(leg, foot, ground, restitution=0, friction=mu)


def _angular_momentum(robot: kg.RobotModel, body: me.RigidBody) -> Any:
    """The angular momentum of a body about the origin."""
    position = body.masscenter.pos_from(robot.ground.point)
    own = body.central_inertia.dot(body.frame.ang_vel_in(robot.frame))
    return own + body.mass * position.cross(position.dt(robot.frame))


def _start(robot: kg.RobotModel) -> dict[Any, float]:
    """In the stance, a few centimeters above the ground, at rest."""
    base = robot.motion("base")
    start: dict[Any, float] = {"t": 0.0, base.coordinates[2]: HEIGHT + 0.04}
    for leg in LEGS:
        start |= {robot.motion(f"{leg}_{joint}").position: angle for joint, angle in STANCE.items()}
    return start


def simulate(**parameters: Any) -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model(), functions=FUNCTIONS).with_parameters(**parameters)
    times = np.linspace(0.0, DURATION, 801)
    return solver, solver.integrate(DURATION, t_eval=times, rtol=1e-8, atol=1e-9)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    p, t = dict(solver.parameters), solution.t
    mass, g = sum(value for name, value in p.items() if name.startswith("m_")), -p["gravity_z"]
    landing = min(event.t for event in solution.events if event.kind == "impact" and event.t > 1.0)
    off = max(event.t for event in solution.events if event.kind == "opens" and event.t < landing)
    flight = (t > off) & (t < landing)
    center, momentum = solution["center"], np.asarray(solution.linear_momentum)
    height = center[flight, 2]
    parabola = np.polynomial.Polynomial.fit(t[flight], height + g * (t[flight] - off) ** 2 / 2, 1)
    rest = height + g * (t[flight] - off) ** 2 / 2 - parabola(t[flight])
    yield "flight of the center of mass less a parabola (m)", np.abs(rest).max(), 1e-7
    spin = solution["angular momentum"] - np.cross(center, momentum)
    yield "angular momentum in flight, change (kg m^2/s)", np.ptp(spin[flight], axis=0).max(), 1e-7
    stands = (t > 0.2) & (t < 0.5)
    forces = np.array(solution.contacts.forces)[stands][:, ::3].sum(axis=1) - mass * g
    change = momentum[stands][-1, 2] - momentum[stands][0, 2]
    yield (
        "forces of the feet and weight, less the change of momentum (N s)",
        simpson(forces, x=t[stands]) - change,
        1e-5,
    )
    lowest = min(solution.contacts.forces[:, ::3].min(), 0.0)
    yield "pull of the ground (N)", lowest, 1e-9
    yield "tilt of the trunk at the end, 1 - cos", 2.0 * np.sum(solution.q[-1, 4:6] ** 2), 0.01


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    axes = figure.subplots(3, 1, sharex=True)
    _, solution = next(iter(runs.values()))
    axes[0].plot(solution.t, solution["center"][:, 2])
    axes[0].set_ylabel("height of the center (m)")
    for k, leg in enumerate(LEGS):
        axes[1].plot(solution.t, solution.contacts.forces[:, 3 * k], label=leg.replace("_", " "))
        axes[2].plot(solution.t, np.degrees(solution[f"q_{leg}_knee"]))
    axes[1].set_ylabel("normal force (N)")
    axes[1].legend()
    axes[2].set_ylabel("knee (deg)")
    axes[2].set_xlabel("t (s)")


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
