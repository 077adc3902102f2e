"""Integrals of motion that a projection keeps: their gradients in the speeds beside their values."""

from __future__ import annotations

from typing import Final

from kanegen.derivation.equations import Equations
from kanegen.derivation.quantity import Quantity
from kanegen.graph import gradient, reachable
from kanegen.model.description import SystemDescription
from kanegen.program.fragment import Fragment
from kanegen.program.registry import Functions

ENERGY: Final = "energy"
"""The name of the model's own energy among the integrals; all others are outputs."""


def why_not(equations: Equations, name: str) -> str:
    """Why a projection of the speeds cannot keep the energy or an output; empty when it can."""
    model = equations.model
    has_energy = model.has_potential
    if name == ENERGY and name not in equations.outputs and not has_energy:
        return "the model has no potential energy: give potential_energy= or gravity= to kanegen.Model"
    if name == ENERGY and name in equations.outputs and has_energy:
        return "the model has an energy and an output of that name: rename the output"
    if name not in equations.outputs:
        return _not_conserved(model)
    kinds = {node.payload[0] for node in reachable(equations.outputs[name].nodes) if node.op == "input"}
    if "udot" in kinds:
        return "it contains accelerations, and a projection corrects speeds"
    if "u" not in kinds:
        return "it does not depend on the speeds, which a projection corrects: make it a holonomic constraint"
    return ""


def _not_conserved(model: SystemDescription) -> str:
    """Why contacts do not leave the energy as it is between impacts; empty when they do."""
    taking = [contact.name for contact in model.resolved_contacts if not contact.conserves_energy]
    if not taking:
        return ""
    return (
        f"contacts take and store energy while they act ({', '.join(taking)}); rigid ones without friction change it "
        "in impacts only"
    )


def integrals(f: Functions) -> dict[str, Fragment]:
    """[I_u | I] of the energy and of every output that a projection can keep."""
    e = f.equations
    quantities = {ENERGY: e.energy} if ENERGY not in e.outputs and not why_not(e, ENERGY) else {}
    quantities |= {name: quantity for name, quantity in e.outputs.items() if not why_not(e, name)}
    return {name: _integral(f, quantity) for name, quantity in quantities.items()}


def _integral(f: Functions, quantity: Quantity) -> Fragment:
    u, one = f.equations.system.u, f.graph.one
    return f.fragment().rows([[*gradient([value], [one], u), value] for value in quantity.nodes])
