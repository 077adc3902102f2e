"""Models from URDF files against models by hand, forward kinematics by matrices, and MuJoCo."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robot_files as rf
import sympy as sm
import sympy.physics.mechanics as me
from scipy.spatial.transform import Rotation

import kanegen as kg


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """``kg.from_urdf`` of a text."""

    def read(text: str, **options: Any) -> kg.RobotModel:
        path = tmp_path / "robot.urdf"
        path.write_text(text, encoding="utf-8")
        return kg.from_urdf(path, **options)

    return read


def state(model: kg.Model, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A random state with unit Euler parameters, and inputs."""
    random = np.random.default_rng(seed)
    q, u, r = (random.uniform(-1.0, 1.0, len(x)) for x in (model.coordinates, model.speeds, model.inputs))
    for group in model.euler_parameters:
        index = [model.coordinates.index(e) for e in group]
        q[index] /= np.linalg.norm(q[index])
    return q, u, r


def accelerations(model: kg.Model, q: Any, u: Any, r: Any) -> np.ndarray:
    solver = kg.build(model, functions=("rhs",))
    return np.asarray(solver.rhs(0.0, q, u, r)[1])


def pose(model: kg.RobotModel, name: str, q: Any) -> tuple[np.ndarray, np.ndarray]:
    """The rotation matrix of a link, and the position of its origin."""
    frame, point = model.link(name)
    values = {**dict(zip(model.coordinates, q, strict=True)), **model.parameters}
    rotation = model.frame.dcm(frame).subs(values)
    position = point.pos_from(model.ground.point).to_matrix(model.frame).subs(values)
    return np.array(rotation, dtype=float), np.array(position, dtype=float).ravel()


def test_a_two_link_arm_is_the_model_by_hand(read: Any) -> None:
    model = read(rf.TWO_LINKS)
    assert [str(x.func) for x in model.coordinates] == ["q_shoulder", "q_elbow"]
    assert [str(x.func) for x in model.speeds] == ["u_shoulder", "u_elbow"]
    assert [item.name for item in model.inputs] == ["tau_shoulder", "tau_elbow"]
    q, u, r = state(model)
    np.testing.assert_allclose(accelerations(model, q, u, r), accelerations(_by_hand(), q, u, r), rtol=1e-12)


def _by_hand() -> kg.Model:
    q1, q2, u1, u2 = me.dynamicsymbols("q1 q2 u1 u2")
    t1, t2 = sm.symbols("t1 t2")
    time = me.dynamicsymbols._t
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A, B = N.orientnew("A", "Axis", (q1, N.y)), N.orientnew("B", "Axis", (q1 + q2, N.y))
    A.set_ang_vel(N, u1 * N.y)
    B.set_ang_vel(N, (u1 + u2) * N.y)
    elbow = O.locatenew("elbow", -0.5 * A.z)
    upper, lower = O.locatenew("C1", -0.25 * A.z), elbow.locatenew("C2", -0.2 * B.z)
    bodies = (
        me.RigidBody("upper", upper, A, 2, (me.inertia(A, 0.05, 0.06, 0.02), upper)),
        me.RigidBody("lower", lower, B, 1.5, (me.inertia(B, 0.03, 0.04, 0.015), lower)),
    )
    return kg.Model(
        name="by hand",
        frame=N,
        coordinates=(q1, q2),
        speeds=(u1, u2),
        kinematics=(u1 - q1.diff(time), u2 - q2.diff(time)),
        bodies=bodies,
        inputs=(t1, t2),
        loads=[(A, (t1 - 0.3 * u1) * N.y), (A, -t2 * N.y), (B, t2 * N.y)],
        gravity=-9.81 * N.z,
    )


