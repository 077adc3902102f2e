"""MuJoCo: forward dynamics of trees of bodies, and its Runge-Kutta method of order 4.

Used as its documentation says (https://mujoco.readthedocs.io/en/stable/computation): ``mj_forward`` computes the
accelerations; contacts and constraints are disabled, because there are none; ``integrator="RK4"`` is the method for
energy-conserving systems without contacts; ``mj_step`` with ``nstep`` runs many steps without Python. MuJoCo has no
adaptive steps: its runs have fixed steps that become shorter with the tolerance.
"""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.library import FAST, render
from benchmarks.problems import Problem
from benchmarks.program import FIRST_TOLERANCE, SAMPLE_SECONDS, Program, Task, check_accelerations
from benchmarks.trees import TINY_INERTIA, Joint, Tree, grouped
from kanegen.arrays import Array
from kanegen.cli.bench import timing
from kanegen.cli.bench.compiled import load
from kanegen.cli.bench.peers import PeerError
from kanegen.errors import SolveError

NAME = "MuJoCo"
LONGEST_STEP = 0.02


def program(problem: Problem) -> Program:
    import mujoco

    tree = _tree(problem)
    model = mujoco.MjModel.from_xml_string(mjcf(tree))
    data, places = mujoco.MjData(model), _Places(model, tree)

    def accelerations(q: Array, u: Array) -> Array:
        data.qpos[:], data.qvel[:] = places.arrays(q, u)
        mujoco.mj_forward(model, data)
        return places.speeds(data.qacc)

    check_accelerations(problem, NAME, accelerations)
    names = {"forward": mujoco.mj_forward, "model": model, "data": data}
    runs = {} if tree.is_free else {"RK4": partial(_run, mujoco, model, problem, tree)}
    return Program(
        form="tree of bodies",
        in_c=_in_c(mujoco, model, data, *places.arrays(problem.states.q, problem.states.u)),
        in_python=timing.statement_task("forward(model, data)", names),
        runs=runs,
    )


def first(problem: Problem) -> Array:
    """From the tree to the end of the first motion."""
    import mujoco

    tree = _tree(problem)
    return _run(mujoco, mujoco.MjModel.from_xml_string(mjcf(tree)), problem, tree, FIRST_TOLERANCE)


def _tree(problem: Problem) -> Tree:
    if problem.joints is None:
        raise PeerError(f"{problem.name} is no tree of joints: its constraints would be soft in MuJoCo")
    return problem.joints


class _Places:
    """Places of the coordinates and rates of a tree in MuJoCo's arrays, which have the bodies depth first."""

    def __init__(self, model: Any, tree: Tree) -> None:
        self._tree = tree
        joints = [model.joint(str(k)) for k in range(len(tree.joints))]
        self._q = np.concatenate([joint.qposadr[0] + np.arange(len(joint.qpos0)) for joint in joints])
        self._v = np.concatenate([joint.dofadr[0] + np.arange(len(joint.damping)) for joint in joints])

    def arrays(self, q: Array, u: Array) -> tuple[Array, Array]:
        """``qpos`` and ``qvel`` (..., n) at coordinates and speeds of the model."""
        made = np.empty_like(q), np.empty_like(u)
        made[0][..., self._q], made[1][..., self._v] = self._tree.positions(q), self._tree.rates(u)
        return made

    def speeds(self, rates: Array) -> Array:
        """The model's speeds or accelerations at ``qvel`` or ``qacc``."""
        return self._tree.speeds(rates[self._v])

    def coordinates(self, positions: Array) -> Array:
        """The model's coordinates at ``qpos``, without a free joint."""
        return self._tree.speeds(positions[self._q])


def mjcf(tree: Tree) -> str:
    """The model in MuJoCo's XML; joints without mass belong to the body that follows them."""
    groups = grouped(tree.joints)
    children: dict[int, list[int]] = {}
    for k, (parent, _) in enumerate(groups):
        children.setdefault(parent, []).append(k)
    lines = [
        "<mujoco>",
        f'<option gravity="{_numbers(tree.gravity)}" integrator="RK4">',
        '<flag contact="disable" constraint="disable"/></option>',
        '<compiler angle="radian" inertiafromgeom="false" autolimits="true"/>',
        "<worldbody>",
    ]

    def add(k: int) -> None:
        members = [tree.joints[j] for j in groups[k][1]]
        last = members[-1]
        inertia = [max(value, TINY_INERTIA) for value in last.inertia]
        lines.append(f'<body pos="{_numbers(members[0].offset)}">')
        lines.append(
            f'<inertial pos="{_numbers(last.center)}" mass="{last.mass!r}" diaginertia="{_numbers(inertia)}"/>'
        )
        lines.extend(map(_joint, groups[k][1], members))
        for child in children.get(k, ()):
            add(child)
        lines.append("</body>")

    for root in children[-1]:
        add(root)
    return "\n".join([*lines, "</worldbody>", "</mujoco>"])


def _joint(index: int, joint: Joint) -> str:
    if joint.kind == "free":
        return f'<freejoint name="{index}"/>'
    axis = _numbers([float(joint.kind[1] == name) for name in "xyz"])
    kind = "slide" if joint.kind[0] == "p" else "hinge"
    torque = f'stiffness="{joint.stiffness!r}" damping="{joint.damping!r}"'
    return f'<joint name="{index}" type="{kind}" axis="{axis}" {torque}/>'


def _numbers(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)


def _in_c(mujoco: Any, model: Any, data: Any, q: Array, v: Array) -> Task:
    """A task that calls `mj_forward` at the states in turn, in C."""
    library = ctypes.CDLL(str(next(Path(mujoco.__file__).parent.glob("libmujoco*"))))
    loop = load({"loop.c": render("mujoco.c.jinja")}, {"loop.c": FAST})
    loop.bench_mujoco.restype = ctypes.c_double
    q, v = np.ascontiguousarray(q), np.ascontiguousarray(v)
    arguments = (
        ctypes.cast(library.mj_forward, ctypes.c_void_p),
        *(ctypes.c_void_p(item._address) for item in (model, data)),
        *(ctypes.c_void_p(array.ctypes.data) for array in (data.qpos, data.qvel, q, v)),
        *(ctypes.c_int(number) for number in (model.nq, model.nv, len(q))),
    )
    addressed = (library, model, data, q, v)

    # The argument keeps what the addresses belong to.
    def seconds(calls: int, addressed: Any = addressed) -> float:
        return float(loop.bench_mujoco(ctypes.c_long(calls), *arguments))

    return timing.sampled(seconds, SAMPLE_SECONDS)


def _run(mujoco: Any, model: Any, problem: Problem, tree: Tree, tolerance: float) -> Array:
    """Fixed steps: an error of order h^4 is proportional to the tolerance."""
    steps = int(np.ceil(problem.duration / (LONGEST_STEP * (tolerance / 1e-3) ** 0.25)))
    model.opt.timestep = problem.duration / steps
    data, places = mujoco.MjData(model), _Places(model, tree)
    data.qpos[:], data.qvel[:] = places.arrays(*problem.start)
    mujoco.mj_step(model, data, steps)
    end = np.concatenate((places.coordinates(data.qpos), places.speeds(data.qvel)))
    if not np.isfinite(end).all():
        raise SolveError(f"MuJoCo with {steps} steps left the finite numbers")
    return end
