"""Lowered code: the order of evaluation, what gets a name, and the division of long functions into short ones.

Nothing is left to decide in lowered code but spelling. The steps of the program occur in it as they are, with lowered
values in place of nodes of the graph.

Measured with gcc 12 -O3 on a chain of rigid bodies (2,000 operations): depth first, the order in which the nodes were
made, and list scheduling by critical path run within 5 percent of one another, with or without expressions written
where they are used. The processor reorders far enough ahead; its two multipliers are the limit. Depth first needs the
fewest moves (0.55 to 0.7 of those of the other orders), so that it wins where code outgrows the instruction cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kanegen.graph import Node
from kanegen.program.passes.lower import LOADS, Lowered, Value, lowered
from kanegen.program.records import Block, Call, Check, Function, Guard, Invoke, Program, Step, Store

MAX_OPERATIONS = 7
"""Operations in one expression, so that a line of C stays readable."""

MAX_DEPTH = 4
"""Nesting of one expression."""

ATOMIC_ARGUMENTS = frozenset({"min", "max", "reciprocal"})
"""Operations whose C macros evaluate arguments twice: they get names, not expressions."""

LONGEST = 6000
"""Temporaries and stores of a function that stays whole."""

PART = 500
"""Temporaries and stores of one part.

Measured with gcc 12 at -O2 and -O3 on chains of rigid bodies. With 30,000 operations a function in parts
compiles in 0.25 of the time of the whole and runs in 0.6 of it; with 70,000 in 0.2 and 0.9. Parts of 250 to
2000 run alike, the longer ones take more time to compile. With 10,000 operations parts save a quarter of the
time to compile and lose a twentieth at run time; with 2,000, nothing. -O2 and -O3 do not differ in this.
"""


@dataclass(frozen=True)
class Let:
    """A numbered temporary: ``const kg_real z<number> = value``."""

    number: int
    value: Value


@dataclass(frozen=True)
class Gather:
    """Sines and cosines of all ``angles`` in one call of the runtime."""

    angles: tuple[Value, ...]


@dataclass(frozen=True)
class Part:
    """Temporaries and stores that stand in a C function of their own, to keep every function short."""

    number: int
    statements: tuple[Let | Store[Value], ...]


Statement: TypeAlias = Let | Store[Value] | Gather | Call | Invoke | Guard[Value] | Check[Value] | Part


@dataclass(frozen=True)
class Section:
    """Statements under one title."""

    title: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class Code:
    """The lowered body of one function: a value goes by its number after its ``Let``, else it is written out.

    ``kept``: the position in the array ``kept`` of each value that one part computes and others use.
    """

    sections: tuple[Section, ...]
    kept: Mapping[Value, int] = field(default_factory=dict)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All statements, parts unopened."""
        return tuple(statement for section in self.sections for statement in section.statements)

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(statement for statement in self.statements if isinstance(statement, Part))


def needed(statement: Statement) -> tuple[Value, ...]:
    """The values a statement (not a part) spells out."""
    if isinstance(statement, Let | Store):
        return (statement.value,)
    if isinstance(statement, Gather):
        return statement.angles
    return (statement.condition,) if isinstance(statement, Guard | Check) else ()


# -- order and names --------------------------------------------------------------------------------------------


def schedule(function: Function, constants: Sequence[Node]) -> Code:
    """The lowered code of one function; ``constants`` are those of the hoisted program."""
    values = lowered(function, constants)
    scheduler = _Scheduler(values, _uses(function, values))
    sections = [scheduler.angles(), *(scheduler.section(step) for step in function.steps)]
    return Code(tuple(_merged(s for s in sections if s.statements)))


def schedule_constants(program: Program) -> Code:
    """The lowered code of ``prepare``: stores of the constants into ``c``."""
    stores = tuple(Store("c", k, node) for k, node in enumerate(program.constants))
    function = Function("prepare", (len(stores),), (Block("constants", stores),), {}, "")
    return schedule(function, ())


