"""The catalogue of functions against the programs that are made from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from servo_systems import rod
from systems import model_of

import kanegen as kg
from kanegen.derivation.control.servo import servo_equations
from kanegen.program.assemble import assemble
from kanegen.program.catalogue import CATALOGUE, group, spec_of
from kanegen.program.options import BuildOptions
from kanegen.program.records import Program


def program_of(model: kg.Model, form: str = "auto", functions: Any = "all") -> Program:
    return assemble(kg.derive(model), BuildOptions.of(form, functions))[0]


def sizes(model: kg.Model) -> dict[str, int]:
    e = kg.derive(model)
    n_u, n_c = len(model.speeds), len(e.constraints.rows)
    servo = e.once(servo_equations) if model.servo is not None else None
    n_psi, n_tau = (len(servo.J), len(servo.free)) if servo else (0, 0)
    n_d = len(e.partition.dependent)
    return {
        "n_q": len(model.coordinates),
        "n_u": n_u,
        "n_c": n_c,
        "n_d": n_d,
        "n_i": n_u - n_d,
        "n_psi": n_psi,
        "n_tau": n_tau,
        "2": 2,
        "3": 3,
        "4": 4,
    }


@pytest.mark.parametrize("model", [model_of("rolling_disk"), model_of("slider_crank"), rod()], ids=lambda m: m.name)
@pytest.mark.parametrize("form", ["reduced", "canonical", "momentum"])
def test_functions_have_the_shapes_of_the_catalogue(model: kg.Model, form: str) -> None:
    known, checked = sizes(model), set()
    for function in program_of(model, form).functions:
        spec = spec_of(function.name)
        if spec is not None and spec.shape and not function.internal:
            assert function.shape == tuple(known[size] for size in spec.shape), function.name
            assert function.summary == spec.summary
            checked.add(function.name)
    assert {"Q", "P", "J", "b", "T", "V", "A", "B", "A1", "A2", "multipliers", "momentum", "Dm"} <= checked


def particle(**options: Any) -> kg.Model:
    x, u, m = *me.dynamicsymbols("x u"), sm.Symbol("m")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    return kg.Model(
        frame=N,
        coordinates=[x],
        speeds=[u],
        kinematics=[x.diff(me.dynamicsymbols._t) - u],
        bodies=[me.Particle("P", P, m)],
        name="particle",
        **options,
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("energy", ("potential_energy=", "gravity=")),
        ("control", ("control=kg.Servo",)),
        ("hamiltonian", ("potential_energy=",)),
        ("speeds_from_momentum", ("form='momentum'", "form='hamilton'")),
        ("residuals", ("constraints",)),
        ("jacobian_r", ("inputs",)),
        ("outputs_q", ("outputs",)),
        ("underactuation", ("inputs",)),
        ("new_speeds", ("with_speeds",)),
    ],
)
def test_what_a_model_does_not_have_is_explained(name: str, words: tuple[str, ...]) -> None:
    program = program_of(particle())
    reason = dict(program.unavailable)[name]
    assert all(word in reason for word in words)
    assert name not in {function.name for function in program.functions}


def test_every_function_is_built_or_explained() -> None:
    for form in ("reduced", "pseudoinverse", "hamilton"):
        program = program_of(particle(), form)
        built = {function.name for function in program.functions if not function.internal}
        missing = set(CATALOGUE) - built - dict(program.unavailable).keys()
        # These stand for functions of other names.
        assert missing == {"outputs", "output_motions", "reactions", "integrals"}


def test_a_group_stands_for_its_functions() -> None:
    assert group("forces") == ("constraint_force", "multipliers")
    assert BuildOptions.of(functions="forces").functions == ("rhs", "constraint_force", "multipliers")
    assert "servo_gains" in BuildOptions.of(functions="control").functions


@pytest.mark.parametrize("name", ["rolling_disk", "slider_crank", "spatial_chain", "n_link_pendulum"])
def test_the_linear_momentum_is_that_of_sympy(name: str) -> None:
    model = model_of(name)
    expected = me.linear_momentum(model.frame, *model.bodies).to_matrix(model.frame)
    q, u = list(model.coordinates), list(model.speeds)
    rates = [x.diff(me.dynamicsymbols._t) for x in q]
    solved = sm.solve(list(model.kinematics), rates, dict=True)[0]
    rng = np.random.default_rng(7)
    numbers = {
        x: sm.Float(value, 50) for x, value in zip([*q, *u], rng.uniform(0.2, 0.9, len(q) + len(u)), strict=True)
    }
    numbers |= {p: sm.Float(value, 50) for p, value in zip(model.parameters, rng.uniform(0.5, 2, 99), strict=False)}
    actual = kg.derive(model).linear_momentum.to_sympy().subs(numbers)
    reference = expected.subs(solved).subs(numbers)
    assert np.array(actual, dtype=float).ravel() == pytest.approx(np.array(reference, dtype=float).ravel(), rel=1e-13)
    assert any(abs(x) > 1e-3 for x in actual)


def test_a_misspelled_form_names_the_nearest_one() -> None:
    with raises(kg.BuildError, "'redused'", "did you mean 'reduced'"):
        BuildOptions.of("redused")
