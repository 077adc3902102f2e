"""Frames and vectors at one instant of a motion: numbers for what the user wrote, and for its rate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.graph import evaluate
from kanegen.model.checks.motions import Motions, Values
from kanegen.model.expressions import vector_terms
from kanegen.model.geometry.routes import Geometry, Pair, path

Array = NDArray[np.float64]


class Snapshot:
    """Values and rates of ``expressions`` at one state; vectors in inertial components."""

    def __init__(self, geometry: Geometry, values: Mapping[Any, tuple[float, float]]) -> None:
        self._geometry = geometry
        self._values = values
        self._axes: dict[Any, tuple[Array, Array]] = {}

    def vector(self, vector: Any) -> tuple[Array, Array]:
        """A SymPy vector and its rate, (3,) each; the number 0 is the null vector."""
        value, rate = np.zeros(3), np.zeros(3)
        for components, frame in vector_terms(vector) if vector != 0 else ():
            axes, turning = self.axes(frame)
            parts = np.array([self._values[x] for x in components])
            value += axes @ parts[:, 0]
            rate += axes @ parts[:, 1] + turning @ parts[:, 0]
        return value, rate

    def axes(self, frame: Any) -> tuple[Array, Array]:
        """The unit vectors of a frame as columns, and their rates, (3, 3) each."""
        if frame not in self._axes:
            parent = self._geometry.parents[frame]
            if parent is None:
                self._axes[frame] = np.eye(3), np.zeros((3, 3))
            else:
                inner, inner_rate = self.axes(parent)
                parts = np.array([self._values[x] for x in frame._dcm_dict[parent]])
                cosines, rates = parts[:, 0].reshape(3, 3).T, parts[:, 1].reshape(3, 3).T
                self._axes[frame] = inner @ cosines, inner_rate @ cosines + inner @ rates
        return self._axes[frame]

    def omega(self, frame: Any) -> tuple[Array, Array]:
        """Angular velocity of a frame as it is set or follows from orientations, and its rate, (3,) each."""
        pairs = path(self._geometry.rate_parents, frame)
        parts = [self.vector(child._ang_vel_dict[parent]) for parent, child in pairs]
        total = np.sum(parts, axis=0) if parts else np.zeros((2, 3))
        return total[0], total[1]

    def turning(self, frame: Any) -> Array:
        """The angular velocity with which the axes of a frame turn, (3,)."""
        axes, rates = self.axes(frame)
        spin = rates @ axes.T
        return np.array([spin[2, 1] - spin[1, 2], spin[0, 2] - spin[2, 0], spin[1, 0] - spin[0, 1]]) / 2.0

    def offset(self, pairs: Iterable[Pair]) -> tuple[Array, Array]:
        """The position along ``(point, point it is positioned from)`` and its rate, (3,) each."""
        parts = [self.vector(point._pos_dict[other]) for point, other in pairs]
        total = np.sum(parts, axis=0) if parts else np.zeros((2, 3))
        return total[0], total[1]

    def dyadic(self, dyadic: Any) -> Array:
        """A SymPy dyadic, (3, 3)."""
        total = np.zeros((3, 3))
        for coefficient, left, right in dyadic.args if dyadic != 0 else ():
            total += self._values[coefficient][0] * np.outer(self.vector(left)[0], self.vector(right)[0])
        return total


def snapshots(
    geometry: Geometry, motions: Motions, states: Sequence[Values], expressions: Iterable[Any]
) -> list[Snapshot]:
    """A snapshot with ``expressions`` at each state where they have values.

    Raises ``DerivationError`` for an expression that cannot be lowered.
    """
    listed = list(dict.fromkeys(expressions))
    nodes = [motions.lower(expression) for expression in listed]
    nodes += map(motions.rate, nodes[:])
    taken = []
    for state in states:
        try:
            values = evaluate(nodes, state)
        except (ValueError, ArithmeticError):
            continue  # a user's Python function that is not defined here
        n = len(listed)
        taken.append(Snapshot(geometry, dict(zip(listed, zip(values[:n], values[n:], strict=True), strict=True))))
    return taken
