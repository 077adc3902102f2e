"""Right-hand sides q' and u' in every form of the equations, and accelerations for several right sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from kanegen.derivation.algebra import PIVOT_LIMIT, factorize
from kanegen.derivation.equations import SQUARE_LIMIT
from kanegen.derivation.forms import (
    Accelerations,
    Matrix,
    augmented_accelerations,
    complete,
    range_space_accelerations,
)
from kanegen.derivation.sensitivities import constraint_rates
from kanegen.errors import BuildError
from kanegen.forms import FORMS
from kanegen.graph import Node, arranged, substitute
from kanegen.graph.linear import term_size
from kanegen.program.builder import Fragment, Functions, flat, lower_triangle
from kanegen.program.records import Call, Function, Invoke

WRITTEN_OUT = 2500
"""Largest n_i^2 m for which the solve of n_i unknowns with m right sides is straight-line code.

Measured on chains: straight-line code is 5 to 8 % faster than the kernel for 6 unknowns and 6 columns, 17 % faster
for 12 and 12, and equally fast for 12 unknowns and 31 columns.
"""


RightSide: TypeAlias = Callable[[Functions, Fragment, bool], Sequence[Node]]
"""Adds steps to a fragment and returns u'; arguments: functions, fragment, whether to stabilize."""


def reduced(
    f: Functions, s: Fragment, stabilized: bool, at: Callable[[Sequence[Node]], Sequence[Node]] = tuple
) -> Sequence[Node]:
    """Solve with ``A2 M A2^T`` for u_I', as straight-line code up to SQUARE_LIMIT unknowns; ``u_D' = A u_I' + B``.

    ``at`` replaces the speeds in nodes if the state contains momenta.
    """
    part, small = f.equations.partition, f.equations.reduced(stabilized)
    n = len(small.right)
    if n <= SQUARE_LIMIT:
        solution = f.equations.accelerations(stabilized)
        s.require(*at(solution.conditions))
        s.guard()
        return solution.udot
    s.require(*at(f.pivots(PIVOT_LIMIT)))
    s.guard()
    values = iter(at([*flat(small.lower), *small.right]))
    lower = [[next(values) for _ in row] for row in small.lower]
    title, names = "reduced mass matrix and right side", {"a": "S", "b": "f"}
    solved = s.call("cholesky_solve", n, title=title, names=names, a=lower_triangle(lower), b=list(values))
    return complete(f.graph, part, part.B_stabilized if stabilized else part.B, solved["b"])


def nonminimal(
    f: Functions, s: Fragment, stabilized: bool, at: Callable[[Sequence[Node]], Sequence[Node]] = tuple
) -> Sequence[Node]:
    """Solve ``T u' = V`` by LU with row pivoting; ``at`` as for `reduced`."""
    e = f.equations
    e.require_mass()
    V = e.V_stabilized if stabilized else e.V
    s.require(*at(f.pivots(PIVOT_LIMIT)))
    s.guard()
    values = {"a": at(e.T.nodes), "b": at(V.nodes)}
    return s.call("lu_solve", f.n_u, title="T u' = V", names={"a": "T", "b": "V"}, **values)["b"]


def range_space(f: Functions, s: Fragment, stabilized: bool) -> Sequence[Node]:
    """Solve ``M u' = P + J^T lambda``, lambda from ``J M^-1 J^T``: straight-line code without pivoting or branches."""
    return _with_multipliers(f, s, stabilized, range_space_accelerations)


def augmented(f: Functions, s: Fragment, stabilized: bool) -> Sequence[Node]:
    """Use ``M + J^T W J`` in place of M: M may be singular for speeds that the constraints determine."""
    return _with_multipliers(f, s, stabilized, augmented_accelerations)


def _with_multipliers(
    f: Functions, s: Fragment, stabilized: bool, accelerations: Callable[..., Accelerations]
) -> Sequence[Node]:
    """Compute u' by straight-line code from M, P, J and b, without dependent speeds; one test of all pivots."""
    e = f.equations
    e.require_independent_constraints()
    b = (e.b_stabilized if stabilized else e.b).nodes
    rows = [row.J for row in e.constraints.rows]
    try:
        solution = accelerations(f.graph, e.left_side, e.right_side, rows, b)
    except ZeroDivisionError as error:
        raise e.massless(error.args[0]) from error
    return _tested(f, s, solution)


def articulated(f: Functions, s: Fragment, stabilized: bool) -> Sequence[Node]:
    """Eliminate velocities and multipliers, from the tips to the root: of order n for chains, trees and local loops."""
    solution = f.equations.articulated_accelerations(stabilized)
    return _tested(f, s, solution)


