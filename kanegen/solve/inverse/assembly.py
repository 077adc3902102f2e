"""The motion of all coordinates along a path of as many coordinates and outputs as there are degrees of freedom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.codes import Status
from kanegen.errors import SolveError
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.inputs import RunInputs
from kanegen.solve.inverse.path import PartialPath, Path
from kanegen.solve.values import Variables, shown_values

_PIECES: Final = (4, 16, 64, 256, 1024, 4096)
"""Numbers of parts into which an interval between two times is divided, until the motion is continuous on it."""

_DEPENDENT: Final = 1e-9
"""Singular values below this fraction of the largest count as zero."""


def assembled(
    functions: CompiledFunctions, path: PartialPath, inputs: RunInputs, initial: Mapping[str, float], q0: Any
) -> Path:
    """The motion of all coordinates along the path.

    The first position is the solution of the constraints nearest to a guess: ``q0``, a mapping by name or (n_q,), then
    ``initial``, then the values of the path. Positions at further times continue it.

    Raises `SolveError` for a path of more or fewer coordinates and outputs than there are degrees of freedom, and for
    positions that are singular, that do not exist or that do not continue the motion; it names time and coordinate.
    """
    d = functions.description
    _require(functions, path)
    n_w = functions.module.FUNCTIONS.get("displacements", (0, len(d.speeds)))[1]
    if n_w < len(d.coordinates):
        _refuse_restricted(functions, path)
    labels = d.constraints
    implied = len(labels.positions) - labels.n_holonomic - (n_w - len(d.speeds))
    velocities = len(labels.velocities) if implied else labels.n_holonomic
    assembly = functions.module.Assembly(functions.prepared, path.coordinates, path.outputs, velocities, not implied)
    targets = path.at(path.times)
    own = {d.coordinates[k]: targets[0, column, 0] for column, k in enumerate(path.coordinates)}
    variables = Variables.of(d, "0")[0]
    guess = variables.array({**initial, **variables.read(q0), **own})
    mechanism = _Mechanism(functions, assembly, path, inputs)
    return Path(path.times, *mechanism.motion(targets, mechanism.first_position(targets[0], guess)))


def _require(functions: CompiledFunctions, path: PartialPath) -> None:
    """Raise `SolveError` if the functions that assemble the model do not exist or were not built."""
    d = functions.description
    for name in path.outputs:
        if name in d.no_motions:
            raise SolveError(f"a path cannot prescribe the output {name}: {d.no_motions[name]}")
        if f"motion:{name}" not in functions.module.FUNCTIONS:
            raise SolveError(
                f"the model {d.name!r} was built without the derivatives of its outputs, which a path of {name} needs: "
                'give functions="all", or a list with "output_motions", to kanegen.build'
            )
    needed = ["kinematics", *(f"motion:{name}" for name in path.outputs)]
    needed += ["position_level", "displacements"] if d.constraints.positions else []
    needed += ["velocity_level", "b"] if d.constraints.velocities else []
    functions.require(needed)


def _refuse_restricted(functions: CompiledFunctions, path: PartialPath) -> NoReturn:
    d = functions.description
    given = [d.coordinates[k] for k in path.coordinates]
    missing = [name for name in d.coordinates if name not in given]
    raise SolveError(
        f"the path gives no motion of {', '.join(missing)}, and the kinematics of {d.name!r} ({len(d.coordinates)} "
        f"coordinates, {len(d.speeds)} speeds) restrict the rates of the coordinates: give a motion of every coordinate"
    )


@dataclass(frozen=True, eq=False)
class _Mechanism:
    """A model that is assembled along a path; ``assembly``: its compiled equations."""

    functions: CompiledFunctions
    assembly: Any
    path: PartialPath
    inputs: RunInputs

    def first_position(self, target: Array, guess: Array) -> Array:
        """The position (n_q,) at the first time, with the ``target`` (n, 3) of what is prescribed."""
        d, t = self.functions.description, float(self.path.times[0])
        status, q, worst = self.assembly.place(self.inputs.compiled, t, guess, target)
        count, freedom = len(self.path.labels), self._freedom(t, guess if status < 0 else q)
        labels = ", ".join(self.path.labels)
        given = f"the path prescribes {count} ({labels}), but {d.name!r} has {freedom} degrees of freedom"
        rule = "prescribe as many coordinates and outputs as there are degrees of freedom of the configuration"
        if count > freedom:
            raise SolveError(f"{given}: {rule}, or all coordinates")
        if status == Status.SINGULAR and count < freedom:
            raise SolveError(f"{given}; for example {d.coordinates[worst]} is not determined: {rule}")
        if status == Status.INCONSISTENT:
            prescribed = shown_values(self.path.labels, target[:, 0])
            raise SolveError(
                f"no position near the guess satisfies the constraints of {d.name!r} and the path at t = {t!r} s "
                f"({prescribed}): give a nearer guess by q0=, or a path within the workspace; the last attempt was "
                f"{shown_values(d.coordinates, q)}"
            )
        if status < 0:
            self._refuse(status, worst, t, q)
        position: Array = q
        return position

    def _freedom(self, t: float, q: Array) -> int:
        """The number of coordinates that the constraints on positions leave independent."""
        d = self.functions.description
        if not d.constraints.positions:
            return len(d.coordinates)
        level: Array = self.functions.get("position_level").value(t, q, np.zeros(len(d.speeds)), self.inputs.at(t))
        rows = level[:, :-1] / np.maximum(np.linalg.norm(level[:, :-1], axis=1, keepdims=True), np.finfo(float).tiny)
        values = np.linalg.svd(rows, compute_uv=False)
        return len(d.coordinates) - int((values > _DEPENDENT * values.max(initial=0.0)).sum())

    def motion(self, targets: Array, first: Array) -> Array:
        """The motion (3, n_t, n_q) from the first position.

        An interval on which the motion is not found, or not surely continuous, is divided.
        """
        times, q, start = self.path.times, first, 0
        motion = np.empty((3, times.size, first.size))
        while True:
            status, count, worst, part = self.assembly.follow(self.inputs.compiled, times[start:], targets[start:], q)
            motion[:, start : start + count] = part[:, :count]
            start += count
            if start == times.size:
                return motion
            if count == 0:
                self._refuse(status, worst, float(times[start]), part[0, 0])
            q = self._across(float(times[start - 1]), float(times[start]), motion[0, start - 1])

    def _across(self, t: float, end: float, q: Array) -> Array:
        """The position at ``end``, continued from ``q`` at ``t`` in smaller and smaller steps."""
        for pieces in _PIECES:
            times = np.linspace(t, end, pieces + 1)
            status, count, worst, part = self.assembly.follow(self.inputs.compiled, times, self.path.at(times), q)
            if count > pieces:
                break
        else:
            self._refuse(status, worst, float(times[count]), part[0, max(count - 1, 0)])
        position: Array = part[0, -1]
        return position

    def _refuse(self, status: int, worst: int, t: float, q: Array) -> NoReturn:
        """Raise `SolveError` for a time at which the motion cannot be continued; ``q``: the last position."""
        names = self.functions.description.coordinates
        place = shown_values(names, q)
        if status == Status.SINGULAR:
            raise SolveError(
                f"the path passes a singular position at t = {t!r} s ({place}), where it does not determine the motion "
                f"of {names[worst]}: change the path so that it avoids this position, or prescribe other coordinates"
            )
        if status == Status.INCONSISTENT:
            raise SolveError(
                f"the motion cannot be continued at t = {t!r} s ({place}): {names[worst]} would jump. The path leaves "
                "the workspace there, passes a singular position, or jumps itself; change the path"
            )
        u, outputs = np.zeros(len(self.functions.description.speeds)), [f"motion:{name}" for name in self.path.outputs]
        constraints = ("kinematics", "position_level", "velocity_level", "b", *outputs)
        self.functions.require_finite(constraints, Point(t, q, u, self.inputs.at(t)))
        raise SolveError(f"the constraints cannot be evaluated at t = {t!r} s ({place}): status {status} of a function")
