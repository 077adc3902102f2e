"""Consistent initial conditions: assembly, fixed values, least squares on the speeds, failures that say why."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy.physics.mechanics as me
from ccompile import SANITIZERS, host_source, run_program, shared_library, with_each_c_sanitizer
from handmade_track import solver as track
from hypothesis import given, settings
from hypothesis import strategies as some
from linkages import solver_of
from messages import raises, says
from systems import initial, model_of, solver_for
from tolerances import LINEAR_SOLVE, PROJECTED, SOLVE

import kanegen as kg
from kanegen.errors import SolveError
from kanegen.pipeline import sources_of


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return shared_library(host_source("least_norm.c"), tmp_path_factory.mktemp("least_norm"))


def pointer(array: np.ndarray) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def least_norm(
    library: ctypes.CDLL, metric: np.ndarray, a: np.ndarray, b: np.ndarray, leading: int = 0
) -> tuple[int, np.ndarray, np.ndarray]:
    """Rank, solution in the metric, and what the rows out of use lack."""
    rows, n = a.shape
    factor, left, right = metric.copy(), a.copy(), b.copy()
    sizes, z = np.empty(rows), np.empty(n)
    library.weigh(rows, n, pointer(factor), pointer(left))
    rank = library.least_norm(leading, rows, n, pointer(left), pointer(right), pointer(sizes), pointer(z))
    library.back(n, pointer(factor), pointer(z))
    return rank, z, np.where(sizes < 0.0, 0.0, right)


def closed_form(metric: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``W^-1 A^T (A W^-1 A^T)^-1 b`` with 50 digits, rounded."""
    with mpmath.workdps(50):
        W, A, right = mpmath.matrix(metric), mpmath.matrix(a), mpmath.matrix(b)
        solution = mpmath.lu_solve(W, A.T * mpmath.lu_solve(A * (W**-1) * A.T, right))
        return np.array([float(x) for x in solution])


@settings(max_examples=40)
@given(n=some.integers(1, 7), seed=some.integers(0, 2**32 - 1), copies=some.integers(0, 2), data=some.data())
def test_weighted_least_norm(library: ctypes.CDLL, n: int, seed: int, copies: int, data: Any) -> None:
    rows = data.draw(some.integers(1, n))
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    metric = basis * 10.0 ** rng.uniform(-2, 2, n) @ basis.T
    a = np.linalg.qr(rng.normal(size=(n, n)))[0][:rows] * 10.0 ** rng.uniform(-2, 2, (rows, 1))
    b = rng.normal(size=rows)
    mixed = rng.normal(size=(copies, rows))
    rank, z, lacking = least_norm(library, metric, np.vstack([a, mixed @ a]), np.concatenate([b, mixed @ b]))
    assert rank == rows
    expected = closed_form(metric, a, b)
    assert z == pytest.approx(expected, rel=SOLVE, abs=SOLVE * np.abs(expected).max())
    assert np.abs(lacking).max() <= SOLVE * np.abs(mixed @ b).max(initial=1.0)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_one_row_in_the_inverse_metric(library: ctypes.CDLL, n: int) -> None:
    rng = np.random.default_rng(n)
    half, row, z = rng.normal(size=(n, n)), rng.normal(size=n), np.empty(n)
    metric = half @ half.T + np.eye(n)
    factor = metric.copy()
    library.weigh(0, n, pointer(factor), None)
    library.solve.restype = ctypes.c_double
    size = library.solve(n, pointer(factor), pointer(row), pointer(z))
    assert z == pytest.approx(np.linalg.solve(metric, row), rel=SOLVE, abs=SOLVE)
    assert size == pytest.approx(row @ z, rel=SOLVE)


def test_leading_rows_come_first_and_contradictions_are_left_over(library: ctypes.CDLL) -> None:
    a = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    rank, z, lacking = least_norm(library, np.diag([1.0, 4.0, 1.0]), a, np.array([3.0, 0.0, 5.0]), leading=1)
    assert rank == 2
    assert z == pytest.approx([3.0, 1.0, 4.0], rel=LINEAR_SOLVE)
    assert lacking == pytest.approx([0.0, -6.0, 0.0])


