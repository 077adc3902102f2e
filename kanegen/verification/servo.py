"""Servo-constraints under the controls found for them, against differences along the motion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath

from kanegen.derivation.control.servo import ServoEquations, servo_equations
from kanegen.program.interpret import interpret
from kanegen.verification.arithmetic import NO_DIGITS, STEP, kkt
from kanegen.verification.differences import motion_path
from kanegen.verification.report import Check
from kanegen.verification.states import State
from kanegen.verification.subject import Motion, Subject
from kanegen.verification.worst import Worst, not_applicable


def servo_constraints(subject: Subject) -> Check:
    """``psi'' = Theta1 psi' + Theta2 psi`` and ``psi' = Theta psi`` along the motion under the controls."""
    name, e = "servo-constraints", subject.equations
    servo = e.model.servo
    if servo is None:
        return not_applicable(name, "the model has none")
    if servo.damping is not None:
        return not_applicable(name, "damped controls leave them near singular states")
    if not subject.arithmetic.exact:
        return not_applicable(name, NO_DIGITS)
    worst = Worst(name, subject.arithmetic.tolerance)
    h, law = mpmath.mpf(STEP), e.once(servo_equations)
    for state, motion in zip(subject.states, subject.motions, strict=True):
        controlled = _controlled(subject, law, state, motion)
        if controlled is None:
            continue
        r, udot = controlled
        psi = law.residuals[: len(law.J)]
        path = motion_path(subject, state, r=r, udot=udot)
        before, now, after = (subject.evaluate(psi, state, **place) for place in path)
        gains = subject.evaluate([gain for pair in law.gains for gain in pair], state)
        for k, row in enumerate(law.J):
            first = (after[k] - before[k]) / (2 * h)
            terms = [first, -gains[2 * k] * now[k]]
            if servo.holonomic(k):
                second = (after[k] - 2 * now[k] + before[k]) / h**2
                terms = [second, -gains[2 * k] * first, -gains[2 * k + 1] * now[k]]
            size = _size(subject.evaluate(row, state), udot) + sum(map(abs, terms))
            worst.compare(f"servo-constraint {k}", state, [sum(terms)], [mpmath.mpf(0)], [size])
    return worst.check("psi'' = Theta1 psi' + Theta2 psi, psi' = Theta psi by differences along the motion under tau")


def _controlled(
    subject: Subject, law: ServoEquations, state: State, motion: Motion
) -> tuple[list[Any], list[Any]] | None:
    """Inputs with the controls, and the accelerations under them, at y = 0; None where there are no controls."""
    e = subject.equations
    none = [mpmath.mpf(0)] * len(state.gains)
    status, tau = interpret(subject.program, "control", subject.values(state, g=none), subject.arithmetic.context)
    if status < 0:
        return None
    r = list(subject.values(state)["r"])
    for slot, value in zip(law.controls.slots, tau, strict=True):
        r[slot] = value
    P = subject.evaluate(e.P.nodes, state, r=r)
    udot, _ = kkt(motion.Q, [motion.J[k] for k in motion.rows], P, [motion.b[k] for k in motion.rows])
    return r, udot


def _size(row: Sequence[Any], udot: Sequence[Any]) -> Any:
    return sum(abs(a * b) for a, b in zip(row, udot, strict=True))
