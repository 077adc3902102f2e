"""A kernel with long functions as several C files, which compilers translate at the same time.

The pieces are made from the text of the kernel, which stays one file for every other use. Its long functions are in
parts (:data:`kanegen.program.passes.schedule.PART`) that call nothing but the runtime and the user's functions.
"""

from __future__ import annotations

import re
from typing import Final

LONG: Final = 100_000
"""Length of a text in characters, from which dividing it saves more time than starting another compiler takes."""

LONG_FUNCTION: Final = 2000
"""Lines of a C function from which optimizations that take more than linear time are left out.

Without them, `n_link_pendulum(80)` (2026 lines) compiles in 0.25 of the time and is 3 % faster; `humanoid` (1738 lines)
compiles in 0.3 of the time, but is 3 to 5 % slower.
"""

_PART = re.compile(r"^/\* [^\n]*, part \d+ of \d+ \*/\nstatic KG_APART (void \w+\([^)]*\))\n\{\n.*?^\}\n", re.S | re.M)
_FIRST_FUNCTION: Final = "/* Computes the constants c from the parameters and gains. */\n"
_HIDDEN: Final = """\
#if defined(__GNUC__)
#define KG_PIECE __attribute__((visibility("hidden")))
#else
#define KG_PIECE
#endif

"""


def has_long_functions(text: str) -> bool:
    """Whether a kernel has functions that were divided, or that are nearly as long."""
    if "static KG_APART " in text:
        return True
    return any(body.count("\n") > LONG_FUNCTION for body in text.split("\n}\n"))


def pieces(text: str, count: int) -> list[str]:
    """The texts of at most ``count`` files of a kernel; the first one has all functions but parts of long ones.

    One text, the kernel itself, if it is short or has no parts.
    """
    parts = list(_PART.finditer(text))
    count = min(count, len(text) // LONG, len(parts))
    if count < 2:
        return [text]
    head = text[: text.index(_FIRST_FUNCTION)] + _HIDDEN
    declarations = "".join(f"KG_PIECE {part[1]};\n" for part in parts)
    # The first piece keeps what is not in parts, as much as it may be.
    rest = len(text) - len(head) - sum(len(part[0]) for part in parts)
    share = len(text) / count
    groups: list[list[str]] = [[] for _ in range(count)]
    filled, group = float(rest), 0
    for part in parts:
        while filled >= share and group < count - 1:
            filled, group = filled - share, group + 1
        groups[group].append(part[0].replace("static KG_APART", "KG_PIECE", 1))
        filled += len(part[0])
    main = _PART.sub("", text[text.index(_FIRST_FUNCTION) :])
    first = "\n".join((head + declarations, main, *groups[0]))
    return [first, *(head + declarations + "\n" + "\n".join(parts) for parts in groups[1:] if parts)]