def test_what_moves_no_mass_moves_most(library: ctypes.CDLL) -> None:
    metric = np.array([[2.0, 0.0], [0.0, 0.0]])
    _, z, _ = least_norm(library, metric, np.array([[1.0, 1.0]]), np.array([1.0]))
    assert z == pytest.approx([5e-7, 1.0], rel=1e-5)
    _, z, _ = least_norm(library, np.zeros((2, 2)), np.array([[1.0, 1.0]]), np.array([1.0]))
    assert z == pytest.approx([0.5, 0.5], rel=LINEAR_SOLVE)


def assert_consistent(solver: kg.Solver, t: float, state: tuple[Any, Any], r: Any = None) -> None:
    for values in solver.residuals(t, *state, r):
        assert np.abs(values).max(initial=0.0) < PROJECTED * max(1.0, np.abs(state[1]).max())


@pytest.mark.parametrize("guess", [(0.3, 0.0, 0.0), (0.3, 2.0, 5.0), (0.3, -9.0, -3.0), (0.3, 1.0, 100.0)])
def test_a_loop_is_assembled_around_a_fixed_crank(guess: tuple[float, ...]) -> None:
    solver = solver_for("slider_crank")
    theta = solver.description.coordinates[0]
    q, u = solver.make_consistent(0.0, guess, (0.5, 3.0, -7.0), fixed=(theta, "u1"))
    assert (q[0], u[0]) == (0.3, 0.5)
    assert_consistent(solver, 0.0, (q, u))


def test_the_branch_next_to_the_guess_is_found() -> None:
    start = initial("slider_crank")
    solver = solver_for("slider_crank")
    near = np.add(start["q"], (0.0, 0.05, -0.1))
    q, u = solver.make_consistent(0.0, near, (0.5, 0.0, 0.0), fixed=("theta", "u1"))
    np.testing.assert_allclose(q, start["q"], rtol=SOLVE)
    np.testing.assert_allclose(u, start["u"], rtol=SOLVE)


@pytest.mark.parametrize("guess", [(0.0, 0.0, 0.0), (1.0, 0.0, -1.0), (1.5, 1.5, 1.5), (0.0, np.pi, 0.0)])
def test_a_four_bar_linkage_from_straight_guesses(guess: tuple[float, ...]) -> None:
    solver = solver_of("four_bar")
    state = solver.make_consistent(0.0, guess, (1.0, 2.0, 3.0))
    assert_consistent(solver, 0.0, state)


def test_a_consistent_state_is_left_alone() -> None:
    start = initial("slider_crank")
    q, u = solver_for("slider_crank").make_consistent(0.0, start["q"], start["u"])
    np.testing.assert_array_equal(q, start["q"])
    np.testing.assert_array_equal(u, start["u"])


@pytest.mark.parametrize(("name", "t"), [("slider_crank", 0.0), ("rolling_disk", 0.0), ("rheonomic_particle", 1.7)])
def test_speeds_are_the_weighted_least_squares_ones(name: str, t: float) -> None:
    solver, start = solver_for(name), initial(name)
    q, _ = solver.make_consistent(t, start["q"], start["u"])
    given_u = np.array(start["u"]) + np.random.default_rng(4).normal(size=len(start["u"]))
    _, u = solver.make_consistent(t, q, given_u, fixed=solver.description.coordinates)
    J, Q = solver.J(t, q, given_u), solver.Q(t, q, given_u)
    change = -np.linalg.solve(Q, J.T @ np.linalg.solve(J @ np.linalg.solve(Q, J.T), solver.residuals(t, q, given_u)[1]))
    np.testing.assert_allclose(u, given_u + change, rtol=SOLVE, atol=SOLVE)


def test_a_constraint_that_depends_on_time() -> None:
    solver = solver_of("lifted_ball")
    r = (1.5, 0.4, 0.0)
    q, u = solver.make_consistent(2.0, (1.0, 1.0, 1.0), (0.0, 0.0, 0.0), r)
    np.testing.assert_allclose(q, np.full(3, 1.5 / np.sqrt(3.0)), rtol=LINEAR_SOLVE)
    np.testing.assert_allclose(u, np.full(3, 0.4 / np.sqrt(3.0)), rtol=LINEAR_SOLVE)
    with raises(SolveError, "inputs", "r"):
        solver.make_consistent(2.0, q, u)


