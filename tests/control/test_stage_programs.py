"""The interior-point method of predictive control: conditions of optimality of random programs, and degenerate ones."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from ccompile import host_source, shared_library
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kanegen.codegen.lanes import header_text
from kanegen.control.predictive.sides import RELAXED

X, U, N, GENERAL = 3, 2, 6, 1
W, ROWS = U + X, U + X + 1
SIDES = 2 * ROWS
PENALTY = 50.0
NEAR = 1e-6
"""Distances from a bound that count as none: the products of distances and multipliers end at 1e-12 of the cost."""

OPTIMAL = 1e-7
"""Of variables, relative to the largest one; dynamics that grow a hundredfold amplify the distances."""

SIGN = 1e-5
"""Of multipliers, relative to the penalty."""

HEADERS = ("kg_stage_program.h", "kg_riccati.h", "kg_interior.h", "kg_convex.h")


class Side(ctypes.Structure):
    _fields_ = (("row", ctypes.c_int), *((name, ctypes.c_double) for name in ("sign", "bound", "size", "penalty")))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("stage_program")
    for name in HEADERS:
        (folder / name).write_text(header_text(f"control/{name}"))
    sizes = {"X": X, "U": U, "INTERVALS": N, "STAGE_ROWS": ROWS, "GENERAL": GENERAL, "SIDES": SIDES}
    return shared_library(host_source("stage_program.c"), folder, *(f"-DKG_{k}={n}" for k, n in sizes.items()))


@dataclass
class Program:
    """A program; ``low``, ``high`` (N + 1, ROWS): bounds of inputs (hard), states and the general row (soft)."""

    H: Any
    g: Any
    B: Any
    b: Any
    C: Any
    value: Any
    low: Any
    high: Any
    start: Any

    def rows(self, k: int) -> list[int]:
        """The rows that count at a stage."""
        return list(range(U)) if k == 0 else list(range(ROWS)) if k < N else list(range(U, ROWS))

    def sides(self, k: int) -> list[tuple[int, float, float, float]]:
        """Row, sign, bound and penalty of the sides of a stage; bounds are those of the kind of the stage."""
        own = self.low[min(k, 1) if k < N else N], self.high[min(k, 1) if k < N else N]
        return [
            (row, sign, bound[row], -1.0 if row < U else PENALTY)
            for row in self.rows(k)
            for sign, bound in ((1.0, own[0]), (-1.0, own[1]))
            if np.isfinite(bound[row])
        ]


def random_program(seed: int, tight: float = 1.0) -> Program:
    """A random convex program with unstable dynamics; ``tight``: factor of the bounds."""
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(N + 1, W, W)) * (rng.random((N + 1, W, 1)) < 0.7)
    H = np.einsum("kri,krj->kij", roots, roots)
    H[:, :U, :U] += 1e-3 * np.eye(U)
    H[N, :U], H[N, :, :U] = 0.0, 0.0
    g, B, b = rng.normal(size=(N + 1, W)), rng.normal(size=(N + 1, X, W)), 0.3 * rng.normal(size=(N + 1, X))
    g[N, :U] = 0.0
    C, value = rng.normal(size=(N + 1, GENERAL, W)), 0.2 * rng.normal(size=(N + 1, ROWS))
    C[N, :, :U] = 0.0
    low, high = -tight * rng.uniform(0.3, 2.0, (N + 1, ROWS)), tight * rng.uniform(0.3, 2.0, (N + 1, ROWS))
    return Program(H, g, B, b, C, value, low, high, 0.5 * rng.normal(size=X))


def solved(library: Any, p: Program, tolerance: float = 1e-12) -> tuple[Any, int]:
    """w (N + 1, W), and iterations, negative without a solution."""
    kept = []
    for which, k in enumerate((0, 1, N)):
        rows, sides = p.rows(k), p.sides(k)
        places = (ctypes.c_int * ROWS)(*[row if row < W else -1 for row in rows])
        table = (Side * SIDES)(*(Side(rows.index(r), s, bound, 1.0, c) for r, s, bound, c in sides))
        kept += [places, table]
        library.set_sides(which, len(rows), len(sides), places, table)
    values = [np.pad(p.value[k][p.rows(k)], (0, ROWS - len(p.rows(k)))) for k in range(N + 1)]
    data = np.concatenate(
        [np.concatenate([x.ravel() for x in (p.H[k], p.g[k], p.B[k], p.b[k], p.C[k], values[k])]) for k in range(N + 1)]
    )
    w = np.zeros((N + 1, W))
    library.solve.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_double, ctypes.c_int] + [ctypes.c_void_p]
    pointers = (data.ctypes.data, p.start.ctypes.data, tolerance, 100, w.ctypes.data)
    iterations = library.solve(*pointers)
    return w, iterations


def gradient(p: Program, k: int, row: int) -> Any:
    return np.eye(W)[row] if row < W else p.C[k][row - W]


def classified(p: Program, w: Any) -> tuple[list[Any], Any]:
    """Active sides (stage, slope, sign, bound less value, penalty), and the gradients of penalties of violated ones."""
    active, pull = [], np.zeros((N + 1, W))
    for k in range(N + 1):
        for row, sign, bound, penalty in p.sides(k):
            slope, level = gradient(p, k, row), bound - p.value[k][row]
            margin = sign * (slope @ w[k] - level)
            if penalty > 0.0 and margin < -NEAR:
                pull[k] -= sign * penalty * slope
            elif margin < NEAR:
                active.append((k, slope, sign, level, penalty))
    return active, pull


def require_optimal(p: Program, w: Any, is_equation: bool = False) -> None:
    """The program with the active sides as equations, by dense algebra, has the solution w; its multipliers have the
    signs of an optimum, which are sufficient for convex programs. ``is_equation``: signs do not count."""
    (active, pull), n = classified(p, w), (N + 1) * W
    H = np.zeros((n, n))
    for k in range(N + 1):
        H[k * W : (k + 1) * W, k * W : (k + 1) * W] = p.H[k]
    rows, right = [], []
    for k in range(N):
        for i in range(X):
            row = np.zeros(n)
            row[k * W : (k + 1) * W], row[(k + 1) * W + U + i] = p.B[k][i], -1.0
            rows.append(row)
            right.append(-p.b[k][i])
    fixed = [(U + i, p.start[i]) for i in range(X)] + [(N * W + j, 0.0) for j in range(U)]
    rows += [np.eye(n)[place] for place, _ in fixed]
    right += [value for _, value in fixed]
    n_fixed = len(rows)
    for k, slope, _, level, _ in active:
        rows.append(np.zeros(n))
        rows[-1][k * W : (k + 1) * W] = slope
        right.append(level)
    A, m = np.array(rows), len(rows)
    matrix = np.block([[H, -A.T], [A, np.zeros((m, m))]])
    found = np.linalg.lstsq(matrix, np.concatenate([-(p.g + pull).ravel(), right]), rcond=1e-13)[0]
    size = max(1.0, np.abs(w).max())
    assert_allclose(w.ravel(), found[:n], atol=OPTIMAL * size)
    for multiplier, (_, _, sign, _, penalty) in zip(found[n + n_fixed :], active, strict=True):
        assert is_equation or sign * multiplier >= -SIGN * PENALTY
        assert penalty < 0.0 or sign * multiplier <= penalty * (1.0 + SIGN)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.3, 1.0, 5.0]))
@settings(max_examples=60)
def test_random_programs_satisfy_the_conditions_of_optimality(library: Any, seed: int, tight: float) -> None:
    """Also where the states cannot be within their bounds: ``tight`` is the factor of all bounds."""
    p = random_program(seed, tight)
    w, iterations = solved(library, p)
    assert iterations >= 0
    require_optimal(p, w)


def test_programs_without_active_sides_take_one_recursion(library: Any) -> None:
    p = random_program(3, 1e6)
    w, iterations = solved(library, p)
    assert iterations == 0
    require_optimal(p, w)


def test_equations_are_kept_if_they_can_be(library: Any) -> None:
    """Bounds of the last states that are equal but for what controllers add, with inputs that are free enough."""
    p = random_program(5, 1e3)
    p.low[N, U:W] = np.array([0.3, -0.2, 0.1]) - RELAXED
    p.high[N, U:W] = np.array([0.3, -0.2, 0.1]) + RELAXED
    p.value[N] = 0.0
    w, iterations = solved(library, p)
    assert iterations > 0
    assert_allclose(w[N, U:], [0.3, -0.2, 0.1], atol=NEAR)
    require_optimal(p, w, is_equation=True)


def test_programs_without_curvature_have_the_cost_of_linear_programming(library: Any) -> None:
    """Without weights, the optimum is at bounds everywhere; violations are part of the cost."""
    from scipy.optimize import linprog

    for seed in range(5):
        p = random_program(seed, 0.5)
        p.H[:] = 0.0
        w, iterations = solved(library, p)
        assert iterations >= 0
        n = (N + 1) * W
        sides = [(k, *side) for k in range(N + 1) for side in p.sides(k)]
        soft = [i for i, side in enumerate(sides) if side[-1] > 0.0]
        cost = np.concatenate([p.g.ravel(), np.full(len(soft), PENALTY)])
        upper, limits, equal, right = [], [], [], []
        for i, (k, row, sign, bound, _) in enumerate(sides):
            upper.append(np.zeros(n + len(soft)))
            upper[-1][k * W : (k + 1) * W] = -sign * gradient(p, k, row)
            if i in soft:
                upper[-1][n + soft.index(i)] = -1.0
            limits.append(sign * (p.value[k][row] - bound))
        for k in range(N):
            for i in range(X):
                equal.append(np.zeros(n + len(soft)))
                equal[-1][k * W : (k + 1) * W], equal[-1][(k + 1) * W + U + i] = p.B[k][i], -1.0
                right.append(-p.b[k][i])
        free = (None, None)
        bounds = [*[free] * U, *((x, x) for x in p.start), *[free] * ((N - 1) * W), *[(0, 0)] * U, *[free] * X]
        found = linprog(cost, upper, limits, equal, right, [*bounds, *[(0, None)] * len(soft)])
        excess = [max(0.0, sides[i][2] * (sides[i][3] - p.value[k][row] - gradient(p, k, row) @ w[k]))
                  for i in soft for k, row in [sides[i][:2]]]  # fmt: skip
        assert_allclose(p.g.ravel() @ w.ravel() + PENALTY * sum(excess), found.fun, rtol=1e-6)


def test_inputs_without_weights_and_effects_stay(library: Any) -> None:
    """A pivot of zero: an input that neither costs nor does anything does not move."""
    p = random_program(7, 1e6)
    p.H[:, 0, :], p.H[:, :, 0], p.g[:, 0], p.B[:, :, 0] = 0.0, 0.0, 0.0, 0.0
    p.C[:, :, 0] = 0.0
    w, iterations = solved(library, p)
    assert iterations == 0
    assert_allclose(w[:, 0], 0.0)
    require_optimal(p, w)


@given(st.integers(0, 2**32 - 1), st.integers(0, W))
def test_hessians_become_convex(library: Any, seed: int, negative: int) -> None:
    """Negative eigenvalues, in units in which the diagonal is one, become zero; convex matrices remain."""
    rng = np.random.default_rng(seed)
    vectors, values = np.linalg.qr(rng.normal(size=(W, W)))[0], rng.uniform(0.1, 3.0, W)
    values[:negative] *= -1.0
    units = 10.0 ** rng.uniform(-3, 3, W)
    H = (vectors * values) @ vectors.T * np.outer(units, units)
    found = H.copy()
    library.make_convex(ctypes.c_void_p(found.ctypes.data))
    if not negative:
        assert (found == H).all()
        return
    size = np.sqrt(np.abs(np.diag(H)))
    own, basis = np.linalg.eigh(H / np.outer(size, size))
    expected = (basis * np.maximum(own, 0.0)) @ basis.T
    assert_allclose(found / np.outer(size, size), expected, atol=1e-9 * max(1.0, np.abs(own).max()))
