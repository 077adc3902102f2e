"""C statements of lowered code, and what they need declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kanegen.emit.printer import Printer
from kanegen.emit.text import comment
from kanegen.program.code import Code, Gather, KernelCall, Leave, Let, Put, Statement, Value


@dataclass(frozen=True)
class Lines:
    """One section of a C function: its title, safe for a comment, and its lines."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Body:
    """The statements of a C function, the arrays they name, and whether they call kernels."""

    sections: tuple[Lines, ...]
    arrays: frozenset[str]
    calls_kernels: bool
    falls_back: bool


def body(code: Code, functions: Mapping[object, str], fallbacks: Mapping[str, str]) -> Body:
    """Spell ``code`` in C.

    ``functions``: the C name of each user function. ``fallbacks``: the C call that evaluates a function in
    place of the rest, by the name of the function.
    """
    writer = _Writer(Printer(functions), fallbacks)
    sections = tuple(
        Lines(comment(section.title), tuple(line for s in section.statements for line in writer.lines(s)))
        for section in code.sections
    )
    kinds = {type(statement) for statement in code.statements}
    falls_back = any(isinstance(s, Leave) and s.otherwise is not None for s in code.statements)
    return Body(sections, _arrays(code), KernelCall in kinds, falls_back)


class _Writer:
    def __init__(self, printer: Printer, fallbacks: Mapping[str, str]) -> None:
        self._printer = printer
        self._fallbacks = fallbacks

    def lines(self, statement: Statement) -> list[str]:
        printer = self._printer
        if isinstance(statement, Let):
            line = f"const kg_real z{statement.number} = {printer.expression(statement.value)};"
            printer.names[statement.value] = f"z{statement.number}"
            return [line]
        if isinstance(statement, Put):
            return [f"{statement.array}[{statement.index}] = {printer.expression(statement.value)};"]
        if isinstance(statement, KernelCall):
            arguments = ", ".join(str(a) for a in statement.arguments)
            return [
                f"status = kg_{statement.kernel}({arguments});",
                "if (status < 0) { return status; }",
                "if (status > result) { result = status; }",
            ]
        if isinstance(statement, Leave):
            holds = printer.holds(statement.condition)
            result = "KG_SINGULAR" if statement.otherwise is None else self._fallbacks[statement.otherwise]
            return [f"if (!({holds})) {{ return {result}; }}"]
        return self._gather(statement)

    def _gather(self, gather: Gather) -> list[str]:
        length = f"KG_PADDED({len(gather.angles)})"
        return [
            f"const kg_real angle[{length}] = {{",
            *(f"    {self._printer.expression(angle)}," for angle in gather.angles),
            "};",
            f"kg_real sine[{length}], cosine[{length}];",
            f"kg_sincos({length}, angle, sine, cosine);",
        ]


def _arrays(code: Code) -> frozenset[str]:
    """Every array the code reads, writes or passes on."""
    found: set[str] = set()
    seen: set[Value] = set()
    stack: list[Value] = []
    for statement in code.statements:
        if isinstance(statement, Put):
            found.add(statement.array)
        if isinstance(statement, KernelCall):
            found.update(a for a in statement.arguments if isinstance(a, str))
        elif isinstance(statement, Gather):
            stack.extend(statement.angles)
        elif isinstance(statement, Leave):
            stack.append(statement.condition)
        else:
            stack.append(statement.value)
        while stack:
            value = stack.pop()
            if value not in seen:
                seen.add(value)
                stack.extend(value.args)
                if value.op == "input":
                    found.add(value.payload[0])
    return frozenset(found)
