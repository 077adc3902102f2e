"""The humanoid against MuJoCo, which knows nothing of its equations."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from systems import example, model_of

import kanegen as kg

AXES = {"x": "1 0 0", "y": "0 1 0", "z": "0 0 1"}


def mjcf(h: ModuleType) -> str:
    """The tree of the example as a model of MuJoCo, from its tables."""
    children: dict[str, list[tuple[str, str, Any]]] = {}
    for side, name, joint in h.sided():
        children.setdefault(joint.parent if joint.parent in h.TRUNK else joint.parent + side, []).append(
            (side, name, joint)
        )
    spring = f'stiffness="{h.DEFAULTS["k"]}" damping="{h.DEFAULTS["d"]}"'

    def body(name: str, kind: str, place: tuple[float, float], hinges: str) -> str:
        segment = h.SEGMENTS[kind]
        lines = [f'<body name="{name}" pos="0 {place[0]} {place[1]}">{hinges}']
        lines.append(
            f'<inertial pos="{segment.center[0]} 0 {segment.center[1]}" mass="{segment.mass}" '
            f'diaginertia="{" ".join(map(str, segment.inertia))}"/>'
        )
        for side, joint_name, joint in children.get(name, []):
            y, z = joint.position
            hinges = "".join(
                f'<joint name="{joint_name}{side}_{axis}" axis="{AXES[axis]}" {spring}/>' for axis in joint.axes
            )
            lines.append(body(joint.child + side, joint.child, (-y if side == "_r" else y, z), hinges))
        return "".join([*lines, "</body>"])

    return (
        '<mujoco><option gravity="0 0 -9.81"><flag contact="disable"/></option>'
        f"<worldbody>{body('pelvis', 'pelvis', (0.0, 0.0), '<freejoint/>')}</worldbody></mujoco>"
    )


@pytest.mark.target
def test_accelerations_of_the_humanoid_are_those_of_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco", reason="needs the package mujoco")
    h = example("humanoid")
    model = mujoco.MjModel.from_xml_string(mjcf(h))
    data = mujoco.MjData(model)
    places = [model.jnt_qposadr[model.joint(name).id] for name in h.ANGLES]
    rates = [model.jnt_dofadr[model.joint(name).id] for name in h.ANGLES]
    solver = kg.build(model_of("humanoid"), functions=("rhs",))
    rng = np.random.default_rng(0)
    for _ in range(3):
        q, u = rng.uniform(-1.0, 1.0, 31), rng.uniform(-1.0, 1.0, 30)
        q[3:7] /= np.linalg.norm(q[3:7])
        data.qpos[:7], data.qpos[places] = q[:7], q[7:]
        data.qvel[:6], data.qvel[rates] = u[:6], u[6:]
        mujoco.mj_forward(model, data)
        reference = np.concatenate([data.qacc[:6], data.qacc[rates]])
        # Both solve with a mass matrix of condition 2e4.
        np.testing.assert_allclose(
            solver.rhs(0.0, q, u)[1], reference, rtol=1e-10, atol=1e-10 * np.abs(reference).max()
        )


@pytest.mark.target
def test_a_symmetric_motion_of_the_humanoid_stays_symmetric_to_the_last_bit() -> None:
    """Left and right are evaluated with the same rounding, so that accelerations out of the plane are exactly zero."""
    h = example("humanoid")
    solver = kg.build(model_of("humanoid"), functions=("rhs",))
    rng = np.random.default_rng(1)
    names = list(h.ANGLES)
    q = np.array([0.3, 0.0, 1.0, 0.9, 0.0, np.sqrt(0.19), 0.0, *mirrored(names, rng.uniform(-1.0, 1.0, 24))])
    u = np.array([0.5, 0.0, 1.0, 0.0, 2.0, 0.0, *mirrored(names, rng.uniform(-1.0, 1.0, 24))])
    acceleration = solver.rhs(0.0, q, u)[1]
    assert acceleration[[1, 3, 5]].tolist() == [0.0, 0.0, 0.0]
    assert acceleration[6:].tolist() == mirrored(names, acceleration[6:])
    assert np.abs(acceleration[6:]).min(where=[name.endswith("_y") for name in names], initial=np.inf) > 0.1


def mirrored(names: list[str], values: np.ndarray) -> list[float]:
    """The values with those on the right taken from the left, and none out of the plane in the middle."""
    known = dict(zip(names, values.tolist(), strict=True))
    result = []
    for name in names:
        sign = 1.0 if name.endswith("_y") else -1.0
        if "_r_" in name:
            result.append(sign * known[name.replace("_r_", "_l_")])
        else:
            result.append(known[name] if "_l_" in name or sign > 0.0 else 0.0)
    return result
