"""Which arguments of a run are the entries of an array z, for programs that differentiate with respect to z."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError, brief
from kanegen.solve import Solver
from kanegen.solve.gradients.directions import Direction, Kind, read_directions
from kanegen.solve.values import by_name


class Varied:
    """What varies in motions of a solver, and the arguments of `integrate` for its values.

    ``names`` (n_z) of the entries of z, ``times`` (n_t,) at which states are wanted, and the ``shape`` (n_t, n_y) of
    these. ``given``: q0, u0, s0 and r, values by name of what does not vary.

    Raises
    ------
    SolveError
        For unknown names, and for wrong times.
    """

    def __init__(self, solver: Solver, times: Any, varied: Any, given: Mapping[str, Any]) -> None:
        d = solver.description
        self.solver = solver
        self.times: Array = np.array(times, dtype=np.float64)
        if self.times.ndim != 1 or self.times.size < 2:
            raise SolveError(f"times is {brief(times)}; expected at least two times (n_t,)")
        self.span = float(self.times[0]), float(self.times[-1])
        self._directions: tuple[Direction, ...] = read_directions(d, varied, "with_respect_to")
        self.names = tuple(direction.name for direction in self._directions)
        known = {"q0": d.coordinates, "u0": d.speeds, "s0": d.states, "r": d.inputs}
        self._given = {key: by_name(given[key] or {}, names, "value") for key, names in known.items()}
        self._groups = {name: key for key, names in known.items() for name in names}
        self.n_z, self.shape = len(self.names), (self.times.size, len(d.components))

    def arguments(self, z: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The parameters by name, and q0, u0, s0 and r, for numbers, or for arrays (N,) of N motions."""
        arguments: dict[str, dict[str, Any]] = {key: dict(values) for key, values in self._given.items()}
        parameters: dict[str, Any] = {}
        for direction, value in zip(self._directions, z, strict=True):
            of_solver = direction.kind is Kind.PARAMETER
            target = parameters if of_solver else arguments[self._groups[direction.name]]
            target[direction.name] = value
        return parameters, {key: values or None for key, values in arguments.items()}
