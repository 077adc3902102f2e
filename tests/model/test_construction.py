"""What a model makes of a good description."""

from __future__ import annotations

import pickle

import pytest
import sympy as sm
from hypothesis import given
from hypothesis import strategies as st
from sympy.physics import mechanics as me

from kanegen.model import Model
from kanegen.model.expressions import natural_key, symbol_name
from kanegen.model.linear import affine_coefficients, coefficients, in_span, is_affine

t = me.dynamicsymbols._t
q, u = me.dynamicsymbols("q u")
N = me.ReferenceFrame("N")


def particle(**changes):
    P = me.Point("P")
    P.set_vel(N, u * N.x)
    body = me.Particle("bob", P, sm.Symbol("m"))
    arguments = {
        "name": "particle",
        "frame": N,
        "coordinates": [q],
        "speeds": [u],
        "kinematics": {q.diff(t): u},
        "bodies": [body],
    }
    arguments |= {"loads": changes.pop("loads")(P, body)} if "loads" in changes else {}
    return Model(**(arguments | changes))


HOSTILE = ["if", "I", "lambda", 'x; system("x")', "é", "*/ int main", "\\n", "1", " "]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_names(name):
    parameter, coordinate = sm.Symbol(name), sm.Function("q " + name)(t)
    P = me.Point("P")
    P.set_vel(N, u * N.x)
    model = Model(
        name=name,
        frame=N,
        coordinates=[coordinate],
        speeds=[u],
        kinematics=[coordinate.diff(t) - u],
        bodies=[me.Particle(name, P, parameter)],
        parameters={name: 2.0},
        holonomic_constraints=[sm.exp(coordinate) * parameter - (coordinate + 1) ** 2],
    )
    assert dict(model.parameters) == {parameter: 2.0}
    assert symbol_name(model.coordinates[0]) == "q " + name


def test_parameters_given_first_then_natural_order():
    m2, m10, a, z = sm.symbols("m_2 m_10 a z")
    energy = (m10 + m2 + a + z) * q
    model = particle(parameters={z: 1, "m": 2}, potential_energy=energy)
    assert [str(p) for p in model.parameters] == ["z", "m", "a", "m_2", "m_10"]
    assert [*model.parameters.values()] == [1.0, 2.0, None, None, None]


@given(st.lists(st.text("ab_019", min_size=1), min_size=2, max_size=6))
def test_natural_key_orders_all_names(names):
    assert sorted(names, key=natural_key) == sorted(sorted(names), key=natural_key)
    assert len(set(map(natural_key, names))) == len(set(names))


def test_equations_become_expressions():
    model = particle(
        kinematics=[sm.Eq(q.diff(t), 2 * u)],
        nonholonomic_constraints=sm.Eq(u, sm.sin(t)),
        potential_energy=3,
    )
    assert model.kinematics == (q.diff(t) - 2 * u,)
    assert model.nonholonomic_constraints == (u - sm.sin(t),)
    assert model.potential_energy == 3


def test_derivatives_of_expressions_are_carried_out():
    model = particle(nonholonomic_constraints=[sm.Derivative(sm.sin(q), t) - 1])
    assert model.nonholonomic_constraints == (sm.cos(q) * q.diff(t) - 1,)


def test_loads_in_every_form():
    force = sm.Symbol("F") * N.x
    model = particle(
        loads=lambda P, body: [
            (P, force),
            me.Force(P, force),
            (body, force),
            me.Torque(N, force),
            (P, 0 * N.x),
        ]
    )
    assert [location.name for location, _ in model.loads] == ["P", "P", "P", "N"]


def test_outputs_and_their_shapes():
    model = particle(
        outputs={
            "scalar": u**2,
            "list": [q, u, 1],
            "column": sm.Matrix([q, u]),
            "nested": [[q, 1], [0, u.diff(t)]],
            "vector": (u * N.x + N.z, N),
        }
    )
    assert {name: item.shape for name, item in model.outputs.items()} == {
        "scalar": (),
        "list": (3,),
        "column": (2,),
        "nested": (2, 2),
        "vector": (3,),
    }
    assert model.outputs["nested"].expressions == (q, 1, 0, u.diff(t))
    assert tuple(model.outputs["vector"]) == (u, 0, 1)


def test_redundant_constraints_are_legal():
    model = particle(holonomic_constraints=[q - 1, q - 1, 2 * q - 2])
    assert len(model.holonomic_constraints) == 3


def test_models_are_frozen_and_pickle():
    model = particle(parameters={"m": 2.0})
    with pytest.raises(AttributeError):
        model.name = "other"
    with pytest.raises(TypeError):
        model.parameters[q] = 1.0
    copy = pickle.loads(pickle.dumps(model))
    assert repr(copy) == repr(model)
    assert copy.kinematics == model.kinematics


def test_bodies_without_orientation():
    """A frame in which nothing is written needs an angular velocity, no orientation."""
    A, B, C = me.ReferenceFrame("A"), me.ReferenceFrame("B"), me.Point("C")
    A.orient_axis(N, N.z, q)
    B.set_ang_vel(A, sm.Symbol("w") * A.x)
    C.set_vel(N, 0)
    model = particle(bodies=[me.RigidBody("wheel", C, B, 1, (me.inertia(A, 1, 2, 2), C))])
    assert [str(p) for p in model.parameters] == ["w"]


x, y, z = sm.symbols("x y z")


@pytest.mark.parametrize(
    ("expr", "affine"),
    [
        (3 * x + y * sm.sin(z), True),
        (x * y + y * z, True),
        ((x + 1) ** 2 - x**2, True),
        (x * (x + z) - x**2, True),
        (sm.sqrt(x), False),
        (x**2 * z, False),
        (x / (1 + x), False),
        (sm.log(-1 - x**2), True),
    ],
)
def test_affine(expr, affine):
    assert is_affine(expr, frozenset({x})) is affine


def test_coefficients():
    assert affine_coefficients(3 * x * y + z, frozenset({x})) == {x: 3 * y, None: z}
    assert affine_coefficients((x + 1) ** 2 - x**2, frozenset({x})) is None
    found = coefficients((x + 1) ** 2 - x**2, frozenset({x}))
    assert {key: sm.expand(value) for key, value in found.items()} == {x: 2}
    assert coefficients(z, frozenset({x})) == {}


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=2).filter(any), st.integers(1, 3))
def test_span(factors, offset):
    basis = [x * sm.cos(z) + y, x - y * z + z**2]
    inside = sum(a * (1 + z**2) * b for a, b in zip(factors, basis, strict=True))
    assert in_span(inside, basis, frozenset({x, y}))
    assert not in_span(inside + offset, basis, frozenset({x, y}))


@pytest.mark.parametrize(("factor", "is_rounding"), [(1e-6, False), (1e-10, True)])
def test_terms_beside_a_span_may_be_rounding(factor, is_rounding):
    assert in_span(x + y * z + factor * y**2, [x, y], frozenset({x, y})) == is_rounding
