"""Servo laws, control constraints and underactuation where the first pivot vanishes, but no matrix is singular."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg
from kanegen.program.assemble import assemble
from kanegen.program.catalogue import CONTROLLED_RATES
from kanegen.program.interpret import interpret
from kanegen.program.options import BuildOptions

TIME = me.dynamicsymbols._t
ANGLES = [0.0, np.pi / 2, -np.pi / 2, np.pi, 0.3]
FORCE, SPEED = 0.7, np.array([0.1, 0.2, 0.3, 0.4])
COUPLING = 0.5


def shears(coupled: bool = False, massless: bool = False, **options: Any) -> kg.Model:
    """Translations x, y, z of one body and w of another one; x' and y' follow from z' by a rotation with the angle z.

    The control F pushes both. ``coupled``: loads in u' make the matrix of the accelerations unsymmetric.
    ``massless``: x and y move no mass.
    """
    q, u, F = me.dynamicsymbols("x y z w"), me.dynamicsymbols("u:4"), me.dynamicsymbols("F")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P, R = O.locatenew("P", q[0] * N.x + q[1] * N.y + q[2] * N.z), O.locatenew("R", q[3] * N.x)
    body = O.locatenew("body", q[2] * N.z) if massless else P
    c, s = sm.cos(q[2]), sm.sin(q[2])
    loads = [(P, 3 * N.x - N.y + (5 + F * s) * N.z), (R, (2 + F * c) * N.x)]
    if coupled:
        loads += [(P, -COUPLING * u[3].diff(TIME) * N.z), (R, -2 * COUPLING * c * u[2].diff(TIME) * N.x)]
    return kg.Model(
        name="shears",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[a.diff(TIME) - b for a, b in zip(q, u, strict=True)],
        bodies=[me.Particle("P", body, 2), me.Particle("R", R, 3)],
        loads=loads,
        nonholonomic_constraints=[c * u[0] + s * u[1] - u[2] / 2, -s * u[0] + c * u[1] - u[2] / 3],
        dependent_speeds=u[:2],
        inputs=(F,),
        **options,
    )


def system(z: float, coupled: bool, massless: bool) -> tuple[np.ndarray, ...]:
    """M, P without the control, J, b and the force of a unit of the control, by hand."""
    c, s = np.cos(z), np.sin(z)
    M = np.diag([0.0, 0.0, 2.0, 3.0] if massless else [2.0, 2.0, 2.0, 3.0])
    if coupled:
        M[2, 3], M[3, 2] = COUPLING, 2.0 * COUPLING * c
    J = np.array([[c, s, -0.5, 0.0], [-s, c, -1.0 / 3.0, 0.0]])
    b = -SPEED[2] * np.array([[-s, c], [-c, -s]]) @ SPEED[:2]
    return M, np.array([3.0, -1.0, 5.0, 2.0]), J, b, np.array([0.0, 0.0, s, c])


def values(z: float) -> dict[str, list[float]]:
    return {
        "t": [0.0],
        "q": [0.1, 0.2, z, 0.4],
        "u": list(SPEED),
        "p": [],
        "r": [FORCE],
        "free": [0.0] * 6,
        "g": [0.0] * 4,
    }


def accelerations(z: float, coupled: bool, massless: bool, force: float) -> np.ndarray:
    M, P, J, b, G = system(z, coupled, massless)
    K = np.block([[M, -J.T], [J, np.zeros((2, 2))]])
    return np.linalg.solve(K, np.concatenate([P + force * G, b]))[:4]


KINDS = [(False, False), (True, False), (False, True)]


@pytest.mark.parametrize(("coupled", "massless"), KINDS)
def test_control_constraints(coupled: bool, massless: bool) -> None:
    """With an unsymmetric matrix or massless speeds, u' was SINGULAR where cos z is zero."""
    u = me.dynamicsymbols("u:4")
    model = shears(coupled, massless, control=kg.ControlConstraints([u[3] - 1]))
    program, _ = assemble(kg.derive(model), BuildOptions.of("auto", ("rhs",)))
    for z in ANGLES:
        status, rates = interpret(program, CONTROLLED_RATES, values(z))
        assert status >= 0
        assert rates[4:8] == pytest.approx(accelerations(z, coupled, massless, FORCE), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("coupled", "massless"), KINDS)
