"""A kernel as several C files, which compilers translate at the same time.

The pieces are made from the text of the kernel, which stays one file for every other use. Two kinds of functions can be
in files of their own: parts of long functions (:data:`kanegen.program.passes.schedule.PART`), and those that only the
user calls. The latter call the code for sines and cosines instead of inlining it, which would take longer to compile
than all the rest of a small model. So do functions that are called in rare states only, where a guard does not hold;
runtime kernels that only they call are optimized for size, and compile in two fifths of the time.
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
_HEADERS = re.compile(r'((?:^#include "kg_(?!sincos|spline)\w+\.h"\n)+)((?:^#include "kg_\w+\.h"\n)+)', re.M)
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

# Of the two groups of _HEADERS, the kernels (1) come last: GCC leaves __OPTIMIZE_SIZE__ defined after pop_options.
_FOR_SIZE: Final = """\
\\2#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("Os")
#endif
\\1#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
"""

SINES, KERNEL, SMALL_KERNEL = 1300, 6500, 2200
"""What inlined sines and cosines, the call of a runtime kernel, and that of one that is optimized for size cost to
compile, in characters of other code."""

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
    often, seldom = _evaluated_in_runs(text, {name: match[0] for name, match in functions.items()})
    others = [match for name, match in functions.items() if name not in often | seldom]
    length = sum(len(match[0]) for match in others)
    # The code of a runtime kernel is compiled in every file that calls it: such functions are in the same one.
    others.sort(key=lambda match: _KERNEL_CALL in match[0])
    if length < SHORT:
        return [text]
    return _divided(text, others, min(count, 1 + length // SHORT), [functions[name][0] for name in sorted(seldom)])


def _evaluated_in_runs(text: str, functions: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """The C names of the functions that integrations evaluate often, and of those that they evaluate in rare states.

    The latter are what a guard calls, without the listed functions that it calls. They are in the same file: where they
    cannot be inlined, the code before the guard becomes slower (the right-hand side of `whipple_bicycle` by 8 %).
    """
    listed = {name: spec_of(title) for title, name in _LISTED.findall(text) if name in functions}
    called = {name: set(_CALLED.findall(body)) & functions.keys() for name, body in functions.items()}
    guarded = {name: called[name] & set(_CALLED.findall("".join(_GUARD.findall(functions[name])))) for name in called}

    roots = [name for name, spec in listed.items() if spec is None or spec.name == "rhs" or not spec.on_request]
    often = _reached(roots, lambda name: called[name] - guarded[name])
    behind_guards = {other for name in often for other in guarded[name]} - listed.keys()
    return often, _reached(behind_guards - often, lambda name: called[name] - listed.keys() - often)


def _reached(names: Iterable[str], following: Callable[[str], set[str]]) -> set[str]:
    """These names and all that follow them."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        found |= waiting
        waiting = {other for name in waiting for other in following(name)} - found
    return found


def _divided(text: str, moved: Sequence[re.Match[str]], count: int, seldom: Sequence[str] = ()) -> list[str]:
    """A kernel in ``count`` files, among which the functions ``moved`` are distributed.

    ``seldom``: the definitions in the first file that are called in rare states only.
    """
    start = text.index(_FIRST_FUNCTION)
    head, main = text[:start], text[start:]
    for match in moved:
        main = main.replace(match[0], "", 1)
    sines: set[int] = set()
    for definition in seldom:
        main = main.replace(definition, _with_called_sines(definition, sines), 1)
    bodies = [_with_called_sines(_exposed(match[0]), sines) for match in moved]
    called = set(_CALLED.findall("".join(bodies)))
    needed = [match for match in _DEFINITION.finditer(main) if match[2] in called]
    for match in needed:
        main = main.replace(match[0], _exposed(match[0]), 1)
    declarations = [*(f"KG_PIECE {match[1]}" for match in (*moved, *needed)), *map(_declaration, sorted(sines))]
    head = "".join((_HIDDEN, head, *(f"{declaration};\n" for declaration in declarations), "\n"))
    rare_calls = sum(definition.count(_KERNEL_CALL) for definition in seldom)
    return _distributed(head, "\n".join((main, *map(_definition, sorted(sines)))), bodies, count, rare_calls)


def _distributed(head: str, main: str, bodies: Sequence[str], count: int, rare_calls: int) -> list[str]:
    """Files that take about the same time to compile, each with the head; the first one has the main text.

    ``rare_calls``: how many calls of runtime kernels in the main text are executed in rare states only. If the first
    file has no other ones, its kernels are optimized for size.
    """
    cost = float(_cost(main))
    if main.count(_KERNEL_CALL) == rare_calls:
        cost -= rare_calls * (KERNEL - SMALL_KERNEL)
    share = (cost + sum(map(_cost, bodies))) / count
    groups: list[list[str]] = [[main], *([] for _ in range(count - 1))]
    filled, group = cost, 0
    for body in bodies:
        while filled >= share and group < count - 1:
            filled, group = filled - share, group + 1
        groups[group].append(body)
        filled += _cost(body)
    first, *others = ("\n".join(group) for group in groups if group)
    head_of_first = _HEADERS.sub(_FOR_SIZE, head) if first.count(_KERNEL_CALL) == rare_calls else head
    return [head_of_first + first, *(head + text for text in others)]


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
