"""What the stages before an animation know about a motion: its states at any time, events, and names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.model.description import SystemDescription
from kanegen.model.inputs import FORCES, FREE

Rows = dict[str, Sequence[Array]]
"""Values of the input arrays of a graph at n times: ``rows["q"][0]`` (n,) holds the first coordinate."""


@dataclass(frozen=True)
class Mark:
    """An event on the time line: time in s, name, kind."""

    t: float
    name: str
    kind: str


@dataclass(frozen=True, eq=False)
class Motion:
    """One motion of a model.

    ``times`` (n,) are those of the pictures, ``nodes`` (m,) those between which velocities are integrated: the steps of
    the integration. ``state(times)`` returns a `Point` with a row for each time. ``parameters`` are in the order of the
    model. ``wrenches`` are forces and torques of reactions in the frames of these, (n, 3) each, by name.
    ``accelerations`` u' (n, n_u) at ``times``, None if they are not known.
    """

    label: str
    model: SystemDescription
    parameters: Array
    times: Array
    nodes: Array
    state: Callable[[Array], Point]
    marks: tuple[Mark, ...] = ()
    wrenches: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    accelerations: Array | None = None

    def rows(self, times: Array) -> Rows:
        """The values of all input arrays of the graph at ``times``."""
        model, at = self.model, self.state(times)
        sizes = {"r": len(model.inputs), "s": len(model.states), FREE: len(model.free_controls)}
        sizes |= {"q": len(model.coordinates), "u": len(model.speeds), FORCES: len(model.contact_rows)}
        udot = [np.full(1, np.nan)] * len(self.model.speeds)
        if self.accelerations is not None and np.array_equal(times, self.times):
            udot = list(self.accelerations.T)
        return {
            "t": [times],
            **{name: _columns(getattr(at, name), size) for name, size in sizes.items()},
            "p": [np.array([value]) for value in self.parameters],
            "aux": [np.zeros(1)] * len(self.model.auxiliary_speeds),
            "udot": udot,
        }


def _columns(values: Array | None, size: int) -> list[Array]:
    """The columns of an argument (n,) or (N, n); zeros for one that was left out."""
    return [np.zeros(1)] * size if values is None else list(np.atleast_2d(values).T)
