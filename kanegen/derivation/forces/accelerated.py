"""Loads that depend on accelerations, ``F = F0 + F1 u'``: the symmetry and the rank of ``M = Q - F1``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kanegen.derivation.geometry.system import System
from kanegen.errors import BuildError
from kanegen.graph import Node, evaluate, reachable
from kanegen.graph.ranks import RANK_TOLERANCE, null_space
from kanegen.model.description import SystemDescription
from kanegen.model.expressions import symbol_name

Rows = Sequence[Sequence[Node]]


def unequal_entries(M: Rows) -> list[tuple[int, int]]:
    """The places (i, j) below the diagonal where M and its transpose have different nodes.

    Values at some states would not show that a matrix is symmetric, because its expressions can have cases.
    """
    return [(i, j) for i in range(len(M)) for j in range(i) if M[i][j] is not M[j][i]]


def asymmetry(model: SystemDescription, M: Rows) -> str:
    """In words, which loads make M unsymmetric in which speeds."""
    i, j = unequal_entries(M)[0]
    return (
        f"the loads on {', '.join(model.accelerated_loads)}, which depend on accelerations, make the matrix "
        f"M = Q - dF/du' unsymmetric in the speeds {symbol_name(model.speeds[j])} and {symbol_name(model.speeds[i])}"
    )


def unsteady_factors(system: System, M: Rows, inputs: bool) -> str | None:
    """In words, on which speeds and, if ``inputs``, inputs without a rate and states M depends; None if on none."""
    model = system.model
    named = [*zip(system.u, model.speeds, strict=True)]
    if inputs:
        rates = zip(system.r, model.inputs, system.input_rates, strict=True)
        named += [(node, item.symbol) for node, item, rate in rates if rate is None]
        named += zip(system.s, model.states, strict=True)
    present = set(reachable(entry for row in M for entry in row))
    names = [symbol_name(symbol) for node, symbol in named if node in present]
    loads = ", ".join(model.accelerated_loads)
    return f"the factors of accelerations in the loads on {loads} depend on {', '.join(names)}" if names else None


def require_regular(system: System, M: Rows, J: Rows) -> None:
    """Require that M is regular in the directions that the constraints with the rows J admit, at a random state.

    Raises
    ------
    BuildError
        If it is singular at all random states, naming the speeds and the loads that cancel their inertia.
    """
    n, model, still = len(system.u), system.model, []
    for state in system.states:
        matrix = np.array(evaluate([x for row in M for x in row], state)).reshape(n, n)
        rows = np.array(evaluate([x for row in J for x in row], state)).reshape(-1, n)
        if not (np.isfinite(matrix).all() and np.isfinite(rows).all()):
            return
        free = null_space(rows)
        lost = free @ null_space(free.T @ matrix @ free)
        if not lost.size:
            return
        still.append(np.abs(lost).max(axis=1) > RANK_TOLERANCE)
    speeds = [symbol_name(speed) for speed, moves in zip(model.speeds, np.all(still, axis=0), strict=True) if moves]
    raise BuildError(
        f"the equations of model {model.name!r} do not determine the derivatives of {', '.join(speeds)}: "
        f"Q - dF/du' is singular, with the loads on {', '.join(model.accelerated_loads)} that depend on "
        f"accelerations; give the bodies other masses or inertias, or change these loads"
    )
