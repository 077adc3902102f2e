"""Emitted projects of examples, compiled and run with every compiler, and under tools that watch programs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from systems import initial, model_of

import kanegen as kg
from kanegen.model.expressions import symbol_name

WARNINGS = ("-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror")
STRICT = ("gcc", "-std=c99", *WARNINGS)

LANGUAGES: dict[str, tuple[str, ...]] = {
    "gcc C99": (*STRICT, "-O2"),
    "gcc C11": ("gcc", "-std=c11", *WARNINGS, "-O0"),
    "clang C99": ("clang", "-std=c99", *WARNINGS, "-O2"),
    "clang C11": ("clang", "-std=c11", *WARNINGS, "-O0"),
    "tcc C99": ("tcc", "-std=c99", "-Wall", "-Werror"),
    "g++ C++11": ("g++", "-std=c++11", *WARNINGS, "-O0", "-x", "c++"),
    "clang++ C++11": ("clang++", "-std=c++11", *WARNINGS, "-O1", "-x", "c++"),
}
"""Compilers with the language that they are to accept."""


@dataclass(frozen=True)
class Case:
    """An emitted example: one for each kind of model; ``form``: of its equations."""

    example: str
    form: str = "auto"

    def __str__(self) -> str:
        return self.example if self.form == "auto" else f"{self.example}-{self.form}"


CASES = (
    Case("cart_pole"),  # smooth
    Case("slider_crank"),  # loops
    Case("rolling_disk"),  # nonholonomic
    Case("rheonomic_particle"),  # time in the constraints
    Case("bouncing_ball"),  # contacts
    Case("energy_servo"),  # servo-constraints
    Case("dc_motor_arm"),  # additional states
    Case("lqr_cart_pole"),  # continuous feedback laws
    Case("sampled_pid"),  # sampled feedback laws
    Case("n_link_pendulum", "hamilton"),  # momenta
)


@dataclass(frozen=True)
class Project:
    """An emitted project in a folder."""

    folder: Path
    name: str
    case: Case

    @property
    def start(self) -> dict[str, Any]:
        """The start of the example."""
        return initial(self.case.example)

    def run(self, *command: str, status: int | None = 0) -> str:
        """Run a command in the folder and return its output; ``status`` None: any."""
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=300)
        assert status is None or done.returncode == status, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def compile(
        self, command: Sequence[str], sources: Sequence[str], program: str, *flags: str, defines: Sequence[str] = ()
    ) -> str:
        """Compile sources of the folder into a program of the folder and return the command that runs it.

        ``defines``: flags of the first source only, with which the others are compiled once for several programs.
        """
        to_compile = [flag for flag in flags if not flag.startswith("-Wl,")]
        objects = [self._object(command, sources[0], *to_compile, *defines)]
        objects += [self._object(command, source, *to_compile) for source in sources[1:]]
        self.run(command[0], *flags, *objects, "-o", program, "-lm")
        return f"./{program}"

    def _object(self, command: Sequence[str], source: str, *flags: str) -> str:
        """The object file of a source; the same texts are compiled once with the same command."""
        files = (self.folder / source, *sorted(self.folder.rglob("*.h")))
        digest = sha256(repr((command, flags, *(file.read_bytes() for file in files))).encode()).hexdigest()[:16]
        target = f"{Path(source).stem}_{digest}.o"
        if not (self.folder / target).exists():
            self.run(*command, *flags, "-c", source, "-o", target)
        return target

    def selftest(self, command: Sequence[str], *flags: str) -> str:
        """The self-test as a program."""
        return self.compile(command, (f"{self.name}_selftest.c", f"{self.name}.c"), "selftest_program", *flags)


class Projects:
    """Projects of examples, emitted when they are first needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.get = cache(self._get)

    def _get(self, case: Case, precision: str = "double") -> Project:
        name = case.example if precision == "double" else f"{case.example}_{precision}"
        folder = self._folder / f"{case}_{precision}"
        start = initial(case.example)
        model = model_of(case.example)
        names = map(symbol_name, (*model.coordinates, *model.speeds, *model.states))
        values = dict(zip(names, (*start["q"], *start["u"], *start.get("s", ())), strict=True))
        values |= {"t": start["t"]} if start.get("t") else {}
        given = zip(model.inputs, start.get("r") or (), strict=False)
        values |= {symbol_name(item.symbol): x for item, x in given if item.law is None}
        kg.emit(model, folder, form=case.form, values=values, name=name, precision=precision)
        return Project(folder, name, case)


def missing(*tools: str) -> str:
    """The tools that this machine lacks."""
    return ", ".join(tool for tool in tools if shutil.which(tool) is None)
