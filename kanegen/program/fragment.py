"""The builder of functions: steps, work arrays and conditions are collected while the function is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from types import MappingProxyType
from typing import Final, TypeAlias

from kanegen.graph import Graph, Node
from kanegen.program.kernels import KERNELS
from kanegen.program.records import Block, Call, Check, Function, Guard, Invoke, Step, Store

Source: TypeAlias = "Sequence[Node | None] | Function | str"
"""Where an argument of a kernel comes from: nodes (None: not stored), a function, or the name of an array."""

ARRAY_NAMES: Final[Mapping[str, str]] = MappingProxyType({"work": "scratch", "udot": "a"})
"""Names of arrays where they differ from the argument of the kernel."""


class Fragment:
    """The steps of one function, while it is made.

    ``steps`` and ``arrays``: the steps so far, and the work arrays they need with their lengths. ``conditions``: what
    must hold for the values to be right; :meth:`guard` and :meth:`check` turn them into a step. ``otherwise``: the
    function that takes over where they do not hold. ``shape``: that of the output, known after :meth:`output`.
    """

    def __init__(self, graph: Graph, otherwise: str | None = None) -> None:
        self.graph = graph
        self.otherwise = otherwise
        self.steps: list[Step] = []
        self.arrays: dict[str, int] = {}
        self.conditions: list[Node] = []
        self.shape: tuple[int, ...] = ()

    def array(self, name: str, length: int) -> list[Node]:
        """The elements of a work array, which is allocated, as nodes."""
        if name != "out":
            self.arrays[name] = max(length, self.arrays.get(name, 0))
        return [self.graph.input(name, i) for i in range(length)]

    def store(self, title: str, **arrays: Sequence[Node | None]) -> None:
        """Store values in work arrays, in one block; None is not stored."""
        block: list[Store[Node]] = []
        for name, values in arrays.items():
            self.array(name, len(values))
            block += stores(name, values)
        self.steps.append(Block(title, tuple(block)))

    def invoke(self, function: Function, array: str, length: int) -> list[Node]:
        """The values of another function at the same arguments, in a work array."""
        self.steps.append(Invoke(function, array))
        return self.array(array, length)

    def call(
        self, kernel: str, *sizes: int, title: str = "", names: Mapping[str, str] = ARRAY_NAMES, **inputs: Source
    ) -> dict[str, list[Node]]:
        """Call a runtime kernel; all its arrays are allocated with the lengths of its record.

        Parameters
        ----------
        kernel, sizes
            The name of the kernel in `KERNELS` and its integer arguments.
        title
            Title of the block that stores the inputs given as nodes.
        names
            Names of arrays where they differ from the kernel's arguments; the array ``work`` is called ``scratch`` and
            ``udot`` ``a`` anyway.
        inputs
            The kernel's inputs by argument. Functions are evaluated first, then nodes are stored.

        Returns
        -------
        The elements of each result of the kernel, by argument.
        """
        record = KERNELS[kernel]
        lengths, name_of = record.lengths(*sizes), {**ARRAY_NAMES, **names}
        array_of = {argument: name_of.get(argument, argument) for argument in record.arrays}
        array_of |= {argument: source for argument, source in inputs.items() if isinstance(source, str)}
        for argument, source in inputs.items():
            if isinstance(source, Function):
                self.invoke(source, array_of[argument], lengths[argument])
        given = {array_of[a]: x for a, x in inputs.items() if not isinstance(x, str | Function)}
        if given:
            self.store(title, **given)
        for argument, array in array_of.items():
            if not isinstance(inputs.get(argument), str):
                self.array(array, lengths[argument])
        self.steps.append(Call(kernel, (*sizes, *array_of.values())))
        return {argument: self.array(array_of[argument], lengths[argument]) for argument in record.results}

    def require(self, *conditions: Node) -> None:
        """Collect conditions under which the values are right."""
        self.conditions.extend(conditions)

    def guard(self) -> None:
        """Unless the conditions collected so far hold, ``otherwise`` takes over, or the function ends as singular."""
        self.steps += [Guard(condition, self.otherwise) for condition in self._collected()]

    def check(self) -> None:
        """Unless the conditions collected so far hold, the function ends as singular, without a branch."""
        self.steps += [Check(condition) for condition in self._collected()]

    def _collected(self) -> list[Node]:
        """The conditions as one, if there are any."""
        # What is constant during a run (masses that are not negative) comes first: prepare() decides it once.
        conditions = sorted(self.conditions, key=lambda node: not node.constant)
        self.conditions = []
        return [reduce(partial(self.graph.apply, "and"), conditions)] if conditions else []

    def output(self, nodes: Sequence[Node], shape: tuple[int, ...] | None = None, title: str = "") -> Fragment:
        """Store the output (a vector unless ``shape`` says otherwise); returns the fragment."""
        self.shape = (len(nodes),) if shape is None else shape
        self.steps.append(Block(title, stores("out", nodes)))
        return self

    def rows(self, rows: Sequence[Sequence[Node]], title: str = "") -> Fragment:
        """Store the output, a matrix given by its rows; returns the fragment."""
        return self.output(flat(rows), (len(rows), len(rows[0])), title)


def stores(array: str, values: Sequence[Node | None]) -> tuple[Store[Node], ...]:
    return tuple(Store(array, i, value) for i, value in enumerate(values) if value is not None)


def flat(rows: Sequence[Sequence[Node]]) -> list[Node]:
    """The entries of a matrix, row-major."""
    return [x for row in rows for x in row]


def lower_triangle(rows: Sequence[Sequence[Node]]) -> list[Node | None]:
    """A symmetric matrix given by its lower triangle, row-major; the entries above the diagonal are not stored."""
    n = len(rows)
    return [rows[i][j] if j <= i else None for i in range(n) for j in range(n)]
