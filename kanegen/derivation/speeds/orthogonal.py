"""Speeds that make the kinetic-energy matrix diagonal: ``Q = L D L^T`` over the graph and ``w = L^T u``.

The factorization is the Gram-Schmidt orthogonalization of the partial velocities in the metric of the masses, in the
order of the speeds (Bajodah 2003, section 2.6; Golub and Van Loan 2013, section 4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kanegen.derivation.geometry.system import System
from kanegen.derivation.inertia.bodies import lower_bodies
from kanegen.derivation.inertia.mass_matrix import mass_matrix
from kanegen.errors import DerivationError
from kanegen.graph import Identities, Node
from kanegen.graph.ranks import RANK_TOLERANCE
from kanegen.model.expressions import symbol_name


@dataclass(frozen=True)
class Factors:
    """``Q = L D L^T``: rows of L left of its unit diagonal, and the diagonal D."""

    lower: tuple[tuple[Node, ...], ...]
    diagonal: tuple[Node, ...]


def factors(former: System) -> Factors:
    """The factors of the kinetic-energy matrix of the model before the change of speeds.

    Raises
    ------
    DerivationError
        Where Q is singular, naming the speed that moves no mass independently of the others.
    """
    graph, before = former.graph, former.model
    identities = Identities(graph)
    Q = [list(identities.canonical(row)) for row in mass_matrix(former, lower_bodies(former))]
    n = len(Q)
    scale = max(former.magnitudes([Q[k][k] for k in range(n)]))
    lower = [[graph.zero] * k for k in range(n)]
    diagonal: list[Node] = []
    for k in range(n):
        (pivot,) = identities.canonical([Q[k][k]])
        if not former.magnitudes([pivot])[0] > RANK_TOLERANCE * scale:
            raise DerivationError(
                f"no speeds make the kinetic-energy matrix of model {before.name!r} diagonal and regular: the speed "
                f"{symbol_name(before.speeds[k])} moves no mass independently of the speeds before it"
            )
        diagonal.append(pivot)
        reciprocal = graph.div(graph.one, pivot)
        for i in range(k + 1, n):
            lower[i][k] = Q[i][k] * reciprocal
            for j in range(k + 1, i + 1):
                Q[i][j] = Q[i][j] - lower[i][k] * Q[j][k]
    return Factors(tuple(map(tuple, lower)), tuple(diagonal))


def original_speeds(former: System, w: Sequence[Node]) -> tuple[Node, ...]:
    """``u = L^-T w`` by back substitution."""
    lower = factors(former).lower
    u = list(w)
    for j in reversed(range(len(u))):
        u[j] = former.graph.sum([w[j], *(-(lower[i][j] * u[i]) for i in range(j + 1, len(u)))])
    return tuple(u)


def orthogonal_speeds(former: System, u: Sequence[Node]) -> tuple[Node, ...]:
    """``w = L^T u``."""
    lower = factors(former).lower
    n = len(u)
    return tuple(former.graph.sum([u[j], *(lower[i][j] * u[i] for i in range(j + 1, n))]) for j in range(n))
