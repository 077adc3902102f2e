"""Steps of the C steppers that are cut at an event, and restarts after a jump."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import steppers as st
from ccompile import host_source, shared_library
from steppers import METHODS, Floats, Statistics, exact, options_of, pointer
from tolerances import FINE_INTEGRATION, STEPPER_ROUNDING

from kanegen.codegen.methods.table import FIXED_STEP


@dataclass(frozen=True)
class Cuts:
    """An integration with cut steps: states at the cuts, ends of the steps after them, the last state."""

    status: int
    y: Floats
    t_next: Floats
    y_end: Floats
    statistics: Any


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    loaded = shared_library(host_source("stepper_cuts.c"), tmp_path_factory.mktemp("cuts"))
    loaded.workspace.restype = ctypes.c_size_t
    return loaded


def run_with_cuts(
    library: ctypes.CDLL, method: str, cuts: Sequence[float], t_end: float, *, new_step: bool, step: float
) -> Cuts:
    """SMOOTH from 0 to ``t_end`` with a step that ends at each of ``cuts``."""
    start, times, n = exact(0.0), np.array(cuts, float), 4
    tolerances = np.full(n, 1e-9)
    options = options_of(method, tolerances, tolerances, step=step)
    work = np.full(library.workspace(METHODS[method], n), np.nan)
    y, following, end, statistics = np.empty((len(times), n)), np.empty(len(times)), np.empty(n), Statistics()
    status = library.integrate_with_cuts(
        st.SMOOTH,
        n,
        ctypes.byref(options),
        ctypes.c_double(t_end),
        pointer(start),
        pointer(work),
        len(times),
        pointer(times),
        new_step,
        pointer(y),
        pointer(following),
        pointer(end),
        ctypes.byref(statistics),
    )
    return Cuts(status, y, following, end, statistics)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("new_step", [False, True])
def test_a_step_is_cut_with_the_accuracy_of_a_step(library: ctypes.CDLL, method: str, new_step: bool) -> None:
    cuts = [0.313, 1.0007, 1.4]
    run = run_with_cuts(library, method, cuts, 2.0, new_step=new_step, step=0.01)
    assert run.status == st.FINISHED
    assert run.y == pytest.approx(exact(cuts), abs=FINE_INTEGRATION)
    assert run.y_end == pytest.approx(exact(2.0), abs=FINE_INTEGRATION)


@pytest.mark.parametrize("method", FIXED_STEP)
def test_fixed_steps_return_to_their_grid(library: ctypes.CDLL, method: str) -> None:
    run = run_with_cuts(library, method, [0.313, 1.0007, 1.4], 2.0, new_step=False, step=0.01)
    assert run.t_next == pytest.approx([0.32, 1.01, 1.41], rel=STEPPER_ROUNDING)
    assert run.statistics.steps == 202  # the cut at 1.4 is on the grid
    assert run.statistics.smallest_step == pytest.approx(7e-4, rel=1e-9)
    assert run.statistics.largest_step == pytest.approx(0.01, rel=1e-9)


def test_a_restart_keeps_the_step_unless_it_is_to_be_chosen(library: ctypes.CDLL) -> None:
    """Cut far inside a step, so that the step chosen anew, from the tolerance alone, is much shorter."""
    kept, chosen = (
        run_with_cuts(library, "dop853", [0.4], 4.0, new_step=new_step, step=0.0) for new_step in (False, True)
    )
    assert kept.t_next[0] - 0.4 > 1.5 * (chosen.t_next[0] - 0.4)
    assert kept.statistics.steps <= chosen.statistics.steps
