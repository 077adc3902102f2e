"""The norms of Euler parameters, which hold whether or not the user lists them among the constraints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np

from kanegen.derivation.geometry.system import System
from kanegen.errors import ModelError
from kanegen.graph import Node, evaluate
from kanegen.graph.ranks import RANK_TOLERANCE, off_span
from kanegen.model.expressions import symbol_name

State = Mapping[str, Sequence[float]]


def missing_norms(
    system: System, positions: Sequence[Node], rows: Sequence[Sequence[Node]]
) -> Iterator[tuple[str, Node]]:
    """Label and residual ``e.e - 1`` of each group of Euler parameters that the user's constraints leave out.

    ``positions``: phi of the user's holonomic constraints; ``rows``: J of all constraints. A norm that the kinematical
    equations do not keep by themselves is left to the constraints if they bind it.

    Raises
    ------
    ModelError
        For a group whose norm neither the kinematical equations nor the constraints keep.
    """
    groups = system.model.euler_parameters
    if not groups:
        return
    slots = {symbol: k for k, symbol in enumerate(system.model.coordinates)}
    for group in groups:
        index = [slots[symbol] for symbol in group]
        states = [_on_sphere(state, index) for state in system.states]
        norm = system.graph.sum([*(system.q[k] * system.q[k] for k in index), -system.graph.one])
        if any(_vanishes(phi, states) and not system.vanish([phi]) for phi in positions):
            continue  # the user's own
        if _vanishes(system.rate(norm), states):
            yield _label(group), norm
        elif not _bound(system, norm, rows, states):
            raise ModelError(_not_kept(group))


def _on_sphere(state: State, group: Sequence[int]) -> State:
    """The state with the group scaled to unit norm."""
    q = list(state["q"])
    size = sqrt(sum(q[k] * q[k] for k in group))
    for k in group:
        q[k] /= size
    return {**state, "q": q}


def _vanishes(node: Node, states: Sequence[State]) -> bool:
    return all(abs(evaluate([node], state)[0]) <= RANK_TOLERANCE for state in states)


def _bound(system: System, norm: Node, rows: Sequence[Sequence[Node]], states: Sequence[State]) -> bool:
    """Whether the rate of the norm follows from the rows, so that the constraints keep it."""
    slope = [partial(system.rate(norm)) for partial in system.partials]
    for state in states:
        J = np.array([evaluate(row, state) for row in rows]).reshape(len(rows), len(slope))
        right = np.array(evaluate(slope, state))
        if not np.abs(off_span(right, J)).max(initial=0.0) <= RANK_TOLERANCE * np.abs(right).max(initial=1.0):
            return False
    return True


def _label(group: Sequence[Any]) -> str:
    squares = " + ".join(f"{symbol_name(symbol)}**2" for symbol in group)
    return f"{squares} - 1 (norm of Euler parameters)"


def _not_kept(group: Sequence[Any]) -> str:
    names = ", ".join(map(symbol_name, group))
    squares = " + ".join(f"{symbol_name(symbol)}**2" for symbol in group)
    return (
        f"the orientation written in {names} is a rotation only where {squares} = 1 (Euler parameters), but neither "
        f"the kinematical equations nor the constraints keep that sum: take components of the angular velocity as "
        f"speeds (q' = C u then keeps it), or add {squares} - 1 to holonomic_constraints"
    )
