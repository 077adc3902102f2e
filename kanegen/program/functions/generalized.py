"""Steps that need no choice of dependent speeds: generalized inverses, for constraints of any rank."""

from __future__ import annotations

from kanegen.derivation.sensitivities import constraint_rates
from kanegen.program.kernels.generalized import canonical_work, udwadia_kalaba_work
from kanegen.program.kernels.limit import udwadia_kalaba_limit_work
from kanegen.program.records import Block, Call, Step
from kanegen.program.registry import Functions, stores


def udwadia_kalaba_steps(f: Functions, stabilized: bool) -> tuple[tuple[Step, ...], dict[str, int]]:
    """Steps after which ``a`` holds u', ``lambda`` the shortest multipliers and ``rank`` the rank; their arrays."""
    n_u, n_c = f.n_u, f.n_c
    if not n_c:
        return _free_steps(f)
    arrays = _arrays(f) | {"G": n_c * n_u, "h": n_c, "a": n_u, "lambda": n_c, "rank": 1}
    arrays |= {"scratch": udwadia_kalaba_limit_work(n_u, n_c)}
    G, h = constraint_rates(f.equations, stabilized)
    rates = Block("d/dt (J u' - b) = G u' + h + J u''", (*stores("G", G), *stores("h", h)))
    arguments = (n_u, n_c, "Q", "P", "J", "b", "u", "G", "h", "scratch", "a", "lambda", "rank")
    return (_system(f, stabilized), rates, Call("udwadia_kalaba_limit", arguments)), arrays


def _free_steps(f: Functions) -> tuple[tuple[Step, ...], dict[str, int]]:
    """The same without constraints, of which none can become dependent."""
    arrays = _arrays(f) | {"scratch": udwadia_kalaba_work(f.n_u, 0), "a": f.n_u, "lambda": 0, "rank": 1}
    call = Call("udwadia_kalaba", (f.n_u, 0, "Q", "P", "J", "b", "scratch", "a", "lambda", "rank"))
    return (_system(f, stabilized=False), call), arrays


def canonical_steps(f: Functions, stabilized: bool) -> tuple[tuple[Step, ...], dict[str, int]]:
    """Steps after which ``parts`` holds the two parts of u' and the two of w'; their arrays."""
    e, n_u, n_c = f.equations, f.n_u, f.n_c
    arrays = _arrays(f) | {"Qdot": n_u * n_u, "scratch": canonical_work(n_u, n_c), "parts": 4 * n_u}
    rate = Block("rate of the kinetic-energy matrix", stores("Qdot", e.Qdot.nodes))
    call = Call("canonical", (n_u, n_c, "Q", "Qdot", "P", "J", "b", "u", "scratch", "parts"))
    return (_system(f, stabilized), rate, call), arrays


def _arrays(f: Functions) -> dict[str, int]:
    return {"Q": f.n_u * f.n_u, "P": f.n_u, "J": f.n_c * f.n_u, "b": f.n_c}


def _system(f: Functions, stabilized: bool) -> Block:
    e = f.equations
    b = e.b_stabilized if stabilized else e.b
    nodes = (*stores("Q", e.Q.nodes), *stores("P", e.P.nodes), *stores("J", e.J.nodes), *stores("b", b.nodes))
    return Block("Q u' = P + J^T lambda, J u' = b", nodes)
