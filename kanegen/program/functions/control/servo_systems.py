"""The linear systems behind servo-constraints, ``S tau = z``, by straight-line code or by kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from kanegen.derivation.algebra.cholesky import Factor, factorize
from kanegen.derivation.control.servo import Compliance, compliance, lowered, servo_system
from kanegen.derivation.equations import PIVOT_LIMIT
from kanegen.derivation.forms import matrix_vector
from kanegen.forms import FORMS
from kanegen.graph import Graph, Node
from kanegen.program.kernels.generalized import udwadia_kalaba_work
from kanegen.program.kernels.linear import constrained_work
from kanegen.program.records import Block, Call, Check, Step, Store
from kanegen.program.registry import Functions, all_hold, stores

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
    """What the resolutions start from, after ``steps`` and where ``conditions`` hold.

    S and z; ``responses`` the rows of J_s M (n_s, n_u), ``gram`` J_s M J_s^T, ``driven`` the columns of M G if wanted.
    """

    steps: tuple[Step, ...]
    arrays: dict[str, int]
    conditions: tuple[Node, ...]
    system: Linear
    responses: tuple[tuple[Node, ...], ...]
    gram: tuple[tuple[Node, ...], ...]
    driven: tuple[tuple[Node, ...], ...] = ()


@dataclass(frozen=True)
class Solved:
    """Steps after which ``tau`` are the controls, where ``conditions`` hold."""

    steps: tuple[Step, ...]
    arrays: dict[str, int]
    conditions: tuple[Node, ...]
    tau: tuple[Node, ...]


def straight_line(f: Functions, inverse: Compliance) -> ServoLinear:
    """S and z by straight-line code with the model's own dependent speeds."""
    e, found = f.equations, f.servo
    system = servo_system(e, inverse)
    pivots = (pivot.holds(PIVOT_LIMIT) for pivot in e.partition.pivots)
    conditions = (*(condition for condition in pivots if condition is not None), *inverse.factor.conditions)
    gram = tuple(e.simplified(matrix_vector(f.graph, found.J, row)) for row in system.responses)
    linear = _judged(f, system.S, system.z, system.responses, gram)
    return ServoLinear((), {}, conditions, linear, system.responses, gram)


def by_kernels(f: Functions, controls: bool = False) -> ServoLinear:
    """S and z for any dependent speeds and redundant constraints: accelerations that single forces cause."""
    e, found = f.equations, f.servo
    if not f.n_c:
        inverse = compliance(e)
        plain = straight_line(f, inverse)
        held = all_hold(f.graph, plain.conditions)
        steps = () if held is None else (Check(held),)
        driven = tuple(inverse.times(column) for column in found.controls.columns if controls)
        return ServoLinear(steps, {}, (), plain.system, plain.responses, plain.gram, driven)
    answers = Accelerations(f)
    zeros = [f.graph.zero] * f.n_c
    responses = tuple(answers.to(f"row{k}", row, zeros) for k, row in enumerate(found.J))
    free = answers.to("unforced", found.controls.free, e.b_stabilized.nodes)
    S = tuple(tuple(matrix_vector(f.graph, found.controls.columns, row)) for row in responses)
    z = tuple(b - x for b, x in zip(found.bias, matrix_vector(f.graph, found.J, free), strict=True))
    gram = tuple(tuple(matrix_vector(f.graph, found.J, row)) for row in responses)
    columns = enumerate(found.controls.columns if controls else ())
    driven = tuple(answers.to(f"control{k}", column, zeros) for k, column in columns)
    linear = _judged(f, S, z, responses, gram)
    return ServoLinear(tuple(answers.steps), answers.arrays, (), linear, responses, gram, driven)


def _judged(f: Functions, S: Rows, z: Sequence[Node], responses: Rows, gram: Rows) -> Linear:
    """The system with what tells its rows from rounding."""
    graph, found = f.graph, f.servo
    sizes = (term_size(graph, row, found.controls.columns) for row in responses)
    movable: list[Node] = []
    for k, row in enumerate(found.J if f.n_c else ()):
        # Where passive constraints fix psi, J_s M is rounding throughout, and so are the terms of its products: J_s is
        # compared with what is left of it, in the metric of the masses.
        masses = (f.equations.mass_matrix[i][i] for i in range(f.n_u))
        whole = graph.sum(x * x / mass for x, mass in zip(row, masses, strict=True) if not (x.is_zero or mass.is_zero))
        movable.append(graph.apply("lt", graph.const(ROW_LIMIT**2) * whole, gram[k][k]))
    return Linear(tuple(map(tuple, S)), tuple(z), tuple(sizes), tuple(movable))


class Accelerations:
    """u' under given forces and right sides of the passive constraints, each by one call of a kernel."""

    def __init__(self, f: Functions) -> None:
        self._f = f
        n_u, n_c = f.n_u, f.n_c
        self._any_rank = FORMS[f.form].any_rank
        work = udwadia_kalaba_work(n_u, n_c) if self._any_rank else constrained_work(n_u, n_c)
        self.steps: list[Step] = []
        self.arrays = {"Q": n_u * n_u, "P": n_u, "J": n_c * n_u, "b": n_c, "scratch": work}
        if self._any_rank:
            self.arrays |= {"lambda": n_c, "rank": 1}

    def to(self, name: str, force: Sequence[Node], right: Sequence[Node]) -> tuple[Node, ...]:
        """u' of ``Q u' = force + J^T lambda``, ``J u' = right``, in a work array of this name."""
        f, e = self._f, self._f.equations
        system = (
            *stores("Q", e.Q.nodes),
            *stores("P", force),
            *stores("J", e.J.nodes),
            *stores("b", right),
        )
        arguments: tuple[int | str, ...] = (f.n_u, f.n_c, "Q", "P", "J", "b", "scratch", name)
        kernel = "udwadia_kalaba" if self._any_rank else "constrained_solve"
        call = Call(kernel, (*arguments, "lambda", "rank") if self._any_rank else arguments)
        self.steps += [Block(f"accelerations of {name}", system), call]
        self.arrays[name] = f.n_u
        return tuple(f.array(name, f.n_u))


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


def stored_rows(array: str, rows: Rows) -> tuple[Store, ...]:
    return stores(array, [x for row in rows for x in row])