def _tested(f: Functions, s: Fragment, solution: Accelerations) -> Sequence[Node]:
    """Test the conditions of a solution, with a branch only where the form has another solution behind it."""
    s.require(*solution.conditions)
    if f.n_c and FORMS[f.form].repartitions:
        s.guard()
    else:
        s.check()
    return solution.udot


def pseudoinverse(f: Functions, s: Fragment, stabilized: bool) -> Sequence[Node]:
    """Solve for constraints of any rank by singular values (Udwadia and Kalaba 1992)."""
    return any_rank(f, s, stabilized)["udot"]


def any_partition(f: Functions, s: Fragment, stabilized: bool) -> Sequence[Node]:
    """Return u' with dependent speeds chosen at run time."""
    system: dict[str, Any] = {"Q": f.mass, "P": f.function("P"), "J": f.function("J")}
    bare = "right sides of J u' = b without stabilization"
    b = f.function("b") if stabilized else f.internal("b_bare", bare, lambda: f.fragment().output(f.equations.b.nodes))
    return s.call(constrained_solve(f), f.n_u, f.n_c, **system, b=b)["udot"]


def constrained_solve(f: Functions) -> str:
    """Return the kernel for u' with dependent speeds chosen at run time; loads in u' can make M indefinite."""
    return "constrained_solve_lu" if f.equations.model.is_accelerated else "constrained_solve"


RIGHT_SIDES: Final[dict[str, RightSide]] = {
    "reduced": reduced,
    "nonminimal": nonminimal,
    "range_space": range_space,
    "articulated": articulated,
    "augmented": augmented,
    "canonical": pseudoinverse,  # the sum of the parts of u' that acceleration_parts() splits
    "pseudoinverse": pseudoinverse,
}
"""The functions that compute u' in the forms that integrate speeds, by their names in the table of forms."""


def right_hand_side(f: Functions, stabilized: bool, fallback: bool = True) -> Function:
    """Add ``rhs`` or ``rhs_stabilized``.

    Forms that repartition have a fallback that chooses dependent speeds, unless ``fallback`` is False.
    """
    name, spec = "rhs_stabilized" if stabilized else "rhs", FORMS[f.form]
    if spec.symmetric:
        _require_symmetry(f)
    if spec.definite:
        f.equations.require_full_mass()

    def fast(s: Fragment) -> Fragment:
        return _rates(f, s, RIGHT_SIDES[f.form](f, s, stabilized))

    def general(s: Fragment) -> Fragment:
        return _rates(f, s, any_partition(f, s, stabilized))

    summary = "q' and u' with dependent speeds chosen by pivoting"
    fragment = f.guarded(name, summary, fast, general if fallback and f.n_c and spec.repartitions else None)
    gains = ", with stabilized constraints" if stabilized else ""
    function = f.add(name, fragment, f"q' and u' ({f.form} form{gains})", internal="rhs" not in f.public)
    if not any(isinstance(step, Call | Invoke) for step in function.steps):
        # A kernel may decide a rank from its arguments: rows that are equal must stay equal in all bits.
        f.known[name] = function.with_roots(arranged(function.roots))
    return f.known[name]


def _require_symmetry(f: Functions) -> None:
    """Raise the BuildError that says why M is not symmetric, if it is not, with the forms that accept it."""
    if f.equations.asymmetry:
        suitable = ", ".join(f'"{spec.name}"' for spec in FORMS.values() if not spec.symmetric)
        raise BuildError(
            f"form={f.form!r} needs a symmetric matrix, but {f.equations.asymmetry}: use one of {suitable}"
        )


def _rates(f: Functions, s: Fragment, udot: Sequence[Node]) -> Fragment:
    e = f.equations
    sdot = substitute(e.sdot.nodes, dict(zip(e.system.udot, udot, strict=True)))
    title = "derivatives of the coordinates and speeds" + ", then of the states" * bool(sdot)
    return s.output((*e.qdot.nodes, *udot, *sdot), title=title)


# -- constraints of any rank, by generalized inverses ---------------------------------------------------------------


def any_rank(f: Functions, s: Fragment, stabilized: bool) -> dict[str, list[Node]]:
    """Return ``udot``, the multipliers ``lambda`` of least norm and the ``rank`` of the constraint rows."""
    if not f.n_c:
        return s.call("udwadia_kalaba", f.n_u, 0, title=_title(f), **_system(f, stabilized=False))
    _store_limit(f, s, stabilized)
    return s.call("udwadia_kalaba_limit", f.n_u, f.n_c, **_LIMIT)


def acceleration_parts(f: Functions, s: Fragment, stabilized: bool) -> list[Node]:
    """Split the u' of `any_rank`: its two parts and the two parts of w', (4, n_u) (Bajodah and Chen 2018)."""
    _store_limit(f, s, stabilized)
    e = f.equations
    matrix = "matrix of the accelerations" if e.model.is_accelerated else "kinetic-energy matrix"
    s.store(f"rate of the {matrix}", Qdot=e.simplified([e.system.rate(entry) for entry in e.M.nodes]))
    return s.call("canonical", f.n_u, f.n_c, Qdot="Qdot", u="u", **_LIMIT)["parts"]


