"""Right-hand sides q', u' in every form of the equations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from kanegen.derivation.equations import PIVOT_LIMIT, SQUARE_LIMIT
from kanegen.derivation.forms import Accelerations, augmented_accelerations, complete, range_space_accelerations
from kanegen.forms import FORMS
from kanegen.graph import Node
from kanegen.program.functions.generalized import canonical_steps, udwadia_kalaba_steps
from kanegen.program.functions.quantities import quantity
from kanegen.program.kernels.linear import constrained_work
from kanegen.program.records import Block, Call, Check, Function, Guard, Invoke, Step, Store
from kanegen.program.registry import Functions, all_hold, stores


@dataclass(frozen=True)
class Solved:
    """Steps after which ``udot`` holds the accelerations, with the work arrays they need."""

    steps: tuple[Step, ...]
    udot: tuple[Node, ...]
    arrays: dict[str, int]


Form: TypeAlias = Callable[[Functions, bool, str | None], Solved]
"""From (functions, whether stabilized, the function that takes over where the partition fails) to u'."""


def reduced(f: Functions, stabilized: bool, otherwise: str | None) -> Solved:
    """u_I' from ``A2 Q A2^T``, written out up to SQUARE_LIMIT unknowns, then ``u_D' = A u_I' + B``."""
    part, small = f.equations.partition, f.equations.reduced(stabilized)
    B = part.B_stabilized if stabilized else part.B
    n = len(small.right)
    if n <= SQUARE_LIMIT:
        found = f.equations.accelerations(stabilized)
        condition = all_hold(f.graph, found.conditions)
        return Solved(() if condition is None else (Guard(condition, otherwise),), found.udot, {})
    matrix = Block(
        "reduced mass matrix and right side",
        (
            *(Store("S", i * n + j, x) for i, row in enumerate(small.lower) for j, x in enumerate(row)),
            *stores("f", small.right),
        ),
    )
    steps = (*f.pivot_guard(PIVOT_LIMIT, otherwise), matrix, Call("cholesky_solve", (n, "S", "f")))
    return Solved(steps, complete(f.graph, part, B, f.array("f", n)), {"S": n * n, "f": n})


def nonminimal(f: Functions, stabilized: bool, otherwise: str | None) -> Solved:
    """``T u' = V`` by LU with row pivoting."""
    e, n = f.equations, f.n_u
    e.require_mass()
    V = e.V_stabilized if stabilized else e.V
    steps = (
        *f.pivot_guard(PIVOT_LIMIT, otherwise),
        Block("T u' = V", (*stores("T", e.T.nodes), *stores("V", V.nodes))),
        Call("lu_solve", (n, "T", "V")),
    )
    return Solved(steps, tuple(f.array("V", n)), {"T": n * n, "V": n})


def range_space(f: Functions, stabilized: bool, otherwise: str | None) -> Solved:
    """Q u' = P + J^T lambda with ``J Q^-1 J^T`` for lambda: straight-line, no pivots, no branch."""
    return _with_multipliers(f, stabilized, range_space_accelerations)


def augmented(f: Functions, stabilized: bool, otherwise: str | None) -> Solved:
    """The same with ``Q + J^T W J`` for Q: speeds may move no mass where the constraints determine them."""
    return _with_multipliers(f, stabilized, augmented_accelerations)


def _with_multipliers(f: Functions, stabilized: bool, accelerations: Callable[..., Accelerations]) -> Solved:
    """u' by straight-line code from Q, P, J and b, whatever the dependent speeds are; one check of all pivots."""
    e, graph = f.equations, f.graph
    e.require_independent_constraints()
    b = (e.b_stabilized if stabilized else e.b).nodes
    rows = [row.J for row in e.constraints.rows]
    try:
        found = accelerations(graph, e.mass_matrix, e.right_side, rows, b)
    except ZeroDivisionError as error:
        raise e.massless(error.args[0]) from error
    condition = all_hold(graph, found.conditions)
    return Solved(() if condition is None else (Check(condition),), found.udot, {})


def pseudoinverse(f: Functions, stabilized: bool, otherwise: str | None) -> Solved:
    """Constraints of any rank (Udwadia and Kalaba 1992): singular values decide."""
    steps, arrays = udwadia_kalaba_steps(f, stabilized)
    return Solved(steps, tuple(f.array("a", f.n_u)), arrays)


def canonical(f: Functions, stabilized: bool, otherwise: str | None) -> Solved:
    """The sum of the constraint-enforcing and the momentum-balance part (Bajodah and Chen 2018)."""
    steps, arrays = canonical_steps(f, stabilized)
    parts = f.array("parts", 2 * f.n_u)
    return Solved(steps, tuple(parts[i] + parts[f.n_u + i] for i in range(f.n_u)), arrays)


RIGHT_SIDES: Final[dict[str, Form]] = {
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
    name = "rhs_stabilized" if stabilized else "rhs"
    general = None
    spec = FORMS[f.form]
    if spec.definite:
        f.equations.require_full_mass()
    if f.n_c and spec.partitioned:
        summary = "q' and u' with dependent speeds chosen by pivoting"
        general = _function(f, f"{name}_general", _general(f, stabilized), summary, internal=True).name
    gains = ", with stabilized constraints" if stabilized else ""
    return _function(f, name, RIGHT_SIDES[f.form](f, stabilized, general), f"q' and u' ({f.form} form{gains})")


def _general(f: Functions, stabilized: bool) -> Solved:
    """u' with dependent speeds chosen at run time."""
    n_u, n_c = f.n_u, f.n_c
    steps: tuple[Step, ...] = (
        *(Invoke(quantity(f, name), name) for name in ("Q", "P", "J")),
        Invoke(quantity(f, "b" if stabilized else "b_bare"), "b"),
        Call("constrained_solve", (n_u, n_c, "Q", "P", "J", "b", "scratch", "a")),
    )
    arrays = {"Q": n_u * n_u, "P": n_u, "J": n_c * n_u, "b": n_c}
    arrays |= {"scratch": constrained_work(n_u, n_c), "a": n_u}
    return Solved(steps, tuple(f.array("a", n_u)), arrays)


def _function(f: Functions, name: str, solved: Solved, summary: str, internal: bool = False) -> Function:
    result = Block(
        "derivatives of the coordinates and speeds",
        (*stores("out", f.equations.qdot.nodes), *stores("out", solved.udot, f.n_q)),
    )
    steps = (*solved.steps, result)
    return f.add(Function(name, (f.n_q + f.n_u,), steps, solved.arrays, summary, internal))
