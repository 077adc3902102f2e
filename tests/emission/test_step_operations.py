"""The operations that the header of a project states for its step, against counting numbers in the C code."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ccompile import compile_source, host_source, require_cpp

from kanegen.emission.methods import MOREAU_JEAN, SEMI_IMPLICIT, STEP_METHODS
from kanegen.emission.step import PROJECTIONS, Level, Projected, Step

COUNTED = [name for name in STEP_METHODS if name != MOREAU_JEAN]
"""The methods for smooth motion; tests/emission/test_time_stepping.py counts the other one."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    methods = " ".join(f"RUNGE_KUTTA({name})" for name in COUNTED if name != SEMI_IMPLICIT)
    target = tmp_path_factory.mktemp("counted") / "counted.so"
    flags = ("-O1", "-shared", "-fPIC", f"-DMETHODS={methods}")
    compile_source(require_cpp(), host_source("counted_fixed_step.cpp"), target, *flags)
    return ctypes.CDLL(str(target))


@pytest.mark.parametrize("method", COUNTED)
def test_a_component_of_the_state_takes_the_stated_operations(library: ctypes.CDLL, method: str) -> None:
    """Differences of two lengths: the times of the stages are not counted."""
    counts = [getattr(library, method)(n) for n in (6, 20)]
    steps = [Step(STEP_METHODS[method], n, rhs_operations=0) for n in (6, 20)]
    assert min(counts) > 0
    assert counts[1] - counts[0] == steps[1].operations - steps[0].operations


@pytest.mark.parametrize("method", COUNTED)
def test_compensated_sums_take_the_stated_operations(library: ctypes.CDLL, method: str) -> None:
    """Each evaluation adds the change to the state, and a step ends with the sum and what rounding takes from it."""
    step = Step(STEP_METHODS[method], 8, rhs_operations=0)
    more = replace(step, is_compensated=True).operations - step.operations
    assert more == 8 * step.method.evaluations + library.add_change(8)


def test_right_sides_laws_and_projections_are_counted() -> None:
    project = projected(n=5, n_u=3, m=2)
    plain = Step(STEP_METHODS["rk4"], 8, rhs_operations=0)
    step = replace(plain, rhs_operations=100, law_operations=7, projections=3, project=project)
    assert step.operations - plain.operations == 4 * 100 + 7 + 3 * project.operations


def projected(n: int, n_u: int, m: int) -> Projected:
    """A projection with one level, whose functions take 1000, 200 and 30 operations."""

    def function(operations: int) -> Any:
        return SimpleNamespace(operations=operations, size=m * (n + 1))

    return Projected((Level(function(1000), m, n, True),), function(200), function(30), n_u)


@pytest.mark.parametrize(("n", "n_u", "m"), [(3, 3, 1), (6, 6, 2), (9, 6, 4), (12, 12, 6)])
def test_a_projection_takes_the_stated_operations(library: ctypes.CDLL, n: int, n_u: int, m: int) -> None:
    """The tolerance of a pivot, a product of three numbers, is a constant that the compiler computes."""
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n_u, n_u))
    arrays = [root @ root.T + n_u * np.eye(n_u), rng.normal(size=(m, n + 1))]
    counted = library.least_change(n, n_u, m, *(x.ctypes.data_as(ctypes.c_void_p) for x in arrays))
    assert counted > 0
    assert projected(n, n_u, m).operations - 1230 + 2 * (n_u + m) == counted


def test_a_step_projects_twice_unless_the_user_says_otherwise() -> None:
    """The second Newton iteration removes the error of the first: 1e-4 becomes 1e-8, then 1e-16."""
    assert PROJECTIONS == 2
