"""The emulated boards count instructions and measure stack without an error, and their failures are seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from boards import BOARDS, FAULT, RIG, Board, Output, compile_program, run_program

pytestmark = pytest.mark.target
Known = Callable[..., Output]
boards = pytest.mark.parametrize("board", BOARDS, ids=str)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """The output of rig/known.c on a board."""

    @cache
    def output_of(board: Board, shift: int | None = None) -> Output:
        board.require()
        program = tmp_path_factory.mktemp("known") / board.name
        compile_program(board, program, [RIG / "known.c"])
        return run_program(board, program, shift=shift)

    return output_of


@boards
def test_instructions_are_counted_without_an_error(board: Board, known: Known) -> None:
    output = known(board)
    first, second = (board.instructions(ticks) for ticks in output.numbers("nothing"))
    assert first == second
    (ten,), (thirty,) = output.numbers("10"), output.numbers("30")
    assert board.instructions(thirty) - board.instructions(ten) == 20


@boards
def test_coarse_clock_agrees_on_a_long_call(board: Board, known: Known) -> None:
    """With ``shift=0`` an instruction takes 1 ns, and SysTick shows multiples of 40 instructions."""
    (fine,), (coarse,) = known(board).numbers("loop"), known(board, 0).numbers("loop")
    assert 0 <= board.instructions(fine) - 100_000 < 16  # the loop, and the call around it
    assert abs(board.instructions(coarse, 0) - board.instructions(fine)) <= 40


@boards
def test_painted_stack_shows_an_array_on_it(board: Board, known: Known) -> None:
    nothing, array = known(board).numbers("stack")
    assert nothing == 0
    assert 1000 <= array <= 1000 + 32  # the array, its alignment and saved registers


@boards
def test_start_up_code_sets_up_memory_and_floating_point(board: Board, known: Known) -> None:
    output = known(board)
    assert (output.values["zero"], output.values["seven"]) == (["0"], ["7"])
    assert output.values["four"] == ["4", "4"]


@boards
def test_fault_of_the_processor_ends_the_run(board: Board, known: Known) -> None:
    assert known(board).status == FAULT
