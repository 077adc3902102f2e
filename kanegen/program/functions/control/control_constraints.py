"""Functions of the motion under control constraints: right-hand side, residuals, and what consistent starts need."""

from __future__ import annotations

from kanegen.derivation.control.control_constraints import UNKNOWN, ControlledMotion
from kanegen.graph import Node
from kanegen.program.fragment import Fragment, flat
from kanegen.program.registry import Functions

RIGHT_HAND_SIDE = "rhs_controlled"
GAINS = "control_gains"


def control_constraints(f: Functions, motion: ControlledMotion) -> None:
    """Add the functions of a model with control constraints."""
    summary = "q', u' and the derivatives of the controls under the control constraints"
    f.add(RIGHT_HAND_SIDE, _right_hand_side(f, motion), summary)
    if motion.levels:
        residuals = _guarded(f, motion).output([level.residual for level in motion.levels])
        f.add("control_residuals", residuals, "residuals of the control constraints")
    rows = [(*motion.slopes(level.residual), level.residual) for level in motion.levels if level.held]
    if rows:
        summary = (
            "[d phi/dz, phi] of the control constraints and derivatives that the controls of the state can satisfy"
        )
        f.add("control_level", _guarded(f, motion).rows(rows), summary)
    if any(motion.gains):
        summary = "number of gains and Theta1, Theta2, ... of the control constraints whose errors decay"
        f.add(GAINS, f.fragment().rows(_gains(f, motion)), summary)


def _guarded(f: Functions, motion: ControlledMotion) -> Fragment:
    s = f.fragment()
    s.require(*motion.conditions)
    s.guard(None)
    return s


def _right_hand_side(f: Functions, motion: ControlledMotion) -> Fragment:
    """(q', u', z') of the state (q, u, z); z is read from its slots of r."""
    s, m, n = _guarded(f, motion), len(motion.matrix), len(motion.unknowns)
    if m:
        title = "AA w = BB, w the highest derivatives of the controls; y: what it leaves free"
        names = {"A": "AA", "z": "BB", "x": UNKNOWN}
        A, z, y = flat(motion.matrix), motion.right_side, motion.free_part
        s.call("control_solve", m, n, title=title, names=names, A=A, z=z, y=y)
    else:
        s.store("highest derivatives of the controls", **{UNKNOWN: motion.free_part})
    rates = (*motion.qdot, *motion.udot, *motion.state_rates)
    return s.output(rates, title="derivatives of the coordinates, speeds and controls")


def _gains(f: Functions, motion: ControlledMotion) -> list[list[Node]]:
    """One row for each constraint that is to decay: how many gains, the gains Theta1, ..., Thetak, zeros."""
    present = [gains for gains in motion.gains if gains]
    width = max(map(len, present))
    return [[f.graph.const(len(gains)), *gains, *[f.graph.zero] * (width - len(gains))] for gains in present]
