"""The motion that the variables of a transcription describe, as piecewise polynomials of the time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kanegen.arrays import Array
from kanegen.control.layout import Layout, Places
from kanegen.control.schemes import lagrange

_VANISHING = 1e-9
"""Magnitude, in SI units, below which a state is zero but for the tolerance of the solver."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion on a mesh. ``variables`` (n_x,): in the order of the layout, in SI units; ``qdot`` (m, n_q) and ``sdot``
    (m, n_s): rates at the stages.
    """

    layout: Layout
    variables: Array
    qdot: Array
    sdot: Array

    def at(self, places: Places) -> Array:
        """The values at places."""
        found: Array = np.concatenate([self.variables, self.layout.known])[places]
        return found

    @cached_property
    def duration(self) -> float:
        """The duration of the motion, s."""
        return float(self.at(np.array(self.layout.duration)))

    @cached_property
    def parameters(self) -> Array:
        """The values of all parameters."""
        return self.at(self.layout.parameters)

    @cached_property
    def mesh(self) -> Array:
        """The times of mesh points, (N + 1,)."""
        return self.layout.mesh * self.duration

    @cached_property
    def mesh_y(self) -> Array:
        """States at mesh points, (N + 1, n_y)."""
        return self.at(self.layout.mesh_y)

    @cached_property
    def t(self) -> Array:
        """The times of mesh points and stages, (m,)."""
        return self.layout.tau_of_y * self.duration

    @cached_property
    def y(self) -> Array:
        """States at `t`, (m, n_y)."""
        return self.at(self.layout.all_y)

    @cached_property
    def rates(self) -> Array:
        """y' at the stages of each interval, (N, s, n_y)."""
        rows = np.hstack([self.qdot, self.at(self.layout.udot), self.sdot])
        return rows[self.layout.stages]

    @cached_property
    def scale(self) -> Array:
        """The largest magnitude of each state along the motion, 1 for those that vanish, (n_y,)."""
        largest = np.abs(self.y).max(axis=0)
        return np.where(largest > _VANISHING, largest, 1.0)

    @cached_property
    def inputs(self) -> Array:
        """Coefficients (s + 1, N, n_r) of all inputs, of powers of the time since the start of each interval.

        The highest power is first, as in ``scipy.interpolate.PPoly``. Inputs that have rates are integrals of these.
        """
        statement, h = self.layout.statement, np.diff(self.mesh)
        scheme, values = statement.scheme, self.at(self.layout.inputs)[self.layout.stages]
        basis = np.array(lagrange(scheme.c))  # (s, s): stage, power
        c = np.pad(np.einsum("kjn,jp->pkn", values, basis), ((1, 0), (0, 0), (0, 0)))
        c[:, :, list(statement.rated)] = self._states[:, :, statement.n_state :].transpose(1, 0, 2)
        powers = np.arange(len(scheme.c), -1, -1)
        return np.asarray(c / h[None, :, None] ** powers[:, None, None])

    def states_at(self, tau: Array) -> Array:
        """States at times from 0 to 1, (m, n_y)."""
        k = np.clip(np.searchsorted(self.layout.mesh, tau, side="right") - 1, 0, len(self.mesh) - 2)
        h = np.diff(self.layout.mesh)[k]
        theta = (tau - self.layout.mesh[k]) / h
        weights = np.array([np.polyval(each, theta) for each in self.layout.statement.scheme.dense])
        change = np.einsum("jm,mjn->mn", weights, self.rates[k]) * (h * self.duration)[:, None]
        return np.asarray(self.mesh_y[k] + change)

    @cached_property
    def dense(self) -> Array:
        """Coefficients (N, s + 1, n_y) of the states in the nested form of :class:`kanegen.results.Dense`."""
        form = _nested(len(self.layout.statement.scheme.c))
        return np.asarray(np.einsum("pc,kpn->kcn", np.linalg.inv(form).T, self._states))

    @cached_property
    def _states(self) -> Array:
        """Coefficients (N, s + 1, n_y) of the states, of powers of the fraction of each interval, highest first."""
        dense = self.layout.statement.scheme.dense
        found = np.einsum("jp,kjn->kpn", dense, self.rates) * np.diff(self.mesh)[:, None, None]
        found[:, -1] += self.mesh_y[:-1]
        return np.asarray(found)


def _nested(degree: int) -> Array:
    """Coefficients of the polynomials 1, theta, theta (1 - theta), theta^2 (1 - theta), ... as columns."""
    columns, current = [], np.ones(1)
    for k in range(degree + 1):
        columns.append(np.concatenate([np.zeros(degree + 1 - len(current)), current]))
        current = np.convolve(current, [1.0, 0.0] if k % 2 == 0 else [-1.0, 1.0])
    return np.array(columns).T
