"""Which states and inputs each calculated variable of an FMU depends on, from the expression graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kanegen.derivation import Equations
from kanegen.derivation.control.feedback import feedback_laws
from kanegen.emission.fmu.variables import OUTPUT, FmuVariable, Table
from kanegen.graph import Node, reachable
from kanegen.program.catalogue import REACTION

Known = tuple[str, int]
"""A known variable: ("STATE", index in y) or ("INPUT", index in r)."""


class Dependencies:
    """The states and inputs on which the variables of a table depend, structurally."""

    def __init__(self, equations: Equations, table: Table) -> None:
        self._equations = equations
        self._table = table
        self._places = {(v.group, v.index): k for k, v in enumerate(table.variables) if v.group in ("STATE", "INPUT")}
        self._all = frozenset(self._places)
        self._laws: frozenset[Known] | None = None
        self._accelerations: frozenset[Known] | None = None

    def of(self, place: int) -> list[int]:
        """Places of the known variables on which the variable at ``place`` depends, ascending."""
        variable = self._table.variables[place]
        return sorted(self._places[known] for known in self._known(variable))

    def _known(self, variable: FmuVariable) -> frozenset[Known]:
        if variable.group in ("MODE", "COUNT") or variable.variability == "discrete":
            return frozenset()
        if variable.group == "STATE":
            return frozenset({("STATE", variable.index)})
        if variable.group == "RATE":
            return self._of_rate(variable.index)
        if variable.group == "VALUE":
            return self._of_value(variable)
        if variable.group == "LAW":
            return self._of_laws()
        return self._all

    def _of_rate(self, index: int) -> frozenset[Known]:
        system = self._equations.system
        n_q, n_u = len(system.q), len(system.u)
        if index < n_q:
            return self._of_nodes([system.qdot[index]])
        if index < n_q + n_u:
            return self._of_accelerations()
        return self._of_nodes([system.sdot[index - n_q - n_u]])

    def _of_value(self, variable: FmuVariable) -> frozenset[Known]:
        function = self._table.functions[variable.function]
        name = function.name
        if name.startswith(OUTPUT):
            nodes = self._equations.outputs[name.removeprefix(OUTPUT)].nodes
            return self._of_nodes([nodes[variable.index - function.first]])
        if name == "control" or name.startswith(REACTION):
            return self._all
        return self._of_nodes(getattr(self._equations, name).nodes)

    def _of_laws(self) -> frozenset[Known]:
        if self._laws is None:
            self._laws = self._all  # a law that reads another one
            self._laws = self._of_nodes(self._equations.once(feedback_laws))
        return self._laws

    def _of_accelerations(self) -> frozenset[Known]:
        """All accelerations follow from one system of equations, and with contacts from their forces."""
        if self._accelerations is None:
            e = self._equations
            if e.model.resolved_contacts:
                self._accelerations = self._all
            else:
                parts = (e.M, e.P, e.J, e.b_stabilized)
                self._accelerations = self._of_nodes([node for part in parts for node in part.nodes])
        return self._accelerations

    def _of_nodes(self, nodes: Iterable[Node]) -> frozenset[Known]:
        inputs = {node.payload for node in reachable(nodes) if node.op == "input"}
        return frozenset(known for array, index in inputs for known in self._of_input(array, index))

    def _of_input(self, array: str, index: int) -> Iterator[Known]:
        n_q, n_u = len(self._equations.system.q), len(self._equations.system.u)
        if array in ("t", "p", "g"):
            return
        if array == "q":
            yield ("STATE", index)
        elif array == "u":
            yield ("STATE", n_q + index)
        elif array == "udot":
            yield from self._of_accelerations()
        elif array == "r" and ("INPUT", index) in self._places:
            yield ("INPUT", index)
        elif array == "r":
            yield from self._of_laws()
        elif array == "s":
            yield ("STATE", n_q + n_u + index)
        else:  # multipliers
            yield from self._all
