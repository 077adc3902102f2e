"""The lowered program: what printers of code read, in any language and without the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from kanegen.graph.derivatives import reachable
from kanegen.graph.functions import Spline
from kanegen.graph.grids import Grid, Interval
from kanegen.precision import Precision
from kanegen.program.passes.code import Code
from kanegen.program.passes.count import operation_count
from kanegen.program.passes.interleave import interleaved
from kanegen.program.passes.schedule import schedule, schedule_constants, split
from kanegen.program.records import ContactEntry, EventEntry, Function, Program, SwitchEntry, Symbols, TableEntry


@dataclass(frozen=True, eq=False)
class UserFunction:
    """A function of the user: its name, the names of its arguments, and the body of the C function."""

    name: str
    arguments: tuple[str, ...]
    c_body: str


@dataclass(frozen=True, eq=False)
class UserSpline:
    """A spline of the user; ``coefficients``: ascending powers of the distance from the breakpoint before, by piece."""

    name: str
    breakpoints: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]

    @property
    def degree(self) -> int:
        """The degree of the pieces."""
        return len(self.coefficients[0]) - 1


@dataclass(frozen=True, eq=False)
class UserInterval:
    """The index of the interval between ``breakpoints`` that contains an argument."""

    name: str
    breakpoints: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class UserGrid:
    """A derivative of these ``orders`` of a table of two arguments; ``values``: those of `kanegen.graph.grids.Grid`."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    values: tuple[tuple[tuple[float, ...], ...], ...]
    orders: tuple[int, int]

    @property
    def cubic(self) -> bool:
        """Whether slopes are given."""
        return len(self.values[0][0]) > 1


UserTable: TypeAlias = UserSpline | UserInterval | UserGrid
User: TypeAlias = UserFunction | UserTable


def arguments_of(user: User) -> tuple[str, ...]:
    """The names of the arguments of a function or table."""
    if isinstance(user, UserFunction):
        return user.arguments
    return ("x", "y") if isinstance(user, UserGrid) else ("x",)


@dataclass(frozen=True, eq=False)
class LoweredFunction:
    """One function as its statements, compared by identity; the other fields are those of `records.Function`.

    ``operations``: those of one call; ``derived_operations``: before constants were moved to ``prepare``.
    """

    name: str
    shape: tuple[int, ...]
    summary: str
    internal: bool
    arrays: Mapping[str, int]
    operations: int
    derived_operations: int
    code: Code

    @property
    def work_arrays(self) -> dict[str, int]:
        """All work arrays, in order, with their lengths; ``kept`` has the values that parts share."""
        return {**self.arrays, "kept": len(self.code.kept)} if self.code.kept else dict(self.arrays)


@dataclass(frozen=True, eq=False)
class LoweredProgram:
    """All functions of one model as statements, and the tables of its symbols, contacts, events, switches and splines.

    ``prepare``: stores the ``n_constants`` constants in the array ``c``. ``users``: functions and splines of the user,
    by the payload of the values that call them, in the order of the first calls. For the other fields see
    :class:`kanegen.program.records.Program`.
    """

    name: str
    precision: Precision
    symbols: Symbols
    functions: tuple[LoweredFunction, ...]
    n_constants: int
    prepare: Code
    users: Mapping[Any, User] = field(default_factory=dict)
    contacts: tuple[ContactEntry, ...] = ()
    events: tuple[EventEntry, ...] = ()
    switches: tuple[SwitchEntry, ...] = ()
    tables: tuple[TableEntry, ...] = ()
    angles: tuple[bool, ...] = ()

    def function(self, name: str) -> LoweredFunction:
        """The function of this name. Raises `KeyError` if there is none."""
        return self._by_name[name]

    def callees(self, function: LoweredFunction) -> list[LoweredFunction]:
        """The functions that ``function`` calls directly: fallbacks first, then those it evaluates."""
        return [self.function(name) for name in function.code.callees]

    def in_order_of_use(self, *names: str) -> list[LoweredFunction]:
        """The functions of these names and those they call, each after those it calls; all public ones by default."""
        result: dict[str, LoweredFunction] = {}
        roots = [self.function(name) for name in names] or [f for f in self.functions if not f.internal]
        for root in roots:
            result.update((function.name, function) for function in self._with_callees(root, result))
        return list(result.values())

    def _with_callees(self, function: LoweredFunction, known: Mapping[str, Any]) -> Iterator[LoweredFunction]:
        if function.name not in known:
            for called in self.callees(function):
                yield from self._with_callees(called, known)
            yield function

    @cached_property
    def _by_name(self) -> dict[str, LoweredFunction]:
        return {function.name: function for function in self.functions}


def lowered_program(program: Program) -> LoweredProgram:
    """The statements of a program, after `kanegen.program.passes.lower.hoist`."""
    return LoweredProgram(
        name=program.name,
        precision=program.precision,
        symbols=program.symbols,
        functions=tuple(_lowered_function(function, program) for function in program.functions),
        n_constants=len(program.constants),
        prepare=schedule_constants(program),
        users=_users(program.functions),
        contacts=program.contacts,
        events=program.events,
        switches=program.switches,
        tables=program.tables,
        angles=program.angles,
    )


def _lowered_function(function: Function, program: Program) -> LoweredFunction:
    return LoweredFunction(
        name=function.name,
        shape=function.shape,
        summary=function.summary,
        internal=function.internal,
        arrays=dict(function.arrays),
        operations=operation_count(function, program.constants),
        derived_operations=operation_count(function),
        code=split(interleaved(schedule(function, program.constants))),
    )


def _users(functions: Sequence[Function]) -> dict[Any, User]:
    nodes = reachable(root for function in functions for root in function.roots)
    called = dict.fromkeys(node.payload for node in nodes if node.op == "call")
    return {payload: _user(payload) for payload in called}


def _user(payload: Any) -> User:
    if isinstance(payload, Spline):
        return UserSpline(payload.name, tuple(payload.breakpoints), tuple(map(tuple, payload.coefficients)))
    if isinstance(payload, Interval):
        return UserInterval(payload.name, payload.points)
    if isinstance(payload, Grid):
        x, y = payload.knots
        return UserGrid(payload.name, x, y, payload.values, payload.orders)
    return UserFunction(payload.name, tuple(payload.arguments), payload.c_body)
