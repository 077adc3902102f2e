"""Interleaves long functions, so that fewer operations wait for others.

A processor executes later operations while earlier ones wait, but it sees only some hundreds. Depth first, a whole
elimination from the tips of a chain to its root precedes the forces, on which it does not depend, and each pivot waits
for the one before it. Here the order is that in which a processor that sees all operations would start them. Values and
their rounding do not change.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count, groupby
from math import inf
from typing import Final

from kanegen.graph.balance import DIVISION
from kanegen.program.passes.code import Code, Let, Section, Statement, needed
from kanegen.program.passes.lower import LOADS, Value
from kanegen.program.passes.schedule import merged
from kanegen.program.records import Check, Guard, Store

FEWEST, MOST = 400, 2700
"""Statements between which their order is changed.

Processors see the whole of shorter functions. Longer ones exceed the instruction cache: there, the moves that the new
order needs take more time than waiting does (`spatial_chain(24)` 1.07 of the time of depth-first order).
"""

LATENCY: Final = 8
"""Operations that start while one waits for its result, in processors with two multipliers.

The new order is made for twice as many, so that loads from memory delay nothing, either. Measured with gcc 12, times
relative to those of depth-first order: `spatial_chain(16)` 0.92, `humanoid` 0.87, `n_link_pendulum(40)` 0.80, all
within 0.02 for 1.5 to 3 times as many.
"""

SEEN: Final = 250
"""Operations that a processor sees, from the first one that is not done."""

WORTHWHILE: Final = 0.94
"""Estimated time of a new order, relative to that of the old one, up to which it is used: the moves that it needs cost
some percent (`whipple_bicycle` 1.03, with an estimate of 0.99)."""

_STRAIGHT: Final = (Let, Store, Guard, Check)


def interleaved(code: Code) -> Code:
    """Return ``code`` with straight-line code of at least `FEWEST` statements in the new order."""
    if not FEWEST <= len(code.statements) <= MOST:
        return code
    named = frozenset(s.value for s in code.statements if isinstance(s, Let))
    sections: list[Section] = []
    for straight, group in groupby(_pieces(code.sections), lambda piece: isinstance(piece.statements[0], _STRAIGHT)):
        stretch = list(group)
        sections += _reordered(stretch, named) if straight else stretch
    numbers = count()
    return Code(tuple(Section(s.title, tuple(_renumbered(s.statements, numbers))) for s in merged(sections)))


def _pieces(sections: Sequence[Section]) -> Iterator[Section]:
    """The sections, divided between straight-line code and other statements."""
    for section in sections:
        title = section.title
        for _, group in groupby(section.statements, lambda statement: isinstance(statement, _STRAIGHT)):
            yield Section(title, tuple(group))
            title = ""


def _renumbered(statements: Sequence[Statement], numbers: Iterator[int]) -> Iterator[Statement]:
    for statement in statements:
        yield Let(next(numbers), statement.value) if isinstance(statement, Let) else statement


def _reordered(stretch: Sequence[Section], named: Container[Value]) -> Sequence[Section]:
    """One section with the same statements, unless there are few, or one reads what another one stores."""
    statements = [statement for section in stretch for statement in section.statements]
    if len(statements) < FEWEST:
        return stretch
    reader = _Reader(statements, named)
    items = [reader.item(statement) for statement in statements]
    if reader.arrays.intersection(s.array for s in statements if isinstance(s, Store)):
        return stretch
    order, _ = _run(items, 2 * LATENCY, sum(item.operations for item in items) + 1)
    place = {k: number for number, k in enumerate(order)}
    moved = [replace(items[k], operands=frozenset(place[x] for x in items[k].operands)) for k in order]
    if _run(moved, LATENCY, SEEN)[1] > WORTHWHILE * _run(items, LATENCY, SEEN)[1]:
        return stretch
    return [Section("; ".join(s.title for s in stretch if s.title), tuple(statements[k] for k in order))]


@dataclass
class _Item:
    """A statement: its operations, the time from its operands to its result, and the statements that it waits for."""

    operations: int
    time: int
    operands: frozenset[int]


class _Reader:
    """Reads what the statements of a stretch wait for; values in ``named`` that are not made in it are known."""

    def __init__(self, statements: Sequence[Statement], named: Container[Value]) -> None:
        self.arrays: set[str] = set()
        self._made = {s.value: k for k, s in enumerate(statements) if isinstance(s, Let)}
        self._named = named
        self._operands: set[int] = set()
        self._tests: set[int] = set()
        self._count = 0

    def item(self, statement: Statement) -> _Item:
        """The record of the next statement. Tests follow each other, and stores follow the tests before them."""
        (value,) = needed(statement)
        self._operands = set() if isinstance(statement, Let) else set(self._tests)
        operations, time = self._cost(value) if isinstance(statement, Let) else self._remaining(value)
        if isinstance(statement, Guard | Check):
            self._tests = {self._count}
        self._count += 1
        return _Item(operations, time, frozenset(self._operands))

    def _cost(self, value: Value) -> tuple[int, int]:
        """Operations and time of a value, computed from named ones."""
        if value.op in ("input", "gather"):
            self.arrays.add(value.payload[0])
        if value.op in LOADS:
            return 0, 0
        inner = [self._remaining(x) for x in value.args]
        own = DIVISION if value.op in ("div", "sqrt") else 1
        return 1 + sum(operations for operations, _ in inner), own + max((time for _, time in inner), default=0)

    def _remaining(self, value: Value) -> tuple[int, int]:
        """The same of an operand, which costs nothing if it is named."""
        if value in self._made:
            self._operands.add(self._made[value])
            return 0, 0
        return (0, 0) if value in self._named else self._cost(value)


def _run(items: Sequence[_Item], latency: int, seen: int) -> tuple[list[int], int]:
    """The order in which a processor starts the statements, and the time in operations.

    Of the statements that it sees and whose operands are known, it starts the first one.
    """
    users: list[list[int]] = [[] for _ in items]
    for k, item in enumerate(items):
        for operand in item.operands:
            users[operand].append(k)
    missing, known, done = [len(item.operands) for item in items], [0] * len(items), [inf] * len(items)
    waiting: list[tuple[int, int]] = []
    ready: list[int] = []
    order: list[int] = []
    now = first = entered = inside = 0
    while len(order) < len(items):
        while first < entered and done[first] <= now:
            inside -= items[first].operations
            first += 1
        while entered < len(items) and inside < seen:
            inside += items[entered].operations
            if not missing[entered]:
                heappush(waiting, (known[entered], entered))
            entered += 1
        while waiting and waiting[0][0] <= now:
            heappush(ready, heappop(waiting)[1])
        if not ready:
            now = int(min(done[first], waiting[0][0] if waiting else inf))
            continue
        k = heappop(ready)
        order.append(k)
        now += items[k].operations
        done[k] = now + latency * items[k].time
        for user in users[k]:
            known[user] = max(known[user], int(done[k]))
            missing[user] -= 1
            if not missing[user] and user < entered:
                heappush(waiting, (known[user], user))
    return order, now
