"""The sizes of the equations along a path: sums of absolute terms, with which their residuals are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.solve.analysis.sizes import terms_of
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.inputs import RunInputs
from kanegen.solve.inverse.path import Path


@dataclass(frozen=True, eq=False)
class PathStates:
    """The states along a path, with the results ``found`` of inverse dynamics and the other ``inputs``."""

    functions: CompiledFunctions
    path: Path
    found: Mapping[str, Array]
    inputs: RunInputs

    def are_balanced(self, tolerance: float) -> NDArray[np.bool_]:
        """Whether controls and constraints balance all forces, up to this fraction of them, (n_t,)."""
        d, found = self.functions.description, self.found
        n, residual = len(d.speeds), np.abs(found["residual"])
        sizes = np.abs(found["P"]) + _of_products(found[d.mass].reshape(-1, n, n), found["udot"])
        if d.constraints.rows:
            columns = found["J"].reshape(-1, len(d.constraints.rows), n).transpose(0, 2, 1)
            sizes += _of_products(columns, found["multipliers"])
        balanced = np.all(residual <= tolerance * sizes, axis=1)
        doubtful = np.flatnonzero(~balanced)
        if doubtful.size:  # forces that balance each other leave rounding errors in P
            sizes[doubtful] += self._terms("P", doubtful)
            balanced[doubtful] = (residual <= tolerance * sizes)[doubtful].all(axis=1)
        return np.asarray(balanced)

    def of_levels(self) -> tuple[Array, Array]:
        """The residuals of the constraints and their units, (n_t, n); the units at the worst time of each only."""
        if "residuals" not in self.found:
            return np.empty((self.path.times.size, 0)), np.empty((self.path.times.size, 0))
        residuals, function = self.found["residuals"], self.functions.get("residuals")
        units = np.zeros_like(residuals)
        for i in _worst(residuals):
            t, *state = self._states(np.array([i]))
            _, units[i] = function.with_units(float(t[0]), *(x[0] for x in state))
        return residuals, units

    def of_kinematics(self) -> tuple[Array, Array]:
        """The residuals of ``q' = C u + D`` and the sums of their terms, (n_t, n_q)."""
        d = self.functions.description
        rows = self.found["kinematics"].reshape(-1, len(d.coordinates), len(d.speeds) + 2)
        terms = _of_products(rows[:, :, :-2], self.found["u"]) + np.abs(rows[:, :, -2]) + np.abs(self.path.qdot)
        return self.found["slip"], terms

    def of_accelerations(self) -> tuple[Array, Array]:
        """The residuals of ``J u' = b`` and the sums of their terms, (n_t, n_c); of b at the worst times only."""
        violation, d = self.found["violation"], self.functions.description
        if not violation.size:
            return violation, violation
        terms = _of_products(self.found["J"].reshape(-1, len(d.constraints.rows), len(d.speeds)), self.found["udot"])
        worst = _worst(violation)
        terms[worst] += self._terms("b", worst)
        return violation, terms

    def _terms(self, name: str, rows: NDArray[np.intp]) -> Array:
        """The sums of the absolute terms of a function at some of the times."""
        t, *state = self._states(rows)
        return terms_of(self.functions, name, self.found[name][rows], t, state)

    def _states(self, rows: NDArray[np.intp]) -> tuple[Array, Array, Array, Array]:
        """Times, coordinates, speeds, and inputs with the controls, at some of the times."""
        times = self.path.times[rows]
        r = np.array([self.inputs.at(t) for t in times.tolist()], dtype=np.float64)
        r[:, list(self.functions.description.path_controls)] = self.found["controls"][rows]
        return times, self.path.q[rows], self.found["u"][rows], r


def _worst(residuals: Array) -> NDArray[np.intp]:
    """The times at which one of the residuals (n_t, n) is largest, by index."""
    return np.unique(np.abs(residuals).argmax(axis=0))


def _of_products(matrices: Array, vectors: Array) -> Array:
    """The sums of the absolute terms of the products of matrices (n_t, m, n) and vectors (n_t, n)."""
    terms: Array = np.einsum("tij,tj->ti", np.abs(matrices), np.abs(vectors))
    return terms
