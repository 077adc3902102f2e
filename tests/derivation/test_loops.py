"""Constraints in the elimination of velocities: rows with few speeds, growth of chains of loops, singular rows."""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import blocks, four_bars, upright
from oracle import Oracle
from systems import example, model_of
from tolerances import EVALUATION, SOLVE

import kanegen as kg
from kanegen.derivation.inertia.elimination import Dependent, FillInError, Pivot
from kanegen.derivation.inertia.loops import local_rows
from kanegen.graph import count_operations, evaluate

lift = example("scissor_lift")
TIME = me.dynamicsymbols._t


def values(q: Any, u: Any, parameters: Any = ()) -> dict[str, Any]:
    return {"t": [0.0], "q": list(q), "u": list(u), "p": list(parameters)}


def operations(model: kg.Model) -> int:
    solution = kg.derive(model).articulated_accelerations(stabilized=False)
    return count_operations([*solution.udot, *solution.conditions])


@pytest.mark.parametrize("make", [lift.model, four_bars], ids=["scissor_lift", "chain of four-bars"])
def test_operations_grow_with_the_number_of_loops(make: Callable[[int], kg.Model]) -> None:
    assert log2(operations(make(10)) / operations(make(5))) < 1.2


@pytest.mark.parametrize("n", [1, 2, 5])
def test_scissor_lift_has_the_accelerations_of_its_closed_form(n: int) -> None:
    equations = kg.derive(lift.model(n))
    solution = equations.articulated_accelerations(stabilized=False)
    for alpha, rate in ((0.5, 0.2), (1.2, -0.7), (1.5, 1.0)):
        start = lift.initial(n, alpha, rate)
        state = values(start["q"], start["u"], lift.DEFAULTS.values())
        second, l = lift.acceleration(n, alpha, rate), lift.DEFAULTS["l"]
        slide = -l * (np.sin(alpha) * second + np.cos(alpha) * rate**2)
        expected = np.array([slide, *(second, -second) * n])
        assert np.abs(np.array(evaluate(solution.udot, state)) - expected).max() < SOLVE * (1 + abs(second))
        assert all(evaluate(solution.conditions, state))


def test_loops_near_a_flat_position_agree_with_the_oracle() -> None:
    """The rows of the loop are nearly parallel; at 1e-4 rad the code chooses dependent speeds at run time."""
    model = four_bars(1, tilted=True)
    oracle, solution = Oracle(model), kg.derive(model).articulated_accelerations(stabilized=False)
    q, u = upright(1)
    for angle in (0.5, 1e-2, 3e-3):
        q[:2] = angle
        expected = oracle(0.0, list(q), list(u), [], []).udot
        error = np.abs(np.array(evaluate(solution.udot, values(q, u))) - expected).max()
        assert error < EVALUATION / angle * (1 + np.abs(expected).max())
        assert all(evaluate(solution.conditions, values(q, u)))
    q[:2] = 1e-4
    assert not all(evaluate(solution.conditions, values(q, u)))


def closed_chain(n: int) -> kg.Model:
    """An n-link pendulum whose last mass is on a fixed curve: one row with the speeds of all links."""
    chain = model_of("n_link_pendulum", n=n)
    lengths = sm.symbols(f"l_1:{n + 1}")
    x, *theta = chain.coordinates
    height = sum(l * sm.sin(angle) for l, angle in zip(lengths, theta, strict=True))
    return kg.Model(
        name="closed_chain",
        frame=chain.frame,
        coordinates=chain.coordinates,
        speeds=chain.speeds,
        kinematics=chain.kinematics,
        bodies=chain.bodies,
        gravity=chain.gravity,
        parameters=chain.parameters,
        holonomic_constraints=[height - x**2],
        nonholonomic_constraints=[chain.speeds[1] * chain.speeds[2] + chain.speeds[3] - 1],
    )


