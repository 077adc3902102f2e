"""Functions of the momentum forms and of Hamilton's equations: the state is (q, mom) in place of (q, u).

The momenta stand where a function of the speeds has u, so that any integrator of q' and u' integrates q' and mom'.
The speeds in all quantities are replaced by those that the momenta determine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kanegen.derivation.algebra import solve_symmetric
from kanegen.derivation.equations import PIVOT_LIMIT, SQUARE_LIMIT
from kanegen.derivation.forms import complete, matrix_vector
from kanegen.derivation.momenta import Momenta
from kanegen.graph import Node, substitute
from kanegen.program.kernels.linear import constrained_work
from kanegen.program.records import Block, Call, Function, Guard, Step, Store
from kanegen.program.registry import Functions, Made, all_hold, stores

SINGULAR_LIMIT = 1e-12
"""Constraint pivots below this fraction of their row leave no correct digits: reduced momenta lose their meaning."""

SUMMARIES: Final = {
    "Dm": "matrix of the velocity form Q u' + Dm u = e, Q' = Dm + Dm^T",
    "e": "right side of the velocity form Q u' + Dm u = e",
}

STATE = "argument u holds the momenta"


@dataclass(frozen=True)
class Recovered:
    """Steps after which ``speeds`` (n_u,) are those of the momenta given in place of u, with work arrays."""

    steps: tuple[Step, ...]
    speeds: tuple[Node, ...]
    arrays: dict[str, int]

    def replaced(self, f: Functions, nodes: Sequence[Node]) -> list[Node]:
        """The nodes with these speeds for u."""
        return substitute(nodes, dict(zip(f.equations.system.u, self.speeds, strict=True)))


def _quantity(name: str) -> Callable[[Functions], Made]:
    def make(f: Functions) -> Made:
        found = getattr(Momenta(f.equations), name)
        return (Block("", stores("out", found.nodes)),), found.shape, {}

    return make


MAKERS: Final[Mapping[str, Callable[[Functions], Made]]] = {name: _quantity(name) for name in SUMMARIES}
"""Quantities of the velocity form, for every form of the equations."""


def add_momentum_form(f: Functions, form: str) -> None:
    """The functions of a momentum form: ``momentum_rhs``, ``speeds_from_momentum`` and the momenta of a state.

    Raises
    ------
    BuildError
        Where the form does not exist: constraints without a linear velocity level (reduced), a massless speed
        (unreduced, Hamilton), speeds other than q' (Hamilton).
    """
    momenta = Momenta(f.equations)
    for name in SUMMARIES:
        found = getattr(momenta, name)
        _add(f, name, SUMMARIES[name], found.nodes, found.shape)
    if form == "momentum":
        _add_reduced(f, momenta)
        return
    if form == "hamilton":
        momenta.require_canonical()
        _add_hamilton(f, momenta)
    momenta.require_mass(form)
    recovered = _unreduced_speeds(f, momenta)
    _add_speeds(f, recovered)
    _add(f, "momentum", "generalized momenta Q u + N", f.equations.momentum.nodes, (f.n_u,))
    rate = momenta.canonical_rate if form == "hamilton" else momenta.rate
    for stabilized in (False, True) if f.stabilizable else (False,):
        _add_unreduced(f, recovered, rate, stabilized)


def _add_reduced(f: Functions, momenta: Momenta) -> None:
    form = momenta.reduced
    recovered = _reduced_speeds(f, momenta)
    _add_speeds(f, recovered)
    if form.momenta:
        _add(f, "reduced_momentum", "momenta A2 (Q u + N)", form.momenta, (len(form.momenta),))
    nodes = recovered.replaced(f, [*f.equations.qdot.nodes, *form.rate])
    result = Block("q' and mom' = e + ehat", stores("out", nodes))
    shape = (f.n_q + len(form.rate),)
    summary = f"q' and mom' (reduced momentum form, {STATE})"
    f.add(Function("momentum_rhs", shape, (*recovered.steps, result), recovered.arrays, summary))


def _add_hamilton(f: Functions, momenta: Momenta) -> None:
    model = f.equations.model
    if model.has_potential:
        _add(f, "hamiltonian", "H = K2 - K0 + V", momenta.hamiltonian.nodes, ())
        _add(f, "jacobi_integral", "h = sum q' K_q' - K + V", momenta.jacobi_integral.nodes, ())


def _add(f: Functions, name: str, summary: str, nodes: Sequence[Node], shape: tuple[int, ...]) -> None:
    f.add(Function(name, shape, (Block("", stores("out", nodes)),), {}, summary))


def _add_speeds(f: Functions, recovered: Recovered) -> None:
    result = Block("speeds", stores("out", recovered.speeds))
    summary = f"speeds u of the momenta ({STATE})"
    f.add(Function("speeds_from_momentum", (f.n_u,), (*recovered.steps, result), recovered.arrays, summary))


# -- speeds from momenta ----------------------------------------------------------------------------------------


def _unreduced_speeds(f: Functions, momenta: Momenta) -> Recovered:
    """``Q u = mom - N``."""
    lower = [row[: i + 1] for i, row in enumerate(momenta.mass_matrix)]
    right = [mom - x for mom, x in zip(f.equations.system.u, momenta.N, strict=True)]
    steps, speeds, arrays = _symmetric(f, lower, right, "Q u = mom - N", ())
    return Recovered(steps, tuple(speeds), arrays)


def _reduced_speeds(f: Functions, momenta: Momenta) -> Recovered:
    """``A2 Q A2^T u_I = mom - A2 (Q [0; Bv] + N)``, then ``u_D = A u_I + Bv``."""
    form = momenta.reduced
    right = [mom - x for mom, x in zip(f.equations.system.u[: len(form.offset)], form.offset, strict=True)]
    pivots = (pivot.holds(SINGULAR_LIMIT) for pivot in form.partition.pivots)
    held = f.equations.system.at_rest([condition for condition in pivots if condition is not None])
    steps, independent, arrays = _symmetric(f, form.lower, right, "A2 Q A2^T u_I = mom - A2 (Q [0; Bv] + N)", held)
    return Recovered(steps, complete(f.graph, form.partition, form.remainder, independent), arrays)


def _symmetric(
    f: Functions, lower: Sequence[Sequence[Node]], right: Sequence[Node], title: str, conditions: Sequence[Node]
) -> tuple[tuple[Step, ...], list[Node], dict[str, int]]:
    """Steps after which the nodes solve the symmetric positive definite system, written out where it is small."""
    n = len(right)
    if n <= SQUARE_LIMIT:
        solution, definite = solve_symmetric(lower, right)
        return _guard(f, [*conditions, *definite], None), solution, {}
    block = Block(title, (*_square("M", lower), *stores("m", right)))
    steps = (*_guard(f, conditions, None), block, Call("cholesky_solve", (n, "M", "m")))
    return steps, f.array("m", n), {"M": n * n, "m": n}


def _square(array: str, lower: Sequence[Sequence[Node]]) -> tuple[Store, ...]:
    n = len(lower)
    return tuple(Store(array, i * n + j, x) for i, row in enumerate(lower) for j, x in enumerate(row))


def _guard(f: Functions, conditions: Sequence[Node], otherwise: str | None) -> tuple[Step, ...]:
    condition = all_hold(f.graph, conditions)
    return () if condition is None else (Guard(condition, otherwise),)


# -- the unreduced right-hand side ------------------------------------------------------------------------------


def _add_unreduced(f: Functions, recovered: Recovered, rate: Sequence[Node], stabilized: bool) -> None:
    """``mom' = e + ehat + J^T lambda``, the constraint forces being ``Q u' - P``."""
    name = "momentum_rhs_stabilized" if stabilized else "momentum_rhs"
    if not f.n_c:
        _add_rates(f, name, recovered, rate, (), {}, False)
        return
    general = f"{name}_general"
    _add_general(f, general, recovered, rate, stabilized)
    e = f.equations
    part, small = e.partition, e.reduced(stabilized)
    B = part.B_stabilized if stabilized else part.B
    n = len(small.right)
    rows = [*(x for row in small.lower for x in row), *small.right]
    pivots = [pivot.holds(PIVOT_LIMIT) for pivot in part.pivots]
    held = [condition for condition in pivots if condition is not None]
    if n <= SQUARE_LIMIT:
        independent, definite = solve_symmetric(small.lower, small.right)
        steps = _guard(f, recovered.replaced(f, [*held, *definite]), general)
        arrays = {}
    else:
        values = iter(recovered.replaced(f, rows))
        lower = [[next(values) for _ in row] for row in small.lower]
        block = Block("reduced mass matrix and right side", (*_square("S", lower), *stores("f", list(values))))
        guard = _guard(f, recovered.replaced(f, held), general)
        steps = (*guard, block, Call("cholesky_solve", (n, "S", "f")))
        independent, arrays = f.array("f", n), {"S": n * n, "f": n}
    udot = complete(f.graph, part, B, independent)
    inertia = matrix_vector(f.graph, e.mass_matrix, udot)
    total = [x + (y - z) for x, y, z in zip(rate, inertia, e.right_side, strict=True)]
    _add_rates(f, name, recovered, total, steps, arrays, False)


def _add_general(f: Functions, name: str, recovered: Recovered, rate: Sequence[Node], stabilized: bool) -> None:
    """The same with dependent speeds chosen at run time."""
    e, n_u, n_c = f.equations, f.n_u, f.n_c
    b = e.b_stabilized if stabilized else e.b
    arrays = {"Q": n_u * n_u, "P": n_u, "J": n_c * n_u, "b": n_c}
    values = iter(recovered.replaced(f, [*e.Q.nodes, *e.P.nodes, *e.J.nodes, *b.nodes]))
    filled = [stores(array, [next(values) for _ in range(length)]) for array, length in arrays.items()]
    steps = (
        Block("Q, P, J and b", tuple(store for part in filled for store in part)),
        Call("constrained_solve", (n_u, n_c, "Q", "P", "J", "b", "scratch", "a")),
    )
    inertia = matrix_vector(f.graph, e.mass_matrix, f.array("a", n_u))
    total = [x + (y - z) for x, y, z in zip(rate, inertia, e.right_side, strict=True)]
    arrays |= {"scratch": constrained_work(n_u, n_c), "a": n_u}
    _add_rates(f, name, recovered, total, steps, arrays, True)


def _add_rates(
    f: Functions,
    name: str,
    recovered: Recovered,
    rate: Sequence[Node],
    steps: tuple[Step, ...],
    arrays: dict[str, int],
    internal: bool,
) -> None:
    nodes = recovered.replaced(f, [*f.equations.qdot.nodes, *rate])
    result = Block("q' and mom' = e + ehat + J^T lambda", stores("out", nodes))
    general = " with dependent speeds chosen by pivoting" if internal else ""
    summary = f"q' and mom'{general} (unreduced momentum form, {STATE})"
    every = {**recovered.arrays, **arrays}
    f.add(Function(name, (f.n_q + f.n_u,), (*recovered.steps, *steps, result), every, summary, internal))
