"""Redundant constraints, constraints that become dependent on the way, and constraints that contradict each other."""

from __future__ import annotations

from functools import cache
from typing import Any

import mpmath
import numpy as np
import oracle
import pytest
import sympy as sm
from mechanisms import BRICARD_START, blocks, bricard, four_bars, upright
from messages import raises
from oracle import Oracle
from tolerances import EVALUATION, PROJECTED, SOLVE

import kanegen as kg

FORMS = ("pseudoinverse", "canonical")
BRICARD_SPAN = (0.0, 5.0)


@cache
def bricard_solver(form: str, projected: bool = False) -> kg.Solver:
    return kg.build(bricard(), form=form, stabilization=kg.Projection() if projected else None)


@cache
def chain_solver(loops: int) -> kg.Solver:
    return kg.build(four_bars(loops), form="pseudoinverse")


def worst_residual(solver: kg.Solver, solution: kg.Solution) -> float:
    states = zip(solution.t, solution.q, solution.u, strict=True)
    return max(np.abs(part).max() for state in states for part in solver.residuals(*state))


def energies(solver: kg.Solver, solution: kg.Solution) -> np.ndarray:
    return np.array([solver.energy(*state) for state in zip(solution.t, solution.q, solution.u, strict=True)])


def least_norm(Q: Any, P: Any, J: Any, b: Any) -> tuple[Any, Any]:
    """u' and the shortest multipliers from a singular value decomposition of J in the metric of Q.

    With ``Q = G G^T``, w = G^T u' is the point nearest to ``G^-1 P`` among those with ``(J G^-T) w = b``.
    """
    Q, P, J, b = (np.array(x, dtype=float) for x in (Q, P, J, b))
    G = np.linalg.cholesky(Q)
    M = np.linalg.solve(G, J.T).T
    left, values, right = np.linalg.svd(M, full_matrices=False)
    kept = values > 1e-8 * values[0]
    inverse = right[kept].T @ np.diag(1.0 / values[kept]) @ left[:, kept].T
    free = np.linalg.solve(G, P)
    pulled = inverse @ (b - M @ free)
    udot, multipliers = np.linalg.solve(G.T, free + pulled), inverse.T @ pulled
    return np.array([mpmath.mpf(x) for x in udot]), np.array([mpmath.mpf(x) for x in multipliers])


@pytest.mark.parametrize("form", FORMS)
def test_bricard_mechanism_moves_with_one_redundant_row(form: str) -> None:
    solver = bricard_solver(form)
    rest = np.zeros(5)
    assert solver.rank(0.0, BRICARD_START, rest) == 4
    redundant = solver.redundant_constraints(0.0, BRICARD_START, rest)
    assert len(redundant) == 1
    assert redundant[0] in solver.description.constraints.rows
    solution = solver.integrate(BRICARD_SPAN, BRICARD_START, rest, method="dop853", rtol=1e-10, atol=1e-10)
    assert np.ptp(solution.q[:, 0]) > 0.5  # it does move
    assert {int(solver.rank(*state)) for state in zip(solution.t, solution.q, solution.u, strict=True)} == {4}
    energy = energies(solver, solution)
    # Drift of the constraints and of the energy: some 100 steps with errors of 1e-10, times forces of some 10 N.
    assert worst_residual(solver, solution) < 1e-8
    assert np.ptp(energy) < 1e-8 * abs(energy[0])


def test_projection_keeps_the_bricard_mechanism_closed() -> None:
    solver = bricard_solver("pseudoinverse", projected=True)
    solution = solver.integrate(BRICARD_SPAN, BRICARD_START, np.zeros(5), rtol=1e-8, atol=1e-8)
    assert worst_residual(solver, solution) < PROJECTED
    energy = energies(solver, solution)
    assert np.ptp(energy) < 1e-8 * abs(energy[0])


