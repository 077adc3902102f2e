"""The C functions of a kernel: names, declarations, statements, and comments on the stored values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Final, NamedTuple

from kanegen.codegen.printer import Printer
from kanegen.codegen.text import comment, literal, string, wrapped
from kanegen.precision import DOUBLE, Precision
from kanegen.program.passes.count import operation_count
from kanegen.program.passes.interleave import interleaved
from kanegen.program.passes.lower import Value
from kanegen.program.passes.schedule import Code, Gather, Let, Part, Statement, schedule, split
from kanegen.program.records import Call, Check, Function, Guard, Invoke, Program, Store, Symbols, Wording

ARGUMENTS = ("t", "q", "u", "r", "p", "work", "out")
GATHERED = ("sine", "cosine")

FEWEST_ZEROS = 4
"""Smallest number of zeros that a loop stores; fewer are stored one by one."""


class Local(NamedTuple):
    """A pointer into an argument: ``name = base + offset``."""

    name: str
    base: str
    offset: int
    constant: bool


class Lines(NamedTuple):
    """One section of a C function: its title, safe for a comment, and its lines."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Body:
    """The statements of a C function and the arrays that occur in them, including ``sine`` and ``cosine``.

    ``passes_arguments``: whether the function calls others with all its arguments.
    """

    sections: tuple[Lines, ...]
    arrays: frozenset[str]
    has_result: bool = False
    passes_arguments: bool = False


@dataclass(frozen=True)
class PartEntry:
    """One part of a long function; ``gathered``: whether sines and cosines are arguments."""

    identifier: str
    gathered: bool
    locals: tuple[Local, ...]
    unused: tuple[str, ...]
    body: Body


@dataclass(frozen=True)
class Entry:
    """One C function, as the template prints it.

    ``rows`` and ``cols`` are those of ``kg_function``; ``legend`` describes the stored values.
    """

    name: str
    title: str
    identifier: str
    summary: str
    legend: str
    rows: int
    cols: int
    work: int
    internal: bool
    locals: tuple[Local, ...]
    unused: tuple[str, ...]
    parts: tuple[PartEntry, ...]
    body: Body


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


def entries(program: Program, users: Mapping[object, str]) -> tuple[Entry, ...]:
    """All functions of a program, each after the functions it calls. ``users``: the C names of user functions."""
    codes = {f.name: split(interleaved(schedule(f, program.constants))) for f in program.functions}
    # The C name of a function contains its own name if that is an identifier, else a number.
    names = {
        f.name: f"evaluate_{f.name if f.name.isidentifier() and f.name.isascii() else k}"
        for k, f in enumerate(program.functions)
    }
    return tuple(_entry(f, program, users, codes, names) for f in _in_order_of_use(program))


def _in_order_of_use(program: Program) -> list[Function]:
    """The public functions and those they call, in the order of the program, but each after those it calls."""
    result: dict[str, Function] = {}

    def visit(function: Function) -> None:
        if function.name not in result:
            for called in program.callees(function):
                visit(called)
            result[function.name] = function

    for function in program.functions:
        if not function.internal:
            visit(function)
    return list(result.values())


def _entry(
    function: Function,
    program: Program,
    users: Mapping[object, str],
    codes: Mapping[str, Code],
    names: Mapping[str, str],
) -> Entry:
    code, identifier = codes[function.name], names[function.name]
    arrays = _arrays(function, code)
    # A called function works in the memory after the caller's arrays, because restrict forbids shared memory.
    own = sum(arrays.values())
    rest = f"work + {own}" if own else "work"
    others = {name: f"{c}(t, q, u, r, p, {rest}" for name, c in names.items()}
    arguments = ", ".join(ARGUMENTS + _gathered(code))
    calls = Calls(users, others, {p.number: f"{identifier}_part_{p.number}({arguments})" for p in code.parts})
    stored, layout = _labels(function, program.symbols)
    text = body(code, calls, stored, program.precision)
    rows, cols = (*function.shape, 0)[:2] if function.shape else (-1, 0)
    return Entry(
        name=string(function.name),
        title=comment(function.name),
        identifier=identifier,
        summary=comment(function.summary),
        legend=_legend(function, program, layout),
        rows=rows,
        cols=cols,
        work=_work(function, program, codes),
        internal=function.internal,
        locals=_locals(arrays, program, text),
        unused=() if text.passes_arguments else _unused(arrays, text),
        parts=_parts(identifier, code, arrays, program, calls, stored),
        body=text,
    )


