"""Functions for the quantities of the equations: T, V, Q, P, forces, energies, residuals, outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kanegen.derivation.forms import matrix_product, matrix_vector
from kanegen.derivation.quantity import Quantity
from kanegen.forms import FORMS
from kanegen.graph import Node, reachable, substitute
from kanegen.program.functions import consistency, momentum_form
from kanegen.program.functions.control import inverse_dynamics as path
from kanegen.program.functions.control import servo, underactuation
from kanegen.program.functions.generalized import canonical_steps, udwadia_kalaba_steps
from kanegen.program.kernels.linear import multipliers_work
from kanegen.program.records import Block, Call, Function, Invoke, Step
from kanegen.program.registry import Functions, Made, stores

SINGULAR_LIMIT = 1e-12
"""Constraint pivots below this fraction of their row leave no correct digits: the named partition is singular."""

STABILIZED: Final = {"b": "b_stabilized", "b_bare": "b", "B": "B_stabilized"}
"""Quantities of the equations behind functions of another name: what is evaluated contains the gains given."""

PARTITIONED_QUANTITIES: Final = ("T", "V", "A", "B", "A1", "A2")

SUMMARIES: Final = {
    "T": "T of T u' = V: rows of the constraints, then momentum rows",
    "V": "V of T u' = V, stabilized with the gains given",
    "Q": "kinetic-energy matrix",
    "P": "generalized active forces less inertia forces at u' = 0",
    "J": "constraint rows at acceleration level",
    "b": "right sides of J u' = b, stabilized with the gains given",
    "b_bare": "right sides of J u' = b without stabilization",
    "A": "A of u_D' = A u_I' + B",
    "B": "B of u_D' = A u_I' + B, stabilized with the gains given",
    "A1": "A1 = [-A I]",
    "A2": "A2 = [I A^T]",
    "N": "part of the momenta that is left at u = 0",
    "L": "inertia forces at u' = 0",
    "F": "generalized active forces",
    "momentum": "generalized momenta Q u + N",
    "kinetic_energy": "kinetic energy",
    "potential_energy": "potential energy",
    "energy": "kinetic and potential energy",
    "constraint_force": "generalized constraint forces",
    "multipliers": "multipliers of the constraint rows, Q u' = P + J^T lambda",
    "rank": "number of independent constraint rows",
    "acceleration_parts": "u' and w' = (Q^1/2 u)': constraint-enforcing part, momentum-balance part, for each",
    "old_speeds": "generalized speeds before the change of speeds",
    "new_speeds": "generalized speeds from those before the change, which u holds",
    "residuals": "residuals of the constraints: phi and invariants, then phi' and psi",
    **momentum_form.SUMMARIES,
    **consistency.SUMMARIES,
    **servo.SUMMARIES,
    **path.SUMMARIES,
    "underactuation": underactuation.SUMMARY,
}


def exists(f: Functions, name: str) -> bool:
    """Whether the model has the quantity: an energy needs a potential, A a speed that is left free.

    Where redundant constraints admit no partition, T, V, A and B do not exist, and only rank-revealing forms go on.
    """
    equations = f.equations
    model = equations.model
    if name in ("energy", "potential_energy"):
        return model.has_potential
    if name in consistency.MAKERS:
        return consistency.exists(equations, name)
    if name in servo.MAKERS:
        return servo.exists(equations)
    if name in path.MAKERS:
        return path.exists(equations)
    if name == "underactuation":
        return underactuation.exists(equations)
    if name in ("old_speeds", "new_speeds"):
        return model.speed_change is not None
    if name == "residuals":
        return bool(equations.positions.nodes or equations.velocities.nodes)
    if name in PARTITIONED_QUANTITIES and FORMS[f.form].any_rank and not equations.has_partition:
        return False
    return name != "A" or bool(equations.partition.independent)


def quantity(f: Functions, name: str) -> Function:
    """The function of a quantity, which others may invoke; internal until the user asks for it."""

    def make() -> Function:
        steps, shape, arrays = MAKERS[name](f) if name in MAKERS else _plain(f, name)
        return Function(name, shape, steps, arrays, SUMMARIES[name], internal=True)

    return f.once(name, make)


def _plain(f: Functions, name: str) -> Made:
    """Straight-line code of one quantity of the equations."""
    found: Quantity = getattr(f.equations, STABILIZED.get(name, name))
    guard = f.pivot_guard(SINGULAR_LIMIT, None) if name in ("A", "B", "A1", "A2") else ()
    return (*guard, Block("", stores("out", found.nodes))), found.shape, {}


def _invoked(f: Functions, *names: str) -> tuple[Step, ...]:
    """Each quantity into the work array of its name."""
    return tuple(Invoke(quantity(f, name), name) for name in names)


def _T(f: Functions) -> Made:
    e, n = f.equations, f.n_u
    if not f.n_c:
        return (Invoke(quantity(f, "Q"), "out"),), (n, n), {}
    rows = f.loaded("A1", e.A1) + matrix_product(f.graph, f.loaded("A2", e.A2), f.loaded("Q", e.Q))
    block = Block("T = [A1; A2 Q]", stores("out", [x for row in rows for x in row]))
    arrays = {"A1": f.n_c * n, "A2": (n - f.n_c) * n, "Q": n * n}
    return (*_invoked(f, "A1", "A2", "Q"), block), (n, n), arrays


def _V(f: Functions) -> Made:
    e, n = f.equations, f.n_u
    if not f.n_c:
        return (Invoke(quantity(f, "P"), "out"),), (n,), {}
    P, B = _column(f, "P", e.P), _column(f, "B", e.B_stabilized)
    momentum = matrix_vector(f.graph, f.loaded("A2", e.A2), P)
    block = Block("V = [B; A2 P]", stores("out", [*B, *momentum]))
    return (*_invoked(f, "B", "A2", "P"), block), (n,), {"B": f.n_c, "A2": (n - f.n_c) * n, "P": n}


def _column(f: Functions, array: str, found: Quantity) -> list[Node]:
    return [row[0] for row in f.loaded(array, found)]


def _residuals(f: Functions) -> Made:
    nodes = (*f.equations.positions.nodes, *f.equations.velocities.nodes)
    return (Block("", stores("out", nodes)),), (len(nodes),), {}


def _constraint_force(f: Functions) -> Made:
    n = f.n_u
    if not f.n_c:
        return (Block("nothing constrains", stores("out", [f.graph.zero] * n)),), (n,), {}
    accelerations, udot = f.accelerations()
    inertia = matrix_vector(f.graph, f.loaded("Q", f.equations.Q), udot)
    force = [x - y for x, y in zip(inertia, _column(f, "P", f.equations.P), strict=True)]
    steps = (accelerations, *_invoked(f, "Q", "P"), Block("Q u' - P", stores("out", force)))
    return steps, (n,), {"a": f.n_q + n, "Q": n * n, "P": n}


def _multipliers(f: Functions) -> Made:
    n_u, n_c = f.n_u, f.n_c
    if not n_c:
        return (), (0,), {}
    if FORMS[f.form].any_rank:
        found, arrays = udwadia_kalaba_steps(f, f.stabilizable)
        return (*found, Block("", stores("out", f.array("lambda", n_c)))), (n_c,), arrays
    steps = (
        Invoke(quantity(f, "constraint_force"), "force"),
        Invoke(quantity(f, "J"), "J"),
        Call("multipliers", (n_u, n_c, "J", "force", "scratch", "out")),
    )
    return steps, (n_c,), {"force": n_u, "J": n_c * n_u, "scratch": multipliers_work(n_u, n_c)}


def _rank(f: Functions) -> Made:
    steps, arrays = udwadia_kalaba_steps(f, f.stabilizable)
    return (*steps, Block("", stores("out", f.array("rank", 1)))), (), arrays


def _parts(f: Functions) -> Made:
    steps, arrays = canonical_steps(f, f.stabilizable)
    shape = (4, f.n_u)
    return (*steps, Block("", stores("out", f.array("parts", 4 * f.n_u)))), shape, arrays


MAKERS: Final[dict[str, Callable[[Functions], Made]]] = {
    "T": _T,
    "V": _V,
    "constraint_force": _constraint_force,
    "multipliers": _multipliers,
    "residuals": _residuals,
    **momentum_form.MAKERS,
    "rank": _rank,
    "acceleration_parts": _parts,
    **consistency.MAKERS,
    **servo.MAKERS,
    **path.MAKERS,
    "underactuation": underactuation.make,
}
"""Quantities that are more than straight-line code."""


def outputs(f: Functions) -> list[Function]:
    """The user's outputs, evaluated with the solved (stabilized) accelerations where they contain u'."""
    return [f.add(_output(f, name, found)) for name, found in f.equations.outputs.items()]


def _output(f: Functions, name: str, found: Quantity) -> Function:
    if any(node.op == "input" and node.payload[0] == "udot" for node in reachable(found.nodes)):
        return _output_of_accelerations(f, name, found)
    return Function(f"output:{name}", found.shape, (Block("", stores("out", found.nodes)),), {}, f"output {name}")


def _output_of_accelerations(f: Functions, name: str, found: Quantity) -> Function:
    accelerations, udot = f.accelerations()
    nodes = substitute(found.nodes, dict(zip(f.equations.system.udot, udot, strict=True)))
    steps = (accelerations, Block("", stores("out", nodes)))
    return Function(f"output:{name}", found.shape, steps, {"a": f.n_q + f.n_u}, f"output {name}")
