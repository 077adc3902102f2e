"""Quantities of a solution: those of the solver at each stored time, with what acted at that time."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from control_models import solver_of as control_solver
from hybrid_models import GRAVITY, MASS, MU_K, MU_S, RATE, SLIPS_AT, block, painleve, sliding_rod
from messages import raises
from servo_systems import rod_solver, rod_state
from state_models import solver_of
from systems import initial, solver_for

import kanegen as kg
from kanegen.backends.points import Point
from kanegen.solve.solution.quantities import along


def rates_of(solution: kg.Solution) -> np.ndarray:
    """y' (n_t, n_y) of the dense output from one-sided differences of order 2, away from the ends of steps."""
    n = solution.t.size
    rows = [np.concatenate(solution.solver.rhs(solution.t[k], solution.q[k], solution.u[k])) for k in range(n)]
    return np.array(rows)


def test_quantities_are_those_of_the_solver_at_each_time() -> None:
    solver, start = solver_for("slider_crank"), initial("slider_crank")
    solution = solver.integrate((0.0, 1.0), start["q"], start["u"], start.get("r"))
    for name in ("energy", "multipliers", "Q", "J", "momentum"):
        loop = [getattr(solver, name)(*row) for row in zip(solution.t, solution.q, solution.u, strict=True)]
        np.testing.assert_array_equal(getattr(solution, name), loop)
    assert solution.energy is solution.energy
    np.testing.assert_array_equal(np.hstack(solution.rhs), rates_of(solution))
    assert set(solution.outputs) == set(solver.description.outputs)
    for name in solution.outputs:
        loop = [solver.output(name, *row) for row in zip(solution.t, solution.q, solution.u, strict=True)]
        np.testing.assert_array_equal(solution.outputs[name], loop)
        np.testing.assert_array_equal(solution[name], loop)
    assert [x.shape for x in solution.residuals] == [(solution.t.size, n) for n in (2, 2)]


def test_coordinates_speeds_states_and_inputs_are_found_by_name() -> None:
    solver = solver_of("cart")
    solution = solver.integrate((0.0, 2.0), [0.3], [0.0], {"f": ([0.0, 2.0], [0.0, 1.0])}, s0={"a": 0.1, "z": 0.0})
    np.testing.assert_array_equal(solution["x"], solution.q[:, 0])
    np.testing.assert_array_equal(solution["v"], solution.u[:, 0])
    np.testing.assert_array_equal(solution["z"], solution.s[:, 1])
    np.testing.assert_allclose(solution["f"], solution.t / 2, rtol=1e-14)
    np.testing.assert_allclose(solution.state_rates[:, 0], solution["lag"], rtol=1e-13)
    with raises(kg.SolveError, "w", "x", "lag"):
        solution["w"]
    with raises(AttributeError, "enrgy", "energy"):
        _ = solution.enrgy


@pytest.mark.parametrize("kind", ["constant", "callable", "mapping"])
def test_inputs_of_every_kind(kind: str) -> None:
    given: Any = {"constant": [0.25], "callable": lambda t: [np.sin(t)], "mapping": {"f": np.cos}}[kind]
    expected = {"constant": lambda t: 0.25 + 0 * t, "callable": np.sin, "mapping": np.cos}[kind]
    solution = solver_of("cart").integrate((0.0, 2.0), [0.3], [0.0], given, s0=[0.0, 0.0])
    np.testing.assert_allclose(solution["f"], expected(solution.t), rtol=1e-14)
    copy = pickle.loads(pickle.dumps(solution))
    np.testing.assert_array_equal(copy["f"], solution["f"])
    np.testing.assert_array_equal(copy.state_rates, solution.state_rates)


def test_an_input_that_fails_does_not_prevent_pickling() -> None:
    calls = []

    def failing(t: float) -> list[float]:
        calls.append(t)
        if len(calls) > 50:
            raise ValueError("sensor lost")
        return [0.0]

    with pytest.raises(kg.IntegrationError) as caught:
        solver_of("cart").integrate((0.0, 20.0), [0.3], [0.0], failing, s0=[0.0, 0.0])
    copy = pickle.loads(pickle.dumps(caught.value)).solution
    np.testing.assert_array_equal(copy["x"], caught.value.solution["x"])
    with raises(kg.SolveError, "sensor lost"):
        _ = copy.inputs


