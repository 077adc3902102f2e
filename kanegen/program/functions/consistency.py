"""What corrects positions and speeds towards the constraints: their rows with residuals, and the directions.

Positions move by ``dq = S w``: the columns of S are those of C in ``q' = C u + D``, then the gradients of the
invariants. The speeds cannot change an invariant (``phi_q C = 0``), so the two kinds are orthogonal, and w has a
natural metric: that of the kinetic energy for the first n_u components.
"""

from __future__ import annotations

from collections.abc import Sequence

from kanegen.graph import Node, gradient
from kanegen.program.fragment import Fragment
from kanegen.program.registry import Functions


def no_positions(f: Functions) -> str | None:
    """Why there is nothing to correct positions by."""
    return None if f.equations.positions.nodes else "it has no constraints at position level"


def no_velocities(f: Functions) -> str | None:
    """Why there is nothing to correct speeds by."""
    return None if f.equations.velocities.nodes else "it has no constraints at velocity level"


def no_residuals(f: Functions) -> str | None:
    """Why there are no residuals."""
    e = f.equations
    return None if e.positions.nodes or e.velocities.nodes else "it has no constraints at position or velocity level"


def residuals(f: Functions) -> Fragment:
    return f.fragment().output((*f.equations.positions.nodes, *f.equations.velocities.nodes))


def displacements(f: Functions) -> Fragment:
    columns = _directions(f)
    return f.fragment().rows([[column[i] for column in columns] for i in range(f.n_q)])


def position_level(f: Functions) -> Fragment:
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
    return f.fragment().rows(rows)


def velocity_level(f: Functions) -> Fragment:
    e = f.equations
    bound = (*e.constraints.holonomic, *e.constraints.nonholonomic)
    return f.fragment().rows([[*row.J, psi] for row, psi in zip(bound, e.velocities.nodes, strict=True)])


def _directions(f: Functions) -> list[list[Node]]:
    """The columns of S."""
    system = f.equations.system
    columns = [[system.C[i][r] for i in range(f.n_q)] for r in range(f.n_u)]
    return columns + [_slope(f, item.position, system.q) for item in f.equations.constraints.invariants]


def _slope(f: Functions, phi: Node, q: Sequence[Node]) -> list[Node]:
    return list(gradient([phi], [f.graph.one], q))


def _product(f: Functions, a: Sequence[Node], b: Sequence[Node]) -> Node:
    return f.graph.sum(x * y for x, y in zip(a, b, strict=True) if not (x.is_zero or y.is_zero))