def test_redundant_forms_agree_with_a_singular_value_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Q, P, J, b of the oracle, whose own multiplier system is singular, and u' by NumPy along a run."""
    monkeypatch.setattr(oracle, "_solve_kkt", least_norm)
    reference = Oracle(bricard())
    solver, other = (bricard_solver(form) for form in FORMS)
    times = np.linspace(*BRICARD_SPAN, 4)
    solution = solver.integrate(BRICARD_SPAN, BRICARD_START, np.zeros(5), method="dop853", t_eval=times)
    for state in zip(solution.t, solution.q, solution.u, strict=True):
        expected = reference(*state)
        size = 1.0 + np.abs(expected.udot).max()
        for each in (solver, other):
            assert np.abs(each.rhs(*state)[1] - expected.udot).max() < SOLVE * size
        load = 1.0 + np.abs(expected.multipliers).max()
        assert np.abs(solver.multipliers(*state) - expected.multipliers).max() < SOLVE * load
        assert np.abs(solver.constraint_force(*state) - expected.constraint_force).max() < SOLVE * load
        assert np.abs(solver.J(*state) @ expected.udot - expected.b).max() < SOLVE * size


@pytest.mark.parametrize("form", ["auto", "range_space", "articulated"])
def test_forms_that_need_full_rank_stop_where_a_row_is_redundant(form: str) -> None:
    """Off its manifold the mechanism has five independent rows: that one is redundant shows at run time only."""
    solver = kg.build(bricard(), form=form, functions=["rhs"])
    with raises(kg.SolveError, "redundant"):
        solver.rhs(0.0, BRICARD_START, np.zeros(5))


RUNS: list[dict[str, Any]] = [
    {"method": "dopri5"},
    {"method": "dop853", "rtol": 1e-10, "atol": 1e-10},
    {"method": "rk4", "step": 1e-3},
]


@pytest.mark.parametrize("options", RUNS, ids=lambda options: str(options["method"]))
@pytest.mark.parametrize("loops", [1, 2, 5])
def test_chain_of_four_bars_runs_through_its_flat_positions(loops: int, options: dict[str, Any]) -> None:
    """Twenty passages, at each of which every loop may fold over: the speeds go on as they come."""
    solver = chain_solver(loops).with_stabilization(kg.Projection())
    q, u = upright(loops)
    solution = solver.integrate((0.0, 20.0), q, u, **options)
    cranks = solution.q[:, : loops + 1]
    passages = np.count_nonzero(np.diff(np.sign(np.sin(cranks[:, 0]))))
    assert passages >= 20
    assert np.ptp(cranks, axis=1).max() < 1e-6
    energy = energies(solver, solution)
    assert np.ptp(energy) < 3e-5 * np.ptp(9.81 * np.sin(cranks[:, 0]))
    assert worst_residual(solver, solution) < 1e2 * PROJECTED


@pytest.mark.parametrize(
    ("stabilization", "duration", "passages"),
    [(kg.Projection(), 20.0, 28), (kg.Baumgarte(alpha=10, beta=10), 2.0, 2)],
    ids=["projected", "damped"],
)
def test_the_other_branch_is_kept_as_well(stabilization: Any, duration: float, passages: int) -> None:
    """One crank rests on the other's pin, the second turns with the rod about it, through both flat positions.

    Without a projection rounding errors grow at each passage, so that the branch is left after ten to twenty.
    """
    solver = chain_solver(1).with_stabilization(stabilization)
    solution = solver.integrate((0.0, duration), [0.0, 1.0, 1.0], [0.0, 3.0, 3.0])
    assert np.count_nonzero(np.diff(np.sign(np.sin(solution.q[:, 1])))) == passages
    assert np.abs(solution.q[:, 0]).max() < 1e-6
    assert np.abs(solution.q[:, 1] - solution.q[:, 2]).max() < 1e-6


