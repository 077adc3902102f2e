"""Functions of servo-constraints: the controls that enforce them, S and z, residuals, feasibility.

Bajodah (2003), chapter 7: ``tau = S^+ z + (I - S^+ S) y`` (481), ``S^+ = S^T / |S|^2`` for one row (492), ideal
controls from ``A2 G tau = A2 (Q u'* - P0)`` (484). The common case is straight-line code; if a divisor is small, its
guard calls the function ``<name>_general``, which uses singular values.

The controls closest to the free vector y are ``tau = y + L (z - S y)``, where L is the inverse of S (Moore-Penrose, in
the metric of the weight, damped). If y depends on the controls, ``y = Y tau + y0`` ((481) allows any y), this is an
equation for tau: ``(I - (I - L S) Y) tau = y0 + L (z - S y0)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Final, TypeAlias

from kanegen.derivation.algebra import PIVOT_LIMIT, Factor, factorize
from kanegen.derivation.control.servo import Compliance, compliance, lowered, servo_system
from kanegen.derivation.forms import matrix_vector
from kanegen.graph import Graph, Node
from kanegen.graph.linear import Divisor
from kanegen.graph.sums import absolute_terms
from kanegen.precision import Tolerance
from kanegen.program.builder import Fragment, Functions, Maker, Source, flat
from kanegen.program.functions.right_sides import constrained_solve

Rows: TypeAlias = Sequence[Sequence[Node]]
Matrix: TypeAlias = tuple[tuple[Node, ...], ...]

WRITTEN_OUT: Final = 4
"""Largest number of servo-constraints (degrees of freedom, for ideal controls) solved by straight-line code."""

GRAM_LIMIT: Final = Tolerance(1e-6, 1e-3)
"""If a pivot of ``S S^T`` is below this fraction of its diagonal entry, singular values are used. The squared condition
number thus costs at most six digits (three of float)."""

ROW_LIMIT: Final = Tolerance(1e-9, 1e-5)
"""A row counts as zero if its entries are below this fraction of the terms they are sums of: they are rounding."""


def no_servo(f: Functions) -> str | None:
    """Return the reason why there are no controls to compute, or None."""
    if f.equations.model.servo is not None:
        return None
    return "it has no servo-constraints. Give control=kg.Servo(...) to kanegen.Model"


def control(f: Functions) -> Fragment:
    def fast(s: Fragment, inverse: Compliance) -> Sequence[Node] | None:
        try:
            return None if f.servo.feedback else _fast(f, s, straight_line(f, s, inverse), inverse)
        except ZeroDivisionError:  # the rows are dependent in every state
            return None

    return _guarded(f, "control", fast, lambda s: _general(f, s))


def _guarded(
    f: Functions,
    name: str,
    fast: Callable[[Fragment, Compliance], Sequence[Node] | None],
    general: Callable[[Fragment], Sequence[Node]],
    shape: tuple[int, ...] | None = None,
) -> Fragment:
    """Build straight-line code with the fallback ``<name>_general``, or the general code if ``fast`` returns None."""

    def slow(s: Fragment) -> Fragment:
        return s.output(general(s), shape, "controls")

    def guarded(_: Fragment) -> Fragment:
        s.guard()
        return s.output(nodes or (), shape, "controls")

    s = Fragment(f.graph, f"{name}_general")
    e = f.equations
    nodes = fast(s, compliance(e)) if e.has_partition and e.is_symmetric else None
    return (
        slow(f.fragment())
        if nodes is None
        else f.guarded(name, f"{f.catalogue[name].summary}, by kernels", guarded, slow)
    )


# -- other functions ----------------------------------------------------------------------------------------------


def feasibility(f: Functions) -> Fragment:
    """Build rank, residual, smallest singular value and feasibility, of the scaled rows of S or (ideal) of M G."""
    s, graph, n = f.fragment(), f.graph, len(f.servo.free)
    if f.servo.servo.is_ideal:
        rows, right, terms, possible = _ideal_system(f, s, "control_feasibility")
        A, z = flat(rows), right
    else:
        linear = by_kernels(f, s)
        rows, right, possible, scaled = linear.rows, linear.right, graph.one, scaled_rows(f, linear)
        A, z, terms = flat(scaled.rows), scaled.right, scaled.terms
    title, names = "equations of the controls", {"x": "tau", "result": "verdict"}
    results = s.call("control_feasibility", len(rows), n, title=title, names=names, A=A, z=z, terms=terms)
    tau, (rank, smallest, feasible) = results["x"], results["result"]
    missing = [graph.apply("abs", z - graph.dot(row, tau)) for row, z in zip(rows, right, strict=True)]
    residual = reduce(partial(graph.apply, "max"), missing)
    return s.output([rank, residual, smallest, feasible * possible])


def system_part(name: str) -> Maker:
    """Return the maker of S (``servo_matrix``) or z (``servo_right_side``)."""

    def make(f: Functions) -> Fragment:
        def chosen(linear: Linear) -> Sequence[Node]:
            return flat(linear.rows) if name == "servo_matrix" else linear.right

        return _guarded(
            f,
            name,
            lambda s, inverse: chosen(straight_line(f, s, inverse)),
            lambda s: chosen(by_kernels(f, s)),
            (len(f.servo.J), len(f.servo.free)) if name == "servo_matrix" else (len(f.servo.J),),
        )

    return make


def residuals(f: Functions) -> Fragment:
    return f.fragment().output(f.servo.residuals)


def gains(f: Functions) -> Fragment:
    return f.fragment().rows(f.servo.gains)


# -- straight-line code -------------------------------------------------------------------------------------------


def _fast(f: Functions, s: Fragment, linear: Linear, inverse: Compliance) -> Sequence[Node] | None:
    """Return the controls by straight-line code; None if the systems are too large for it."""
    servo, n_s = f.servo.servo, len(linear.right)
    if n_s > WRITTEN_OUT or (servo.damping is not None and n_s > 1):
        return None
    if servo.is_ideal:
        return _fast_ideal(f, s, linear, inverse)
    metric = metric_of(f)
    y, system = f.servo.free, in_metric(linear, metric)
    unique = n_s == len(y) and servo.damping is None
    right = linear.right if unique else without_free(f, linear)
    damping = None if servo.damping is None else lowered(f.equations, [servo.damping])[0]
    s.require(*(() if metric is None else metric.conditions))
    s.require(*(() if damping is not None else _not_zero(f, linear)))
    change, conditions = _least_norm(f, system.rows, right, damping)
    s.require(*conditions)
    moved = change if metric is None else metric.colored(change)
    return moved if unique else [a + b for a, b in zip(y, moved, strict=True)]


def _least_norm(
    f: Functions, rows: Rows, right: Sequence[Node], damping: Node | None = None
) -> tuple[list[Node], tuple[Node, ...]]:
    """Return the x of least norm with ``rows x = right`` (n_s,), from ``rows rows^T``, and its conditions."""
    graph = f.graph
    columns = list(zip(*rows, strict=True))
    if len(rows) == len(columns) == 1 and damping is None:
        return [right[0] / rows[0][0]], ()
    gram = [[graph.dot(a, b) for b in rows[: i + 1]] for i, a in enumerate(rows)]
    if len(gram) == 1:
        size = gram[0][0] if damping is None else graph.apply("max", gram[0][0], damping * damping)
        factor = right[0] / size
        return [factor * column[0] for column in columns], ()
    factors = factorize(gram)
    x = factors.solve(right)
    return [graph.dot(column, x) for column in columns], _regular(f, gram, factors)


def _not_zero(f: Functions, system: Linear) -> tuple[Node, ...]:
    """Return the conditions that no row of S is only rounding, and none is fixed by the passive constraints."""
    limit = f.graph.const(ROW_LIMIT * ROW_LIMIT)
    squares = (f.graph.dot(row, row) for row in system.rows)
    present = (f.graph.apply("lt", limit * x, y) for x, y in zip(system.sizes, squares, strict=True))
    return tuple(condition for condition in (*present, *system.movable) if condition.op != "const")


def _regular(f: Functions, gram: Rows, factors: Factor) -> tuple[Node, ...]:
    """Return the conditions that no pivot is too small a fraction of its diagonal entry."""
    graph = f.graph
    tests = (graph.const(GRAM_LIMIT) * gram[k][k] * r for k, r in factors.reciprocals.items())
    return (*factors.conditions, *(graph.apply("lt", x, graph.one) for x in tests if x.op != "const"))


def _fast_ideal(f: Functions, s: Fragment, linear: Linear, inverse: Compliance) -> Sequence[Node] | None:
    """Solve ``A2 G tau = A2 J_s^T mu`` with ``(J_s M J_s^T) mu = z``: the controls replace the multipliers mu."""
    e, graph, law = f.equations, f.graph, f.servo
    n_i, n_tau = len(e.partition.independent), len(law.controls.slots)
    if max(n_i, n_tau) > WRITTEN_OUT:
        return None
    gram = [row[: i + 1] for i, row in enumerate(linear.gram)]
    factors = factorize(gram)
    mu = factors.solve(linear.right)
    force = [graph.dot(column, mu) for column in zip(*law.J, strict=True)]
    columns = [e.simplified(inverse.reduced(column)) for column in law.controls.columns]
    rows = tuple(zip(*columns, strict=True))
    tau, conditions = _solved_ideal(f, rows, columns, inverse.reduced(force))
    s.require(*(condition for condition in linear.movable if condition.op != "const"))
    s.require(*_regular(f, gram, factors), *conditions)
    return tau


def _solved_ideal(
    f: Functions, rows: Rows, columns: Rows, right: Sequence[Node]
) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """Return tau with ``rows tau = right``, for any number of rows, and the conditions that it exists."""
    graph, y = f.graph, f.servo.free
    if len(rows) < len(columns):
        rest = [z - graph.dot(row, y) for z, row in zip(right, rows, strict=True)]
        change, conditions = _least_norm(f, rows, rest)
        return tuple(a + b for a, b in zip(y, change, strict=True)), conditions
    gram = [[graph.dot(a, b) for b in columns[: i + 1]] for i, a in enumerate(columns)]
    factors = factorize(gram)
    tau = tuple(factors.solve([graph.dot(column, right) for column in columns]))
    conditions = _regular(f, gram, factors)
    if len(rows) == len(columns):
        return tau, conditions
    return tau, (*conditions, *_consistent(f, rows, right, tau))


def _consistent(f: Functions, rows: Rows, right: Sequence[Node], tau: Sequence[Node]) -> tuple[Node, ...]:
    """Return the conditions that ``rows tau - right`` is only rounding."""
    graph = f.graph
    conditions = []
    for row, z in zip(rows, right, strict=True):
        terms = [a * x for a, x in zip(row, tau, strict=True) if not a.is_zero]
        left = graph.apply("abs", graph.sum(terms) - z)
        size = graph.sum([graph.apply("abs", z), *(graph.apply("abs", x) for x in terms)])
        if not left.is_zero:
            conditions.append(graph.apply("le", left, graph.const(ROW_LIMIT) * size))
    return tuple(conditions)


# -- kernels ------------------------------------------------------------------------------------------------------


def _general(f: Functions, s: Fragment) -> Sequence[Node]:
    """Return the controls by singular values, which also show whether controls exist."""
    if not f.servo.servo.is_ideal:
        return _least_change(f, s)
    rows, right, terms, _ = _ideal_system(f, s, "control_solve")
    inputs: dict[str, Source] = {"A": flat(rows), "z": right, "terms": terms, "y": f.servo.free}
    title = "M G tau = M J_s^T mu"
    return s.call("control_solve", len(rows), len(f.servo.free), title=title, names={"x": "tau"}, **inputs)["x"]


def _ideal_system(f: Functions, s: Fragment, kernel: str) -> tuple[Rows, Sequence[Node], Sequence[Node], Node]:
    """Return ``M G tau = M J_s^T mu`` without independent speeds: M G (n_u, n_tau), the right side, the sums of its
    absolute terms, and whether mu exists.

    The kernel computes the multipliers mu of the servo-constraints; only ``control_feasibility`` reports whether they
    exist.
    """
    linear = by_kernels(f, s, controls=True)
    rows, right = _movable_rows(f, linear), linear.right
    names = {"A": "N", "z": "rest", "terms": "rest_terms", "y": "zero", "x": "multipliers", "result": "possible"}
    n, inputs = len(right), {"A": flat(rows), "z": right, "terms": linear.terms}
    inputs |= {"y": [f.graph.zero] * n} if kernel == "control_solve" else {}
    results = s.call(kernel, n, n, title="J_s M J_s^T mu = z", names=names, **inputs)
    responses: Rows = linear.responses
    if not f.equations.is_symmetric:
        zeros = [f.graph.zero] * f.n_c
        responses = [_accelerations(f, s, f"response{k}", row, zeros) for k, row in enumerate(f.servo.J)]
    # mu is a rounding error of size terms/S where the servo-constraints are satisfied without controls.
    sizes = [
        f.graph.apply("abs", mu) + _over_mass(terms, f.graph.apply("abs", row[k]))
        for k, (mu, terms, row) in enumerate(zip(results["x"], linear.terms, linear.gram, strict=True))
    ]
    columns = list(zip(*responses, strict=True))
    force = [f.graph.dot(results["x"], column) for column in columns]
    force_terms = [f.graph.dot(sizes, absolute_terms(column)) for column in columns]
    possible = results["result"][2] if "result" in results else f.graph.one
    return list(zip(*linear.driven, strict=True)), force, force_terms, possible


def _movable_rows(f: Functions, linear: Linear) -> Rows:
    """Return J_s M J_s^T with zeros for the servo-constraints that the passive constraints fix."""
    graph, movable = f.graph, linear.movable
    if not movable:
        return linear.gram
    return [
        [graph.select(graph.apply("and", a, b), x, graph.zero) for x, b in zip(row, movable, strict=True)]
        for row, a in zip(linear.gram, movable, strict=True)
    ]


def _least_change(f: Functions, s: Fragment) -> Sequence[Node]:
    """Return the controls closest to the free vector y, by singular values."""
    law, metric, linear, damping = f.servo, metric_of(f), by_kernels(f, s), f.servo.servo.damping
    of_free = [absolute_terms([f.graph.dot(row, law.free)])[0] for row in linear.rows]
    terms = tuple(a + b for a, b in zip(linear.terms, of_free, strict=True))
    system = replace(linear, right=without_free(f, linear), terms=terms)
    if damping is None:
        system = scaled_rows(f, system)
    if metric is not None:
        s.require(*metric.conditions)
        s.check()
    # The last input of the kernel is the damping, or the vector closest to which it solves.
    last: dict[str, Source] = {"terms": "terms", "y": "zero"} if damping is None else {"damping": "damping"}
    kernel = "control_solve" if damping is None else "control_damped"
    zeros = (f.graph.zero,) * len(law.free)
    given = {"zero": zeros, "terms": system.terms} if damping is None else {"damping": lowered(f.equations, [damping])}
    s.store("", **given)

    def change(name: str, right: Sequence[Node]) -> Sequence[Node]:
        """Return ``L right`` by a call of the kernel with its result in the work array ``name``."""
        rows, title = in_metric(system, metric).rows, "S (tau - y) = z - S y"
        sizes, names = (len(rows), len(law.free)), {"x": name}
        x = s.call(kernel, *sizes, title=title, names=names, A=flat(rows), z=right, **last)["x"]
        return x if metric is None else metric.colored(x)

    nearest = [a + b for a, b in zip(law.free, change("change", system.right), strict=True)]
    if not law.feedback:
        return nearest
    n = len(nearest)
    kept = []
    for j, column in enumerate(law.feedback):
        lost = change(f"change{j}", matrix_vector(f.graph, system.rows, column))
        kept.append([a - b for a, b in zip(column, lost, strict=True)])
    K = [(f.graph.one if i == j else f.graph.zero) - kept[j][i] for i in range(n) for j in range(n)]
    title, names = "(I - (I - S^+ S) Y) tau = S^+ z + (I - S^+ S) y0", {"a": "K", "b": "tau"}
    return s.call("lu_solve", n, title=title, names=names, a=K, b=nearest)["b"]


# -- the systems S tau = z ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Linear:
    """The equations ``rows tau = right``, usually S (m, n) and z (m,), and the data to solve them.

    ``sizes`` (m,): squared sizes of the terms each row is a sum of. ``movable``: conditions that the passive
    constraints do not fix a servo-constraint; empty without constraints. ``responses``: the rows of J_s M (n_s, n_u).
    ``gram``: J_s M J_s^T. ``driven``: the columns of M G, or empty. ``terms`` (m,): the sums of the absolute terms of
    the right side.
    """

    rows: Matrix
    right: tuple[Node, ...]
    sizes: tuple[Node, ...]
    movable: tuple[Node, ...] = ()
    responses: Matrix = ()
    gram: Matrix = ()
    driven: Matrix = ()
    terms: tuple[Node, ...] = ()


def straight_line(f: Functions, s: Fragment, inverse: Compliance) -> Linear:
    """Return S and z by straight-line code with the model's own partition; add its conditions to the fragment."""
    e, law = f.equations, f.servo
    system = servo_system(e, inverse)
    s.require(*f.pivots(PIVOT_LIMIT), *inverse.factor.conditions)
    gram = tuple(e.simplified(matrix_vector(f.graph, law.J, row)) for row in system.responses)
    return _with_sizes(f, system.S, system.z, system.responses, gram)


