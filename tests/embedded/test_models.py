"""Emitted projects run on emulated microcontrollers: same bits as here, self-tests, memory and instructions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from boards import BOARDS, Board
from embedded import CASES, PRECISIONS, Case

pytestmark = pytest.mark.target

LIBRARY_STACK = 200
"""Bytes of stack that functions of the C library and software floating point need on top of the project's own."""

EVERY = list(product(CASES, PRECISIONS, BOARDS))
everywhere = pytest.mark.parametrize(("case", "precision", "board"), EVERY, ids=["-".join(map(str, x)) for x in EVERY])


class Bench:
    """Projects, what they do here, and what they do on boards, each computed once."""

    def __init__(self, folder: Callable[[str], Path]) -> None:
        self.project = cache(lambda case, precision, math="builtin": case.emit(folder(str(case)), precision, math))
        self.compiled = cache(lambda project, board: project.compiled(board, folder(str(board))))
        self.here = cache(lambda project: project.run_here(folder("here")))
        self.run = cache(lambda project, board: project.run(board, self.compiled(project, board)))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp)


@everywhere
def test_states_on_a_board_have_the_same_bits_as_here(case: Case, precision: str, board: Board, bench: Bench) -> None:
    """With the project's own sines and cosines and without fused operations, IEEE 754 leaves nothing open."""
    board.require()
    project = bench.project(case, precision)
    assert np.array_equal(bench.run(project, board).states, bench.here(project).states)


@everywhere
def test_self_test_passes_on_a_board(case: Case, precision: str, board: Board, bench: Bench) -> None:
    board.require()
    project = bench.project(case, precision)
    output = project.self_test(board, bench.compiled(project, board))
    assert output.status == 0, output.text
    assert "functions agree" in output.text


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_self_test_of_all_functions_passes_on_a_board(case: Case, precision: str, bench: Bench) -> None:
    """The other tests leave out the functions that a control loop does not call."""
    cortex_m4f = BOARDS[0]
    cortex_m4f.require()
    options = {name: value for name, value in case.options.items() if name != "functions"}
    project = bench.project(replace(case, options=options), precision)
    output = project.self_test(cortex_m4f, bench.compiled(project, cortex_m4f))
    assert output.status == 0, output.text


@everywhere
def test_stack_of_a_step_stays_below_its_bound(case: Case, precision: str, board: Board, bench: Bench) -> None:
    """The bound is the project's own; the C library and software floating point come on top of it."""
    board.require()
    project = bench.project(case, precision)
    compiled = bench.compiled(project, board)
    bound = project.stack_bound(project.footprint(board, compiled))
    assert bench.run(project, board).stack <= bound + LIBRARY_STACK


@everywhere
def test_every_step_takes_the_same_work(case: Case, precision: str, board: Board, bench: Bench) -> None:
    """The same operations; what is left are single branches, and software whose work depends on the numbers."""
    board.require()
    counted = bench.run(bench.project(case, precision), board).instructions
    assert max(counted) <= (1.03 if precision in board.precisions else 1.3) * min(counted)


@pytest.mark.parametrize("form", ["auto", "range_space"])
@pytest.mark.parametrize("math", ["libm", "builtin"])
def test_rolling_disk_in_float_fits_a_small_microcontroller(form: str, math: str, bench: Bench) -> None:
    """16 kB of flash, 1 kB for context and stack; with range_space, the bound of the stack fits as well."""
    cortex_m4f, disk = BOARDS[0], CASES[0]
    cortex_m4f.require()
    project = bench.project(replace(disk, options={"functions": "rhs", "form": form}), "float", math)
    compiled = bench.compiled(project, cortex_m4f)
    memory, run = project.footprint(cortex_m4f, compiled), project.run(cortex_m4f, compiled)
    stack = run.stack if form == "auto" else max(run.stack, project.stack_bound(memory))
    assert memory.flash <= 16 * 1024
    assert run.context + stack + memory.ram <= 1024
