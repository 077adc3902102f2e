"""Pinocchio: the articulated-body algorithm in C++, and the code that CasADi generates from it.

Used as its documentation says (https://stack-of-tasks.github.io/pinocchio, "Cheat sheet" and "Code generation"):
``pinocchio::aba`` of a ``Model`` made by ``addJoint`` and ``appendBodyToJoint``, compiled with ``-O3 -march=native
-DNDEBUG``; ``ModelTpl<casadi::SX>`` for generated code. From Python, ``pin.aba``. Pinocchio has no integrator with
error control: SciPy's DOP853 calls ``pin.aba``.

The C++ file takes half a minute to compile. Its libraries remain in kanegen's cache.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.casadi_peer import link_timed, timed_casadi, timed_folder
from benchmarks.library import render
from benchmarks.problems import Problem
from benchmarks.program import (
    FIRST_TOLERANCE,
    SAMPLE_SECONDS,
    SCIPY_TOLERANCES,
    Program,
    Task,
    check_accelerations,
)
from benchmarks.trees import EULER, Tree
from kanegen.arrays import Array
from kanegen.backends.cython import processes, toolchain
from kanegen.backends.cython.cache import cache_folder
from kanegen.cli.bench import compiled, timing
from kanegen.cli.bench.peers import PeerError, integrate
from kanegen.errors import BuildError

NAME = "Pinocchio"
TYPES = {"px": "PX", "py": "PY", "pz": "PZ", "rx": "RX", "ry": "RY", "rz": "RZ", "free": "FreeFlyer"}
KINDS = tuple(TYPES)
"""The joints by their numbers in the C++ file."""

BOOST = (
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_VARIANT_USE_RELAXED_GET_BY_DEFAULT",
)
"""Pinocchio's own build defines the first two; the last one allows a list of joints without some of Pinocchio's."""

FLAGS = ("-std=c++17", "-DNDEBUG", "-w", "-fPIC", "-shared", *BOOST)
FAST = ("-O3", "-march=native")
GENERATOR = ("-O0", "-DGENERATE")
MOST_GENERATED = 40
"""Joints up to which generated code is timed: it takes long to compile for more."""


def program(problem: Problem) -> Program:
    import pinocchio as pin

    tree, states = _tree(problem), problem.states
    model, motion = pinocchio_model(pin, tree), _Motion(tree)
    data = model.createData()
    rows = [np.array(part) for part in zip(*map(motion.arguments, states.q, states.u), strict=True)]
    accelerations = _accelerations(pin, tree)
    check_accelerations(problem, NAME, accelerations)
    names = {"aba": pin.aba, "model": model, "data": data, **dict(zip("qvt", (row[0] for row in rows), strict=True))}
    runs = {} if tree.is_free else {"DOP853": partial(_run, problem, accelerations)}
    in_c, codegen, note = None, None, ""
    try:
        expected = pin.aba(model, data, *(row[0] for row in rows)).copy()
        in_c = _Compiled(_library(*FAST), tree).task(rows, expected)
        if len(tree.joints) <= MOST_GENERATED:
            codegen = _Compiled(_library(*GENERATOR), tree).generated(rows, expected)
    except (BuildError, ImportError, OSError) as error:
        note = f"; C++ failed: {str(error).splitlines()[0]}"
    return Program(
        form="tree of bodies" + note,
        in_c=in_c,
        in_python=timing.statement_task("aba(model, data, q, v, t)", names),
        codegen=codegen,
        runs=runs,
        tolerances=SCIPY_TOLERANCES,
    )


def first(problem: Problem) -> Array:
    """From the tree to the end of the first motion, without code of its own."""
    import pinocchio as pin

    return _run(problem, _accelerations(pin, _tree(problem)), FIRST_TOLERANCE)


def _tree(problem: Problem) -> Tree:
    if problem.joints is None:
        raise PeerError(f"{problem.name} is no tree of joints")
    return problem.joints


def _accelerations(pin: Any, tree: Tree) -> Callable[[Array, Array], Array]:
    """u' at q and u of the model, by `pin.aba`."""
    model, motion = pinocchio_model(pin, tree), _Motion(tree)
    data = model.createData()

    def accelerations(q: Array, u: Array) -> Array:
        position, rate, torque = motion.arguments(q, u)
        return motion.accelerations(position, rate, pin.aba(model, data, position, rate, torque))

    return accelerations


def pinocchio_model(pin: Any, tree: Tree) -> Any:
    """The tree as a `pinocchio.Model`."""
    model = pin.Model()
    model.gravity.linear = np.array(tree.gravity)
    for k, joint in enumerate(tree.joints):
        place = pin.SE3(np.eye(3), np.array(joint.offset))
        index = model.addJoint(joint.parent + 1, getattr(pin, f"JointModel{TYPES[joint.kind]}")(), place, f"joint_{k}")
        inertia = pin.Inertia(joint.mass, np.array(joint.center), np.diag(joint.inertia))
        model.appendBodyToJoint(index, inertia, pin.SE3.Identity())
    return model


