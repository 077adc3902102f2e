"""Masses that are parameters and zero: pulleys and links without mass, in the form for massless parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises

import kanegen as kg

G = 9.81


def pulley() -> kg.Model:
    """Masses m and k on a rope over a pulley with the inertia I and the radius r."""
    x, y, a, v, w, o = me.dynamicsymbols("x y a v w o")
    m, k, M, I, r, g = sm.symbols("m k M I r g")
    N, D, O = me.ReferenceFrame("N"), me.ReferenceFrame("D"), me.Point("O")
    O.set_vel(N, 0)
    D.orient_axis(N, N.z, a)
    D.set_ang_vel(N, o * N.z)
    bodies: list[Any] = [me.RigidBody("pulley", O, D, M, (me.inertia(D, I, I, I), O))]
    for name, place, speed, mass in (("A", x, v, m), ("B", y, w, k)):
        point = O.locatenew(name, -place * N.y)
        point.set_vel(N, -speed * N.y)
        bodies.append(me.Particle(name, point, mass))
    return kg.Model(
        name="pulley",
        frame=N,
        coordinates=[x, y, a],
        speeds=[v, w, o],
        kinematics=[x.diff() - v, y.diff() - w, a.diff() - o],
        bodies=bodies,
        gravity=-g * N.y,
        nonholonomic_constraints=[v - r * o, w + r * o],
        parameters={m: 1.0, k: 3.0, M: 0.0, I: 0.0, r: 0.2, g: G},
    )


@pytest.mark.parametrize("form", ["augmented", "nonminimal", "reduced"])
@pytest.mark.parametrize("inertia", [0.0, 0.1])
def test_a_pulley_with_and_without_mass(form: str, inertia: float) -> None:
    """ "augmented" divided by the inertia, though its use is parts without mass."""
    solver = kg.build(pulley(), form=form).with_parameters(I=inertia)
    a = G * (1.0 - 3.0) / (4.0 + inertia / 0.04)
    np.testing.assert_allclose(solver.rhs(0.0, [0.0] * 3, [0.0] * 3)[1], [a, -a, a / 0.2], rtol=1e-12)
    fall = solver.integrate((0.0, 1.0), [0.0] * 3, [0.0] * 3)
    np.testing.assert_allclose(fall.q[-1], [a / 2, -a / 2, a / 0.4], rtol=1e-9)


@pytest.mark.parametrize("inertia", [1e-15, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3])
@pytest.mark.parametrize("units", [1e-9, 1.0, 1e9])
def test_an_inertia_that_is_tiny_beside_others_loses_no_digits(inertia: float, units: float) -> None:
    """ "augmented" eliminated the masses of the rope by that of the pulley: 1e-12 kg m^2 left five digits."""
    masses = {"m": units, "k": 3.0 * units, "I": inertia * units}
    solver = kg.build(pulley(), form="augmented").with_parameters(masses)
    a = G * (1.0 - 3.0) / (4.0 + inertia / 0.04)
    np.testing.assert_allclose(solver.rhs(0.0, [0.0] * 3, [0.0] * 3)[1], [a, -a, a / 0.2], rtol=1e-12)


def test_a_form_that_divides_by_the_mass_names_those_that_do_not() -> None:
    with raises(kg.SolveError, "I", '"augmented"', '"nonminimal"'):
        kg.build(pulley(), form="range_space").rhs(0.0, [0.0] * 3, [0.0] * 3)


LENGTHS = (0.5, 1.2, 0.9, 1.3)
"""Of crank, coupler, rocker and ground."""


def four_bar(mass: Any) -> kg.Model:
    """A planar four-bar in absolute angles; the coupler has this mass and its inertia ``mass l^2 / 12``."""
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    masses, bodies, tip, velocity = (1.0, mass, 2.0), [], 0 * N.x, 0 * N.x
    for k, (angle, speed, length, m) in enumerate(zip(q, u, LENGTHS, masses, strict=False)):
        along = sm.cos(angle) * N.x + sm.sin(angle) * N.y
        across = speed * (-sm.sin(angle) * N.x + sm.cos(angle) * N.y)
        center = O.locatenew(f"C{k}", tip + length / 2 * along)
        center.set_vel(N, velocity + length / 2 * across)
        frame = me.ReferenceFrame(f"B{k}")
        frame.orient_axis(N, N.z, angle)
        frame.set_ang_vel(N, speed * N.z)
        inertia = m * length**2 / 12
        bodies.append(me.RigidBody(f"link{k}", center, frame, m, (me.inertia(frame, 0, 0, inertia), center)))
        tip, velocity = tip + length * along, velocity + length * across
    closure = [tip.dot(N.x) - LENGTHS[3], tip.dot(N.y)]
    return kg.Model(
        name="four-bar",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[a.diff() - b for a, b in zip(q, u, strict=True)],
        bodies=bodies,
        gravity=-G * N.y,
        holonomic_constraints=closure,
        parameters={mass: 0.0},
    )


def expected(q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """u' of the four-bar without mass in its coupler: a KKT system of positions by hand."""
    l = np.array(LENGTHS[:3])
    along, across = np.array([np.cos(q), np.sin(q)]), np.array([-np.sin(q), np.cos(q)])
    M, P = np.zeros((3, 3)), np.zeros(3)
    for k, m in ((0, 1.0), (2, 2.0)):
        arms = np.array([l[i] if i < k else l[i] / 2 if i == k else 0.0 for i in range(3)])
        J = across * arms
        M += m * J.T @ J
        M[k, k] += m * l[k] ** 2 / 12
        P += J.T @ (m * (along @ (arms * u**2)) - [0.0, m * G])
    J = across * l
    K = np.block([[M, -J.T], [J, np.zeros((2, 2))]])
    return np.asarray(np.linalg.solve(K, np.append(P, along @ (l * u**2)))[:3])


@pytest.mark.parametrize("form", ["augmented", "nonminimal"])
def test_a_link_without_mass(form: str) -> None:
    solver = kg.build(four_bar(sm.Symbol("m_c")), form=form)
    q, u = solver.make_consistent(0.0, [1.0, 0.4, -1.5], [2.0, 0.0, 0.0], fixed=("q1", "u1"))
    np.testing.assert_allclose(solver.rhs(0.0, q, u)[1], expected(q, u), rtol=1e-10)