def by_kernels(f: Functions, s: Fragment, controls: bool = False) -> Linear:
    """Return S and z from the accelerations due to single forces, also for redundant constraints."""
    e, law = f.equations, f.servo
    if not f.n_c and e.is_symmetric:
        inverse = compliance(e)
        linear = straight_line(f, s, inverse)
        s.check()
        return replace(linear, driven=tuple(inverse.times(column) for column in law.controls.columns if controls))
    zeros = [f.graph.zero] * f.n_c
    responses = tuple(_accelerations(f, s, f"row{k}", row, zeros, transposed=True) for k, row in enumerate(law.J))
    free = _accelerations(f, s, "unforced", law.controls.free, e.b_stabilized.nodes)
    S = tuple(tuple(matrix_vector(f.graph, law.controls.columns, row)) for row in responses)
    z = tuple(b - x for b, x in zip(law.bias, matrix_vector(f.graph, law.J, free), strict=True))
    gram = tuple(tuple(matrix_vector(f.graph, law.J, row)) for row in responses)
    columns = enumerate(law.controls.columns if controls else ())
    driven = tuple(_accelerations(f, s, f"control{k}", column, zeros) for k, column in columns)
    return replace(_with_sizes(f, S, z, responses, gram), driven=driven)


def _with_sizes(
    f: Functions,
    S: Matrix,
    z: tuple[Node, ...],
    responses: Matrix,
    gram: Matrix,
) -> Linear:
    """Return the system with the sizes and conditions that distinguish its rows from rounding."""
    graph, law = f.graph, f.servo
    sizes = (term_size(graph, row, law.controls.columns) for row in responses)
    movable: list[Node] = []
    for k, row in enumerate(law.J if f.n_c else ()):
        # If passive constraints fix psi, all entries of J_s M and the terms of its products are rounding. So the size
        # of J_s M J_s^T is compared with that of J_s in the metric of the masses.
        whole = graph.sum(_over_mass(x * x, f.equations.mass_matrix[i][i]) for i, x in enumerate(row))
        size = graph.apply("abs", gram[k][k]) if f.equations.model.is_accelerated else gram[k][k]
        movable.append(graph.apply("lt", graph.const(ROW_LIMIT * ROW_LIMIT) * whole, size))
    # Forces that balance each other leave rounding errors in the accelerations of which z is the sum.
    forces = absolute_terms(law.controls.free)
    terms = (x + graph.dot(absolute_terms(row), forces) for x, row in zip(absolute_terms(z), responses, strict=True))
    return Linear(S, z, tuple(sizes), tuple(movable), responses, gram, terms=tuple(terms))


