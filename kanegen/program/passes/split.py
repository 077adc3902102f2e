"""Splitting: long functions become sequences of short ones, for compilers take superlinear time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kanegen.program.passes.code import Code, Gather, Let, Part, Section, Statement, Value, needed
from kanegen.program.records import Store

LONGEST = 6000
"""Temporaries and stores of a function that stays whole."""

PART = 500
"""Temporaries and stores of one part.

Measured with gcc 12 at -O2 and -O3 on chains of rigid bodies. With 30,000 operations a function in parts
compiles in 0.25 of the time of the whole and runs in 0.6 of it; with 70,000 in 0.2 and 0.9. Parts of 250 to
2000 run alike, the longer ones take more time to compile. With 10,000 operations parts save a quarter of the
time to compile and lose a twentieth at run time; with 2,000, nothing. -O2 and -O3 do not differ in this.
"""


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
