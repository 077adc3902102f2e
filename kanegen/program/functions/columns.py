"""Accelerations for several right sides at once, with one factorization."""

from __future__ import annotations

from collections.abc import Sequence

from kanegen.derivation import forms
from kanegen.derivation.algebra.cholesky import factorize
from kanegen.derivation.equations import PIVOT_LIMIT
from kanegen.graph import Node
from kanegen.program.fragment import Fragment, flat, lower_triangle
from kanegen.program.registry import Functions

WRITTEN_OUT = 2500
"""Largest n_i^2 m for which the solve of n_i unknowns with m right sides is straight-line code.

Measured on chains: 5 to 8 % faster than the kernel with 6 unknowns and columns, 17 % with 12, the same with 12
unknowns and 31 columns.
"""


def reduced_columns(
    f: Functions, s: Fragment, rights: forms.Matrix, shifts: forms.Matrix, otherwise: str | None
) -> list[tuple[Node, ...]]:
    """Columns (m, n_u) of ``A2 Q A2^T x_I = right``, ``x_D = A x_I + shift``.

    ``rights`` (m, n_i), ``shifts`` (m, n_d); where the partition fails the function named ``otherwise`` takes over.
    """
    e, part = f.equations, f.equations.partition
    lower, n, m = e.reduced(stabilized=False).lower, len(part.independent), len(rights)
    s.require(*f.pivots(PIVOT_LIMIT))
    if n * n * m <= WRITTEN_OUT:
        try:
            factor = factorize(lower)
        except ZeroDivisionError as error:
            raise e.massless(part.independent[error.args[0]]) from error
        solved = [factor.solve(right) for right in rights]
        s.require(*factor.conditions)
        s.guard(otherwise)
    else:
        s.guard(otherwise)
        sides = flat(list(zip(*rights, strict=True)))
        names, title = {"a": "S", "b": "X"}, "reduced mass matrix and right sides"
        X = s.call("cholesky_solve_many", n, m, title=title, names=names, a=lower_triangle(lower), b=sides)["b"]
        solved = [X[k::m] for k in range(m)]
    return [forms.complete(f.graph, part, shift, x) for shift, x in zip(shifts, solved, strict=True)]


def bordered_columns(f: Functions, s: Fragment, right: Sequence[Node], m: int) -> list[list[Node]]:
    """Columns (m, n_u) of ``[Q -J^T; J 0] [x; lambda] = right``, whatever speeds J determines.

    By LU with row pivoting; in forms for rows of any rank through singular values. ``right`` (n_u + n_c, m) is
    row-major.
    """
    n_u, n_c = f.n_u, f.n_c
    if f.any_rank:
        Q, J = f.function("Q"), f.function("J")
        names = {"work": "generalized"}
        X = s.call("udwadia_kalaba_many", n_u, n_c, m, title="right sides", names=names, Q=Q, J=J, X=right)["X"]
        return [X[k : n_u * m : m] for k in range(m)]
    s.invoke(f.function("Q"), "Q", n_u * n_u)
    s.invoke(f.function("J"), "J", n_c * n_u)
    rows_of_Q, rows_of_J = f.loaded("Q", f.equations.Q), f.loaded("J", f.equations.J)
    zeros = [f.graph.zero] * n_c
    K = [[*rows_of_Q[i], *(-row[i] for row in rows_of_J)] for i in range(n_u)] + [[*row, *zeros] for row in rows_of_J]
    names = {"a": "K", "b": "X"}
    X = s.call("lu_solve_many", n_u + n_c, m, title="[Q -J^T; J 0]", names=names, a=flat(K), b=right)["b"]
    return [[X[i * m + k] for i in range(n_u)] for k in range(m)]
