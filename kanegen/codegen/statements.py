"""C statements of lowered code, and the arrays they name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from kanegen.codegen.printer import Printer, literal
from kanegen.codegen.text import comment, wrapped
from kanegen.program.passes.lower import Value
from kanegen.program.passes.schedule import Code, Gather, Let, Part, Statement
from kanegen.program.records import Call, Check, Guard, Invoke, Store


@dataclass(frozen=True)
class Lines:
    """One section of a C function: its title, safe for a comment, and its lines."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Body:
    """The statements of a C function and the arrays they name, also ``sine`` and ``cosine``."""

    sections: tuple[Lines, ...]
    arrays: frozenset[str]
    has_result: bool = False
    passes_arguments: bool = False
    """Whether it calls functions with all its arguments."""


@dataclass(frozen=True)
class Calls:
    """How C calls what a function calls: user functions by payload, functions of the program by name, parts by number.

    A call of a function of the program lacks its last argument, the array that receives the result.
    """

    functions: Mapping[object, str]
    program: Mapping[str, str]
    parts: Mapping[int, str]

    def evaluate(self, name: str, array: str) -> str:
        """The call that evaluates a function of the program into ``array``."""
        return f"{self.program[name]}, {array})"


FEWEST_ZEROS = 4
"""Zeros that are worth a loop: fewer are stored one by one."""


def body(code: Code, calls: Calls, labels: Sequence[str] = ()) -> Body:
    """The statements of ``code`` in C; parts are called, not printed. ``labels[i]`` comments on ``out[i]``."""
    writer = _Writer(code.kept, calls, labels)
    sections = tuple(
        Lines(comment(section.title), tuple(writer.lines(section.statements))) for section in code.sections
    )
    passes_arguments = any(
        isinstance(s, Part | Invoke) or (isinstance(s, Guard) and s.otherwise is not None) for s in code.statements
    )
    has_result = any(isinstance(s, Call | Invoke | Check) for s in code.statements)
    return Body(sections, writer.arrays, has_result, passes_arguments)


def part_body(part: Part, kept: Mapping[Value, int], calls: Calls, labels: Sequence[str] = ()) -> Body:
    """The statements of one part in C; ``kept``: where values that parts share are."""
    writer = _Writer(kept, calls, labels)
    lines = tuple(writer.lines(part.statements))
    return Body((Lines("", lines),), writer.arrays)


class _Writer:
    def __init__(self, kept: Mapping[Value, int], calls: Calls, labels: Sequence[str]) -> None:
        self._printer = Printer(calls.functions, kept)
        self._kept = kept
        self._calls = calls
        self._labels = labels

    @property
    def arrays(self) -> frozenset[str]:
        """Every array that was read, written or passed on."""
        return frozenset(self._printer.arrays)

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
            return [f"{statement.array}[{statement.index}] = {value};{self._label(statement)}"]
        if isinstance(statement, Call):
            self._printer.arrays.update(a for a in statement.arguments if isinstance(a, str))
            arguments = ", ".join(str(a) for a in statement.arguments)
            return [f"KG_CALL(result, kg_{statement.kernel}({arguments}));"]
        if isinstance(statement, Invoke):
            self._printer.arrays.add(statement.array)
            return [f"KG_CALL(result, {self._calls.evaluate(statement.function.name, statement.array)});"]
        if isinstance(statement, Guard):
            holds = self._printer.holds(statement.condition)
            otherwise = statement.otherwise
            result = "KG_SINGULAR" if otherwise is None else self._calls.evaluate(otherwise, "out")
            reason = wrapped(f"Valid where {statement.reason}." if statement.reason else "")
            return [*reason, f"if (!({holds})) {{ return {result}; }}"]
        if isinstance(statement, Check):
            reason = wrapped(f"Singular unless {statement.reason}." if statement.reason else "")
            return [*reason, f"result = ({self._printer.holds(statement.condition)}) ? result : KG_SINGULAR;"]
        if isinstance(statement, Part):
            return [f"{self._calls.parts[statement.number]};"]
        return self._gather(statement)

    def _label(self, store: Store[Value]) -> str:
        """The comment on a value of the function."""
        text = self._labels[store.index] if store.array == "out" and store.index < len(self._labels) else ""
        return f"  /* {text} */" if text else ""

    def _let(self, let: Let) -> list[str]:
        value = let.value
        line = f"const kg_real z{let.number} = {self._printer.definition(value)};"
        self._printer.names[value] = f"z{let.number}"
        if value not in self._kept:
            return [line]
        self._printer.arrays.add("kept")
        return [line, f"kept[{self._kept[value]}] = z{let.number};"]

    def _gather(self, gather: Gather) -> list[str]:
        length = f"KG_PADDED({len(gather.angles)})"
        return [
            f"const kg_real angle[{length}] = {{",
            *(f"    {self._printer.expression(angle)}," for angle in gather.angles),
            "};",
            f"kg_real sine[{length}], cosine[{length}];",
            f"kg_sincos({length}, angle, sine, cosine);",
        ]


# -- zeros --------------------------------------------------------------------------------------------------------


def _is_zero(store: Store[Value]) -> bool:
    return store.value.op == "const" and literal(store.value.payload) == "KG_C(0.0)"


def _place(store: Store[Value]) -> tuple[str, int]:
    return store.array, store.index


def _zero_ranges(statements: Sequence[Let | Store[Value]]) -> list[tuple[str, int, int]]:
    """Ranges (array, first, end) to fill with zeros before these statements, which then store the other values.

    A range holds zeros for the most part, and only places that the statements store to; none of them reads the array.
    """
    stores = [statement for statement in statements if isinstance(statement, Store)]
    zeros = {_place(store) for store in stores if _is_zero(store)}
    if len(zeros) < FEWEST_ZEROS:
        return []
    read = _arrays_read(statement.value for statement in statements)
    stored = sorted({_place(store) for store in stores if store.array not in read})
    result = []
    for _, run in groupby(enumerate(stored), lambda item: (item[1][0], item[1][1] - item[0])):
        places = [place for _, place in run]
        inside = [index for array, index in places if (array, index) in zeros]
        if len(inside) >= FEWEST_ZEROS and 2 * len(inside) >= inside[-1] + 1 - inside[0]:
            result.append((places[0][0], inside[0], inside[-1] + 1))
    return result


def _arrays_read(values: Iterable[Value]) -> set[str]:
    """The arrays from which the values, or what they are computed of, are read."""
    return {value.payload[0] for value in _operands(values) if value.op == "input"}


def _operands(values: Iterable[Value]) -> Iterator[Value]:
    seen: set[Value] = set()
    stack = list(values)
    while stack:
        value = stack.pop()
        if value not in seen:
            seen.add(value)
            stack.extend(value.args)
            yield value
