"""Measures emitted examples on emulated microcontrollers, and writes the tables of docs/embedded.md.

Run from anywhere: ``python docs/make_embedded.py``. It needs the cross compilers and emulators that the page names.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests" / "support"))

from boards import BOARDS, Board, run_command  # noqa: E402
from embedded import CASES, PRECISIONS, Project  # noqa: E402

PAGE = HERE / "embedded.md"
MARKS = re.compile(r"(<!-- tables: docs/make_embedded.py -->\n).*(<!-- end of tables -->)", re.DOTALL)
HEADINGS = ("model", "scalars", "flash", "context", "stack, used", "stack, bound", "instructions of a step")


def row(project: Project, board: Board, folder: Path) -> tuple[str, ...]:
    """The measurements of a project on a board; sizes in bytes."""
    compiled = project.compiled(board, folder)
    memory, run = project.footprint(board, compiled), project.run(board, compiled)
    least, most = min(run.instructions), max(run.instructions)
    counted = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    sizes = (memory.flash, run.context, run.stack, project.stack_bound(memory))
    return (f"`{project.case}`", project.precision, *(f"{size:,}" for size in sizes), counted)


def tables() -> Iterator[str]:
    """The lines of the tables, one table for each processor."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        projects = [
            case.emit(folder / f"{case}-{precision}", precision, "builtin")
            for case, precision in product(CASES, PRECISIONS)
        ]
        for board in BOARDS:
            yield f"**{board.title}**, {_version(board)}, `{' '.join(board.target)}`:\n"
            yield f"| {' | '.join(HEADINGS)} |"
            yield f"|---|---|{'--:|' * (len(HEADINGS) - 2)}"
            for project in projects:
                yield f"| {' | '.join(row(project, board, folder))} |"
            yield ""


def _version(board: Board) -> str:
    return f"GCC {run_command([board.compiler.command, '-dumpfullversion']).strip()}"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert MARKS.search(text), f"{PAGE.name} has no place for the tables"
    written = "\n".join(tables())
    PAGE.write_text(MARKS.sub(lambda match: f"{match[1]}\n{written}\n{match[2]}", text), encoding="utf-8")


if __name__ == "__main__":
    main()
