"""Positions and orientations along a motion: against SymPy, and where only velocities are known, closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from given_motions import LEAN, RADIUS, SPIN, TURN, chain, given, steady_center, steady_disk
from messages import says
from scipy.spatial.transform import Rotation
from systems import model_of

import kanegen as kg
from kanegen.view.poses import NotKnownError, Poses

TIMES = np.linspace(0.0, 4.0, 241)
INTEGRATED = 1e-7
"""Of positions and direction cosines integrated with order 4 and steps of 1/60 s at some rad/s."""


def steady_rotation(t: np.ndarray) -> np.ndarray:
    angles = np.stack([TURN * t, np.full_like(t, LEAN), SPIN * t], axis=-1)
    return Rotation.from_euler("ZXZ", angles).as_matrix()


@pytest.mark.parametrize("name", ["spatial_chain", "slider_crank", "rolling_disk"])
def test_poses_are_those_of_sympy(name: str) -> None:
    model = model_of(name)
    times = np.array([0.0, 0.7])
    n = len(model.coordinates)
    values = lambda t: [0.3 + 0.1 * k + 0.2 * t for k in range(n)]  # noqa: E731
    poses = Poses(given(model, times, values, lambda t: [0.0 * t] * len(model.speeds)))
    at = {**model.parameters, **dict(zip(model.coordinates, values(0.7), strict=True))}
    origin = next(route.along[0] for route in model.geometry.routes.values())
    for body in model.bodies:
        expected = body.masscenter.pos_from(origin).to_matrix(model.frame).subs(at).evalf()
        assert poses.position(body.masscenter, times)[1] == pytest.approx(np.array(expected, float).ravel(), abs=1e-12)
        if isinstance(body, me.RigidBody):
            cosines = np.array(model.frame.dcm(body.frame).subs(at).evalf(), float)
            assert poses.orientation(body.frame, times)[1] == pytest.approx(cosines, abs=1e-12)
    assert not poses.notices


def test_a_rolling_disk_without_coordinates_of_its_contact_rolls_in_a_circle() -> None:
    motion = steady_disk(TIMES)
    poses = Poses(motion)
    (disk,) = motion.model.bodies
    assert poses.position(disk.masscenter, TIMES) == pytest.approx(steady_center(TIMES), abs=INTEGRATED)
    says("\n".join(poses.notices), "center", "velocity")


def test_the_contact_moves_on_though_its_velocity_is_zero() -> None:
    motion = steady_disk(TIMES)
    (route,) = motion.model.geometry.routes.values()
    contact = Poses(motion).position(route.along[0], TIMES)
    lean = np.stack([np.sin(TURN * TIMES), -np.cos(TURN * TIMES), 0 * TIMES], axis=-1)
    assert contact[:, 2] == pytest.approx(0.0 * TIMES, abs=INTEGRATED)
    below = steady_center(TIMES) * (1, 1, 0) + RADIUS * np.cos(LEAN) * lean
    assert contact == pytest.approx(below, abs=INTEGRATED)
    assert np.linalg.norm(contact[-1]) > 0.5


def test_integration_does_not_depend_on_the_times_of_the_pictures() -> None:
    motion = replace(steady_disk(TIMES[::80]), nodes=TIMES)
    center = motion.model.bodies[0].masscenter
    assert Poses(motion).position(center, motion.times) == pytest.approx(steady_center(motion.times), abs=INTEGRATED)


def test_a_frame_of_which_only_the_angular_velocity_is_known_turns() -> None:
    """The angular velocity is written in a frame that is oriented."""
    motion = steady_disk(TIMES, oriented=False)
    (disk,) = motion.model.bodies
    poses = Poses(motion)
    turned = steady_rotation(TIMES) @ steady_rotation(np.zeros(1))[0].T  # the frame starts aligned with N
    assert poses.orientation(disk.frame, TIMES) == pytest.approx(turned, abs=INTEGRATED)
    assert poses.position(disk.masscenter, TIMES) == pytest.approx(steady_center(TIMES), abs=INTEGRATED)
    says("\n".join(poses.notices), "B", "angular velocity")


def test_components_in_the_frame_itself_and_in_the_inertial_frame_are_combined() -> None:
    u = me.dynamicsymbols("u1:3")
    q = me.dynamicsymbols("q1:3")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.set_ang_vel(N, u[0] * N.z + u[1] * B.x)
    O = me.Point("O")
    O.set_vel(N, 0)
    body = me.RigidBody("body", O, B, 1, (me.inertia(B, 1, 2, 2.5), O))
    t = me.dynamicsymbols._t
    kinematics = [x.diff(t) - y for x, y in zip(q, u, strict=True)]
    model = kg.Model(name="top", frame=N, coordinates=q, speeds=u, kinematics=kinematics, bodies=[body])
    motion = given(model, TIMES, lambda t: (2 * t, 3 * t), lambda t: (2 + 0 * t, 3 + 0 * t))
    expected = Rotation.from_euler("ZX", np.stack([2 * TIMES, 3 * TIMES], axis=-1)).as_matrix()
    assert Poses(motion).orientation(B, TIMES) == pytest.approx(expected, abs=1e-12)


def test_coordinates_are_preferred_to_the_integral_of_a_velocity_that_agrees_on_the_motion_only() -> None:
    """The velocity is given as the constraint of rolling makes it, so that it differs from q' at other states."""
    x, v, w, a = me.dynamicsymbols("x v w a")
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, 2 * w * N.x)
    t = me.dynamicsymbols._t
    model = kg.Model(
        name="cart",
        frame=N,
        coordinates=(x, a),
        speeds=(v, w),
        kinematics=(v - x.diff(t), w - a.diff(t)),
        bodies=[me.Particle("cart", P, 1)],
        nonholonomic_constraints=[v - 2 * w],
        check_kinematics=False,
    )
    motion = given(model, TIMES, lambda t: (2 * np.sin(t), np.sin(t)), lambda t: (2 * np.cos(t), np.cos(t)))
    poses = Poses(motion)
    assert poses.position(P, TIMES)[:, 0] == pytest.approx(2 * np.sin(TIMES), abs=1e-14)
    assert not poses.notices


