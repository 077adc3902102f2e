"""Multiple shooting: a long or chaotic motion is first fitted in parts, whose starts are drawn together.

The cost of a whole chaotic motion has many minima: errors of the guess grow exponentially. Parts that begin near the
data do not leave them, and the gaps between them close as the parameters improve (Bock 1983).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.identification.data import Record
from kanegen.identification.residuals import Estimation, Motion, state_arguments
from kanegen.identification.unknowns import Start, Unknown, array
from kanegen.identification.weighting import Weighting
from kanegen.solve.gradients.directions import Kind

_GAPS: Final = (1e-2, 1e-4, 1e-6)
"""Gaps that count as a residual of 1, relative to the extent of a variable, in fits one after the other."""


@dataclass(frozen=True, eq=False)
class Segmented(Estimation):
    """An estimation whose records are parts of motions, and whose restraints are the priors and the gaps.

    ``followers``: the parts that continue the part before them. ``sizes`` (n_y,): gaps that count as 1.
    """

    followers: tuple[int, ...]
    sizes: Array

    def restraints(self, x: Array, motions: Any) -> tuple[Array, Array]:
        """The residuals (m,) of the priors and of the gaps, and their Jacobian (m, n_x)."""
        priors = super().restraints(x, motions)
        parts = [priors, *(self._gap(k, x, motions[k - 1]) for k in self.followers)]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def _gap(self, k: int, x: Array, before: Motion) -> tuple[Array, Array]:
        """The gap between the end of the part before part ``k`` and its start."""
        solution = before.solution
        end = np.concatenate([solution.q[-1], solution.u[-1], solution.s[-1]])
        starts = [i for i, unknown in enumerate(self.unknowns) if unknown.experiment == k]
        jacobian = np.zeros((end.size, len(self.unknowns)))
        jacobian[:, self.own(k - 1)] = solution.sensitivities.matrix[-1]
        jacobian[:, starts] -= np.eye(end.size)
        return (end - x[starts]) / self.sizes, jacobian / self.sizes[:, None]

    @property
    def n_restraints(self) -> int:
        """The number of priors and of components of gaps."""
        return super().n_restraints + len(self.followers) * self.sizes.size


def in_parts(estimation: Estimation, count: int, minimum: Callable[[Estimation], Array]) -> Estimation:
    """The estimation in ``count`` parts of each motion, with values that fits with wider gaps gave; or itself for one.

    ``minimum``: the values (n_x,) of the least cost. Raises `SolveError`.
    """
    if count == 1:
        return estimation
    if estimation.solver.description.constraints.levels:
        raise SolveError("segments= is available for models without constraints, whose start values are independent")
    for record in estimation.records:
        if record.times.size < 2 * count:
            raise SolveError(
                f"segments={count} is too large for {record.times.size} samples: at least two for each part"
            )
    parts = _segmented(estimation, count, minimum)
    extent = parts.sizes
    for gap, following in pairwise(_GAPS):
        parts = _with_values(replace(parts, sizes=gap * extent), minimum)
        parts = replace(parts, sizes=following * extent)
    return parts


def _with_values(estimation: Segmented, minimum: Callable[[Estimation], Array]) -> Segmented:
    """The estimation with the values of the least cost."""
    pairs = zip(estimation.unknowns, minimum(estimation).tolist(), strict=True)
    return replace(estimation, unknowns=tuple(replace(unknown, value=value) for unknown, value in pairs))


def _segmented(estimation: Estimation, count: int, minimum: Callable[[Estimation], Array]) -> Segmented:
    """The estimation in parts; the unknowns of the whole motions come first. Its sizes are those of the variables."""
    names = estimation.solver.description.components
    records: list[Record] = []
    starts: list[Start] = []
    followers: list[int] = []
    guesses: list[Array] = []
    for k, record in enumerate(estimation.records):
        cuts = np.linspace(0, record.times.size, count + 1).round().astype(int).tolist()
        parts = [_part(record, first, end) for first, end in pairwise(cuts)]
        followers += range(len(records) + 1, len(records) + count)
        records += parts
        starts += [estimation.starts[k], *([Start({}, estimation.starts[k].r)] * (count - 1))]
        guesses += _guesses(estimation, k, parts, minimum)
    known = [
        each if each.experiment is None else replace(each, experiment=each.experiment * count)
        for each in estimation.unknowns
    ]
    extent = np.abs(np.array(guesses)).max(axis=0)
    extent[extent == 0.0] = 1.0
    for k, guess in zip(followers, guesses, strict=True):
        values = zip(names, guess.tolist(), extent.tolist(), strict=True)
        known += [Unknown(name, Kind.START, k, f"{name} of part {k}", x, scale=size) for name, x, size in values]
    return Segmented(
        estimation.solver,
        tuple(records),
        tuple(starts),
        tuple(known),
        estimation.options,
        tuple(followers),
        extent,
    )


def _part(record: Record, first: int, end: int) -> Record:
    """The samples from ``first`` to ``end`` - 1; the part begins where the one before it ends."""
    t0 = record.t0 if first == 0 else float(record.times[first - 1])
    weighting: Weighting = record.weighting.rows(first, end)
    return Record(t0, record.times[first:end], record.columns, record.values[first:end], weighting)


def _guesses(
    estimation: Estimation, k: int, parts: list[Record], minimum: Callable[[Estimation], Array]
) -> list[Array]:
    """The states (n_y,) with which the parts after the first one begin, as the data of each part alone tell them.

    The estimation of one begins at the end of the part before, with measured values where there are any.
    """
    x, solver, names = array(estimation.unknowns, "value"), estimation.solver, estimation.solver.description.components
    given: Any = estimation.start_values(k, x)
    start, guesses = Start({}, estimation.inputs(k, x)), []
    for part, following in pairwise(parts):
        span = part.t0, part.t1
        solution = solver.integrate(span, r=start.r, **state_arguments(solver, given), **estimation.options)
        state = np.concatenate([np.ravel(value) for value in solution.last[1:]])
        for column, value in zip(part.columns, part.values[-1].tolist(), strict=True):
            if column.name in names and np.isfinite(value):
                state[names.index(column.name)] = value
        pairs = zip(names, state.tolist(), strict=True)
        unknowns = tuple(Unknown(name, Kind.START, 0, name, y, scale=abs(y) or 1.0) for name, y in pairs)
        if following.known.any():
            state = minimum(Estimation(solver, (following,), (start,), unknowns, estimation.options))
        guesses.append(state)
        given = dict(zip(names, state.tolist(), strict=True))
    return guesses
