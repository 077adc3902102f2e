"""What a solution holds of contacts and of controls, and where the types of results are found."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
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
