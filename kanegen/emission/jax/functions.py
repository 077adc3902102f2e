"""The statements of Python functions of JAX.

A function has no branches: what follows a guard is computed in any case, and `kg_guarded` chooses between its values
and those of another function. Under ``vmap`` JAX computes both sides of a branch anyway.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from kanegen.codegen.functions import user_names
from kanegen.codegen.labels import labels
from kanegen.codegen.text import LINE_WIDTH, comment
from kanegen.emission.jax.printer import JaxPrinter, python_name
from kanegen.emission.jax.runtime import definitions
from kanegen.precision import Precision
from kanegen.program.kernels import KERNELS
from kanegen.program.passes.code import Code, Evaluate, Gather, Let, Part, Statement
from kanegen.program.passes.lower import Value
from kanegen.program.passes.lowered import LoweredFunction, LoweredProgram
from kanegen.program.records import Call, Check, Guard, Store, Wording

ARGUMENTS: Final = ("t", "q", "u", "s", "r", "forces", "free", "p", "g", "c")
"""The arguments of the printed functions; ``c``: the constants that ``prepare`` computes."""


@dataclass(frozen=True)
class Written:
    """A printed function: its Python name, the layout of its values, and its statements.

    ``otherwise``: the functions that give the values where one of its conditions does not hold.
    """

    function: LoweredFunction
    name: str
    otherwise: tuple[str, ...]
    layout: str
    lines: tuple[str, ...]


def written(program: LoweredProgram, function: LoweredFunction, names: Mapping[str, str]) -> Written:
    """A function of a program in Python; ``names``: the Python names of the functions of the program."""
    stored, layout = labels(function, program.symbols)
    writer = _Writer(user_names(program), names, stored, program.precision)
    lines = writer.function(function.code, {"out": prod(function.shape), **function.arrays})
    return Written(function, names[function.name], tuple(writer.otherwise), layout, tuple(lines))


def preparation(program: LoweredProgram) -> tuple[str, ...]:
    """The statements of the function that computes the constants from p and g."""
    writer = _Writer(user_names(program), {}, (), program.precision)
    return (*writer.straight(program.prepare, {"c": program.n_constants}), "return c")


class _Writer:
    """Writes the statements of one function."""

    def __init__(
        self, users: Mapping[object, str], names: Mapping[str, str], stored: Sequence[str], precision: Precision
    ) -> None:
        self.otherwise: list[str] = []
        self._printer = JaxPrinter(users, {}, precision)
        self._names = names
        self._stored = stored
        self._filled: set[tuple[str, int]] = set()
        self._whole: set[str] = set()
        self._checked = False

    def straight(self, code: Code, arrays: Mapping[str, int]) -> list[str]:
        """The statements of all sections, after lists for the arrays that are filled one by one."""
        body: list[str] = []
        for section in code.sections:
            body += ["", f"# {comment(section.title)}"] if section.title else []
            for statement in section.statements:
                inner = statement.statements if isinstance(statement, Part) else (statement,)
                body += [line for one in inner for line in self._lines(one)]
        filled = {name for name, _ in self._filled} | (arrays.keys() - self._whole)
        return [*(f"{python_name(name)} = [0.0] * {n}" for name, n in arrays.items() if name in filled), *body]

    def function(self, code: Code, arrays: Mapping[str, int]) -> list[str]:
        """The statements of a function of the program: it returns values, whether they are valid, and conditions."""
        body = self.straight(code, arrays)
        conditions = [f"holds_{k}" for k in range(len(self.otherwise))]
        result = ["kg_vector(out)", "valid" if self._checked else "True"]
        result += [f"[{', '.join(conditions)}]"] if conditions else []
        return [*(["valid = True"] if self._checked else []), *body, f"return {', '.join(result)}"]

    def _lines(self, statement: Statement) -> list[str]:
        match statement:
            case Let(number, value):
                text = self._printer.definition(value)
                self._printer.names[value] = f"z{number}"
                return [f"z{number} = {text}"]
            case Store():
                return self._store(statement)
            case Gather(angles):
                texts = [self._printer.expression(angle) for angle in angles]
                return ["sine, cosine = kg_sincos(", *(f"    {text}," for text in texts), ")"]
            case Call():
                return self._call(statement)
            case Evaluate(function, array):
                self._whole.add(array)
                name, call = python_name(array), f"{self._names[function]}({', '.join(ARGUMENTS)})"
                return [f"{name}, ok = {call}", f"{name} = kg_scalars({name})", self._require("ok")]
            case Guard():
                return self._guard(statement)
            case Check(condition, reason):
                lines = _reason("Singular unless", reason, self._printer.precision)
                return [*lines, self._require(self._printer.holds(condition))]
        raise AssertionError(statement)

    def _store(self, store: Store[Value]) -> list[str]:
        place, array = (store.array, store.index), python_name(store.array)
        is_zero = store.value.op == "const" and float(store.value.payload) == 0.0
        if is_zero and place not in self._filled and store.array not in self._whole:
            return []  # lists are zero at the start
        lines = [f"{array} = list({array})"] if store.array in self._whole else []
        self._whole.discard(store.array)
        self._filled.add(place)
        label = self._stored[store.index : store.index + 1] if store.array == "out" else ()
        note = "".join(f"  # {text}" for text in label if text)
        return [*lines, f"{array}[{store.index}] = {self._printer.expression(store.value)}{note}"]

    def _call(self, call: Call) -> list[str]:
        kernel = KERNELS[call.kernel]
        given = dict(zip((*kernel.sizes, *kernel.arrays), call.arguments, strict=True))
        parameters = definitions()[f"kg_{call.kernel}"].parameters
        arguments = ", ".join(python_name(str(given[name])) for name in parameters)
        results = [str(given[name]) for name in kernel.results]
        self._whole |= set(results)
        targets = ", ".join(["ok", *map(python_name, results)])
        return [*_wrapped(f"{targets} = kg_{call.kernel}({arguments})"), self._require("ok")]

    def _guard(self, guard: Guard[Value]) -> list[str]:
        lines = _reason("Valid where", guard.reason, self._printer.precision)
        condition = self._printer.holds(guard.condition)
        if guard.otherwise is None:
            return [*lines, self._require(condition)]
        self.otherwise.append(self._names[guard.otherwise])
        return [*lines, f"holds_{len(self.otherwise) - 1} = {condition}"]

    def _require(self, condition: str) -> str:
        self._checked = True
        return f"valid = valid & {condition if condition == 'ok' else f'({condition})'}"


def _reason(beginning: str, reason: Wording, precision: Precision) -> list[str]:
    """The comment on a test."""
    words = (part if isinstance(part, str) else f"{float(precision.value(part)):g}" for part in reason)
    text = comment(f"{beginning} {''.join(words)}.") if reason else ""
    return [f"# {line}" for line in textwrap.wrap(text, LINE_WIDTH - 8, break_long_words=False)]


def _wrapped(text: str) -> list[str]:
    """A call in lines."""
    if len(text) <= LINE_WIDTH - 4:
        return [text]
    head, _, inner = text.removesuffix(")").partition("(")
    lines = textwrap.wrap(inner, LINE_WIDTH - 12, break_long_words=False)
    return [f"{head}(", *(f"    {line}" for line in lines), ")"]
