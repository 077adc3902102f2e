"""Right-hand sides q', u' in every form of the equations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from kanegen.derive.cholesky import solve_symmetric
from kanegen.derive.equations import PIVOT_LIMIT, SQUARE_LIMIT
from kanegen.derive.forms import complete
from kanegen.graph import Node
from kanegen.program.kernels import constrained_work
from kanegen.program.quantities import quantity
from kanegen.program.records import Block, Call, Function, Invoke, Step, Store
from kanegen.program.registry import Functions, stores


@dataclass(frozen=True)
class Solved:
    """Steps after which ``udot`` holds the accelerations, with the work arrays they need."""

    steps: tuple[Step, ...]
    udot: tuple[Node, ...]
    arrays: dict[str, int]


Form: TypeAlias = Callable[[Functions, bool, str | None], Solved]
"""From (functions, whether stabilised, the function that takes over where the partition fails) to u'."""


def reduced(f: Functions, stabilised: bool, otherwise: str | None) -> Solved:
    """u_I' from ``A2 Q A2^T``, written out up to SQUARE_LIMIT unknowns, then ``u_D' = A u_I' + B``."""
    part, small = f.equations.partition, f.equations.reduced(stabilised)
    B = part.B_stabilised if stabilised else part.B
    n = len(small.right)
    if n <= SQUARE_LIMIT:
        independent, definite = solve_symmetric(small.lower, small.right)
        return Solved(f.pivot_guard(PIVOT_LIMIT, otherwise, *definite), complete(f.graph, part, B, independent), {})
    matrix = Block(
        "reduced mass matrix and right side",
        (
            *(Store("S", i * n + j, x) for i, row in enumerate(small.lower) for j, x in enumerate(row)),
            *stores("f", small.right),
        ),
    )
    steps = (*f.pivot_guard(PIVOT_LIMIT, otherwise), matrix, Call("cholesky_solve", (n, "S", "f")))
    return Solved(steps, complete(f.graph, part, B, f.array("f", n)), {"S": n * n, "f": n})


def nonminimal(f: Functions, stabilised: bool, otherwise: str | None) -> Solved:
    """``T u' = V`` by LU with row pivoting."""
    e, n = f.equations, f.n_u
    V = e.V_stabilised if stabilised else e.V
    steps = (
        *f.pivot_guard(PIVOT_LIMIT, otherwise),
        Block("T u' = V", (*stores("T", e.T.nodes), *stores("V", V.nodes))),
        Call("lu_solve", (n, "T", "V")),
    )
    return Solved(steps, tuple(f.array("V", n)), {"T": n * n, "V": n})


FORMS: Final[dict[str, Form]] = {"reduced": reduced, "nonminimal": nonminimal}


def right_hand_side(f: Functions, form: str, stabilised: bool) -> Function:
    """``rhs`` or ``rhs_stabilised``; where constraints are solved, with a fallback to any dependent speeds."""
    name = "rhs_stabilised" if stabilised else "rhs"
    general = None
    if f.n_c:
        summary = "q' and u' with dependent speeds chosen by pivoting"
        general = _function(f, f"{name}_general", _general(f, stabilised), summary, internal=True).name
    gains = ", with stabilised constraints" if stabilised else ""
    return _function(f, name, FORMS[form](f, stabilised, general), f"q' and u' ({form} form{gains})")


def _general(f: Functions, stabilised: bool) -> Solved:
    """u' with dependent speeds chosen at run time."""
    n_u, n_c = f.n_u, f.n_c
    steps: tuple[Step, ...] = (
        *(Invoke(quantity(f, name), name) for name in ("Q", "P", "J")),
        Invoke(quantity(f, "b" if stabilised else "b_bare"), "b"),
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
