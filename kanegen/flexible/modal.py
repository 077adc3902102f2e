"""The numbers of a flexible body: its modes with their masses, stiffness and damping, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import ModelError, brief
from kanegen.flexible.fields import Fields
from kanegen.flexible.given import dependent_modes, optional, square, symmetric, table
from kanegen.flexible.inertia import chosen, gram

ARRAYS: Final = (
    *("nodes", "modes", "masses", "mass_matrix", "integrals", "stiffness", "damping"),
    *("rotations", "inertias", "second_order", "third_order"),
)
"""The arguments of a flexible body that are arrays."""


@dataclass(frozen=True, eq=False)
class ModalData:
    """Nodes (n, 3), modes (m, n, 3), rotations (m, n, 3), and the matrices (m, m) of the modes.

    ``integrals`` are those of the products of 1 and of the ``fields`` over the mass (:mod:`kanegen.flexible.inertia`).
    """

    nodes: Array
    modes: Array
    rotations: Array
    fields: Fields
    integrals: Array
    stiffness: Array
    damping: Array

    @classmethod
    def of(cls, given: Mapping[str, Any], problems: list[str]) -> ModalData:
        """The data from the arguments of a flexible body. Raises ``ModelError`` for these and further problems."""
        nodes = table(given["nodes"], ("n", 3), "nodes", problems)
        modes = table(given["modes"], ("m", len(nodes), 3), "modes", problems)
        m, n = modes.shape[:2] if modes.shape[1] == len(nodes) else (len(modes), len(nodes))
        rotations = optional(given["rotations"], (m, n, 3), "rotations", problems)
        higher = [
            symmetric(table(given[what], (m,) * order + (n, 3), what, problems))
            for order, what in ((2, "second_order"), (3, "third_order"))
            if given[what] is not None
        ]
        stiffness = square(given["stiffness"], m, "stiffness", problems)
        damping = np.zeros((m, m))
        if given["damping"] is not None:
            damping = square(given["damping"], m, "damping", problems)
        ratio = _ratio(given["damping"], given["damping_ratio"], problems)
        masses, pieces = _masses(given, n, problems)
        table_of_integrals = _integrals(given, m, problems)
        refuse(given["name"], problems)
        fields = Fields.of(nodes, modes, rotations, higher, all_linear=table_of_integrals is not None)
        G = gram(fields, masses, pieces) if table_of_integrals is None else chosen(fields, table_of_integrals)
        data = cls(nodes, modes, rotations, fields, G, stiffness, damping)
        refuse(given["name"], dependent_modes(data.mass_matrix))
        return data.damped(ratio)

    @property
    def mass(self) -> float:
        """kg."""
        return float(self.integrals[0, 0])

    @cached_property
    def mass_matrix(self) -> Array:
        """The mass matrix of the modes, (m, m), while the frame is at rest."""
        m = len(self.modes)
        matrix = np.zeros((m, m))
        at = {term: a + 1 for a, term in enumerate(self.fields.terms) if len(term[1]) == 1}
        for (c, (i,)), a in at.items():
            for j in range(m):
                if (c, (j,)) in at:
                    matrix[i, j] += self.integrals[a, at[c, (j,)]]
        return matrix

    @cached_property
    def vibrations(self) -> tuple[Array, Array]:
        """Angular frequencies (m,), rad/s, and shapes X (m, m) with ``X^T M X = 1``, while the frame is at rest."""
        inverse = np.linalg.inv(np.linalg.cholesky(self.mass_matrix))
        squares, V = np.linalg.eigh(inverse @ self.stiffness @ inverse.T)
        return np.sqrt(np.maximum(squares, 0.0)), inverse.T @ V

    def damped(self, ratio: float) -> ModalData:
        """The data with a damping matrix that gives all vibrations this ratio; unchanged for 0."""
        if not ratio:
            return self
        frequencies, X = self.vibrations
        MX = self.mass_matrix @ X
        damping = np.asarray(MX * (2.0 * ratio * frequencies) @ MX.T)
        return ModalData(self.nodes, self.modes, self.rotations, self.fields, self.integrals, self.stiffness, damping)


def refuse(name: Any, problems: Iterable[str]) -> None:
    """Raise ``ModelError`` if there are problems of a body."""
    found = [f"flexible body {name}: {problem}" for problem in problems]
    if found:
        raise ModelError(found)


def _masses(given: Mapping[str, Any], n: int, problems: list[str]) -> tuple[Array, Array]:
    """Masses (n,) or mass matrix (n, n) of the nodes, and moments of inertia (n, 3, 3) of their pieces."""
    weights = np.ones(n)
    if sum(given[what] is not None for what in ("masses", "mass_matrix", "integrals")) != 1:
        problems.append("give one of masses, mass_matrix and integrals")
    elif given["masses"] is not None:
        weights = table(given["masses"], (n,), "masses", problems)
        if (weights < 0.0).any():
            problems.append(f"masses contains {weights.min():.6g} kg: expected none below 0")
    elif given["mass_matrix"] is not None:
        weights = square(given["mass_matrix"], n, "mass_matrix", problems)
    if not problems and not weights.sum() > 0.0:
        problems.append("the mass of the body is zero: expected a positive one")
    pieces = optional(given["inertias"], (n, 3, 3), "inertias", problems)
    for k, piece in enumerate(pieces if np.any(pieces) else ()):
        square(piece, 3, f"inertias[{k}]", problems)
    return weights, pieces


def _integrals(given: Mapping[str, Any], m: int, problems: list[str]) -> Array | None:
    """The integrals that the user gave, None if they follow from masses."""
    if given["integrals"] is None:
        return None
    problems += [
        f"give either integrals or {what}: the integrals contain the inertia of the linear modes"
        for what in ("inertias", "second_order", "third_order")
        if given[what] is not None
    ]
    matrix = square(given["integrals"], 4 + 3 * m, "integrals", problems)
    if not problems and not matrix[0, 0] > 0.0:
        problems.append("the mass integrals[0, 0] is zero: expected a positive one")
    return matrix


def _ratio(damping: Any, ratio: Any, problems: list[str]) -> float:
    if ratio is None:
        return 0.0
    if damping is not None:
        problems.append("give either damping or damping_ratio")
    if not (isinstance(ratio, int | float) and 0.0 <= ratio < np.inf):
        problems.append(f"damping_ratio is {brief(ratio)}: expected a number, 0 or larger")
        return 0.0
    return float(ratio)
