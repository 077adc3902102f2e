"""A kernel as several C files, which compilers translate at the same time.

The pieces are made from the text of the kernel, which stays one file for every other use. Two kinds of functions can be
in files of their own: parts of long functions (:data:`kanegen.program.passes.schedule.PART`), and those that only the
user calls. The latter call the code for sines and cosines instead of inlining it, which would take longer to compile
than all the rest of a small model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from kanegen.program.catalogue import spec_of

LONG: Final = 100_000
"""Length of a text in characters, from which dividing it saves more time than starting another compiler takes."""

SHORT: Final = 6000
"""The same of functions that only the user calls."""

LONG_FUNCTION: Final = 2000
"""Lines of a C function from which optimizations that take more than linear time are left out.

Without them, `n_link_pendulum(80)` (2026 lines) compiles in 0.25 of the time and is 3 % faster; `humanoid` (1738 lines)
compiles in 0.3 of the time, but is 3 to 5 % slower.
"""

_PART: Final = "static KG_APART "
_DEFINITION = re.compile(
    r"^/\* [^\n]* \*/\nstatic (?:KG_APART )?(\w+ (\w+)\(KG_ARGUMENTS[^)]*\))\n\{\n.*?^\}\n", re.S | re.M
)
_LISTED = re.compile(r'^    \{"(.*)", -?\d+, \d+, \d+, (\w+)\},$', re.M)
_CALLED = re.compile(r"\b(evaluate_\w+)\(t, q, u, r, p, work")
_GUARD = re.compile(r"^  if \(.*\) \{ return evaluate_.*$", re.M)
_KERNEL_CALL: Final = "KG_CALL(result, kg_"
_STATIC = re.compile(r"^static (?:KG_APART )?", re.M)
_GATHERED = re.compile(r"kg_sincos\((\d+), angle, sine, cosine\);")
_FIRST_FUNCTION: Final = "/* Computes the constants c from the parameters and gains. */\n"
_HIDDEN: Final = """\
#if defined(__GNUC__)
#define KG_PIECE __attribute__((visibility("hidden")))
#define KG_CALLED __attribute__((noinline))
/* User functions and splines are in every file. */
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#else
#define KG_PIECE
#define KG_CALLED
#endif

