"""q' = C u + D at special states: no division by what can vanish where the kinematical equations are regular."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from emitted import STRICT
from rotations import TIME, Rotation, rotations
from scipy.integrate import solve_ivp

import kanegen as kg
from kanegen.derivation.states import special_coordinates
from kanegen.graph import Graph, Node, count_operations, evaluate
from kanegen.graph.linear import solve_linear
from kanegen.program.assemble import assemble
from kanegen.program.interpret import interpret
from kanegen.program.options import BuildOptions

STATES = 18
EXACT = 1e-12
"""Relative error of results in double precision at well conditioned states."""

NATURAL = Rotation("XYZ", "body", inertial=False)
"""The model whose q' was NaN at c = 0, because the code divided by sin(c)."""


def agree(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=EXACT * max(1.0, np.abs(expected).max(initial=0.0)))


FEW = 5
"""One in so many rotations is tested in every run, the others in the campaigns."""


@pytest.mark.parametrize(
    "rotation",
    [
        pytest.param(rotation, id=str(rotation), marks=[pytest.mark.campaign] if k % FEW else [])
        for k, rotation in enumerate([NATURAL, *rotations()])
    ],
)
def test_every_rotation_is_regular_wherever_it_can_be(rotation: Rotation) -> None:
    program, _ = assemble(kg.derive(rotation.model()), BuildOptions.of("reduced", ("rhs", "Q", "jacobian_q")))
    for q, u in rotation.states(STATES):
        values = {"t": [0.0], "q": q.tolist(), "u": u.tolist(), "r": [], "p": [], "g": []}
        expected = {"rhs": rotation.rates(q, u), "Q": rotation.mass_matrix(q), "jacobian_q": rotation.slopes(q, u)}
        for name, value in expected.items():
            status, actual = interpret(program, name, values)
            assert status == 0
            agree(np.reshape(actual, value.shape), value)


def test_the_order_of_the_equations_does_not_matter() -> None:
    orders = permutations(range(3))
    assert {kg.derive(Rotation("XYZ", "body", False, order).model()).qdot.operation_count for order in orders} == {19}


COMPILED = pytest.mark.parametrize("rotation", [NATURAL, Rotation("ZXZ", "space", True, (2, 0, 1))], ids=str)


@COMPILED
def test_compiled_functions_and_motions_at_right_angles(rotation: Rotation) -> None:
    solver = kg.build(rotation.model(), functions=("rhs", "Q", "jacobians"))
    for q, u in rotation.states(STATES, seed=1):
        agree(np.concatenate(solver.rhs(0.0, q, u)[:2]), rotation.rates(q, u))
        agree(solver.Q(0.0, q, u), rotation.mass_matrix(q))
        agree(solver.jacobian(0.0, q, u).q, rotation.slopes(q, u))
        run = solver.integrate((0.0, 0.01), q, u, rtol=1e-13, atol=1e-13)
        exact = solve_ivp(
            lambda _, y: rotation.rates(y[:3], y[3:]), (0.0, 0.01), [*q, *u], method="DOP853", rtol=1e-13, atol=1e-13
        )
        agree(np.concatenate([run.q[-1], run.u[-1]]), exact.y[:, -1])


