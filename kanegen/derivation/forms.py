"""The forms of the equations: alternative ways to compute the accelerations from M, P, A and B.

M is the matrix of u' in ``M u' = P + J^T lambda``: the kinetic-energy matrix Q, less dF/du' of loads in u'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

from kanegen.derivation.algebra import SINGULAR_LIMIT, eliminate, factorize, solve_symmetric
from kanegen.derivation.constraints import Partition
from kanegen.graph import Graph, Node
from kanegen.graph.linear import Samples, solve_linear, term_size
from kanegen.precision import Tolerance

Matrix = Sequence[Sequence[Node]]

RESIDUAL_LIMIT = Tolerance(1e-8, 1e-3)
"""Accelerations with a residual above this fraction of the terms of a constraint have lost half of their digits."""

SPREAD = 1e4
"""Inertias whose ratio is larger take more than four digits from the elimination of the larger ones by the smaller."""


@dataclass(frozen=True)
class ReducedEquations:
    """``S u_I' = f`` with ``S = A2 Q A2^T`` (lower triangle, (n_i, n_i)) and ``f = A2 (P - Q [0; B])`` (n_i,)."""

    lower: tuple[tuple[Node, ...], ...]
    right: tuple[Node, ...]


@dataclass(frozen=True)
class Accelerations:
    """u' (n_u,) by straight-line code, valid where all ``conditions`` hold."""

    udot: tuple[Node, ...]
    conditions: tuple[Node, ...]


def constraint_matrix(graph: Graph, partition: Partition, n_u: int) -> list[list[Node]]:
    """``A1 = [-A I]`` (n_d, n_u), columns in the user's speed order."""
    negative = [dict(zip(partition.independent, map(graph.neg, row), strict=True)) for row in partition.A]
    rows = zip(partition.dependent, negative, strict=True)
    return [[graph.one if s == d else row.get(s, graph.zero) for s in range(n_u)] for d, row in rows]


def tangent_matrix(graph: Graph, partition: Partition, n_u: int) -> list[list[Node]]:
    """``A2 = [I A^T]`` (n_i, n_u), columns in the user's speed order."""
    columns = dict(zip(partition.dependent, partition.A, strict=True))
    rows = enumerate(partition.independent)
    return [
        [columns[s][j] if s in columns else graph.one if s == i else graph.zero for s in range(n_u)] for j, i in rows
    ]


def diagonal(graph: Graph, entries: Sequence[Node]) -> tuple[tuple[Node, ...], ...]:
    """The square matrix with these diagonal entries."""
    n = len(entries)
    return tuple(tuple(entries[i] if i == j else graph.zero for j in range(n)) for i in range(n))


def matrix_product(graph: Graph, a: Matrix, b: Matrix) -> list[list[Node]]:
    columns = list(zip(*b, strict=True))
    return [[graph.dot(row, column) for column in columns] for row in a]


def matrix_vector(graph: Graph, a: Matrix, x: Sequence[Node]) -> list[Node]:
    return [graph.dot(row, x) for row in a]


def total(a: Sequence[Node], b: Sequence[Node]) -> list[Node]:
    return [x + y for x, y in zip(a, b, strict=True)]


def difference(a: Sequence[Node], b: Sequence[Node]) -> list[Node]:
    return [x - y for x, y in zip(a, b, strict=True)]


def nonminimal(
    graph: Graph, Q: Matrix, P: Sequence[Node], partition: Partition, B: Sequence[Node]
) -> tuple[list[list[Node]], list[Node]]:
    """``T = [A1; A2 Q]`` (n_u, n_u) and ``V = [B; A2 P]`` (n_u,) (Bajodah, Hodges and Chen 2003)."""
    n_u = len(P)
    A2 = tangent_matrix(graph, partition, n_u)
    T = constraint_matrix(graph, partition, n_u) + matrix_product(graph, A2, Q)
    return T, [*B, *matrix_vector(graph, A2, P)]


