"""The examples of servo-constraints: closed loops against the laws their errors must follow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from systems import example, model_of, solver_for
from tolerances import EVALUATION

import kanegen as kg
from kanegen.derivation.control.servo import servo_equations
from kanegen.derivation.equations import Equations

SERVO_LAWS = 1e-8
"""Relative: the issue asks for it; tolerances of 1e-11 leave some 1e-11."""


def errors(name: str, **case: Any) -> dict[str, float]:
    """The checks of an example that exceed their bounds."""
    module = example(name)
    return {text: value for text, value, bound in module.checks(*module.simulate(**case)) if not abs(value) <= bound}


@pytest.mark.parametrize("case", example("energy_servo").CASES)
def test_energy_servo(case: str) -> None:
    assert errors("energy_servo", **example("energy_servo").CASES[case]) == {}


@pytest.mark.parametrize("options", [{}, {"resolution": "ideal"}, {"damping": 1e-6}], ids=str)
def test_the_energy_follows_its_law_whatever_y_is(options: dict[str, Any]) -> None:
    """E(t) = E_f + (E0 - E_f) exp(Theta t) on [0, 5] s."""
    module, solver = example("energy_servo"), solver_for("energy_servo", **options)
    y = np.random.default_rng(41).uniform(-1.0, 1.0, 2)
    span, start = (0.0, 5.0), (module.INITIAL["q"], module.INITIAL["u"])
    solution = solver.integrate(span, *start, control=True, y=y, method="dop853", rtol=1e-11, atol=1e-12)
    E = module.energies(solver, solution)
    law = 1.0 + (E[0] - 1.0) * np.exp(-solution.t)
    assert np.abs(E / law - 1.0).max() < SERVO_LAWS


def test_a_free_vector_of_the_state() -> None:
    """y that brakes the disc: compiled in, the same energy."""
    import sympy.physics.mechanics as me

    module = example("energy_servo")
    u1 = me.dynamicsymbols("u1")
    solver = kg.build(module.model(y=(-0.5 * u1, 0)), functions=("control", "servo_residuals", "energies"))
    start = (module.INITIAL["q"], module.INITIAL["u"])
    solution = solver.integrate((0.0, 5.0), *start, control=True, rtol=1e-11, atol=1e-12)
    E = module.energies(solver, solution)
    assert np.abs(E / (1.0 + (E[0] - 1.0) * np.exp(-solution.t)) - 1.0).max() < SERVO_LAWS


def test_ideal_and_moore_penrose_controls_move_differently() -> None:
    """The thesis's figures 42 and 43: the same energy, other coordinates; the ideal torques vanish in the end."""
    module = example("energy_servo")
    start = (module.INITIAL["q"], module.INITIAL["u"])
    runs = [
        solver_for("energy_servo", **options).integrate((0.0, 12.0), *start, control=True, rtol=1e-10, atol=1e-12)
        for options in ({}, {"resolution": "ideal"})
    ]
    assert np.abs(runs[0].q[-1] - runs[1].q[-1]).max() > 0.05
    assert np.abs(runs[1].control.values[0]).max() > 1.0
    assert np.abs(runs[1].control.values[-1]).max() < 1e-3


def test_an_energy_that_the_path_does_not_admit() -> None:
    """On the path the energy is at least 1.314 J: with E_f = 1 J the run ends where no controls are left."""
    module, solver = example("energy_servo"), solver_for("energy_servo", path=True)
    with pytest.raises(kg.IntegrationError):
        solver.integrate((0.0, 5.0), module.INITIAL["q"], module.INITIAL["u"], control=True)


def test_particle_tracking() -> None:
    assert errors("particle_tracking") == {}


@pytest.mark.parametrize("resolution", ["moore_penrose", "ideal"])
def test_the_tracking_force_is_that_of_the_thesis(resolution: str) -> None:
    """Equation (520), corrected, at random states: the force acts along theta only, so that it is ideal."""
    module, solver = example("particle_tracking"), solver_for("particle_tracking", resolution=resolution)
    rng = np.random.default_rng(7)
    for _ in range(5):
        q = np.array(module.INITIAL["q"]) + rng.uniform(-0.3, 0.3, 3)
        u = rng.uniform(-1.0, 1.0, 3)
        law = module.control_law(q, u, solver.parameters)
        assert solver.control(0.0, q, u) == pytest.approx([law], rel=EVALUATION, abs=EVALUATION)


@pytest.mark.parametrize("task", ["cart", "pole"])
def test_cart_pole(task: str) -> None:
    assert errors("cart_pole", task=task) == {}


def test_self_checks() -> None:
    """In 50 digits: psi'' under the controls, and the compiled controls, S, z, residuals and feasibility."""
    report = kg.verify(model_of("particle_tracking"), forms=())
    assert report.check("servo-constraints").deviation < 1e-20
    assert report.check("compiled functions").ok


def test_self_checks_find_a_wrong_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Controls for twice the wanted accelerations: psi does not follow its law."""
    derived = Equations.once

    def wrong(equations: Equations, feature: Any) -> Any:
        result = derived(equations, feature)
        return replace(result, bias=tuple(2 * x for x in result.bias)) if feature is servo_equations else result

    monkeypatch.setattr(Equations, "once", wrong)
    with pytest.raises(kg.VerificationError) as caught:
        kg.verify(model_of("particle_tracking"), states=2, forms=())
    assert "servo-constraints" in {check.principle for check in caught.value.report.failed}
