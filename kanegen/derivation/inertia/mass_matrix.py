"""The kinetic-energy matrix Q, by two routes that give the same matrix at different cost.

The direct route sums over bodies. The composite route applies where the bodies form a tree of joints: what lies
beyond a joint then moves as one rigid body while only the speeds of that joint move, and its composite inertia
gives the joint's column, propagated towards the root (Featherstone 2008, section 6.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.vectors import Triple, dot
from kanegen.derivation.inertia.bodies import Body
from kanegen.derivation.inertia.composite import JointTree, composite_matrix
from kanegen.derivation.inertia.tensors import product
from kanegen.graph import Node, reachable

Square: TypeAlias = tuple[tuple[Node, ...], ...]
Lower: TypeAlias = list[list[Node]]


MANY_SPEEDS = 6
"""Speeds from which the direct route, of order n^3 where the composite one is n^2, is not even tried."""


def mass_matrix(system: System, bodies: Sequence[Body]) -> Square:
    """Q, (n_u, n_u), symmetric, kg in the units of the speeds, by the route with fewer operations."""
    tree = JointTree.of(system, bodies)
    if tree is None:
        return mirrored(direct_matrix(system, bodies))
    composite = composite_matrix(system, tree)
    if len(system.u) > MANY_SPEEDS:
        return mirrored(composite)
    routes: list[Lower] = [composite, direct_matrix(system, bodies)]
    return mirrored(min(routes, key=operations))


def direct_matrix(system: System, bodies: Sequence[Body]) -> Lower:
    """Lower triangle of ``Q_rs = sum m v_r . v_s + w_r . I . w_s`` from the partial velocities of every body."""
    zero, n = system.graph.zero, len(system.u)
    lower = [[zero] * (r + 1) for r in range(n)]
    for body in bodies:
        if not body.mass.is_zero:
            partial = system.partial_velocities(system.points.motion(body.point).velocity)
            for r, s in _pairs(partial):
                lower[r][s] = lower[r][s] + body.mass * dot(partial[r], partial[s])
        if body.inertia is not None:
            omega = system.frames.omega(body.frame, body.inertia_frame)
            partial = system.partial_velocities(omega)
            momenta = {s: product(body.inertia, partial[s]) for s in partial}
            for r, s in _pairs(partial):
                lower[r][s] = lower[r][s] + dot(partial[r], momenta[s])
    return lower


def mirrored(lower: Lower) -> Square:
    """The symmetric matrix with the given lower triangle."""
    n = len(lower)
    return tuple(tuple(lower[max(r, s)][min(r, s)] for s in range(n)) for r in range(n))


def _pairs(partial: dict[int, Triple]) -> list[tuple[int, int]]:
    return [(r, s) for r in partial for s in partial if s <= r]


def operations(lower: Lower) -> int:
    """Operations at run time of a lower triangle."""
    nodes = reachable(entry for row in lower for entry in row)
    return sum(not node.constant and bool(node.args) for node in nodes)
