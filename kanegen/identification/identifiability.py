"""Which combinations of unknowns data determine: singular values of the scaled Jacobian, and what it cannot see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.model.records import FrozenMapping
from kanegen.solve.values import shown

_COLLINEAR: Final = 1e-7
"""Singular values of a Jacobian with columns of length 1 below this fraction of the largest come from its errors."""

_INVISIBLE: Final = 1e-10
"""Columns below this fraction of the largest are those of quantities without effect."""

_ABSENT: Final = 1e-4
"""Smaller coefficients of a combination are roundings."""


@dataclass(frozen=True, eq=False)
class Identifiability:
    """How well data determine unknowns.

    Attributes
    ----------
    names
        The unknowns, n.
    scales
        Their sizes (n,), to which relative changes refer: the magnitudes of the values.
    singular_values
        Those of the Jacobian of the weighted residuals with respect to relative changes, (n,), descending. The inverse
        of one is the standard deviation of its combination, if the residuals have the variance 1.
    combinations
        The combinations that belong to them, (n, n): rows of unit vectors of relative changes.
    unseen
        Combinations that do not change the residuals: relative changes of unknowns by name, the largest one 1.
    """

    names: tuple[str, ...]
    scales: Array
    singular_values: Array
    combinations: Array
    unseen: tuple[Mapping[str, float], ...]

    @property
    def complete(self) -> bool:
        """Whether the data determine all unknowns."""
        return not self.unseen

    @property
    def involved(self) -> tuple[str, ...]:
        """The unknowns in combinations that the data do not determine."""
        return tuple(name for name in self.names if any(name in each for each in self.unseen))

    def __repr__(self) -> str:
        text = "all determined" if self.complete else f"undetermined: {self.text}"
        return f"<Identifiability of {shown(self.names)}: {text}>"

    @property
    def text(self) -> str:
        """The combinations that the data do not determine, in words."""
        parts = []
        for each in self.unseen:
            names, changes = " : ".join(each), " : ".join(f"{value:.4g}" for value in each.values())
            parts.append(f"{names} = {changes} (relative changes)" if len(each) > 1 else names)
        return "; ".join(parts)


def identifiability(names: Sequence[str], jacobian: Array, scales: Array) -> Identifiability:
    """The identifiability of unknowns from the Jacobian (m, n) of weighted residuals."""
    # The triangular factor has the same singular values and, with few rows, is quick to take apart.
    scaled = np.zeros((len(names), len(names)))
    factor: Any = np.linalg.qr(jacobian * scales, mode="r")
    scaled[: len(factor)] = factor
    _, values, combinations = np.linalg.svd(scaled)
    basis = _null_space(scaled)
    unseen = [
        FrozenMapping({name: float(c) for name, c in zip(names, row, strict=True) if abs(c) > _ABSENT}) for row in basis
    ]
    return Identifiability(tuple(names), scales, values, combinations, tuple(unseen))


def _null_space(scaled: Array) -> Array:
    """Vectors (k, n) of relative changes without effect, each with few entries, of which the largest is 1."""
    lengths = np.linalg.norm(scaled, axis=0)
    visible = lengths > _INVISIBLE * lengths.max(initial=0.0)
    vectors = list(np.eye(len(lengths))[~visible])
    if visible.any():
        normalized = scaled[:, visible] / lengths[visible]
        _, values, right = np.linalg.svd(normalized)
        rank = int(np.count_nonzero(values > _COLLINEAR * values[0]))
        null = np.zeros((len(right) - rank, len(lengths)))
        null[:, visible] = right[rank:] / lengths[visible]
        vectors += list(_sparse(null))
    return np.array(vectors).reshape(-1, len(lengths))


def _sparse(vectors: Array) -> Array:
    """Another basis of the same space: reduced to echelon form with pivots."""
    rows = vectors / np.abs(vectors).max(axis=1, initial=0.0, keepdims=True) if len(vectors) else vectors.copy()
    free = list(range(rows.shape[1]))
    for k in range(len(rows)):
        i, j = np.unravel_index(np.abs(rows[k:, free]).argmax(), rows[k:, free].shape)
        rows[[k, k + int(i)]] = rows[[k + int(i), k]]
        pivot = free.pop(int(j))
        rows[k] /= rows[k, pivot]
        others = np.arange(len(rows)) != k
        rows[others] -= np.outer(rows[others, pivot], rows[k])
    return rows / np.abs(rows).max(axis=1, initial=0.0, keepdims=True) if len(rows) else rows


def covariance_of(known: Identifiability, jacobian: Array, square: Array | None = None) -> Array:
    """The inverse H^-1 (n, n) of the product ``H = J^T J`` of a Jacobian (m, n) of residuals of variance 1.

    With a ``square`` B (n, n) of gradients, ``H^-1 B H^-1``. Where unknowns are not determined, their variances are
    infinite and their covariances NaN.
    """
    names, n = known.names, len(known.names)
    # With one unknown of each undetermined combination kept, the variances of all others are as without it.
    kept = [_representative(each, known.unseen) for each in known.unseen]
    moving = [i for i in range(n) if names[i] not in kept]
    covariance = np.zeros((n, n))
    inverse, own = _inverse_of_square(jacobian[:, moving]), np.ix_(moving, moving)
    covariance[own] = inverse if square is None else inverse @ square[own] @ inverse
    outside = np.array([name in known.involved for name in names])
    covariance[outside, :] = covariance[:, outside] = np.nan
    covariance[outside, outside] = np.inf
    return covariance


def _representative(combination: Mapping[str, float], combinations: Sequence[Mapping[str, float]]) -> str:
    """The unknown with the largest part in a combination among those that are in no other one."""
    others = [each for each in combinations if each is not combination]
    own = {name: abs(c) for name, c in combination.items() if not any(name in each for each in others)}
    return max(own, key=own.__getitem__)


def _inverse_of_square(jacobian: Array) -> Array:
    """The inverse of ``J^T J`` without forming it; unknowns may have very different sizes."""
    lengths = np.linalg.norm(jacobian, axis=0)
    _, values, right = np.linalg.svd(jacobian / lengths, full_matrices=False)
    root = right / values[:, None] / lengths
    return np.asarray(root.T @ root)
