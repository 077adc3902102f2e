"""Whether controls can enforce servo-constraints at all: ranks at random consistent states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kanegen.derivation.control.manifold import State, consistent_states
from kanegen.graph import Node, evaluate

if TYPE_CHECKING:
    from kanegen.derivation.control.servo import ServoEquations
    from kanegen.derivation.equations import Equations

Array = NDArray[np.float64]

RANK_TOLERANCE = 1e-9
"""Relative to the largest singular value of rows scaled to one: far above rounding, far below generic values."""


def servo_problems(equations: Equations, found: ServoEquations) -> list[str]:
    """Servo-constraints that nothing, or no control, can enforce, and controls that move nothing."""
    states = [_Directions(equations, found, state) for state in consistent_states(equations)]
    # Where nothing can move, or no consistent state was found, nothing is known before run time.
    states = [state for state in states if state.n_i]
    if not states:
        return []
    return [*_fixed(found, states), *_unreached(found, states)] or [*_too_many(found, states), *_idle(found, states)]


class _Directions:
    """Servo rows ``c`` (n_s, n_i) and controls ``g`` (n_i, n_tau) in the motions the passive constraints leave free."""

    def __init__(self, equations: Equations, found: ServoEquations, state: State) -> None:
        J = _unit_rows(_values(equations, [row.J for row in equations.constraints.rows], state))
        Q = _values(equations, equations.mass_matrix, state)
        servo, columns = _values(equations, found.J, state), _values(equations, found.controls.columns, state)
        self.n_i = 0
        if not all(np.isfinite(matrix).all() for matrix in (J, Q, servo, columns)):
            return
        _, sizes, V = np.linalg.svd(J)
        free = V[np.count_nonzero(sizes > RANK_TOLERANCE) :].T
        self.n_i = free.shape[1]
        self.own = np.linalg.norm(servo, axis=1)
        self.c = servo @ free
        self.g = free.T @ columns.T
        accelerations = np.linalg.lstsq(free.T @ Q @ free, self.g, rcond=None)[0] if self.n_i else self.g
        self.S = self.c @ accelerations
        self.reach = float(np.linalg.norm(accelerations))


def _values(equations: Equations, rows: Sequence[Sequence[Node]], state: State) -> Array:
    values = evaluate([node for row in rows for node in row], state)
    return np.array(values, dtype=np.float64).reshape(len(rows), len(equations.system.u))


def _unit_rows(matrix: Array) -> Array:
    sizes = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(sizes > 0.0, sizes, 1.0)


def _rank(matrix: Array) -> int:
    return int(np.linalg.matrix_rank(_unit_rows(matrix), tol=RANK_TOLERANCE)) if matrix.size else 0


def _fixed(found: ServoEquations, states: Sequence[_Directions]) -> list[str]:
    """Constraints whose rate the passive constraints alone determine."""
    problems = []
    for k, psi in enumerate(found.servo.constraints):
        if all(np.linalg.norm(state.c[k]) <= RANK_TOLERANCE * state.own[k] for state in states):
            without = (
                "binds no speed"
                if not any(state.own[k] for state in states)
                else ("is fixed by the passive constraints, which repeat or contradict it")
            )
            problems.append(f"the servo-constraint {psi} {without}: no control can change it; remove it")
    return problems


def _unreached(found: ServoEquations, states: Sequence[_Directions]) -> list[str]:
    problems = []
    for k, psi in enumerate(found.servo.constraints):
        moved = any(np.linalg.norm(state.c[k]) > RANK_TOLERANCE * state.own[k] for state in states)
        limits = [RANK_TOLERANCE * np.linalg.norm(state.c[k]) * state.reach for state in states]
        if moved and all(np.linalg.norm(s.S[k]) <= limit for s, limit in zip(states, limits, strict=True)):
            names = ", ".join(found.controls.names)
            order = "second" if found.servo.holonomic(k) else "first"
            problems.append(
                f"the servo-constraint {psi} cannot be enforced: its {order} time derivative does not contain the "
                f"controls {names}; take an expression that they act on directly, or other controls"
            )
    return problems


def _too_many(found: ServoEquations, states: Sequence[_Directions]) -> list[str]:
    n_s, n_i = len(found.servo.constraints), max(state.n_i for state in states)
    listed = ", ".join(map(str, found.servo.constraints))
    if n_s > n_i:
        return [
            f"{n_s} servo-constraints ({listed}) on a motion with {n_i} degree(s) of freedom of its speeds: at most "
            "that many can be enforced; drop some"
        ]
    if all(_rank(state.c) < n_s for state in states):
        return [f"the servo-constraints {listed} depend on each other: they repeat or contradict each other; drop some"]
    if all(_rank(state.S) < n_s for state in states):
        return [
            f"the servo-constraints {listed} cannot be enforced together by the controls "
            f"{', '.join(found.controls.names)}: S of S tau = z has dependent rows; add controls or drop constraints"
        ]
    return []


def _idle(found: ServoEquations, states: Sequence[_Directions]) -> list[str]:
    """Controls that work against the passive constraints only."""
    problems = []
    for j, name in enumerate(found.controls.names):
        if all(np.linalg.norm(state.g[:, j]) <= RANK_TOLERANCE * np.linalg.norm(state.g) for state in states):
            problems.append(
                f"the control {name} moves nothing: the passive constraints take up its whole force; leave it out of "
                "controls="
            )
    return problems
