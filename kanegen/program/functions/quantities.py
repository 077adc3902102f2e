"""Functions for the quantities of the equations: T, V, Q, P, forces, energies, and the user's outputs and reactions."""

from __future__ import annotations

from kanegen.derivation.algebra import SINGULAR_LIMIT
from kanegen.derivation.equations import Quantity
from kanegen.derivation.forces.reactions import MULTIPLIERS
from kanegen.derivation.forms import matrix_product, matrix_vector
from kanegen.graph import Node, reachable
from kanegen.program.builder import Fragment, Functions, Maker, flat
from kanegen.program.functions import right_sides


def plain(name: str) -> Maker:
    """Return the maker of straight-line code for a quantity of the equations."""

    def make(f: Functions) -> Fragment:
        quantity: Quantity = getattr(f.equations, name)
        return f.fragment().output(quantity.nodes, quantity.shape)

    return make


def part_of(name: str) -> Maker:
    """Return the maker for a quantity that is defined only if the model's own partition is regular."""

    def make(f: Functions) -> Fragment:
        s, quantity = f.fragment(), getattr(f.equations, name)
        s.require(*f.divisors(SINGULAR_LIMIT))
        s.guard()
        return s.output(quantity.nodes, quantity.shape)

    return make


def T(f: Functions) -> Fragment:
    e, s, n = f.equations, f.fragment(), f.n_u
    s.shape = (n, n)
    if not f.n_c:
        s.invoke(f.mass, "out", n * n)
        return s
    A1, A2, M = _loaded(f, s, {"A1": e.A1, "A2": e.A2, e.M.name: e.M})
    return s.output(flat(A1 + matrix_product(f.graph, A2, M)), (n, n), f"T = [A1; A2 {e.M.name}]")


def V(f: Functions) -> Fragment:
    e, s, n = f.equations, f.fragment(), f.n_u
    s.shape = (n,)
    if not f.n_c:
        s.invoke(f.function("P"), "out", n)
        return s
    B, A2, P = _loaded(f, s, {"B": e.B_stabilized, "A2": e.A2, "P": e.P})
    return s.output([*flat(B), *matrix_vector(f.graph, A2, flat(P))], title="V = [B; A2 P]")


def _loaded(f: Functions, s: Fragment, quantities: dict[str, Quantity]) -> list[list[list[Node]]]:
    """Evaluate quantities by their functions, each in the work array of its name; return their rows."""
    for name, quantity in quantities.items():
        s.invoke(f.function(name), name, len(quantity.nodes))
    return [f.loaded(name, quantity) for name, quantity in quantities.items()]


def constraint_force(f: Functions) -> Fragment:
    s, e = f.fragment(), f.equations
    if not f.n_c:
        return s.output([f.graph.zero] * f.n_u, title="no constraints")
    udot = f.accelerations(s)
    M, P = _loaded(f, s, {e.M.name: e.M, "P": e.P})
    inertia = matrix_vector(f.graph, M, udot)
    return s.output([x - y for x, y in zip(inertia, flat(P), strict=True)], title=f"{e.M.name} u' - P")


def multipliers(f: Functions) -> Fragment:
    s = f.fragment()
    s.shape = (f.n_c,)
    if f.n_c and f.any_rank:
        return s.output(right_sides.any_rank(f, s, f.stabilizable)["lambda"])
    if f.n_c:
        force, J = f.function("constraint_force"), f.function("J")
        s.call("multipliers", f.n_u, f.n_c, names={"lambda": "out"}, force=force, J=J)
    return s


def state_rates(f: Functions) -> Fragment:
    s = f.fragment()
    return s.output(f.accelerated(s, f.equations.sdot.nodes))


def rank(f: Functions) -> Fragment:
    s = f.fragment()
    return s.output(right_sides.any_rank(f, s, f.stabilizable)["rank"], ())


def acceleration_parts(f: Functions) -> Fragment:
    s = f.fragment()
    return s.output(right_sides.acceleration_parts(f, s, f.stabilizable), (4, f.n_u))


def outputs(f: Functions) -> dict[str, Fragment]:
    """Return the user's outputs; outputs with u' use the solved accelerations, stabilized if possible."""
    return {name: _evaluated(f, quantity) for name, quantity in f.equations.outputs.items()}


def reactions(f: Functions) -> dict[str, Fragment]:
    """Return the reactions (6,), force then torque, from the solved accelerations."""
    title = "Newton's and Euler's equations of the bodies"
    return {name: _evaluated(f, quantity, title, always=True) for name, quantity in f.equations.reactions.items()}


def _evaluated(f: Functions, quantity: Quantity, title: str = "", always: bool = False) -> Fragment:
    s = f.fragment()
    nodes = f.accelerated(s, quantity.nodes, always)
    if any(node.op == "input" and node.payload[0] == MULTIPLIERS for node in reachable(quantity.nodes)):
        s.invoke(f.function("multipliers"), MULTIPLIERS, f.n_c)
    return s.output(nodes, quantity.shape, title)
