"""Changes of generalized speeds: ``w = Phi1 u + Phi2`` by the user's definitions, or speeds that make Q diagonal.

A model with new speeds w keeps the former speeds as nodes of the graph, ``u = Phi1^-1 (w - Phi2)``. Speeds with a
diagonal kinetic-energy matrix are ``w = L^T u`` with ``Q = L D L^T``. This is the Gram-Schmidt orthogonalization of the
partial velocities in the metric of the masses, in the order of the speeds (Bajodah 2003, section 2.6; Golub and Van
Loan 2013, section 4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kanegen.derivation.geometry.system import FORMER, System, Variables
from kanegen.errors import DerivationError, ModelError, brief
from kanegen.graph import Graph, Identities, Lowering, Node, evaluate, gradient, substitute
from kanegen.graph.linear import solve_linear
from kanegen.graph.ranks import RANK_TOLERANCE
from kanegen.model.description import SpeedChange, SystemDescription
from kanegen.model.expressions import symbol_name


def lower_model(model: SystemDescription, graph: Graph | None = None) -> System:
    """Lower the model to nodes of ``graph``, by default of a new graph.

    Raises
    ------
    DerivationError
        If an expression cannot be lowered, or no speeds make the kinetic-energy matrix diagonal.
    ModelError
        If the kinematical equations or the definitions of new speeds are singular.
    """
    if not isinstance(model, SystemDescription):
        raise ModelError(f"the model is {brief(model)}; expected a kanegen.Model")
    variables = Variables(model, graph)
    former: dict[Any, Node] = {}
    speeds: Sequence[Node] = variables.u
    for change in model.speed_changes:
        speeds = _inverse(variables, change, speeds)
        former.update(zip(change.before.speeds, speeds, strict=True))
    return System(model, variables.graph, former)


def model_before(model: SystemDescription) -> SystemDescription:
    """The model before the last change of speeds; ``DerivationError`` if there was none."""
    if model.speed_change is None:
        raise DerivationError(f"the speeds of model {model.name!r} were not changed: use with_speeds")
    return model.speed_change.before


def new_speeds(system: System) -> tuple[Node, ...]:
    """``w = Phi1 u + Phi2``, where the inputs ``u`` of the graph denote the speeds before the last change."""
    change = system.model.speed_changes[0]
    if change.definitions is None:
        L, u, n = factors(lower_model(change.before, system.graph)).lower, system.u, len(system.u)
        return tuple(system.graph.sum([u[j], *(L[i][j] * u[i] for i in range(j + 1, n))]) for j in range(n))
    rows, former = _definitions(system, change)
    return tuple(substitute(rows, dict(zip(former, system.u, strict=True))))


def _inverse(variables: Variables, change: SpeedChange, speeds: Sequence[Node]) -> Sequence[Node]:
    """The speeds before ``change`` as functions of ``speeds``, the speeds after it."""
    graph, n = variables.graph, len(speeds)
    if change.definitions is None:
        L, u = factors(lower_model(change.before, graph)).lower, list(speeds)
        for j in reversed(range(n)):
            u[j] = graph.sum([u[j], *(-(L[i][j] * u[i]) for i in range(j + 1, n))])
        return u
    rows, former = _definitions(variables, change)
    Phi1 = [gradient([row], [graph.one], former) for row in rows]
    Phi2 = substitute(rows, dict.fromkeys(former, graph.zero))
    right = [[*(graph.one if j == k else graph.zero for j in range(n)), -rest] for k, rest in enumerate(Phi2)]
    try:
        solution = solve_linear(Phi1, right, variables.samples).rows
    except ZeroDivisionError as error:
        names = ", ".join(map(symbol_name, change.before.speeds))
        raise ModelError(f"the definitions of the new speeds cannot be solved for {names}: Phi1 is singular") from error
    return [graph.sum([*(c * w for c, w in zip(row[:-1], speeds, strict=True)), row[-1]]) for row in solution]


def _definitions(variables: Variables, change: SpeedChange) -> tuple[list[Node], tuple[Node, ...]]:
    """The definitions as nodes, and the inputs that denote the former speeds."""
    former = tuple(variables.graph.input(FORMER, i) for i in range(len(change.before.speeds)))
    symbols = {**variables.symbols, **dict(zip(change.before.speeds, former, strict=True))}
    lowering = Lowering(variables.graph, symbols)
    return [lowering.lower(expression) for expression in change.definitions or ()], former


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
        If Q is singular, naming the speed that moves no mass independently of the others.
    """
    from kanegen.derivation.forces.inertia import inertia_of  # most models need it only when they are derived

    graph, before = former.graph, former.model
    identities = Identities(graph)
    Q = [list(identities.canonical(row)) for row in inertia_of(former).matrix()]
    n = len(Q)
    entries = [Q[k][k] for k in range(n)]
    lower = [[graph.zero] * k for k in range(n)]
    diagonal: list[Node] = []
    for k in range(n):
        (pivot,) = identities.canonical([Q[k][k]])
        if not _has_mass(former, pivot, entries[k]):
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


def _has_mass(former: System, pivot: Node, whole: Node) -> bool:
    """Whether a pivot is more than rounding of the diagonal entry of Q it is left of, at states of some size."""
    for states in former.states_of_every_size():
        pairs = [evaluate([pivot, whole], state) for state in states]
        if all(abs(left) > RANK_TOLERANCE * abs(entry) for left, entry in pairs):
            return True
    return False
