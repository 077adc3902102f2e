"""Functions of the controls: the motion under control constraints, and the plant that the controls act on.

The plant is the generalized forces of the controls, q' and q'' as functions of u and u', and the equations of motion
in the directions without control forces.
"""

from __future__ import annotations

from kanegen.derivation.algebra import SINGULAR_LIMIT
from kanegen.derivation.control.control_constraints import UNKNOWN, ControlledMotion
from kanegen.derivation.control.servo import plant_controls
from kanegen.derivation.control.servo import underactuation as underactuated
from kanegen.derivation.equations import Equations
from kanegen.errors import ModelError
from kanegen.graph import Node, reachable
from kanegen.program.builder import Fragment, Functions, flat
from kanegen.program.catalogue import CONTROL_GAINS, CONTROLLED_RATES


def control_constraints(f: Functions, motion: ControlledMotion) -> None:
    """Add the functions of a model with control constraints."""
    summary = "q', u' and the derivatives of the controls under the control constraints"
    f.add(CONTROLLED_RATES, _right_hand_side(f, motion), summary)
    if motion.levels:
        residuals = _guarded(f, motion).output([level.residual for level in motion.levels])
        f.add("control_residuals", residuals, "residuals of the control constraints")
    rows = [(*motion.slopes(level.residual), level.residual) for level in motion.levels if level.held]
    if rows:
        summary = (
            "[d phi/dz, phi] of the control constraints and of their derivatives that the controls in the state satisfy"
        )
        f.add("control_level", _guarded(f, motion).rows(rows), summary)
    if any(motion.gains):
        summary = "number of gains, then Theta1, Theta2, ... of the control constraints with decaying errors"
        f.add(CONTROL_GAINS, f.fragment().rows(_gains(f, motion)), summary)


def _guarded(f: Functions, motion: ControlledMotion) -> Fragment:
    s = f.fragment()
    s.require(*motion.conditions)
    s.guard()
    return s


def _right_hand_side(f: Functions, motion: ControlledMotion) -> Fragment:
    """Build (q', u', z') of the state (q, u, z); the controls z are read from their slots of r."""
    s, m, n = _guarded(f, motion), len(motion.matrix), len(motion.unknowns)
    if m:
        title = "AA w = BB, w the highest derivatives of the controls; y: free vector"
        names = {"A": "AA", "z": "BB", "x": UNKNOWN}
        A, z, y = flat(motion.matrix), motion.right_side, motion.free_part
        # Their sums of absolute terms would take half of the time of these derivatives, which integrations evaluate.
        terms = [s.graph.one] * m
        s.call("control_solve", m, n, title=title, names=names, A=A, z=z, terms=terms, y=y)
    else:
        s.store("highest derivatives of the controls", **{UNKNOWN: motion.free_part})
    rates = (*motion.qdot, *motion.udot, *motion.state_rates)
    return s.output(rates, title="derivatives of the coordinates, speeds and controls")


def _gains(f: Functions, motion: ControlledMotion) -> list[list[Node]]:
    """Return a row for each constraint with gains: their number, the gains Theta1, ..., Thetak, then zeros."""
    present = [gains for gains in motion.gains if gains]
    width = max(map(len, present))
    return [[f.graph.const(len(gains)), *gains, *[f.graph.zero] * (width - len(gains))] for gains in present]


# -- plant --------------------------------------------------------------------------------------------------------


def path_controls(equations: Equations) -> tuple[int, ...]:
    """Return the inputs that inverse dynamics solves for; () if there are none or if q' has no time derivative."""
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
    """Return the reason why inverse dynamics has no unknown controls, or None."""
    if path_controls(f.equations):
        return None
    return "it has no inputs in which the forces are affine, or its q' contains an input without a rate"


def control_forces(f: Functions) -> Fragment:
    return f.fragment().rows(plant_controls(f.equations).columns)


def kinematics(f: Functions) -> Fragment:
    system = f.equations.system
    rows = [(*C, D, system.rate(rate)) for C, D, rate in zip(system.C, system.D, f.equations.qdot.nodes, strict=True)]
    return f.fragment().output(f.equations.simplified(flat(rows)), (f.n_q, f.n_u + 2))


def fully_actuated(f: Functions) -> str | None:
    """Return the reason why there are no equations of motion without controls, or None."""
    e = f.equations
    if not e.model.inputs:
        return "it has no inputs, so that no equation of motion contains a control"
    if not e.has_partition:
        return "its constraints are redundant"
    if not e.once(underactuated).equations.nodes:
        return "its controls reach every degree of freedom"
    return None


def underactuation(f: Functions) -> Fragment:
    """Build straight-line code with a guard for dependent controls and for a singular partition."""
    s, result = f.fragment(), f.equations.once(underactuated)
    conditions = (divisor.holds(SINGULAR_LIMIT) for divisor in result.divisors)
    s.require(*f.divisors(SINGULAR_LIMIT), *(condition for condition in conditions if condition is not None))
    s.guard()
    return s.output(result.equations.nodes, result.equations.shape)
