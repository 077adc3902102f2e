"""Which frames and points a model reaches, and which symbols need a value because of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from tolerances import EVALUATION

import kanegen as kg
from kanegen.graph import evaluate
from kanegen.model.expressions import symbol_name

x, y, ux, uy, z = me.dynamicsymbols("x y ux uy z")
q1, u1 = me.dynamicsymbols("q1 u1")
m, g, h, length, d = sm.symbols("m g h length d")
t = me.dynamicsymbols._t


def names(symbols: Iterable[Any]) -> set[str]:
    return {symbol_name(symbol) for symbol in symbols}


def sliding(position: Callable[[Any], Any]) -> tuple[Any, Any]:
    """A KanesMethod of a particle whose velocity is set, at any position in the inertial frame, and the point."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", position(N))
    P.set_vel(N, ux * N.x)
    km = me.KanesMethod(N, [x], [ux], [x.diff(t) - ux])
    km.kanes_equations([me.Particle("p", P, m)], [(P, -g * x * N.x)])
    return km, P


def test_a_constant_offset_beside_a_set_velocity_needs_no_value() -> None:
    km, _ = sliding(lambda N: x * N.x + h * N.y)
    equations = kg.derive(kg.Model.from_kane(km))
    assert equations.P.to_sympy() == sm.Matrix([-g * x])
    assert names(equations.model.parameters) == {"m", "g", "h"}
    solver = kg.build(kg.Model.from_kane(km, parameters={m: 2.0, g: 3.0}), functions=("rhs",))
    _, udot = solver.rhs(0.0, [0.5], [0.0])
    np.testing.assert_allclose(udot, [-0.75], rtol=EVALUATION)
    assert solver.with_parameters(h=1.0).parameters["h"] == 1.0


def test_a_position_of_unknown_motion_beside_a_set_velocity_is_not_followed() -> None:
    """A contact point whose coordinates are not tracked: only its velocity is known."""
    km, _ = sliding(lambda N: x * N.x + z * N.y)
    model = kg.Model.from_kane(km, parameters={m: 2.0, g: 3.0})
    assert model.inputs == ()
    assert kg.derive(model).P.to_sympy() == sm.Matrix([-g * x])


def test_an_input_that_only_a_spare_position_contains_is_legal() -> None:
    km, _ = sliding(lambda N: x * N.x + z * N.y)
    model = kg.Model.from_kane(km, inputs=(z,))
    assert names(item.symbol for item in model.inputs) == {"z"}
    assert kg.derive(model).P.to_sympy() == sm.Matrix([-g * x])


def test_an_input_in_the_position_of_a_point_without_a_velocity() -> None:
    """SymPy differentiates such a position, so that the rates of the input are inputs themselves."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + z * N.x)
    km = me.KanesMethod(N, [x], [ux], [x.diff(t) - ux])
    km.kanes_equations([me.Particle("p", P, m)])
    model = kg.Model.from_kane(km)
    assert [item.name for item in model.inputs] == ["z", "z_dot", "z_ddot"]
    equations = kg.derive(model)
    values = {"t": [0.0], "q": [0.1], "u": [0.2], "r": [0.3, 0.4, 0.5], "p": [2.0]}
    assert evaluate(equations.P.nodes, values) == pytest.approx([-2.0 * 0.5], rel=EVALUATION)


def test_points_and_frames_that_nothing_uses() -> None:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    B, spare = me.ReferenceFrame("B"), me.ReferenceFrame("S")
    B.orient_axis(N, N.z, q1)
    spare.orient_axis(B, B.x, d * z)
    C = O.locatenew("C", length * B.x)
    C.locatenew("E", -h * B.z + z * spare.x)
    O.locatenew("other model", y * N.x)
    km = me.KanesMethod(N, [q1], [u1], [q1.diff(t) - u1])
    km.kanes_equations([me.Particle("p", C, m)])
    model = kg.Model.from_kane(km, parameters={m: 1.0, length: 2.0, h: 3.0, "d": 4.0})
    assert names(model.parameters) == {"m", "length"}
    assert model.inputs == ()
    assert kg.derive(model).Q.to_sympy() == sm.Matrix([m * length**2])


def test_a_name_that_occurs_nowhere_stays_an_error() -> None:
    km, _ = sliding(lambda N: x * N.x + h * N.y)
    with raises(kg.ModelError, "parameter", "hh", "h"):
        kg.Model.from_kane(km, parameters={"hh": 1.0})


def test_a_second_model_on_the_same_origin() -> None:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    models = []
    for k, (q, u) in enumerate(((x, ux), (y, uy))):
        P = O.locatenew(f"P{k}", q * N.x)
        km = me.KanesMethod(N, [q], [u], [q.diff(t) - u])
        km.kanes_equations([me.Particle(f"p{k}", P, m)], [(P, -g * q * N.x)])
        models.append(kg.Model.from_kane(km))
    for model in models:
        assert names(model.parameters) == {"g", "m"}
        assert kg.derive(model).P.to_sympy() == sm.Matrix([-g * model.coordinates[0]])


def test_a_point_without_velocity_moves_with_the_nearest_that_has_one() -> None:
    """As in SymPy: the wheel's center rolls with the contact point, whatever the position of that from elsewhere."""
    N, O, A = me.ReferenceFrame("N"), me.Point("O"), me.ReferenceFrame("A")
    O.set_vel(N, 0)
    A.orient_axis(N, N.z, q1)
    A.set_ang_vel(N, u1 * N.z)
    contact = O.locatenew("contact", x * N.x)
    contact.set_vel(N, 0)
    rim = contact.locatenew("rim", length * A.x)
    km = me.KanesMethod(N, [q1], [u1], [q1.diff(t) - u1])
    km.kanes_equations([me.Particle("p", rim, m)])
    model = kg.Model.from_kane(km)
    assert names(model.parameters) == {"m", "length"}
    assert kg.derive(model).Q.to_sympy() == sm.Matrix([m * length**2])
    assert km.mass_matrix.applyfunc(sm.simplify) == sm.Matrix([m * length**2])


def test_a_ground_body_needs_no_mass() -> None:
    ground, arm = me.RigidBody("G"), me.RigidBody("A")
    system = me.System.from_newtonian(ground)
    system.add_joints(me.PinJoint("J", ground, arm, q1, u1, parent_point=h * ground.frame.x, joint_axis=ground.z))
    system.form_eoms()
    for model in (kg.Model.from_system(system), kg.Model.from_kane(system.eom_method)):
        needed = names(model.parameters)
        assert not {name for name in needed if name.startswith("G_")}
        solver = kg.build(model, functions=("rhs",)).with_parameters(A_izz=2.0)
        assert solver.rhs(0.0, [0.3], [0.4])[1] == pytest.approx([0.0])
    kg.Model.from_kane(system.eom_method, parameters={"G_mass": 1.0})