def _uses(function: Function, lowered: Lowered) -> Counter[Value]:
    """How often each value is used: as an operand, stored, or as a condition."""
    uses: Counter[Value] = Counter(lowered[node] for node in function.roots)
    uses.update(lowered.angles)
    for value in lowered.order:
        uses.update(value.args)
    return uses


def _merged(sections: Iterable[Section]) -> list[Section]:
    """Sections without a title continue the one before."""
    result: list[Section] = []
    for section in sections:
        if result and not section.title:
            result[-1] = Section(result[-1].title, result[-1].statements + section.statements)
        else:
            result.append(section)
    return result


class _Scheduler:
    """Emits each value on demand: depth first from the stores, the operand with the largest need first."""

    def __init__(self, lowered: Lowered, uses: Counter[Value]) -> None:
        self._lowered, self._uses = lowered, uses
        self._inline, self._need = _expressions(lowered, uses)
        self._reads = _arrays_read(lowered)
        self._known: set[Value] = set()
        self._count = 0

    def angles(self) -> Section:
        """The sines and cosines of all gathered angles."""
        gathered = self._lowered.angles
        needed = [let for angle in gathered for let in self._evaluate(angle)]
        return Section("sines and cosines", (*needed, Gather(gathered)) if gathered else ())

    def section(self, step: Step) -> Section:
        if isinstance(step, Block):
            return Section(step.title, tuple(self._block(step)))
        if isinstance(step, Guard):
            condition = self._lowered[step.condition]
            return Section("", (*self._evaluate(condition), Guard(condition, step.otherwise, step.reason)))
        if isinstance(step, Check):
            condition = self._lowered[step.condition]
            return Section("", (*self._evaluate(condition), Check(condition, step.reason)))
        arrays = (step.array,) if isinstance(step, Invoke) else step.arguments
        self._forget(frozenset(a for a in arrays if isinstance(a, str)))
        return Section("", (step,))

    def _block(self, block: Block) -> Iterator[Statement]:
        values = [self._lowered[store.value] for store in block.stores]
        read = frozenset().union(*(self._reads[value] for value in values))
        late: list[Store[Value]] = []
        for store, value in zip(block.stores, values, strict=True):
            if store.array not in read:
                yield from self._evaluate(value)
                yield Store(store.array, store.index, value)
                continue
            # The block still reads what this store overwrites: the store waits for the end of the block.
            if value.op in LOADS:
                value = self._copy(value)
                yield self._let(value)
            else:
                yield from self._evaluate(value, named=True)
            late.append(Store(store.array, store.index, value))
        yield from late
        self._forget(frozenset(store.array for store in block.stores))

    def _forget(self, arrays: frozenset[str]) -> None:
        """After a step that changes ``arrays`` whatever was read from them is read again."""
        self._known = {value for value in self._known if not (self._reads[value] & arrays)}

    def _evaluate(self, root: Value, *, named: bool = False) -> Iterator[Let]:
        """What ``root`` needs and, when it is used again or must be ``named``, ``root`` itself."""
        stack = [(root, False)]
        need = self._need.__getitem__
        while stack:
            value, ready = stack.pop()
            if value in self._known or value.op in LOADS:
                continue
            if not ready:
                stack.append((value, True))
                # The stack reverses: the operand with the largest need is pushed last and evaluated first.
                stack.extend((a, False) for a in sorted(value.args, key=need))
            elif value not in self._inline and (value is not root or named or self._uses[root] > 1):
                yield self._let(value)

    def _copy(self, load: Value) -> Value:
        """The same element as a value of its own: a name given to it does not outlive the element's change."""
        copy = Value(load.op, (), load.payload)
        self._reads[copy] = self._reads[load]
        return copy

    def _let(self, value: Value) -> Let:
        self._known.add(value)
        self._count += 1
        return Let(self._count - 1, value)


