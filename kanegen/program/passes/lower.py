"""Lowers nodes to values: hoists constants into ``prepare`` and replaces shared denominators by reciprocals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, NamedTuple

from kanegen.graph import Node, reachable
from kanegen.program.records import Function, Program

LOADS = frozenset({"input", "const", "sine", "cosine"})
"""Operations that cost nothing: they read a value that exists already."""

GATHERED = {"sin": "sine", "cos": "cosine"}
"""Operations of the graph and the result of the gathered evaluation of all angles that replaces them."""

FEWEST_GATHERED = 2
"""Number of sines and cosines from which they are gathered: those of one angle share its reduction."""

ARGUMENTS = frozenset({"t", "q", "u", "s", "r", "forces", "free", "p", "g"})
"""Arrays that are arguments of a function."""

_ALWAYS_DEFINED: Final = frozenset(
    ("const", "input", "add", "sub", "mul", "neg", "sin", "cos", "atan", "tanh", "abs", "min", "max", "reciprocal")
)
"""Operations with a finite value for all finite operands, except for overflow."""


class Value:
    """One operation of the lowered code; compared by identity.

    ``op`` is an operation of the graph; an ``input`` has ``(array, index)`` as its payload and reads an
    argument of the C function, a hoisted constant (``c``) or a work array; ``sine`` and ``cosine`` read the
    result of the gathered evaluation of all angles at the index in their payload.
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
    """Return the program with its constants: the largest constant subexpressions with at least one operation.

    A constant becomes an element of the array ``c`` if a value that changes during the run uses it, or if it is an
    output; constants that only other constants use are local to ``prepare``. The order is that of the graph, in
    which operands come first. They are followed by the elements of each ``gather`` in their order, also numbers and
    parameters.
    """
    roots = [root for f in program.functions for root in f.roots]
    needed = reachable(roots, lambda node: node.constant)
    moving = [node for node in needed if not node.constant]
    blocks = dict.fromkeys(node.args[1:] for node in moving if node.op == "gather" and _is_block(node))
    used = {x.index for x in roots}.union(x.index for node in moving for x in _single_operands(node))
    constants = [node for node in needed if node.constant and node.args and node.index in used]
    return replace(program, constants=tuple(chain(constants, *blocks)))


def _is_block(node: Node) -> bool:
    """Whether the elements of a ``gather`` are constants, so that they are neighbors in the array ``c``."""
    return all(x.constant for x in node.args[1:])


def _single_operands(node: Node) -> tuple[Node, ...]:
    """The operands of a node, without those that it takes from a block."""
    return node.args[:1] if node.op == "gather" and _is_block(node) else node.args


@dataclass(frozen=True)
class Lowered:
    """The value of each node by node index, all values with operands before results, and the gathered angles."""

    values: Mapping[int, Value]
    order: tuple[Value, ...]
    angles: tuple[Value, ...]

    def __getitem__(self, node: Node) -> Value:
        return self.values[node.index]


_LOWERED: Final = "_lowered"
"""Where a function keeps its lowered values."""


def lowered(function: Function, constants: Sequence[Node]) -> Lowered:
    """Return the values of a function, with the ``constants`` of its program in the array ``c``.

    The result is cached, since operation counts, cost estimates, :func:`reads` and the code all need it.
    """
    # Kept with the function itself: a weak dictionary removes entries in a callback, in which Python loses a Ctrl-C.
    kept: dict[str, Any] = vars(function)
    known = kept.get(_LOWERED)
    if known is None or known[0] is not constants:
        known = kept[_LOWERED] = constants, lower(function.roots, _positions(constants), constants)
    result: Lowered = known[1]
    return result


def _positions(constants: Sequence[Node]) -> dict[int, int]:
    """Return the places in ``c`` of constants that are computed; numbers and parameters are read where they are."""
    return {node.index: k for k, node in enumerate(constants) if node.args}


def lower(roots: Iterable[Node], positions: Mapping[int, int], constants: Sequence[Node] = ()) -> Lowered:
    """Return the values of all nodes that the roots need.

    Nodes in ``positions`` are loaded from the array ``c`` of the ``constants`` instead of being computed. A denominator
    of several quotients is inverted once: for 2,000 operations with the 36 quotients of an 8 by 8 factorization, this
    takes 0.92 of the time, although it adds an operation per denominator.
    """
    needed = reachable(roots, lambda node: node.index in positions)
    shared = shared_denominators(needed, positions)
    gathered = _gathered_angles(needed, positions)
    values: dict[int, Value] = {}
    reciprocals: dict[int, Value] = {}
    order: dict[Value, None] = {ONE: None}
    blocks = _Blocks(constants)
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
        elif node.op == "gather":
            value = blocks.element(node, values, order)
        else:
            value = Value(node.op, tuple(values[a.index] for a in node.args), node.payload)
        values[node.index] = value
        order[value] = None
    return Lowered(values, tuple(order), tuple(values[index] for index in gathered))


