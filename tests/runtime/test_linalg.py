"""The C linear algebra against NumPy, and its Python twins in double and in fifty digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from ccompile import SANITIZERS, Compiler, host_source, run_program, shared_library, with_each_sanitizer
from hypothesis import given, settings
from hypothesis import strategies as some
from kernel_pairs import InC, Twins, orthogonal
from tolerances import CONSTRAINED_SOLVE, LINEAR_SOLVE

from kanegen.codes import Status
from kanegen.program.kernels import KERNELS

sizes = some.integers(1, 8)
seeds = some.integers(0, 2**32 - 1)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> InC:
    return InC(shared_library(host_source("linalg.c"), tmp_path_factory.mktemp("linalg")))


@pytest.fixture(params=["C", "twin"])
def kernels(request: pytest.FixtureRequest, compiled: InC) -> InC | Twins:
    return compiled if request.param == "C" else Twins()


@pytest.fixture(scope="session", params=["C", "twin"])
def session_kernels(request: pytest.FixtureRequest, compiled: InC) -> InC | Twins:
    return compiled if request.param == "C" else Twins()


def well_conditioned(rng: np.random.Generator, n: int) -> np.ndarray:
    """A matrix (n, n) with singular values between 0.1 and 1."""
    return orthogonal(rng, n) * rng.uniform(0.1, 1.0, n) @ orthogonal(rng, n)


def positive_definite(rng: np.random.Generator, n: int) -> np.ndarray:
    root = orthogonal(rng, n) * rng.uniform(0.3, 1.0, n)
    return root @ root.T


def projector(rng: np.random.Generator, n: int) -> np.ndarray:
    """Onto the complement of a vector with components of one size, so that no unknown hides the lost rank."""
    v = rng.uniform(0.5, 1.0, n) * rng.choice([-1.0, 1.0], n)
    return np.eye(n) - np.outer(v, v) / (v @ v)


def units(rng: np.random.Generator, n: int) -> np.ndarray:
    """Scales as different units of rows or columns give."""
    return 10.0 ** rng.integers(-9, 10, n)


@settings(max_examples=60)
@given(n=sizes, m=some.integers(1, 3), seed=seeds)
def test_lu_solves_in_any_units(session_kernels: InC | Twins, n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, x = well_conditioned(rng, n), rng.normal(size=(n, m))
    rows, columns = units(rng, n), units(rng, n)
    scaled = rows[:, None] * a * columns
    b = (rows[:, None] * (a @ x)).ravel()
    assert session_kernels["lu_solve_many"](n, m, scaled.ravel(), b) == Status.OK
    assert columns[:, None] * b.reshape(n, m) == pytest.approx(x, rel=LINEAR_SOLVE, abs=LINEAR_SOLVE)


def test_one_right_hand_side_is_the_first_of_many(kernels: InC | Twins) -> None:
    rng = np.random.default_rng(1)
    for name, a in (("lu", well_conditioned(rng, 6)), ("cholesky", positive_definite(rng, 6))):
        b = rng.normal(size=(6, 3))
        one, many = b[:, 0].copy(), b.ravel().copy()
        assert kernels[f"{name}_solve"](6, a.ravel().copy(), one) == Status.OK
        assert kernels[f"{name}_solve_many"](6, 3, a.ravel().copy(), many) == Status.OK
        np.testing.assert_array_equal(one, many.reshape(6, 3)[:, 0])
        assert one == pytest.approx(np.linalg.solve(a, b[:, 0]), rel=LINEAR_SOLVE)


def test_lu_pivots_where_the_diagonal_is_zero(kernels: InC | Twins) -> None:
    a, b = np.array([0.0, 2.0, 3.0, 0.0]), np.array([4.0, 9.0])
    assert kernels["lu_solve"](2, a, b) == Status.OK
    np.testing.assert_array_equal(b, [3.0, 2.0])


def test_lu_scales_rows_before_it_pivots(kernels: InC | Twins) -> None:
    """Without scaling the pivot 10 of the first row would lose the second equation."""
    a, b = np.array([10.0, 1e18, 1.0, 1.0]), np.array([1e18, 2.0])
    assert kernels["lu_solve"](2, a, b) == Status.OK
    assert b == pytest.approx([1.0, 1.0], rel=LINEAR_SOLVE)


@settings(max_examples=60)
@given(n=some.integers(2, 8), seed=seeds)
def test_lu_refuses_a_lost_rank_in_any_units(session_kernels: InC | Twins, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    projection = projector(rng, n)
    a = rng.permutation(projection @ positive_definite(rng, n) @ projection)
    scaled = units(rng, n)[:, None] * a * units(rng, n)
    assert session_kernels["lu_solve"](n, scaled.ravel(), rng.normal(size=n)) == Status.SINGULAR


@pytest.mark.parametrize("value", [0.0, np.inf])
@pytest.mark.parametrize("name", ["lu_solve", "cholesky_solve"])
def test_a_row_without_a_scale_is_singular(kernels: InC | Twins, name: str, value: float) -> None:
    assert kernels[name](2, np.array([1.0, 0.0, 0.0, value]), np.ones(2)) == Status.SINGULAR


@settings(max_examples=60)
@given(n=sizes, m=some.integers(1, 3), seed=seeds)
def test_cholesky_solves_in_any_units(session_kernels: InC | Twins, n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, x, scale = positive_definite(rng, n), rng.normal(size=(n, m)), units(rng, n)
    scaled = scale[:, None] * a * scale
    b = (scale[:, None] * (a @ x)).ravel()
    scaled[np.triu_indices(n, 1)] = np.nan  # only the lower triangle may be read
    assert session_kernels["cholesky_solve_many"](n, m, scaled.ravel(), b) == Status.OK
    assert scale[:, None] * b.reshape(n, m) == pytest.approx(x, rel=LINEAR_SOLVE, abs=LINEAR_SOLVE)


@settings(max_examples=60)
@given(n=some.integers(2, 8), seed=seeds, eigenvalue=some.sampled_from([0.0, -0.2]))
def test_cholesky_refuses_what_is_not_positive_definite(
    session_kernels: InC | Twins, n: int, seed: int, eigenvalue: float
) -> None:
    rng = np.random.default_rng(seed)
    projection, scale = projector(rng, n), units(rng, n)
    a = projection @ positive_definite(rng, n) @ projection + eigenvalue * (np.eye(n) - projection)
    a = scale[:, None] * (a + a.T) / 2 * scale
    assert session_kernels["cholesky_solve"](n, a.ravel(), rng.normal(size=n)) == Status.SINGULAR


def constrained_problem(rng: np.random.Generator, n_u: int, n_c: int, symmetric: bool = True) -> dict[str, np.ndarray]:
    """Q, P, J, b with well-conditioned Q and J, whose rows have different units."""
    J = (orthogonal(rng, n_c) * rng.uniform(0.2, 1.0, n_c)) @ orthogonal(rng, n_u)[:n_c]
    scale = units(rng, n_c)
    Q, S = positive_definite(rng, n_u), rng.uniform(-1.0, 1.0, (n_u, n_u))
    return {
        "Q": Q if symmetric else Q + S - S.T,
        "P": rng.normal(size=n_u),
        "J": scale[:, None] * J,
        "b": scale * rng.normal(size=n_c),
    }


def multiplier_solution(Q: Any, P: Any, J: Any, b: Any) -> np.ndarray:
    """u' of the saddle-point system in 50 digits, from none of the code under test."""
    n_u, n_c = len(P), len(b)
    with mpmath.workdps(50):
        matrix = mpmath.zeros(n_u + n_c)
        for i in range(n_u):
            for j in range(n_u):
                matrix[i, j] = mpmath.mpf(Q[i, j])
            for k in range(n_c):
                matrix[i, n_u + k] = -mpmath.mpf(J[k, i])
                matrix[n_u + k, i] = mpmath.mpf(J[k, i])
        right = mpmath.matrix([*map(mpmath.mpf, P), *map(mpmath.mpf, b)])
        return np.array([float(x) for x in mpmath.lu_solve(matrix, right)[:n_u]])


