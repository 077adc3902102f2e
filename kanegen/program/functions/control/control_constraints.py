"""Functions of the motion under control constraints: right-hand side, residuals, and what consistent starts need."""

from __future__ import annotations

from kanegen.derivation.control.control_constraints import UNKNOWN, ControlledMotion
from kanegen.program.kernels.control import control_work
from kanegen.program.records import Block, Call, Function, Guard, Step
from kanegen.program.registry import Functions, all_hold, stores

RIGHT_HAND_SIDE = "rhs_controlled"
GAINS = "control_gains"


def control_constraints(f: Functions, motion: ControlledMotion) -> None:
    """Add the functions of a model with control constraints."""
    f.add(_right_hand_side(f, motion))
    if motion.levels:
        f.add(_residuals(f, motion))
    if any(level.held for level in motion.levels):
        f.add(_held(f, motion))
    if any(motion.gains):
        f.add(_gains(f, motion))


def _guard(f: Functions, motion: ControlledMotion) -> tuple[Step, ...]:
    condition = all_hold(f.graph, motion.conditions)
    return () if condition is None else (Guard(condition, None),)


def _right_hand_side(f: Functions, motion: ControlledMotion) -> Function:
    """(q', u', z') of the state (q, u, z); z is read from its slots of r."""
    m, n = len(motion.matrix), len(motion.unknowns)
    steps: list[Step] = [*_guard(f, motion)]
    arrays = {UNKNOWN: n}
    if m:
        entries = [x for row in motion.matrix for x in row]
        system = (*stores("AA", entries), *stores("BB", motion.right_side), *stores("y", motion.free_part))
        steps.append(Block("AA w = BB, w the highest derivatives of the controls; y: what it leaves free", system))
        steps.append(Call("control_solve", (m, n, "AA", "BB", "y", "scratch", UNKNOWN)))
        arrays |= {"AA": m * n, "BB": m, "y": n, "scratch": control_work(m, n)}
    else:
        steps.append(Block("highest derivatives of the controls", stores(UNKNOWN, motion.free_part)))
    rates = (*motion.qdot, *motion.udot, *motion.state_rates)
    steps.append(Block("derivatives of the coordinates, speeds and controls", stores("out", rates)))
    summary = "q', u' and the derivatives of the controls under the control constraints"
    return Function(RIGHT_HAND_SIDE, (len(rates),), tuple(steps), arrays, summary)


def _residuals(f: Functions, motion: ControlledMotion) -> Function:
    nodes = [level.residual for level in motion.levels]
    steps = (*_guard(f, motion), Block("", stores("out", nodes)))
    return Function("control_residuals", (len(nodes),), steps, {}, "residuals of the control constraints")


def _held(f: Functions, motion: ControlledMotion) -> Function:
    rows = [(*motion.slopes(level.residual), level.residual) for level in motion.levels if level.held]
    steps = (*_guard(f, motion), Block("", stores("out", [x for row in rows for x in row])))
    summary = "[d phi/dz, phi] of the control constraints and derivatives that the controls of the state can satisfy"
    return Function("control_level", (len(rows), len(motion.slots) + 1), steps, {}, summary)


def _gains(f: Functions, motion: ControlledMotion) -> Function:
    """One row for each constraint that is to decay: how many gains, the gains Theta1, ..., Thetak, zeros."""
    present = [gains for gains in motion.gains if gains]
    width = max(map(len, present))
    rows = [(f.graph.const(len(gains)), *gains, *[f.graph.zero] * (width - len(gains))) for gains in present]
    steps = (Block("", stores("out", [x for row in rows for x in row])),)
    summary = "number of gains and Theta1, Theta2, ... of the control constraints whose errors decay"
    return Function(GAINS, (len(rows), width + 1), steps, {}, summary)
