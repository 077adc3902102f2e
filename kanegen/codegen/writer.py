"""The statements of C functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from kanegen.codegen.printer import Printer
from kanegen.codegen.text import comment, literal, wrapped
from kanegen.precision import Precision
from kanegen.program.passes.code import Code, Evaluate, Gather, Let, Part, Statement
from kanegen.program.passes.lower import Value
from kanegen.program.records import Call, Check, Guard, Store, Wording

FEWEST_ZEROS = 4
"""Smallest number of zeros that a loop stores; fewer are stored one by one."""


class Lines(NamedTuple):
    """One section of a C function: its title, safe for a comment, and its lines."""

    title: str
    lines: tuple[str, ...]


LONG: Final = 4000
"""Statements of a function from which on a compiler needs seconds to optimize it."""


@dataclass(frozen=True)
class Body:
    """The statements of a C function and the arrays that occur in them, including ``sine`` and ``cosine``.

    ``passes_arguments``: whether the function calls others with all its arguments.
    """

    sections: tuple[Lines, ...]
    arrays: frozenset[str]
    has_result: bool = False
    passes_arguments: bool = False

    @property
    def is_long(self) -> bool:
        """Whether optimizing would take the compiler seconds."""
        return sum(len(section.lines) for section in self.sections) > LONG


@dataclass(frozen=True)
class Calls:
    """C text of calls: names of user functions by payload, calls of program functions by name, of parts by number.

    The text of a call of a program function ends before the last argument, the array for the result.
    """

    users: Mapping[object, str]
    program: Mapping[str, str]
    parts: Mapping[int, str]

    def evaluate(self, name: str, array: str) -> str:
        """The call that evaluates a function of the program into ``array``."""
        return f"{self.program[name]}, {array})"


class Writer:
    """Writes the statements of one C function; ``kept``: indices of the values that parts share.

    Subclasses write some of the statements otherwise.
    """

    printer: type[Printer] = Printer

    def __init__(self, kept: Mapping[Value, int], calls: Calls, labels: Sequence[str], precision: Precision) -> None:
        self._printer = self.printer(calls.users, kept, precision)
        self._kept = kept
        self._calls = calls
        self._labels = labels

    @property
    def arrays(self) -> frozenset[str]:
        """Every array that was read, written or passed on."""
        return frozenset(self._printer.arrays)

    def body(self, code: Code) -> Body:
        """The statements of a function; parts are called, not printed."""
        sections = tuple(Lines(comment(part.title), tuple(self.lines(part.statements))) for part in code.sections)
        has_result = any(isinstance(s, Call | Evaluate | Check) for s in code.statements)
        return Body(sections, self.arrays, has_result, self.passes_arguments(code))

    def passes_arguments(self, code: Code) -> bool:
        """Whether the function calls others with all its arguments."""
        return bool(code.callees or code.parts)

    def lines(self, statements: Iterable[Statement]) -> list[str]:
        result: list[str] = []
        for straight, run in groupby(statements, lambda statement: isinstance(statement, Let | Store)):
            group = list(run)
            ranges = _zero_ranges([s for s in group if isinstance(s, Let | Store)]) if straight else []
            for array, first, end in ranges:
                self._printer.arrays.add(array)
                result.append(f"for (int i = {first}; i < {end}; ++i) {{ {array}[i] = KG_C(0.0); }}")
            cleared = {(array, index) for array, first, end in ranges for index in range(first, end)}
            for statement in group:
                if not (isinstance(statement, Store) and _is_zero(statement) and _place(statement) in cleared):
                    result.extend(self._lines(statement))
        return result

    def _lines(self, statement: Statement) -> list[str]:
        if isinstance(statement, Let):
            return self._let(statement)
        if isinstance(statement, Store):
            self._printer.arrays.add(statement.array)
            value = self._printer.expression(statement.value)
            label = self._labels[statement.index : statement.index + 1] if statement.array == "out" else ()
            note = "".join(f"  /* {text} */" for text in label if text)
            return [f"{statement.array}[{statement.index}] = {value};{note}"]
        if isinstance(statement, Call):
            self._printer.arrays.update(a for a in statement.arguments if isinstance(a, str))
            arguments = ", ".join(str(a) for a in statement.arguments)
            return [f"KG_CALL(result, kg_{statement.kernel}({arguments}));"]
        if isinstance(statement, Evaluate):
            self._printer.arrays.add(statement.array)
            return [f"KG_CALL(result, {self._calls.evaluate(statement.function, statement.array)});"]
        if isinstance(statement, Guard | Check):
            holds = self._printer.holds(statement.condition)
            return self._guard(statement, holds) if isinstance(statement, Guard) else self._check(statement, holds)
        return self._part(statement) if isinstance(statement, Part) else self._gather(statement)

    def _guard(self, guard: Guard[Value], holds: str) -> list[str]:
        failure = f"KG_{guard.status.name}"
        result = failure if guard.otherwise is None else self._calls.evaluate(guard.otherwise, "out")
        return [*self._reason("Valid where", guard.reason), f"if (!({holds})) {{ return {result}; }}"]

    def _check(self, check: Check[Value], holds: str) -> list[str]:
        return [*self._reason("Singular unless", check.reason), f"result = ({holds}) ? result : KG_SINGULAR;"]

    def _part(self, part: Part) -> list[str]:
        return [f"{self._calls.parts[part.number]};"]

    def _reason(self, beginning: str, reason: Wording) -> list[str]:
        """The comment on a test, with its tolerances as they are in this precision."""
        precision = self._printer.precision
        words = (part if isinstance(part, str) else f"{float(precision.value(part)):g}" for part in reason)
        return wrapped(f"{beginning} {''.join(words)}.") if reason else []

    def _let(self, let: Let) -> list[str]:
        value = let.value
        line = f"const kg_real z{let.number} = {self._printer.definition(value)};"
        self._printer.names[value] = f"z{let.number}"
        if value not in self._kept:
            return [line]
        self._printer.arrays.add("kept")
        return [line, f"kept[{self._kept[value]}] = z{let.number};"]

    def _gather(self, gather: Gather) -> list[str]:
        length = len(gather.angles)
        return [
            f"const kg_real angle[{length}] = {{",
            *(f"    {self._printer.expression(angle)}," for angle in gather.angles),
            "};",
            f"kg_real sine[{length}], cosine[{length}];",
            self._sines(length),
        ]

    def _sines(self, length: int) -> str:
        """The call that computes the sines and cosines of the ``length`` values in the array ``angle``."""
        return f"kg_sincos({length}, angle, sine, cosine);"


def _is_zero(store: Store[Value]) -> bool:
    return store.value.op == "const" and literal(store.value.payload) == "KG_C(0.0)"


def _place(store: Store[Value]) -> tuple[str, int]:
    return store.array, store.index


def _zero_ranges(statements: Sequence[Let | Store[Value]]) -> list[tuple[str, int, int]]:
    """Ranges (array, first, end) to fill with zeros before these statements, which then store the other values.

    At least half of the entries of a range are zeros; the statements store every entry and do not read the array.
    """
    stores = [statement for statement in statements if isinstance(statement, Store)]
    zeros = {_place(store) for store in stores if _is_zero(store)}
    if len(zeros) < FEWEST_ZEROS:
        return []
    read = {v.payload[0] for v in _operands(statement.value for statement in statements) if v.op in ("input", "gather")}
    stored = sorted({_place(store) for store in stores if store.array not in read})
    result = []
    for _, run in groupby(enumerate(stored), lambda item: (item[1][0], item[1][1] - item[0])):
        places = [place for _, place in run]
        inside = [index for array, index in places if (array, index) in zeros]
        if len(inside) >= FEWEST_ZEROS and 2 * len(inside) >= inside[-1] + 1 - inside[0]:
            result.append((places[0][0], inside[0], inside[-1] + 1))
    return result


def _operands(values: Iterable[Value]) -> Iterator[Value]:
    """The values and all that they are computed from."""
    seen: set[Value] = set()
    stack = list(values)
    while stack:
        value = stack.pop()
        if value not in seen:
            seen.add(value)
            stack.extend(value.args)
            yield value
