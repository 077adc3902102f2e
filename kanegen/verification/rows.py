"""Every constraint of the description against the rows of the equations: none is lost on the way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kanegen.derivation.states import Numbers, State, numbers
from kanegen.graph import Node
from kanegen.model.records import ACCELERATION, POSITION, VELOCITY
from kanegen.verification.report import NotApplicableError, Worst
from kanegen.verification.subject import STEP, Subject

_ARGUMENTS = {POSITION: "q", VELOCITY: "u", ACCELERATION: "udot"}
"""The array of which a constraint of each kind restricts the changes."""


def described(subject: Subject, worst: Worst) -> str:
    """Compare J with differences of the constraints of the description; a constraint without a row has zeros there."""
    subject.require_digits()
    system, model = subject.equations.system, subject.equations.model
    if not model.constraints:
        raise NotApplicableError("the model has no constraints")
    rows = {(row.kind, row.label): row.J for row in subject.equations.constraints.rows}
    for kind, expression in [(level, x) for level in _ARGUMENTS for x in model.constraints_on(level)]:
        (residual,) = system.settled([system.lower(expression)])
        J = rows.get((kind, str(expression)), [system.graph.zero] * subject.n_u)
        for state in subject.states:
            actual, terms = _differences(subject, state, kind, residual)
            worst.compare(f"the row of {expression}", state, subject.evaluate(J, state), actual, terms)
    return "J against differences of the constraints that the description lists"


def _differences(subject: Subject, state: State, kind: str, residual: Node) -> tuple[Numbers, Numbers]:
    """A row of J by central differences, and the sums of the magnitudes of its terms."""
    array = subject.values(state)[_ARGUMENTS[kind]]
    slopes = []
    for k in range(len(array)):
        change = numbers(STEP if i == k else 0 for i in range(len(array)))
        ahead, behind = (
            subject.evaluate([residual], state, **{_ARGUMENTS[kind]: array + sign * change})[0] for sign in (1, -1)
        )
        slopes.append((ahead - behind) / (2 * STEP))
    gradient = numbers(slopes)
    if kind != POSITION:
        return gradient, abs(gradient)
    C = _matrix(subject, state, subject.equations.system.C)
    return gradient @ C, abs(gradient) @ abs(C)


def _matrix(subject: Subject, state: State, rows: Sequence[Sequence[Node]]) -> Numbers:
    values = subject.evaluate([node for row in rows for node in row], state)
    return np.reshape(values, (len(rows), -1))
