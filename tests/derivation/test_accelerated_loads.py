"""M, P and what follows from them, for loads that depend on accelerations."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from accelerated_models import LOADS, SYMMETRIC, TIME, chain, follower, inerter, line
from hypothesis import given, settings
from hypothesis import strategies as some
from messages import raises
from tolerances import EVALUATION

import kanegen as kg
from kanegen.graph import evaluate


def values(equations: Any, quantity: Any, q: Any, u: Any, t: float = 0.3) -> np.ndarray:
    """A quantity at a state."""
    parameters = [float(x) for x in equations.model.parameters.values()]
    arrays = {"t": [t], "q": list(q), "u": list(u), "p": parameters, "g": [0.0] * len(equations.gain_names)}
    return np.array(evaluate(quantity.nodes, arrays)).reshape(quantity.shape)


def test_the_matrix_of_an_inerter_is_the_one_by_hand() -> None:
    equations = kg.derive(line(2, inerter))
    m1, m2, b = (*sm.symbols("m1 m2", positive=True), sm.Symbol("b"))
    assert equations.M.to_sympy() == sm.Matrix([[m1 + b, -b], [-b, m2 + b]])
    assert equations.Q.to_sympy() == sm.Matrix([[m1, 0], [0, m2]])
    assert equations.is_symmetric


def test_a_load_on_one_body_makes_the_matrix_unsymmetric() -> None:
    equations = kg.derive(line(2, follower))
    m1, m2, b = (*sm.symbols("m1 m2", positive=True), sm.Symbol("b"))
    assert equations.M.to_sympy() == sm.Matrix([[m1, b], [0, m2]])
    assert not equations.is_symmetric


def test_a_model_without_such_loads_has_one_matrix() -> None:
    equations = kg.derive(line(1, lambda of: [(of.points[0], -of.b * of.x[0] * of.N.x)]))
    assert equations.M is equations.Q


@pytest.mark.parametrize("kind", LOADS)
def test_forces_and_matrix_are_the_slopes_of_sympys_residual(kind: str) -> None:
    system = chain(kind)
    equations = kg.derive(system.model)
    assert equations.is_symmetric == (kind in SYMMETRIC)
    for t, q, u in system.states:
        P = system._residual(t, q, u, np.zeros(3))
        M = np.array([P - system._residual(t, q, u, unit) for unit in np.eye(3)]).T
        scale = np.abs(M).max() + np.abs(P).max()
        assert np.abs(values(equations, equations.P, q, u, t) - P).max() < EVALUATION * scale
        assert np.abs(values(equations, equations.M, q, u, t) - M).max() < EVALUATION * scale
        F, L = (values(equations, x, q, u, t) for x in (equations.F, equations.L))
        assert np.abs(F - L - P).max() < EVALUATION * (scale + np.abs(F).max())


@cache
def loaded_chain(constraint: str | None) -> tuple[Any, Any]:
    """The equations of a chain without and with the loads ``-B u'``, B in nine parameters."""
    plain = chain("none", constraint)
    c = plain.symbols
    B = sm.Matrix(3, 3, lambda i, j: sm.Symbol(f"B{i}{j}"))
    forces = [*(-B * sm.Matrix([u.diff(TIME) for u in c.u])), sm.S.Zero]
    # The torque on frame k enters the equations of all speeds before it.
    loads = [(c.frames[k + 1], (forces[k] - forces[k + 1]) * c.N.z) for k in range(3)]
    model = kg.Model.from_kane(plain.method, loads=[*plain.method.loads, *loads], parameters=plain.parameters)
    return kg.derive(plain.model), kg.derive(model)


