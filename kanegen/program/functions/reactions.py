"""Functions for the reactions a model names."""

from __future__ import annotations

from kanegen.derivation.forces.reactions import MULTIPLIERS
from kanegen.derivation.quantity import Quantity
from kanegen.graph import reachable, substitute
from kanegen.program.functions.quantities import quantity
from kanegen.program.records import Block, Function, Invoke, Step
from kanegen.program.registry import Functions, stores


def reactions(f: Functions) -> list[Function]:
    """One function ``reaction:<name>`` each, (6,): force, then torque, with the solved accelerations."""
    return [f.add(_reaction(f, name, found)) for name, found in f.equations.reactions.items()]


def _reaction(f: Functions, name: str, found: Quantity) -> Function:
    accelerations, udot = f.accelerations()
    steps: list[Step] = [accelerations]
    arrays = {"a": f.n_q + f.n_u}
    if any(node.op == "input" and node.payload[0] == MULTIPLIERS for node in reachable(found.nodes)):
        steps.append(Invoke(quantity(f, "multipliers"), MULTIPLIERS))
        arrays[MULTIPLIERS] = f.n_c
    nodes = substitute(found.nodes, dict(zip(f.equations.system.udot, udot, strict=True)))
    steps.append(Block("Newton's and Euler's equations of the set", stores("out", nodes)))
    return Function(f"reaction:{name}", found.shape, tuple(steps), arrays, f"reaction {name}: force, torque")
