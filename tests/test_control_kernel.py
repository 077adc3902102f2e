"""The kernel of controls that satisfy servo-constraints: C and its twin against NumPy, of any rank."""

from __future__ import annotations

import ctypes
from pathlib import Path

import mpmath
import numpy as np
import pytest
from ccompile import shared_library
from hypothesis import given, settings
from hypothesis import strategies as some
from test_runtime_linalg import InC, Twins, orthogonal

from kanegen.program.kernels import KERNELS, OK
from kanegen.program.kernels_control import INFEASIBLE
from kanegen.program.kernels_generalized import RANK_DEFICIENT

SOURCE = r"""
#include "kg_control.h"

int control_solve_work(int m, int n) { return KG_CONTROL_WORK(m, n); }
int control_solve(int m, int n, double *A, const double *z, const double *y, double *work, double *x) {
  return kg_control_solve(m, n, A, z, y, work, x);
}
"""

sizes = some.integers(1, 5)
seeds = some.integers(0, 2**32 - 1)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("control")
    return shared_library(SOURCE, folder)


@pytest.fixture(scope="session", params=["C", "twin"])
def kernels(request: pytest.FixtureRequest) -> InC | Twins:
    return InC(request.getfixturevalue("library")) if request.param == "C" else Twins()


def solve(kernels: InC | Twins, A: np.ndarray, z: np.ndarray, y: np.ndarray) -> tuple[int, np.ndarray]:
    m, n = A.shape
    x = np.zeros(n)
    status = kernels["control_solve"](m, n, A.ravel().copy(), z, y, np.zeros(KERNELS["control_solve"].work(m, n)), x)
    return status, x


@settings(max_examples=60)
@given(m=sizes, n=sizes, lost=some.integers(0, 3), inside=some.booleans(), seed=seeds)
def test_the_family_of_solutions(kernels: InC | Twins, m: int, n: int, lost: int, inside: bool, seed: int) -> None:
    """``A^+ z + (I - A^+ A) y``, and whether z is in the range of A."""
    rng = np.random.default_rng(seed)
    full = min(m, n)
    rank = max(full - lost, 0)
    values = rng.uniform(0.5, 2.0, full) * (np.arange(full) < rank)
    A = orthogonal(rng, m)[:, :full] * values @ orthogonal(rng, n)[:full]
    z = A @ rng.normal(size=n) if inside else rng.normal(size=m)
    y = rng.normal(size=n)
    status, x = solve(kernels, A, z, y)
    inverse = np.linalg.pinv(A, rcond=1e-9)
    np.testing.assert_allclose(x, inverse @ z + y - inverse @ (A @ y), atol=1e-12)
    solvable = rank == m or inside
    assert status == (OK if rank == m else RANK_DEFICIENT if solvable else INFEASIBLE)


def test_rounding_of_constraints_that_are_satisfied_is_no_contradiction(kernels: InC | Twins) -> None:
    twice = np.array([[1.0, 2.0], [1.0, 2.0]])
    assert solve(kernels, twice, np.array([1e-16, -1e-16]), np.zeros(2))[0] == RANK_DEFICIENT
    assert solve(kernels, twice, np.array([1e-3, -1e-3]), np.zeros(2))[0] == INFEASIBLE


def test_no_coefficients(kernels: InC | Twins) -> None:
    status, x = solve(kernels, np.zeros((1, 2)), np.array([1.0]), np.array([3.0, 4.0]))
    assert status == INFEASIBLE
    assert solve(kernels, np.zeros((1, 2)), np.array([0.0]), np.array([3.0, 4.0]))[0] == RANK_DEFICIENT
    np.testing.assert_array_equal(x, [3.0, 4.0])


def test_values_that_are_not_numbers_are_infeasible(kernels: InC | Twins) -> None:
    status, _ = solve(kernels, np.zeros((2, 2)), np.array([np.nan, 1.0]), np.zeros(2))
    assert status == INFEASIBLE


def test_the_twin_in_fifty_digits() -> None:
    with mpmath.workdps(50):
        A = [mpmath.mpf(1), mpmath.mpf(2), mpmath.mpf(3)]
        x = [mpmath.mpf(0)] * 3
        y = [mpmath.mpf(1) / 3] * 3
        assert KERNELS["control_solve"].function(1, 3, A, [mpmath.mpf(1)], y, [], x) == OK
        wrong = abs(sum(a * b for a, b in zip(A, x, strict=True)) - 1)
        assert wrong < mpmath.mpf(10) ** -48
