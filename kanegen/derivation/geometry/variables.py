"""The variables of a model as nodes of one graph, and values of expressions at random states."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

from sympy.physics.vector import dynamicsymbols

from kanegen.graph import Graph, Lowering, Node, evaluate, substitute
from kanegen.model.description import SystemDescription

RELATIVE_ZERO: Final = 1e-10
"""Below this, relative to its terms, a value at a random state is taken for an identical zero: far above rounding
(1e-16 times the number of operations), far below what a generic expression gives at random arguments."""

FORMER: Final = "former"
"""Input array of the graph that holds the speeds before one change of speeds while the change is inverted."""


class Variables:
    """The input nodes of one model: t, q, u, u', auxiliary speeds, inputs r (hidden ones last), parameters p."""

    def __init__(self, model: SystemDescription, graph: Graph | None = None) -> None:
        self.model = model
        self.graph = graph = Graph() if graph is None else graph
        self.t = graph.input("t", 0)
        self.q = tuple(graph.input("q", i) for i in range(len(model.coordinates)))
        self.u = tuple(graph.input("u", i) for i in range(len(model.speeds)))
        self.udot = tuple(graph.input("udot", i) for i in range(len(model.speeds)))
        self.auxiliary = tuple(graph.input("aux", i) for i in range(len(model.auxiliary_speeds)))
        layout = model.input_layout
        r = tuple(graph.input("r", i) for i in range(layout.size))
        self.r, self.multipliers, self.free = r[: len(layout.inputs)], r[layout.multiplier_slots], r[layout.free_slots]
        self.hidden = (*self.multipliers, *self.free)
        self.p = tuple(graph.input("p", i) for i in range(len(model.parameters)))
        self.symbols = self._input_symbols()
        lowering = Lowering(graph, self.symbols)
        self.input_rates = tuple(None if item.rate is None else lowering.lower(item.rate) for item in model.inputs)
        """The rate of each input, None where it has none: the model refuses a missing rate that is needed."""

    def _input_symbols(self) -> dict[Any, Node]:
        """The symbols that are inputs of the graph."""
        model = self.model
        symbols: dict[Any, Node] = {dynamicsymbols._t: self.t}
        for items, nodes in (
            (model.coordinates, self.q),
            (model.speeds, self.u),
            (model.auxiliary_speeds, self.auxiliary),
            (model.parameters, self.p),
            (model.input_symbols, (*self.r, *self.hidden)),
        ):
            symbols.update(zip(items, nodes, strict=True))
        return symbols

    def at_rest(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes at u = 0."""
        return substitute(nodes, dict.fromkeys((*self.u, *self.auxiliary), self.graph.zero))

    def settled(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """The nodes with the auxiliary speeds, which are always zero, put to zero."""
        if not self.auxiliary:
            return tuple(nodes)
        return tuple(substitute(nodes, dict.fromkeys(self.auxiliary, self.graph.zero)))

    def without_accelerations(self, node: Node) -> Node:
        """The node at u' = 0."""
        return substitute([node], dict.fromkeys(self.udot, self.graph.zero))[0]

    # -- random states --------------------------------------------------------------------------------------

    @cached_property
    def states(self) -> tuple[dict[str, list[float]], ...]:
        """Three random states; parameters are positive, as masses and lengths must be."""
        generator = random.Random(20031)
        sizes = {
            "q": len(self.q), "u": len(self.u), "r": len(self.r) + len(self.hidden), "t": 1,
            "udot": len(self.u), "qdot": len(self.q), "g": 0, "aux": len(self.auxiliary),
            FORMER: len(self.u) if self.model.speed_change else 0,
        }  # fmt: skip
        states = []
        for _ in range(3):
            state = {name: [generator.uniform(0.2, 1.1) for _ in range(n)] for name, n in sizes.items()}
            state["p"] = [generator.uniform(0.5, 1.5) for _ in self.p]
            states.append(state)
        return tuple(states)

    def samples(self, nodes: Sequence[Node]) -> list[tuple[float, ...]]:
        """Values of each node at the random states (NaN where it is undefined there)."""
        columns = [evaluate(nodes, state) for state in self.states]
        return list(zip(*columns, strict=True))

    def magnitudes(self, nodes: Sequence[Node]) -> list[float]:
        """The smallest absolute value of each node over the random states; 0 for what vanishes at one of them."""
        return [min(abs(value) for value in values) for values in self.samples(nodes)]

    def vanish(self, nodes: Iterable[Node]) -> bool:
        """Whether all nodes are identically zero, structurally or at every random state."""
        left = [node for node in nodes if not node.is_zero]
        return all(abs(v) < RELATIVE_ZERO for values in self.samples(left) for v in values) if left else True

    def agree(self, a: Sequence[Node], b: Sequence[Node]) -> bool:
        """Whether two vectors agree at every random state."""
        if tuple(a) == tuple(b):
            return True
        for x, y in zip(self.samples(a), self.samples(b), strict=True):
            if any(abs(v - w) > RELATIVE_ZERO * (1.0 + abs(v)) for v, w in zip(x, y, strict=True)):
                return False
        return True
