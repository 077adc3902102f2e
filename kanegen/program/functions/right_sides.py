"""Right-hand sides q', u' in every form of the equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from kanegen.derivation.equations import PIVOT_LIMIT, SQUARE_LIMIT
from kanegen.derivation.forms import Accelerations, augmented_accelerations, complete, range_space_accelerations
from kanegen.forms import FORMS
from kanegen.graph import Node
from kanegen.program.fragment import Fragment, lower_triangle
from kanegen.program.functions import generalized
from kanegen.program.functions.quantities import plain
from kanegen.program.records import Function
from kanegen.program.registry import Functions

RightSide: TypeAlias = Callable[[Functions, Fragment, bool, "str | None"], Sequence[Node]]
"""From (functions, the fragment that gets the steps, whether stabilized, the function that takes over where the
partition fails) to u'."""


def reduced(f: Functions, s: Fragment, stabilized: bool, otherwise: str | None) -> Sequence[Node]:
    """u_I' from ``A2 Q A2^T``, written out up to SQUARE_LIMIT unknowns, then ``u_D' = A u_I' + B``."""
    part, small = f.equations.partition, f.equations.reduced(stabilized)
    B = part.B_stabilized if stabilized else part.B
    n = len(small.right)
    if n <= SQUARE_LIMIT:
        solution = f.equations.accelerations(stabilized)
        s.require(*solution.conditions)
        s.guard(otherwise)
        return solution.udot
    s.require(*f.pivots(PIVOT_LIMIT))
    s.guard(otherwise)
    title, names = "reduced mass matrix and right side", {"a": "S", "b": "f"}
    solved = s.call("cholesky_solve", n, title=title, names=names, a=lower_triangle(small.lower), b=small.right)
    return complete(f.graph, part, B, solved["b"])


def nonminimal(f: Functions, s: Fragment, stabilized: bool, otherwise: str | None) -> Sequence[Node]:
    """``T u' = V`` by LU with row pivoting."""
    e = f.equations
    e.require_mass()
    V = e.V_stabilized if stabilized else e.V
    s.require(*f.pivots(PIVOT_LIMIT))
    s.guard(otherwise)
    return s.call("lu_solve", f.n_u, title="T u' = V", names={"a": "T", "b": "V"}, a=e.T.nodes, b=V.nodes)["b"]


def range_space(f: Functions, s: Fragment, stabilized: bool, otherwise: str | None) -> Sequence[Node]:
    """Q u' = P + J^T lambda with ``J Q^-1 J^T`` for lambda: straight-line, no pivots, no branch."""
    return _with_multipliers(f, s, stabilized, range_space_accelerations)


def augmented(f: Functions, s: Fragment, stabilized: bool, otherwise: str | None) -> Sequence[Node]:
    """The same with ``Q + J^T W J`` for Q: speeds may move no mass where the constraints determine them."""
    return _with_multipliers(f, s, stabilized, augmented_accelerations)


def _with_multipliers(
    f: Functions, s: Fragment, stabilized: bool, accelerations: Callable[..., Accelerations]
) -> Sequence[Node]:
    """u' by straight-line code from Q, P, J and b, whatever the dependent speeds are; one check of all pivots."""
    e = f.equations
    e.require_independent_constraints()
    b = (e.b_stabilized if stabilized else e.b).nodes
    rows = [row.J for row in e.constraints.rows]
    try:
        solution = accelerations(f.graph, e.mass_matrix, e.right_side, rows, b)
    except ZeroDivisionError as error:
        raise e.massless(error.args[0]) from error
    s.require(*solution.conditions)
    s.check()
    return solution.udot


def pseudoinverse(f: Functions, s: Fragment, stabilized: bool, otherwise: str | None) -> Sequence[Node]:
    """Constraints of any rank (Udwadia and Kalaba 1992): singular values decide."""
    return generalized.udwadia_kalaba(f, s, stabilized)["udot"]


def canonical(f: Functions, s: Fragment, stabilized: bool, otherwise: str | None) -> Sequence[Node]:
    """The sum of the constraint-enforcing and the momentum-balance part (Bajodah and Chen 2018)."""
    parts = generalized.canonical(f, s, stabilized)
    return [parts[i] + parts[f.n_u + i] for i in range(f.n_u)]


def any_partition(f: Functions, s: Fragment, stabilized: bool) -> Sequence[Node]:
    """u' with dependent speeds chosen at run time."""
    system: dict[str, Any] = {name: f.function(name) for name in ("Q", "P", "J")}
    if stabilized:
        b = f.function("b")
    else:
        b = f.internal("b_bare", "right sides of J u' = b without stabilization", lambda: plain("b")(f))
    return s.call("constrained_solve", f.n_u, f.n_c, **system, b=b)["udot"]


RIGHT_SIDES: Final[dict[str, RightSide]] = {
    "reduced": reduced,
    "nonminimal": nonminimal,
    "range_space": range_space,
    "augmented": augmented,
    "canonical": canonical,
    "pseudoinverse": pseudoinverse,
}
"""The steps of every form that integrates speeds, by its name in the table of forms."""


def right_hand_side(f: Functions, stabilized: bool) -> Function:
    """``rhs`` or ``rhs_stabilized``; where constraints are solved, with a fallback to any dependent speeds."""
    name, spec = "rhs_stabilized" if stabilized else "rhs", FORMS[f.form]
    if spec.definite:
        f.equations.require_full_mass()

    def fast(otherwise: str | None) -> Fragment:
        s = f.fragment()
        return _rates(f, s, RIGHT_SIDES[f.form](f, s, stabilized, otherwise))

    def general() -> Fragment:
        s = f.fragment()
        return _rates(f, s, any_partition(f, s, stabilized))

    if f.n_c and spec.partitioned:
        fragment = f.guarded(name, "q' and u' with dependent speeds chosen by pivoting", fast, general)
    else:
        fragment = fast(None)
    gains = ", with stabilized constraints" if stabilized else ""
    return f.add(name, fragment, f"q' and u' ({f.form} form{gains})")


def _rates(f: Functions, s: Fragment, udot: Sequence[Node]) -> Fragment:
    return s.output((*f.equations.qdot.nodes, *udot), title="derivatives of the coordinates and speeds")
