"""Functions that choose, and whose derivatives SymPy takes: of its own ``Max``, they are Heaviside functions of
differences whose sign it tries to decide, which takes minutes for closest points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import sympy

from kanegen.graph.functions import applied_class
from kanegen.graph.nodes import Graph, Node


class Choice:
    """A function of two arguments that becomes a node of the graph with two operands.

    ``derivatives``: by argument, a function of both SymPy arguments.
    """

    arity: Final = 2
    domains: Final = (None, None)
    units: Final = None

    def __init__(
        self,
        name: str,
        python: Callable[..., Any],
        make: Callable[[Graph, Node, Node], Node],
        derivatives: tuple[Callable[..., Any], ...],
    ) -> None:
        self.name, self.python, self._make, self._derivatives = name, python, make, derivatives
        self._applied = applied_class(self)

    def __call__(self, first: Any, second: Any) -> Any:
        """The SymPy expression of the function."""
        return self._applied(first, second)

    def node(self, graph: Graph, arguments: Sequence[Node]) -> Node:
        """The node of the function of two nodes."""
        return self._make(graph, *arguments)

    def derivative_at(self, index: int) -> Callable[..., Any]:
        """The derivative with respect to an argument."""
        return self._derivatives[index]


def _zero(*_: Any) -> Any:
    return sympy.S.Zero


at_least: Final = Choice(
    "at_least",
    lambda x, y: np.where(x >= y, 1.0, 0.0),
    lambda graph, x, y: graph.select(graph.apply("lt", x, y), graph.zero, graph.one),
    (_zero, _zero),
)
"""1 if the first argument is at least the second one, else 0."""

larger: Final = Choice(
    "larger",
    np.maximum,
    lambda graph, x, y: graph.apply("max", x, y),
    (at_least, lambda x, y: 1 - at_least(x, y)),
)
"""The larger one of two arguments."""


def smaller(x: Any, y: Any) -> Any:
    """The smaller one of two arguments."""
    return -larger(-x, -y)


def clamped(value: Any, half: Any) -> Any:
    """The number between ``-half`` and ``half`` that is nearest to ``value``."""
    return smaller(larger(value, -half), half) if half != 0 else half