def test_rows_with_all_speeds_take_multipliers_of_their_own() -> None:
    """A long row keeps its multiplier; that of a short row, nonlinear in the speeds, drops out with a speed."""
    model = closed_chain(12)
    equations = kg.derive(model)
    solution = equations.articulated_accelerations(stabilized=False)
    steps, multipliers = equations.articulated().factor.steps, equations.articulated().loops.multipliers
    assert [step.multiplier for step in steps if isinstance(step, Dependent)] == [multipliers[1]]
    assert [step.unknown for step in steps if isinstance(step, Pivot) and step.unknown in multipliers] == [
        multipliers[0]
    ]
    rng = np.random.default_rng(5)
    q, u = rng.uniform(0.2, 1.0, (2, len(model.speeds)))
    parameters = [float(value) for value in model.parameters.values()]
    state = values(q, u, parameters)
    Q, P, J, b = (
        np.array(evaluate(quantity.nodes, state)).reshape(quantity.shape)
        for quantity in (equations.Q, equations.P, equations.J, equations.b)
    )
    kkt = np.block([[Q, -J.T], [J, np.zeros((2, 2))]])
    expected = np.linalg.solve(kkt, np.concatenate([P, b]))[: len(q)]
    assert np.allclose(evaluate(solution.udot, state), expected, rtol=0, atol=SOLVE * np.abs(expected).max())
    assert log2(operations(closed_chain(24)) / operations(model)) < 1.15


def test_sums_of_rows_are_as_good_and_shorter() -> None:
    equations = kg.derive(lift.model(6))
    system, rows = equations.system, equations.constraints.rows
    found = local_rows(system, rows)
    mix = np.array([[row.parts.get(k, 0) for k in range(len(rows))] for row in found])
    assert abs(round(float(np.linalg.det(mix)))) == 1
    rng = np.random.default_rng(6)
    state = values(*rng.uniform(0.2, 1.0, (2, len(system.u))), lift.DEFAULTS.values())
    J, b = (np.array(evaluate(q.nodes, state)).reshape(q.shape) for q in (equations.J, equations.b))
    local = np.array([evaluate([row.J.get(speed, system.graph.zero) for speed in system.u], state) for row in found])
    assert np.allclose(local, mix @ J, rtol=0, atol=EVALUATION)
    assert np.allclose(evaluate([row.bias for row in found], state), mix @ b, rtol=0, atol=EVALUATION)
    assert np.count_nonzero(np.array(J)) > 80
    assert max(len(row.J) for row in found) == 4


def test_baumgarte_terms_enter_the_sums() -> None:
    equations = kg.derive(lift.model(2))
    udot = equations.articulated_accelerations(stabilized=True).udot
    rng = np.random.default_rng(7)
    state = values(*rng.uniform(0.2, 1.0, (2, 5)), lift.DEFAULTS.values())
    state["g"] = list(rng.uniform(0.5, 2.0, len(equations.gain_names)))
    J, b = (np.array(evaluate(q.nodes, state)).reshape(q.shape) for q in (equations.J, equations.b_stabilized))
    assert np.allclose(J @ np.array(evaluate(udot, state)), b, rtol=0, atol=SOLVE * np.abs(b).max())


def test_massless_speed_that_a_constraint_determines() -> None:
    model = blocks(lambda x, y: [x - 2 * y], masses=(2, 0), pushed=1)
    solution = kg.derive(model).articulated_accelerations(stabilized=False)
    # 2 kg at x, and the force 3 N at y = x/2: x'' = 3/2/2.
    assert np.allclose(evaluate(solution.udot, values([0.2, 0.1], [0.0, 0.0])), [0.75, 0.375], rtol=EVALUATION)


def test_an_elimination_with_too_much_fill_in_is_given_up() -> None:
    equations = kg.derive(lift.model(3))
    with pytest.raises(FillInError):
        equations.articulated(limit=50)
    assert equations.articulated().factor.steps