def _over_mass(x: Node, mass: Node) -> Node:
    """``x / mass``; zero for a mass that vanishes at this state, but for rounding."""
    if x.is_zero or mass.is_zero:
        return x.graph.zero
    moves = Divisor(mass).holds(ROW_LIMIT)
    return x / mass if moves is None or mass.constant else x.graph.select(moves, x / mass, x.graph.zero)


def _accelerations(
    f: Functions, s: Fragment, name: str, force: Sequence[Node], right: Sequence[Node], transposed: bool = False
) -> tuple[Node, ...]:
    """Return u' of ``M u' = force + J^T lambda``, ``J u' = right``, in the work array ``name``.

    With M transposed the result is a row of ``force^T M_c``, M_c being the matrix from forces to accelerations.
    """
    e, kernel = f.equations, "udwadia_kalaba" if f.any_rank else constrained_solve(f)
    title, names = f"accelerations of {name}", {"udot": name}
    rows = e.left_side
    M = rows if e.is_symmetric or not transposed else list(zip(*rows, strict=True))
    system = {"Q": flat(M), "P": force, "J": e.J.nodes, "b": right}
    return tuple(s.call(kernel, f.n_u, f.n_c, title=title, names=names, **system)["udot"])


def term_size(graph: Graph, row: Sequence[Node], columns: Rows) -> Node:
    """Return ``sum_j (sum_i |row_i column_ji|)^2``, the squared size of the products without cancellation."""
    sums = (
        graph.sum(graph.apply("abs", a * b) for a, b in zip(row, column, strict=True) if not (a * b).is_zero)
        for column in columns
    )
    return graph.sum(x * x for x in sums)


