"""Whether expressions are zero or equal, in whatever units their values are.

Residues (:mod:`kanegen.graph.identities`) decide where they can: a residue of zero means zero, and a residue other than
zero means that an expression of sums, products and quotients of exact numbers, inputs, and sines and cosines of inputs
is not zero. All other expressions are compared by values at some states. A value counts as zero if it changes as much
as its size when every operation gets a relative error of ``RELATIVE_ZERO`` (stochastic arithmetic, Vignes 1993): this
is where the terms of sums cancel, and nowhere else, so that factors such as 1e-12 change no decision.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Final, TypeAlias

from kanegen.graph.cases import jump_with, may_differ_elsewhere
from kanegen.graph.derivatives import Tangent, reachable, substitute
from kanegen.graph.interpret import PYTHON, Context, evaluate
from kanegen.graph.nodes import CONDITIONS, Node
from kanegen.graph.residues import Residues

RELATIVE_ZERO: Final = 1e-10
"""A value at a random state that is smaller than this, relative to its terms, counts as identically zero: far above
rounding errors (1e-16 times the number of operations) and those of constants that the user rounded to ten digits, far
below generic values at random arguments."""

State: TypeAlias = Mapping[str, Sequence[float]]

_FIELD: Final = frozenset({"input", "add", "sub", "mul", "neg", "div", "reciprocal"})
"""Operations whose residues are zero for expressions that are identically zero, and for no others."""

_UNROUNDED: Final = frozenset({*CONDITIONS, "const", "input", "neg", "abs", "min", "max", "not", "select"})
"""Operations without a rounding error, or whose results are choices."""

_DISTURBED: Final = 2
"""Evaluations with errors: that of one could happen to be small."""


@dataclass(frozen=True)
class Value:
    """The value of a node at a state, and by how much errors of ``RELATIVE_ZERO`` change it."""

    value: float
    error: float

    @property
    def is_zero(self) -> bool:
        """False for NaN."""
        return abs(self.value) <= self.error

    def equals(self, other: Value, size: float) -> bool:
        """Whether two values differ by errors only, those relative to ``size`` included; true without a number."""
        difference = abs(self.value - other.value)
        return not difference > self.error + other.error + RELATIVE_ZERO * size


class Decisions:
    """Decisions on nodes of one graph, at ``states`` where residues cannot decide.

    ``everywhere``: the states satisfy no conditions. Where they do, such as unit norms of Euler parameters, expressions
    can be zero for which the residues, which satisfy none, are not.
    """

    def __init__(self, states: Sequence[State], everywhere: bool) -> None:
        self._states = states
        self._everywhere = everywhere
        self._residues = Residues(1)
        self._exact: dict[int, bool] = {}

    def are_zero(self, nodes: Iterable[Node]) -> bool:
        """Whether all nodes are identically zero, by their residues or at every state."""
        left = [node for node in nodes if not node.is_zero]
        known = self._known(left)
        if any(residue != 0 and exact for residue, exact in known):
            return False
        undecided = [node for node, (residue, _) in zip(left, known, strict=True) if residue != 0]
        return vanish_at(undecided, self._states)

    def are_zero_in_all_cases(self, nodes: Iterable[Node]) -> bool:
        """Whether all nodes are identically zero; those with cases (``Max``, a spline) in all of them."""
        nodes = list(nodes)
        return self.are_zero(nodes) and not may_differ_elsewhere(nodes)

    def are_constant(self, nodes: Iterable[Node], variables: Sequence[Node]) -> bool:
        """Whether no node changes with the variables: by a slope, by a jump, or where they change their signs."""
        nodes = list(nodes)
        partials = [Tangent(variable.graph, {variable: variable.graph.one}) for variable in variables]
        slopes = (partial(node) for node in nodes for partial in partials)
        if not self.are_zero_in_all_cases(slopes) or jump_with(nodes, variables):
            return False
        opposite = substitute(nodes, {variable: -variable for variable in variables})
        return all(self.are_equal([x], [y]) for x, y in zip(nodes, opposite, strict=True))

    def are_equal(self, a: Sequence[Node], b: Sequence[Node]) -> bool:
        """Whether two vectors, whose components have one unit, are equal at every state where they have values."""
        left = [(x, y) for x, y in zip(a, b, strict=True) if x is not y]
        undecided = []
        for (x, y), (r, r_exact), (s, s_exact) in zip(
            left, self._known([x for x, _ in left]), self._known([y for _, y in left]), strict=True
        ):
            if r is None or s is None or r != s:
                if r is not None and s is not None and r_exact and s_exact:
                    return False
                undecided.append((x, y))
        return not undecided or all(_equal_at(a, b, state) for state in self._states)

    def _known(self, nodes: Sequence[Node]) -> list[tuple[int | None, bool]]:
        """The residue of each node, and whether a residue other than zero shows that the node is not zero."""
        for node in reachable(nodes):
            if node.index not in self._exact:
                self._residues(node)
                self._exact[node.index] = _in_field(node) and all(self._exact[a.index] for a in node.args)
        residues = [self._residues(node) for node in nodes]
        return [
            (r, r is not None and self._everywhere and self._exact[node.index])
            for r, node in zip(residues, nodes, strict=True)
        ]


def vanish_at(nodes: Sequence[Node], states: Iterable[State]) -> bool:
    """Whether all nodes are zero, but for rounding, at every one of the states."""
    return not nodes or all(value.is_zero for state in states for value in values_at(nodes, state))


def values_at(nodes: Sequence[Node], state: State) -> list[Value]:
    """Values of nodes at a state, with their errors."""
    generator = random.Random(7151)
    disturbed = [evaluate(nodes, state, with_errors(generator)) for _ in range(_DISTURBED)]
    return [
        Value(value, max(abs(other - value) for other in others))
        for value, *others in zip(evaluate(nodes, state), *disturbed, strict=True)
    ]


def _equal_at(a: Sequence[Node], b: Sequence[Node], state: State) -> bool:
    values = values_at([*a, *b], state)
    size = max((abs(item.value) for item in values if isfinite(item.value)), default=0.0)
    return all(x.equals(y, size) for x, y in zip(values[: len(a)], values[len(a) :], strict=True))


def _in_field(node: Node) -> bool:
    """Whether the operation of a node is exact, or the sine or cosine of an input, which no identity connects."""
    if node.op == "const":
        return not isinstance(node.payload, float)  # a float is a rounded number
    return node.op in _FIELD or (node.op in {"sin", "cos"} and node.args[0].op == "input")


def with_errors(generator: random.Random) -> Context:
    """Python floats with a random relative error, up to ``RELATIVE_ZERO``, of every rounded operation."""

    def result(node: Node, value: Any) -> Any:
        return value if node.op in _UNROUNDED else value * (1.0 + RELATIVE_ZERO * generator.uniform(-1.0, 1.0))

    return replace(PYTHON, result=result)
