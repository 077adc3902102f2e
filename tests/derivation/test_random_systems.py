"""Random trees of bodies with random loads and constraints: the derivation and every form against the oracle.

Nothing is compiled; programs are interpreted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from oracle import Oracle, Reference
from random_systems import RandomSystem, random_special_systems, random_systems
from special_systems import free_body, shaken_pendulum, turning_rod
from tolerances import CONDITION, EVALUATION, SOLVE

import kanegen as kg
from kanegen.errors import BuildError, DerivationError
from kanegen.forms import FORMS
from kanegen.graph import Node, evaluate
from kanegen.program.assemble import assemble
from kanegen.program.interpret import interpret
from kanegen.program.options import BuildOptions

GAINS = np.random.default_rng(7).uniform(-3.0, -1.0, 64)
EVALUATED = ("qdot", "Q", "L", "F", "P", "N", "momentum", "J", "b", "kinetic_energy", "potential_energy")


# Some combinations of random constraints admit no motion, so that velocities cannot be compared.
@pytest.mark.filterwarnings("ignore::kanegen.ModelWarning")
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(random_systems())
def test_derivation_agrees_with_the_oracle(system: RandomSystem) -> None:
    check_derivation(system)


@pytest.mark.campaign
@pytest.mark.filterwarnings("ignore::kanegen.ModelWarning")
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(random_systems())
def test_many_derivations_agree_with_the_oracle(system: RandomSystem) -> None:
    check_derivation(system)


def check_derivation(system: RandomSystem) -> None:
    """The equations of a model with constraints of any kind, at a state where it has a unique motion."""
    try:
        reference = reference_of(system)
    except ZeroDivisionError:  # mpmath's word for a singular matrix: the system has no unique motion
        assume(False)
        raise
    equations = kg.derive(system.model)
    assume(well_conditioned(reference))
    check(system, reference, equations)
    dependent = list(equations.partition.dependent)
    # The partition is chosen without knowledge of the state; compiled code changes it where it is poor.
    assume(not dependent or np.linalg.cond(reference.J[:, dependent]) < CONDITION)
    check_partitioned(system, reference, equations)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore::kanegen.ModelWarning")
@given(random_special_systems())
def test_every_form_at_special_states(system: RandomSystem) -> None:
    check_forms(system)


@pytest.mark.campaign
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.filterwarnings("ignore::kanegen.ModelWarning")
@given(random_special_systems())
def test_every_form_at_many_special_states(system: RandomSystem) -> None:
    check_forms(system)


def check_forms(system: RandomSystem) -> None:
    """The equations, and q' and u' in every form, at a state that is regular by the oracle's bordered matrix."""
    try:
        reference = reference_of(system)
    except ZeroDivisionError:
        assume(False)
        raise
    assume(regular(reference))
    equations = kg.derive(system.model)
    check(system, reference, equations)
    values = {"t": [system.t], "q": system.q, "u": system.u, "p": system.p, "r": system.r, "g": [0.0] * 64}
    expected = np.concatenate([reference.qdot, reference.udot])
    for form, spec in FORMS.items():
        try:
            program, _ = assemble(equations, BuildOptions.of(form, ("rhs",)))
        except (BuildError, DerivationError):
            continue  # the form does not admit the model
        status, found = interpret(program, "rhs", values)
        if spec.definite and not well_conditioned(reference):
            continue  # Q is singular here; the form needs it
        assert status >= 0, form
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(found[: len(expected)], expected, rtol=0.0, atol=SOLVE * scale, err_msg=form)


def regular(reference: Reference) -> bool:
    """Whether the bordered matrix is regular, in units in which its rows have the size 1."""
    J, n_c = reference.J, len(reference.J)
    K = np.block([[reference.M, -J.T], [J, np.zeros((n_c, n_c))]])
    for _ in range(3):
        largest = np.sqrt(np.abs(K).max(axis=1))
        if not np.all(largest > 0.0):
            return False
        K = K / largest[:, None] / largest
    return bool(np.linalg.cond(K) < CONDITION)


