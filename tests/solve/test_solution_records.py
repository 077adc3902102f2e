"""What a solution holds of contacts and of controls, and where the types of results are found."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises

import kanegen as kg


def particle(**options: Any) -> kg.Model:
    """A particle of mass m on a line under the force F."""
    x, v, F = me.dynamicsymbols("x v F")
    m = sm.Symbol("m")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    options = {name: make(x, v, F) for name, make in options.items()}
    return kg.Model(
        name="particle",
        frame=N,
        coordinates=[x],
        speeds=[v],
        kinematics=[x.diff() - v],
        bodies=[me.Particle("P", P, m)],
        loads=[(P, F * N.x)],
        inputs=[kg.Input(F, default=0.0)],
        parameters={m: 2.0},
        **options,
    )


def test_runs_without_contacts_and_law_have_no_such_records() -> None:
    solver = kg.build(particle(events=lambda x, v, F: [kg.Event("half", x - 0.5)]))
    solution = solver.integrate((0.0, 1.0), [0.0], [1.0])
    assert [event.name for event in solution.events] == ["half"]
    assert solution.contacts is None
    assert solution.control is None


def test_fields_of_a_solution_are_made_once_and_cannot_be_set() -> None:
    solver = kg.build(particle())
    solution = solver.integrate((0.0, 1.0), [0.0], [1.0], [0.5])
    names = ("t", "q", "u", "s", "statistics", "last", "dense", "run", "all_inputs")
    assert all(getattr(solution, name) is getattr(solution, name) for name in names)
    assert all(part.flags.c_contiguous and part.flags.owndata for part in (solution.t, solution.q, solution.u))
    for name in ("q", "energy"):
        with raises(AttributeError, "immutable", name):
            setattr(solution, name, 0.0)
        with raises(AttributeError, "immutable", name):
            delattr(solution, name)


def test_runs_of_one_solver_share_nothing_that_differs() -> None:
    """Inputs, spans and options differ; under a constant force x = x0 + v t + F t^2 / 4."""
    solver = kg.build(particle())
    first, other = (solver.integrate((0.0, 1.0), [0.0], [1.0], r) for r in (None, [4.0]))
    late = solver.integrate((1.0, 3.0), [1.0], [1.0], rtol=1e-6, method="dop853", dense_output=False)
    again = solver.integrate((0.0, 1.0), [0.0], [1.0])
    assert [run.q[-1, 0] for run in (first, other, late)] == pytest.approx([1.0, 2.0, 3.0], rel=1e-12)
    assert [run.inputs[-1, 0] for run in (first, other, late)] == [0.0, 4.0, 0.0]
    assert (late.run.options["t_span"], late.run.options["rtol"], late.dense) == ([1.0, 3.0], 1e-6, None)
    np.testing.assert_array_equal(again.q, first.q)
    assert "control" in first.run.options
    assert first.run.options["method"] == "dopri5"


def test_the_record_of_a_closed_loop() -> None:
    """``x'' = -3 x' - 2 x`` from (1, -1): x = exp(-t), under the force ``m x'' = 2 exp(-t)``, never above 1.5."""
    law = {"control": lambda x, v, F: kg.Servo(x, theta=(-3, -2), limits=1.5)}
    solver = kg.build(particle(**law))
    free = solver.integrate((0.0, 3.0), [1.0], [-1.0], control=True, limits=3.0, rtol=1e-11, atol=1e-13).control
    bound = pickle.loads(pickle.dumps(solver.integrate((0.0, 3.0), [1.0], [-1.0], control=True)))
    assert isinstance(free, kg.results.ControlHistory)
    assert (free.names, free.saturation, free.warnings) == (("F",), (), ())
    assert free.constraints == ("x(t)", "d/dt (x(t))")
    assert free.errors is not None
    np.testing.assert_allclose(free.values[:, 0], 2.0 * free.errors[:, 0], rtol=1e-8)  # m x'' = 2 x
    np.testing.assert_allclose(free.errors[:, 1], -free.errors[:, 0], rtol=1e-8)
    assert bound.control.values.max() == 1.5
    assert bound.control.saturation[0].control == "F"
    assert "solution.control.saturation" in bound.control.warnings[0]
    assert solver.integrate((0.0, 1.0), [1.0], [-1.0], {"F": 0.0}).control is None


def test_a_model_has_one_law() -> None:
    for name in ("servo", "control_constraints"):
        with raises(TypeError, name):
            particle(**{name: lambda x, v, F: kg.Servo(x, theta=(-3, -2))})
    with raises(kg.ModelError, "control", "kg.Servo", "kg.ControlConstraints"):
        particle(control=lambda x, v, F: (kg.Servo(x, theta=(-3, -2)), kg.ControlConstraints([F - v])))


def test_records_of_results_are_in_a_module_of_their_own() -> None:
    """Result records are in ``kg.results`` alone; what users construct, call or catch is in ``kg.``."""
    records = {name for name in vars(kg.results) if name[0].isupper()}
    assert {"Jacobian", "EventRecord", "ContactHistory", "ControlHistory", "Wrench"} <= records
    assert not records & set(dir(kg))
    used = {"Model", "Servo", "ControlConstraints", "Solver", "Solution", "Outcome", "Equations"}
    errors = {"KanegenError", "ModelError", "DerivationError", "BuildError", "SolveError", "IntegrationError"}
    assert used | errors <= set(dir(kg))