class _Motion:
    """Coordinates of a model as Pinocchio's: its free joint has the velocity of the origin in the frame of the body."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        skip = 5 if tree.is_free else 0
        self._stiffness, self._damping = (
            np.array([0.0] * skip + [getattr(joint, name) for joint in tree.joints])
            for name in ("stiffness", "damping")
        )

    def arguments(self, q: Array, u: Array) -> tuple[Array, Array, Array]:
        """Positions, rates and torques."""
        position, rate = self._tree.positions(q), self._tree.rates(u)
        if not self._tree.is_free:
            return position, rate, -self._stiffness * position - self._damping * rate
        turning = rotation(q[EULER])
        position = np.concatenate((q[:3], q[4:7], q[3:4], q[7:]))
        rate = np.concatenate((turning.T @ u[:3], u[3:]))
        return position, rate, -self._stiffness * np.concatenate((np.zeros(6), q[7:])) - self._damping * rate

    def accelerations(self, position: Array, rate: Array, found: Array) -> Array:
        """u' of the model from the accelerations of the joints."""
        if not self._tree.is_free:
            return self._tree.speeds(found)
        x, y, z, w = position[3:7]
        turning = rotation(np.array([w, x, y, z]))
        return np.concatenate((turning @ (found[:3] + np.cross(rate[3:6], rate[:3])), found[3:]))


def rotation(e: Array) -> Array:
    """The rotation matrix (3, 3) of Euler parameters e / |e|, scalar first."""
    w, x, y, z = e / np.linalg.norm(e)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _run(problem: Problem, accelerations: Callable[[Array, Array], Array], tolerance: float) -> Array:
    q, u = problem.start

    def rates(t: float, y: Array) -> Array:
        return np.concatenate((y[q.size :], accelerations(y[: q.size], y[q.size :])))

    return integrate(rates, problem.duration, (0.0, np.concatenate((q, u))), "DOP853", tolerance)


class _Compiled:
    """A tree in a library of the C++ file."""

    def __init__(self, library: ctypes.CDLL, tree: Tree) -> None:
        joints = tree.joints
        library.tree_make.restype = ctypes.c_void_p
        numbers = ([joint.parent for joint in joints], [KINDS.index(joint.kind) for joint in joints])
        fields = ("offset", "mass", "center", "inertia")
        arrays = [np.array(values, dtype=np.int32) for values in numbers]
        arrays += [np.array([getattr(joint, name) for joint in joints], dtype=float) for name in fields]
        arrays.append(np.array(tree.gravity))
        self._library = library
        self._tree = ctypes.c_void_p(library.tree_make(len(joints), *map(_address, arrays)))

    def task(self, rows: Sequence[Array], expected: Array) -> Task:
        """A task that runs the algorithm at the rows of q, v, tau in turn; at the first it must give ``expected``."""
        out = np.empty_like(expected)
        arrays = [*map(np.ascontiguousarray, rows), out]
        self._library.tree_seconds.restype = ctypes.c_double

        def seconds(calls: int) -> float:
            count = (ctypes.c_long(calls), ctypes.c_int(len(rows[0])))
            return float(self._library.tree_seconds(self._tree, *count, *map(_address, arrays)))

        seconds(1)
        compiled.check_agreement(NAME, {"pin.aba": expected, "C++": out})
        return timing.sampled(seconds, SAMPLE_SECONDS)

    def generated(self, rows: Sequence[Array], expected: Array) -> Task:
        """A task like ``task`` that runs the C code that CasADi writes for the algorithm."""
        import casadi

        folder = timed_folder()
        self._library.tree_generate(self._tree, os.fsencode(f"{folder}/"))
        library = link_timed(folder)
        found = np.array(casadi.external("f", str(library))(*(row[0] for row in rows))).ravel()
        compiled.check_agreement(NAME, {"pin.aba": expected, "generated": found})
        return timed_casadi(library, rows, expected.size)


def _address(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@cache
def _library(*flags: str) -> ctypes.CDLL:
    """The C++ file compiled with more flags, from the cache or the compiler. Raises `BuildError`."""
    import casadi
    import pinocchio

    casadi_folder = Path(casadi.__file__).parent
    headers = Path(pinocchio.__file__).parents[4] / "include"
    if not (headers / "pinocchio" / "multibody.hpp").is_file():
        raise BuildError(f"there are no headers of Pinocchio in {headers}")
    text = render("pinocchio.cpp.jinja")
    include = (headers, casadi_folder / "include" / "eigen3", casadi_folder / "include")
    flags = (*FLAGS, *flags, *(f"-I{folder}" for folder in include))
    key = "\0".join((text, *flags, toolchain.cpu_identity(), pinocchio.__version__, casadi.__version__))
    target = cache_folder() / "bench" / hashlib.sha256(key.encode()).hexdigest()[:16] / "pinocchio.so"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as name:
            source, made = Path(name) / "tree.cpp", Path(name) / "pinocchio.so"
            source.write_text(text, encoding="utf-8")
            places = (f"-L{casadi_folder}", "-lcasadi", f"-Wl,-rpath,{casadi_folder}")
            processes.run(["g++", *flags, str(source), *places, "-o", str(made)], folder=Path(name))
            made.replace(target)
    return ctypes.CDLL(str(target))
