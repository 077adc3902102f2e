"""Emitted projects run on emulated microcontrollers: same bits as here, self-tests, memory and instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from boards import BOARDS, Board, run_command
from embedded import CASES, PRECISIONS, Case, Project, Run
from footprint import Footprint
from shares import share

pytestmark = pytest.mark.target

LIBRARY_STACK = 200
"""Bytes of stack that functions of the C library and software floating point need on top of the project's own."""

CORTEX_M4F, DISK = BOARDS[0], CASES[0]
EVERY = list(product(CASES, PRECISIONS, BOARDS))

Emitted = Callable[[Case, str], tuple[Project, Run]]


@dataclass(frozen=True)
class Built:
    """A project, compiled for a board, and its run on this computer."""

    project: Project
    here: Run
    board: Board
    compiled: Path

    @cached_property
    def run(self) -> Run:
        return self.project.run(self.board, self.compiled)

    @cached_property
    def footprint(self) -> Footprint:
        return self.project.footprint(self.board, self.compiled)


@pytest.fixture(scope="module")
def emitted(tmp_path_factory: pytest.TempPathFactory) -> Emitted:
    """The project of a case, and its run on this computer."""

    @cache
    def projects(case: Case, precision: str) -> tuple[Project, Run]:
        project = case.emit(tmp_path_factory.mktemp(str(case)), precision, "builtin")
        return project, project.run_here(tmp_path_factory.mktemp("here"))

    return projects


@pytest.fixture(
    scope="module",
    params=share([(names,) for names in EVERY], of=3),
    ids=["-".join(map(str, names)) for names in EVERY],
)
def built(request: pytest.FixtureRequest, emitted: Emitted, tmp_path_factory: pytest.TempPathFactory) -> Built:
    case, precision, board = request.param
    board.require()
    project, here = emitted(case, precision)
    return Built(project, here, board, project.compiled(board, tmp_path_factory.mktemp(str(board))))


def test_states_on_a_board_have_the_same_bits_as_here(built: Built) -> None:
    """With the project's own sines and cosines and without fused operations, IEEE 754 leaves nothing open."""
    assert np.array_equal(built.run.states, built.here.states)


def test_self_test_passes_on_a_board(built: Built) -> None:
    output = built.project.self_test(built.board, built.compiled)
    assert output.status == 0, output.text
    assert "functions agree" in output.text


def test_stack_of_a_step_stays_below_its_bound(built: Built) -> None:
    """The bound is the project's own; the C library and software floating point come on top of it."""
    assert built.run.stack <= built.project.stack_bound(built.footprint) + LIBRARY_STACK


def test_every_step_takes_the_same_work(built: Built) -> None:
    """The same operations; what is left are single branches, and software whose work depends on the numbers."""
    counted = built.run.instructions
    assert max(counted) <= (1.03 if built.project.precision in built.board.precisions else 1.3) * min(counted)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_self_test_of_all_functions_passes_on_a_board(case: Case, precision: str, tmp_path: Path) -> None:
    """The other tests leave out the functions that a control loop does not call."""
    CORTEX_M4F.require()
    options = {name: value for name, value in case.options.items() if name != "functions"}
    project = replace(case, options=options).emit(tmp_path, precision, "builtin")
    output = project.self_test(CORTEX_M4F, project.compiled(CORTEX_M4F, tmp_path))
    assert output.status == 0, output.text


@pytest.mark.parametrize("form", ["auto", "range_space"])
@pytest.mark.parametrize("math", ["libm", "builtin"])
def test_rolling_disk_in_float_fits_a_small_microcontroller(form: str, math: str, tmp_path: Path) -> None:
    """16 kB of flash, 1 kB for context and stack."""
    CORTEX_M4F.require()
    project = replace(DISK, options={"functions": "rhs", "form": form}).emit(tmp_path, "float", math)
    compiled = project.compiled(CORTEX_M4F, tmp_path)
    memory, run = project.footprint(CORTEX_M4F, compiled), project.run(CORTEX_M4F, compiled)
    stack = max(run.stack, project.stack_bound(memory))
    assert memory.flash <= 16 * 1024
    assert run.context + stack + memory.ram <= 1024


def test_make_size_shows_code_without_static_memory(tmp_path: Path) -> None:
    CORTEX_M4F.require()
    project = DISK.emit(tmp_path, "float", "builtin")
    flags = " ".join((*CORTEX_M4F.target, "-O2"))
    printed = run_command(
        ["make", "-s", "-C", str(project.folder), "CROSS_COMPILE=arm-none-eabi-", f"CFLAGS={flags}", "size"]
    )
    names, sizes = (line.split() for line in printed.splitlines())
    assert names[:3] == ["text", "data", "bss"]
    assert int(sizes[0]) > 0
    assert sizes[1:3] == ["0", "0"]
