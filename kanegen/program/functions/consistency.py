"""Functions for corrections of positions and speeds: rows and residuals of constraints, directions, integrals, outputs.

Positions move by ``dq = S w``: the columns of S are those of C in ``q' = C u + D``, then the gradients of the
invariants. The speeds cannot change an invariant (``phi_q C = 0``), so the two kinds are orthogonal, and w has a
natural metric: that of the kinetic energy for the first n_u components.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kanegen.derivation.equations import Equations
from kanegen.graph import Node, gradient, reachable
from kanegen.model.expressions import symbol_name
from kanegen.program.builder import Fragment, Functions, Reason

ENERGY: Final = "energy"
"""The name of the model's own energy among the integrals; every other integral is an output."""


def without(*levels: str) -> Reason:
    """Return a function that gives the reason if the model has no constraints at any of ``levels``, else None."""

    def reason(f: Functions) -> str | None:
        quantities = {"position": f.equations.positions, "velocity": f.equations.velocities}
        present = any(quantities[level].nodes for level in levels)
        return None if present else f"it has no constraints at {' or '.join(levels)} level"

    return reason


def residuals(f: Functions) -> Fragment:
    return f.fragment().output((*f.equations.positions.nodes, *f.equations.velocities.nodes))


def displacements(f: Functions) -> Fragment:
    columns = _directions(f)
    return f.fragment().rows([[column[i] for column in columns] for i in range(f.n_q)])


def position_level(f: Functions) -> Fragment:
    e = f.equations
    directions = _directions(f)
    invariants = directions[f.n_u :]
    rows = []
    bound = (*e.constraints.holonomic, *e.constraints.implied)
    for row, phi in zip(bound, e.positions.nodes, strict=False):
        slope = gradient([row.residuals[0]], [f.graph.one], e.system.q)
        rows.append([*row.J, *(f.graph.dot(slope, direction) for direction in invariants), phi])
    zeros = [f.graph.zero] * f.n_u
    for slope, phi in zip(invariants, e.positions.nodes[len(rows) :], strict=True):
        rows.append([*zeros, *(f.graph.dot(slope, direction) for direction in invariants), phi])
    return f.fragment().rows(rows)


def velocity_level(f: Functions) -> Fragment:
    e = f.equations
    bound = (*e.constraints.holonomic, *e.constraints.nonholonomic)
    return f.fragment().rows([[*row.J, psi] for row, psi in zip(bound, e.velocities.nodes, strict=True)])


def angles(f: Functions) -> tuple[bool, ...]:
    """Return for every coordinate whether it is an angle: a sine or cosine in the constraints on positions takes it.

    The unit of an angle is 1, whatever its value. That of any other coordinate is unknown: its value tells its size.
    """
    q = f.equations.system.q
    found: set[Node] = set()
    for node in reachable(f.equations.positions.nodes):
        if node.op in {"sin", "cos", "tan"}:
            found.update(_summands(node.args[0]))
    return tuple(x in found for x in q)


def _summands(node: Node) -> Iterator[Node]:
    """Yield the terms of a sum, without signs and numeric factors."""
    if node.op in {"add", "sub", "neg"}:
        for part in node.args:
            yield from _summands(part)
    elif node.op == "mul" and any(part.op == "const" for part in node.args):
        yield from (part for part in node.args if part.op != "const")
    else:
        yield node


def _directions(f: Functions) -> list[list[Node]]:
    """Return the columns of S."""
    system = f.equations.system
    columns = [[system.C[i][r] for i in range(f.n_q)] for r in range(f.n_u)]
    return columns + [gradient([item.position], [f.graph.one], system.q) for item in f.equations.constraints.invariants]


def why_not(equations: Equations, name: str) -> str:
    """Return the reason why a projection of the speeds cannot keep the energy or an output; empty if it can."""
    model = equations.model
    if name == ENERGY and name not in equations.outputs and model.is_unsplit:
        return "the Lagrangian does not tell K from V: give potential_energy= or bodies= to kanegen.Model"
    if name == ENERGY and name not in equations.outputs and not model.has_potential:
        return "the model has no potential energy: give potential_energy= or gravity= to kanegen.Model"
    if name == ENERGY and name in equations.outputs and model.has_potential:
        return "the model has an energy and an output of that name: rename the output"
    if name not in equations.outputs:
        names = ", ".join(contact.name for contact in model.resolved_contacts if not contact.conserves_energy)
        change = f"the energy is not constant while these contacts are closed: {names}"
        return names and f"{change}; rigid contacts without friction change it in impacts only"
    kinds = {node.payload[0] for node in reachable(equations.outputs[name].nodes) if node.op == "input"}
    if "udot" in kinds:
        return "it contains accelerations, but a projection corrects only the speeds"
    if "u" not in kinds:
        return "it does not depend on the speeds, which a projection corrects: define it as a holonomic constraint"
    return ""


def integrals(f: Functions) -> dict[str, Fragment]:
    """Return the functions [I_u | I] of the energy and of every output that a projection can keep."""
    e, u, one = f.equations, f.equations.system.u, f.graph.one
    quantities = {ENERGY: e.energy} if ENERGY not in e.outputs and not why_not(e, ENERGY) else {}
    quantities |= {name: quantity for name, quantity in e.outputs.items() if not why_not(e, name)}
    return {
        name: f.fragment().rows([[*gradient([value], [one], u), value] for value in quantity.nodes])
        for name, quantity in quantities.items()
    }


def no_motion(equations: Equations, name: str) -> str:
    """Return the reason why a path cannot prescribe an output; empty if it can."""
    system, nodes = equations.system, equations.outputs[name].nodes
    for node in reachable(nodes):
        if node.op == "input" and node.payload[0] in _MOTIONS:
            return f"it depends on {_MOTIONS[node.payload[0]]}"
        if node in (*system.multipliers, *system.free, *system.s):
            return "it depends on contact forces or states"
    rates = dict(zip(system.r, system.input_rates, strict=True))
    for node in reachable([*nodes, *map(system.rate, nodes)]):
        if node in rates and rates[node] is None:
            symbol = equations.model.inputs[system.r.index(node)].symbol
            return f"it depends on the input {symbol_name(symbol)}, whose time derivatives are not known"
    return ""


_MOTIONS: Final = {"u": "speeds", "udot": "accelerations"}


def output_motions(f: Functions) -> dict[str, Fragment]:
    """Return the functions [y_q S, y, y', y'' at u' = 0] of every output that a path can prescribe."""
    e, directions = f.equations, _directions(f)
    functions = {}
    for name, quantity in e.outputs.items():
        if no_motion(e, name):
            continue
        rows = []
        for y in quantity.nodes:
            slope, rate = gradient([y], [f.graph.one], e.system.q), e.system.rate(y)
            rows.append([*(f.graph.dot(slope, d) for d in directions), y, rate, e.system.rate(rate)])
        width = len(rows[0])
        nodes = e.simplified([x for row in rows for x in row])
        functions[name] = f.fragment().output(nodes, (len(rows), width))
    return functions
