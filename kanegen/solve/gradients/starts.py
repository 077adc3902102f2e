"""How the start of a motion moves with what varies: constraints complete it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

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
    dp)``: the changes (k, n_c) of their residuals along k directions, rows (k, n_y), (k, n_r) and (k, n_p); the first
    ``n_p`` residuals are of positions. ``of_r`` (n_r, k): the changes of the inputs. Raises `SolveError` for a start
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
    left = of_state @ changes
    others = [k for k, direction in enumerate(directions) if direction.kind is not Kind.START]
    if others:
        of_p = unit_columns([directions[k] for k in others], Kind.PARAMETER, len(d.parameters))
        left[:, others] = residual_changes(changes.T[others], of_r.T[others], of_p.T).T
    moving = np.flatnonzero(left.any(axis=0))
    if not moving.size:
        return changes
    varied = {direction.name for direction in directions if direction.kind is Kind.START}
    n_moving = len(d.coordinates) + len(d.speeds)
    fixed = varied.union(held)
    free = np.array([k for k, name in enumerate(state[:n_moving]) if name not in fixed], dtype=np.int64)
    jacobian, left = of_state[:, free], left[:, moving]
    moved = -_least(jacobian, free, len(d.coordinates), n_p) @ left
    unsatisfied = np.flatnonzero(~_satisfied(jacobian, left, moved, n_p))
    if unsatisfied.size:
        raise SolveError(_determined(d, directions[moving[unsatisfied[0]]], varied, held))
    changes[free[:, None], moving] = moved
    return changes


def _satisfied(jacobian: Array, left: Array, moved: Array, n_p: int) -> Any:
    """Whether the changes ``moved`` (n, k) take away those of the residuals, ``left`` (n_c, k): (k,) of bool.

    The first ``n_p`` residuals are of positions. Each row is judged by its own terms, whatever its unit, but rounding
    errors come with the terms of all rows of a level: a row that should not move at all moves with the roundings of the
    others.
    """
    rest = np.abs(left + jacobian @ moved)
    terms = np.abs(left) + np.abs(jacobian) @ np.abs(moved)
    sizes = np.sqrt((jacobian * jacobian).sum(axis=1))[:, None]
    relative, limits = terms / np.where(sizes > 0.0, sizes, np.inf), _UNSATISFIED * terms
    for level in (slice(0, n_p), slice(n_p, None)):
        rounding = _ROUNDING * sizes[level] * relative[level].max(axis=0, initial=0.0)
        limits[level] = np.maximum(limits[level], rounding)
    return (rest <= limits).all(axis=0)


def _least(jacobian: Array, free: NDArray[np.int64], n_q: int, n_p: int) -> Array:
    """The matrix of the least changes of the free coordinates, then of the free speeds, for given residuals.

    The speeds do not move the positions, so that both levels are solved one after the other.
    """
    n_q = int((free < n_q).sum())
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
    sizes = np.sqrt((matrix * matrix).sum(axis=1))
    sizes[sizes == 0.0] = 1.0
    left, values, right = np.linalg.svd(matrix / sizes[:, None], full_matrices=False)
    rank = int((values > _DEPENDENT * values[0]).sum())
    inverse: Array = (right[:rank].T / values[:rank]) @ left[:, :rank].T / sizes
    return inverse


def _determined(d: Description, direction: Direction, varied: Collection[str], held: Collection[str]) -> str:
    others = [name for name in (*d.coordinates, *d.speeds) if name in {*varied, *held} and name != direction.name]
    because = f" together with {', '.join(others)}" if others else ""
    subject = "the start value of" if direction.kind is Kind.START else f"the {direction.kind.value}"
    return (
        f"{subject} {direction.name} cannot vary: the constraints determine it{because}; vary independent start "
        "values, and give the others in a mapping, q0={name: value}, without those that the constraints determine"
    )