@settings(max_examples=60, deadline=None)
@given(n_u=sizes, data=some.data(), seed=seeds, name=some.sampled_from(["constrained_solve", "constrained_solve_lu"]))
def test_constrained_solve_is_the_multiplier_solution(
    session_kernels: InC | Twins, n_u: int, data: some.DataObject, seed: int, name: str
) -> None:
    """By LU also for an unsymmetric matrix; its symmetric part keeps it regular on every subspace."""
    n_c = data.draw(some.integers(0, n_u))
    symmetric = name == "constrained_solve"
    problem = constrained_problem(np.random.default_rng(seed), n_u, n_c, symmetric)
    expected = multiplier_solution(**problem)
    work = np.full(KERNELS[name].work(n_u, n_c), np.nan)
    udot = np.empty(n_u)
    arrays = {key: value.ravel().copy() for key, value in problem.items()}
    assert session_kernels[name](n_u, n_c, *arrays.values(), work, udot) == Status.REPARTITIONED
    assert udot == pytest.approx(expected, rel=CONSTRAINED_SOLVE, abs=CONSTRAINED_SOLVE)
    assert sorted(work[:n_u]) == list(range(n_u))
    for key in ("Q", "P"):
        np.testing.assert_array_equal(arrays[key], problem[key].ravel())


def test_work_lengths_agree(compiled: InC) -> None:
    for n_u in range(1, 9):
        for n_c in range(n_u + 1):
            assert compiled["constrained_work"](n_u, n_c) == KERNELS["constrained_solve"].work(n_u, n_c)


