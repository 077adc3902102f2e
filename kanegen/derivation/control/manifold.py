"""Random states that satisfy the passive constraints, for decisions about ranks: found by numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kanegen.graph import Newton

if TYPE_CHECKING:
    from kanegen.derivation.equations import Equations

State = Mapping[str, Sequence[float]]


def consistent_states(equations: Equations) -> list[State]:
    """The random states of the system, moved to the manifold by Gauss and Newton; those that arrive there.

    With the model's values of parameters: random lengths may admit no position.
    """
    known = [equations.model.parameters[symbol] for symbol in equations.model.parameters]
    system = equations.system
    solvers = (Newton(equations.positions.nodes, system.q), Newton(equations.velocities.nodes, system.u))
    found = []
    for state in system.states:
        parameters = [guess if value is None else value for guess, value in zip(state["p"], known, strict=True)]
        moved: State | None = {**state, "p": parameters}
        for solver in solvers:
            moved = None if moved is None else solver.solve(moved)
        if moved is not None:
            found.append(moved)
    return found