@settings(max_examples=30, deadline=None)
@given(
    constraint=some.sampled_from([None, "holonomic", "nonholonomic"]),
    entries=some.lists(some.floats(-0.5, 0.5), min_size=9, max_size=9),
    state=some.lists(some.floats(0.1, 1.0), min_size=6, max_size=6),
)
def test_any_matrix_of_factors_is_added(constraint: str | None, entries: list[float], state: list[float]) -> None:
    plain, equations = loaded_chain(constraint)
    B, q, u = np.reshape(entries, (3, 3)), state[:3], state[3:]
    Q, P, J, b = (values(plain, x, q, u) for x in (plain.Q, plain.P, plain.J, plain.b))
    known = {str(symbol): value for symbol, value in chain("none", constraint).parameters.items()}
    known |= {f"B{i}{j}": B[i, j] for i in range(3) for j in range(3)}
    parameters = [known[str(symbol)] for symbol in equations.model.parameters]
    arrays = {"t": [0.3], "q": q, "u": u, "p": parameters, "g": [0.0] * len(equations.gain_names)}
    T, V, udot = (np.array(evaluate(x.nodes, arrays)) for x in (equations.T, equations.V, equations.udot))
    bordered = np.block([[Q + B, -J.T], [J, np.zeros((len(J), len(J)))]])
    if np.linalg.cond(bordered) < 1e3:
        expected = np.linalg.solve(bordered, np.append(P, b))[:3]
        scale = 1.0 + np.abs(expected).max()
        assert np.abs(udot - expected).max() < 1e3 * EVALUATION * scale
        assert np.abs(T.reshape(3, 3) @ expected - V).max() < 1e3 * EVALUATION * scale


@pytest.mark.parametrize("form", ["auto", "nonminimal", "reduced", "range_space", "momentum"])
def test_loads_that_cancel_an_inertia_are_named_at_build(form: str) -> None:
    model = line(2, lambda of: [(of.points[0], (of.m[0] * of.u[0].diff(TIME) + of.b) * of.N.x)])
    with raises(kg.BuildError, "u1", "P1"):
        kg.build(model, form=form)


def test_a_zero_on_the_diagonal_is_legal_where_the_matrix_has_an_inverse() -> None:
    """M = [[0, b], [b, m2]] for the force -1 on the second body: u1' = -1/b, u2' = 0."""

    def loads(of: Any) -> list[Any]:
        first = of.m[0] * of.u[0].diff(TIME) - of.b * of.u[1].diff(TIME)
        return [(of.points[0], first * of.N.x), (of.points[1], -(of.b * of.u[0].diff(TIME) + 1) * of.N.x)]

    solver = kg.build(line(2, loads, b=0.5))
    assert solver.description.form == "nonminimal"
    assert solver.rhs(0.0, [0, 0], [0, 0])[1] == pytest.approx([-2.0, 0.0])
    with raises(kg.BuildError, "u1", "P1", 'form="nonminimal"'):
        kg.build(line(2, loads), form="reduced")


def test_reduced_momenta_and_energies_keep_the_kinetic_energy_matrix() -> None:
    for kind in LOADS:
        equations, plain = kg.derive(chain(kind).model), kg.derive(chain("none").model)
        for name in ("Q", "momentum", "kinetic_energy", "N"):
            q, u = [0.3, 0.4, -0.5], [0.2, -0.4, 0.7]
            assert values(equations, getattr(equations, name), q, u) == pytest.approx(
                values(plain, getattr(plain, name), q, u), rel=EVALUATION
            )


def test_the_loads_of_former_speeds_follow_a_change_of_speeds() -> None:
    model = chain("unsteady").model
    e, f = kg.derive(model), kg.derive(model.with_orthogonal_speeds())
    q, u = np.array([0.3, 0.4, -0.5]), np.array([0.2, -0.4, 0.7])
    w = values(f, f.new_speeds, q, u)
    udot = values(e, e.udot, q, u)
    # w = L^T u at fixed coordinates; the derivative along the motion by a central difference
    h = 1e-6
    ends = [values(f, f.new_speeds, q + s * h * u + h * h / 2 * udot, u + s * h * udot) for s in (-1, 1)]
    assert values(f, f.udot, q, w) == pytest.approx((ends[1] - ends[0]) / (2 * h), rel=1e-7)


def test_sympys_system_keeps_the_loads() -> None:
    q, u = me.dynamicsymbols("q u")
    system = me.System()
    body = me.Particle("body", me.Point("P"), sm.Symbol("m"))
    system.add_bodies(body)
    body.masscenter.set_pos(system.fixed_point, q * system.x)
    body.masscenter.set_vel(system.frame, u * system.x)
    system.add_coordinates(q)
    system.add_speeds(u)
    system.add_kdes(q.diff(TIME) - u)
    system.add_loads((body.masscenter, -sm.Symbol("b") * u.diff(TIME) * system.x))
    model = kg.Model.from_system(system)
    assert kg.derive(model).M.to_sympy() == sm.Matrix([[sm.Symbol("m") + sm.Symbol("b")]])