def test_servo_constraints(coupled: bool, massless: bool) -> None:
    """z' + w' = t with an error that decays at the rate 1."""
    u = me.dynamicsymbols("u:4")
    model = shears(coupled, massless, control=kg.Servo(u[2] + u[3] - TIME, -1))
    program, _ = assemble(kg.derive(model), BuildOptions.of("auto", ("control",)))
    for z in ANGLES:
        status, (force,) = interpret(program, "control", values(z))
        assert status >= 0
        assert accelerations(z, coupled, massless, force)[2:].sum() == pytest.approx(1.0 - SPEED[2:].sum(), rel=1e-11)


@pytest.mark.parametrize(("coupled", "massless"), KINDS)
def test_underactuation(coupled: bool, massless: bool) -> None:
    """The equation without the control was SINGULAR where sin z or cos z is zero."""
    program, _ = assemble(kg.derive(shears(coupled, massless)), BuildOptions.of("auto", ("underactuation",)))
    for z in ANGLES:
        status, row = interpret(program, "underactuation", values(z))
        assert status >= 0
        assert np.linalg.norm(row[:4]) > 0.1
        for force in (FORCE, -3.0):
            udot = accelerations(z, coupled, massless, force)
            assert np.dot(row[:4], udot) == pytest.approx(row[4], abs=1e-12)


def test_several_equations_without_the_control() -> None:
    """Two equations, whose directions a constant row of the control fixes."""
    u, F = me.dynamicsymbols("u:4"), me.dynamicsymbols("F")
    q = me.dynamicsymbols("x y z w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P, R = O.locatenew("P", q[0] * N.x + q[1] * N.y + q[2] * N.z), O.locatenew("R", q[3] * N.x)
    model = kg.Model(
        name="pushed",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[a.diff(TIME) - b for a, b in zip(q, u, strict=True)],
        bodies=[me.Particle("P", P, 2), me.Particle("R", R, 3)],
        loads=[(P, (1 + F * sm.sin(q[2])) * N.x - N.y), (R, F * N.x)],
        inputs=(F,),
    )
    program, _ = assemble(kg.derive(model), BuildOptions.of("auto", ("underactuation",)))
    for z in ANGLES:
        status, rows = interpret(program, "underactuation", {**values(z), "g": []})
        rows = np.reshape(rows, (3, 5))
        force = np.array([1.0 + FORCE * np.sin(z), -1.0, 0.0, FORCE])
        assert status >= 0
        assert np.linalg.matrix_rank(rows[:, :4]) == 3
        assert rows[:, :4] @ (force / [2.0, 2.0, 2.0, 3.0]) == pytest.approx(rows[:, 4], abs=1e-12)


@pytest.mark.parametrize("d", [0.0, 1e-6, 0.5])
@pytest.mark.parametrize("resolution", ["moore_penrose", "ideal"])
def test_servo_constraint_on_a_speed_that_moves_no_mass_here(d: float, resolution: str) -> None:
    """The angle of a particle in the origin has no inertia: its constraint counted as fixed, since it was over zero."""
    q, u, F = me.dynamicsymbols("a d w"), me.dynamicsymbols("u:3"), me.dynamicsymbols("F")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    arm = N.orientnew("arm", "Axis", (q[0], N.z))
    P, R = O.locatenew("P", q[1] * arm.x), O.locatenew("R", q[2] * N.z)
    model = kg.Model(
        name="arm",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[x.diff(TIME) - v for x, v in zip(q, u, strict=True)],
        bodies=[me.Particle("P", P, 2), me.Particle("R", R, 3)],
        loads=[(R, F * N.z)],
        nonholonomic_constraints=[u[0] - u[2]],
        dependent_speeds=u[:1],
        inputs=(F,),
        control=kg.Servo(u[0] - 1, -1, resolution=resolution),
    )
    program, _ = assemble(kg.derive(model), BuildOptions.of("auto", ("control",)))
    state = {"t": [0.0], "q": [0.3, d, 0.1], "u": [0.2, 0.0, 0.2], "p": [], "r": [0.0], "free": [0.0] * 4, "g": [0.0]}
    status, (force,) = interpret(program, "control", state)
    assert status >= 0
    assert force == pytest.approx((3.0 + 2.0 * d * d) * 0.8)
