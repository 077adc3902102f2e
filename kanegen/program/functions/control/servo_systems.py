"""The linear systems behind servo-constraints, ``S tau = z``, by straight-line code or by kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from kanegen.derivation.algebra.cholesky import Factor, factorize
from kanegen.derivation.control.servo import Compliance, compliance, lowered, servo_system
from kanegen.derivation.equations import PIVOT_LIMIT
from kanegen.derivation.forms import matrix_vector
from kanegen.graph import Graph, Node
from kanegen.program.fragment import Fragment
from kanegen.program.registry import Functions

Rows = Sequence[Sequence[Node]]

ROW_LIMIT: Final = 1e-9
"""A row whose entries are below this fraction of the terms they are sums of is zero: what is left is rounding."""


@dataclass(frozen=True)
class Linear:
    """``rows tau = right``, (m, n) and (m,); ``sizes`` (m,): squared sizes of the terms each row is a sum of.

    ``movable``: conditions that the passive constraints leave each servo-constraint free; none without constraints.
    """

    rows: tuple[tuple[Node, ...], ...]
    right: tuple[Node, ...]
    sizes: tuple[Node, ...]
    movable: tuple[Node, ...] = ()


@dataclass(frozen=True)
class ServoLinear:
    """What the resolutions start from: S and z.

    ``responses`` the rows of J_s M (n_s, n_u), ``gram`` J_s M J_s^T, ``driven`` the columns of M G if wanted.
    """

    system: Linear
    responses: tuple[tuple[Node, ...], ...]
    gram: tuple[tuple[Node, ...], ...]
    driven: tuple[tuple[Node, ...], ...] = ()


def straight_line(f: Functions, s: Fragment, inverse: Compliance) -> ServoLinear:
    """S and z by straight-line code with the model's own dependent speeds; under conditions of the fragment."""
    e, law = f.equations, f.servo
    system = servo_system(e, inverse)
    s.require(*f.pivots(PIVOT_LIMIT), *inverse.factor.conditions)
    gram = tuple(e.simplified(matrix_vector(f.graph, law.J, row)) for row in system.responses)
    linear = _with_sizes(f, system.S, system.z, system.responses, gram)
    return ServoLinear(linear, system.responses, gram)


def by_kernels(f: Functions, s: Fragment, controls: bool = False) -> ServoLinear:
    """S and z for any dependent speeds and redundant constraints: accelerations that single forces cause."""
    e, law = f.equations, f.servo
    if not f.n_c:
        inverse = compliance(e)
        linear = straight_line(f, s, inverse)
        s.check()
        return replace(linear, driven=tuple(inverse.times(column) for column in law.controls.columns if controls))
    zeros = [f.graph.zero] * f.n_c
    responses = tuple(_accelerations(f, s, f"row{k}", row, zeros) for k, row in enumerate(law.J))
    free = _accelerations(f, s, "unforced", law.controls.free, e.b_stabilized.nodes)
    S = tuple(tuple(matrix_vector(f.graph, law.controls.columns, row)) for row in responses)
    z = tuple(b - x for b, x in zip(law.bias, matrix_vector(f.graph, law.J, free), strict=True))
    gram = tuple(tuple(matrix_vector(f.graph, law.J, row)) for row in responses)
    columns = enumerate(law.controls.columns if controls else ())
    driven = tuple(_accelerations(f, s, f"control{k}", column, zeros) for k, column in columns)
    return ServoLinear(_with_sizes(f, S, z, responses, gram), responses, gram, driven)


def _with_sizes(f: Functions, S: Rows, z: Sequence[Node], responses: Rows, gram: Rows) -> Linear:
    """The system with what distinguishes its rows from rounding."""
    graph, law = f.graph, f.servo
    sizes = (term_size(graph, row, law.controls.columns) for row in responses)
    movable: list[Node] = []
    for k, row in enumerate(law.J if f.n_c else ()):
        # Where passive constraints fix psi, J_s M is rounding throughout, and so are the terms of its products: J_s is
        # compared with what is left of it, in the metric of the masses.
        masses = (f.equations.mass_matrix[i][i] for i in range(f.n_u))
        whole = graph.sum(x * x / mass for x, mass in zip(row, masses, strict=True) if not (x.is_zero or mass.is_zero))
        movable.append(graph.apply("lt", graph.const(ROW_LIMIT**2) * whole, gram[k][k]))
    return Linear(tuple(map(tuple, S)), tuple(z), tuple(sizes), tuple(movable))


def _accelerations(
    f: Functions, s: Fragment, name: str, force: Sequence[Node], right: Sequence[Node]
) -> tuple[Node, ...]:
    """u' of ``Q u' = force + J^T lambda``, ``J u' = right``, in a work array of this name."""
    e, kernel = f.equations, "udwadia_kalaba" if f.any_rank else "constrained_solve"
    title, names = f"accelerations of {name}", {"udot": name}
    system = {"Q": e.Q.nodes, "P": force, "J": e.J.nodes, "b": right}
    return tuple(s.call(kernel, f.n_u, f.n_c, title=title, names=names, **system)["udot"])


def term_size(graph: Graph, row: Sequence[Node], columns: Rows) -> Node:
    """``sum_j (sum_i |row_i column_ji|)^2``: how large the row of products could be without cancellation."""
    sums = (
        graph.sum(graph.apply("abs", a * b) for a, b in zip(row, column, strict=True) if not (a * b).is_zero)
        for column in columns
    )
    return graph.sum(x * x for x in sums)


def product(graph: Graph, a: Sequence[Node], b: Sequence[Node]) -> Node:
    return graph.sum(x * y for x, y in zip(a, b, strict=True))


def metric_of(f: Functions) -> Factor | None:
    """The factor of the weight W; None for the plain norm."""
    weight = f.servo.servo.weight
    if weight is None:
        return None
    return factorize([lowered(f.equations, row[: i + 1]) for i, row in enumerate(weight)])


def in_metric(system: Linear, metric: Factor | None) -> Linear:
    """The rows against controls measured by the weight."""
    if metric is None:
        return system
    return replace(system, rows=tuple(tuple(metric.whitened(row)) for row in system.rows))


def scaled_rows(f: Functions, system: Linear) -> Linear:
    """Rows in the unit of the terms they are sums of; those that are rounding of these terms are zero."""
    graph, limit = f.graph, f.graph.const(ROW_LIMIT**2)
    rows, right = [], []
    for k, (row, z, size) in enumerate(zip(system.rows, system.right, system.sizes, strict=True)):
        present = graph.apply("lt", limit * size, product(graph, row, row))
        if system.movable:
            present = graph.apply("and", present, system.movable[k])
        divisor = graph.select(present, graph.apply("sqrt", size), graph.one)
        rows.append(tuple(graph.select(present, x / divisor, graph.zero) for x in row))
        right.append(z / divisor)
    return Linear(tuple(rows), tuple(right), system.sizes)


def without_free(f: Functions, system: Linear) -> tuple[Node, ...]:
    """``z - S y``: what the free vector leaves to be done."""
    return tuple(z - x for z, x in zip(system.right, matrix_vector(f.graph, system.rows, f.servo.free), strict=True))
