"""What corrects positions and speeds towards the constraints: their rows with residuals, and the directions.

Positions move by ``dq = S w``: the columns of S are those of C in ``q' = C u + D``, then the gradients of the
invariants. The speeds cannot change an invariant (``phi_q C = 0``), so the two kinds are orthogonal, and w has a
natural metric: that of the kinetic energy for the first n_u components.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kanegen.derivation.equations import Equations
from kanegen.graph import Node, gradient
from kanegen.program.records import Block
from kanegen.program.registry import Functions, Made, stores

SUMMARIES: Final = {
    "displacements": "S of dq = S w: columns of C in q' = C u + D, then gradients of the invariants",
    "position_level": "[phi_q S, phi] of the constraints at position level, invariants last",
    "velocity_level": "[psi_u, psi] of the constraints at velocity level, phi' first",
}
"""The functions behind consistent states, with what they are."""


def exists(equations: Equations, name: str) -> bool:
    """Whether the model has constraints of the level; S belongs to positions."""
    return bool((equations.velocities if name == "velocity_level" else equations.positions).nodes)


def _displacements(f: Functions) -> Made:
    columns = _directions(f)
    rows = [[column[i] for column in columns] for i in range(f.n_q)]
    return _matrix(rows)


def _position_level(f: Functions) -> Made:
    e = f.equations
    directions = _directions(f)
    invariants = directions[f.n_u :]
    rows = []
    bound = (*e.constraints.holonomic, *e.constraints.implied)
    for row, phi in zip(bound, e.positions.nodes, strict=False):
        slope = _slope(f, row.residuals[0], e.system.q)
        rows.append([*row.J, *(_product(f, slope, direction) for direction in invariants), phi])
    zeros = [f.graph.zero] * f.n_u
    for slope, phi in zip(invariants, e.positions.nodes[len(rows) :], strict=True):
        rows.append([*zeros, *(_product(f, slope, direction) for direction in invariants), phi])
    return _matrix(rows)


def _velocity_level(f: Functions) -> Made:
    e = f.equations
    bound = (*e.constraints.holonomic, *e.constraints.nonholonomic)
    return _matrix([[*row.J, psi] for row, psi in zip(bound, e.velocities.nodes, strict=True)])


def _directions(f: Functions) -> list[list[Node]]:
    """The columns of S."""
    system = f.equations.system
    columns = [[system.C[i][r] for i in range(f.n_q)] for r in range(f.n_u)]
    return columns + [_slope(f, item.position, system.q) for item in f.equations.constraints.invariants]


def _slope(f: Functions, phi: Node, q: Sequence[Node]) -> list[Node]:
    return list(gradient([phi], [f.graph.one], q))


def _product(f: Functions, a: Sequence[Node], b: Sequence[Node]) -> Node:
    return f.graph.sum(x * y for x, y in zip(a, b, strict=True) if not (x.is_zero or y.is_zero))


def _matrix(rows: Sequence[Sequence[Node]]) -> Made:
    nodes = [node for row in rows for node in row]
    return (Block("", stores("out", nodes)),), (len(rows), len(rows[0])), {}


MAKERS: Final[dict[str, Callable[[Functions], Made]]] = {
    "displacements": _displacements,
    "position_level": _position_level,
    "velocity_level": _velocity_level,
}