def test_a_point_that_nothing_connects_is_named() -> None:
    poses = Poses(steady_disk(TIMES[:3]))
    with pytest.raises(NotKnownError) as caught:
        poses.position(me.Point("lost"), TIMES[:3])
    says(caught.value, "lost", "set_pos")


def test_a_point_that_no_body_needs_is_placed() -> None:
    """The end of the last link belongs to the user's points, not to the model's."""
    model, q, u = chain(2)
    center = model.bodies[-1].masscenter
    end = center.locatenew("end", -0.5 * model.bodies[-1].frame.y)
    assert end not in model.geometry.routes
    poses = Poses(given(model, TIMES, q, u))
    half = poses.position(end, TIMES) - poses.position(center, TIMES)
    down = -poses.orientation(model.bodies[-1].frame, TIMES)[:, :, 1]
    assert half == pytest.approx(0.5 * down, abs=1e-14)


@pytest.mark.parametrize("extrapolate", ["error", "constant", "polynomial"])
def test_beyond_the_ends_of_a_spline_pictures_show_its_end(extrapolate: str) -> None:
    """The last polynomial goes on for ``"polynomial"`` only; without values, the page says what is drawn."""
    x, v = me.dynamicsymbols("x v")
    N, origin = me.ReferenceFrame("N"), me.Point("O")
    origin.set_vel(N, 0)
    height = kg.Spline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 8.0, 27.0], name="height", extrapolate=extrapolate)
    mark = origin.locatenew("mark", height(x) * N.y)
    model = kg.Model(
        name="cart",
        frame=N,
        coordinates=(x,),
        speeds=(v,),
        kinematics=(v - x.diff(),),
        bodies=[me.Particle("cart", origin.locatenew("P", x * N.x), 1)],
    )
    times = np.linspace(0.0, 5.0, 6)
    poses = Poses(given(model, times, lambda t: [t], lambda t: [1.0 + 0.0 * t]))
    held = times if extrapolate == "polynomial" else np.minimum(times, 3.0)
    assert poses.vector(mark.pos_from(origin), times)[:, 1] == pytest.approx(held**3, abs=1e-12)
    assert bool(poses.notices) is (extrapolate == "error")
    if poses.notices:
        says("\n".join(poses.notices), "the spline 'height'", "from 0 to 3", "at the end")


def test_an_end_that_is_not_needed_is_not_mentioned() -> None:
    """A Piecewise does not choose the spline beyond its points."""
    x, v = me.dynamicsymbols("x v")
    N, origin = me.ReferenceFrame("N"), me.Point("O")
    origin.set_vel(N, 0)
    bump = sm.Piecewise((kg.Spline([0.0, 1.0], [0.0, 1.0])(x), x < 1), (1, True))
    model = kg.Model(
        name="cart",
        frame=N,
        coordinates=(x,),
        speeds=(v,),
        kinematics=(v - x.diff(),),
        bodies=[me.Particle("cart", origin.locatenew("P", x * N.x), 1)],
    )
    times = np.array([0.5, 2.0])
    poses = Poses(given(model, times, lambda t: [t], lambda t: [1.0 + 0.0 * t]))
    assert poses.vector(bump * N.y, times)[:, 1] == pytest.approx([0.5, 1.0])
    assert not poses.notices