@pytest.mark.parametrize("model", [shaken_pendulum, turning_rod, free_body], ids=lambda model: model.__name__)
def test_special_systems_agree_with_the_oracle(model: Callable[[], kg.Model]) -> None:
    rng = np.random.default_rng(3)
    for _ in range(3):
        description = model()
        # Euler parameters must have unit norm for a rotation to be one; it harms no other coordinate.
        q = rng.uniform(0.2, 1.0, len(description.coordinates))
        q = q / np.linalg.norm(q)
        u, r = (rng.uniform(-1.0, 1.0, len(names)) for names in (description.speeds, description.inputs))
        system = RandomSystem(description, 0.6, list(q), list(u), [], list(r))
        reference, equations = reference_of(system), kg.derive(description)
        check(system, reference, equations)
        check_partitioned(system, reference, equations)


def reference_of(system: RandomSystem) -> Reference:
    return Oracle(system.model)(system.t, system.q, system.u, system.p, system.r)


def well_conditioned(reference: Reference) -> bool:
    Q, J = reference.Q, reference.J
    if np.linalg.cond(Q) > CONDITION:
        return False
    return not len(J) or bool(np.linalg.cond(J @ np.linalg.solve(Q, J.T)) < CONDITION)


def check(system: RandomSystem, reference: Reference, equations: Any) -> None:
    """What does not depend on the partition."""
    expected = {name: getattr(reference, name) for name in EVALUATED}
    expected |= {"positions": reference.position_residuals, "velocities": reference.velocity_residuals}
    expected |= {"b_stabilized": stabilized(reference, equations.constraints)}
    for name, value in expected.items():
        assert_agree(system, reference, equations, name, value, EVALUATION)
    assert_agree(system, reference, equations, "constraint_force", reference.constraint_force, SOLVE)


def check_partitioned(system: RandomSystem, reference: Reference, equations: Any) -> None:
    assert_agree(system, reference, equations, "udot", reference.udot, SOLVE)
    for name, value in reference.partitioned(equations.partition.dependent).items():
        assert_agree(system, reference, equations, name, value, SOLVE)
    solution = equations.articulated_accelerations(stabilized=False)
    assert_nodes_agree(system, reference, solution.udot, reference.udot, SOLVE, "articulated")
    assert_nodes_agree(system, reference, solution.conditions, np.ones(len(solution.conditions)), 0.0, "conditions")


def assert_agree(
    system: RandomSystem, reference: Reference, equations: Any, name: str, expected: Any, tolerance: float
) -> None:
    quantity = getattr(equations, name)
    assert_nodes_agree(system, reference, quantity.nodes, expected, tolerance, name)


def assert_nodes_agree(
    system: RandomSystem, reference: Reference, nodes: Sequence[Node], expected: Any, tolerance: float, name: str
) -> None:
    values = {
        "t": [system.t],
        "q": system.q,
        "u": system.u,
        "udot": list(reference.udot),
        "p": system.p,
        "r": system.r,
        "g": list(GAINS),
    }
    actual = np.array(evaluate(nodes, values), dtype=float).reshape(np.shape(expected))
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * scale, err_msg=name)


def stabilized(reference: Reference, constraints: Any) -> np.ndarray:
    """b with ``G1 phi' + G2 phi`` on the holonomic and ``G psi`` on the nonholonomic rows."""
    n_h, n_v = len(constraints.holonomic), len(constraints.nonholonomic)
    G1, G2, G = np.split(GAINS[: 2 * n_h**2 + n_v**2], [n_h**2, 2 * n_h**2])
    phi, rate = reference.position_residuals[:n_h], reference.velocity_residuals[:n_h]
    psi = reference.velocity_residuals[n_h:]
    b = reference.b.copy()
    b[:n_h] += G1.reshape(n_h, n_h) @ rate + G2.reshape(n_h, n_h) @ phi
    b[n_h : n_h + n_v] += G.reshape(n_v, n_v) @ psi
    return b
