"""Second-order nonholonomic constraints of underactuated systems (Bajodah 2003, section 1.3).

Where fewer independent controls act than the motion has degrees of freedom, there are directions N in which they do no
work, ``N^T A2 G = 0``. The equations of motion along them, ``N^T A2 (Q u' - P0) = 0``, hold whatever the controls are:
constraints on the accelerations that are not integrable in general.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kanegen.derivation.algebra.elimination import Pivot, eliminate
from kanegen.derivation.control.affine import AffineControls, affine_controls
from kanegen.derivation.control.servo import servo_equations
from kanegen.derivation.equations import Equations
from kanegen.derivation.forms import matrix_product, matrix_vector, tangent_matrix
from kanegen.derivation.quantity import Quantity
from kanegen.errors import ModelError
from kanegen.graph import Node


@dataclass(frozen=True)
class Underactuation:
    """``R u' = c`` for all controls; ``equations`` is [R c], (n_f, n_u + 1), while the ``pivots`` are not zero."""

    equations: Quantity
    pivots: tuple[Pivot, ...]


def plant_controls(equations: Equations) -> AffineControls:
    """The controls of the servo-constraints, else all inputs on which the forces, and nothing else, depend affinely."""
    model = equations.model
    if model.servo is not None:
        return equations.once(servo_equations).controls
    slots = [k for k in range(len(model.inputs)) if _is_control(equations, k)]
    return affine_controls(equations, slots)


def _is_control(equations: Equations, slot: int) -> bool:
    try:
        return bool(affine_controls(equations, (slot,)).slots)
    except ModelError:
        return False


def underactuation(equations: Equations) -> Underactuation:
    """The equations of motion without controls; no rows where the controls reach every degree of freedom."""
    graph, part = equations.graph, equations.partition
    controls = plant_controls(equations)
    A2 = tangent_matrix(graph, part, len(equations.system.u))
    columns = [equations.simplified(matrix_vector(graph, A2, column)) for column in controls.columns]
    complement, pivots = _complement(equations, columns, len(part.independent))
    directions = [equations.simplified(row) for row in matrix_product(graph, complement, A2)] if complement else []
    nodes: list[Node] = []
    for row in directions:
        force = graph.dot(row, controls.free)
        nodes += equations.simplified([*matrix_vector(graph, equations.mass_matrix, row), force])
    shape = (len(directions), len(equations.system.u) + 1)
    return Underactuation(Quantity("underactuation", tuple(nodes), shape, equations.names), tuple(pivots))


def _complement(
    equations: Equations, columns: Sequence[Sequence[Node]], n: int
) -> tuple[list[list[Node]], list[Pivot]]:
    """Rows (n - rank, n) orthogonal to all columns (n,), by elimination with pivots chosen at random states."""
    graph, kept = equations.graph, list(columns)
    while True:
        try:
            reduced, pivots, row_of = eliminate(kept, [()] * len(kept), equations.system.magnitudes, range(n))
            break
        except ZeroDivisionError as error:
            del kept[error.args[0]]  # a control that acts in the same directions as others
    complement = []
    for free in (i for i in range(n) if i not in row_of):
        row = [graph.zero] * n
        row[free] = graph.one
        for column, k in row_of.items():
            row[column] = -reduced[k][free]
        complement.append(row)
    return complement, pivots
