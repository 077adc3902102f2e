"""Random states that satisfy the passive constraints, for decisions about ranks: found by numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kanegen.graph import Node, evaluate, gradient

if TYPE_CHECKING:
    from kanegen.derive.equations import Equations

State = Mapping[str, Sequence[float]]

_ITERATIONS = 50

_CONVERGED = 1e-12
"""Residuals relative to 1: the coordinates of random states are of that size."""


def consistent_states(equations: Equations) -> list[State]:
    """The random states of the system, moved to the manifold by Gauss and Newton; those that arrive there.

    With the model's values of parameters: random lengths may admit no position.
    """
    known = [equations.model.parameters[symbol] for symbol in equations.model.parameters]
    levels = (("q", equations.positions.nodes), ("u", equations.velocities.nodes))
    found = []
    for state in equations.system.states:
        parameters = [guess if value is None else value for guess, value in zip(state["p"], known, strict=True)]
        moved: State | None = {**state, "p": parameters}
        for array, residuals in levels:
            moved = None if moved is None else _corrected(equations, moved, array, residuals)
        if moved is not None:
            found.append(moved)
    return found


def _corrected(equations: Equations, state: State, array: str, residuals: Sequence[Node]) -> State | None:
    """The state with the coordinates (``q``) or speeds (``u``) nearest to it at which the residuals vanish."""
    system = equations.system
    variables = system.q if array == "q" else system.u
    slopes = [entry for residual in residuals for entry in gradient([residual], [system.graph.one], variables)]
    x = np.array(state[array], dtype=np.float64)
    for _ in range(_ITERATIONS):
        here = {**state, array: x.tolist()}
        left = np.array(evaluate(residuals, here))
        if np.abs(left).max(initial=0.0) <= _CONVERGED:
            return here
        rows = np.array(evaluate(slopes, here)).reshape(len(residuals), len(variables))
        if not (np.isfinite(left).all() and np.isfinite(rows).all()):
            return None
        x = x - np.linalg.lstsq(rows, left, rcond=None)[0]
    return None
