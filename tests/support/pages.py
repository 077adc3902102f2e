"""The code of the documentation, as programs that can be run.

A program is a block of Python that imports kanegen, with the blocks that follow up to the next one that does. What an
excerpt needs besides stands before it in a comment that readers of the page do not see::

    <!-- before the next block, for the tests
    import kanegen as kg
    -->

In an excerpt ``kg.Model(..., option=value)``, with three dots, calls ``described(option=value)``, a function that a
comment defines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from checkout import EXAMPLES, ROOT, SUPPORT

DOCS = ROOT / "docs"
STEPS = ("pendulum", "questions", "constraint", "inputs", "events", "rolling", "contact", "bicycle")
"""The steps of the tutorial, which are one session."""

ANSWERS = {
    "own output": "Own output",
    "reaction of a joint": "Reaction of a joint",
    "reset at an event": "Reset at an event",
    "PID": "PID",
    "gravity": "Gravity in any direction",
    "units": "Units",
    "change a parameter": "Change a parameter",
    "sweep": "Sweep",
    "FMU": "FMU",
    "C": "C and C++",
    "C++": "C and C++",
    "Simulink": "MATLAB and Simulink",
    "gradient": "Gradient",
    "equilibrium": "Equilibrium",
    "animation": "Animation",
}
"""Questions of newcomers, and the section of docs/recipes.md that answers each."""

PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
_BLOCK = re.compile(r"<!-- before the next block, for the tests\n(.*?)\n-->|```python\n(.*?)```", re.DOTALL)
_DOTS = re.compile(r"kg\.Model\(\s*\.\.\.,")


def blocks(page: Path) -> list[str]:
    """The blocks that readers see."""
    return [shown for _, shown in _BLOCK.findall(page.read_text(encoding="utf-8")) if shown]


def programs(*pages: Path) -> list[str]:
    """The programs of pages that are read one after the other."""
    found: list[str] = []
    for page in pages:
        for hidden, shown in _BLOCK.findall(page.read_text(encoding="utf-8")):
            code = hidden or shown
            if re.search(r"^(import|from) kanegen\b", code, re.MULTILINE):
                found.append("")
            assert found, f"{page.name}: nothing imports kanegen before {code.splitlines()[0]!r}"
            found[-1] += runnable(code).rstrip("\n") + "\n\n"
    return found


def runnable(code: str) -> str:
    """A block as it stands in its program."""
    return _DOTS.sub("described(", code).replace('"build_examples', f'"{EXAMPLES.as_posix()}')


def all_programs() -> Iterator[tuple[str, str]]:
    """Every program of the documentation, with a name."""
    for page in PAGES:
        for k, code in enumerate(programs(page)):
            yield f"{page.stem}_{k}", code
    (tutorial,) = programs(*(DOCS / "learn" / f"{step}.md" for step in STEPS))
    yield "learn", tutorial


def run(code: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a program as a script in ``folder``; it must succeed."""
    script = folder / "program.py"
    script.write_text(code, encoding="utf-8")
    paths = [str(ROOT), str(SUPPORT), str(ROOT / "tests" / "sympy_models"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, *options, str(script)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}\n{done.stdout}"
    return done