def reduced(graph: Graph, Q: Matrix, P: Sequence[Node], partition: Partition, B: Sequence[Node]) -> ReducedEquations:
    """The equations of motion in terms of the independent accelerations alone."""
    I, D, A = partition.independent, partition.dependent, partition.A
    if not D:
        return ReducedEquations(tuple(tuple(Q[i][: i + 1]) for i in I), tuple(P))
    AT = list(zip(*A, strict=True))
    Q_D = {s: [Q[d][s] for d in D] for s in range(len(Q))}
    # W = Q_ID + A^T Q_DD gives S = Q_II + A^T Q_DI + W A and the right side without forming A2 Q.
    W = [[Q[i][d] + graph.dot(column, Q_D[d]) for d in D] for i, column in zip(I, AT, strict=True)]
    lower = tuple(
        tuple(Q[i][I[m]] + graph.dot(AT[j], Q_D[I[m]]) + graph.dot(W[j], AT[m]) for m in range(j + 1))
        for j, i in enumerate(I)
    )
    P_D = [P[d] for d in D]
    right = tuple(P[i] + graph.dot(AT[j], P_D) - graph.dot(W[j], B) for j, i in enumerate(I))
    return ReducedEquations(lower, right)


def reduced_accelerations(
    graph: Graph, equations: ReducedEquations, partition: Partition, B: Sequence[Node], threshold: float
) -> Accelerations:
    """u' from the reduced equations by straight-line ``L D L^T``, then ``u_D' = A u_I' + B``.

    ``threshold`` is the smallest pivot of the constraints, relative to its row, that the code accepts.
    """
    independent, conditions = solve_symmetric(equations.lower, equations.right)
    held = [pivot.holds(threshold) for pivot in partition.pivots]
    udot = complete(graph, partition, B, independent)
    return Accelerations(udot, (*(condition for condition in held if condition is not None), *conditions))


def solved_accelerations(
    graph: Graph, M: Matrix, P: Sequence[Node], partition: Partition, B: Sequence[Node], samples: Samples
) -> Accelerations:
    """u' from ``A2 M A2^T u_I' = A2 (P - M [0; B])`` by straight-line code, for any regular matrix.

    ``partition``: one whose pivots are divisors, defined wherever the constraints determine the dependent speeds.
    ``samples`` gives values of nodes at random states. Raises ZeroDivisionError, with the index of an independent
    speed as its argument, if the matrix is identically singular.
    """
    n_u = len(P)
    A2 = tangent_matrix(graph, partition, n_u)
    left = matrix_product(graph, A2, M)
    matrix = matrix_product(graph, left, list(zip(*A2, strict=True)))
    at_rest = complete(graph, partition, B, [graph.zero] * len(A2))
    right = difference(matrix_vector(graph, A2, P), matrix_vector(graph, left, at_rest))
    try:
        solution = solve_linear(matrix, [[x] for x in right], samples)
    except ZeroDivisionError:
        eliminate(matrix, [()] * len(A2), samples, range(len(A2)))  # whose error names the row
        raise
    tests = [divisor.holds(SINGULAR_LIMIT) for divisor in (*partition.pivots, *solution.divisors)]
    conditions = tuple(condition for condition in tests if condition is not None)
    return Accelerations(complete(graph, partition, B, [x for (x,) in solution.rows]), conditions)


def range_space_accelerations(
    graph: Graph, mass_matrix: Matrix, right_side: Sequence[Node], rows: Matrix, bias: Sequence[Node]
) -> Accelerations:
    """u' of ``Q u' = P + J^T lambda``, ``J u' = b`` by straight-line factors of Q and ``J Q^-1 J^T``, without pivoting.

    Raises ZeroDivisionError, with the index of the row as its argument, if Q is identically singular.
    """
    Q = factorize([row[: i + 1] for i, row in enumerate(mass_matrix)])
    free = Q.solve(right_side)
    responses = [Q.solve(row) for row in rows]
    S = [matrix_vector(graph, rows[: i + 1], response) for i, response in enumerate(responses)]
    rest = difference(bias, matrix_vector(graph, rows, free))
    multipliers, definite = solve_symmetric(S, rest)
    udot = tuple(
        graph.sum([x, *(m * y[i] for m, y in zip(multipliers, responses, strict=True))]) for i, x in enumerate(free)
    )
    return Accelerations(udot, (*Q.conditions, *definite))