def test_links_are_where_matrices_place_them(read: Any) -> None:
    model = read(rf.MIXED)
    q, _, _ = state(model)
    place = Rotation.from_euler("xyz", (0.4, -0.7, 1.1)).as_matrix(), np.array((0.3, -0.1, 0.2))
    tilt, slide = np.array((1, 2, -0.5)) / np.sqrt(5.25), np.array((0.3, 0, 1)) / np.sqrt(1.09)
    moves = {
        "turret": (Rotation.from_rotvec(q[0] * np.array((0, 0, -1))).as_matrix(), np.zeros(3)),
        "mast": (np.eye(3), np.zeros(3)),
        "boom": (Rotation.from_rotvec(q[1] * tilt).as_matrix(), np.zeros(3)),
        "slide": (np.eye(3), q[2] * slide),
        "tip": (Rotation.from_rotvec(q[3] * np.array((1, 0, 0))).as_matrix(), np.zeros(3)),
    }
    rotation, position = np.eye(3), np.zeros(3)
    for name, move in moves.items():
        for turned, moved in (place, move):
            rotation, position = rotation @ turned, position + rotation @ moved
        found = pose(model, name, q)
        np.testing.assert_allclose(found[0], rotation, atol=1e-14)
        np.testing.assert_allclose(found[1], position, atol=1e-14)


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "planar", "floating"])
def test_velocities_of_all_kinds_of_joints_are_the_rates_of_positions(read: Any, kind: str) -> None:
    parts = (rf.link("a", 3.0), rf.link("b", 2.0), rf.link("c", 1.0))
    moving = (
        rf.joint("first", "revolute", "a", "b", rf.axis(1, 0, 2)),
        rf.joint("second", kind, "b", "c", rf.axis(0, 1, 0)),
    )
    model = read(rf.robot(*parts, *moving), floating_base=True)
    checked = model.extended(check_kinematics=True)
    q, u, r = state(model)
    np.testing.assert_array_equal(accelerations(checked, q, u, r), accelerations(model, q, u, r))
    assert len(model.speeds) == 7 + {"planar": 3, "floating": 6}.get(kind, 1)


def test_a_planar_joint_moves_normal_to_its_axis(read: Any) -> None:
    model = read(rf.robot(rf.link("a"), rf.link("b", 1.0), rf.joint("j", "planar", "a", "b", rf.axis(1, 2, 3))))
    axis = np.array((1, 2, 3)) / np.sqrt(14)
    rest, moved = pose(model, "b", (0, 0, 0)), pose(model, "b", (0.3, 0.4, 0.9))
    across = rest[0].T @ (moved[1] - rest[1])
    assert abs(across @ axis) < 1e-15
    assert np.linalg.norm(across) == pytest.approx(0.5)
    np.testing.assert_allclose(rest[0].T @ moved[0], Rotation.from_rotvec(0.9 * axis).as_matrix(), atol=1e-14)


def test_a_fixed_chain_is_one_body(read: Any) -> None:
    model = read(rf.MIXED)
    assert [str(body.name) for body in model.bodies] == ["turret", "boom", "slide", "tip"]
    q, u, _ = state(model)
    solver = kg.build(model, functions=("kinetic_energy",))
    whole, parts = solver.kinetic_energy(0.0, q, u), 0.0
    for name, mass in (("turret", 3.0), ("plate", 0.7), ("boom", 2.0), ("slide", 1.2), ("tip", 0.4)):
        frame, point = model.link(name)
        center = point.locatenew(f"{name}_mass", 0.1 * frame.x - 0.2 * frame.y + 0.05 * frame.z)
        parts += _energy(model, frame, center, mass, q, u)
    assert whole == pytest.approx(parts, rel=1e-7)  # the error of differences


def _energy(model: kg.RobotModel, frame: Any, center: Any, mass: float, q: Any, u: Any) -> float:
    """The kinetic energy of one link, from differences of its pose along the motion."""
    turned = Rotation.from_euler("xyz", (0.3, 0.2, -0.5)).as_matrix()
    central = np.array([[0.05, 0.004, -0.003], [0.004, 0.06, 0.002], [-0.003, 0.002, 0.04]])
    values, h = model.parameters, 1e-4

    def at(position: Any) -> tuple[np.ndarray, np.ndarray]:
        known = {**dict(zip(model.coordinates, position, strict=True)), **values}
        place = center.pos_from(model.ground.point).to_matrix(model.frame).subs(known)
        return np.array(model.frame.dcm(frame).subs(known), dtype=float), np.array(place, dtype=float).ravel()

    (ahead, far), (behind, near), (now, _) = at(q + h * u), at(q - h * u), at(q)
    velocity = (far - near) / (2 * h)
    spin = now.T @ (ahead - behind) / (2 * h)
    omega = np.array((spin[2, 1], spin[0, 2], spin[1, 0]))
    return float(mass * velocity @ velocity + omega @ (turned @ central @ turned.T) @ omega) / 2


