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
class Turn:
    """Components of one vector after a rotation about an axis.

    ``y_sign y = cosine a + sine b`` and ``z_sign z = cosine b - sine a``, with signs 1 or -1.
    """

    y: Node
    z: Node
    y_sign: int
    z_sign: int
    a: Node
    b: Node
    cosine: Node
    sine: Node

    @property
    def members(self) -> tuple[Node, Node]:
        """Both components."""
        return self.y, self.z

    @property
    def signed(self) -> tuple[tuple[Node, int], tuple[Node, int]]:
        """Both components with their signs."""
        return (self.y, self.y_sign), (self.z, self.z_sign)

    @property
    def operands(self) -> frozenset[Node]:
        """The components before the rotation."""
        return frozenset((self.a, self.b))


@dataclass(frozen=True)
class Recursion:
    """``terms``: the speeds (without terms) and velocity components as sums, operands before results.

    ``turned``: the rotation of each component of a rotated pair.
    """

    terms: Mapping[Node, Terms]
    turned: Mapping[Node, Turn]


def velocity_recursion(
    velocities: Iterable[Node],
    speeds: Sequence[Node],
    partials: Sequence[Callable[[Node], Node]],
    residuals: Iterable[Node] = (),
) -> Recursion:
    """The recursion of velocity components and of the residuals of constraints.

    Nodes without speeds are left out. ``partials`` are the derivatives with respect to the speeds. They
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


def _rotations(local: Mapping[Node, Terms]) -> tuple[dict[Node, Turn], dict[Node, Terms]]:
    """The rotation of each component of a rotated pair, and its terms."""
    waiting: dict[object, list[tuple[Node, Terms]]] = {}
    turned: dict[Node, Turn] = {}
    components: dict[Node, Terms] = {}
    for node in local:
        terms = _turned_terms(node, local)
        if terms is None:
            continue
        angle = _signed(next(iter(terms.values())))[1].args[0]
        others = waiting.setdefault((angle, frozenset(terms)), [])
        for other in others:
            turn = _turn((node, terms), other) or _turn(other, (node, terms))
            if turn is not None:
                turned |= {node: turn, other[0]: turn}
                components |= {node: terms, other[0]: other[1]}
                others.remove(other)
                break
        else:
            others.append((node, terms))
    return turned, components


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


def _signed(factor: Node) -> tuple[int, Node]:
    return (-1, factor.args[0]) if factor.op == "neg" else (1, factor)


def _turn(first: tuple[Node, Terms], second: tuple[Node, Terms]) -> Turn | None:
    """The rotation with these components y and z, if it is one."""
    (y, terms), (z, others) = first, second
    a, b = sorted(terms, key=lambda operand: _signed(terms[operand])[1].op)  # a is the one with the cosine
    (y_sign, cosine), (sign, sine) = _signed(terms[a]), _signed(terms[b])
    z_sign, function = _signed(others[b])
    if sign != y_sign or function is not cosine or _signed(others[a]) != (-z_sign, sine):
        return None
    return Turn(y, z, y_sign, z_sign, a, b, cosine, sine)
