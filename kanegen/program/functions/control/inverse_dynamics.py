"""Functions that inverse dynamics needs besides Q, P, J and b: what the controls do, and how q' follows from u."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kanegen.derivation.control.servo import plant_controls
from kanegen.derivation.equations import Equations
from kanegen.errors import ModelError
from kanegen.graph import reachable
from kanegen.program.records import Block
from kanegen.program.registry import Functions, Made, stores

SUMMARIES: Final = {
    "control_forces": "generalized forces of unit controls, a row for each",
    "kinematics": "[C D c] of q' = C u + D and q'' = C u' + c",
}


def path_controls(equations: Equations) -> tuple[int, ...]:
    """The inputs that inverse dynamics solves for; () where there is none, or the motion cannot be differentiated."""
    system = equations.system
    rates = dict(zip(system.r, system.input_rates, strict=True))
    moving = [node for node in reachable(system.qdot) if node in rates]
    if not system.r or any(rates[node] is None for node in moving):
        return ()
    try:
        return plant_controls(equations).slots
    except ModelError:
        return ()


def exists(equations: Equations) -> bool:
    """Whether the model has controls to solve for."""
    return bool(path_controls(equations))


def _control_forces(f: Functions) -> Made:
    controls = plant_controls(f.equations)
    nodes = [x for column in controls.columns for x in column]
    return (Block("", stores("out", nodes)),), (len(controls.slots), f.n_u), {}


def _kinematics(f: Functions) -> Made:
    system = f.equations.system
    rows = [(*C, D, system.rate(rate)) for C, D, rate in zip(system.C, system.D, f.equations.qdot.nodes, strict=True)]
    nodes = f.equations.simplified([x for row in rows for x in row])
    return (Block("", stores("out", nodes)),), (f.n_q, f.n_u + 2), {}


MAKERS: Final[dict[str, Callable[[Functions], Made]]] = {
    "control_forces": _control_forces,
    "kinematics": _kinematics,
}
