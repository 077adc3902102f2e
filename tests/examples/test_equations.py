"""The compiled examples against the independent multiplier solve, on and off the constraint manifold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from systems import NAMES, SYSTEMS, State, model_of, oracle_for, solver_for, states
from tolerances import EVALUATION, SOLVE


def constrained(name: str, options: dict[str, Any]) -> bool:
    """From the model, not from the oracle, which takes seconds in every process that collects these tests."""
    model = model_of(name, **options)
    return any((model.holonomic_constraints, model.nonholonomic_constraints, model.acceleration_constraints))


CONSTRAINED = [(name, options) for name, options in SYSTEMS if constrained(name, options)]
every_system = pytest.mark.parametrize(("name", "options"), SYSTEMS, ids=NAMES)
every_constrained = pytest.mark.parametrize(
    ("name", "options"), CONSTRAINED, ids=[NAMES[SYSTEMS.index(item)] for item in CONSTRAINED]
)
both_forms = pytest.mark.parametrize("form", ["nonminimal", "reduced"])


def assert_close(actual: Any, expected: Any, tolerance: float, name: str) -> None:
    assert np.shape(actual) == np.shape(expected), name
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * scale, err_msg=name)


@every_system
@both_forms
def test_rates(name: str, options: dict[str, Any], form: str) -> None:
    solver = solver_for(name, form, **options)
    for state in states(name, **options):
        qdot, udot = solver.rhs(state.t, state.q, state.u)
        assert_close(qdot, state.reference.qdot, EVALUATION, "qdot")
        assert_close(udot, state.reference.udot, SOLVE, "udot")


@every_system
def test_matrices_and_energies(name: str, options: dict[str, Any]) -> None:
    solver = solver_for(name, **options)
    for t, q, u, reference in map(_unpacked, states(name, **options)):
        for quantity in ("Q", "P", "J", "b", "momentum"):
            assert_close(getattr(solver, quantity)(t, q, u), getattr(reference, quantity), EVALUATION, quantity)
        kinetic = solver.kinetic_energy(t, q, u)
        assert_close(kinetic, reference.kinetic_energy, EVALUATION, "kinetic energy")
        position, velocity = solver.residuals(t, q, u)
        assert_close(position, reference.position_residuals, EVALUATION, "position residuals")
        assert_close(velocity, reference.velocity_residuals, EVALUATION, "velocity residuals")
        if reference.potential_energy is not None:
            assert_close(solver.potential_energy(t, q, u), reference.potential_energy, EVALUATION, "potential energy")
            total = reference.kinetic_energy + reference.potential_energy
            assert_close(solver.energy(t, q, u), total, EVALUATION, "energy")


@every_constrained
def test_constraint_forces(name: str, options: dict[str, Any]) -> None:
    solver = solver_for(name, **options)
    for t, q, u, reference in map(_unpacked, states(name, **options)):
        assert_close(solver.constraint_force(t, q, u), reference.constraint_force, SOLVE, "constraint force")
        assert_close(solver.multipliers(t, q, u), reference.multipliers, SOLVE, "multipliers")


@pytest.mark.parametrize("y", [1e-3, 1e-9, 0.0])
def test_forces_where_the_usual_partition_fails(y: float) -> None:
    """Where the wire is vertical u2 cannot be the dependent speed; accelerations and forces exist."""
    solver, oracle = solver_for("elliptic_wire"), oracle_for("elliptic_wire")
    q, u = np.array([0.4 - np.sqrt(3.0 - 2.0 * y**2), y]), np.array([0.3, -1.4])
    reference = oracle(0.7, q, u)
    assert_close(solver.rhs(0.7, q, u)[1], reference.udot, SOLVE, "udot")
    assert_close(solver.constraint_force(0.7, q, u), reference.constraint_force, SOLVE, "constraint force")
    assert_close(solver.multipliers(0.7, q, u), reference.multipliers, SOLVE, "multipliers")
    for name, value in reference.outputs.items():
        assert_close(solver.output(name, 0.7, q, u), value, SOLVE, name)


@every_constrained
def test_nonminimal_equations(name: str, options: dict[str, Any]) -> None:
    """T, V, A, B for the partition of the model, and T u' = V."""
    solver = solver_for(name, **options)
    for t, q, u, reference in map(_unpacked, states(name, **options)):
        expected = reference.partitioned(solver.description.dependent)
        for quantity in ("A", "B", "T", "V"):
            assert_close(getattr(solver, quantity)(t, q, u), expected[quantity], SOLVE, quantity)
        left, right = solver.T(t, q, u) @ solver.rhs(t, q, u)[1], solver.V(t, q, u)
        assert_close(left, right, SOLVE, "T u' = V")


@pytest.mark.parametrize(("name", "options"), [s for s in SYSTEMS if model_of(s[0], **s[1]).outputs])
def test_outputs(name: str, options: dict[str, Any]) -> None:
    solver = solver_for(name, **options)
    for state in states(name, **options):
        outputs = solver.outputs(state.t, state.q, state.u)
        assert set(outputs) == set(state.reference.outputs)
        for output, value in state.reference.outputs.items():
            assert_close(outputs[output], value, SOLVE, output)


def _unpacked(state: State) -> tuple[float, np.ndarray, np.ndarray, Any]:
    return state.t, state.q, state.u, state.reference
