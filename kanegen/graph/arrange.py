"""Sums and products with fewer operations, which wait less for each other.

Common factors are taken out of sums: ``a*x*y + b*x*z`` becomes ``x*(a*y + b*z)``. Derived equations are sums of
products of masses, lengths, direction cosines and speeds. Horner's scheme does the same for powers of one variable; for
several variables the factor of most terms is taken first (Breuer 1969, "Generation of optimal code for expressions via
factorization"). Terms are added, and factors multiplied, in the order in which they become known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kanegen.graph.balance import Balancer
from kanegen.graph.derivatives import count_operations, reachable, rebuild
from kanegen.graph.nodes import Node
from kanegen.graph.sums import SUMS, inner_sums, signed_terms, use_counts

WORTHWHILE: Final = 0.97
"""Share of the operations up to which the new sums and products replace the given ones.

Time measured with gcc 12 -O3, one evaluation and an integration with `verner9`: `rolling_disk` 0.91 and 0.98 (with 0.92
of the operations), `whipple_bicycle` 0.98 and 0.98 (0.95), `slider_crank` 0.98 and 0.98 (0.95), `n_link_pendulum(2)`
1.00 and 0.97 (0.95). Where fewer operations are saved, the other order of the rest can take more time:
`spatial_chain(4)` 1.03 with as many operations, and 1.06 on vector lanes.
"""


def arranged(roots: Sequence[Node]) -> list[Node]:
    """The same values by fewer operations, or ``roots`` if few are saved.

    Only sums and products that are used once are taken apart, so that no operation is repeated. Results are rounded in
    another order.
    """
    order = reachable(roots)
    uses = use_counts(order, roots)
    inner, products, arrangement = inner_sums(order, uses), _inner_products(order, uses), _Arrangement()
    new: dict[Node, Node] = {}
    for node in order:
        if node.constant or not node.args:
            new[node] = node
        elif node.op in SUMS and node not in inner:
            terms = [_Term.of(sign, _factors([x], products, new)) for sign, x in signed_terms(node, inner)]
            new[node] = arrangement.sum(terms)
        elif node.op == "mul" and node not in products:
            new[node] = arrangement.sum([_Term.of(1, _factors(node.args, products, new))])
        elif node not in inner and node not in products:
            new[node] = rebuild(node, tuple(new[x] for x in node.args))
    result = [new[x] for x in roots]
    return result if count_operations(result) <= WORTHWHILE * count_operations(roots) else list(roots)


def _inner_products(order: Sequence[Node], uses: Counter[Node]) -> set[Node]:
    """The products that are used once, in a sum or product."""
    users = [node for node in order if node.op in (*SUMS, "mul") and not node.constant]
    return {x for node in users for x in node.args if x.op == "mul" and uses[x] == 1 and not x.constant}


def _factors(nodes: Iterable[Node], products: set[Node], new: Mapping[Node, Node]) -> Iterator[Node]:
    """The factors of a product, through those in ``products``; ``new``: the values that replace other nodes."""
    waiting = list(nodes)
    while waiting:
        x = waiting.pop()
        if x in products:
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

    def has(self, factor: Node) -> bool:
        """Whether something remains without the factor: ``x + x*y`` has no more operations than ``x*(1 + y)``."""
        return factor in self.factors and len(self.factors) > 1

    def without(self, factor: Node) -> _Term:
        k = self.factors.index(factor)
        return _Term(self.sign, self.factors[:k] + self.factors[k + 1 :])


class _Arrangement:
    """Sums of products."""

    def __init__(self) -> None:
        self._balance = Balancer()

    def sum(self, terms: list[_Term]) -> Node:
        """The sum of terms, with common factors outside unless it would be known later."""
        rejected: set[Node] = set()
        while (factor := _most_common(terms, rejected)) is not None:
            common = [term for term in terms if term.has(factor)]
            inside = [term.without(factor) for term in common]
            together = _Term(1, (factor, self._plain(inside)))
            if self._time([together]) > self._time(common):
                rejected.add(factor)
                continue
            place = next(k for k, term in enumerate(terms) if term.has(factor))
            rest = [term for term in terms if not term.has(factor)]
            terms = [*rest[:place], _Term.of(1, (factor, self.sum(inside))), *rest[place:]]
        return self._plain(terms)

    def _plain(self, terms: Sequence[_Term]) -> Node:
        return self._balance.sum((term.sign, self._balance.product(term.factors)) for term in terms)

    def _time(self, terms: Sequence[_Term]) -> int:
        return self._balance.time(self._plain(terms))


def _most_common(terms: Sequence[_Term], rejected: set[Node]) -> Node | None:
    """The factor of most terms that is not rejected, or None if no two terms have one in common."""
    counts = Counter(x for term in terms for x in set(term.factors) if term.has(x) and x not in rejected)
    best = max(counts, key=lambda x: (counts[x], not x.constant, -x.index), default=None)
    return best if best is not None and counts[best] > 1 else None
