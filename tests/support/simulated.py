"""Lowered code run in Python, statement by statement as C would: checks scheduling without a compiler."""

from __future__ import annotations

import math
from typing import Any

from kanegen.graph.interpret import PYTHON
from kanegen.program.kernels import KERNELS
from kanegen.program.passes.code import Code, Gather, Let, Part, Statement
from kanegen.program.passes.lower import Value
from kanegen.program.records import Call, Function, Guard, Store


class Simulation:
    """Names hold numbers; a value without a name is evaluated where it stands, from the arrays as they are."""

    def __init__(self, function: Function, constants: list[float], inputs: dict[str, list[float]]) -> None:
        self.arrays: dict[str, list[Any]] = {**inputs, "c": constants, "out": [math.nan] * 3}
        self.arrays.update((name, [math.nan] * size) for name, size in function.arrays.items())
        self._names: dict[Value, float] = {}
        self._kept: dict[Value, float] = {}

    def run(self, code: Code) -> str | None:
        """The name of the fallback a guard chose, else None."""
        for statement in code.statements:
            if isinstance(statement, Guard) and self._value(statement.condition) == 0:
                return statement.otherwise
            if isinstance(statement, Part):
                self._part(statement, code)
            else:
                self._execute(statement)
        return None

    def _part(self, part: Part, code: Code) -> None:
        # A part is a C function: it sees kept values only, and leaves kept values only.
        outside, self._names = self._names, dict(self._kept)
        for statement in part.statements:
            self._execute(statement)
        self._kept.update((v, x) for v, x in self._names.items() if v in code.kept)
        self._names = {**outside, **self._kept}

    def _execute(self, statement: Statement) -> None:
        if isinstance(statement, Let):
            self._names[statement.value] = self._operation(statement.value)
        elif isinstance(statement, Store):
            self.arrays[statement.array][statement.index] = self._value(statement.value)
        elif isinstance(statement, Gather):
            angles = [self._value(angle) for angle in statement.angles]
            self.arrays["sine"] = [math.sin(x) for x in angles]
            self.arrays["cosine"] = [math.cos(x) for x in angles]
        elif isinstance(statement, Call):
            arguments = [self.arrays[a] if isinstance(a, str) else a for a in statement.arguments]
            assert KERNELS[statement.kernel].twin(*arguments) == 0

    def _value(self, value: Value) -> float:
        return self._names[value] if value in self._names else self._operation(value)

    def _operation(self, value: Value) -> float:
        args = [self._value(a) for a in value.args]
        match value.op:
            case "const":
                return float(value.payload)
            case "input":
                return float(self.arrays[value.payload[0]][value.payload[1]])
            case "sine" | "cosine":
                return float(self.arrays[value.op][value.payload])
            case "add":
                return args[0] + args[1]
            case "sub":
                return args[0] - args[1]
            case "mul":
                return args[0] * args[1]
            case "neg":
                return -args[0]
            case "select":
                return args[1] if args[0] != 0 else args[2]
            case op:
                return float(PYTHON.functions[op](*args))
