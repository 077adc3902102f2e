"""Whether controls can enforce servo-constraints at all: ranks at random consistent states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kanegen.arrays import Array
from kanegen.derivation.control.affine import AffineControls
from kanegen.derivation.equations import Equations
from kanegen.graph import Newton, Node, evaluate
from kanegen.graph.ranks import RANK_TOLERANCE, rank, unit_rows
from kanegen.model.control import Servo

Matrix = Sequence[Sequence[Node]]
State = Mapping[str, Sequence[float]]


def servo_problems(equations: Equations, servo: Servo, controls: AffineControls, J: Matrix) -> list[str]:
    """Servo-constraints that nothing, or no control, can enforce, and controls that move nothing."""
    states = [_Directions(equations, J, controls, state) for state in _consistent_states(equations)]
    # Where nothing can move, or no consistent state was found, nothing is known before run time.
    states = [state for state in states if state.n_i]
    if not states:
        return []
    names = controls.names
    unreachable = [*_fixed(servo, states), *_unreached(servo, names, states)]
    return unreachable or [*_too_many(servo, names, states), *_idle(names, states)]


def _consistent_states(equations: Equations) -> list[State]:
    """The random states of the system, moved to the manifold by Gauss and Newton; those that arrive there.

    With the model's values of parameters: random lengths may admit no position.
    """
    known = list(equations.model.parameters.values())
    system = equations.system
    solvers = (Newton(equations.positions.nodes, system.q), Newton(equations.velocities.nodes, system.u))
    consistent = []
    for state in system.states:
        parameters = [guess if value is None else value for guess, value in zip(state["p"], known, strict=True)]
        moved: State | None = {**state, "p": parameters}
        for solver in solvers:
            moved = None if moved is None else solver.solve(moved)
        if moved is not None:
            consistent.append(moved)
    return consistent


class _Directions:
    """Servo rows ``c`` (n_s, n_i) and controls ``g`` (n_i, n_tau) in the motions the passive constraints leave free."""

    def __init__(self, equations: Equations, J: Matrix, controls: AffineControls, state: State) -> None:
        passive = unit_rows(_values(equations, [row.J for row in equations.constraints.rows], state))
        Q = _values(equations, equations.mass_matrix, state)
        servo, columns = _values(equations, J, state), _values(equations, controls.columns, state)
        self.n_i = 0
        if not all(np.isfinite(matrix).all() for matrix in (passive, Q, servo, columns)):
            return
        _, sizes, V = np.linalg.svd(passive)
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


def _fixed(servo: Servo, states: Sequence[_Directions]) -> list[str]:
    """Constraints whose rate the passive constraints alone determine."""
    problems = []
    for k, psi in enumerate(servo.constraints):
        if all(np.linalg.norm(state.c[k]) <= RANK_TOLERANCE * state.own[k] for state in states):
            without = (
                "binds no speed"
                if not any(state.own[k] for state in states)
                else ("is fixed by the passive constraints, which repeat or contradict it")
            )
            problems.append(f"the servo-constraint {psi} {without}: no control can change it; remove it")
    return problems


def _unreached(servo: Servo, names: Sequence[str], states: Sequence[_Directions]) -> list[str]:
    problems = []
    for k, psi in enumerate(servo.constraints):
        moved = any(np.linalg.norm(state.c[k]) > RANK_TOLERANCE * state.own[k] for state in states)
        limits = [RANK_TOLERANCE * np.linalg.norm(state.c[k]) * state.reach for state in states]
        if moved and all(np.linalg.norm(s.S[k]) <= limit for s, limit in zip(states, limits, strict=True)):
            order = "second" if servo.holonomic(k) else "first"
            problems.append(
                f"the servo-constraint {psi} cannot be enforced: its {order} time derivative does not contain the "
                f"controls {', '.join(names)}; take an expression that they act on directly, or other controls"
            )
    return problems


def _too_many(servo: Servo, names: Sequence[str], states: Sequence[_Directions]) -> list[str]:
    n_s, n_i = len(servo.constraints), max(state.n_i for state in states)
    listed = ", ".join(map(str, servo.constraints))
    if n_s > n_i:
        return [
            f"{n_s} servo-constraints ({listed}) on a motion with {n_i} degree(s) of freedom of its speeds: at most "
            "that many can be enforced; drop some"
        ]
    if all(rank(state.c) < n_s for state in states):
        return [f"the servo-constraints {listed} depend on each other: they repeat or contradict each other; drop some"]
    if all(rank(state.S) < n_s for state in states):
        return [
            f"the servo-constraints {listed} cannot be enforced together by the controls "
            f"{', '.join(names)}: S of S tau = z has dependent rows; add controls or drop constraints"
        ]
    return []


def _idle(names: Sequence[str], states: Sequence[_Directions]) -> list[str]:
    """Controls that work against the passive constraints only."""
    problems = []
    for j, name in enumerate(names):
        if all(np.linalg.norm(state.g[:, j]) <= RANK_TOLERANCE * np.linalg.norm(state.g) for state in states):
            problems.append(
                f"the control {name} moves nothing: the passive constraints take up its whole force; leave it out of "
                "controls="
            )
    return problems
