"""Steps that need no choice of dependent speeds: generalized inverses, for constraints of any rank."""

from __future__ import annotations

from typing import Any

from kanegen.derivation.limits import constraint_rates
from kanegen.graph import Node
from kanegen.program.fragment import Fragment
from kanegen.program.registry import Functions

_TITLE = "Q u' = P + J^T lambda, J u' = b"


def udwadia_kalaba(f: Functions, s: Fragment, stabilized: bool) -> dict[str, list[Node]]:
    """``udot``, the shortest multipliers ``lambda`` and the ``rank`` of the constraint rows."""
    if not f.n_c:
        return s.call("udwadia_kalaba", f.n_u, 0, title=_TITLE, **_system(f, stabilized=False))
    G, h = constraint_rates(f.equations, stabilized)
    s.store(_TITLE, **_system(f, stabilized))
    s.store("d/dt (J u' - b) = G u' + h + J u''", G=G, h=h)
    return s.call("udwadia_kalaba_limit", f.n_u, f.n_c, Q="Q", P="P", J="J", b="b", u="u", G="G", h="h")


def canonical(f: Functions, s: Fragment, stabilized: bool) -> list[Node]:
    """The two parts of u' and the two of w', (4, n_u)."""
    s.store(_TITLE, **_system(f, stabilized))
    s.store("rate of the kinetic-energy matrix", Qdot=f.equations.Qdot.nodes)
    return s.call("canonical", f.n_u, f.n_c, Q="Q", Qdot="Qdot", P="P", J="J", b="b", u="u")["parts"]


def _system(f: Functions, stabilized: bool) -> dict[str, Any]:
    e = f.equations
    b = e.b_stabilized if stabilized else e.b
    return {"Q": e.Q.nodes, "P": e.P.nodes, "J": e.J.nodes, "b": b.nodes}
