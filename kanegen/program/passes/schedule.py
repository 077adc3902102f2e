"""Schedules code: chooses the order of evaluation and the temporaries, and divides long functions into short ones.

Measured with gcc 12 -O3 on a chain of rigid bodies (2,000 operations): depth first, the order in which the nodes were
created, and list scheduling by critical path differ by at most 5 percent in time, with or without inlined expressions,
because the processor reorders instructions; its two multipliers are the limit. Depth first needs the fewest moves (0.55
to 0.7 of those of the other orders), so that it is faster if the code exceeds the instruction cache.
:mod:`kanegen.program.passes.interleave` changes the order of long functions whose recursions wait for each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, groupby, islice, pairwise
from typing import cast

from kanegen.graph import Node
from kanegen.program.passes.code import Code, Evaluate, Gather, Let, Part, Section, Statement, needed
from kanegen.program.passes.lower import LOADS, Lowered, Value, lowered
from kanegen.program.records import Block, Check, Function, Guard, Invoke, Program, Step, Store

MAX_OPERATIONS = 7
"""Largest number of operations in one expression, so that a line of C stays readable."""

MAX_DEPTH = 4
"""Largest nesting depth of one expression."""

ATOMIC_ARGUMENTS = frozenset({"min", "max", "reciprocal"})
"""Operations whose C macros evaluate arguments twice: their arguments are temporaries, not expressions."""

LONGEST = 6000
"""Largest number of temporaries and stores of a function that is not divided."""

PART = 500
"""Number of temporaries and stores of one part, on average.