def _gathered(code: Code) -> tuple[str, ...]:
    """The arrays of sines and cosines that a function passes to its parts if it gathers its angles."""
    return GATHERED if any(isinstance(statement, Gather) for statement in code.statements) else ()


def _parts(
    identifier: str, code: Code, arrays: dict[str, int], program: Program, calls: Calls, stored: Sequence[str]
) -> tuple[PartEntry, ...]:
    result, gathered = [], _gathered(code)
    for part in code.parts:
        writer = _Writer(code.kept, calls, stored, program.precision)
        text = Body((Lines("", tuple(writer.lines(part.statements))),), writer.arrays)
        unused = (*_unused(arrays, text), *(name for name in gathered if name not in text.arrays))
        name, locals_ = f"{identifier}_part_{part.number}", _locals(arrays, program, text)
        result.append(PartEntry(name, bool(gathered), locals_, unused, text))
    return tuple(result)


def _arrays(function: Function, code: Code) -> dict[str, int]:
    """The arrays of a function in ``work``, in order, with their lengths."""
    return {**function.arrays, "kept": len(code.kept)} if code.kept else dict(function.arrays)


def _work(function: Function, program: Program, codes: Mapping[str, Code]) -> int:
    """Number of work values of a function: its own arrays and the largest need of the functions it calls."""
    called = [_work(other, program, codes) for other in program.callees(function)]
    return sum(_arrays(function, codes[function.name]).values()) + max(called, default=0)


def _legend(function: Function, program: Program, layout: str) -> str:
    """Name, size, meaning and operation count of a function in one line."""
    size = "".join(f"[{n}]" for n in function.shape)
    hoisted, derived = operation_count(function, program.constants), operation_count(function)
    before = f" ({derived})" if derived != hoisted else ""
    text = f"{comment(function.name)}{size}: {comment(function.summary)}; {hoisted} operations{before}"
    return f"{text}; {layout}" if layout else text


def _locals(arrays: Mapping[str, int], program: Program, text: Body) -> tuple[Local, ...]:
    n_p, n_g = len(program.symbols.parameters), len(program.symbols.gains)
    inputs = [Local("g", "p", n_p, True), Local("c", "p", n_p + n_g, True)]
    offsets = accumulate(arrays.values(), initial=0)
    work = [Local(name, "work", offset, False) for name, offset in zip(arrays, offsets, strict=False)]
    return tuple(local for local in (*inputs, *work) if local.name in text.arrays)


def _unused(arrays: Mapping[str, int], text: Body) -> tuple[str, ...]:
    bases = {"g": "p", "c": "p", **dict.fromkeys(arrays, "work")}
    used = text.arrays | {bases[name] for name in text.arrays if name in bases}
    return tuple(name for name in ARGUMENTS if name not in used)


# -- statements --------------------------------------------------------------------------------------------------------


def body(code: Code, calls: Calls, labels: Sequence[str] = (), precision: Precision = DOUBLE) -> Body:
    """The statements of ``code`` in C; parts are called, not printed. ``labels[i]`` comments on ``out[i]``."""
    writer = _Writer(code.kept, calls, labels, precision)
    sections = tuple(Lines(comment(part.title), tuple(writer.lines(part.statements))) for part in code.sections)
    passes_arguments = any(
        isinstance(s, Part | Invoke) or (isinstance(s, Guard) and s.otherwise is not None) for s in code.statements
    )
    has_result = any(isinstance(s, Call | Invoke | Check) for s in code.statements)
    return Body(sections, writer.arrays, has_result, passes_arguments)


