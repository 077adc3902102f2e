"""Lowered code: the statements of one function, in order, with nothing left to decide but spelling.

The steps of the program occur in it as they are, with lowered values in place of nodes of the graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kanegen.program.records import Call, Check, Guard, Invoke, Store


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
