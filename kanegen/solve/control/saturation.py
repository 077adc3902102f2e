"""The controls of a run, and the intervals in which they were at their limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kanegen.arrays import Array

_BISECTIONS = 40
"""Number of bisections of an interval between two points of a run; they reduce its length by 1e-12."""


@dataclass(frozen=True)
class Saturation:
    """A control at a limit: ``control``, its name, from ``t_start`` to ``t_end`` (s) at ``limit``, in its unit."""

    control: str
    t_start: float
    t_end: float
    limit: float

    @property
    def duration(self) -> float:
        """Length of the interval, s."""
        return abs(self.t_end - self.t_start)


@dataclass(frozen=True, eq=False)
class ControlHistory:
    """The controls of a run in which the control law of the model gives them.

    Attributes
    ----------
    values
        Controls (n_t, n_tau) that act from each stored time on; with control constraints also those rates of controls
        that are part of the state.
    names
        Their names, n_tau.
    errors
        Residuals at the stored times, (n_t, n_e), each in its unit: psi and psi' of servo-constraints; control
        constraints and their derivatives, as far as these contain known quantities only. None without constraints, and
        where the function that gives the residuals was not built.
    constraints
        Names of the columns of ``errors``.
    saturation
        Intervals in which a control was at a limit.
    warnings
        Sentences that say what the limits prevented.
    """

    values: Array
    names: tuple[str, ...]
    errors: Array | None
    constraints: tuple[str, ...]
    saturation: tuple[Saturation, ...] = ()
    warnings: tuple[str, ...] = ()


def held_saturations(
    names: Sequence[str], times: Array, controls: Array, end: float, limits: Array
) -> list[Saturation]:
    """Intervals of controls (n, n_tau) that are held from each of ``times`` (n,) to the next, the last one to ``end``.

    ``limits``: lowest and highest values, (2, n_tau).
    """
    ends = np.append(times[1:], end)
    return [
        Saturation(names[k], float(times[first]), float(ends[last]), limit)
        for k, limit, first, last in _runs(controls, limits)
        if ends[last] != times[first]
    ]


def continuous_saturations(
    names: Sequence[str], times: Array, controls: Array, limits: Array, controls_at: Callable[[float], Array] | None
) -> list[Saturation]:
    """Intervals of controls (n, n_tau) known at ``times`` (n,), their ends found by bisection with ``controls_at``.

    Intervals between two of the times are missed; without ``controls_at`` ends are among the times.
    """
    saturation = []
    for k, limit, first, last in _runs(controls, limits):
        ends = [float(times[first]), float(times[last])]
        for which, neighbor in ((0, first - 1), (1, last + 1)):
            if controls_at is not None and 0 <= neighbor < len(times):
                ends[which] = _boundary(ends[which], float(times[neighbor]), k, limit, controls_at)
        saturation.append(Saturation(names[k], ends[0], ends[1], limit))
    return saturation


def _runs(controls: Array, limits: Array) -> Iterator[tuple[int, float, int, int]]:
    """(control, limit, first, last) of every stretch of points at a limit, in order of time."""
    stretches = []
    for k in range(controls.shape[1]):
        for limit in limits[:, k]:
            inside = np.concatenate([[False], controls[:, k] == limit, [False]])
            edges = np.flatnonzero(inside[1:] != inside[:-1])
            stretches += [(k, float(limit), int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    return iter(sorted(stretches, key=lambda run: run[2]))


def _boundary(inside: float, outside: float, k: int, limit: float, controls_at: Callable[[float], Array]) -> float:
    for _ in range(_BISECTIONS):
        middle = 0.5 * (inside + outside)
        if controls_at(middle)[k] == limit:
            inside = middle
        else:
            outside = middle
    return inside


def warnings_of(
    saturation: Sequence[Saturation], times: Array, errors: Array | None, labels: Sequence[str]
) -> tuple[str, ...]:
    """Sentences on saturated controls, and on targets that cannot be reached within the limits.

    ``errors`` (n_t, n_e): servo-errors at the stored ``times`` (n_t,), ``labels`` their names.
    """
    warnings = []
    for name in dict.fromkeys(item.control for item in saturation):
        own = [item for item in saturation if item.control == name]
        total = sum(item.duration for item in own)
        warnings.append(
            f"control {name} was at a limit for {total:.4g} s in {len(own)} interval(s) "
            "(solution.control.saturation): the servo-constraints were not enforced there"
        )
    last = [item for item in saturation if times.size and item.t_end == times[-1]]
    if last and errors is not None:
        names = " and ".join(dict.fromkeys(item.control for item in last))
        left = ", ".join(f"{label} = {error:.4g}" for label, error in zip(labels, errors[-1], strict=True))
        warnings.append(
            f"the target was not reached: {names} stayed at the limit to the end of the run, which leaves {left}; "
            "raise the limits, or ask for slower servo-constraints"
        )
    return tuple(warnings)
