"""C statements of lowered code, and the arrays they name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kanegen.codegen.printer import Printer
from kanegen.codegen.text import comment
from kanegen.program.passes.code import Code, Gather, Let, Part, Statement, Value
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
    has_status: bool = False
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


def body(code: Code, calls: Calls) -> Body:
    """The statements of ``code`` in C; parts are called, not printed."""
    writer = _Writer(code.kept, calls)
    sections = tuple(
        Lines(comment(section.title), tuple(writer.lines(section.statements))) for section in code.sections
    )
    has_status = any(isinstance(s, Call | Invoke) for s in code.statements)
    passes_arguments = any(
        isinstance(s, Part | Invoke) or (isinstance(s, Guard) and s.otherwise is not None) for s in code.statements
    )
    has_result = has_status or any(isinstance(s, Check) for s in code.statements)
    return Body(sections, writer.arrays, has_status, has_result, passes_arguments)


def part_body(part: Part, kept: Mapping[Value, int], calls: Calls) -> Body:
    """The statements of one part in C; ``kept``: where values that parts share are."""
    writer = _Writer(kept, calls)
    lines = tuple(writer.lines(part.statements))
    return Body((Lines("", lines),), writer.arrays)


def _checked(call: str) -> list[str]:
    """A call whose negative status ends the function and whose positive one is reported at its end."""
    return [
        f"status = {call};",
        "if (status < 0) { return status; }",
        "if (status > result) { result = status; }",
    ]


class _Writer:
    def __init__(self, kept: Mapping[Value, int], calls: Calls) -> None:
        self._printer = Printer(calls.functions, kept)
        self._kept = kept
        self._calls = calls

    @property
    def arrays(self) -> frozenset[str]:
        """Every array that was read, written or passed on."""
        return frozenset(self._printer.arrays)

    def lines(self, statements: Iterable[Statement]) -> list[str]:
        return [line for statement in statements for line in self._lines(statement)]

    def _lines(self, statement: Statement) -> list[str]:
        if isinstance(statement, Let):
            return self._let(statement)
        if isinstance(statement, Store):
            self._printer.arrays.add(statement.array)
            value = self._printer.expression(statement.value)
            return [f"{statement.array}[{statement.index}] = {value};"]
        if isinstance(statement, Call):
            self._printer.arrays.update(a for a in statement.arguments if isinstance(a, str))
            arguments = ", ".join(str(a) for a in statement.arguments)
            return _checked(f"kg_{statement.kernel}({arguments})")
        if isinstance(statement, Invoke):
            self._printer.arrays.add(statement.array)
            return _checked(self._calls.evaluate(statement.function.name, statement.array))
        if isinstance(statement, Guard):
            holds = self._printer.holds(statement.condition)
            otherwise = statement.otherwise
            result = "KG_SINGULAR" if otherwise is None else self._calls.evaluate(otherwise, "out")
            return [f"if (!({holds})) {{ return {result}; }}"]
        if isinstance(statement, Check):
            return [f"result = ({self._printer.holds(statement.condition)}) ? result : KG_SINGULAR;"]
        if isinstance(statement, Part):
            return [f"{self._calls.parts[statement.number]};"]
        return self._gather(statement)

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
