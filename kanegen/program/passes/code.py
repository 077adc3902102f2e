"""Lowered code: the statements of one function, with values in place of nodes of the graph.

Printers only spell it. It contains the steps of the program, in the order of evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kanegen.program.passes.lower import Value
from kanegen.program.records import Call, Check, Guard, Store


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
    """Temporaries and stores in a separate C function, so that every function is short."""

    number: int
    statements: tuple[Let | Store[Value], ...]


@dataclass(frozen=True)
class Evaluate:
    """A call of another function at the same arguments, ``status = function(..., array)``; see Call for the status."""

    function: str
    array: str


Statement: TypeAlias = Let | Store[Value] | Gather | Call | Evaluate | Guard[Value] | Check[Value] | Part


@dataclass(frozen=True)
class Section:
    """Statements under one title."""

    title: str
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class Code:
    """The lowered body of one function; a value with a ``Let`` is printed as its number, others as expressions.

    ``kept``: the position in the array ``kept`` of each value that one part computes and other parts use.
    """

    sections: tuple[Section, ...]
    kept: Mapping[Value, int] = field(default_factory=dict)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All statements; a part counts as one statement."""
        return tuple(statement for section in self.sections for statement in section.statements)

    @property
    def callees(self) -> tuple[str, ...]:
        """The functions that are called directly: first fallbacks of guards, then evaluated functions."""
        fallbacks = [s.otherwise for s in self.statements if isinstance(s, Guard) and s.otherwise is not None]
        return (*fallbacks, *(s.function for s in self.statements if isinstance(s, Evaluate)))

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(statement for statement in self.statements if isinstance(statement, Part))


def needed(statement: Statement) -> tuple[Value, ...]:
    """Return the values in the text of a statement that is not a part."""
    if isinstance(statement, Let | Store):
        return (statement.value,)
    if isinstance(statement, Gather):
        return statement.angles
    return (statement.condition,) if isinstance(statement, Guard | Check) else ()
