"""Velocities as a sparse recursion in the speeds, read from the expression graph.

The derivation computes the velocity of a body from that of its neighbor. Every velocity component is therefore a sum
of few terms, ``velocity = sum coefficient * operand``, whose operands are speeds or other velocity components. No
record of joints is needed: the recursion follows from the operations on nodes that depend on the speeds, for any
generalized speeds and for frames and points that are given in any way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kanegen.graph import Node, reachable

Terms: TypeAlias = dict[Node, Node]
"""The coefficients of a sum by operand."""


@dataclass(frozen=True)
class Recursion:
    """``terms``: the speeds (without terms) and velocity components as sums, operands before results.

    ``turned``: pairs of components y and z of one vector after a rotation about an axis, ``y = c a + s b`` and
    ``z = c b - s a`` (or ``-z``) with ``c^2 + s^2 = 1``; both members are keys.
    """

    terms: Mapping[Node, Terms]
    turned: Mapping[Node, Node]


def velocity_recursion(
    velocities: Iterable[Node],
    speeds: Sequence[Node],
    partials: Sequence[Callable[[Node], Node]],
    residuals: Iterable[Node] = (),
) -> Recursion:
    """The recursion of velocity components and of the residuals of constraints.

    Those that do not depend on speeds are left out. ``partials`` are the derivatives with respect to the speeds. They
    give the terms of nodes that are not sums, multiples or quotients of operands that depend on speeds.
    """
    bodily = set(velocities)
    wanted = bodily.union(residuals)
    local: dict[Node, Terms] = {speed: {} for speed in speeds}
    for node in reachable(wanted):
        if node not in local and any(operand in local for operand in node.args):
            terms = _linear_terms(node, local)
            if terms is None:
                slopes = ((speed, partial(node)) for speed, partial in zip(speeds, partials, strict=True))
                terms = {speed: slope for speed, slope in slopes if not slope.is_zero}
            local[node] = terms
    turned, components = _rotations(local)
    users = Counter(operand for terms in local.values() for operand in terms)
    wanted |= {*speeds, *turned, *(operand for terms in components.values() for operand in terms)}
    for node in reversed(local):
        if node in bodily:
            bodily.update(local[node])
    kept: dict[Node, Terms] = {}
    inlined: dict[Node, Terms] = {}
    for node, terms in local.items():
        total = components[node] if node in turned else _expanded(terms, inlined)
        # A multiple of one speed is no component of its own if only constraints contain it.
        shared = users[node] > 1 and not (_is_sign(total) if node in bodily else len(total) == 1)
        (kept if node in wanted or shared else inlined)[node] = total
    return Recursion(kept, turned)


def _linear_terms(node: Node, local: Mapping[Node, Terms]) -> Terms | None:
    """The terms of a sum, a multiple or a quotient; None if the node is none of these."""
    graph, args = node.graph, node.args
    moved = [operand for operand in args if operand in local]
    match node.op:
        case "add":
            return dict.fromkeys(moved, graph.one)
        case "sub":
            signs = {args[0]: graph.one, args[1]: graph.const(-1)}
            return {operand: signs[operand] for operand in moved}
        case "neg":
            return {args[0]: graph.const(-1)}
        case "mul" if len(moved) == 1 and args[0] is not args[1]:
            return {moved[0]: args[1] if args[0] is moved[0] else args[0]}
        case "div" if moved == [args[0]]:
            return {args[0]: graph.div(graph.one, args[1])}
    return None


def _expanded(terms: Terms, inlined: Mapping[Node, Terms]) -> Terms:
    """The terms with the operands in ``inlined`` replaced by their own terms."""
    total: Terms = {}
    for operand, factor in terms.items():
        for node, coefficient in inlined.get(operand, {operand: factor.graph.one}).items():
            product = factor * coefficient
            total[node] = total[node] + product if node in total else product
    return {node: coefficient for node, coefficient in total.items() if not coefficient.is_zero}


def _is_sign(terms: Terms) -> bool:
    """Whether a component is another one or its negative."""
    return len(terms) == 1 and all(x.op == "const" and abs(x.payload) == 1 for x in terms.values())


# -- rotations about an axis ---------------------------------------------------------------------------------


def _rotations(local: Mapping[Node, Terms]) -> tuple[dict[Node, Node], dict[Node, Terms]]:
    """Each component of a rotated pair, with the other component of the pair, and with its terms."""
    waiting: dict[object, list[tuple[Node, Terms]]] = {}
    pairs: dict[Node, Node] = {}
    components: dict[Node, Terms] = {}
    for node in local:
        terms = _turned_terms(node, local)
        if terms is None:
            continue
        angle = next(iter(terms.values()))
        angle = angle.args[0] if angle.op == "neg" else angle
        others = waiting.setdefault((angle.args[0], frozenset(terms)), [])
        for other in others:
            if _is_orthogonal(terms, other[1]):
                pairs[node], pairs[other[0]] = other[0], node
                components |= {node: terms, other[0]: other[1]}
                others.remove(other)
                break
        else:
            others.append((node, terms))
    return pairs, components


def _turned_terms(node: Node, local: Mapping[Node, Terms]) -> Terms | None:
    """The terms of ``c a + s b`` with the sine and the cosine of one angle, signs included."""
    products = local[node]
    if len(products) != 2 or any(len(local[x]) != 1 for x in products):
        return None
    terms: Terms = {}
    for product, sign in products.items():
        ((operand, factor),) = local[product].items()
        if product.op != "mul" or sign.op != "const" or factor.op not in ("sin", "cos"):
            return None
        terms[operand] = sign * factor
    functions = {factor.op for product in products for factor in local[product].values()}
    angles = {factor.args[0] for product in products for factor in local[product].values()}
    return terms if len(terms) == 2 and functions == {"sin", "cos"} and len(angles) == 1 else None


def _is_orthogonal(y: Terms, z: Terms) -> bool:
    (a, alpha), (b, beta) = y.items()
    return (z[a] is -beta and z[b] is alpha) or (z[a] is beta and z[b] is -alpha)
