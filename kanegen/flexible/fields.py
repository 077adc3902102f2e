"""The displacement of a flexible body as scalar functions of its points, times monomials of the modal coordinates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Final, TypeAlias

import numpy as np

from kanegen.arrays import Array

Term: TypeAlias = tuple[int, tuple[int, ...]]
"""Component of the position, 0 to 2, and the modes in the monomial, in ascending order; none for a constant."""

LEVI_CIVITA: Final = np.array(
    [[[(i - j) * (j - k) * (k - i) / 2 for k in range(3)] for j in range(3)] for i in range(3)]
)


@dataclass(frozen=True, eq=False)
class Fields:
    """Scalar functions at the nodes of a body.

    The position of node k in the frame of the body has the components ``sum of values[a, k] times the monomial of
    terms[a]``. ``values`` is (n_f, n). ``slopes`` (n_f, n, 3) are the changes of the functions with the position in a
    small rigid piece of the body at the node, which turns with it.
    """

    terms: tuple[Term, ...]
    values: Array
    slopes: Array

    @property
    def first_order(self) -> int:
        """The number of functions of monomials up to first order, which come first."""
        return sum(len(monomial) < 2 for _, monomial in self.terms)

    @classmethod
    def of(
        cls, nodes: Array, modes: Array, rotations: Array, higher: Sequence[Array], all_linear: bool = False
    ) -> Fields:
        """The functions of nodes (n, 3), modes (m, n, 3), rotations (m, n, 3), and of terms of higher order.

        ``higher`` has symmetric derivatives (m, m, n, 3), (m, m, m, n, 3) ... with respect to the modal coordinates.
        Functions that are zero at all nodes are left out, unless ``all_linear`` keeps those of first order.
        """
        found = [*_linear(nodes, modes, rotations), *(item for terms in higher for item in _powers(terms))]
        kept = [
            (term, value, slope)
            for term, value, slope in found
            if (all_linear and len(term[1]) < 2) or np.any(value) or np.any(slope)
        ]
        n = len(nodes)
        values = np.array([value for _, value, _ in kept]).reshape(-1, n)
        slopes = np.array([slope for _, _, slope in kept]).reshape(-1, n, 3)
        return cls(tuple(term for term, _, _ in kept), values, slopes)


def _linear(nodes: Array, modes: Array, rotations: Array) -> Iterator[tuple[Term, Array, Array]]:
    for c in range(3):
        yield (c, ()), nodes[:, c], np.tile(np.eye(3)[c], (len(nodes), 1))
    for m, (shape, turn) in enumerate(zip(modes, rotations, strict=True)):
        for c in range(3):  # the displacement of a piece is that of its node and turn x s
            yield (c, (m,)), shape[:, c], np.einsum("ad,na->nd", LEVI_CIVITA[c], turn)


def _powers(terms: Array) -> Iterator[tuple[Term, Array, Array]]:
    """The functions of the monomials of one order, with the coefficients of a Taylor series."""
    none = np.zeros((terms.shape[-2], 3))
    for monomial in combinations_with_replacement(range(len(terms)), terms.ndim - 2):
        weight = 1.0 / math.prod(math.factorial(count) for count in Counter(monomial).values())
        for c in range(3):
            yield (c, monomial), weight * terms[monomial][:, c], none