@pytest.mark.parametrize("loops", [1, 2, 5])
def test_accelerations_in_the_flat_position_are_those_of_the_motion(loops: int) -> None:
    """The chain moves like one rod on each crank: a' = -(g (1/2 (L + 1) + L) / ((L + 1) / 3 + L)) cos a, L loops."""
    solver, flat = chain_solver(loops), np.zeros(2 * loops + 1)
    u = np.array([-4.0] * (loops + 1) + [0.0] * loops)
    assert solver.rank(0.0, flat, u) == loops
    assert len(solver.redundant_constraints(0.0, flat, u)) == loops
    expected = -9.81 * (0.5 * (loops + 1) + loops) / ((loops + 1) / 3.0 + loops)
    for angle in (0.0, 1e-12, -1e-7, 1e-5):
        q = flat + angle * np.array([1.0] * (loops + 1) + [0.0] * loops)
        found = solver.rhs(0.0, q, u)[1]
        np.testing.assert_allclose(found[: loops + 1], expected * np.cos(angle), rtol=SOLVE)
        np.testing.assert_allclose(found[loops + 1 :], 0.0, atol=SOLVE * abs(expected))


def test_rank_of_constraints_that_coincide_for_one_value_of_a_parameter() -> None:
    """x - y = 0 and d x - y = 0: both blocks are held, unless d = 1."""
    d = sm.Symbol("d")
    model = blocks(lambda x, y: [x - y, d * x - y], parameters={d: 1.0})
    solver = kg.build(model, form="pseudoinverse")
    q = u = np.zeros(2)
    assert solver.rank(0.0, q, u) == 1
    assert len(solver.redundant_constraints(0.0, q, u)) == 1
    assert np.allclose(solver.rhs(0.0, q, u)[1], [1.0, 1.0], rtol=EVALUATION)
    for name in ("T", "V", "B"):  # no choice of dependent speeds holds: these divide by d - 1
        with raises(kg.SolveError, name):
            getattr(solver, name)(0.0, q, u)
    held = solver.with_parameters(d=2.0)
    assert held.rank(0.0, q, u) == 2
    assert np.allclose(held.rhs(0.0, q, u)[1], [0.0, 0.0], atol=EVALUATION)
    assert np.allclose(np.linalg.solve(held.T(0.0, q, u), held.V(0.0, q, u)), [0.0, 0.0], atol=EVALUATION)


@pytest.mark.parametrize("q", [[0.5, 0.5], [1.0, 0.0], [1.0, 0.5]])
def test_contradictory_constraints_have_no_start(q: list[float]) -> None:
    """x - y = 0 and d (x - y) = d^2 with d = 1 m: that they contradict each other depends on a parameter."""
    d = sm.Symbol("d")
    contradictory = blocks(lambda x, y: [x - y, d * (x - y) - d**2], parameters={d: 1.0})
    solver = kg.build(contradictory, form="pseudoinverse")
    with raises(kg.SolveError, "violates", "residual"):
        solver.integrate((0.0, 1.0), q, [0.0, 0.0])
    with raises(kg.SolveError, "contradict"):
        solver.make_consistent(0.0, q, [0.0, 0.0])


def test_a_contradiction_in_numbers_is_an_error_of_the_model() -> None:
    with raises(kg.ModelError, "contradict"):
        blocks(lambda x, y: [x - y, x - y - 1])


def test_articulated_form_is_the_reduced_one_through_a_flat_position() -> None:
    """It takes other dependent speeds where its own pivots are too small, and reports where none exist."""
    solvers = [kg.build(four_bars(2), form=form, functions=["rhs", "J"]) for form in ("reduced", "articulated")]
    q, u = upright(2)
    for angle in (0.3, 1e-2, 1e-4, 1e-6):
        q[:3] = angle
        expected, found = (solver.rhs(0.0, q, u)[1] for solver in solvers)
        # The rows of each loop are parallel but for the angle.
        assert np.allclose(found, expected, rtol=0, atol=EVALUATION / angle)
    q[:3] = 0.0
    errors = []
    for solver in solvers:
        with raises(kg.SolveError, "singular") as info:
            solver.rhs(0.0, q, u)
        errors.append(str(info.value))
    assert errors[0] == errors[1]
