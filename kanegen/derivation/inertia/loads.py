"""Loads that depend on accelerations in the elimination of velocities: as inertias of speeds.

The power of such loads at u' = 0 in all but one speed is ``-u_j' (sum weight * velocity)``. A reflected inertia, for
example, acts on two neighboring bodies, ``-J u_j' (w_2 - w_1)``, and with ``w_2 = w_1 + u_j`` this is ``-J u_j' u_j``:
the weight J of the speed u_j. Loads that couple speeds by such weights leave the elimination as sparse as it is; others
need the matrix of the accelerations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kanegen.derivation.geometry.system import System
from kanegen.derivation.inertia.recursion import Recursion, Terms
from kanegen.graph import Node, reachable

MOST_COUPLED: Final = 3
"""Most speeds that the loads in one acceleration may couple."""


class CoupledLoadsError(Exception):
    """Loads that depend on accelerations couple many speeds, or not symmetrically."""


def load_weights(
    system: System, recursion: Recursion, powers: Iterable[tuple[Node, Node]]
) -> dict[tuple[Node, Node], Node]:
    """The weights of pairs of speeds that stand for the parts ``F1 u'`` of loads ``F0 + F1 u'``.

    ``powers``: velocity components and the forces conjugate to them. Raises `CoupledLoadsError`.
    """
    place = {node: k for k, node in enumerate(recursion.terms)}
    sums: list[Terms] = [{} for _ in system.u]
    of_rate = {rate: j for j, rate in enumerate(system.udot)}
    for velocity, force in powers:
        if velocity in place:
            for j in sorted(of_rate[node] for node in reachable([force]) if node in of_rate):
                _add(sums[j], velocity, -system.acceleration_partials[j](force))
    rows = [_in_speeds(terms, recursion, place) for terms in sums]
    weights: dict[tuple[Node, Node], Node] = {}
    for j, row in enumerate(rows):
        for i, speed in enumerate(system.u):
            if speed in row:
                if row[speed] is not rows[i].get(system.u[j]):
                    raise CoupledLoadsError
                if i <= j:
                    weights[speed, system.u[j]] = row[speed]
    return weights


def _in_speeds(terms: Terms, recursion: Recursion, place: dict[Node, int]) -> Terms:
    """A sum of velocity components as one of speeds, from the last component to the first."""
    while moving := [node for node in terms if recursion.terms[node]]:
        last = max(moving, key=place.__getitem__)
        factor = terms.pop(last)
        for operand, coefficient in recursion.terms[last].items():
            _add(terms, operand, factor * coefficient)
    if len(terms) > MOST_COUPLED:
        raise CoupledLoadsError
    return terms


def _add(terms: Terms, node: Node, value: Node) -> None:
    total = terms[node] + value if node in terms else value
    if total.is_zero:
        terms.pop(node, None)
    else:
        terms[node] = total
