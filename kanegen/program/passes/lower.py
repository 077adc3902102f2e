"""From nodes to values: constants are hoisted into ``prepare``, shared denominators become reciprocals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from kanegen.graph import Node, reachable
from kanegen.program.records import Function, Program

LOADS = frozenset({"input", "const", "sine", "cosine"})
"""Operations that cost nothing: they name what is there already."""

GATHERED = {"sin": "sine", "cos": "cosine"}
"""What the gathered evaluation of all angles gives for an operation of the graph."""

FEWEST_ANGLES = 3
"""Angles from which one vector evaluation beats calls of the C library (the times of 2 are equal)."""

ARGUMENTS = frozenset({"t", "q", "u", "r", "p", "g"})
"""Arrays that are there when a function starts."""

_ALWAYS_DEFINED: Final = frozenset(
    ("const", "input", "add", "sub", "mul", "neg", "sin", "cos", "atan", "tanh", "abs", "min", "max", "reciprocal")
)
"""Operations that have a finite value for all finite operands, but for overflow."""


class Value:
    """One operation of the lowered code; compared by identity.

    ``op`` is an operation of the graph; an ``input`` has ``(array, index)`` as its payload and reads an
    argument of the C function, a hoisted constant (``c``) or a work array; ``sine`` and ``cosine`` take the
    result of the gathered evaluation of all angles and have the position there as their payload.
    """

    __slots__ = ("args", "op", "payload")

    def __init__(self, op: str, args: tuple[Value, ...] = (), payload: Any = None) -> None:
        self.op = op
        self.args = args
        self.payload = payload

    def __repr__(self) -> str:
        inner = ", ".join(a.op if a.args else str(a.payload) for a in self.args)
        return f"<{self.op}({inner}) {self.payload if self.payload is not None else ''}>"


ONE = Value("const", (), 1)


def hoist(program: Program) -> Program:
    """The program with its constants: the largest constant subexpressions that cost at least one operation.

    A constant becomes an element of the array ``c`` where something that changes during the run uses it, or
    where it is itself an output; constants inside constants stay inside ``prepare``. The order is that of the
    graph, in which operands come first.
    """
    needed = needed_nodes((root for f in program.functions for root in f.roots), lambda node: node.constant)
    return replace(program, constants=tuple(node for node in needed if node.constant and node.args))


@dataclass(frozen=True)
class Lowered:
    """The value of each node by node index, all values (operands before results), the gathered angles."""

    values: Mapping[int, Value]
    order: tuple[Value, ...]
    angles: tuple[Value, ...]

    def __getitem__(self, node: Node) -> Value:
        return self.values[node.index]


_LOWERED: WeakKeyDictionary[Function, tuple[Sequence[Node], Lowered]] = WeakKeyDictionary()


def lowered(function: Function, constants: Sequence[Node]) -> Lowered:
    """The values of a function, with the ``constants`` of its program in the array ``c``.

    Counting, cost estimates, what a function reads and its code share one result: it is kept with the function.
    """
    known = _LOWERED.get(function)
    if known is None or known[0] is not constants:
        known = constants, lower(function.roots, {node.index: k for k, node in enumerate(constants)})
        _LOWERED[function] = known
    return known[1]


def lower(roots: Iterable[Node], positions: Mapping[int, int]) -> Lowered:
    """The values of the nodes the roots need.

    Nodes in ``positions`` are loaded from the array ``c`` and not entered. A denominator that divides more
    than one numerator is inverted once: with the 36 quotients of an 8 by 8 factorization among 2,000 operations
    that takes 0.92 of the time, though it adds an operation per denominator.
    """
    needed = needed_nodes(roots, lambda node: node.index in positions)
    shared = shared_denominators(needed, positions)
    gathered = _gathered_angles(needed, positions)
    values: dict[int, Value] = {}
    reciprocals: dict[int, Value] = {}
    order: dict[Value, None] = {ONE: None}
    for node in needed:
        position = positions.get(node.index)
        if position is not None:
            value = Value("input", (), ("c", position))
        elif node.op in GATHERED and node.args[0].index in gathered:
            value = Value(GATHERED[node.op], (), gathered[node.args[0].index])
        elif node.op == "div" and node.args[1].index in shared:
            numerator, denominator = node.args
            if denominator.index not in reciprocals:
                reciprocals[denominator.index] = Value("div", (ONE, values[denominator.index]))
            value = reciprocals[denominator.index]
            order[value] = None
            if not numerator.is_one:
                value = Value("mul", (values[numerator.index], value))
        else:
            value = Value(node.op, tuple(values[a.index] for a in node.args), node.payload)
        values[node.index] = value
        order[value] = None
    return Lowered(values, tuple(order), tuple(values[index] for index in gathered))


def needed_nodes(roots: Iterable[Node], given: Callable[[Node], bool]) -> list[Node]:
    """The nodes that the roots need, operands first; the operands of nodes that are ``given`` are not needed."""
    seen: dict[int, Node] = {}
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node.index not in seen:
            seen[node.index] = node
            if not given(node):
                stack.extend(node.args)
    return [seen[index] for index in sorted(seen)]


def shared_denominators(order: Sequence[Node], positions: Mapping[int, int]) -> set[int]:
    """Denominators of several quotients, by node index."""
    divided = Counter(node.args[1].index for node in order if node.op == "div" and node.index not in positions)
    return {index for index, count in divided.items() if count > 1}


def _gathered_angles(order: Sequence[Node], positions: Mapping[int, int]) -> dict[int, int]:
    """Angles whose sines and cosines can be had before everything else, by node index, with their positions.

    These are sums and products of arguments of the function. Fewer than `FEWEST_ANGLES` are not worth a call.
    """
    direct: set[int] = set()
    angles: dict[int, int] = {}
    for node in order:
        given = node.index in positions or (node.op == "input" and node.payload[0] in ARGUMENTS)
        if given or (node.op in ("const", "add", "sub", "mul", "neg") and all(a.index in direct for a in node.args)):
            direct.add(node.index)
        elif node.op in GATHERED and node.args[0].index in direct:
            angles.setdefault(node.args[0].index, len(angles))
    return angles if len(angles) >= FEWEST_ANGLES else {}


class Reads(NamedTuple):
    """What a function reads, by itself, by the constants of ``prepare``, or by functions it calls.

    Indices of the parameters, of the inputs (hidden ones left out), and of those constants that have no value for some
    parameters: what divides by a mass that may be zero.
    """

    parameters: tuple[int, ...]
    inputs: tuple[int, ...]
    fallible: tuple[int, ...]


def reads(program: Program) -> dict[str, Reads]:
    """What every listed function reads. Nothing else needs a value to call it."""
    n_r = len(program.symbols.inputs)
    needed = [list(reachable([node])) for node in program.constants]
    of_constants = [{n.payload[1] for n in nodes if n.op == "input" and n.payload[0] == "p"} for nodes in needed]
    fallible = {k for k, nodes in enumerate(needed) if any(node.op not in _ALWAYS_DEFINED for node in nodes)}
    result = {}
    for function in program.functions:
        if not function.internal:
            values = (lowered(f, program.constants).order for f in called(program, function))
            elements = {value.payload for order in values for value in order if value.op == "input"}
            constants = {k for array, k in elements if array == "c"}
            p = {i for array, i in elements if array == "p"}.union(*(of_constants[k] for k in constants))
            r = {i for array, i in elements if array == "r" and i < n_r}
            result[function.name] = Reads(*(tuple(sorted(found)) for found in (p, r, constants & fallible)))
    return result


def called(program: Program, function: Function) -> Iterator[Function]:
    """The function and those it invokes or falls back to."""
    seen: set[str] = set()
    stack = [function]
    while stack:
        current = stack.pop()
        if current.name not in seen:
            seen.add(current.name)
            yield current
            stack.extend(program.callees(current))
