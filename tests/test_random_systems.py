"""Random trees of bodies with random loads and constraints: the derivation against the oracle, no compile."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from oracle import Oracle, Reference
from random_systems import RandomSystem, random_systems
from tolerances import CONDITION, EVALUATION, SOLVE

import kanegen as kg
from kanegen.graph import evaluate

GAINS = np.random.default_rng(7).uniform(-3.0, -1.0, 64)


def reference_of(system: RandomSystem) -> Reference:
    """The oracle's answer; states where the system has no unique or no accurate answer are passed over."""
    try:
        reference = Oracle(system.model)(system.t, system.q, system.u, system.p, system.r)
    except ZeroDivisionError:  # mpmath's word for a singular matrix
        assume(False)
        raise
    Q, J = reference.Q, reference.J
    assume(np.linalg.cond(Q) < CONDITION)
    assume(not len(J) or np.linalg.cond(J @ np.linalg.solve(Q, J.T)) < CONDITION)
    return reference


def evaluated(quantity: Any, system: RandomSystem, udot: np.ndarray) -> np.ndarray:
    values = {
        "t": [system.t],
        "q": system.q,
        "u": system.u,
        "udot": list(udot),
        "p": system.p,
        "r": system.r,
        "g": list(GAINS),
    }
    return np.array(evaluate(quantity.nodes, values), dtype=float).reshape(quantity.shape)


def assert_agree(actual: np.ndarray, expected: Any, tolerance: float, name: str) -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * scale, err_msg=name)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(random_systems())
def test_derivation_agrees_with_the_oracle(system: RandomSystem) -> None:
    reference = reference_of(system)
    equations = kg.derive(system.model)
    expected = {
        name: getattr(reference, name)
        for name in (
            "qdot",
            "Q",
            "L",
            "F",
            "P",
            "N",
            "momentum",
            "J",
            "b",
            "kinetic_energy",
            "potential_energy",
        )
    }
    expected |= {"positions": reference.position_residuals, "velocities": reference.velocity_residuals}
    for name, value in expected.items():
        assert_agree(evaluated(getattr(equations, name), system, reference.udot), value, EVALUATION, name)
    force = evaluated(equations.constraint_force, system, reference.udot)
    assert_agree(force, reference.constraint_force, SOLVE, "constraint_force")
    assert_agree(evaluated(equations.udot, system, reference.udot), reference.udot, SOLVE, "udot")


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(random_systems())
def test_constrained_forms_agree_with_the_oracle(system: RandomSystem) -> None:
    assume(reference_of(system).b.size)
    equations = kg.derive(system.model)
    reference = reference_of(system)
    dependent = equations.partition.dependent
    assume(np.linalg.cond(reference.J[:, dependent]) < CONDITION)
    for name, value in reference.partitioned(dependent).items():
        assert_agree(evaluated(getattr(equations, name), system, reference.udot), value, SOLVE, name)
    stabilised = Oracle(system.model)(
        system.t, system.q, system.u, system.p, system.r, gains=gain_matrices(equations.constraints)
    )
    assert_agree(
        evaluated(equations.b_stabilised, system, reference.udot), stabilised.b, EVALUATION, "b_stabilised"
    )


def gain_matrices(constraints: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n_h, n_v = len(constraints.holonomic), len(constraints.nonholonomic)
    G1, G2, G = np.split(GAINS[: 2 * n_h**2 + n_v**2], [n_h**2, 2 * n_h**2])
    return G1.reshape(n_h, n_h), G2.reshape(n_h, n_h), G.reshape(n_v, n_v)
