"""The derivation against hand-derived results, and its routes against each other."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import blocks
from messages import raises
from systems import SYSTEMS, model_of
from tolerances import EVALUATION

import kanegen as kg
from kanegen.derivation.inertia.mass_matrix import JointTree, composite_matrix, direct_matrix
from kanegen.graph import evaluate

t = me.dynamicsymbols._t


def values(equations: kg.Equations, quantity: str, **state: list[float]) -> np.ndarray:
    """A quantity at a state; inputs that are not given are zero, parameters have the model's values."""
    model = equations.model
    known = {"t": [0.0], "p": list(model.parameters.values()), "g": [0.0] * len(equations.gain_names)}
    found = getattr(equations, quantity)
    return np.array(evaluate(found.nodes, {**known, **state}), dtype=float).reshape(found.shape)


@pytest.mark.parametrize(("name", "options"), [*SYSTEMS, ("spatial_chain", {"n": 4})])
def test_both_routes_give_the_same_mass_matrix(name, options):
    equations = kg.derive(model_of(name, **options))
    system = equations.system
    tree = JointTree.of(system, equations.bodies)
    if tree is None:
        # What branches off further in, or moves by a given velocity, is no tree: the direct route must serve.
        assert name in ("n_link_pendulum", "rolling_disk", "slipping_disk", "slider_crank", "appell_hamel",
                        "constrained_particle")  # fmt: skip
        return
    generator = np.random.default_rng(5)
    state = {
        "t": [0.3],
        "q": generator.uniform(0.2, 1.0, len(system.q)),
        "u": generator.uniform(-1.0, 1.0, len(system.u)),
        "p": list(equations.model.parameters.values()),
    }
    composite = [x for row in composite_matrix(system, tree) for x in row]
    direct = [x for row in direct_matrix(system, equations.bodies) for x in row]
    assert np.allclose(evaluate(composite, state), evaluate(direct, state), rtol=EVALUATION, atol=EVALUATION)


def arm(velocity_in_arm: bool) -> tuple[kg.Model, dict[str, sm.Symbol]]:
    """A particle on a rotating massless arm, with an auxiliary speed along the arm."""
    q, u, ua, pull = me.dynamicsymbols("q u ua R")
    m, length, g = sm.symbols("m l g")
    inertial, a = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    a.orient_axis(inertial, inertial.z, q)
    a.set_ang_vel(inertial, u * inertial.z)
    origin = me.Point("O")
    origin.set_vel(inertial, 0)
    tip = origin.locatenew("P", length * a.x)
    tip.set_vel(inertial, length * u * a.y + ua * a.x)
    loads = [(tip, -m * g * inertial.y)] + ([(tip, pull * a.x)] if velocity_in_arm else [])
    model = kg.Model(
        name="arm",
        frame=inertial,
        coordinates=[q],
        speeds=[u],
        kinematics=[q.diff(t) - u],
        bodies=[me.Particle("particle", tip, m)],
        loads=loads,
        auxiliary_speeds=[ua],
        inputs=[kg.Input(pull, default=0.0)] if velocity_in_arm else [],
        parameters={m: 2.0, length: 0.5, g: 9.81},
    )
    return model, {"m": m, "l": length, "g": g, "q": q, "u": u}


@pytest.mark.parametrize("with_reaction_symbol", [True, False])
def test_auxiliary_speed_brings_the_reaction_into_evidence(with_reaction_symbol):
    model, s = arm(with_reaction_symbol)
    equations = kg.derive(model)
    expected = s["m"] * s["g"] * sm.sin(s["q"]) - s["m"] * s["l"] * s["u"] ** 2
    assert sm.simplify(equations.outputs["ua"].to_sympy() - expected) == 0
    assert sm.simplify(equations.udot.to_sympy()[0] + s["g"] * sm.cos(s["q"]) / s["l"]) == 0


