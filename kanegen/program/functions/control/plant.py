"""What the controls of a model do: their generalized forces, how q' follows from u, and what no control reaches."""

from __future__ import annotations

from kanegen.derivation.control.underactuation import plant_controls
from kanegen.derivation.control.underactuation import underactuation as underactuated
from kanegen.derivation.equations import PIVOT_LIMIT, Equations
from kanegen.errors import ModelError
from kanegen.graph import reachable
from kanegen.program.fragment import Fragment, flat
from kanegen.program.registry import Functions


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


def no_path_controls(f: Functions) -> str | None:
    """Why inverse dynamics has nothing to solve for."""
    if path_controls(f.equations):
        return None
    return "it has no inputs that enter the forces affinely, or its q' contains an input without a rate"


def control_forces(f: Functions) -> Fragment:
    return f.fragment().rows(plant_controls(f.equations).columns)


def kinematics(f: Functions) -> Fragment:
    system = f.equations.system
    rows = [(*C, D, system.rate(rate)) for C, D, rate in zip(system.C, system.D, f.equations.qdot.nodes, strict=True)]
    return f.fragment().output(f.equations.simplified(flat(rows)), (f.n_q, f.n_u + 2))


def fully_actuated(f: Functions) -> str | None:
    """Why there are no equations of motion without controls."""
    e = f.equations
    if not e.model.inputs:
        return "it has no inputs, so that all its equations are without controls"
    if not e.has_partition:
        return "its constraints are redundant"
    if not e.once(underactuated).equations.nodes:
        return "its controls reach every degree of freedom"
    return None


def underactuation(f: Functions) -> Fragment:
    """Straight-line code, guarded where the directions of the controls or the partition degenerate."""
    s, result = f.fragment(), f.equations.once(underactuated)
    pivots = (pivot.holds(PIVOT_LIMIT) for pivot in result.pivots)
    s.require(*f.pivots(PIVOT_LIMIT), *(condition for condition in pivots if condition is not None))
    s.guard(None)
    return s.output(result.equations.nodes, result.equations.shape)
