"""Kernels of controls, of any rank: C against NumPy, and their Python twins in double and in fifty digits."""

from __future__ import annotations

import ctypes
from pathlib import Path

import mpmath
import numpy as np
import pytest
from ccompile import host_source, shared_library
from hypothesis import given, settings
from hypothesis import strategies as some
from kernel_pairs import InC, Twins, orthogonal
from tolerances import LINEAR_SOLVE

from kanegen.codes import Status
from kanegen.program.kernels import KERNELS

sizes = some.integers(1, 5)
seeds = some.integers(0, 2**32 - 1)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("servo")
    return shared_library(host_source("servo_kernels.c"), folder)


@pytest.fixture(scope="session", params=["C", "twin"])
def kernels(request: pytest.FixtureRequest) -> InC | Twins:
    return InC(request.getfixturevalue("library")) if request.param == "C" else Twins()


def with_singular_values(rng: np.random.Generator, m: int, n: int, values: np.ndarray) -> np.ndarray:
    """A matrix (m, n) with these singular values, the first min(m, n)."""
    k = min(m, n)
    return orthogonal(rng, m)[:, :k] * values[:k] @ orthogonal(rng, n)[:k]


def work_of(name: str, m: int, n: int) -> np.ndarray:
    return np.zeros(KERNELS[name].work(m, n))


def solve(
    kernels: InC | Twins, A: np.ndarray, z: np.ndarray, y: np.ndarray, terms: float = 1.0
) -> tuple[int, np.ndarray]:
    m, n = A.shape
    x, work = np.zeros(n), work_of("control_solve", m, n)
    status = kernels["control_solve"](m, n, A.ravel().copy(), z, np.full(m, terms), y, work, x)
    return status, x


@settings(max_examples=60)
@given(m=sizes, n=sizes, lost=some.integers(0, 3), inside=some.booleans(), seed=seeds)
def test_the_family_of_solutions(kernels: InC | Twins, m: int, n: int, lost: int, inside: bool, seed: int) -> None:
    """``A^+ z + (I - A^+ A) y``, and whether z is in the range of A."""
    rng = np.random.default_rng(seed)
    full = min(m, n)
    rank = max(full - lost, 0)
    values = rng.uniform(0.5, 2.0, full) * (np.arange(full) < rank)
    A = with_singular_values(rng, m, n, values)
    z = A @ rng.normal(size=n) if inside else rng.normal(size=m)
    y = rng.normal(size=n)
    status, x = solve(kernels, A, z, y)
    inverse = np.linalg.pinv(A, rcond=1e-9)
    np.testing.assert_allclose(x, inverse @ z + y - inverse @ (A @ y), atol=1e-12)
    solvable = rank == m or inside
    assert status == (Status.OK if rank == m else Status.RANK_DEFICIENT if solvable else Status.INFEASIBLE)


def test_rounding_of_constraints_that_are_satisfied_is_no_contradiction(kernels: InC | Twins) -> None:
    twice = np.array([[1.0, 2.0], [1.0, 2.0]])
    assert solve(kernels, twice, np.array([1e-16, -1e-16]), np.zeros(2))[0] == Status.RANK_DEFICIENT
    assert solve(kernels, twice, np.array([1e-3, -1e-3]), np.zeros(2))[0] == Status.INFEASIBLE


@pytest.mark.parametrize("unit", [1e-15, 1.0, 1e15])
def test_what_is_rounding_depends_on_the_terms(kernels: InC | Twins, unit: float) -> None:
    twice = np.array([[1.0, 2.0], [1.0, 2.0]])
    rounding, more = np.array([1e-15, -1e-15]), np.array([1e-9, -1e-9])
    assert solve(kernels, twice, unit * rounding, np.zeros(2), unit)[0] == Status.RANK_DEFICIENT
    assert solve(kernels, twice, unit * more, np.zeros(2), unit)[0] == Status.INFEASIBLE


def test_no_coefficients(kernels: InC | Twins) -> None:
    status, x = solve(kernels, np.zeros((1, 2)), np.array([1.0]), np.array([3.0, 4.0]))
    assert status == Status.INFEASIBLE
    assert solve(kernels, np.zeros((1, 2)), np.array([0.0]), np.array([3.0, 4.0]))[0] == Status.RANK_DEFICIENT
    np.testing.assert_array_equal(x, [3.0, 4.0])