@COMPILED
def test_emitted_code_at_right_angles(rotation: Rotation, tmp_path: Path) -> None:
    kg.emit(rotation.model(), tmp_path, functions=("rhs", "jacobian_q"))
    states = list(rotation.states(STATES, seed=2))
    rows = ",\n".join("{" + ", ".join(float(x).hex() for x in (*q, *u)) + "}" for q, u in states)
    (tmp_path / "main.c").write_text(MAIN % rows)
    subprocess.run([*STRICT, "main.c", "turning.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    printed = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    results = np.array([float.fromhex(word) for word in printed.split()]).reshape(STATES, 24)
    for (q, u), result in zip(states, results, strict=True):
        agree(result[:6], rotation.rates(q, u))
        agree(result[6:].reshape(6, 3), rotation.slopes(q, u))


MAIN = """#include <stdio.h>
#include "turning.h"
static const double states[][6] = {
%s
};
int main(void) {
  turning_context ctx;
  (void)turning_init(&ctx, NULL); /* the model has no start */
  for (unsigned i = 0; i < sizeof states / sizeof states[0]; i++) {
    double out[24];
    if (turning_set_state(&ctx, 0.0, states[i]) < 0 || turning_rhs(&ctx, 0.0, states[i], NULL, out) < 0) return 2;
    if (turning_jacobian_q(&ctx, out + 6) < 0) return 3;
    for (int k = 0; k < 24; k++) printf("%%a ", out[k]);
  }
  return 0;
}
"""


def aircraft(order: Sequence[int]) -> tuple[kg.Model, Any]:
    """Six degrees of freedom with velocities (u, v, w, p, q, r) in body axes; SymPy's matrix of the rates."""
    q, u = me.dynamicsymbols("x:3 phi theta psi"), me.dynamicsymbols("u v w p q r")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_body_fixed(N, (q[5], q[4], q[3]), "ZYX")
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", sum((a * axis for a, axis in zip(q[:3], N, strict=True)), me.Vector(0)))
    velocity, spin = P.pos_from(O).dt(N), B.ang_vel_in(N)
    components = [*(velocity.dot(axis) for axis in B), *(spin.dot(axis) for axis in B)]
    W = sm.lambdify([q], sm.Matrix(components).jacobian([x.diff(TIME) for x in q]), "numpy")
    P.set_vel(N, sum((a * axis for a, axis in zip(u[:3], B, strict=True)), me.Vector(0)))
    B.set_ang_vel(N, sum((a * axis for a, axis in zip(u[3:], B, strict=True)), me.Vector(0)))
    body = me.RigidBody("aircraft", P, B, 2, (me.inertia(B, 1, 2, sm.Rational(5, 2)), P))
    kinematics = [u[k] - components[k] for k in order]
    return kg.Model(name="aircraft", frame=N, coordinates=q, speeds=u, kinematics=kinematics, bodies=[body]), W


@pytest.mark.parametrize("seed", range(3))
def test_velocities_in_body_axes(seed: int) -> None:
    """The inverse of the direction cosines is their transpose, without a division."""
    rng = np.random.default_rng(seed)
    model, W = aircraft(rng.permutation(6))
    equations = kg.derive(model)
    assert equations.qdot.operation_count <= 55
    compared = 0
    while compared < STATES:
        q, u = special_coordinates(rng, rng.uniform(-3.0, 3.0, 6)), rng.uniform(-1.0, 1.0, 6)
        if np.linalg.cond(W(q)) < 1e3:
            compared += 1
            agree(evaluate(equations.qdot.nodes, {"q": q.tolist(), "u": u.tolist()}), np.linalg.solve(W(q), u))


# -- other matrices ------------------------------------------------------------------------------------------


def solved(matrix: Callable[[Graph, list[Node]], list[list[Any]]], n_x: int) -> tuple[list[Node], Graph]:
    """The nodes of the inverse of a matrix of the inputs x."""
    graph = Graph()
    x = [graph.input("q", k) for k in range(n_x)]
    rows = [[y if isinstance(y, Node) else graph.const(y) for y in row] for row in matrix(graph, x)]
    identity = [[graph.one if i == j else graph.zero for j in range(len(rows))] for i in range(len(rows))]
    states = np.random.default_rng(1).uniform(0.2, 1.1, (3, n_x)).tolist()

    def samples(nodes: Sequence[Node]) -> list[tuple[float, ...]]:
        return list(zip(*(evaluate(nodes, {"q": state}) for state in states), strict=True))

    return [y for row in solve_linear(rows, identity, samples).rows for y in row], graph


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_full_matrices_have_an_inverse_wherever_they_are_regular(n: int) -> None:
    """Every entry is an input, so that each can be zero."""
    nodes, _ = solved(lambda g, x: [x[n * i : n * i + n] for i in range(n)], n * n)
    rng = np.random.default_rng(n)
    for _ in range(40):
        M = rng.choice([0.0, 1.0, -1.0, 0.5], (n, n)) * rng.choice([1.0, 1.0, rng.uniform(0.5, 2.0)], (n, n))
        if np.linalg.matrix_rank(M) == n and np.linalg.cond(M) < 1e3:
            agree(np.reshape(evaluate(nodes, {"q": M.ravel().tolist()}), (n, n)), np.linalg.inv(M))


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_equations_in_other_units_are_as_accurate(scale: float) -> None:
    """One row of a full matrix, and one column of another one, in other units."""
    n = 5
    values = np.random.default_rng(5).uniform(-1.0, 1.0, (n, n))
    for place in (0, 1):
        units = np.ones((n, n))
        units[(2, slice(None)) if place == 0 else (slice(None), 2)] = scale

        def scaled(g: Graph, x: list[Node], units: Any = units) -> list[list[Any]]:
            return [[float(units[i, j]) * x[n * i + j] for j in range(n)] for i in range(n)]

        nodes, _ = solved(scaled, n * n)
        actual = np.reshape(evaluate(nodes, {"q": values.ravel().tolist()}), (n, n))
        np.testing.assert_allclose(actual, np.linalg.inv(values) / units.T, rtol=1e-11)


def test_blocks_are_found_in_any_order() -> None:
    """A block triangular matrix costs no more than its blocks, however its rows and columns are ordered."""
    rng = np.random.default_rng(3)
    counts = set()
    for _ in range(6):
        rows, columns = rng.permutation(5), rng.permutation(5)

        def entries(g: Graph, x: list[Node], rows: Any = rows, columns: Any = columns) -> list[list[Any]]:
            own = [[x[0], x[1], 0, 0, 0], [x[2], x[3], 0, 0, 0], [x[4], 0, x[5], 0, 0], [0, x[6], x[7], x[8], x[9]],
                   [0, 0, x[10], x[11], x[12]]]  # fmt: skip
            return [[own[i][j] for j in columns] for i in rows]

        counts.add(count_operations(solved(entries, 13)[0]))
    assert len(counts) == 1


@pytest.mark.parametrize(
    "rows",
    [
        lambda g, x: [[x[0], x[1]], [2 * x[0], 2 * x[1]]],
        lambda g, x: [[x[0], x[1], 0], [x[2], x[3], 0], [x[4], x[5], 0]],
        lambda g, x: [[x[0], 0, 0], [x[1], 0, 0], [0, x[2], x[3]]],
        lambda g, x: [[1, x[0]], [x[1], x[0] * x[1]]],
        lambda g, x: [[g.apply("exp", x[0]), g.apply("exp", 2 * x[0])], [1, g.apply("exp", x[0])]],
    ],
)
def test_singular_matrices_are_refused(rows: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        solved(rows, 6)
