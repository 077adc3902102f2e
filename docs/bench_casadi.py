"""Compares an external function for CasADi with the same model written in CasADi.

``python docs/bench_casadi.py [LINKS]`` prints the times of the dynamics and of their Jacobian with respect to the state
for the chain of ``build_examples/spatial_chain.py``, 4 links by default: by ``kanegen.emit_casadi``, and from C code
that CasADi generates from expressions (SX). Both are compiled with the same flags and called through CasADi, one state
at a time, with the parameters as arguments; the least of 15 averages counts.

The expressions are the recursive equations of Newton and Euler, written for CasADi: M and the other terms from inverse
dynamics, ``M u' = b`` by ``L D L^T``, or by QR, which is what ``casadi.solve`` does without further arguments.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

import kanegen as kg

HERE = Path(__file__).resolve().parent
FLAGS = ("-O3 -march=native -fno-math-errno", "-O2 -fno-math-errno")
REPEATS, CALLS = 15, 2000


class Times(NamedTuple):
    """Times of one call in us, and the values."""

    dynamics: float
    jacobian: float
    values: tuple[np.ndarray, np.ndarray]

    @property
    def both(self) -> float:
        """The time of dynamics and Jacobian, by one call each."""
        return self.dynamics + self.jacobian


def turn(angle: Any, axis: int) -> Any:
    """The matrix that turns vectors of a frame into those of the frame turned by ``angle`` about x (0) or y (1)."""
    c, s = ca.cos(angle), ca.sin(angle)
    about_x = ca.vertcat(ca.horzcat(1, 0, 0), ca.horzcat(0, c, s), ca.horzcat(0, -s, c))
    about_y = ca.vertcat(ca.horzcat(c, 0, -s), ca.horzcat(0, 1, 0), ca.horzcat(s, 0, c))
    return (about_x, about_y)[axis]


def inverse_dynamics(q: Any, u: Any, udot: Any, p: dict[str, Any]) -> Any:
    """The generalized forces of a motion of the chain, by the recursion of Newton and Euler."""
    n = q.numel() // 2
    omega, alpha, acceleration = ca.SX.zeros(3), ca.SX.zeros(3), ca.vertcat(0, 0, p["g"])
    links = []
    for i in range(n):
        turns = [turn(q[2 * i + k], k) for k in range(2)]
        for k, E in enumerate(turns):
            j, axis = 2 * i + k, ca.DM([1 - k, k, 0])
            carried, acceleration = ca.mtimes(E, omega), ca.mtimes(E, acceleration)
            omega = carried + axis * u[j]
            alpha = ca.mtimes(E, alpha) + axis * udot[j] + ca.cross(carried, axis * u[j])
        d = ca.vertcat(0, 0, -p[f"l_{i + 1}"])
        center = acceleration + ca.cross(alpha, d / 2) + ca.cross(omega, ca.cross(omega, d / 2))
        inertia = ca.vertcat(*(p[f"{name}_{i + 1}"] for name in ("Ixx", "Iyy", "Izz")))
        torque = inertia * alpha + ca.cross(omega, inertia * omega)
        links.append((turns, p[f"m_{i + 1}"] * center, torque, d))
        acceleration = acceleration + ca.cross(alpha, d) + ca.cross(omega, ca.cross(omega, d))
    forces = [None] * (2 * n)
    force, torque = ca.SX.zeros(3), ca.SX.zeros(3)
    for i, (turns, own, moment, d) in reversed(list(enumerate(links))):
        torque = moment + ca.cross(d / 2, own) + torque + ca.cross(d, force)
        force = force + own
        for k in (1, 0):
            forces[2 * i + k] = torque[k]
            torque, force = ca.mtimes(turns[k].T, torque), ca.mtimes(turns[k].T, force)
    return ca.vertcat(*forces)


def expressions(names: list[str], n: int, solver: str) -> tuple[Any, Any]:
    """The functions (x, p) -> xdot and (x, p) -> d xdot / dx of the chain."""
    x, p, udot = ca.SX.sym("x", 4 * n), ca.SX.sym("p", len(names)), ca.SX.sym("udot", 2 * n)
    q, u = x[: 2 * n], x[2 * n :]
    forces = inverse_dynamics(q, u, udot, {name: p[k] for k, name in enumerate(names)})
    M = ca.cse(ca.jacobian(forces, udot))
    right = -ca.substitute(forces, udot, ca.SX.zeros(2 * n))
    if solver == "qr":
        solved = ca.solve(M, right)
    else:
        D, LT, order = ca.ldl(M, False)
        solved = ca.ldl_solve(right, D, LT, order)
    xdot = ca.cse(ca.vertcat(u, solved))
    jacobian = ca.cse(ca.jacobian(xdot, x))
    return ca.Function("dynamics", [x, p], [xdot]), ca.Function("jacobian", [x, p], [jacobian])


def timed(function: Any, arguments: list[np.ndarray]) -> tuple[float, np.ndarray]:
    """The time of a call in us and its first output; other outputs are not asked for."""
    buffer, evaluate = function.buffer()
    given = [np.ascontiguousarray(x, dtype=float) for x in arguments]
    result = np.zeros(function.nnz_out(0))
    for k, values in enumerate(given):
        buffer.set_arg(k, memoryview(values))
    buffer.set_res(0, memoryview(result))
    best = np.inf
    for _ in range(REPEATS):
        began = time.perf_counter()
        for _ in range(CALLS):
            evaluate()
        best = min(best, (time.perf_counter() - began) / CALLS)
    return 1e6 * best, np.array(ca.DM(function.sparsity_out(0), result))


def of_kanegen(model: kg.Model, folder: Path, flags: str, x: np.ndarray) -> Times:
    """The external function."""
    path = kg.emit_casadi(model, folder)
    subprocess.run(["make", "-s", f"CFLAGS={flags}"], cwd=path, check=True)
    library = ca.Importer(str(path / f"{model.name}_casadi.so"), "dll")
    p = np.array(list(model.parameters.values()), dtype=float)
    f, J = (ca.external(f"{prefix}{model.name}_dynamics", library) for prefix in ("", "jac_"))
    (first, values), (second, slopes) = timed(f, [x, [], p]), timed(J, [x, [], p])
    return Times(first, second, (values, slopes))


def of_expressions(model: kg.Model, folder: Path, flags: str, x: np.ndarray, solver: str) -> Times:
    """The code that CasADi generates."""
    folder.mkdir()
    code = ca.CodeGenerator("chain.c")
    for function in expressions(list(map(str, model.parameters)), x.size // 4, solver):
        code.add(function)
    code.generate(f"{folder}/")
    command = ["cc", *flags.split(), "-fPIC", "-shared", "chain.c", "-lm", "-o", "chain.so"]
    subprocess.run(command, cwd=folder, check=True)
    p = np.array(list(model.parameters.values()), dtype=float)
    f, J = (ca.external(name, str(folder / "chain.so")) for name in ("dynamics", "jacobian"))
    (first, values), (second, slopes) = timed(f, [x, p]), timed(J, [x, p])
    return Times(first, second, (values, slopes))


SOLVERS = {"SX, `L D L^T`": "ldl", "SX, QR": "qr"}
"""The programs that CasADi generates, and how they solve ``M u' = b``."""


def measured(links: int, flags: str, programs: Iterable[str] = tuple(SOLVERS)) -> dict[str, Times]:
    """The times of all programs; raises AssertionError if they do not compute the same values."""
    sys.path.append(str(HERE.parent / "build_examples"))
    import spatial_chain

    model, x = spatial_chain.model(links), 0.5 * np.random.default_rng(0).standard_normal(4 * links)
    with TemporaryDirectory() as name:
        folder = Path(name)
        result = {"kanegen": of_kanegen(model, folder / "kanegen", flags, x)}
        for program in programs:
            solver = SOLVERS[program]
            result[program] = of_expressions(model, folder / solver, flags, x, solver)
    for times in result.values():
        for found, expected in zip(times.values, result["kanegen"].values, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
    return result


def main() -> None:
    links = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    print("| flags | program | dynamics | Jacobian | both | kanegen takes |\n|---|---|---|---|---|---|")
    for flags in FLAGS:
        result = measured(links, flags)
        for program, times in result.items():
            share = f"{result['kanegen'].both / times.both:.0%}" if program != "kanegen" else ""
            cells = (f"`{flags}`", program, *(f"{x:.2f} us" for x in (*times[:2], times.both)), share)
            print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
