"""Functions for the outputs and reactions that a model names."""

from __future__ import annotations

from kanegen.derivation.forces.reactions import MULTIPLIERS
from kanegen.derivation.quantity import Quantity
from kanegen.graph import reachable, substitute
from kanegen.program.fragment import Fragment
from kanegen.program.registry import Functions


def outputs(f: Functions) -> dict[str, Fragment]:
    """The user's outputs, evaluated with the solved (stabilized) accelerations where they contain u'."""
    return {name: _evaluated(f, quantity) for name, quantity in f.equations.outputs.items()}


def reactions(f: Functions) -> dict[str, Fragment]:
    """One function each, (6,): force, then torque, with the solved accelerations."""
    title = "Newton's and Euler's equations of the set"
    return {name: _evaluated(f, quantity, title, always=True) for name, quantity in f.equations.reactions.items()}


def _evaluated(f: Functions, quantity: Quantity, title: str = "", always: bool = False) -> Fragment:
    s, nodes = f.fragment(), quantity.nodes
    arrays = {node.payload[0] for node in reachable(nodes) if node.op == "input"}
    if "udot" in arrays or always:
        udot = f.accelerations(s)
        nodes = tuple(substitute(nodes, dict(zip(f.equations.system.udot, udot, strict=True))))
    if MULTIPLIERS in arrays:
        s.invoke(f.function("multipliers"), MULTIPLIERS, f.n_c)
    return s.output(nodes, quantity.shape, title)