def test_constraints_nonlinear_in_the_speeds() -> None:
    solver, start = solver_for("appell_hamel", constraints="nonlinear"), initial("appell_hamel")
    state = solver.make_consistent(0.0, np.array(start["q"]) + 0.5, (2.0, -1.0, 0.3, 4.0, 1.0), fixed=("u1",))
    assert state[1][0] == 2.0
    assert_consistent(solver, 0.0, state)


def test_euler_parameters_are_normalized_and_the_joint_is_closed() -> None:
    solver = solver_of("hinged_body")
    guess = np.array([1.1, 0.3, -0.2, 0.4])
    q, u = solver.make_consistent(0.0, guess, (1.0, 2.0, 3.0))
    assert_consistent(solver, 0.0, (q, u))
    assert np.linalg.norm(q) == pytest.approx(1.0, rel=PROJECTED)
    satisfied = np.array([2.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(solver.make_consistent(0.0, satisfied, u)[0], [1.0, 0.0, 0.0, 0.0], atol=PROJECTED)
    fixed, _ = solver.make_consistent(0.0, guess, u, fixed=("e1",))
    assert fixed[1] == 0.3


@pytest.mark.parametrize("guess", [(0.9, -0.6, -2.0), (0.0, 0.0, 0.0)])
def test_redundant_constraints_are_no_obstacle(guess: tuple[float, ...]) -> None:
    solver = solver_of("four_bar", form="pseudoinverse", copies=2)
    state = solver.make_consistent(0.0, guess, (1.0, 2.0, 3.0))
    assert_consistent(solver, 0.0, state)
    expected = solver_of("four_bar").make_consistent(0.0, guess, (1.0, 2.0, 3.0))
    if guess[0]:
        np.testing.assert_allclose(state, expected, rtol=SOLVE)


def message(solver: kg.Solver, *arguments: Any, **options: Any) -> str:
    with pytest.raises(SolveError) as caught:
        solver.make_consistent(*arguments, **options)
    return str(caught.value)


def test_fixed_values_that_make_it_impossible() -> None:
    solver = solver_for("slider_crank")
    text = message(solver, 0.0, (0.3, 0.0, 1.0), (0.0, 0.0, 0.0), fixed=("theta", "x"))
    says(text, "free one of", "theta", "x")
    says(text, "l1*cos(theta", "position level", "residual")
    text = message(solver, 0.0, (0.3, 0.5, 3.0), (0.0, 0.0, 0.0), fixed=("theta", "beta", "x"))
    says(text, "free several of", "theta", "beta", "x")
    start = initial("slider_crank")
    text = message(solver, 0.0, start["q"], (1.0, 1.0, 0.0), fixed=("u1", "u2", "u3"))
    says(text, "free several of", "u1", "u2", "u3")
    assert "position level" not in text


def test_a_loop_that_cannot_close() -> None:
    solver = solver_of("four_bar").with_parameters(l1=0.1, l2=0.2, l3=0.3)
    text = message(solver, 0.0, (0.2, 0.1, -0.1), (0.0, 0.0, 0.0))
    says(text, "nothing fixed", "loop")
    residual = float(re.findall(r"residual (-?[\d.]+)", text)[0])
    assert residual == pytest.approx(0.6 - 2.0, abs=0.05)


def test_wrong_arguments_are_named() -> None:
    solver = solver_for("slider_crank")
    q, u = initial("slider_crank")["q"], initial("slider_crank")["u"]
    says(message(solver, 0.0, q, u, fixed="thetta"), "thetta", "theta")
    says(message(solver, 0.0, q, u, tolerance=-1.0), "tolerance", "-1.0")
    says(message(solver, 0.0, (np.nan, 0.0, 0.0), u), "q", "finite")
    says(message(solver, 0.0, q[:2], u), "q", "(2,)", "(3,)")
    says(message(track(), 0.0, (0.0, 0.0), (0.0, 0.0)), "functions=")


@with_each_c_sanitizer
def test_no_memory_is_misused(compiler: Any, tmp_path: Path) -> None:
    model = model_of("slider_crank")
    sources = sources_of(model, functions=("consistency", "integrals"))
    for name, text in sources.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    kernel = sources.text(sources.kernel)
    values = ", ".join(repr(float(value)) for value in model.parameters.values())
    program = f"#define PARAMETERS {values}\n{kernel}{host_source('projection_sanitized.c')}"
    lines = run_program(compiler, program, tmp_path, *SANITIZERS).splitlines()
    status, moved, *state = lines[0].split()
    assert (status, moved) == ("0", "1")
    assert (float(state[0]), float(state[3])) == (0.3, 0.5)
    beta = np.arccos(np.sin(0.3) * 0.5 / 1.2)
    assert abs(float(state[1])) == pytest.approx(beta, rel=PROJECTED)
    renewed, moved, left_alone, kept, value, drift = lines[1].split()
    assert (renewed, moved, left_alone) == ("0", "2", "0")  # moved, then nothing is left to do
    assert float(value) == pytest.approx(float(kept), rel=PROJECTED)
    assert 1e-7 < float(drift) < 1e-3
    assert lines[2].split() == ["0", "2", "0"] * 2  # the same where rows may become dependent, with and without energy


@pytest.mark.parametrize("name", ["slider_crank", "rolling_disk", "rheonomic_particle"])
def test_units_of_residuals_in_c_and_in_python(name: str) -> None:
    """The unit of a row does not depend on its factor, and is the sum of |df/dx_i| times at most the largest x."""
    solver, start = solver_for(name), initial(name)
    interpreted = kg.build(model_of(name), backend="interpreted")
    t, q, u = start["t"], np.array(start["q"], float), np.array(start["u"], float)
    compiled = solver._functions.get("residuals").with_units(t, q, u)
    python = interpreted._functions.get("residuals").with_units(t, q, u)
    np.testing.assert_allclose(compiled, python, rtol=1e-9, atol=1e-15)  # differences of 1e-6 lose ten digits
    _, units = compiled

    def slopes(x: np.ndarray) -> np.ndarray:
        return np.concatenate(solver.residuals(t, *np.split(x, [q.size])))

    x, sizes = np.append(q, u), np.append(np.full(q.size, np.abs(q).max()), np.full(u.size, np.abs(u).max() or 1.0))
    moves = 1e-6 * np.diag(sizes)
    bound = sum(np.abs(slopes(x + move) - slopes(x - move)) / 2e-6 for move in moves)
    assert (units > 0.0).all()
    assert (units <= 2.0 * bound * (1.0 + 1e-5)).all()  # two moves of at most the sizes


@pytest.mark.parametrize("backend", ["cython", "interpreted"])
def test_a_correction_that_leaves_a_spline_is_shortened(backend: str) -> None:
    """A follower on the cam y = x^3 of 0 <= x <= 3: Newton's first correction from x = 0.3 ends at x = 20."""
    x, y, v, w = me.dynamicsymbols("x y v w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points = np.linspace(0.0, 3.0, 7)
    cam = kg.Spline(points, points**3, name="cam")
    model = kg.Model(
        name="cam",
        frame=N,
        coordinates=(x, y),
        speeds=(v, w),
        kinematics=(v - x.diff(), w - y.diff()),
        bodies=(me.Particle("follower", O.locatenew("P", x * N.x + y * N.y), 1),),
        holonomic_constraints=(y - cam(x),),
    )
    solver = kg.build(model, backend=backend)
    q, u = solver.make_consistent(0.0, [0.3, 20.0], [0.0, 3.0], fixed=["y", "w"])
    assert q == pytest.approx([20.0 ** (1 / 3), 20.0], rel=SOLVE)
    assert u == pytest.approx([1.0 / q[0] ** 2, 3.0], rel=SOLVE)
    with raises(SolveError, "the spline 'cam'", "from 0 to 3"):
        solver.make_consistent(0.0, [3.3, 20.0], [0.0, 3.0])