def test_accelerations_of_joints_of_all_axes_are_those_of_pinocchio(read: Any) -> None:
    """``pin.aba`` of Pinocchio 4.1 at ``state``, with the torques less damping times rates."""
    model = read(rf.MIXED)
    expected = (-1.22730854, -4.37767536, -8.98457828, -1.9099002)
    np.testing.assert_allclose(accelerations(model, *state(model)), expected, rtol=1e-8)


def test_accelerations_of_joints_of_all_axes_are_those_of_mujoco(read: Any) -> None:
    """MuJoCo's reader turns inertias otherwise if their axes are not those of the link, so that these are left out."""
    mujoco = pytest.importorskip("mujoco", reason="needs the package mujoco")
    text = rf.MIXED.replace('rpy="0.3 0.2 -0.5"', "")
    model = read(text)
    q, u, r = state(model)
    unmerged = '<robot name="robot"><mujoco><compiler fusestatic="false"/></mujoco>'
    other = mujoco.MjModel.from_xml_string(text.replace('<robot name="robot">', unmerged))
    data = mujoco.MjData(other)
    data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, u, r
    other.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_LIMIT
    mujoco.mj_forward(other, data)
    # MuJoCo finds the axes of each inertia by an iteration with a tolerance of its own
    np.testing.assert_allclose(accelerations(model, q, u, r), data.qacc, rtol=1e-7)


def test_a_joint_that_follows_another_one_has_its_position(read: Any) -> None:
    parts = rf.link("a"), rf.link("b", 2.0), rf.link("c", 1.0), rf.link("d", 1.0)
    text = rf.robot(
        *parts,
        rf.joint("lead", "revolute", "a", "b", rf.axis(0, 0, 1)),
        rf.joint(
            "follow", "revolute", "b", "c", rf.axis(0, 1, 0) + '<mimic joint="lead" multiplier="-2" offset="0.5"/>'
        ),
        rf.joint("last", "prismatic", "a", "d", '<mimic joint="follow" multiplier="0.5"/>'),
    )
    model = read(text)
    assert len(model.coordinates) == len(model.inputs) == 1
    lead = model.motion("lead")
    assert sm.simplify(model.motion("follow").position - (0.5 - 2 * lead.position)) == 0
    assert sm.simplify(model.motion("last").rate + lead.rate) == 0
    free = read(text.replace("<mimic", "<visual"))
    q, u, r = state(model)
    whole = np.array((q[0], 0.5 - 2 * q[0], 0.25 - q[0]))
    ratios = np.array((1.0, -2.0, -1.0))
    solver = kg.build(free, functions=("Q", "P"))
    Q, P = solver.Q(0.0, whole, ratios * u[0]), solver.P(0.0, whole, ratios * u[0], np.array((r[0], 0.0, 0.0)))
    assert accelerations(model, q, u, r)[0] == pytest.approx((ratios @ P) / (ratios @ Q @ ratios), rel=1e-10)


def test_a_floating_base_falls_and_keeps_its_momentum(read: Any) -> None:
    model = read(rf.TWO_LINKS.replace('<link name="ground"/>', rf.link("ground", 4.0)), floating_base=True)
    assert [str(x.func) for x in model.coordinates[:4]] == ["q_base_x", "q_base_y", "q_base_z", "q_base_e0"]
    assert len(model.euler_parameters) == 1
    solver = kg.build(model, functions=("rhs", "momentum", "residuals"))
    q, u, _ = state(model)
    motion = solver.integrate((0.0, 0.3), q, u, rtol=1e-10, atol=1e-12)
    momentum = np.array([solver.momentum(*at)[:3] for at in zip(motion.t, motion.q, motion.u, strict=True)])
    weight = np.array((0.0, 0.0, -9.81 * (4.0 + 2.0 + 1.5)))
    np.testing.assert_allclose(momentum - momentum[0], motion.t[:, None] * weight, atol=1e-8)


def test_a_held_joint_is_fixed_at_its_position(read: Any) -> None:
    model, whole = read(rf.TWO_LINKS, hold={"elbow": 0.7}), read(rf.TWO_LINKS)
    assert [str(x.func) for x in model.coordinates] == ["q_shoulder"]
    q, u, _ = state(model)
    together = kg.build(whole, functions=("Q",)).Q(0.0, (q[0], 0.7), (u[0], 0.0))
    assert kg.build(model, functions=("Q",)).Q(0.0, q, u)[0, 0] == pytest.approx(together[0, 0], rel=1e-12)