class _Blocks:
    """Where the elements of each ``gather`` begin among the constants."""

    def __init__(self, constants: Sequence[Node]) -> None:
        self._constants = constants
        self._starts: dict[tuple[Node, ...], int | None] = {}

    def element(self, node: Node, values: Mapping[int, Value], order: dict[Value, None]) -> Value:
        """Return the value of a ``gather``: an element of ``c``, or choices between elements that are not there."""
        index, elements = values[node.args[0].index], node.args[1:]
        start = self._start(elements)
        if start is not None:
            return Value("gather", (index,), ("c", start, len(elements)))
        result = values[elements[-1].index]
        for k, element in enumerate(elements[:-1]):
            number = Value("const", (), k)
            condition = Value("eq", (index, number))
            result = Value("select", (condition, values[element.index], result))
            order.update(dict.fromkeys((number, condition, result)))
        return result

    def _start(self, elements: tuple[Node, ...]) -> int | None:
        if elements not in self._starts:
            constants, n = self._constants, len(elements)
            places = (k for k in range(len(constants) - n, -1, -1) if constants[k] is elements[0])
            self._starts[elements] = next((k for k in places if tuple(constants[k : k + n]) == elements), None)
        return self._starts[elements]


def shared_denominators(order: Sequence[Node], positions: Mapping[int, int]) -> set[int]:
    """Return the node indices of the denominators of several quotients."""
    divided = Counter(node.args[1].index for node in order if node.op == "div" and node.index not in positions)
    return {index for index, count in divided.items() if count > 1}


def _gathered_angles(order: Sequence[Node], positions: Mapping[int, int]) -> dict[int, int]:
    """Return angles that can be evaluated before all other values: node index to position in the gathered call.

    They are sums and products of arguments of the function. Fewer than `FEWEST_GATHERED` sines and
    cosines are not gathered.
    """
    direct: set[int] = set()
    angles: dict[int, int] = {}
    gathered = 0
    for node in order:
        given = node.index in positions or (node.op == "input" and node.payload[0] in ARGUMENTS)
        if given or (node.op in ("const", "add", "sub", "mul", "neg") and all(a.index in direct for a in node.args)):
            direct.add(node.index)
        elif node.op in GATHERED and node.args[0].index in direct:
            angles.setdefault(node.args[0].index, len(angles))
            gathered += 1
    return angles if gathered >= FEWEST_GATHERED else {}


class Reads(NamedTuple):
    """The values that a function reads directly, through the constants of ``prepare``, or in functions it calls.

    Indices of the parameters, of the user's inputs, of the states, and of the constants that are undefined for some
    parameters, for example a quotient by a mass that can be zero.
    """

    parameters: tuple[int, ...]
    inputs: tuple[int, ...]
    states: tuple[int, ...]
    fallible: tuple[int, ...]


def reads(program: Program) -> dict[str, Reads]:
    """Return the values that every listed function reads; a call needs no other parameters and inputs."""
    needed = [list(reachable([node])) for node in program.constants]
    of_constants = [{n.payload[1] for n in nodes if n.op == "input" and n.payload[0] == "p"} for nodes in needed]
    fallible = {k for k, nodes in enumerate(needed) if any(node.op not in _ALWAYS_DEFINED for node in nodes)}
    result = {}
    for function in program.functions:
        if not function.internal:
            values = (lowered(f, program.constants).order for f in called(program, function))
            elements = {element for order in values for value in order for element in _elements(value)}
            constants = {k for array, k in elements if array == "c"}
            p = {i for array, i in elements if array == "p"}.union(*(of_constants[k] for k in constants))
            r, s = ({i for array, i in elements if array == name} for name in ("r", "s"))
            result[function.name] = Reads(*(tuple(sorted(indices)) for indices in (p, r, s, constants & fallible)))
    return result


def _elements(value: Value) -> Iterator[tuple[str, int]]:
    """Yield the elements of arrays that a value reads."""
    if value.op == "input":
        yield value.payload
    elif value.op == "gather":
        array, first, count = value.payload
        yield from ((array, k) for k in range(first, first + count))


def called(program: Program, function: Function) -> Iterator[Function]:
    """Yield the function and all functions that it invokes or falls back to, directly or not."""
    seen: set[str] = set()
    stack = [function]
    while stack:
        current = stack.pop()
        if current.name not in seen:
            seen.add(current.name)
            yield current
            stack.extend(program.callees(current))