Measured with gcc 12 at -O2 and -O3, with the same results, on chains of rigid bodies. A function of 30,000
operations in parts compiles in 0.25 of the time of the undivided function and runs in 0.6 of its time; one of 70,000
operations in 0.2 and 0.9, one of 10,000 in 0.75 and 1.05; for 2,000 there is no difference. Parts of 250 to 2000
run equally fast, but longer parts take more time to compile.
"""


# -- order and names --------------------------------------------------------------------------------------------


def schedule(function: Function, constants: Sequence[Node]) -> Code:
    """Return the lowered code of one function; ``constants``: those of the hoisted program."""
    values = lowered(function, constants)
    scheduler = _Scheduler(values, _uses(function, values))
    sections = [scheduler.angles(), *(scheduler.section(step) for step in function.steps)]
    return Code(tuple(merged(s for s in sections if s.statements)))


def schedule_constants(program: Program) -> Code:
    """Return the lowered code of ``prepare``, which stores the constants in ``c``."""
    stores = tuple(Store("c", k, node) for k, node in enumerate(program.constants))
    function = Function("prepare", (len(stores),), (Block("constants", stores),), {}, "")
    return schedule(function, ())


def _uses(function: Function, lowered: Lowered) -> Counter[Value]:
    """Count the uses of each value: as an operand, stored value, condition or angle."""
    uses: Counter[Value] = Counter(lowered[node] for node in function.roots)
    uses.update(lowered.angles)
    for value in lowered.order:
        uses.update(value.args)
    return uses


def merged(sections: Iterable[Section]) -> list[Section]:
    """Append sections without a title to the section before them."""
    result: list[Section] = []
    for section in sections:
        if result and not section.title:
            result[-1] = Section(result[-1].title, result[-1].statements + section.statements)
        else:
            result.append(section)
    return result


class _Scheduler:
    """Emits each value on demand: depth first from the stores, first the operand that needs the most registers."""

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
            guard = Guard(condition, step.otherwise, step.reason, step.status)
            return Section("", (*self._evaluate(condition), guard))
        if isinstance(step, Check):
            condition = self._lowered[step.condition]
            return Section("", (*self._evaluate(condition), Check(condition, step.reason)))
        arrays = (step.array,) if isinstance(step, Invoke) else step.arguments
        self._forget(frozenset(a for a in arrays if isinstance(a, str)))
        return Section("", (Evaluate(step.function.name, step.array) if isinstance(step, Invoke) else step,))

    def _block(self, block: Block) -> Iterator[Statement]:
        values = [self._lowered[store.value] for store in block.stores]
        read = frozenset().union(*(self._reads[value] for value in values))
        late: list[Store[Value]] = []
        for store, value in zip(block.stores, values, strict=True):
            if store.array not in read:
                yield from self._evaluate(value)
                yield Store(store.array, store.index, value)
                continue
            # The block still reads the array that this store changes, so the store is moved to the end of the block.
            if value.op in LOADS:
                value = self._copy(value)
                yield self._let(value)
            else:
                yield from self._evaluate(value, named=True)
            late.append(Store(store.array, store.index, value))
        yield from late
        self._forget(frozenset(store.array for store in block.stores))

    def _forget(self, arrays: frozenset[str]) -> None:
        """Discard the values that depend on ``arrays``, because a step has changed these arrays."""
        self._known = {value for value in self._known if not (self._reads[value] & arrays)}

    def _evaluate(self, root: Value, *, named: bool = False) -> Iterator[Let]:
        """Yield the temporaries that ``root`` needs, and ``root`` if it is used again or must be ``named``."""
        stack = [(root, False)]
        need = self._need.__getitem__
        while stack:
            value, ready = stack.pop()
            if value in self._known or value.op in LOADS:
                continue
            if not ready:
                stack.append((value, True))
                # The stack reverses the order: the operand with the largest need is pushed last and evaluated first.
                stack.extend((a, False) for a in sorted(value.args, key=need))
            elif value not in self._inline and (value is not root or named or self._uses[root] > 1):
                yield self._let(value)

    def _copy(self, load: Value) -> Value:
        """Return a new value for the same element, so that its temporary is not used after the element has changed."""
        copy = Value(load.op, (), load.payload)
        self._reads[copy] = self._reads[load]
        return copy

    def _let(self, value: Value) -> Let:
        self._known.add(value)
        self._count += 1
        return Let(self._count - 1, value)


def _expressions(lowered: Lowered, uses: Counter[Value]) -> tuple[set[Value], dict[Value, int]]:
    """Return the inlined values, and the registers that each value needs (Sethi and Ullman, 1970)."""
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
    """Inline single-use operands of ``value`` while the expression is small; return its operations and depth."""
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
    """Return the arrays that each value depends on."""
    reads: dict[Value, frozenset[str]] = {}
    for value in lowered.order:
        own = (value.payload[0],) if value.op in ("input", "gather") else ()
        reads[value] = frozenset(own).union(*(reads[a] for a in value.args))
    return reads


# -- division of long functions -----------------------------------------------------------------------------------


def split(code: Code) -> Code:
    """Return ``code`` with its temporaries and stores in parts if it is longer than `LONGEST`.

    It is divided where few temporaries are live, because a temporary of another part passes through memory.
    """
    if sum(isinstance(s, Let | Store) for s in code.statements) <= LONGEST:
        return code
    numbers, live = iter(range(len(code.statements))), iter(_live(code.statements))
    sections = tuple(
        _cut_section(section, list(islice(live, len(section.statements))), numbers) for section in code.sections
    )
    return Code(sections, _kept(Code(sections)))


def _live(statements: Sequence[Statement]) -> list[int]:
    """Return for each statement how many temporaries precede it that it or a later one uses."""
    made: dict[Value, int] = {}
    last: dict[Value, int] = {}
    for k, statement in enumerate(statements):
        last.update(dict.fromkeys(_named(statement, made), k))
        if isinstance(statement, Let):
            made[statement.value] = k
    changes = [0] * (len(statements) + 2)
    for value, end in last.items():
        changes[made[value] + 1] += 1
        changes[end + 1] -= 1
    return list(accumulate(changes))[: len(statements)]


def _cut_section(section: Section, live: Sequence[int], numbers: Iterator[int]) -> Section:
    # Parts have the gathered sines and cosines as arguments, so that no part can precede their evaluation.
    gathered = [k + 1 for k, statement in enumerate(section.statements) if isinstance(statement, Gather)]
    first = max(gathered, default=0)
    parts = _cut(section.statements[first:], live[first:], numbers)
    return Section(section.title, (*section.statements[:first], *parts))


def _cut(statements: Sequence[Statement], live: Sequence[int], numbers: Iterator[int]) -> Iterator[Statement]:
    first = 0
    for inner, group in groupby(statements, lambda statement: isinstance(statement, Let | Store)):
        run = tuple(group)
        if inner:
            ends = _ends(live[first : first + len(run)])
            for begin, end in pairwise((0, *ends)):
                yield Part(next(numbers), cast(tuple[Let | Store[Value], ...], run[begin:end]))
        else:
            yield from run
        first += len(run)


def _ends(live: Sequence[int]) -> Iterator[int]:
    """Yield the ends of parts of PART / 2 to 3 PART / 2 statements, the last one possibly shorter."""
    end = 0
    while len(live) - end > 3 * PART // 2:
        near = sorted(range(end + PART // 2, end + 3 * PART // 2), key=partial(_distance, end + PART))
        end = min(near, key=live.__getitem__)
        yield end
    yield len(live)


def _distance(a: int, b: int) -> int:
    return abs(a - b)


def _kept(code: Code) -> dict[Value, int]:
    """Return the temporaries of one part that another part, or the function itself, uses."""
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


def _named(statement: Statement, home: Mapping[Value, int]) -> Iterator[Value]:
    """Yield the temporaries in the text of a statement."""
    stack = list(needed(statement))
    while stack:
        value = stack.pop()
        if value in home and not (isinstance(statement, Let) and value is statement.value):
            yield value
        else:
            stack.extend(value.args)