def free_body() -> tuple[list[sm.Expr], list[sm.Expr], me.ReferenceFrame, me.RigidBody, list[sm.Expr]]:
    """A free rigid body with Euler parameters: four coordinates, three speeds."""
    e = me.dynamicsymbols("e0:4")
    w = me.dynamicsymbols("w1:4")
    inertial, body = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    body.orient_quaternion(inertial, e)
    body.set_ang_vel(inertial, w[0] * body.x + w[1] * body.y + w[2] * body.z)
    e0, e1, e2, e3 = e
    half = sm.Rational(1, 2)
    rates = [
        -half * (e1 * w[0] + e2 * w[1] + e3 * w[2]),
        half * (e0 * w[0] - e3 * w[1] + e2 * w[2]),
        half * (e3 * w[0] + e0 * w[1] - e1 * w[2]),
        half * (-e2 * w[0] + e1 * w[1] + e0 * w[2]),
    ]
    center = me.Point("C")
    center.set_vel(inertial, 0)
    a, b, c = sm.symbols("a b c")
    rigid = me.RigidBody("body", center, body, sm.Symbol("m"), (me.inertia(body, a, b, c), center))
    kinematics = [x.diff(t) - rate for x, rate in zip(e, rates, strict=True)]
    return list(e), list(w), inertial, rigid, kinematics


def test_euler_parameters_keep_their_norm_out_of_the_constraint_rows():
    e, w, inertial, rigid, kinematics = free_body()
    model = kg.Model(
        name="free body",
        frame=inertial,
        coordinates=e,
        speeds=w,
        kinematics=kinematics,
        bodies=[rigid],
        holonomic_constraints=[sum(x**2 for x in e) - 1],
        parameters={"m": 1.0, "a": 1.0, "b": 2.0, "c": 3.0},
    )
    equations = kg.derive(model)
    assert equations.J.shape == (0, 3)
    assert equations.positions.shape == (1,)
    speeds = [0.3, -0.5, 0.7]
    udot = values(equations, "udot", q=[0.8, 0.0, 0.6, 0.0], u=speeds)
    x, y, z = speeds
    euler = [(2 - 3) / 1 * y * z, (3 - 1) / 2 * x * z, (1 - 2) / 3 * x * y]
    assert np.allclose(udot, euler, rtol=EVALUATION, atol=EVALUATION)


def test_redundant_constraint_is_named_with_what_to_do():
    model = blocks(lambda x, y: [x - y, 2 * x - 2 * y])
    with raises(kg.BuildError, "2*x", "pseudoinverse"):
        _ = kg.derive(model).partition


def test_dependent_speeds_that_the_constraints_do_not_determine():
    model = blocks(nonholonomic_constraints=lambda x, y, u, v: [u - sm.sin(t)], dependent_speeds=lambda x, y, u, v: [v])
    with raises(kg.BuildError, "dependent_speeds", "v"):
        _ = kg.derive(model).partition


def test_rheonomic_constraint_has_its_bias():
    model = blocks(lambda x, y: [x - y - sm.sin(3 * t)])
    equations = kg.derive(model)
    assert equations.b.to_sympy()[0] == -9 * sm.sin(3 * t)
    assert equations.velocities.to_sympy()[0].has(sm.cos(3 * t))


def test_gains_multiply_the_residuals():
    model = blocks(lambda x, y: [x - y])
    equations = kg.derive(model)
    x, y, u, v = (*model.coordinates, *model.speeds)
    first, second = sm.Symbol("G1[0, 0]"), sm.Symbol("G2[0, 0]")
    expected = first * (u - v) + second * (x - y)
    assert sm.expand(equations.b_stabilized.to_sympy()[0] - expected) == 0


def test_common_subexpressions_come_back_with_replacements():
    equations = kg.derive(model_of("spatial_chain", n=2))
    replacements, matrix = equations.Q.to_sympy(cse=True)
    assert replacements
    assert matrix.shape == (4, 4)
    assert equations.Q.operation_count < sm.count_ops(equations.Q.to_sympy())


def test_input_rate_enters_the_bias():
    r, r1, r2 = me.dynamicsymbols("r r1 r2")
    model = blocks(
        lambda x, y: [x - y - r],
        inputs=[kg.Input(r, rate=r1, acceleration=r2)],
    )
    equations = kg.derive(model)
    assert [item.name for item in model.inputs] == ["r", "r1", "r2"]
    assert sm.simplify(equations.b.to_sympy()[0] - r2) == 0


def test_velocity_that_is_not_affine_in_the_speeds_is_refused():
    x, u = me.dynamicsymbols("x u")
    inertial = me.ReferenceFrame("N")
    point = me.Point("P")
    point.set_vel(inertial, u**2 * inertial.x)
    model = kg.Model(
        name="not affine",
        frame=inertial,
        coordinates=[x],
        speeds=[u],
        kinematics=[x.diff(t) - u],
        bodies=[me.Particle("particle", point, 1)],
    )
    with raises(kg.DerivationError, "affine", "u"):
        _ = kg.derive(model).Q
