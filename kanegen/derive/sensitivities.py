"""Derivatives of q' and u' in coordinates, speeds, inputs, parameters and time.

The accelerations and multipliers solve ``Q u' - P - J^T lambda = 0`` and ``J u' - b = 0``. With both held fixed the
slopes of these residuals are those of straight-line expressions; the accelerations follow implicitly,

    [Q  -J^T] [du'     ]     [D1]
    [J    0 ] [dlambda ] = - [D2],

so that no derivative passes through a factorisation (Griewank and Walther 2008, section 15.1). On the tangent space
of the constraints, ``du' = [I A^T]^T du_I' + [0; E]`` with ``E = -J_D^-1 D2``, the multipliers drop out:
``A2 Q A2^T du_I' = -A2 (D1 + Q [0; E])``, the matrix of the reduced equations with other right sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kanegen.derive import forms
from kanegen.derive.constraints import Constraints, Partition
from kanegen.derive.elimination import eliminate
from kanegen.derive.reactions import MULTIPLIERS
from kanegen.derive.system import System
from kanegen.graph import Graph, Node, Tangent, count_operations, gradient

ARGUMENTS: Final = ("q", "u", "r", "p", "t")
"""What q' and u' are differentiated in; each time an array of the graph."""

Rows = tuple[tuple[Node, ...], ...]


def arguments(system: System, name: str) -> tuple[Node, ...]:
    """The input nodes of one of :data:`ARGUMENTS`."""
    return {"q": system.q, "u": system.u, "r": system.r, "p": system.p, "t": (system.t,)}[name]


def balance(system: System, Q: forms.Matrix, P: Sequence[Node], constraints: Constraints, b: Sequence[Node]) -> Rows:
    """``Q u' - P - J^T lambda`` (n_u,) and ``J u' - b`` (n_c,), u' and lambda being inputs of the graph."""
    graph, udot = system.graph, system.udot
    J = [row.J for row in constraints.rows]
    multipliers = [graph.input(MULTIPLIERS, k) for k in range(len(J))]
    inertia = forms.matrix_vector(graph, Q, udot)
    momentum = [
        graph.sum([x, -P[r], *(-(J[k][r] * multipliers[k]) for k in range(len(J)))]) for r, x in enumerate(inertia)
    ]
    kinematic = [x - y for x, y in zip(forms.matrix_vector(graph, J, udot), b, strict=True)]
    return tuple(momentum), tuple(kinematic)


def slopes(graph: Graph, outputs: Sequence[Node], inputs: Sequence[Node]) -> Rows:
    """The derivatives (outputs, inputs), in forward or reverse mode, whichever takes fewer operations."""
    if not outputs or not inputs:
        return tuple(() for _ in outputs)
    tangents = [Tangent(graph, {x: graph.one}) for x in inputs]
    forward = tuple(tuple(tangent(output) for tangent in tangents) for output in outputs)
    reverse = tuple(tuple(gradient([output], [graph.one], inputs)) for output in outputs)
    return min(forward, reverse, key=lambda rows: count_operations(x for row in rows for x in row))


def dependent_inverse(system: System, constraints: Constraints, partition: Partition) -> Rows:
    """``J_D^-1`` (n_d, n_c), rows in the order of the dependent speeds."""
    graph, n_u, n_c = system.graph, len(system.u), len(constraints.rows)
    identity = [[graph.one if i == j else graph.zero for j in range(n_c)] for i in range(n_c)]
    reduced, _, order = eliminate([row.J for row in constraints.rows], identity, system.magnitudes, partition.dependent)
    row_of = {column: row for row, column in order}
    return tuple(tuple(reduced[row_of[d]][n_u:]) for d in partition.dependent)


def reduced_right_sides(
    graph: Graph, Q: forms.Matrix, partition: Partition, inverse: forms.Matrix, D1: forms.Matrix, D2: forms.Matrix
) -> tuple[Rows, Rows]:
    """For each column of D1 (n_u, m) and D2 (n_c, m) the right side of the reduced system (n_i,), and E (n_d,)."""
    rights, shifts = [], []
    columns = len(D1[0])
    for k in range(columns):
        shift = tuple(-x for x in forms.matrix_vector(graph, inverse, [row[k] for row in D2]))
        equations = forms.reduced(graph, Q, [-row[k] for row in D1], partition, shift)
        rights.append(equations.right)
        shifts.append(shift)
    return tuple(rights), tuple(shifts)
