"""The functions of one program while they are being made: each once, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from kanegen.derivation.control.servo import ServoEquations, servo_equations
from kanegen.derivation.equations import Equations
from kanegen.derivation.quantity import Quantity
from kanegen.graph import Graph, Node
from kanegen.program.reasons import explained
from kanegen.program.records import Function, Guard, Invoke, Step, Store

Made: TypeAlias = tuple[tuple[Step, ...], tuple[int, ...], dict[str, int]]
"""Steps, shape and work arrays of a function."""


class Functions:
    """Functions of a model's program by name, with what their makers share."""

    def __init__(self, equations: Equations, form: str) -> None:
        self.equations = equations
        self.form = form
        self.graph = equations.graph
        self.n_q = len(equations.system.q)
        self.n_u = len(equations.system.u)
        self.n_c = len(equations.constraints.rows)
        self.stabilizable = bool(equations.gain_names)
        self.known: dict[str, Function] = {}

    @property
    def servo(self) -> ServoEquations:
        """The servo-constraints with their controls; ModelError where the controls cannot enforce them."""
        return self.equations.once(servo_equations)

    def add(self, function: Function) -> Function:
        self.known[function.name] = explained(function, self.equations)
        return self.known[function.name]

    def once(self, name: str, make: Callable[[], Function]) -> Function:
        """The function of that name, made when it is first asked for."""
        if name not in self.known:
            self.add(make())
        return self.known[name]

    def array(self, name: str, length: int) -> list[Node]:
        """The elements of a work array as nodes."""
        return [self.graph.input(name, i) for i in range(length)]

    def loaded(self, array: str, quantity: Quantity) -> list[list[Node]]:
        """A matrix or column from a work array; what does not change during a run is not read from there."""
        nodes = [node if node.constant else self.graph.input(array, k) for k, node in enumerate(quantity.nodes)]
        columns = quantity.shape[1] if len(quantity.shape) == 2 else 1
        return [nodes[i : i + columns] for i in range(0, len(nodes), columns)] if columns else []

    def accelerations(self) -> tuple[Invoke, list[Node]]:
        """The step that evaluates the right-hand side into the array ``a`` (n_q + n_u), and u' there."""
        function = self.known["rhs_stabilized" if self.stabilizable else "rhs"]
        return Invoke(function, "a"), self.array("a", self.n_q + self.n_u)[self.n_q :]

    def pivot_guard(self, limit: float, otherwise: str | None, *conditions: Node) -> tuple[Step, ...]:
        """Guard that the pivots of the model's own partition exceed ``limit`` of their rows, and ``conditions``."""
        held = [pivot.holds(limit) for pivot in self.equations.partition.pivots]
        condition = all_hold(self.graph, [*(c for c in held if c is not None), *conditions])
        return () if condition is None else (Guard(condition, otherwise),)


def stores(array: str, nodes: Sequence[Node], offset: int = 0) -> tuple[Store, ...]:
    return tuple(Store(array, offset + i, node) for i, node in enumerate(nodes))


def all_hold(graph: Graph, conditions: Sequence[Node]) -> Node | None:
    """One condition that all hold; None where there is none."""
    # What is constant during a run (masses that are not negative) stands together: prepare() decides it once.
    combined: Node | None = None
    for condition in sorted(conditions, key=lambda node: not node.constant):
        combined = condition if combined is None else graph.apply("and", combined, condition)
    return combined
