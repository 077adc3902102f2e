"""Quantities at many states in one call: equal to a loop over the single states, in both back ends."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
from messages import raises
from state_models import cart, solver_of
from systems import NAMES, SYSTEMS, initial, solver_for, states

import kanegen as kg
from kanegen.program.catalogue import ATTRIBUTES


def rows_of(name: str, options: dict[str, Any]) -> tuple[Any, Any, Any]:
    """t (N,), q (N, n_q) and u (N, n_u) near the start of an example."""
    found = states(name, 4, **options)
    return np.array([s.t for s in found]), np.array([s.q for s in found]), np.array([s.u for s in found])


def same(rows: Any, singles: list[Any]) -> None:
    """Compare bit by bit: the compiled function is the same."""
    if isinstance(rows, tuple):
        for k, part in enumerate(rows):
            same(part, [single[k] for single in singles])
        return
    assert rows.shape == np.shape(singles)
    np.testing.assert_array_equal(rows, singles)


@pytest.mark.parametrize(("name", "options"), SYSTEMS, ids=NAMES)
def test_every_quantity_equals_a_loop_over_states(name: str, options: dict[str, Any]) -> None:
    solver, r = solver_for(name, **options), initial(name, **options).get("r")
    t, q, u = rows_of(name, options)
    built = [x for x in ATTRIBUTES if x in solver.description.functions]
    assert {"kinetic_energy", "Q", "momentum"} <= set(built)
    for quantity in (*built, "rhs", "residuals"):
        function = getattr(solver, quantity)
        same(function(t, q, u, r), [function(*state, r) for state in zip(t.tolist(), q, u, strict=True)])
    for quantity, value in solver.outputs(t, q, u, r).items():
        same(value, [solver.output(quantity, *state, r) for state in zip(t.tolist(), q, u, strict=True)])
    for quantity, wrench in solver.reactions(t, q, u, r).items():
        same(tuple(wrench), [solver.reaction(quantity, *state, r) for state in zip(t.tolist(), q, u, strict=True)])


@cache
def interpreted() -> kg.Solver:
    return kg.build(cart(), backend="interpreted")


@pytest.mark.parametrize("backend", ["cython", "interpreted"])
def test_rows_of_inputs_and_states(backend: str) -> None:
    """Each argument has rows or not: all combinations equal the loop."""
    solver = solver_of("cart") if backend == "cython" else interpreted()
    rng = np.random.default_rng(3)
    single = [0.5, *(rng.standard_normal(n) for n in (1, 1, 1, 2))]
    many = [rng.standard_normal(3), *(rng.standard_normal((3, n)) for n in (1, 1, 1, 2))]
    for choice in range(1, 32):
        arguments = [many[k] if choice >> k & 1 else single[k] for k in range(5)]
        loop = [[many[k][i] if choice >> k & 1 else single[k] for k in range(5)] for i in range(3)]
        same(solver.rhs(*arguments), [solver.rhs(*one) for one in loop])
        same(solver.kinetic_energy(*arguments), [solver.kinetic_energy(*one) for one in loop])
        same(solver.output("lag", *arguments), [solver.output("lag", *one) for one in loop])


@pytest.mark.parametrize("backend", ["cython", "interpreted"])
def test_defaults_apply_to_all_rows(backend: str) -> None:
    solver = solver_of("cart") if backend == "cython" else interpreted()
    q, u, s = np.linspace(0.0, 1.0, 4)[:, None], np.ones(1), np.ones(2)
    np.testing.assert_array_equal(solver.rhs(0.0, q, u, s=s)[1], solver.rhs(0.0, q, u, [0.5], s)[1])
    with raises(kg.SolveError, "a", "s="):
        solver.rhs(0.0, q, u)


@pytest.mark.parametrize("backend", ["cython", "interpreted"])
def test_the_row_that_fails_is_named(backend: str) -> None:
    solver = solver_of("cart") if backend == "cython" else interpreted()
    q, u, s = np.zeros((4, 1)), np.zeros((4, 1)), np.zeros((4, 2))
    with raises(kg.SolveError, "q has 3", "u has 4"):
        solver.rhs(0.0, q[:3], u, s=s)
    q[2] = np.nan
    with raises(kg.SolveError, "row 2", "x", "nan"):
        solver.rhs(0.0, q, u, s=s)


def test_a_row_without_a_finite_value_is_named_with_its_state() -> None:
    solver = solver_for("slider_crank")
    start = initial("slider_crank")
    q, u = np.tile(start["q"], (300, 1)), np.zeros((300, 3))
    u[200] = 1e200
    with raises(kg.SolveError, "row 200", "theta", "u1=1e+200"):
        solver.energy(0.0, q, u)


def test_no_rows_give_no_rows() -> None:
    solver = solver_for("slider_crank")
    assert solver.energy(np.empty(0), np.empty((0, 3)), np.empty((0, 3))).shape == (0,)
    assert solver.Q([], np.empty((0, 3)), np.zeros(3)).shape == (0, 3, 3)


def test_rows_are_written_into_out() -> None:
    solver, start = solver_for("slider_crank"), initial("slider_crank")
    q, u = np.tile(start["q"], (5, 1)), np.zeros((5, 3))
    energy, Q = np.empty(5), np.empty((5, 3, 3))
    assert solver.energy(0.0, q, u, out=energy) is energy
    assert solver.Q(0.0, q, u, out=Q) is Q
    np.testing.assert_array_equal(energy, solver.energy(0.0, q, u))
    out = (np.empty((5, 3)), np.empty((5, 3)))
    assert solver.rhs(0.0, q, u, out=out) is out
    same(out, [solver.rhs(0.0, start["q"], np.zeros(3))] * 5)
    with raises(kg.SolveError, "out", "(4,)", "(5,)"):
        solver.energy(0.0, q, u, out=np.empty(4))
    with raises(kg.SolveError, "out", "q"):
        solver.momentum(0.0, q, u, out=q)


def test_residuals_and_empty_quantities_have_rows_without_constraints() -> None:
    solver = solver_for("n_link_pendulum", n=3)
    n = len(solver.description.coordinates)
    assert [x.shape for x in solver.residuals(0.0, np.zeros((4, n)), np.zeros(n))] == [(4, 0), (4, 0)]


def test_momentum_forms_take_rows() -> None:
    for form in ("momentum", "momentum_unreduced"):
        solver, start = solver_for("slider_crank", form=form), initial("slider_crank")
        momenta = solver.reduced_momentum if form == "momentum" else solver.momentum
        q, u = np.tile(start["q"], (3, 1)), np.array(start["u"])
        mom = momenta(0.0, q, u) * np.array([[1.0], [2.0], [3.0]])
        same(solver.speeds_from_momentum(0.0, q, mom), [solver.speeds_from_momentum(0.0, q[0], m) for m in mom])
        same(solver.momentum_rhs(0.0, q, mom), [solver.momentum_rhs(0.0, q[0], m) for m in mom])


def test_methods_of_one_state_refuse_rows() -> None:
    solver = solver_for("slider_crank")
    q, u = np.zeros((2, 3)), np.zeros((2, 3))
    for call in (solver.make_consistent, solver.partition, solver.redundant_constraints, solver.linearize):
        with raises(kg.SolveError, "q", "(2, 3)", "(3,)"):
            call(0.0, q, u)
    with raises(kg.SolveError, "q", "(2, 3)", "(3,)"):
        solver.integrate((0.0, 1.0), q, u)


def test_threads_share_a_function() -> None:
    solver, start = solver_for("slider_crank"), initial("slider_crank")
    rng = np.random.default_rng(0)
    parts = [np.array(start["q"]) + 0.1 * rng.standard_normal((20000, 3)) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda q: solver.J(0.0, q, start["u"]), parts))
    for q, J in zip(parts, found, strict=True):
        np.testing.assert_array_equal(J, solver.J(0.0, q, start["u"]))


def test_rows_can_be_lists() -> None:
    solver, start = solver_for("slider_crank"), initial("slider_crank")
    assert solver.energy([0.0, 1.0], [list(start["q"])] * 2, list(start["u"])).shape == (2,)