def test_numbers_in_place_of_parameters_give_the_same_accelerations(read: Any) -> None:
    model, numbers = read(rf.MIXED), read(rf.MIXED, parameters=False)
    assert not numbers.parameters
    assert len(model.parameters) > 30
    q, u, r = state(model)
    np.testing.assert_allclose(accelerations(numbers, q, u, r), accelerations(model, q, u, r), rtol=1e-12)


def test_limits_and_friction_become_contacts_if_asked(read: Any) -> None:
    text = rf.TWO_LINKS.replace('damping="0.3"', 'damping="0.3" friction="0.5"')
    with pytest.warns(kg.ModelWarning, match="friction of joint shoulder"):
        assert not read(text).contacts
    model = read(text, limits=True, friction=True)
    assert [contact.name for contact in model.contacts] == [
        "friction of shoulder",
        "lower limit of elbow",
        "upper limit of elbow",
    ]
    assert model.joints["elbow"].limits.effort == 40.0
    assert model.joints["elbow"].limits.velocity == 3.0
    motion = kg.build(model).integrate((0.0, 2.0), (0.4, 0.3), (0.0, 0.0))
    assert motion.q[:, 1].min() > 0.2 - 1e-6
    assert model.initial[model.coordinates[1]] == 0.2


def test_names_become_symbols(read: Any) -> None:
    parts = rf.link("a"), rf.link("b-1", 2.0), rf.link("b 1", 1.0)
    model = read(rf.robot(*parts, rf.joint("j.1", "revolute", "a", "b-1"), rf.joint("j:1", "revolute", "b-1", "b 1")))
    assert [str(x.func) for x in model.coordinates] == ["q_j_1", "q_j_1_2"]
    assert {"m_b_1", "m_b_1_2"} <= {str(symbol) for symbol in model.parameters}
    assert model.motion("j:1").coordinates[0] is model.coordinates[1]


def test_a_robot_can_be_extended(read: Any) -> None:
    model = read(rf.TWO_LINKS)
    frame, point = model.link("lower")
    tip = point.locatenew("tip", -0.4 * frame.z)
    pull = sm.Symbol("pull")
    more = model.extended(
        loads=[(tip, pull * model.frame.x)],
        parameters={pull: 3.0},
        outputs={"tip": (tip.pos_from(model.ground.point), model.frame)},
    )
    solver = kg.build(more)
    assert solver.parameters["pull"] == 3.0
    np.testing.assert_allclose(solver.output("tip", 0.0, (0.0, 0.0), (0.0, 0.0)), (0.0, 0.0, -0.9), atol=1e-15)
    q, u, r = state(model)
    assert np.abs(solver.rhs(0.0, q, u, r)[1] - accelerations(model, q, u, r)).max() > 0.1
    np.testing.assert_allclose(solver.with_parameters(pull=0.0).rhs(0.0, q, u, r)[1], accelerations(model, q, u, r))


def test_an_effort_of_a_robot_can_follow_a_law(read: Any) -> None:
    """The input stays in its place; others follow those of the robot."""
    model = read(rf.TWO_LINKS)
    (joint, *_), further = model.joints, sm.Symbol("further")
    motion = model.motion(joint)
    more = model.extended(
        inputs=[kg.Input(motion.effort, law=-2 * motion.position - further), kg.Input(further, default=1.0)]
    )
    assert [item.symbol for item in more.inputs] == [*(item.symbol for item in model.inputs), further]
    assert more.inputs[0].law == -2 * motion.position - further
    assert model.inputs[0].law is None


def test_a_robot_in_other_speeds_is_a_plain_model(read: Any) -> None:
    model = read(rf.TWO_LINKS)
    assert type(model.with_orthogonal_speeds()) is kg.Model


def test_a_copy_by_pickle_has_links_and_joints(read: Any) -> None:
    model = read(rf.TWO_LINKS)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.joints["elbow"].limits == model.joints["elbow"].limits
    assert copy.link("lower").frame.name == "lower"
    assert copy.extended(name="other").name == "other"
