"""The program: the computation as straight-line blocks over the graph and calls of runtime kernels.

A program does not depend on C: the interpreter and the printer read the same records. After a step has filled a work
array, later blocks read it as an input array of the graph (``Graph.input(name, i)``). The steps ``Store``, ``Guard``
and ``Check`` contain nodes of the graph here, and lowered values in :mod:`kanegen.program.passes.code`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Generic, TypeAlias, TypeVar

from kanegen.codes import Paradox, Status, SwitchShape
from kanegen.graph.derivatives import reachable
from kanegen.graph.nodes import Graph, Node
from kanegen.precision import DOUBLE, Precision

Operand = TypeVar("Operand")
"""The operand of a step: a node of the graph, or a lowered value."""


@dataclass(frozen=True)
class Store(Generic[Operand]):
    """``array[index] = value``; the array is ``out``, ``c`` (in prepare) or a work array of the function."""

    array: str
    index: int
    value: Operand


@dataclass(frozen=True)
class Block:
    """Straight-line stores. ``title`` names the section in the generated code."""

    title: str
    stores: tuple[Store[Node], ...]

    @cached_property
    def nodes(self) -> list[Node]:
        """All nodes that the stores need, operands before results."""
        return reachable(store.value for store in self.stores)


@dataclass(frozen=True)
class Call:
    """A call of a runtime kernel, ``status = kg_<kernel>(*arguments)``; the arguments are sizes and names of arrays.

    A negative status ends the function with that status; the function returns a positive status at its end.
    """

    kernel: str
    arguments: tuple[int | str, ...]


Wording: TypeAlias = tuple[str | float, ...]
"""Words, and numbers whose text depends on the precision if they are tolerances."""


@dataclass(frozen=True)
class Guard(Generic[Operand]):
    """If ``condition`` is false (zero or NaN), evaluate the function ``otherwise`` in place of the remaining steps.

    If ``otherwise`` is None, the function returns ``status``. ``reason`` describes the condition in words.
    """

    condition: Operand
    otherwise: str | None
    reason: Wording = ()
    status: Status = Status.SINGULAR


@dataclass(frozen=True)
class Invoke:
    """A call of another function at the same arguments, ``status = function(..., array)``; see Call for the status."""

    function: Function
    array: str


@dataclass(frozen=True)
class Check(Generic[Operand]):
    """If ``condition`` is false, the function returns the status SINGULAR at its end; no step is skipped.

    ``reason`` describes the condition in words.
    """

    condition: Operand
    reason: Wording = ()


Step: TypeAlias = "Block | Call | Guard[Node] | Invoke | Check[Node]"


def roots_of(step: Step) -> list[Node]:
    """Return the stored values of a step, or its condition."""
    if isinstance(step, Block):
        return [store.value for store in step.stores]
    return [step.condition] if isinstance(step, Guard | Check) else []


@dataclass(frozen=True, eq=False)
class Function:
    """One function of the generated code, compared by identity.

    ``shape``: () scalar, (rows,) or (rows, cols). ``arrays``: work arrays and their lengths. ``summary``: one line for
    the reader of the C code. ``internal`` functions, such as fallbacks, are not listed in the table of functions.
    """

    name: str
    shape: tuple[int, ...]
    steps: tuple[Step, ...]
    arrays: Mapping[str, int]
    summary: str
    internal: bool = False

    @property
    def roots(self) -> list[Node]:
        """Stored values and conditions, in the order of the steps."""
        return [node for step in self.steps for node in roots_of(step)]

    def with_roots(self, roots: Sequence[Node]) -> Function:
        """The same steps with other nodes, in the order of `roots`."""
        nodes = iter(roots)
        steps: list[Step] = []
        for step in self.steps:
            if isinstance(step, Block):
                step = replace(step, stores=tuple(replace(store, value=next(nodes)) for store in step.stores))
            elif isinstance(step, Guard | Check):
                step = replace(step, condition=next(nodes))
            steps.append(step)
        return replace(self, steps=tuple(steps))


@dataclass(frozen=True)
class Symbols:
    """The names of the symbols in generated code, in the order of the arrays.

    ``multipliers``: the contact rows, with a multiplier each; ``free``: the controls with an entry of the free vector.
    """

    coordinates: tuple[str, ...]
    speeds: tuple[str, ...]
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    gains: tuple[str, ...]
    states: tuple[str, ...] = ()
    multipliers: tuple[str, ...] = ()
    free: tuple[str, ...] = ()


@dataclass(frozen=True)
class ContactEntry:
    """One contact for the runtime (``kg_contact_info``). ``law``: its kind; ``normal``, ``tangent``: row or -1.

    ``creeps``: whether its friction has a creep velocity.
    """

    name: str
    law: str
    level: int
    normal: int
    tangent: int
    directions: int
    closed: bool
    paradox: Paradox = Paradox.ERROR
    creeps: bool = False

    @property
    def flags(self) -> int:
        """Whether the contact is closed at the start, and its paradox, as bits (kg_model.h)."""
        return self.closed + 2 * self.paradox


@dataclass(frozen=True)
class EventEntry:
    """One event for the runtime (``kg_event_info``), with the indices of its latches and impulse (-1: no impulse).

    ``multipliers``: whether the guard depends on contact multipliers.
    """

    name: str
    direction: int
    terminal: bool
    impulse: int
    impose: tuple[int, ...]
    remove: tuple[int, ...]
    multipliers: bool


@dataclass(frozen=True)
class SwitchEntry:
    """One switch for the runtime (``kg_switch_info``); ``levels``: ascending, empty for every integer."""

    shape: SwitchShape
    levels: tuple[float, ...]


@dataclass(frozen=True)
class TableEntry:
    """One argument of a table for the runtime (``kg_table_info``), with the interval in which the table has values."""

    label: str
    lowest: float
    highest: float


@dataclass(frozen=True)
class Program:
    """All functions of one model over one graph, and the constants that ``prepare`` stores in the array ``c``.

    ``angles``: for every coordinate, whether constraints contain its sine or cosine; its natural unit is then 1.
    ``unavailable``: functions of the catalogue that the model does not have, with the reasons.
    ``deferred``: functions that the model has, but not the program: the solver builds them when they are first used.
    ``precision``: that of the compiled code.
    """

    name: str
    graph: Graph
    symbols: Symbols
    functions: tuple[Function, ...]
    constants: tuple[Node, ...] = ()
    contacts: tuple[ContactEntry, ...] = ()
    events: tuple[EventEntry, ...] = ()
    switches: tuple[SwitchEntry, ...] = ()
    tables: tuple[TableEntry, ...] = ()
    angles: tuple[bool, ...] = ()
    unavailable: tuple[tuple[str, str], ...] = ()
    deferred: tuple[str, ...] = ()
    precision: Precision = DOUBLE

    def function(self, name: str) -> Function:
        return next(f for f in self.functions if f.name == name)

    def callees(self, function: Function) -> list[Function]:
        """Return the functions that ``function`` calls directly: fallbacks first, then the functions it invokes."""
        names = [step.otherwise for step in function.steps if isinstance(step, Guard) and step.otherwise is not None]
        names += [step.function.name for step in function.steps if isinstance(step, Invoke)]
        return [self.function(name) for name in names]


Shapes: TypeAlias = Mapping[str, tuple[str | int, ...]]
"""Shapes of arrays by name; a size is a number, a name or a sum of names such as ``"n_u + n_c"``."""


@dataclass(frozen=True)
class Kernel:
    """A function ``kg_<name>(*sizes, *arrays)`` of the C runtime.

    ``twin``: the same function in Python, for numbers of any precision, with the same name and arguments.
    ``header``: the file with the C function. ``sizes``: names of the leading integer arguments. ``arrays``: all array
    arguments, in order; the array ``work`` has the shape (), since ``work`` computes its length. ``results``: the
    arrays that contain a result afterwards. ``operations`` and ``work``: the operations of one call and the length of
    the array ``work``, as functions of the sizes. The array ``terms``, which some have, tells values from rounding
    errors.
    """

    twin: Callable[..., int]
    header: str
    sizes: tuple[str, ...]
    arrays: Shapes
    results: tuple[str, ...]
    operations: Callable[..., int]
    work: Callable[..., int] = lambda *_: 0

    @property
    def name(self) -> str:
        return self.twin.__name__

    def array_of(self, argument: str, call: Call) -> int | str | None:
        """Return the array that a call passes for an argument; None if the kernel has no such argument."""
        given = dict(zip((*self.sizes, *self.arrays), call.arguments, strict=True))
        return given.get(argument)

    def lengths(self, *sizes: int) -> dict[str, int]:
        """Return the length of every array argument for these sizes."""
        values = dict(zip(self.sizes, sizes, strict=True))
        lengths = {
            name: prod(size if isinstance(size, int) else sum(values[n] for n in size.split(" + ")) for size in shape)
            for name, shape in self.arrays.items()
        }
        return lengths | {"work": self.work(*sizes)} if "work" in lengths else lengths
