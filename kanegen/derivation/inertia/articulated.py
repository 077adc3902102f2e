"""Equations of motion of bodies by elimination of their velocities; see :mod:`kanegen.derivation.inertia.elimination`.

For a tree of joints this is the articulated-body algorithm (Featherstone 2008, chapter 7) in scalar code: the number of
operations grows linearly with the number of bodies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement
from operator import or_
from typing import TypeAlias

from kanegen.derivation.geometry.system import System
from kanegen.derivation.inertia.bodies import Body, square
from kanegen.derivation.inertia.elimination import Pivot, TreeFactor, Weights, eliminated
from kanegen.derivation.inertia.recursion import Recursion, velocity_recursion
from kanegen.graph import Node, reachable

Power: TypeAlias = tuple[Node, Node]
"""A velocity component and the force conjugate to it."""


@dataclass(frozen=True)
class ArticulatedSystem:
    """``Q u' = P + J^T lambda`` after the elimination of all velocities.

    ``forces``: P after the elimination. ``couplings``: for each speed the speeds up to it with which the kinetic energy
    can couple it, as the nonzeros of the lower triangle of Q.
    """

    factor: TreeFactor
    forces: dict[Node, Node]
    speeds: tuple[Node, ...]
    couplings: tuple[frozenset[int], ...]

    def responses(self, rows: Sequence[Sequence[Node]]) -> list[dict[Node, Node]]:
        """Generalized forces of unit multipliers after the elimination."""
        return [self.factor.forward(dict(zip(self.speeds, row, strict=True))) for row in rows]

    def product(self, a: dict[Node, Node], b: dict[Node, Node]) -> Node:
        """``a^T Q^-1 b`` for generalized forces after the elimination."""
        zero = self.factor.graph.zero
        pivots = (step for step in self.factor.steps if isinstance(step, Pivot))
        terms = ((a.get(x.speed, zero), b.get(x.speed, zero), x.reciprocal) for x in pivots)
        return self.factor.graph.sum(x * (y * reciprocal) for x, y, reciprocal in terms)

    def accelerations(self, forces: dict[Node, Node]) -> tuple[Node, ...]:
        """u' (n_u,) of generalized forces after the elimination."""
        rates = self.factor.backward(forces)
        return tuple(rates[speed] for speed in self.speeds)


def articulated_system(system: System, bodies: Sequence[Body], powers: Iterable[Power]) -> ArticulatedSystem | None:
    """The eliminated system; None if a velocity is not written as a sum of multiples of speeds.

    ``powers`` are the active forces and the inertia forces at u' = 0. Raises ZeroDivisionError, with the index of the
    speed as its argument, if a speed moves no mass.
    """
    weights, forces = body_weights(system, bodies), dict[Node, Node]()
    for velocity, force in powers:
        forces[velocity] = forces[velocity] + force if velocity in forces else force
    recursion = velocity_recursion([*forces, *(x for pair in weights for x in pair)], system.u, system.partials)
    factors = [factor for terms in recursion.terms.values() for factor in terms.values()]
    if not {node.index for node in reachable(factors)}.isdisjoint(speed.index for speed in system.u):
        return None
    moving = {pair: weight for pair, weight in weights.items() if all(x in recursion.terms for x in pair)}
    factor = eliminated(system.graph, recursion, moving, system.u)
    free = factor.forward({x: force for x, force in forces.items() if x in recursion.terms})
    return ArticulatedSystem(factor, free, system.u, _couplings(recursion, moving, system.u))


def body_weights(system: System, bodies: Sequence[Body]) -> Weights:
    """D of the kinetic energy ``1/2 z^T D z`` of all bodies in their velocity components z."""
    weights: dict[tuple[Node, Node], Node] = {}

    def add(a: Node, b: Node, weight: Node) -> None:
        if not weight.is_zero:
            pair = (b, a) if (b, a) in weights else (a, b)
            weights[pair] = weights[pair] + weight if pair in weights else weight

    for body in bodies:
        if not body.mass.is_zero:
            for component in system.points.motion(body.point).velocity:
                add(component, component, body.mass)
        if body.inertia is not None:
            omega, tensor = system.frames.omega(body.frame, body.inertia_frame), square(body.inertia)
            for i, j in combinations_with_replacement(range(3), 2):
                # Two components can be one node, whose weight then takes the product of inertia twice.
                double = i != j and omega[i] is omega[j]
                add(omega[i], omega[j], 2 * tensor[i][j] if double else tensor[i][j])
    return weights


def _couplings(recursion: Recursion, weights: Weights, speeds: Sequence[Node]) -> tuple[frozenset[int], ...]:
    """The pairs of speeds that move components with a common weight, as sets of bits along the recursion."""
    moved_by = {speed: 1 << k for k, speed in enumerate(speeds)}
    for node, terms in recursion.terms.items():
        if terms:
            moved_by[node] = reduce(or_, (moved_by[operand] for operand in terms))
    rows = [0] * len(speeds)
    pairs = dict.fromkeys((moved_by[x], moved_by[y]) for a, b in weights for x, y in ((a, b), (b, a)))
    for one, other in pairs:
        for k in range(one.bit_length()):
            if one >> k & 1:
                rows[k] |= other
    return tuple(frozenset(j for j in range(k + 1) if row >> j & 1) for k, row in enumerate(rows))