def test_contact_forces_act_on_the_quantities() -> None:
    """A block on a rough floor under F = 4 N/s t: at rest until it slips, then in the motion of ``pushed``."""
    ramp = ([0.0, 10.0], [0.0, 10.0 * RATE])
    solution = block().integrate((0.0, 4.0), [0.0, 0.0], [0.0, 0.0], ramp, events=())
    after = np.maximum(solution.t - SLIPS_AT, 0.0)
    expected = np.where(solution.t > SLIPS_AT, (MU_S - MU_K) * GRAVITY + RATE / MASS * after, 0.0)
    inside = np.abs(solution.t - SLIPS_AT) > 1e-6
    assert inside.sum() > 4
    np.testing.assert_allclose(solution.rhs[1][inside, 0], expected[inside], atol=1e-7)
    np.testing.assert_allclose(solution.rhs[1][:, 1], 0.0, atol=1e-12)  # the normal force balances the weight
    np.testing.assert_allclose(solution.inputs[:, 0], RATE * solution.t, rtol=1e-13)


def test_a_run_that_stopped_has_quantities() -> None:
    with pytest.raises(kg.IntegrationError) as caught:
        painleve().integrate((0.0, 5.0), *sliding_rod(30.0))
    solution = caught.value.solution
    assert solution.contacts is not None
    qdot, udot = solution.rhs
    assert np.isfinite(qdot).all()
    known = np.isfinite(solution.contacts.forces).all(axis=1)
    np.testing.assert_array_equal(np.isfinite(udot).all(axis=1), known)


def test_where_forces_are_unknown_only_what_depends_on_them_is_nan() -> None:
    q, r = np.arange(6.0).reshape(3, 2), np.array([[1.0], [np.nan], [2.0]])
    both = along(lambda t, q, u, r: (q, q[:, 0] + r[:, 0]), Point(np.arange(3.0), q, q, r))
    np.testing.assert_array_equal(both[0], q)
    np.testing.assert_array_equal(both[1], [1.0, np.nan, 6.0])


def test_controls_of_a_closed_loop_are_inputs() -> None:
    """The acceleration of a servo is that of its differential equation, with the held controls too."""
    solver, state = rod_solver(), rod_state(1)
    for sample_time in (None, 0.05):
        solution = solver.integrate(
            (0.0, 0.5), state["q"], state["u"], control=True, sample_time=sample_time, start_tolerance=None
        )
        control = solution.control
        assert control is not None
        slots = [solver.description.inputs.index(name) for name in control.names]
        np.testing.assert_array_equal(solution.inputs[:, slots], control.values)
        for k in (0, 3, -1):
            np.testing.assert_array_equal(
                solution.rhs[1][k], solver.rhs(solution.t[k], solution.q[k], solution.u[k], solution.inputs[k])[1]
            )


def test_controls_of_control_constraints_are_inputs() -> None:
    tau0 = [np.hypot(0.6, 1.2), 0.0]
    solution = control_solver("winch").integrate((0.0, 1.0), [0.6, -1.2], [0.0, 0.0], control=True, tau0=tau0)
    assert solution.control is not None
    for name, column in zip(solution.control.names, solution.control.values.T, strict=True):
        np.testing.assert_array_equal(solution[name], column)


def test_a_jump_is_told_apart_by_its_phase() -> None:
    solver, start = solver_for("bouncing_ball"), initial("bouncing_ball")
    solution = solver.integrate((0.0, 2.0), start["q"], start["u"])
    jumps = [event for event in solution.events if event.jumps]
    assert solution.phase[0] == 0
    assert solution.phase[-1] == len({event.t for event in jumps})
    assert len({*zip(solution.t.tolist(), solution.phase.tolist(), strict=True)}) == solution.t.size


def test_solutions_of_a_solver_share_its_pickle() -> None:
    solver, start = solver_for("slider_crank"), initial("slider_crank")
    runs = [solver.integrate((0.0, 0.1), start["q"], start["u"]) for _ in range(5)]
    one, five = len(pickle.dumps(runs[:1])), len(pickle.dumps(runs))
    assert five < 2 * one
    copies = pickle.loads(pickle.dumps(runs))
    assert copies[0].solver is copies[4].solver
    np.testing.assert_array_equal(copies[3].energy, runs[3].energy)


def test_quantities_that_were_not_built_say_so() -> None:
    solver, start = solver_for("slider_crank"), initial("slider_crank")
    solution = solver.integrate((0.0, 0.1), start["q"], start["u"])
    with raises(kg.SolveError, "Dm", "functions="):
        _ = solution.Dm


def test_the_record_of_a_run_says_what_was_integrated() -> None:
    solver, start = solver_for("slider_crank"), initial("slider_crank")
    record = solver.integrate((0.0, 0.1), start["q"], start["u"], method="rk4", step=0.01).run
    assert record is not None
    assert (record.model, record.digest) == (solver.description.name, solver.extension.digest)
    assert record.parameters == solver.parameters
    assert (record.options["method"], record.options["step"], record.options["t_span"]) == ("rk4", 0.01, [0.0, 0.1])