class _Writer:
    """Writes the statements of one C function; ``kept``: indices of the values that parts share."""

    def __init__(self, kept: Mapping[Value, int], calls: Calls, labels: Sequence[str], precision: Precision) -> None:
        self._printer = Printer(calls.users, kept, precision)
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
            label = self._labels[statement.index : statement.index + 1] if statement.array == "out" else ()
            note = "".join(f"  /* {text} */" for text in label if text)
            return [f"{statement.array}[{statement.index}] = {value};{note}"]
        if isinstance(statement, Call):
            self._printer.arrays.update(a for a in statement.arguments if isinstance(a, str))
            arguments = ", ".join(str(a) for a in statement.arguments)
            return [f"KG_CALL(result, kg_{statement.kernel}({arguments}));"]
        if isinstance(statement, Invoke):
            self._printer.arrays.add(statement.array)
            return [f"KG_CALL(result, {self._calls.evaluate(statement.function.name, statement.array)});"]
        if isinstance(statement, Guard):
            holds, otherwise = self._printer.holds(statement.condition), statement.otherwise
            failure = f"KG_{statement.status.name}"
            result = failure if otherwise is None else self._calls.evaluate(otherwise, "out")
            reason = self._reason("Valid where", statement.reason)
            return [*reason, f"if (!({holds})) {{ return {result}; }}"]
        if isinstance(statement, Check):
            reason = self._reason("Singular unless", statement.reason)
            return [*reason, f"result = ({self._printer.holds(statement.condition)}) ? result : KG_SINGULAR;"]
        if isinstance(statement, Part):
            return [f"{self._calls.parts[statement.number]};"]
        return self._gather(statement)

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
            f"kg_sincos({length}, angle, sine, cosine);",
        ]


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
    read = {v.payload[0] for v in _operands(statement.value for statement in statements) if v.op == "input"}
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


# -- comments on the stored values -------------------------------------------------------------------------------------

DERIVATIVES: Final = "derivatives of the coordinates, then of the speeds"
SPEEDS: Final = "speeds"
STATES: Final = "states"
ROWS: Final = "constraints"

AXES: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("rhs", "rhs_stabilized", "kinematics", "jacobian_t"), (DERIVATIVES,)),
    "jacobian_q": (DERIVATIVES, "coordinates"),
    "jacobian_u": (DERIVATIVES, SPEEDS),
    "jacobian_s": (DERIVATIVES, STATES),
    "state_rates": (STATES,),
    "resets": ("events", STATES),
    "switches": ("switches", "value and rate"),
    "tables": ("tables", "argument and whether it is inside"),
    "jacobian_r": (DERIVATIVES, "inputs"),
    "jacobian_p": (DERIVATIVES, "parameters"),
    **dict.fromkeys(("Q", "M"), (SPEEDS, SPEEDS)),
    "T": ("constraints, then momentum balances", SPEEDS),
    "V": ("constraints, then momentum balances",),
    "J": (ROWS, SPEEDS),
    **dict.fromkeys(("b", "multipliers"), (ROWS,)),
    "A": ("dependent speeds", "independent speeds"),
    "B": ("dependent speeds",),
    "A1": (ROWS, SPEEDS),
    "A2": ("independent speeds", SPEEDS),
    **dict.fromkeys(("P", "F", "L", "N", "momentum", "constraint_force"), (SPEEDS,)),
}
"""Meaning of the rows and columns of a function. Functions that are not listed have plain indices."""


def _labels(function: Function, symbols: Symbols) -> tuple[list[str], str]:
    """Comments on the values in ``out``, none for plain indices, and a phrase about the rows and columns."""
    # Internal functions with these endings store the same values as the function without the ending.
    name = function.name.removesuffix("_general").removesuffix("_bare")
    shape, axes = function.shape, AXES.get(name, ())
    if len(axes) != len(shape):
        axes = ("",) * len(shape)
    names = [_names(axis, symbols, n) for axis, n in zip(axes, shape, strict=True)]
    if axes == (DERIVATIVES,):
        at, layout = names[0], ", ".join(names[0])
    elif len(shape) == 2:
        rows, columns = (along or list(map(str, range(n))) for along, n in zip(names, shape, strict=True))
        at = [f"{name if axes[0] else ''}[{row}, {column}]" for row in rows for column in columns]
        layout = f"rows: {axes[0]}; columns: {axes[1]}" if axes[0] else ""
    else:
        at = [f"{name}[{entry}]" for along in names for entry in along]
        layout = f"rows: {axes[0]}" if any(axes) else ""
    return list(map(comment, at)), comment(layout)


def _names(axis: str, symbols: Symbols, length: int) -> list[str]:
    """The names along an axis; empty for plain indices."""
    known: dict[str, Sequence[str]] = {
        DERIVATIVES: [f"{name}'" for name in (*symbols.coordinates, *symbols.speeds, *symbols.states)],
        SPEEDS: symbols.speeds,
        STATES: symbols.states,
        "coordinates": symbols.coordinates,
        "inputs": symbols.inputs,
        "parameters": symbols.parameters,
    }
    names = list(known.get(axis, ()))
    return names if len(names) == length else []
