"""Velocities against the rates of positions and orientations."""

from __future__ import annotations

from typing import Any

import numpy as np

from kanegen.derivation import views
from kanegen.verification.arithmetic import deviation
from kanegen.verification.report import Check
from kanegen.verification.subject import Subject
from kanegen.verification.worst import Worst

PRINCIPLE = "velocities"


def velocities(subject: Subject) -> tuple[Check, tuple[str, ...]]:
    """The row, and the points and frames whose velocities legally are no rates: these contain constraints.

    Legal are a velocity of rigid rotation about a point that is at rest (rolling), a point without position, and a
    spin of an axisymmetric body that the orientation leaves out. Any other difference is a deviation.
    """
    worst = Worst(PRINCIPLE, subject.arithmetic.tolerance)
    embedded: list[str] = []
    for point in views.placed_points(subject.equations):
        if point.origin is None or _explained(subject, point):
            embedded.append(point.what)
            continue
        for state in subject.states:
            v, rate = (subject.evaluate(a, state) for a in (point.velocity, point.rate))
            worst.compare(f"velocity of {point.what} and the rate of its position from {point.origin}", state, v, rate)
    for frame in views.oriented_frames(subject.equations):
        if _spins_about_symmetry(subject, frame):
            embedded.append(frame.what)
            continue
        for state in subject.states:
            omega, rate = (subject.evaluate(a, state) for a in (frame.omega, frame.rate))
            worst.compare(f"angular velocity of {frame.what} and the rate of its axes", state, omega, rate)
    note = "velocities are rates of positions, angular velocities those of direction cosines"
    if embedded:
        note += f"; not compared: {', '.join(embedded)} (constraints are part of the velocity)"
    return worst.check(note), tuple(embedded)


def _explained(subject: Subject, point: views.Placed) -> bool:
    """Whether a velocity that is no rate of position is that of a body rolling on the point it is placed from."""
    if point.rolled is None or _agree(subject, point.velocity, point.rate):
        return False
    return _agree(subject, point.velocity, point.rolled)


def _agree(subject: Subject, a: Any, b: Any) -> bool:
    tolerance = subject.arithmetic.tolerance
    return all(
        deviation(subject.evaluate(a, state), subject.evaluate(b, state)) <= tolerance for state in subject.states
    )


def _spins_about_symmetry(subject: Subject, frame: views.Oriented) -> bool:
    """Whether the angular velocity differs from the rate of the axes by a rotation that the inertia does not see."""
    if _agree(subject, frame.omega, frame.rate):
        return False
    for state in subject.states:
        omega, rate = (subject.evaluate(a, state) for a in (frame.omega, frame.rate))
        x, y, z = (a - b for a, b in zip(omega, rate, strict=True))
        xx, yy, zz, xy, xz, yz = subject.evaluate(frame.inertia, state)
        turn = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=object)
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=object)
        size = max(map(abs, (x, y, z))) * max(map(abs, (xx, yy, zz)))
        if any(abs(change) > subject.arithmetic.tolerance * size for change in (turn @ tensor - tensor @ turn).flat):
            return False
    return True
