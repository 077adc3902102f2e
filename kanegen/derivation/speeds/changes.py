"""Models over the graph with the speeds before every change of speeds, ``u = Phi1^-1 (w - Phi2)``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kanegen.derivation.algebra.elimination import solve_linear
from kanegen.derivation.geometry.system import System
from kanegen.derivation.geometry.variables import FORMER, Variables
from kanegen.derivation.speeds.orthogonal import original_speeds, orthogonal_speeds
from kanegen.errors import DerivationError, ModelError
from kanegen.graph import Graph, Lowering, Node, gradient, substitute
from kanegen.model.description import SpeedChange, SystemDescription
from kanegen.model.expressions import symbol_name


def lower_model(model: SystemDescription, graph: Graph | None = None) -> System:
    """The model as nodes of a graph, a new one where none is given.

    Raises
    ------
    DerivationError
        Where an expression cannot be lowered, or no speeds make the kinetic-energy matrix diagonal.
    ModelError
        Where the kinematics, or the definitions of new speeds, are singular.
    """
    variables = Variables(model, graph)
    return System(model, variables.graph, _former_speeds(variables))


def _former_speeds(variables: Variables) -> dict[Any, Node]:
    """The speeds of all models before in those of the model itself."""
    former: dict[Any, Node] = {}
    speeds: Sequence[Node] = variables.u
    for change in variables.model.speed_changes:
        speeds = _inverse(variables, change, speeds)
        former.update(zip(change.before.speeds, speeds, strict=True))
    return former


def model_before(model: SystemDescription) -> SystemDescription:
    """The model before the last change of speeds; ``DerivationError`` where there was none."""
    if model.speed_change is None:
        raise DerivationError(f"the speeds of model {model.name!r} were not changed: use with_speeds")
    return model.speed_change.before


def new_speeds(system: System) -> tuple[Node, ...]:
    """``w = Phi1 u + Phi2``, the inputs ``u`` of the graph standing for the speeds before the last change."""
    change = system.model.speed_changes[0]
    if change.definitions is None:
        return orthogonal_speeds(lower_model(change.before, system.graph), system.u)
    rows, former = _definitions(system, change)
    return tuple(substitute(rows, dict(zip(former, system.u, strict=True))))


def _inverse(variables: Variables, change: SpeedChange, speeds: Sequence[Node]) -> tuple[Node, ...]:
    """The speeds before ``change`` in ``speeds``, those after it."""
    graph = variables.graph
    if change.definitions is None:
        return original_speeds(lower_model(change.before, graph), speeds)
    rows, former = _definitions(variables, change)
    Phi1 = [gradient([row], [graph.one], former) for row in rows]
    Phi2 = substitute(rows, dict.fromkeys(former, graph.zero))
    right = [[*_unit(graph, len(rows), k), -rest] for k, rest in enumerate(Phi2)]
    try:
        solution = solve_linear(Phi1, right, variables.magnitudes)
    except ZeroDivisionError as error:
        names = ", ".join(map(symbol_name, change.before.speeds))
        raise ModelError(f"the definitions of the new speeds cannot be solved for {names}: Phi1 is singular") from error
    return tuple(graph.sum([*(c * w for c, w in zip(row[:-1], speeds, strict=True)), row[-1]]) for row in solution)


def _definitions(variables: Variables, change: SpeedChange) -> tuple[list[Node], tuple[Node, ...]]:
    """The definitions as nodes, and the inputs that stand for the speeds before."""
    former = tuple(variables.graph.input(FORMER, i) for i in range(len(change.before.speeds)))
    symbols = {**variables.symbols, **dict(zip(change.before.speeds, former, strict=True))}
    lowering = Lowering(variables.graph, symbols)
    return [lowering.lower(expression) for expression in change.definitions or ()], former


def _unit(graph: Graph, n: int, k: int) -> list[Node]:
    return [graph.one if j == k else graph.zero for j in range(n)]
