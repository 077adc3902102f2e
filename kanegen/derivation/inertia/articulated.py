"""Equations of motion of bodies by elimination of their velocities; see :mod:`kanegen.derivation.inertia.elimination`.

For a tree of joints this is the articulated-body algorithm (Featherstone 2008, chapter 7) in scalar code: the number of
operations grows linearly with the number of bodies, also if the tree is closed by loops of few bodies each.
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
from kanegen.derivation.inertia.elimination import SparseFactor, Weights, eliminated
from kanegen.derivation.inertia.loads import load_weights
from kanegen.derivation.inertia.loops import Loops
from kanegen.derivation.inertia.recursion import Recursion, Terms, velocity_recursion
from kanegen.graph import Node, reachable

Power: TypeAlias = tuple[Node, Node]
"""A velocity component and the force conjugate to it."""


@dataclass(frozen=True)
class ArticulatedSystem:
    """``Q u' = P + J^T lambda``, ``J u' = b``, with the elimination of all velocities and multipliers.

    ``forces``: active forces and inertia forces at u' = 0, by the components to which they are conjugate.
    ``couplings``: for each speed the speeds up to it with which the kinetic energy can couple it, as the nonzeros of
    the lower triangle of Q.
    """

    factor: SparseFactor
    forces: Terms
    speeds: tuple[Node, ...]
    loops: Loops
    couplings: tuple[frozenset[int], ...]

    def accelerations(self, added: Sequence[Node]) -> tuple[Node, ...]:
        """u' (n_u,); ``added`` (n_c,) is what a stabilization adds to b."""
        graph = self.factor.graph
        sums = [graph.sum([row.bias, *(sign * added[k] for k, sign in row.parts.items())]) for row in self.loops.rows]
        right = self.factor.forward({**self.forces, **dict(zip(self.loops.multipliers, sums, strict=True))})
        rates = self.factor.backward(right)
        return tuple(rates[speed] for speed in self.speeds)


def articulated_system(
    system: System, bodies: Sequence[Body], powers: Iterable[Power], loops: Loops, limit: float
) -> ArticulatedSystem | None:
    """The eliminated system; None if the velocity of a body is not written as a sum of multiples of speeds.

    ``powers`` are the active forces and the inertia forces at u' = 0; what they are conjugate to, such as a rate in a
    contact, can be nonlinear in the speeds. Raises ZeroDivisionError, with the speed or the multiplier as its argument,
    if a speed moves no mass or the constraints are redundant, FillInError if more than ``limit`` entries of matrices
    are computed, and CoupledLoadsError for loads that depend on accelerations, unless they are inertias of speeds.
    """
    weights, forces = body_weights(system, bodies), Terms()
    for velocity, force in powers:
        forces[velocity] = forces[velocity] + force if velocity in forces else force
    loads = forces
    if system.model.is_accelerated:
        forces = dict(zip(loads, system.without_accelerations(list(loads.values())), strict=True))
    moving = [x for pair in weights for x in pair]
    residuals = [row.residual for row in loops.rows if row.residual is not None]
    recursion = velocity_recursion([*forces, *moving], system.u, system.partials, residuals)
    if not _is_linear(recursion, moving, system.u):
        return None
    weights = {pair: weight for pair, weight in weights.items() if all(x in recursion.terms for x in pair)}
    if system.model.is_accelerated:
        for (a, b), weight in load_weights(system, recursion, loads.items()).items():
            pair = (b, a) if (b, a) in weights else (a, b)
            weights[pair] = weights[pair] + weight if pair in weights else weight
    factor = eliminated(system.graph, recursion, weights, system.u, loops, limit)
    acting = {x: force for x, force in forces.items() if x in recursion.terms}
    return ArticulatedSystem(factor, acting, system.u, loops, _couplings(recursion, weights, system.u))


def _is_linear(recursion: Recursion, velocities: Iterable[Node], speeds: Sequence[Node]) -> bool:
    """Whether no factor on the way to the velocities depends on speeds."""
    waiting = [x for x in velocities if x in recursion.terms]
    seen = set(waiting)
    while waiting:
        added = recursion.terms[waiting.pop()].keys() - seen
        seen |= added
        waiting += added
    factors = [factor for x in seen for factor in recursion.terms[x].values()]
    return {node.index for node in reachable(factors)}.isdisjoint(speed.index for speed in speeds)


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
