"""Meshes on which a motion is as accurate as requested."""

from __future__ import annotations

import numpy as np

from kanegen.arrays import Array
from kanegen.control.trajectory import Trajectory

_MOST_PARTS = 4
_AT_BOUND = 1e-3
"""An input is at a bound if its distance is below this fraction of the distance of the bounds."""


def refined(motion: Trajectory, errors: Array, tolerance: float) -> Array | None:
    """A mesh from 0 to 1 for a smaller error; None if the motion is as accurate as requested.

    Intervals with larger ``errors`` (N,) than the tolerance are divided, into as many parts as the order of the scheme
    requires. In an interval in which an input reaches or leaves a bound, the cost has an error that is proportional to
    the square of its length, which a replay with the same inputs does not show: it is divided until it is shorter than
    the root of the tolerance.
    """
    mesh = motion.layout.mesh
    order = motion.layout.statement.scheme.order + 1
    with np.errstate(over="ignore", invalid="ignore"):
        parts = np.ceil((errors / (0.3 * tolerance)) ** (1.0 / order))
    parts = np.where(errors > tolerance, np.clip(np.nan_to_num(parts, posinf=_MOST_PARTS), 2, _MOST_PARTS), 1)
    lengths, shortest = np.diff(mesh), np.sqrt(tolerance)
    switching = _switching(motion) & (lengths > shortest)
    parts = np.where(switching, np.maximum(parts, np.clip(np.ceil(lengths / shortest), 2, _MOST_PARTS)), parts)
    if (parts == 1).all():
        return None
    parts = _limited(parts.astype(int), np.where(switching, np.inf, errors))
    pieces = [np.linspace(a, b, int(n) + 1)[:-1] for a, b, n in zip(mesh[:-1], mesh[1:], parts, strict=True)]
    return np.append(np.concatenate(pieces), 1.0)


def _limited(parts: Array, errors: Array) -> Array:
    """At most twice as many intervals as before, those of the largest errors first."""
    budget, kept = len(parts), np.ones_like(parts)
    for k in np.argsort(-errors, kind="stable"):
        kept[k] = min(parts[k], budget + 1)
        budget -= kept[k] - 1
    return kept


def _switching(motion: Trajectory) -> Array:
    """Whether an input is at a bound in a part of the interval only, or at both, (N,); neighbors of these too."""
    statement = motion.layout.statement
    places = motion.layout.inputs[:, list(statement.inputs)]
    values = motion.at(places)[motion.layout.stages]  # (N, s, n)
    found = np.zeros(len(values), dtype=bool)
    for k, (low, high) in enumerate(statement.input_bounds):
        width = high - low
        if not np.isfinite(width) or width == 0.0:
            continue
        level = np.where(values[:, :, k] <= low + _AT_BOUND * width, -1, 0)
        level = np.where(values[:, :, k] >= high - _AT_BOUND * width, 1, level)
        found |= (level != level[:, :1]).any(axis=1)
        jumps = np.flatnonzero(level[:-1, -1] != level[1:, 0])
        found[jumps] = found[jumps + 1] = True
    return found
