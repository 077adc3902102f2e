"""Common factors of the terms of sums: ``a*x*y + b*x*z`` becomes ``x*(a*y + b*z)``.

Derived equations are sums of products of masses, lengths, direction cosines and speeds. Horner's scheme does the same
for powers of one variable; for several variables the factor of most terms is taken first (Breuer 1969).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import mul
from typing import Final, NamedTuple

from kanegen.graph.derivatives import count_operations, reachable, rebuild
from kanegen.graph.nodes import Node
from kanegen.graph.sums import SUMS, inner_sums, signed_terms, use_counts

WORTHWHILE: Final = 0.97
"""Share of the operations up to which factored sums replace the given ones.

Time of one evaluation, measured with gcc 12 -O3: `rolling_disk` 0.79 (with 0.85 of the operations), `whipple_bicycle`
0.85 (0.95), `n_link_pendulum(2)` 0.93 (0.95), `slider_crank` 0.93 (0.94). Where fewer operations are saved, the other
order of the rest can take more time than it saves: `spatial_chain(2)` 1.03 (0.98).
"""


def factored(roots: Sequence[Node]) -> list[Node]:
    """The same values with common factors outside of sums, or ``roots`` if this saves few operations.

    Only sums and products that are used once change, so that no operation is repeated. The results are rounded in
    another order.
    """
    order = reachable(roots)
    uses = use_counts(order, roots)
    inner = inner_sums(order, uses)
    new: dict[Node, Node] = {}
    for node in order:
        new[node] = node if node.constant or not node.args else rebuild(node, tuple(new[x] for x in node.args))
        if node.op in SUMS and not node.constant and node not in inner:
            new[node] = _total([_Term.of(sign, _factors(x, uses, new)) for sign, x in signed_terms(node, inner)])
    result = [new[x] for x in roots]
    return result if count_operations(result) <= WORTHWHILE * count_operations(roots) else list(roots)


def _factors(node: Node, uses: Counter[Node], new: Mapping[Node, Node]) -> Iterator[Node]:
    """The factors of a node, through products that are used once; ``new``: the values that replace other nodes."""
    waiting = [node]
    while waiting:
        x = waiting.pop()
        if x.op == "mul" and not x.constant and uses[x] == 1:
            waiting += reversed(x.args)
        else:
            yield new[x]


class _Term(NamedTuple):
    """A signed product. At most the first factor is constant during a run; it is 1 only if there is no other one."""

    sign: int
    factors: tuple[Node, ...]

    @classmethod
    def of(cls, sign: int, factors: Iterable[Node]) -> _Term:
        coefficient, others = None, []
        for factor in factors:
            if factor.op == "neg":
                sign, factor = -sign, factor.args[0]
            if factor.constant:
                coefficient = factor if coefficient is None else coefficient * factor
            else:
                others.append(factor)
        if coefficient is None or (coefficient.is_one and others):
            return cls(sign, tuple(others))
        return cls(sign, (coefficient, *others))

    @property
    def value(self) -> Node:
        """The product without its sign."""
        return reduce(mul, self.factors)

    def has(self, factor: Node) -> bool:
        """Whether something remains without the factor: ``x + x*y`` has no more operations than ``x*(1 + y)``."""
        return factor in self.factors and len(self.factors) > 1

    def without(self, factor: Node) -> _Term:
        k = self.factors.index(factor)
        return _Term(self.sign, self.factors[:k] + self.factors[k + 1 :])


def _most_common(terms: Sequence[_Term]) -> Node | None:
    """The factor of most terms, or None if no two terms have one in common."""
    counts = Counter(factor for term in terms for factor in set(term.factors) if term.has(factor))
    best = max(counts, key=lambda x: (counts[x], not x.constant, -x.index), default=None)
    return best if best is not None and counts[best] > 1 else None


def _total(terms: list[_Term]) -> Node:
    """The sum of terms, with common factors outside."""
    while (factor := _most_common(terms)) is not None:
        place = next(k for k, term in enumerate(terms) if term.has(factor))
        inside = _total([term.without(factor) for term in terms if term.has(factor)])
        rest = [term for term in terms if not term.has(factor)]
        terms = [*rest[:place], _Term.of(1, (factor, inside)), *rest[place:]]
    total = terms[0].value if terms[0].sign > 0 else -terms[0].value
    for term in terms[1:]:
        total = total + term.value if term.sign > 0 else total - term.value
    return total
