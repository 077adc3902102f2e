"""Consistent states by the interpreted back end: those of compiled code, from the same guesses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from linkages import four_bar, hinged_body, lifted_ball
from messages import raises
from systems import initial, model_of, solver_for

import kanegen as kg

EXAMPLES = ("slider_crank", "rolling_disk", "rheonomic_particle")
LINKAGES = {
    "redundant": lambda: four_bar(2),
    "massless": lambda: lifted_ball(massless=True),
    "Euler parameters": hinged_body,
}


def corrected(solver: kg.Solver, *arguments: Any, **named: Any) -> np.ndarray | None:
    try:
        return np.concatenate(solver.make_consistent(*arguments, **named))
    except kg.SolveError:
        return None


def agree(
    compiled: kg.Solver, interpreted: kg.Solver, t: float, q: np.ndarray, u: np.ndarray, seed: int, r: Any = None
) -> None:
    """Random guesses around a state, with nothing, a coordinate or a speed fixed."""
    rng = np.random.default_rng(seed)
    names = (*compiled.description.coordinates, *compiled.description.speeds)
    for spread in (0.01, 0.1, 0.5):
        for fixed in ((), rng.choice(names, size=1)):
            state = [x + spread * rng.normal(size=len(x)) for x in (q, u)]
            one, two = (corrected(solver, t, *state, r, fixed=list(fixed)) for solver in (compiled, interpreted))
            assert (one is None) == (two is None), (spread, fixed)
            if one is not None:
                # Both end where residuals are rounding errors, which a nearly singular loop amplifies.
                np.testing.assert_allclose(two, one, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", EXAMPLES)
def test_consistent_states_are_those_of_compiled_code(name: str) -> None:
    start = initial(name)
    interpreted = kg.build(model_of(name), backend="interpreted")
    agree(solver_for(name), interpreted, start["t"], np.array(start["q"]), np.array(start["u"]), seed=1)


@pytest.mark.parametrize("name", LINKAGES)
def test_consistent_states_of_special_linkages(name: str) -> None:
    """Redundant rows, a metric without mass in one direction, and invariants."""
    model = LINKAGES[name]()
    form = "pseudoinverse" if name == "redundant" else "augmented" if name == "massless" else "auto"
    compiled, interpreted = (kg.build(model, form=form, backend=backend) for backend in ("cython", "interpreted"))
    d = compiled.description
    rng = np.random.default_rng(2)
    r = np.full(len(d.inputs), 3.0) if d.inputs else None
    guess = compiled.make_consistent(0.0, rng.normal(size=len(d.coordinates)), rng.normal(size=len(d.speeds)), r)
    agree(compiled, interpreted, 0.0, *guess, seed=3, r=r)


def test_a_start_is_completed_without_a_compiler() -> None:
    """Coordinates and speeds that the start leaves open follow from the constraints."""
    interpreted, compiled = kg.build(model_of("slider_crank"), backend="interpreted"), solver_for("slider_crank")
    guess = {"theta": 0.3, "beta": 1.4, "x": 1.6}
    q, u = interpreted.make_consistent(0.0, guess, {"u1": 2.0, "u2": 0.0, "u3": 0.0}, fixed=["theta", "u1"])
    assert (q[0], u[0]) == (0.3, 2.0)
    solutions = [solver.integrate((0.0, 0.05), q, {"u1": 2.0}) for solver in (interpreted, compiled)]
    np.testing.assert_allclose(solutions[0].u[0], u, rtol=1e-12)
    np.testing.assert_allclose(solutions[0].q[-1], solutions[1].q[-1], rtol=1e-7)


def test_what_cannot_be_satisfied_is_said_without_a_compiler() -> None:
    interpreted = kg.build(model_of("slider_crank"), backend="interpreted")
    start = initial("slider_crank")
    with raises(kg.SolveError, "cannot be satisfied", "free one of", "beta"):
        interpreted.make_consistent(0.0, [0.3, 0.4, 1.6], start["u"], fixed=["theta", "beta"])
