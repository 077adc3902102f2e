"""Functions of changes along several directions at once: only what depends on the directions is on vector lanes.

A direction enters a function linearly, so that values which depend on it occur in sums, products with numbers, and
chosen branches only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kanegen.codegen.printer import ATOM, SUM, Printer
from kanegen.codegen.writer import Calls, Writer
from kanegen.precision import DOUBLE, Precision
from kanegen.program.passes.code import Code, Let, Statement
from kanegen.program.passes.lower import Value
from kanegen.program.records import Store


class Varying:
    """Tells which values of a program of variations depend on the direction.

    ``n_r``, ``n_g``: the inputs and gains before those that are the direction. ``prepare`` computes the constants.
    """

    def __init__(self, n_r: int, n_g: int, prepare: Code) -> None:
        self.n_r, self.n_g = n_r, n_g
        self._known: dict[Value, bool] = {}
        self._constants = {
            item.index
            for item in prepare.statements
            if isinstance(item, Store) and item.array == "c" and self(item.value)
        }

    def __call__(self, value: Value) -> bool:
        """Whether a value depends on the direction."""
        stack = [value]
        while stack:
            top = stack[-1]
            missing = [x for x in top.args if x not in self._known]
            if missing:
                stack += missing
                continue
            self._known[stack.pop()] = self._depends(top)
        return self._known[value]

    def _depends(self, value: Value) -> bool:
        if value.op == "gather":
            _, first_element, count = value.payload
            return any(k in self._constants for k in range(first_element, first_element + count))
        if value.op == "input":
            array, index = value.payload
            first = {"r": self.n_r, "g": self.n_g}.get(array)
            return index in self._constants if array == "c" else first is not None and index >= first
        return any(self._known[x] for x in value.args)


class DirectionPrinter(Printer):
    """Prints numbers as the kernel does, and values that depend on the direction as vectors."""

    def __init__(
        self,
        functions: Mapping[object, str],
        kept: Mapping[Value, int],
        precision: Precision = DOUBLE,
        *,
        varying: Varying,
    ) -> None:
        super().__init__(functions, kept, precision)
        self._varying = varying

    def lifted(self, value: Value) -> str:
        """The expression of a value as a vector."""
        if self._varying(value):
            return self.expression(value)
        return f"(kg_lanes){{0}} + {self._operand(value, SUM + 1)}"

    def _text(self, value: Value) -> tuple[str, int]:
        if value not in self.names and value in self._kept and self._varying(value):
            return self._element("lanes_kept", self._kept[value]), ATOM
        return super()._text(value)

    def _atom(self, value: Value) -> str:
        if not self._varying(value):
            return super()._atom(value)
        if value.op == "select":
            condition, *branches = value.args
            chosen = " : ".join(f"({self.lifted(branch)})" for branch in branches)
            return f"(({self.condition(condition)}) ? {chosen})"
        if value.op == "gather":
            _, start, _ = value.payload
            self.arrays.add("lanes_c")
            return f"KG_GATHER(lanes_c + {start}, {self.expression(value.args[0])})"
        if value.op != "input":
            raise ValueError(f"the operation {value.op!r} does not depend on directions linearly")
        array, index = value.payload
        if array == "r":
            return self._element("lanes_change", index - self._varying.n_r)
        return self._element("lanes_p", index - self._varying.n_g) if array == "g" else self._element("lanes_c", index)


class DirectionWriter(Writer):
    """Writes the statements of a function whose values are changes along directions."""

    def __init__(
        self,
        kept: Mapping[Value, int],
        calls: Calls,
        labels: Sequence[str],
        precision: Precision,
        *,
        varying: Varying,
    ) -> None:
        super().__init__(kept, calls, labels, precision)
        self._printer: DirectionPrinter = DirectionPrinter(calls.users, kept, precision, varying=varying)
        self._varying = varying

    def lines(self, statements: Iterable[Statement]) -> list[str]:
        return [line for statement in statements for line in self._lines(statement)]

    def _lines(self, statement: Statement) -> list[str]:
        if isinstance(statement, Store) and statement.array == "out":
            self._printer.arrays.add("lanes_out")
            return [f"lanes_out[{statement.index}] = {self._printer.lifted(statement.value)};"]
        return super()._lines(statement)

    def _let(self, let: Let) -> list[str]:
        if not self._varying(let.value):
            return super()._let(let)
        line = f"const kg_lanes z{let.number} = {self._printer.definition(let.value)};"
        self._printer.names[let.value] = f"z{let.number}"
        if let.value not in self._kept:
            return [line]
        self._printer.arrays.add("lanes_kept")
        return [line, f"lanes_kept[{self._kept[let.value]}] = z{let.number};"]