def metric_of(f: Functions) -> Factor | None:
    """Return the factor of the weight W; None without a weight."""
    weight = f.servo.servo.weight
    if weight is None:
        return None
    return factorize([lowered(f.equations, row[: i + 1]) for i, row in enumerate(weight)])


def in_metric(system: Linear, metric: Factor | None) -> Linear:
    """Return the rows transformed to the metric of the weight."""
    if metric is None:
        return system
    return replace(system, rows=tuple(tuple(metric.whitened(row)) for row in system.rows))


def scaled_rows(f: Functions, system: Linear) -> Linear:
    """Return the rows divided by the size of the terms they are sums of; rows that are only rounding become zero."""
    graph, limit = f.graph, f.graph.const(ROW_LIMIT * ROW_LIMIT)
    rows, right, terms = [], [], []
    for k, (row, z, size) in enumerate(zip(system.rows, system.right, system.sizes, strict=True)):
        present = graph.apply("lt", limit * size, graph.dot(row, row))
        if system.movable:
            present = graph.apply("and", present, system.movable[k])
        divisor = graph.select(present, graph.apply("sqrt", size), graph.one)
        rows.append(tuple(graph.select(present, x / divisor, graph.zero) for x in row))
        right.append(z / divisor)
        terms.append(system.terms[k] / divisor)
    return Linear(tuple(rows), tuple(right), system.sizes, terms=tuple(terms))


def without_free(f: Functions, system: Linear) -> tuple[Node, ...]:
    """Return ``z - S y``, y the free vector."""
    return tuple(z - x for z, x in zip(system.right, matrix_vector(f.graph, system.rows, f.servo.free), strict=True))