_LIMIT: Final[dict[str, Any]] = {name: name for name in ("Q", "P", "J", "b", "terms", "G", "h")}


def _store_limit(f: Functions, s: Fragment, stabilized: bool) -> None:
    """Store what the kernels of the limit near dependent constraint rows take."""
    G, h = constraint_rates(f.equations, stabilized)
    s.store(_title(f), **_system(f, stabilized))
    s.store("d/dt (J u' - b) = G u' + h + J u''", G=G, h=h)
    s.store("squared terms of the rows of J over the masses", terms=_row_terms(f))


def _row_terms(f: Functions) -> list[Node]:
    """Return the squared sizes that the rows of J (n_c,) have where their terms do not cancel, in the metric of M."""
    masses, terms = [row[i] for i, row in enumerate(f.equations.left_side)], []
    for row in f.equations.constraints.rows:
        sizes = ((term_size(x), mass) for x, mass in zip(row.J, masses, strict=True) if not (x.is_zero or mass.is_zero))
        terms.append(f.graph.sum(size * size / mass for size, mass in sizes))
    return terms


def _title(f: Functions) -> str:
    return f"{f.equations.M.name} u' = P + J^T lambda, J u' = b"


def _system(f: Functions, stabilized: bool) -> dict[str, Any]:
    e = f.equations
    b = e.b_stabilized if stabilized else e.b
    return {"Q": e.M.nodes, "P": e.P.nodes, "J": e.J.nodes, "b": b.nodes}


# -- several right sides, with one factorization -------------------------------------------------------------------


def reduced_columns(f: Functions, s: Fragment, rights: Matrix, shifts: Matrix) -> list[tuple[Node, ...]]:
    """Return columns (m, n_u) with ``A2 M A2^T x_I = right`` and ``x_D = A x_I + shift``.

    ``rights`` (m, n_i), ``shifts`` (m, n_d).
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
        s.guard()
    else:
        s.guard()
        sides = flat(list(zip(*rights, strict=True)))
        names, title = {"a": "S", "b": "X"}, "reduced mass matrix and right sides"
        X = s.call("cholesky_solve_many", n, m, title=title, names=names, a=lower_triangle(lower), b=sides)["b"]
        solved = [X[k::m] for k in range(m)]
    return [complete(f.graph, part, shift, x) for shift, x in zip(shifts, solved, strict=True)]


def bordered_columns(f: Functions, s: Fragment, right: Sequence[Node], m: int) -> list[list[Node]]:
    """Return columns (m, n_u) with ``[M -J^T; J 0] [x; lambda] = right``, without a choice of dependent speeds.

    Uses LU with row pivoting, or singular values in the forms for constraints of any rank. ``right`` (n_u + n_c, m) is
    row-major.
    """
    n_u, n_c = f.n_u, f.n_c
    if f.any_rank:
        names, J = {"work": "generalized"}, f.function("J")
        X = s.call("udwadia_kalaba_many", n_u, n_c, m, title="right sides", names=names, Q=f.mass, J=J, X=right)["X"]
        return [X[k : n_u * m : m] for k in range(m)]
    return [column[:n_u] for column in bordered_solutions(f, s, right, m)]


def bordered_solutions(
    f: Functions, s: Fragment, right: Sequence[Node], m: int, transposed: bool = False
) -> list[list[Node]]:
    """Return columns (m, n_u + n_c) with ``[M -J^T; J 0] [x; lambda] = right``, by LU with row pivoting.

    ``transposed``: with M^T in place of M.
    """
    n_u, n_c = f.n_u, f.n_c
    M = f.equations.M
    s.invoke(f.mass, M.name, n_u * n_u)
    if n_c:
        s.invoke(f.function("J"), "J", n_c * n_u)
    rows_of_M, rows_of_J = f.loaded(M.name, M), f.loaded("J", f.equations.J)
    if transposed:
        rows_of_M = [list(column) for column in zip(*rows_of_M, strict=True)]
    zeros = [f.graph.zero] * n_c
    K = [[*rows_of_M[i], *(-row[i] for row in rows_of_J)] for i in range(n_u)] + [[*row, *zeros] for row in rows_of_J]
    names = {"a": "K", "b": "X"}
    X = s.call("lu_solve_many", n_u + n_c, m, title=f"[{M.name} -J^T; J 0]", names=names, a=flat(K), b=right)["b"]
    return [[X[i * m + k] for i in range(n_u + n_c)] for k in range(m)]
