"""Bodies whose angular velocity is known and whose orientation is not, as in Euler's equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from tolerances import EVALUATION

import kanegen as kg

t = me.dynamicsymbols._t
w = me.dynamicsymbols("w1:4")
x, v = me.dynamicsymbols("x v")
INERTIA = (1.0, 2.0, 3.0)


def body() -> tuple[Any, Any, Any, me.RigidBody]:
    """A body that moves along x and turns in a way that no coordinate tells."""
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    O.set_vel(N, 0)
    B.set_ang_vel(N, w[0] * B.x + w[1] * B.y + w[2] * B.z)
    C = O.locatenew("C", x * N.x)
    C.set_vel(N, v * N.x)
    return N, B, C, me.RigidBody("body", C, B, 2.0, (me.inertia(B, *INERTIA), C))


def euler(rates: np.ndarray, torque: float) -> np.ndarray:
    """Euler's equations with a torque about the third axis."""
    moment = np.array([0.0, 0.0, torque]) - np.cross(rates, np.array(INERTIA) * rates)
    return moment / np.array(INERTIA)


def test_kanes_method_without_an_orientation() -> None:
    """KanesMethod forms the equations: all vectors of the body are written in its own frame."""
    N, B, C, rigid = body()
    km = me.KanesMethod(N, [x], [v, *w], [x.diff(t) - v], bodies=[rigid], forcelist=[(B, 0.7 * B.z), (C, -x * N.x)])
    km.kanes_equations()
    solver = kg.build(kg.Model.from_kane(km))
    rates = np.array([0.3, -0.4, 0.5])
    qdot, udot = solver.rhs(0.0, [0.6], [0.2, *rates])
    np.testing.assert_allclose(qdot, [0.2], rtol=EVALUATION)
    np.testing.assert_allclose(udot, [-0.3, *euler(rates, 0.7)], rtol=EVALUATION)
    numbers = dict(zip((x, v, *w), (0.6, 0.2, *rates), strict=True))
    left = km.mass_matrix.subs(numbers) * sm.Matrix(udot) - km.forcing.subs(numbers)
    assert max(map(abs, left)) < EVALUATION


def test_verification_leaves_out_what_needs_the_orientation() -> None:
    N, B, _, rigid = body()
    model = kg.Model(
        name="turning body",
        frame=N,
        coordinates=(x,),
        speeds=(v, *w),
        kinematics=(x.diff(t) - v,),
        bodies=(rigid,),
        loads=((B, 0.7 * B.z),),
    )
    report = kg.verify(model, states=2, forms=())
    assert report.ok
    assert report.check("Lagrange").ok is None
    assert "C of q' = C u + D has the rank 1, not 4" in report.check("Lagrange").note
    with raises(kg.BuildError, "hamilton", "u = q'", "1", "4"):
        kg.build(model, form="hamilton")
    assert report.check("Gibbs-Appell").ok


def test_no_coordinates_at_all() -> None:
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    O.set_vel(N, 0)
    B.set_ang_vel(N, w[0] * B.x + w[1] * B.y + w[2] * B.z)
    rigid = me.RigidBody("body", O, B, 1.0, (me.inertia(B, *INERTIA), O))
    model = kg.Model(name="euler", frame=N, coordinates=(), speeds=w, kinematics=(), bodies=(rigid,))
    solver = kg.build(model)
    solution = solver.integrate((0.0, 2.0), [], [1.0, 2.0, 3.0], method="dop853", rtol=1e-11, atol=1e-13)
    momenta = np.linalg.norm(solution.u * np.array(INERTIA), axis=1)
    # Without torque the magnitude of the angular momentum is conserved, to the tolerance of some 30 steps.
    np.testing.assert_allclose(momenta, momenta[0], rtol=1e-9)


def test_a_vector_that_would_have_to_be_rotated_is_refused() -> None:
    N, B, C, rigid = body()
    given = {"name": "thrown", "frame": N, "coordinates": (x,), "speeds": (v, *w), "kinematics": (x.diff(t) - v,)}
    model = kg.Model(**given, bodies=(rigid,), loads=((C, 3 * B.x),))
    with raises(kg.DerivationError, "frame", "B", "N"):
        _ = kg.derive(model).P
