"""What a flexible body adds to the arguments of a model."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from given_motions import given

import kanegen as kg
from kanegen.view.forces import arrows
from kanegen.view.motion import Motion
from kanegen.view.poses import Poses

T = me.dynamicsymbols._t


def cantilever(name: str = "arm", **options: Any) -> tuple[kg.Beam, dict[str, Any]]:
    """A clamped beam and the arguments of its model."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    section = {"length": 2.0, "area": 1e-3, "second_moment": 1e-7, "density": 1e3, "youngs_modulus": 1e9}
    beam = kg.beam(name, N, O, **{**section, "modes": 2, "stiffening": False, **options})
    return beam, {"name": "clamped", "frame": N, "coordinates": (), "speeds": (), "kinematics": (), "bodies": [beam]}


def named(symbols: Any) -> list[str]:
    return [str(symbol.func) for symbol in symbols]


def test_coordinates_are_added_in_order_unless_they_are_listed() -> None:
    beam, arguments = cantilever()
    x, v = me.dynamicsymbols("x v")
    cart = me.Point("cart")
    cart.set_vel(arguments["frame"], v * arguments["frame"].x)
    arguments["bodies"] = [me.Particle("cart", cart, 1.0), beam]
    moving = {"kinematics": [v - x.diff(T)], "check_kinematics": False}
    added = kg.Model(**{**arguments, **moving, "coordinates": [x], "speeds": [v]})
    assert named(added.coordinates) == ["x", "q_arm_1", "q_arm_2"]
    assert named(added.speeds) == ["v", "u_arm_1", "u_arm_2"]
    listed = {"coordinates": [*beam.coordinates, x], "speeds": [*beam.speeds, v], "kinematics": {x.diff(T): v}}
    ordered = kg.Model(**{**arguments, **moving, **listed})
    assert named(ordered.coordinates) == ["q_arm_1", "q_arm_2", "x"]
    assert len(ordered.kinematics) == 3
    assert len(ordered.bodies) == 1 + len(beam.particles)


def test_energy_of_the_user_is_kept() -> None:
    beam, arguments = cantilever()
    k, x = sm.Symbol("k"), beam.point("end").pos_from(beam.origin).dot(beam.frame.y)
    spring = {"loads": [(beam.point("end"), -k * x * beam.frame.y)], "potential_energy": k * x**2 / 2}
    solver = kg.build(kg.Model(**arguments, **spring, parameters={k: 30.0}), backend="interpreted", functions="all")
    q, u = np.array([0.02, -0.01]), np.array([0.3, 0.1])
    elastic = q @ beam.data.stiffness @ q / 2
    end = q @ beam.data.modes[:, beam.names["end"], 1]
    assert solver.potential_energy(0.0, q, u) == pytest.approx(elastic + 15.0 * end**2, rel=1e-12)
    assert solver.kinetic_energy(0.0, q, u) == pytest.approx(u @ beam.data.mass_matrix @ u / 2, rel=1e-12)


def test_parameters_of_the_user_are_kept() -> None:
    beam, arguments = cantilever()
    for key in ("k_arm_1_1", next(symbol for symbol in beam.parameters if str(symbol) == "k_arm_1_1")):
        model = kg.Model(**arguments, parameters={key: 3.0})
        values = {str(symbol): value for symbol, value in model.parameters.items()}
        assert values["k_arm_1_1"] == 3.0
        assert values["k_arm_2_2"] == beam.data.stiffness[1, 1]


def test_numbers_in_place_of_parameters() -> None:
    beam, arguments = cantilever(parameters=False)
    fixed = kg.build(kg.Model(**arguments), backend="interpreted", functions=("rhs",))
    _, others = cantilever()
    variable = kg.build(kg.Model(**others), backend="interpreted", functions=("rhs",))
    assert not fixed.parameters
    assert beam.parameters == {}
    q, u = np.array([0.02, -0.01]), np.array([0.3, 0.1])
    np.testing.assert_allclose(fixed.rhs(0.0, q, u)[1], variable.rhs(0.0, q, u)[1], rtol=1e-12)


def test_a_body_of_a_composite_is_named_once() -> None:
    _, arguments = cantilever()
    with pytest.raises(kg.ModelError, match="listed twice in bodies"):
        kg.Model(**{**arguments, "bodies": arguments["bodies"] * 2})


def test_bodies_of_one_name_are_refused() -> None:
    beam, arguments = cantilever()
    other = kg.FlexibleBody(
        "arm", beam.frame, beam.origin, nodes=np.eye(3), modes=np.eye(3)[None], masses=np.ones(3), stiffness=[1.0]
    )
    with pytest.raises(kg.ModelError, match="several flexible bodies have the coordinate q_arm_1"):
        kg.Model(**{**arguments, "bodies": [beam, other]})


def test_models_can_be_pickled() -> None:
    _, arguments = cantilever()
    model = kg.Model(**arguments)
    copy = pickle.loads(pickle.dumps(model))
    q, u = np.array([0.02, -0.01]), np.array([0.3, 0.1])
    mine, other = (kg.build(x, backend="interpreted", functions=("rhs",)).rhs(0.0, q, u)[1] for x in (model, copy))
    np.testing.assert_array_equal(mine, other)


def bending(shift: float) -> tuple[Motion, kg.Beam]:
    """A beam with a force at its end, that is bent by the first mode and then by ``shift`` more."""
    beam, arguments = cantilever()
    N = arguments["frame"]
    model = kg.Model(**arguments, loads=[(beam.point("end"), 2.0 * N.y)])
    return given(
        model, np.array([0.0, 1.0]), lambda t: (0.1 + shift * t, 0.0 * t), lambda t: (shift + 0.0 * t, 0.0 * t)
    ), beam


def test_forces_on_modes_are_no_arrows() -> None:
    motion, beam = bending(0.2)
    poses = Poses(motion)
    (arrow,) = arrows(poses)
    assert arrow.foot is beam.point("end")
    np.testing.assert_allclose(arrow.vector, [[0.0, 2.0, 0.0]] * 2)
    assert not poses.notices


def test_lines_between_nodes_bend_with_the_beam() -> None:
    motion, beam = bending(0.2)
    poses = Poses(motion)
    links = [shape for shapes in motion.model.shapes.values() for shape in shapes]
    ends = np.array([poses.position(link.end, motion.times) for link in links])
    expected = beam.data.modes[0, 1:11, 1]
    np.testing.assert_allclose(ends[:, 0, 1], 0.1 * expected, rtol=1e-12)
    np.testing.assert_allclose(ends[:, 1, 1], 0.3 * expected, rtol=1e-12)
    np.testing.assert_allclose(ends[:, :, 0].T, [np.linspace(0.2, 2.0, 10)] * 2, rtol=1e-12)
