"""The rules of good pictures: the view from the plane of the motion, bounded arrows, no notice without cause."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from given_motions import given, steady_disk
from systems import example, initial, solver_for

import kanegen as kg
from kanegen.solve.solution.animation import motion_of
from kanegen.view.camera import View, view_of
from kanegen.view.forces import COLORS, arrows
from kanegen.view.poses import Poses
from kanegen.view.scene import scene
from kanegen.view.stage import GROUND, LARGEST, PALETTE, Wishes
from kanegen.view.weights import weights

T = me.dynamicsymbols._t
TIMES = np.linspace(0.0, 2.0, 41)
SIGNS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)


def wishes(n: int = 1, offsets: Any = None) -> Wishes:
    return Wishes(
        "views", (), False, (), False, True, np.zeros((n, 3)) if offsets is None else np.array(offsets, float)
    )


def drawn(*motions: Any, offsets: Any = None) -> dict[str, Any]:
    return scene(motions, wishes(len(motions), offsets))


def vectors(data: dict[str, Any]) -> list[tuple[str, np.ndarray]]:
    """The kind, ``"arrow"`` or ``"turn"``, and the lengths of all forces and torques of a scene."""
    found = []
    for motion in data["motions"]:
        for item in motion["items"]:
            if item["group"] == "forces":
                text = motion["tracks"][item["vector"]]["p"]
                rows = np.frombuffer(base64.b64decode(text), "<f4").reshape(-1, 3)
                found.append((item["kind"], np.linalg.norm(rows, axis=1)))
    return found


def test_points_that_move_have_traces() -> None:
    """A hundredth of a picture is seen; a thousand-millionth, or a point at rest, has no trace."""
    x, y, u, v = me.dynamicsymbols("x y u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    places = {"far": (1 + x) * N.x, "near": y * N.y, "still": -N.x}
    bodies = [me.Particle(name, O.locatenew(name, place), 1) for name, place in places.items()]
    model = kg.Model(
        name="three",
        frame=N,
        coordinates=(x, y),
        speeds=(u, v),
        kinematics=(x.diff(T) - u, y.diff(T) - v),
        bodies=bodies,
    )
    motion = given(model, TIMES, lambda t: (0.01 * np.sin(t), 1e-9 * np.sin(t)), lambda t: (t, t))
    items = drawn(motion)["motions"][0]["items"]
    assert [item["name"] for item in items if item["kind"] == "trace"] == ["far"]


# -- the plane of a motion -----------------------------------------------------------------------------------


def snake(gravity: bool, axis: str = "z", n: int = 4) -> Any:
    """A straight chain of rods in a plane that begins to wriggle, driven by torques between the rods."""
    x, y, vx, vy = me.dynamicsymbols("x y vx vy")
    q, u, M = (me.dynamicsymbols(f"{name}:{n}") for name in "quM")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    normal = getattr(N, axis)
    first, second = (a for a in N if a != normal)
    joint = O.locatenew("head", x * first + y * second)
    bodies, loads, before = [], [], None
    for k in range(n):
        B = N.orientnew(f"B{k}", "Axis", (q[k], normal))
        along = B.x if axis != "x" else B.y
        center = joint.locatenew(f"center{k}", -0.1 * along)
        joint = joint.locatenew(f"joint{k}", 2 * center.pos_from(joint))
        bodies.append(me.RigidBody(f"link{k}", center, B, 1, (me.inertia(B, 0.01, 0.01, 0.01), center)))
        if before is not None:
            loads += [(B, M[k] * normal), (before, -M[k] * normal)]
        before = B
    model = kg.Model(
        name="snake",
        frame=N,
        coordinates=(x, y, *q),
        speeds=(vx, vy, *u),
        kinematics=[a.diff(T) - b for a, b in zip((x, y, *q), (vx, vy, *u), strict=True)],
        bodies=bodies,
        loads=loads,
        inputs=M[1:],
        gravity=-9.81 * normal if gravity else None,
    )
    phase = np.arange(n)
    motion = given(
        model,
        TIMES,
        lambda t: (0.3 * t, 0 * t, *(0.4 * np.sin(4 * t + p) * t for p in phase)),
        lambda t: (0.3, 0.0, *np.zeros(n)),
    )
    state = motion.state

    def with_torques(t: np.ndarray) -> Any:
        torques = np.exp(-9.0 * t)[:, None] * np.arange(1.0, n)  # large at the start only
        return state(t)._replace(r=torques)

    return replace(motion, state=with_torques)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
@pytest.mark.parametrize("gravity", [True, False])
def test_a_planar_snake_is_seen_along_the_normal_of_its_plane(axis: str, gravity: bool) -> None:
    data = drawn(snake(gravity, axis))
    normal = np.array([axis == name for name in "xyz"], dtype=float)
    assert abs(np.array(data["look"]) @ normal) == pytest.approx(1.0)
    right = np.cross(data["up"], data["front"])
    assert right[0 if axis != "x" else 1] == pytest.approx(1.0)


def checked(view: View) -> View:
    for vector in (view.up, view.look, view.front):
        assert np.linalg.norm(vector) == pytest.approx(1.0)
    assert view.up @ view.front == pytest.approx(0.0, abs=1e-9)
    return view


def bodies_of(path: np.ndarray, half: Any) -> np.ndarray:
    """The corners of boxes that move along a path."""
    return (path[:, None] + SIGNS * half).reshape(-1, 3)


def rotation(random: np.random.Generator) -> np.ndarray:
    R = np.linalg.qr(random.normal(size=(3, 3)))[0]
    return np.asarray(R * np.sign(np.linalg.det(R)))


def test_plane_motions_in_any_orientation_are_seen_along_the_normal() -> None:
    random = np.random.default_rng(18)
    for _ in range(200):
        R = rotation(random)
        path = np.cumsum(random.normal(size=(30, 3)) * (1, 1, 0), axis=0) @ R.T
        bodies = bodies_of(path, 0.05)
        weight = random.normal(size=3) if random.random() < 0.7 else None
        view = checked(view_of(path - path[0], path, bodies, 1.0, weight))
        assert abs(view.look @ R[:, 2]) > np.cos(0.06)  # one that is nearly an inertial axis is taken to be this
        if weight is not None:
            assert view.up == pytest.approx(-weight / np.linalg.norm(weight))
            assert view.look @ view.up > -0.06  # never from below
        wild = path + 0.3 * random.normal(size=path.shape)
        assert checked(view_of(wild - wild[0], wild, wild, 1.0, weight)).look @ view.up == pytest.approx(
            0.42, abs=0.03
        ) or (weight is None and not np.allclose(view.up, (0, 0, 1)))


@pytest.mark.parametrize(
    ("line", "weight", "look"),
    [
        ((1, 0, 0), (0, 0, -9.81), (0, -1, 0)),  # a train: x to the right, z upwards
        ((1, 0, 0), (0, -9.81, 0), (0, 0, 1)),
        ((0, 1, 0), (0, 0, -9.81), (1, 0, 0)),
        ((0, 0, 1), (0, 0, -9.81), (0, -1, 0)),  # a stone that falls
        ((0, 0, 1), None, (0, -1, 0)),
        ((1, 0, 0), None, (0, -1, 0)),
    ],
)
def test_motions_along_a_line_are_seen_from_the_side(line: Any, weight: Any, look: Any) -> None:
    path = np.outer(np.sin(TIMES), line)
    view = checked(view_of(path, path, bodies_of(path, 0.02), 1.0, None if weight is None else np.array(weight)))
    assert view.look == pytest.approx(look)


def test_a_plane_motion_of_thick_bodies_is_seen_obliquely() -> None:
    """A crane that turns about the vertical would be seen as a bar from above."""
    circle = np.stack([np.cos(TIMES), np.sin(TIMES), 0 * TIMES], axis=-1)
    for height, oblique in ((0.1, False), (2.0, True)):
        bodies = np.concatenate([circle, circle + np.array([0, 0, height])])
        view = checked(view_of(circle - circle[0], circle, bodies, 1.0, np.array([0, 0, -9.81])))
        assert (view.look[2] < 0.9) == oblique


def test_a_lean_that_is_small_against_the_path_is_not_flat() -> None:
    """A bicycle that rides 30 m leaves its plane by less than a hundredth of that, and its lean is to be seen."""
    path = np.stack([15 * TIMES, 0.1 * np.sin(6 * TIMES), 0 * TIMES], axis=-1)
    assert checked(view_of(path - path[0], path, bodies_of(path - path, 0.5), 1.0, None)).look[2] == pytest.approx(
        0.42, abs=0.03
    )


def test_motions_that_are_drawn_apart_along_the_normal_do_not_hide_each_other() -> None:
    look = np.array(drawn(snake(True), snake(True), offsets=[(0, 0, 0), (0, 1, 0)])["look"])
    assert look == pytest.approx([0, 0, 1])
    assert drawn(snake(True), snake(True), offsets=[(0, 0, 0), (0, 0, 3)])["look"][2] < 0.9


# -- notices, weights and the ground -------------------------------------------------------------------------


def pendulum_of_a_system(actuators: bool = True) -> Any:
    """Two links of a ``System`` with joints, gravity as loads, and a spring between the ground and the first one."""
    q1, q2, u1, u2 = me.dynamicsymbols("q1 q2 u1 u2")
    k, g, l = sm.symbols("k g l")
    wall, first, second = me.RigidBody("wall"), me.RigidBody("first"), me.RigidBody("second")
    system = me.System.from_newtonian(wall)
    for parent, child, q, u in ((wall, first, q1, u1), (first, second, q2, u2)):
        joint = me.PinJoint(f"pin_{child}", parent, child, q, u, child_point=l * child.y, joint_axis=parent.z)
        system.add_joints(joint)
    system.apply_uniform_gravity(-g * system.y)
    if actuators:
        system.add_actuators(me.TorqueActuator(-k * q1, wall.z, first, wall))
    values = {g: 9.81, k: 2.0, l: 0.5}
    unknown = {p: 1.0 for p in kg.Model.from_system(system).parameters if p not in values}
    model = kg.Model.from_system(system, parameters={**values, **unknown})
    return given(model, TIMES, lambda t: (np.sin(t), 0.5 * t), lambda t: (np.cos(t), 0.5))


def test_a_system_with_uniform_gravity_has_no_notice_and_its_gravity_points_down() -> None:
    data = drawn(pendulum_of_a_system())
    assert data["notices"] == []
    assert data["up"] == pytest.approx([0, 1, 0])
    assert data["look"] == pytest.approx([0, 0, 1])
    (spring,) = (item for item in data["motions"][0]["items"] if item["group"] == "forces")
    assert spring["kind"] == "turn"


def falling(loads: Callable[..., Any], mass: Any, **options: Any) -> Any:
    """Two particles that fall, with loads of the test."""
    q, u = me.dynamicsymbols("q1:3"), me.dynamicsymbols("u1:3")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bodies = [me.Particle(f"P{k}", O.locatenew(f"C{k}", k * N.x + q[k] * N.z), mass(k)) for k in range(2)]
    model = kg.Model(
        name="falling",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[a.diff(T) - b for a, b in zip(q, u, strict=True)],
        bodies=bodies,
        loads=[load for k, body in enumerate(bodies) for load in loads(N, body.masscenter, body.mass, k)],
        **options,
    )
    return given(model, TIMES, lambda t: (-t, -2 * t), lambda t: (-1.0, -2.0))


def test_weights_among_the_loads_are_down_and_are_not_drawn() -> None:
    m, g, c = sm.symbols("m g c")
    values = {m: 2.0, g: 9.81, c: 3.0}
    both = falling(
        lambda N, P, mass, k: [(P, -mass * g * N.x), (P, -c * me.dynamicsymbols(f"u{k + 1}") * N.z)],
        lambda k: m * (k + 1),
        parameters=values,
    )
    data = drawn(both)
    assert data["up"] == pytest.approx([1, 0, 0])
    assert [kind for kind, _ in vectors(data)] == ["arrow", "arrow"]  # the dampers
    # A constant force that is not proportional to the mass is no weight, and one number for one body may be anything.
    push = falling(lambda N, P, mass, k: [(P, c * N.x)], lambda k: m * (k + 1), parameters={m: 2.0, c: 3.0})
    single = falling(lambda N, P, mass, k: [(P, 3 * N.x)] if k else [], lambda k: 2.0)
    for motion, count in ((push, 2), (single, 1)):
        assert len(vectors(drawn(motion))) == count
        assert weights(motion.model) == (None, ())
    numbers = falling(lambda N, P, mass, k: [(P, -9.81 * mass * N.x)], lambda k: 2.0 + k)
    assert drawn(numbers)["up"] == pytest.approx([1, 0, 0])


def test_gravity_of_the_model_goes_before_weights_among_the_loads() -> None:
    m, g = sm.symbols("m g")
    loads = lambda N, P, mass, k: [(P, -mass * g * N.x)]  # noqa: E731
    N = me.ReferenceFrame("N")
    motion = falling(loads, lambda k: m, parameters={m: 2.0, g: 9.81})
    assert drawn(motion)["up"] == pytest.approx([1, 0, 0])
    q = motion.model.coordinates
    with_gravity = motion.model.frame.z * -9.81
    arguments = {name: getattr(motion.model, name) for name in ("frame", "speeds", "kinematics", "bodies", "loads")}
    model = kg.Model(name="both", coordinates=q, gravity=with_gravity, parameters={m: 2.0, g: 9.81}, **arguments)
    assert drawn(replace(motion, model=model))["up"] == pytest.approx([0, 0, 1])
    assert N is not model.frame


def test_what_acts_on_the_ground_is_not_drawn() -> None:
    a, b = me.dynamicsymbols("a b")
    q, u = me.dynamicsymbols("q u")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_axis(N, N.z, q)
    O = me.Point("O")
    O.set_vel(N, 0)
    center = O.locatenew("C", B.x)
    body = me.RigidBody("body", center, B, 1, (me.inertia(B, 1, 1, 1), center))
    loads = [(B, a * N.z), (N, -a * N.z), (O, -b * N.x), (center, b * N.x)]
    options: dict[str, Any] = {"frame": N, "coordinates": [q], "speeds": [u], "kinematics": [q.diff(T) - u]}
    model = kg.Model(name="ground", bodies=[body], loads=loads, inputs=[a, b], **options)
    motion = given(model, TIMES, lambda t: (t,), lambda t: (1.0,))
    motion = replace(motion, state=lambda t, state=motion.state: state(t)._replace(r=np.ones((t.size, 2))))
    poses = Poses(motion)
    assert [str(arrow.foot) for arrow in arrows(poses)] == ["C", "C"]
    assert not poses.notices


def test_torques_of_a_universal_joint_are_drawn_at_the_next_body() -> None:
    """Its cross is a frame without a body; the example with twelve of them had twelve notices."""
    q, u = me.dynamicsymbols("q1:3"), me.dynamicsymbols("u1:3")
    k, N, X, B, O = sm.Symbol("k"), *(me.ReferenceFrame(name) for name in "NXB"), me.Point("O")
    O.set_vel(N, 0)
    X.orient_axis(N, N.x, q[0])
    B.orient_axis(X, X.y, q[1])
    center = O.locatenew("C", -B.z)
    body = me.RigidBody("body", center, B, 1, (me.inertia(B, 1, 1, 1), center))
    model = kg.Model(
        name="universal joint",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[a.diff(T) - b for a, b in zip(q, u, strict=True)],
        bodies=[body],
        loads=[(X, -k * q[0] * X.x), (B, -k * q[1] * B.y)],
        parameters={k: 1.0},
    )
    poses = Poses(given(model, TIMES, lambda t: (1 + t, 1 + t), lambda t: (1.0, 1.0)))
    assert [arrow.foot for arrow in arrows(poses)] == [center, center]
    assert not poses.notices


# -- sizes ---------------------------------------------------------------------------------------------------


def test_no_arrow_is_larger_than_its_part_of_the_mechanism() -> None:
    """The torques at the start are far above those of the rest; they were drawn three times as long as the others."""
    data = drawn(snake(False))
    lengths = np.concatenate([lengths for _, lengths in vectors(data)])
    assert lengths.max() <= LARGEST["N m"] * data["size"] * (1 + 1e-6)
    assert lengths[0] > 0.0
    assert data["beyond"] == ["N m"]


def test_several_motions_have_one_scale_of_forces() -> None:
    m, c = sm.symbols("m c")
    loads = lambda N, P, mass, k: [(P, c * (k + 1) * N.x)]  # noqa: E731
    one, ten = (falling(loads, lambda k: m, parameters={m: 1.0, c: value}) for value in (1.0, 10.0))
    data = drawn(one, ten)
    assert data["peaks"] == {"N": pytest.approx(20.0)}
    peaks = [lengths.max() / (LARGEST["N"] * data["size"]) for _, lengths in vectors(data)]
    assert peaks == pytest.approx([0.05, 0.1, 0.5, 1.0], rel=1e-5)


def test_arrows_are_inside_the_picture() -> None:
    m, c = sm.symbols("m c")
    motion = falling(lambda N, P, mass, k: [(P, c * N.x)] if k else [], lambda k: m, parameters={m: 1.0, c: 1.0})
    data = drawn(motion)
    assert data["box"][1][0] == pytest.approx(1.0 + LARGEST["N"] * data["size"], rel=1e-5)


def test_colors_of_forces_are_not_those_of_bodies() -> None:
    channels = {color: np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) for color in COLORS.values()}
    for color, rgb in channels.items():
        for other in (*PALETTE, GROUND, *(c for c in COLORS.values() if c != color)):
            assert np.abs(rgb - [int(other[k : k + 2], 16) for k in (1, 3, 5)]).max() >= 40, (color, other)


def test_a_wide_floor_does_not_make_the_bodies_small() -> None:
    m = sm.Symbol("m")
    N = me.ReferenceFrame("N")
    motion = falling(lambda N, P, mass, k: [], lambda k: m, parameters={m: 1.0})
    model = motion.model
    floor = {model.frame: kg.shapes.Plane(500.0), "P0": kg.shapes.Sphere(0.1)}
    arguments = {name: getattr(model, name) for name in ("frame", "coordinates", "speeds", "kinematics", "bodies")}
    wide = kg.Model(name="floor", parameters={m: 1.0}, shapes=floor, **arguments)
    assert np.ptp(drawn(replace(motion, model=wide))["box"], axis=0).max() < 10.0
    assert N is not model.frame


def test_a_vehicle_that_starts_far_from_the_origin_has_its_own_size() -> None:
    near, far = snake(True), snake(True)

    def moved(t: np.ndarray, state: Any = far.state) -> Any:
        at = state(t)
        return at._replace(q=at.q + np.array([1000.0, *np.zeros(at.q.shape[1] - 1)]))

    assert 0.5 < drawn(replace(far, state=moved))["size"] <= drawn(near)["size"] < 1.0


# -- ten pages -----------------------------------------------------------------------------------------------

PAGES = {
    "slider_crank": 2.0,
    "struck_four_bar": 1.0,
    "scissor_lift": 0.5,
    "spatial_chain": 1.0,
    "humanoid": 0.2,
    "whipple_bicycle": 1.0,
    "rolling_disk": 3.0,
    "bouncing_ball": 2.0,
    "stick_slip_blocks": 2.0,
    "sampled_pid": 1.0,
}
"""Linkages, robots, vehicles and contacts, with the length of the motion in s. All of them were looked at."""


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_of_the_examples_follow_the_rules(name: str) -> None:
    solver, start = solver_for(name), initial(name)
    solution = solver.integrate((0.0, PAGES[name]), start["q"], start["u"], start.get("r"))
    notices: dict[str, None] = {}
    data = drawn(motion_of(solution, None, name, notices))
    assert not notices
    assert data["notices"] == []
    look, up, front = (np.array(data[key]) for key in ("look", "up", "front"))
    checked(View(up, look, front))
    assert look @ up > -1e-9
    for kind, lengths in vectors(data):
        assert lengths.max() <= LARGEST["N" if kind == "arrow" else "N m"] * data["size"] * (1 + 1e-6)
    assert np.ptp(data["box"], axis=0).max() < 1e3
    assert example(name) is not None


def test_a_motion_in_space_is_seen_obliquely() -> None:
    data = drawn(steady_disk(TIMES))
    assert np.array(data["look"]) @ data["up"] == pytest.approx(0.42, abs=0.03)