def _expressions(lowered: Lowered, uses: Counter[Value]) -> tuple[set[Value], dict[Value, int]]:
    """Which values are written where they are used, and the registers each needs (Sethi and Ullman, 1970)."""
    inline: set[Value] = set()
    need: dict[Value, int] = {}
    size: dict[Value, tuple[int, int]] = {}
    for value in lowered.order:
        if value.op in LOADS:
            need[value], size[value] = 0, (0, 0)
            continue
        size[value] = _absorb(value, uses, size, inline)
        needs = sorted((need[a] for a in dict.fromkeys(value.args)), reverse=True)
        need[value] = max([1, *(n + k for k, n in enumerate(needs))])
    return inline, need


def _absorb(
    value: Value, uses: Counter[Value], size: Mapping[Value, tuple[int, int]], inline: set[Value]
) -> tuple[int, int]:
    """Inline single-use operands of ``value`` while the expression stays small; its operations and depth."""
    operations, depth = 1, 1
    if value.op in ATOMIC_ARGUMENTS:
        return operations, depth
    for operand in value.args:
        inner, below = size[operand]
        if inner and uses[operand] == 1 and operations + inner <= MAX_OPERATIONS and below < MAX_DEPTH:
            inline.add(operand)
            operations += inner
            depth = max(depth, below + 1)
    return operations, depth


def _arrays_read(lowered: Lowered) -> dict[Value, frozenset[str]]:
    """The arrays each value depends on."""
    reads: dict[Value, frozenset[str]] = {}
    for value in lowered.order:
        own = (value.payload[0],) if value.op == "input" else ()
        reads[value] = frozenset(own).union(*(reads[a] for a in value.args))
    return reads


# -- division of long functions -----------------------------------------------------------------------------------


def split(code: Code) -> Code:
    """``code`` with its temporaries and stores in parts where it is longer than `LONGEST`."""
    if sum(isinstance(s, Let | Store) for s in code.statements) <= LONGEST:
        return code
    numbers = iter(range(len(code.statements)))
    sections = tuple(_cut_section(section, numbers) for section in code.sections)
    return Code(sections, _kept(Code(sections)))


def _cut_section(section: Section, numbers: Iterator[int]) -> Section:
    # Parts get the gathered sines and cosines as arguments, so that none can come before.
    if any(isinstance(statement, Gather) for statement in section.statements):
        return section
    return Section(section.title, tuple(_cut(section.statements, numbers)))


def _cut(statements: Iterable[Statement], numbers: Iterator[int]) -> Iterator[Statement]:
    pending: list[Let | Store[Value]] = []
    for statement in statements:
        if isinstance(statement, Let | Store):
            pending.append(statement)
        if pending and (len(pending) == PART or not isinstance(statement, Let | Store)):
            yield Part(next(numbers), tuple(pending))
            pending.clear()
        if not isinstance(statement, Let | Store):
            yield statement
    if pending:
        yield Part(next(numbers), tuple(pending))


def _kept(code: Code) -> dict[Value, int]:
    """Values with a name in one part that another part, or the function itself, spells."""
    home: dict[Value, int] = {}
    kept: dict[Value, int] = {}
    for statement in code.statements:
        inner: tuple[Statement, ...] = (statement,)
        place = -1
        if isinstance(statement, Part):
            inner, place = statement.statements, statement.number
        for one in inner:
            for value in _named(one, home):
                if home[value] != place:
                    kept.setdefault(value, len(kept))
            if isinstance(one, Let):
                home[one.value] = place
    return kept


def _named(statement: Statement, home: dict[Value, int]) -> Iterator[Value]:
    """The values with a name that the text of a statement holds."""
    stack = list(needed(statement))
    while stack:
        value = stack.pop()
        if value in home and not (isinstance(statement, Let) and value is statement.value):
            yield value
        else:
            stack.extend(value.args)
