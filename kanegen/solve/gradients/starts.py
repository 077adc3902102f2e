"""How the start of a motion moves with what varies: constraints complete it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.gradients.directions import Direction, Kind, unit_columns

_DEPENDENT: Final = 1e-9
"""Singular values below this fraction of the largest count as zero."""

_UNSATISFIED: Final = 1e-7
"""A start value is dependent if a larger fraction of its change remains in the constraints."""

_ROUNDING: Final = 1e-12
"""What remains in one constraint of the terms of all, by rounding; a few thousand roundings."""


def start_changes(
    functions: CompiledFunctions,
    directions: Sequence[Direction],
    held: Collection[str],
    residual_changes: Callable[[Array, Array | None, Array | None], Array],
    n_p: int,
    of_r: Array,
) -> Array:
    """The changes (n_y, k) of the start along the directions.

    The start values that are ``held`` by name, and those that vary, do not move with other directions; the remaining
    coordinates and speeds move as little as the constraints and the closed contacts demand. ``residual_changes(dy, dr,
    dp)``: the changes (n_c,) of their residuals, the first ``n_p`` of which are of positions; with rows dy (k, n_y)
    those (k, n_c) along k directions. ``of_r`` (n_r, k): the changes of the inputs. Raises `SolveError` for a start
    value that others determine.
    """
    d = functions.description
    state = (*d.coordinates, *d.speeds, *d.states)
    changes = unit_columns(directions, Kind.START, len(state))
    if not (d.constraints.levels or d.contacts.rows):
        return changes
    of_state = residual_changes(np.eye(len(state)), None, None).T
    if not of_state.size:
        return changes
    of_p = unit_columns(directions, Kind.PARAMETER, len(d.parameters))
    varied = {direction.name for direction in directions if direction.kind is Kind.START}
    n_moving = len(d.coordinates) + len(d.speeds)
    free = [k for k, name in enumerate(state[:n_moving]) if name not in varied and name not in held]
    jacobian = of_state[:, free]
    solve = _least(jacobian, free, len(d.coordinates), n_p)
    for k, direction in enumerate(directions):
        left = of_state @ changes[:, k]
        if direction.kind is not Kind.START:
            left = residual_changes(changes[:, k], of_r[:, k], of_p[:, k])
        if not left.any():
            continue
        moved = -solve @ left
        if not _satisfied(jacobian, left, moved, n_p):
            raise SolveError(_determined(d, direction, varied, held))
        changes[free, k] = moved
    return changes


def _satisfied(jacobian: Array, left: Array, moved: Array, n_p: int) -> bool:
    """Whether the changes ``moved`` take away the changes ``left`` of the residuals, ``n_p`` of them of positions.

    Each row is judged by its own terms, whatever its unit, but rounding errors come with the terms of all rows of a
    level: a row that should not move at all moves with the roundings of the others.
    """
    rest = np.abs(left + jacobian @ moved)
    terms = np.abs(left) + np.abs(jacobian) @ np.abs(moved)
    sizes = np.linalg.norm(jacobian, axis=1)
    for level in (slice(0, n_p), slice(n_p, None)):
        relative = np.divide(terms[level], sizes[level], out=np.zeros_like(terms[level]), where=sizes[level] > 0.0)
        rounding = _ROUNDING * sizes[level] * max(relative, default=0.0)
        if (rest[level] > np.maximum(_UNSATISFIED * terms[level], rounding)).any():
            return False
    return True


def _least(jacobian: Array, free: Sequence[int], n_q: int, n_p: int) -> Array:
    """The matrix of the least changes of the free coordinates, then of the free speeds, for given residuals.

    The speeds do not move the positions, so that both levels are solved one after the other.
    """
    n_q = sum(k < n_q for k in free)
    inverse = np.zeros(jacobian.T.shape)
    of_q, of_u = _inverse(jacobian[:n_p, :n_q]), _inverse(jacobian[n_p:, n_q:])
    inverse[:n_q, :n_p] = of_q
    inverse[n_q:, n_p:] = of_u
    inverse[n_q:, :n_p] = -of_u @ jacobian[n_p:, :n_q] @ of_q
    return inverse


def _inverse(matrix: Array) -> Array:
    """The generalized inverse; rows are compared by their directions, whatever their units."""
    if not matrix.size:
        return np.zeros(matrix.T.shape)
    sizes = np.linalg.norm(matrix, axis=1)
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    return np.asarray(np.linalg.pinv(matrix / sizes[:, None], rcond=_DEPENDENT) / sizes)


def _determined(d: Description, direction: Direction, varied: Collection[str], held: Collection[str]) -> str:
    others = [name for name in (*d.coordinates, *d.speeds) if name in {*varied, *held} and name != direction.name]
    because = f" together with {', '.join(others)}" if others else ""
    subject = "the start value of" if direction.kind is Kind.START else f"the {direction.kind.value}"
    return (
        f"{subject} {direction.name} cannot vary: the constraints determine it{because}; vary independent start "
        "values, and give the others in a mapping, q0={name: value}, without those that the constraints determine"
    )
