"""The functions of a kernel on vector lanes, for evaluation at many states (templates/batch/kg_lanes.h).

They are derived from the text of the kernel, because a model from the cache has no program any more, and models that
are never evaluated in batches need no further text. Only a few statements differ: guards and checks note the lanes that
they refuse, and functions return these lanes instead of a status.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kanegen._version import __version__
from kanegen.codegen.methods.files import METHODS
from kanegen.codegen.sources import Sources, include_closure, render, runtime_headers
from kanegen.codegen.text import string
from kanegen.errors import BuildError
from kanegen.resources import template_folder

FOLDER: Final = "batch"
"""The folder of the templates."""

BATCH_FILE: Final = "batch.c"
MANY_FILE: Final = "many.c"
MANY_HEADERS: Final = ("kg_many.h", "kg_motions.h", "kg_group.h", "kg_powers.h", "kg_rows.h", "kg_lanes.h")

_SCHEDULED_LINES: Final = 500
"""Most lines of a function whose instructions GCC orders before it assigns registers.

Measured with gcc 12: 3 to 9 % less time for functions of 50 to 400 lines, 7 % more for one of 640 lines.
"""

_FUNCTION = re.compile(
    r"^static (KG_APART )?(?:int|void) (\w+)\((kg_real \*p|KG_ARGUMENTS[^)]*)\)\n\{\n(.*?)^\}", re.DOTALL | re.MULTILINE
)
_USER = re.compile(r"^/\* User (?:function|spline): .*?(?=^/\* Computes the constants c)", re.DOTALL | re.MULTILINE)
_USER_FUNCTION = re.compile(r"^static kg_real (user_\w+)\(([^)]*)\)$", re.MULTILINE)
_TABLE = re.compile(r'^    \{"((?:[^"\\]|\\.)*)", (-?\d+), (\d+), \d+, (\w+)\},$', re.MULTILINE)
_SIZE = re.compile(r"^    /\* (n_\w+) +\*/ (\d+),$", re.MULTILINE)

_STATEMENTS: Final = (
    (re.compile(r"^( *)if \(!\((.*)\)\) \{ return .*; \}$", re.MULTILINE), r"\1KG_REQUIRE(\2);"),
    (re.compile(r"^( *)result = \((.*)\) \? result : KG_SINGULAR;$", re.MULTILINE), r"\1KG_REQUIRE(\2);"),
    (re.compile(r"^ *int result = KG_OK;\n", re.MULTILINE), ""),
    (re.compile(r"^ *return (?:result|KG_OK);\n", re.MULTILINE), ""),
    (re.compile(r"^( *)(evaluate_\w+_part_\d+\()", re.MULTILINE), r"\1redo |= \2"),
    (re.compile(r"!\("), "~("),
    (re.compile(r"\|\|"), "|"),
)
"""Statements of the scalar kernel and what they become: masks have no `!` and `||` in C."""

_CALLS = re.compile(r"\b(evaluate_\w+)\(t, q, u, r, p")
_KERNEL_CALL = re.compile(r"^ *KG_CALL\(result, kg_", re.MULTILINE)


class LaneFunction(NamedTuple):
    """A function on lanes: its attributes, name, arguments and statements in C."""

    attributes: str
    identifier: str
    arguments: str
    body: str


class _Public(NamedTuple):
    """An entry in the table of the public functions of a kernel."""

    size: int
    identifier: str

    @classmethod
    def of(cls, rows: str, columns: str, identifier: str) -> _Public:
        return cls(abs(int(rows)) * max(int(columns), 1), identifier)  # -1 rows: a scalar; 0 columns: a vector


@dataclass(frozen=True)
class _Kernel:
    """The functions of a kernel by C identifier, its public functions by name, and its sizes."""

    functions: dict[str, LaneFunction]
    public: dict[str, _Public]
    sizes: dict[str, int]

    @classmethod
    def read(cls, text: str) -> _Kernel:
        found = (_on_lanes(match) for match in _FUNCTION.finditer(text))
        public = {name: _Public.of(*entry) for name, *entry in _TABLE.findall(text)}
        sizes = {name: int(size) for name, size in _SIZE.findall(text)}
        return cls({function.identifier: function for function in found}, public, sizes)

    def sizes_of(self, function: _Public) -> dict[str, int]:
        """The sizes that kg_batch.h needs: arguments, results, and a bound of the number of varied parameters."""
        n = self.sizes
        arguments = {"Q": n["n_q"], "U": n["n_u"], "R": n["n_r"] + n["n_hidden"]}
        return {**arguments, "PARAMETERS": n["n_p"], "OUT": function.size}

    def needed_by(self, identifier: str) -> list[LaneFunction]:
        """The function after those that it calls; none if one of them calls a runtime kernel with pivots."""
        result: dict[str, LaneFunction] = {}
        if not self._collect(identifier, result):
            return []
        return list(result.values())

    def _collect(self, identifier: str, result: dict[str, LaneFunction]) -> bool:
        function = self.functions[identifier]
        if _KERNEL_CALL.search(function.body):
            return False
        called = dict.fromkeys(_CALLS.findall(function.body))
        if not all(name in result or self._collect(name, result) for name in called):
            return False
        result[identifier] = function
        return True


def batch_sources(sources: Sources, name: str) -> dict[str, str]:
    """The files of the batch evaluation of one function, `BATCH_FILE` and headers, by name.

    Functions that need a linear solver with pivots, as the general form of constrained equations, have no form on
    lanes: their file evaluates them row by row. Raises `BuildError` for a function that the kernel lacks.
    """
    kernel = _Kernel.read(text := sources.text(sources.kernel))
    public = kernel.public.get(string(name)[1:-1])
    if public is None:
        raise BuildError(f"the kernel {sources.kernel!r} has no function {name!r}")
    functions = kernel.needed_by(public.identifier)
    main = render(
        f"{FOLDER}/batch.c.jinja",
        name=name,
        functions=[kernel.functions["prepare"], *functions] if functions else [],
        evaluate=public.identifier if functions else "",
        numbers=kernel.sizes_of(public),
        scheduled=all(function.body.count("\n") < _SCHEDULED_LINES for function in functions),
        **_shared(sources, text if functions else ""),
    )
    return _with_headers(sources, {BATCH_FILE: main, **_headers("kg_batch.h", "kg_rows.h", "kg_lanes.h")})


def many_sources(
    sources: Sources, sizes: tuple[int, int, int, int], name: str, method: str, quantity: str = ""
) -> dict[str, str] | None:
    """The files of the integration of many motions, `MANY_FILE` and headers, by name.

    None for a right-hand side ``name`` that has no form on lanes. ``sizes``: the numbers of coordinates, speeds, states
    and all inputs. ``quantity``: a function that is reduced; evaluated row by row if it has no form on lanes.
    """
    kernel = _Kernel.read(text := sources.text(sources.kernel))
    rhs, *others = (kernel.public[string(key)[1:-1]].identifier for key in (name, quantity) if key)
    functions = kernel.needed_by(rhs)
    if not functions:
        return None
    more = [function for other in others for function in kernel.needed_by(other)]
    main = render(
        f"{FOLDER}/many.c.jinja",
        method=METHODS[method],
        sizes=sizes,
        functions=list(dict.fromkeys([*functions, *more])),
        rhs=rhs,
        quantity=others[0] if more else "",
        switches=kernel.sizes.get("n_switches", 0),
        **_shared(sources, text),
    )
    tableau = {"kg_tableaux.h": runtime_headers((method,))["kg_tableaux.h"]}
    return _with_headers(sources, {MANY_FILE: main, **_headers(*MANY_HEADERS), **tableau})


def _shared(sources: Sources, text: str) -> dict[str, Any]:
    """What the templates need besides functions; ``text``: of the kernel, if there are functions on lanes."""
    user = _USER.search(text)
    user_text = user[0] if user else ""
    return {
        "version": __version__,
        "model": sources.name,
        "kernel": sources.kernel,
        "splines": "kg_spline(" in user_text,
        "user": user_text,
        "wrappers": [_Wrapper.of(*match) for match in _USER_FUNCTION.findall(user_text)],
    }


def _headers(*names: str) -> dict[str, str]:
    return {name: (template_folder() / FOLDER / name).read_text(encoding="utf-8") for name in names}


def _with_headers(sources: Sources, files: dict[str, str]) -> dict[str, str]:
    return {**files, **include_closure(files, sources.files)}


class _Wrapper(NamedTuple):
    """A user function or spline: its name in C and the names of its arguments."""

    name: str
    arguments: list[str]

    @classmethod
    def of(cls, name: str, arguments: str) -> _Wrapper:
        return cls(name, [argument.split()[-1] for argument in arguments.split(",")])


def _on_lanes(match: re.Match[str]) -> LaneFunction:
    attributes, identifier, arguments, body = match.groups()
    for pattern, replacement in _STATEMENTS:
        body = pattern.sub(replacement, body)
    return LaneFunction(attributes or "", identifier, arguments, body.rstrip("\n"))