"""

SINES, KERNEL = 1300, 6500
"""What inlined sines and cosines, and the call of a runtime kernel, cost to compile, in characters of other code."""

_ANGLES: Final = 4
"""Most angles whose sines and cosines are computed by one call: as many as the largest vector has."""


def has_long_functions(text: str) -> bool:
    """Whether a kernel has functions that were divided, or that are nearly as long."""
    return _PART in text or any(body.count("\n") > LONG_FUNCTION for body in text.split("\n}\n"))


def pieces(text: str, count: int) -> list[str]:
    """The texts of at most ``count`` files of a kernel; the first one has what cannot be in others.

    One text, the kernel itself, if it is short, or has neither parts nor functions that only the user calls.
    """
    functions = {match[2]: match for match in _DEFINITION.finditer(text)}
    if _PART in text:
        parts = [match for match in functions.values() if _PART in match[0]]
        count = min(count, len(text) // LONG, len(parts))
        return _divided(text, parts, count) if count > 1 else [text]
    evaluated = _evaluated_in_runs(text, {name: match[0] for name, match in functions.items()})
    others = [match for name, match in functions.items() if name not in evaluated]
    length = sum(len(match[0]) for match in others)
    # The code of a runtime kernel is compiled in every file that calls it: such functions are in the same one.
    others.sort(key=lambda match: _KERNEL_CALL in match[0])
    return _divided(text, others, min(count, 1 + length // SHORT)) if length >= SHORT else [text]


def _evaluated_in_runs(text: str, functions: Mapping[str, str]) -> set[str]:
    """The C names of the functions that integrations evaluate, and of those that they call.

    What a guard calls in rare states is among them, without the listed functions that it calls: where it cannot be
    inlined, the code before the guard becomes slower (the right-hand side of `whipple_bicycle` by 8 %).
    """
    listed = {name: spec_of(title) for title, name in _LISTED.findall(text) if name in functions}
    called = {name: set(_CALLED.findall(body)) & functions.keys() for name, body in functions.items()}
    guarded = {name: called[name] & set(_CALLED.findall("".join(_GUARD.findall(functions[name])))) for name in called}
    found: set[str] = set()

    def add(names: Iterable[str], following: Callable[[str], Iterable[str]]) -> None:
        for name in names:
            if name not in found:
                found.add(name)
                add(following(name), following)

    roots = [name for name, spec in listed.items() if spec is None or spec.name == "rhs" or not spec.on_request]
    add(roots, lambda name: called[name] - guarded[name])
    add(
        [other for name in found for other in guarded[name] - listed.keys()],
        lambda name: called[name] - listed.keys(),
    )
    return found


def _divided(text: str, moved: Sequence[re.Match[str]], count: int) -> list[str]:
    """A kernel in ``count`` files, among which the functions ``moved`` are distributed."""
    start = text.index(_FIRST_FUNCTION)
    head, main = text[:start], text[start:]
    for match in moved:
        main = main.replace(match[0], "", 1)
    sines: set[int] = set()
    bodies = [_with_called_sines(_exposed(match[0]), sines) for match in moved]
    called = set(_CALLED.findall("".join(bodies)))
    needed = [match for match in _DEFINITION.finditer(main) if match[2] in called]
    for match in needed:
        main = main.replace(match[0], _exposed(match[0]), 1)
    declarations = [*(f"KG_PIECE {match[1]}" for match in (*moved, *needed)), *map(_declaration, sorted(sines))]
    head = "".join((_HIDDEN, head, *(f"{declaration};\n" for declaration in declarations), "\n"))
    return _distributed(head, "\n".join((main, *map(_definition, sorted(sines)))), bodies, count)


def _distributed(head: str, main: str, bodies: Sequence[str], count: int) -> list[str]:
    """Files that take about the same time to compile, each with the head; the first one has the main text."""
    share = sum(map(_cost, (main, *bodies))) / count
    groups: list[list[str]] = [[main], *([] for _ in range(count - 1))]
    filled, group = float(_cost(main)), 0
    for body in bodies:
        while filled >= share and group < count - 1:
            filled, group = filled - share, group + 1
        groups[group].append(body)
        filled += _cost(body)
    return [head + "\n".join(group) for group in groups if group]


def _cost(text: str) -> int:
    """What a text costs to compile, in characters; one takes about 8 us with -O3."""
    return len(text) + SINES * text.count("kg_sincos(") + KERNEL * text.count(_KERNEL_CALL)


def _exposed(definition: str) -> str:
    """The definition of a function that other files of the kernel call."""
    return _STATIC.sub("KG_PIECE ", definition, count=1)


def _with_called_sines(body: str, sines: set[int]) -> str:
    """A function that calls code for sines and cosines; the numbers of angles of these calls are added to ``sines``."""

    def calls(match: re.Match[str]) -> str:
        n, found = int(match[1]), []
        for first in range(0, n, _ANGLES):
            angles = [f"angle[{k}]" for k in range(first, min(n, first + _ANGLES))]
            sines.add(len(angles))
            found.append(f"kg_sincos_of_{len(angles)}({', '.join(angles)}, sine + {first}, cosine + {first});")
        return " ".join(found)

    return _GATHERED.sub(calls, body)


def _declaration(n: int) -> str:
    """Of the function for n angles. They are values, because loading a vector that was just stored in parts is slow."""
    angles = ", ".join(f"kg_real x{k}" for k in range(n))
    return f"KG_PIECE KG_CALLED void kg_sincos_of_{n}({angles}, kg_real *sine, kg_real *cosine)"


def _definition(n: int) -> str:
    angles = ", ".join(f"x{k}" for k in range(n))
    return f"""{_declaration(n)}
{{
  const kg_real angle[{n}] = {{{angles}}};
  kg_sincos({n}, angle, sine, cosine);
}}
"""
