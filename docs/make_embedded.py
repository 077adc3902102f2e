"""Measures emitted examples on emulated microcontrollers, and writes the tables of docs/embedded.md.

Run from anywhere: ``python docs/make_embedded.py``. It needs the cross compilers and emulators that the page names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests" / "support"))

from boards import BOARDS, Board, run_command  # noqa: E402
from embedded import CASES, PRECISIONS, Project  # noqa: E402

PAGE = HERE / "embedded.md"
MARKS = "<!-- {} written by docs/make_embedded.py -->\n", "<!-- end -->"
SIZES = ("flash", "context", "stack, used", "stack, bound", "instructions of a step")
RANGE_SPACE = ("--form range_space", {"form": "range_space"})
AUTO = ("--form auto", {"form": "auto"})
VARIANTS = (
    ("builtin", RANGE_SPACE, "-O2"),
    ("builtin", RANGE_SPACE, "-Os"),
    ("builtin", RANGE_SPACE, "-O2 -ffp-contract=fast"),
    ("libm", RANGE_SPACE, "-O2"),
    ("builtin", AUTO, "-O2"),
    ("libm", AUTO, "-O2"),
)
"""Mathematics, form, and flags of the compiler with which rolling_disk in float is measured."""


def sizes(project: Project, board: Board, folder: Path, *flags: str) -> str:
    """The measurements of a project on a board, as cells of a table; sizes in bytes."""
    compiled = project.compiled(board, folder, *flags)
    memory, run = project.footprint(board, compiled), project.run(board, compiled)
    least, most = min(run.instructions), max(run.instructions)
    counted = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    numbers = (memory.flash, run.context, run.stack, project.stack_bound(memory))
    return " | ".join([*(f"{size:,}" for size in numbers), counted])


def heading(*labels: str) -> Iterator[str]:
    yield f"| {' | '.join((*labels, *SIZES))} |"
    yield f"|{'---|' * len(labels)}{'--:|' * len(SIZES)}"


def models(folder: Path) -> Iterator[str]:
    """The lines of the tables of all models, one table for each processor."""
    projects = [
        case.emit(folder / f"{case}-{precision}", precision, "builtin")
        for case, precision in product(CASES, PRECISIONS)
    ]
    for board in BOARDS:
        yield f"**{board.title}**, {_version(board)}, `{' '.join(board.target)}`:\n"
        yield from heading("model", "scalars")
        for project in projects:
            yield f"| `{project.case}` | {project.precision} | {sizes(project, board, folder)} |"
        yield ""


def variants(folder: Path) -> Iterator[str]:
    """The lines of the table of options for one model on one processor."""
    yield from heading("options of `emit`", "flags")
    for k, (math, (form, options), flags) in enumerate(VARIANTS):
        case = replace(CASES[0], options={"functions": "rhs", **options})
        project = case.emit(folder / f"variant-{k}", "float", math)
        yield f"| `--math {math} {form}` | `{flags}` | {sizes(project, BOARDS[0], folder, *flags.split())} |"


def _version(board: Board) -> str:
    return f"GCC {run_command([board.compiler.command, '-dumpfullversion']).strip()}"


def written(text: str, name: str, lines: Iterable[str]) -> str:
    """The text of the page with ``lines`` between the marks of this ``name``."""
    start, end = MARKS[0].format(name), MARKS[1]
    before, rest = text.split(start)
    return before + start + "\n" + "\n".join(lines).strip() + "\n\n" + rest[rest.index(end) :]


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    with TemporaryDirectory() as folder:
        text = written(text, "options", variants(Path(folder)))
        text = written(text, "models", models(Path(folder)))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