@settings(max_examples=60)
@given(n_u=some.integers(2, 8), data=some.data(), seed=seeds)
def test_redundant_rows_are_singular(session_kernels: InC | Twins, n_u: int, data: some.DataObject, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_c = data.draw(some.integers(2, n_u))
    problem = constrained_problem(rng, n_u, n_c)
    J = problem["J"] / np.abs(problem["J"]).max(axis=1)[:, None]
    J[-1] = rng.uniform(0.5, 1.0, n_c - 1) @ J[:-1]
    J *= units(rng, n_c)[:, None]
    assert session_kernels["partition"](n_u, n_c, J.ravel(), np.empty(n_u)) == Status.SINGULAR


def test_a_massless_independent_speed_is_singular(kernels: InC | Twins) -> None:
    Q = np.diag([1.0, 1.0, 0.0])
    J, b = np.array([1.0, 1.0, 0.0]), np.zeros(1)
    work, udot = np.empty(KERNELS["constrained_solve"].work(3, 1)), np.empty(3)
    assert kernels["constrained_solve"](3, 1, Q.ravel(), np.ones(3), J, b, work, udot) == Status.SINGULAR


def test_a_massless_speed_that_a_constraint_fixes_is_legal(kernels: InC | Twins) -> None:
    """Only A2 Q A2^T must be positive definite."""
    Q, P = np.diag([2.0, 0.0]), np.array([3.0, 0.0])
    J, b = np.array([1.0, -2.0]), np.array([0.5])
    work, udot = np.empty(KERNELS["constrained_solve"].work(2, 1)), np.empty(2)
    assert kernels["constrained_solve"](2, 1, Q.ravel(), P, J, b, work, udot) == Status.REPARTITIONED
    assert udot == pytest.approx([1.5, 0.5], rel=LINEAR_SOLVE)


def test_more_rows_than_speeds_are_singular(kernels: InC | Twins) -> None:
    assert kernels["partition"](1, 2, np.array([1.0, 2.0]), np.empty(1)) == Status.SINGULAR


def test_partition_takes_the_largest_pivots(kernels: InC | Twins) -> None:
    J = np.array([[1.0, 0.0, 5.0, 1e-9], [0.0, 1e-9, 2.0, 1.0]])
    order = np.empty(4)
    assert kernels["partition"](4, 2, J.ravel(), order) == Status.OK
    np.testing.assert_array_equal(order, [2, 3, 0, 1])


@settings(max_examples=60)
@given(n_u=sizes, data=some.data(), seed=seeds)
def test_partition_agrees_with_the_twin_and_is_well_conditioned(
    compiled: InC, n_u: int, data: some.DataObject, seed: int
) -> None:
    n_c = data.draw(some.integers(1, n_u))
    J = constrained_problem(np.random.default_rng(seed), n_u, n_c)["J"]
    orders = np.empty(n_u), np.empty(n_u)
    for kernels, order in zip((compiled, Twins()), orders, strict=True):
        assert kernels["partition"](n_u, n_c, J.ravel().copy(), order) == Status.OK
        assert sorted(order) == list(range(n_u))
        assert all(np.diff(order[:n_c]) > 0)
        assert all(np.diff(order[n_c:]) > 0)
    np.testing.assert_array_equal(*orders)
    J /= np.abs(J).max(axis=1)[:, None]
    dependent = J[:, orders[0][:n_c].astype(int)]
    assert np.linalg.cond(dependent) < 2.0**n_c * n_u * np.linalg.cond(J)


def test_twins_work_in_fifty_digits() -> None:
    problem = constrained_problem(np.random.default_rng(7), 5, 2)
    expected = multiplier_solution(**problem)
    with mpmath.workdps(50):
        arrays = [[mpmath.mpf(x) for x in value.ravel()] for value in problem.values()]
        J, b = [*arrays[2]], [*arrays[3]]
        udot: list[Any] = [None] * 5
        work: list[Any] = [None] * KERNELS["constrained_solve"].work(5, 2)
        assert KERNELS["constrained_solve"].twin(5, 2, *arrays, work, udot) == Status.REPARTITIONED
        for i in range(2):
            defect = mpmath.fsum(J[5 * i + j] * udot[j] for j in range(5)) - b[i]
            assert abs(defect) < mpmath.mpf(10) ** -35
        assert [float(x) for x in udot] == pytest.approx(expected, rel=LINEAR_SOLVE)

        # A gap far below double precision is not singular in fifty digits.
        tiny = mpmath.mpf(10) ** -30
        a, x = [mpmath.mpf(1), mpmath.mpf(1), mpmath.mpf(1), 1 + tiny], [mpmath.mpf(2), 2 + tiny]
        assert KERNELS["lu_solve"].twin(2, a, x) == Status.OK
        assert abs(x[0] - 1) + abs(x[1] - 1) < mpmath.mpf(10) ** -15
    assert KERNELS["lu_solve"].twin(2, [1.0, 1.0, 1.0, 1.0 + 1e-16], [2.0, 2.0]) == Status.SINGULAR


@with_each_sanitizer
def test_linear_algebra_under_sanitizers(compiler: Compiler, tmp_path: Path) -> None:
    output = run_program(compiler, host_source("linalg_sanitized.c"), tmp_path, *SANITIZERS)
    statuses = np.array(output.split(), int).reshape(-1, 4)
    assert set(statuses[:, 2]) == {Status.OK}
    assert Status.REPARTITIONED in statuses[:, 1]
