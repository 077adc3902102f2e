"""Motions with contacts of surfaces: energy, disks that come to lie flat, and contacts written by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from systems import example

import kanegen as kg
from kanegen.graph import Graph, Lowering, evaluate
from kanegen.graph.interpret import PYTHON

shapes = kg.geometry
N, O = me.ReferenceFrame("N"), me.Point("O")
O.set_vel(N, 0)
RADIUS = 0.2
HIGH = 50.0
"""Height from which a coin does not reach the ground in a run, m."""


def _coin(name: str, z: Any, theta: Any, omega: Any) -> me.RigidBody:
    frame, center = me.ReferenceFrame(name), O.locatenew(name, z * N.z)
    frame.orient_axis(N, N.x, theta)
    frame.set_ang_vel(N, omega * N.x)
    return me.RigidBody(name, center, frame, 1, (me.inertia(frame, 0.01, 0.01, 0.02), center))


@cache
def solver() -> kg.Solver:
    """Two coins in a plane, one with points on its rim, and a ball between a bowl and a box in it, without friction."""
    q, u = me.dynamicsymbols("z1 theta1 z2 theta2 x y"), me.dynamicsymbols("v1 omega1 v2 omega2 v_x v_y")
    edge, rim = _coin("edge", q[0], q[1], u[1]), _coin("rim", q[2], q[3], u[3])
    ball = me.Particle("ball", O.locatenew("ball", q[4] * N.x + q[5] * N.z), 1)
    sphere, ground = shapes.sphere(ball, 0.05), shapes.plane(O, N.z)
    contacts = [
        shapes.contact("coin", shapes.disk(edge, RADIUS), ground),
        *shapes.contacts("coin on", shapes.disk(rim, RADIUS, rim=4), ground),
        shapes.contact("bowl", sphere, shapes.sphere(O, 1, frame=N, hollow=True), restitution=1),
        shapes.contact("box", sphere, shapes.box(O, 0.4, 1, 0.3, frame=N), restitution=1),
    ]
    model = kg.Model(
        name="pairs",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[a.diff() - b for a, b in zip(q, u, strict=True)],
        bodies=[edge, rim, ball],
        gravity=-9.81 * N.z,
        contacts=contacts,
        outputs={"energy": (u[4] ** 2 + u[5] ** 2) / 2 + 9.81 * q[5]},
    )
    return kg.build(model)


def test_a_ball_between_a_bowl_and_a_box_keeps_its_energy() -> None:
    start = [HIGH, 1.0, HIGH, 1.0, 0.05, 0.6]
    solution = solver().integrate((0.0, 2.5), start, [0.0, 0.0, 0.0, 0.0, 0.7, 0.0], rtol=1e-10, atol=1e-12)
    hit = {event.name for event in solution.events}
    assert hit == {"bowl", "box"}
    assert len(solution.events) > 6
    assert np.ptp(solution.outputs["energy"]) < 1e-9
    center = solution.q[:, 4:]
    outside = np.maximum(np.abs(center) - np.array([0.2, 0.15]), 0.0)
    assert np.linalg.norm(outside, axis=1).min() > 0.05 - 1e-9
    assert np.linalg.norm(center, axis=1).max() < 0.95 + 1e-9


def test_a_disk_that_comes_to_lie_flat_ends_the_run_by_name() -> None:
    """A coin that tips over in a plane: its lowest point would jump from one end to the other."""
    start = [RADIUS * np.sin(1.0), 1.0, HIGH, 1.0, 0.0, 0.6]
    with pytest.raises(kg.IntegrationError, match=r"closest point of the contact 'coin' \(the sine") as caught:
        solver().integrate((0.0, 2.0), start, [0.0] * 6)
    solution = caught.value.solution
    assert solution.status is kg.Outcome.OUTSIDE_TABLE
    assert solution.q[-1, 1] == pytest.approx(0.0, abs=1e-5)
    assert "rim=" in str(caught.value)
    with raises(kg.SolveError, "closest point of the contact 'coin'", "not unique", "rim="):
        solver().contacts(0.0, [0.0, 0.0, HIGH, 1.0, 0.0, 0.6], [0.0] * 6)


def test_a_disk_with_points_on_its_rim_comes_to_lie_flat() -> None:
    start = [HIGH, 1.0, 0.5, 0.4, 0.0, 0.6]
    solution = solver().integrate((0.0, 1.0), start, [0.0] * 6)
    assert solution.q[-1, 2:4] == pytest.approx([0.0, 0.0], abs=1e-8)
    assert solution.contacts.forces[-1, 1:5].sum() == pytest.approx(9.81, rel=1e-8)


def test_a_ball_rolls_off_a_sphere() -> None:
    """A solid ball that rolls leaves at 10/17 of the height: g cos = v^2 / (R + r), 7/10 v^2 = g (R + r) (1 - cos).

    The axes of the large sphere are turned, so that the directions of slip jump on the way.
    """
    large, small = 1.0, 0.25
    place, u = me.dynamicsymbols("x y z"), me.dynamicsymbols("v_x v_y v_z w_x w_y w_z")
    frame, turned = me.ReferenceFrame("ball"), N.orientnew("turned", "Axis", [sm.Rational(-5, 4), N.y])
    frame.set_ang_vel(N, sum((w * axis for w, axis in zip(u[3:], N, strict=True)), me.Vector(0)))
    center = O.locatenew("center", sum((x * axis for x, axis in zip(place, N, strict=True)), me.Vector(0)))
    ball = me.RigidBody("ball", center, frame, 1, (me.inertia(N, *[0.4 * small**2] * 3), center))
    pair = shapes.sphere(ball, small), shapes.sphere(O, large, frame=turned)
    model = kg.Model(
        name="spheres",
        frame=N,
        coordinates=place,
        speeds=u,
        kinematics=[x.diff() - v for x, v in zip(place, u[:3], strict=True)],
        bodies=[ball],
        gravity=-9.81 * N.z,
        contacts=[shapes.contact("ball", *pair, friction=1000)],
    )
    angle, distance = 0.05, large + small
    start = [distance * np.sin(angle) * 0.8, distance * np.sin(angle) * 0.6, distance * np.cos(angle)]
    solution = kg.build(model).integrate((0.0, 2.0), start, [0.0] * 6, rtol=1e-10, atol=1e-12)
    leaves = next(event for event in solution.events if event.kind == "opens")
    assert leaves.q[2] / distance == pytest.approx(10 / 17 * np.cos(angle), abs=1e-4)
    assert np.ptp(solution.energy) < 1e-8
    across = solution.q @ np.array([np.sin(-1.25), 0.0, np.cos(1.25)])
    assert across[solution.t < leaves.t].min() < 0.0 < across.max()


ECCENTRICITY, CAM, ROLLER = 0.03, 0.1, 0.02


def _outline(angle: Any) -> Any:
    """The radius of a circle about a point beside the axis."""
    return ECCENTRICITY * sm.cos(angle) + sm.sqrt(CAM**2 - ECCENTRICITY**2 * sm.sin(angle) ** 2)


def _follower() -> kg.Model:
    """A cam that turns freely, and a roller that its weight presses on it, with surface coordinates."""
    theta, y, omega, v = me.dynamicsymbols("theta y omega v")
    frame = me.ReferenceFrame("cam")
    frame.orient_axis(N, N.z, theta)
    frame.set_ang_vel(N, omega * N.z)
    roller = me.Particle("roller", O.locatenew("roller", y * N.y), 0.3)
    sphere, cam = shapes.sphere(roller, ROLLER), shapes.cam(_outline, O, frame=frame)
    foot = shapes.foot("foot", sphere, cam)
    return kg.Model(
        name="cam",
        frame=N,
        coordinates=[theta, y, *foot.coordinates],
        speeds=[omega, v, *foot.speeds],
        kinematics=[theta.diff() - omega, y.diff() - v, *foot.kinematics],
        bodies=[me.RigidBody("cam", O, frame, 1, (me.inertia(frame, 1, 1, 0.01), O)), roller],
        gravity=-9.81 * N.y,
        holonomic_constraints=foot.constraints,
        dependent_speeds=foot.speeds,
        contacts=[shapes.contact("roller", sphere, cam, foot=foot)],
    )


def test_a_roller_follows_a_cam() -> None:
    """An eccentric circle: the distance of the centers is the sum of the radii."""
    model = _follower()
    solver = kg.build(model)
    start = [0.0, np.sqrt((CAM + ROLLER) ** 2 - ECCENTRICITY**2), 1.5]
    q, u = solver.make_consistent(0.0, start, [5.0, 5.0 * ECCENTRICITY, 0.0], fixed=("theta", "y", "omega", "v"))
    solution = solver.integrate((0.0, 3.0), q, u, rtol=1e-10, atol=1e-12)
    theta, y = solution.q[:, 0], solution.q[:, 1]
    assert [phase.modes["roller"] for phase in solution.contacts.phases] == ["closed"]
    height = ECCENTRICITY * np.sin(theta) + np.sqrt((CAM + ROLLER) ** 2 - (ECCENTRICITY * np.cos(theta)) ** 2)
    assert np.ptp(theta) > 2 * np.pi
    assert y == pytest.approx(height, abs=1e-8)
    assert np.ptp(solution.energy) < 1e-8
    kg.verify(model, states=2, forms=())  # also that the conditions of tangency hold no force


def test_a_disk_on_a_plane_is_the_contact_written_by_hand() -> None:
    """The gap and the slip of the example ``rolling_disk``, whose expressions are those of lecture notes."""
    model = example("rolling_disk").model(friction=0.4)
    by_hand, (disk,) = model.contacts[0], model.bodies
    center = disk.masscenter
    (origin,) = [point for point in center._pos_dict if point.name == "O"]
    plane = shapes.plane(origin, model.frame.z)
    made = shapes.contact(
        "plane", shapes.disk(disk, sm.Symbol("R")), plane, along=(model.frame.x, model.frame.y), friction=0.4
    )
    graph = Graph()
    q, u = model.coordinates, model.speeds
    nodes = {x: graph.input("q", k) for k, x in enumerate(q)} | {x: graph.input("u", k) for k, x in enumerate(u)}
    rates = sm.solve(model.kinematics, [x.diff() for x in q], dict=True)[0]
    lowering = Lowering(graph, nodes | {sm.Symbol("R"): graph.const(0.3)})
    for x in q:
        lowering._known[x.diff()] = lowering.lower(rates[x.diff()])
    pairs = [(made.gap, by_hand.gap), *zip(made.slip, by_hand.slip, strict=True)]
    generator = np.random.default_rng(3)
    for _ in range(5):
        given: dict[str, Any] = {"q": generator.uniform(0.2, 1.4, 6).tolist(), "u": generator.normal(size=6).tolist()}
        for pair in pairs:
            one, two = evaluate([lowering.lower(x) for x in pair], given, PYTHON)
            assert one == pytest.approx(two, abs=1e-13)