def test_values_that_are_not_numbers_are_infeasible(kernels: InC | Twins) -> None:
    status, _ = solve(kernels, np.zeros((2, 2)), np.array([np.nan, 1.0]), np.zeros(2))
    assert status == Status.INFEASIBLE


@settings(max_examples=60)
@given(m=sizes, n=sizes, seed=seeds)
def test_damped_controls(kernels: InC | Twins, m: int, n: int, seed: int) -> None:
    """1 / s for singular values above the damping, s / damping^2 below."""
    rng = np.random.default_rng(seed)
    values = rng.choice([0.0, 1e-7, 0.02, 0.4, 1.0], 5)
    A, z = with_singular_values(rng, m, n, values), rng.normal(size=m)
    left, found, right = np.linalg.svd(A, full_matrices=False)
    expected = right.T @ (found / np.maximum(found, 0.05) ** 2 * (left.T @ z))
    x = np.zeros(n)
    damping, work = np.array([0.05]), work_of("control_damped", m, n)
    assert kernels["control_damped"](m, n, A.ravel().copy(), z, damping, work, x) == Status.OK
    assert x == pytest.approx(expected, rel=LINEAR_SOLVE, abs=10 * LINEAR_SOLVE)


@settings(max_examples=60)
@given(m=sizes, n=sizes, seed=seeds, inside=some.booleans())
def test_feasibility(kernels: InC | Twins, m: int, n: int, seed: int, inside: bool) -> None:
    """Rank, smallest singular value, and whether the right side is in the range."""
    rng = np.random.default_rng(seed)
    values = np.sort(rng.choice([0.0, 0.3, 0.7, 1.0], 5))[::-1]
    A = with_singular_values(rng, m, n, values)
    rank = int(np.count_nonzero(values[: min(m, n)]))
    z = A @ rng.normal(size=n) if inside else rng.normal(size=m)
    x, result, work = np.zeros(n), np.zeros(3), work_of("control_feasibility", m, n)
    assert kernels["control_feasibility"](m, n, A.ravel().copy(), z, np.ones(m), work, x, result) == Status.OK
    smallest = values[min(m, n) - 1]
    assert result == pytest.approx([rank, smallest, float(inside or rank == m)], abs=LINEAR_SOLVE)
    assert x == pytest.approx(np.linalg.pinv(A, rcond=1e-9) @ z, abs=10 * LINEAR_SOLVE)


def test_the_least_controls_in_fifty_digits() -> None:
    with mpmath.workdps(50):
        A = [mpmath.mpf(1), mpmath.mpf(2), mpmath.mpf(3)]
        x = [mpmath.mpf(0)] * 3
        y = [mpmath.mpf(1) / 3] * 3
        assert KERNELS["control_solve"].twin(1, 3, A, [mpmath.mpf(1)], [1], y, [], x) == Status.OK
        wrong = abs(sum(a * b for a, b in zip(A, x, strict=True)) - 1)
        assert wrong < mpmath.mpf(10) ** -48


def test_twins_in_fifty_digits() -> None:
    with mpmath.workdps(50):
        A = [mpmath.mpf(x) for x in (1, 2, 3, 4, 5, 7)]
        z, x, result = [mpmath.mpf(1), mpmath.mpf(-2)], [mpmath.mpf(0)] * 3, [mpmath.mpf(0)] * 3
        assert KERNELS["control_feasibility"].twin(2, 3, list(A), z, [1, 1], [], x, result) == Status.OK
        residual = [sum(a * b for a, b in zip(A[3 * i : 3 * i + 3], x, strict=True)) - z[i] for i in range(2)]
        damped = [mpmath.mpf(0)] * 3
        assert KERNELS["control_damped"].twin(2, 3, list(A), z, [mpmath.mpf("1e-9")], [], damped) == Status.OK
        assert max(map(abs, residual)) < mpmath.mpf(10) ** -45
        assert max(abs(a - b) for a, b in zip(x, damped, strict=True)) < mpmath.mpf(10) ** -45


def test_work_lengths(library: ctypes.CDLL) -> None:
    for name in ("control_damped", "control_feasibility"):
        for m, n in ((1, 1), (2, 5), (4, 3)):
            assert getattr(library, f"{name}_work")(m, n) == KERNELS[name].work(m, n)
