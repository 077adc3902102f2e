"""Former speeds over the graph: ``u = Phi1^-1 (w - Phi2)`` where the model was given other speeds w."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kanegen.derivation.algebra.elimination import solve_linear
from kanegen.errors import DerivationError, ModelError
from kanegen.graph import Graph, Lowering, Node, gradient, substitute
from kanegen.model.description import SpeedChange, SystemDescription
from kanegen.model.expressions import symbol_name

if TYPE_CHECKING:
    from kanegen.derivation.geometry.system import System

FORMER = "former"
"""Input array of the graph that stands for the speeds before one change while it is inverted."""


def former_speeds(system: System) -> dict[Any, Node]:
    """The speeds of all models before in those of ``system``.

    Raises
    ------
    ModelError
        Where the definitions of the new speeds are singular.
    DerivationError
        Where no speeds make the kinetic-energy matrix diagonal.
    """
    found: dict[Any, Node] = {}
    speeds: Sequence[Node] = system.u
    for change in system.model.speed_changes:
        speeds = _inverse(system, change, speeds)
        found.update(zip(change.before.speeds, speeds, strict=True))
    return found


def model_before(model: SystemDescription) -> SystemDescription:
    """The model before the last change of speeds; ``DerivationError`` where there was none."""
    if model.speed_change is None:
        raise DerivationError(f"the speeds of model {model.name!r} were not changed: use with_speeds")
    return model.speed_change.before


def new_speeds(system: System) -> tuple[Node, ...]:
    """``w = Phi1 u + Phi2``, the inputs ``u`` of the graph standing for the speeds before the last change."""
    change = system.model.speed_changes[0]
    if change.definitions is None:
        from kanegen.derivation.speeds.orthogonal import orthogonal_speeds

        return orthogonal_speeds(system, change.before, system.u)
    rows, former = _definitions(system, change)
    return tuple(substitute(rows, dict(zip(former, system.u, strict=True))))


def _inverse(system: System, change: SpeedChange, speeds: Sequence[Node]) -> tuple[Node, ...]:
    """The speeds before ``change`` in ``speeds``, those after it."""
    if change.definitions is None:
        # Imported here, as the factors of Q come from a System of the model before.
        from kanegen.derivation.speeds.orthogonal import original_speeds

        return original_speeds(system, change.before, speeds)
    graph = system.graph
    rows, former = _definitions(system, change)
    Phi1 = [gradient([row], [graph.one], former) for row in rows]
    Phi2 = substitute(rows, dict.fromkeys(former, graph.zero))
    right = [[*_unit(graph, len(rows), k), -rest] for k, rest in enumerate(Phi2)]
    try:
        solution = solve_linear(Phi1, right, system.magnitudes)
    except ZeroDivisionError as error:
        names = ", ".join(map(symbol_name, change.before.speeds))
        raise ModelError(f"the definitions of the new speeds cannot be solved for {names}: Phi1 is singular") from error
    return tuple(graph.sum([*(c * w for c, w in zip(row[:-1], speeds, strict=True)), row[-1]]) for row in solution)


def _definitions(system: System, change: SpeedChange) -> tuple[list[Node], tuple[Node, ...]]:
    """The definitions as nodes, and the inputs that stand for the speeds before."""
    former = tuple(system.graph.input(FORMER, i) for i in range(len(change.before.speeds)))
    symbols = {**system.leaves(), **dict(zip(change.before.speeds, former, strict=True))}
    lowering = Lowering(system.graph, symbols)
    return [lowering.lower(expression) for expression in change.definitions or ()], former


def _unit(graph: Graph, n: int, k: int) -> list[Node]:
    return [graph.one if j == k else graph.zero for j in range(n)]