def augmented_accelerations(
    graph: Graph, mass_matrix: Matrix, right_side: Sequence[Node], rows: Matrix, bias: Sequence[Node]
) -> Accelerations:
    """The same u' and multipliers from ``(Q + J^T W J) u' = P + J^T W b + J^T lambda`` (Golub and Greif 2003).

    The matrix on the left is positive definite even for a singular Q if the constraints determine the speeds that move
    no mass. ``W`` is diagonal. Entry k is the inertia seen by row k, ``1 / sum_r (J_kr^2 / Q_rr)``, which gives both
    terms the same size in any units. Q_rr is taken at its terms: the weight stays where a sine in Q_rr vanishes. Speeds
    that move no mass, also because a parameter is zero, do not count; a row of such speeds has ``1 / sum_r J_kr^2``.

    Raises ZeroDivisionError, with the index of the row as its argument, if the matrix is identically singular.
    """
    n = len(right_side)
    sizes = {r: term_size(mass_matrix[r][r]) for r in range(n) if not mass_matrix[r][r].is_zero}
    inverse = {r: graph.apply("reciprocal", size) for r, size in sizes.items()}
    weights = []
    for row in rows:
        compliance = graph.sum(row[r] * row[r] * x for r, x in inverse.items())
        moves = graph.apply("lt", graph.zero, compliance)
        weights.append(graph.div(graph.one, graph.select(moves, compliance, graph.dot(row, row))))
    weighted = [[w * x for x in row] for w, row in zip(weights, rows, strict=True)]
    columns, weighted_columns = ([[row[r] for row in matrix] for r in range(n)] for matrix in (rows, weighted))
    matrix = [[mass_matrix[i][j] + graph.dot(weighted_columns[i], columns[j]) for j in range(n)] for i in range(n)]
    right = [p + graph.dot(column, bias) for p, column in zip(right_side, weighted_columns, strict=True)]
    solution = range_space_accelerations(graph, matrix, right, rows, bias)
    solution = replace(solution, conditions=(*solution.conditions, *_without_spread(graph, rows, inverse)))
    if all(size.constant for size in sizes.values()):
        return solution
    # The pivots do not tell when Q and with it W vanish beside the forces.
    kept = [_holds(graph, row, solution.udot, value) for row, value in zip(rows, bias, strict=True)]
    return Accelerations(solution.udot, (*solution.conditions, *kept))


def _without_spread(graph: Graph, rows: Matrix, inverse: Mapping[int, Node]) -> Iterator[Node]:
    """The conditions that the inertias seen by each row, through one speed after the other, are of similar size.

    Only what parameters determine is compared, which is tested once for a run. Speeds that move no mass do not count.
    """
    for row in rows:
        sizes = {r: term_size(row[r]) for r in inverse if not row[r].is_zero}
        shares = [size * size * inverse[r] for r, size in sizes.items()]
        known = [share for share in shares if share.constant]
        if len(known) > 1:
            largest = reduce(partial(graph.apply, "max"), known)
            present = (graph.select(graph.apply("lt", graph.zero, x), x, largest) for x in known)
            smallest = reduce(partial(graph.apply, "min"), present)
            yield graph.apply("le", largest, graph.const(SPREAD) * smallest)


def _holds(graph: Graph, row: Sequence[Node], udot: Sequence[Node], value: Node) -> Node:
    """The condition that ``row u' = value`` but for rounding."""
    terms = [*(x * a for x, a in zip(row, udot, strict=True)), -value]
    size = graph.sum(graph.apply("abs", x) for x in terms)
    return graph.apply("le", graph.apply("abs", graph.sum(terms)), graph.const(RESIDUAL_LIMIT) * size)


def complete(graph: Graph, partition: Partition, B: Sequence[Node], independent: Sequence[Node]) -> tuple[Node, ...]:
    """All accelerations from the independent ones."""
    udot = dict(zip(partition.independent, independent, strict=True))
    for k, d in enumerate(partition.dependent):
        udot[d] = graph.sum([*(a * x for a, x in zip(partition.A[k], independent, strict=True)), B[k]])
    return tuple(udot[i] for i in range(len(udot)))
