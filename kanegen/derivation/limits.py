"""The next derivative of the constraints, which holds in the limit where rows become dependent on the way."""

from __future__ import annotations

from kanegen.derivation.equations import Equations
from kanegen.graph import Node, substitute


def constraint_rates(equations: Equations, stabilized: bool) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """G (n_c, n_u), row-major, and h (n_c) of ``d/dt (J u' - b) = G u' + h + J u''``.

    Rows nonlinear in the speeds have terms quadratic in u' besides, which are left out; inputs without a rate count as
    constant.
    """
    system, graph = equations.system, equations.graph
    rest = dict.fromkeys(system.udot, graph.zero)
    G: list[Node] = []
    h: list[Node] = []
    biases = (equations.b_stabilized if stabilized else equations.b).nodes
    for row, bias in zip(equations.constraints.rows, biases, strict=True):
        left = graph.dot(row.J, system.udot)
        change = system.full_rate(left - bias)
        nodes = substitute([*(partial(change) for partial in system.acceleration_partials), change], rest)
        G += nodes[:-1]
        h.append(nodes[-1])
    return tuple(system.settled(G)), tuple(system.settled(h))
