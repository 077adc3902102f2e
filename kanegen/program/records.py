"""The program: what is computed, as straight-line blocks over the graph and calls of runtime kernels.

A program knows nothing of C. A work array is an input array of the graph (``Graph.input(name, i)``) for the blocks
after the step that filled it, so the interpreter and the printer read the same records. The steps ``Store``, ``Guard``
and ``Check`` hold nodes of the graph here, and lowered values in :mod:`kanegen.program.passes.schedule`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Generic, TypeAlias, TypeVar

from kanegen.graph.nodes import Graph, Node

Operand = TypeVar("Operand")
"""What a step computes with: a node of the graph, or a lowered value."""


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


@dataclass(frozen=True)
class Call:
    """A runtime kernel on integers (sizes) and arrays (names): ``status = kg_<kernel>(*arguments)``.

    A negative status ends the function with that status; a positive one is reported at its end.
    """

    kernel: str
    arguments: tuple[int | str, ...]


@dataclass(frozen=True)
class Guard(Generic[Operand]):
    """Unless ``condition`` holds (not zero, not NaN) the function ``otherwise`` is evaluated in place of the rest.

    With ``otherwise`` None the function ends as singular. ``reason`` says in words what the condition tests.
    """

    condition: Operand
    otherwise: str | None
    reason: str = ""


@dataclass(frozen=True)
class Invoke:
    """Another function of the program at the same arguments: ``status = function(..., array)``; status as for Call."""

    function: Function
    array: str


@dataclass(frozen=True)
class Check(Generic[Operand]):
    """The function ends as singular unless ``condition`` holds; everything is computed either way, without a branch.

    ``reason`` says in words what the condition tests.
    """

    condition: Operand
    reason: str = ""


Step: TypeAlias = "Block | Call | Guard[Node] | Invoke | Check[Node]"


@dataclass(frozen=True, eq=False)
class Function:
    """One function of the generated code, compared by identity.

    ``shape``: () scalar, (rows,) or (rows, cols). ``arrays``: work arrays and their lengths. ``section`` and
    ``legend`` describe it to the reader of the C. Internal functions (fallbacks) are not listed in the table.
    """

    name: str
    shape: tuple[int, ...]
    steps: tuple[Step, ...]
    arrays: Mapping[str, int]
    summary: str
    internal: bool = False

    @property
    def roots(self) -> list[Node]:
        """Every node the function needs, in the order of its steps: stored values and conditions."""
        nodes: list[Node] = []
        for step in self.steps:
            if isinstance(step, Block):
                nodes.extend(store.value for store in step.stores)
            elif isinstance(step, Guard | Check):
                nodes.append(step.condition)
        return nodes


@dataclass(frozen=True)
class Symbols:
    """The names and units the reader of generated code sees, in the order of the arrays.

    ``hidden``: values of the array ``r`` behind the inputs that are not the user's.
    """

    coordinates: tuple[str, ...]
    speeds: tuple[str, ...]
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    gains: tuple[str, ...]
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True)
class ContactEntry:
    """One contact as the runtime reads it: ``kg_contact_info``. ``law`` is the kind of the contact; rows -1: none."""

    name: str
    law: str
    level: int
    normal: int
    tangent: int
    directions: int
    closed: bool


@dataclass(frozen=True)
class EventEntry:
    """One event as the runtime reads it: ``kg_event_info``, latches and impulses by their numbers.

    ``multipliers``: whether the guard reads contact multipliers.
    """

    name: str
    direction: int
    terminal: bool
    impulse: int
    impose: tuple[int, ...]
    remove: tuple[int, ...]
    multipliers: bool


@dataclass(frozen=True)
class Program:
    """All functions of one model over one graph, with the constants ``prepare`` fills in array ``c``.

    ``unavailable``: functions of the catalogue that the model does not have, with the reason.
    """

    name: str
    graph: Graph
    symbols: Symbols
    functions: tuple[Function, ...]
    constants: tuple[Node, ...] = ()
    contacts: tuple[ContactEntry, ...] = ()
    events: tuple[EventEntry, ...] = ()
    unavailable: tuple[tuple[str, str], ...] = ()

    def function(self, name: str) -> Function:
        return next(f for f in self.functions if f.name == name)

    def callees(self, function: Function) -> list[Function]:
        """The functions that ``function`` calls itself: those it falls back to, then those it invokes."""
        names = [step.otherwise for step in function.steps if isinstance(step, Guard) and step.otherwise is not None]
        names += [step.function.name for step in function.steps if isinstance(step, Invoke)]
        return [self.function(name) for name in names]


Shapes: TypeAlias = Mapping[str, tuple[str | int, ...]]
"""Shapes of arrays by name: numbers, names of sizes and sums of these names."""


@dataclass(frozen=True)
class Kernel:
    """A function ``kg_<name>(*sizes, *arrays)`` of the C runtime.

    ``twin``: the same function in Python, for numbers of any precision, with the same arguments and this name.
    ``header`` defines the C function. ``sizes``: names of the leading integer arguments. ``arrays``: every array
    argument, in order; the array ``work`` has the shape () and the length that ``work`` gives. ``results``: the arrays
    that hold a result afterwards. ``operations`` and ``work``: operations of one call and the length of the array
    ``work``, as functions of the sizes.
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

    def lengths(self, *sizes: int) -> dict[str, int]:
        """The length of every array argument for these sizes."""
        values = dict(zip(self.sizes, sizes, strict=True))
        lengths = {
            name: prod(size if isinstance(size, int) else sum(values[n] for n in size.split(" + ")) for size in shape)
            for name, shape in self.arrays.items()
        }
        return lengths | {"work": self.work(*sizes)} if "work" in lengths else lengths
