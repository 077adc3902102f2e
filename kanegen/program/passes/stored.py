"""A lowered program as text, and read from it: what the cache keeps so that other printers need no derivation.

The values of a function are a list, operands first, and the statements refer to them by their positions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, Final, TypeVar

from kanegen.codes import Code as Number
from kanegen.codes import Paradox, Status, SwitchShape
from kanegen.errors import BuildError
from kanegen.precision import PRECISIONS, Tolerance
from kanegen.program.passes.code import Code, Evaluate, Gather, Let, Part, Section, Statement
from kanegen.program.passes.lower import Value
from kanegen.program.passes.lowered import (
    LoweredFunction,
    LoweredProgram,
    User,
    UserFunction,
    UserGrid,
    UserInterval,
    UserSpline,
)
from kanegen.program.records import (
    Call,
    Check,
    ContactEntry,
    EventEntry,
    Guard,
    Store,
    SwitchEntry,
    Symbols,
    TableEntry,
)

AnyCode = TypeVar("AnyCode", bound=Number)

PROGRAM_FILE: Final = "program.json"
"""The file with the lowered program, beside the sources."""


def program_text(program: LoweredProgram, printed: str = "") -> str:
    """The program as JSON; equal programs give identical text. ``printed``: digest of the code that was printed."""
    users = {payload: index for index, payload in enumerate(program.users)}
    plain = {
        "printed": printed,
        "name": program.name,
        "precision": program.precision.name,
        "symbols": vars(program.symbols),
        "functions": [_plain_function(function, users) for function in program.functions],
        "n_constants": program.n_constants,
        "prepare": _plain_code(program.prepare, users),
        "users": [[_USERS.index(type(user)), *vars(user).values()] for user in program.users.values()],
        "contacts": [vars(entry) for entry in program.contacts],
        "events": [list(vars(entry).values()) for entry in program.events],
        "switches": [list(vars(entry).values()) for entry in program.switches],
        "tables": [list(vars(entry).values()) for entry in program.tables],
        "angles": program.angles,
    }
    return json.dumps(plain, ensure_ascii=False, separators=(",", ":")) + "\n"


def is_of_code(text: str, printed: str) -> bool:
    """Whether the code with the digest ``printed`` was printed from the program with this text."""
    return text.startswith(f'{{"printed":"{printed}"')


def read_program(text: str) -> LoweredProgram:
    """The program from the text of :func:`program_text`. Raises `BuildError` for any other text."""
    try:
        return _program(json.loads(text))
    except (LookupError, TypeError, ValueError) as error:
        raise BuildError(f"{PROGRAM_FILE} cannot be read ({error}); clear the cache and build again") from error


def _program(plain: Mapping[str, Any]) -> LoweredProgram:
    users = [_user(*item) for item in plain["users"]]
    return LoweredProgram(
        name=plain["name"],
        precision=PRECISIONS[plain["precision"]],
        symbols=Symbols(**{name: tuple(names) for name, names in plain["symbols"].items()}),
        functions=tuple(_function(item, users) for item in plain["functions"]),
        n_constants=plain["n_constants"],
        prepare=_code(plain["prepare"], users),
        users={user: user for user in users},
        contacts=tuple(map(_contact, plain["contacts"])),
        events=tuple(EventEntry(*map(_frozen, item)) for item in plain["events"]),
        switches=tuple(SwitchEntry(_member(SwitchShape, shape), tuple(levels)) for shape, levels in plain["switches"]),
        tables=tuple(TableEntry(*item) for item in plain["tables"]),
        angles=tuple(plain["angles"]),
    )


def _contact(plain: dict[str, Any]) -> ContactEntry:
    return ContactEntry(**{**plain, "paradox": _member(Paradox, plain["paradox"])})


def _member(kind: type[AnyCode], number: int) -> AnyCode:
    return {member.value: member for member in kind}[number]


_USERS: Final[tuple[type[User], ...]] = (UserFunction, UserSpline, UserInterval, UserGrid)
"""Kinds of functions of the user; their places are in the text."""


def _user(kind: int, *values: Any) -> User:
    return _USERS[kind](*map(_frozen, values))


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _plain_function(function: LoweredFunction, users: Mapping[Any, int]) -> dict[str, Any]:
    return {**vars(function), "code": _plain_code(function.code, users)}


def _function(plain: dict[str, Any], users: list[User]) -> LoweredFunction:
    return LoweredFunction(**{**plain, "shape": tuple(plain["shape"]), "code": _code(plain["code"], users)})


# -- numbers -----------------------------------------------------------------------------------------------------------


def _plain_number(number: int | Fraction | float) -> Any:
    if isinstance(number, Tolerance):
        return [float(number), number.single]
    return str(number) if isinstance(number, Fraction) else number


def _number(plain: Any) -> int | Fraction | float:
    if isinstance(plain, list):
        return Tolerance(*plain)
    return Fraction(plain) if isinstance(plain, str) else plain


# -- values and statements ---------------------------------------------------------------------------------------------


def _plain_code(code: Code, users: Mapping[Any, int]) -> list[Any]:
    """Values, sections of statements, and the positions of the values that parts share."""
    values = _Values(users)
    sections = [[s.title, [_plain_statement(statement, values) for statement in s.statements]] for s in code.sections]
    kept = [values(value) for value in code.kept]
    return [values.plain, sections, kept]


def _code(plain: list[Any], users: list[User]) -> Code:
    plain_values, plain_sections, kept = plain
    values: list[Value] = []
    for op, payload, *operands in plain_values:
        values.append(Value(op, tuple(values[k] for k in operands), _payload(op, payload, users)))
    sections = (Section(title, tuple(_statement(item, values) for item in items)) for title, items in plain_sections)
    return Code(tuple(sections), {values[position]: k for k, position in enumerate(kept)})


class _Values:
    """The values of one function in a list, each after its operands; a call gives the position of a value."""

    def __init__(self, users: Mapping[Any, int]) -> None:
        self.plain: list[list[Any]] = []
        self._positions: dict[Value, int] = {}
        self._users = users

    def __call__(self, root: Value) -> int:
        stack = [root]
        while stack:
            value = stack[-1]
            missing = [operand for operand in value.args if operand not in self._positions]
            stack += reversed(missing)
            if not missing:
                stack.pop()
                self._add(value)
        return self._positions[root]

    def _add(self, value: Value) -> None:
        if value not in self._positions:
            self._positions[value] = len(self.plain)
            payload = value.payload
            if value.op == "call":
                payload = self._users[payload]
            elif value.op == "const":
                payload = _plain_number(payload)
            self.plain.append([value.op, payload, *(self._positions[operand] for operand in value.args)])


def _payload(op: str, plain: Any, users: list[User]) -> Any:
    if op == "call":
        return users[plain]
    if op == "const":
        return _number(plain)
    return tuple(plain) if isinstance(plain, list) else plain


def _plain_statement(statement: Statement, values: _Values) -> list[Any]:
    name = _NAMES[type(statement)]
    match statement:
        case Let(number, value):
            return [name, number, values(value)]
        case Store(array, index, value):
            return [name, array, index, values(value)]
        case Gather(angles):
            return [name, [values(angle) for angle in angles]]
        case Call(kernel, arguments):
            return [name, kernel, list(arguments)]
        case Evaluate(function, array):
            return [name, function, array]
        case Guard(condition, otherwise, reason, status):
            return [name, values(condition), otherwise, _plain_words(reason), status.value]
        case Check(condition, reason):
            return [name, values(condition), _plain_words(reason)]
        case Part(number, statements):
            return [name, number, [_plain_statement(inner, values) for inner in statements]]


def _plain_words(words: Iterable[str | float]) -> list[Any]:
    return [["number", _plain_number(word)] if isinstance(word, float) else word for word in words]


def _words(plain: list[Any]) -> tuple[Any, ...]:
    return tuple(_number(word[1]) if isinstance(word, list) else word for word in plain)


def _statement(plain: list[Any], values: list[Value]) -> Any:
    return _READ[plain[0]](values, *plain[1:])


_READ: Final[Mapping[str, Callable[..., Statement]]] = {
    "let": lambda values, number, value: Let(number, values[value]),
    "store": lambda values, array, index, value: Store(array, index, values[value]),
    "gather": lambda values, angles: Gather(tuple(values[angle] for angle in angles)),
    "call": lambda values, kernel, arguments: Call(kernel, tuple(arguments)),
    "evaluate": lambda values, function, array: Evaluate(function, array),
    "guard": lambda values, condition, otherwise, reason, status: Guard(
        values[condition], otherwise, _words(reason), _member(Status, status)
    ),
    "check": lambda values, condition, reason: Check(values[condition], _words(reason)),
    "part": lambda values, number, statements: Part(number, tuple(_statement(item, values) for item in statements)),
}
"""How each kind of statement is read."""

_NAMES: Final = dict(zip((Let, Store, Gather, Call, Evaluate, Guard, Check, Part), _READ, strict=True))
