"""What the stages before an animation know about a motion: its states at any time, events, and names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kanegen.arrays import Array
from kanegen.model.description import SystemDescription

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
    the integration. ``state(times)`` returns arrays q (n, n_q), u (n, n_u) and r (n, n_r), the inputs followed by the
    multipliers of contacts, free controls and states. ``parameters`` are in the order of the model. ``wrenches`` are
    forces and torques of reactions in the frames of these, (n, 3) each, by name. ``accelerations`` u' (n, n_u) at
    ``times``, None if they are not known.
    """

    label: str
    model: SystemDescription
    parameters: Array
    times: Array
    nodes: Array
    state: Callable[[Array], tuple[Array, Array, Array]]
    marks: tuple[Mark, ...] = ()
    wrenches: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    accelerations: Array | None = None

    def rows(self, times: Array) -> Rows:
        """The values of all input arrays of the graph at ``times``."""
        q, u, r = self.state(times)
        udot = [np.full(1, np.nan)] * len(self.model.speeds)
        if self.accelerations is not None and np.array_equal(times, self.times):
            udot = list(self.accelerations.T)
        return {
            "t": [times],
            "q": list(q.T),
            "u": list(u.T),
            **self.model.input_layout.split(list(r.T)),
            "p": [np.array([value]) for value in self.parameters],
            "aux": [np.zeros(1)] * len(self.model.auxiliary_speeds),
            "udot": udot,
        }
