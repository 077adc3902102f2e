"""Frequencies and deflections of beams against closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy.physics.mechanics as me
from scipy.optimize import brentq

import kanegen as kg

LENGTH, AREA, MOMENT, DENSITY, E, G, SHEAR = 2.0, 3e-3, 4e-6, 2700.0, 7e10, 2.6e10, 0.85
TIGHT = 1e-11


def beam(**options: Any) -> kg.Beam:
    section = {"length": LENGTH, "area": AREA, "second_moment": MOMENT, "density": DENSITY, "youngs_modulus": E}
    return kg.beam("beam", me.ReferenceFrame("A"), me.Point("P"), **{**section, **options})


def roots(function: Callable[[float], float], near: Any) -> np.ndarray:
    return np.array([brentq(function, x - 0.1, x + 0.1, xtol=1e-15) for x in near])


@pytest.mark.parametrize("supports", ["cantilever", "free", "clamped", "pinned"])
def test_frequencies_of_euler_and_bernoulli(supports: str) -> None:
    odd = (2 * np.arange(1, 7) - 1) * np.pi / 2
    cases = {
        "cantilever": lambda: roots(lambda x: np.cos(x) + 1 / np.cosh(x), [1.875, *odd[1:]]),
        "free": lambda: roots(lambda x: np.cos(x) - 1 / np.cosh(x), odd + np.pi),
        "clamped": lambda: roots(lambda x: np.cos(x) - 1 / np.cosh(x), odd + np.pi),
        "pinned": lambda: np.pi * np.arange(1, 7),
    }
    exact = cases[supports]() ** 2 * np.sqrt(E * MOMENT / (DENSITY * AREA)) / LENGTH**2
    np.testing.assert_allclose(beam(supports=supports, modes=6).frequencies, exact, rtol=TIGHT)


def test_frequencies_of_timoshenko() -> None:
    """Pinned ends: w = sin(k x) satisfies the equations, the lower one of two frequencies is that of bending."""
    k = np.pi * np.arange(1, 6) / LENGTH
    kG = SHEAR * G
    a, b, c = DENSITY**2 * MOMENT / kG, DENSITY * AREA + DENSITY * MOMENT * (1 + E / kG) * k**2, E * MOMENT * k**4
    exact = np.sqrt((b - np.sqrt(b**2 - 4 * a * c)) / (2 * a))
    made = beam(supports="pinned", theory="timoshenko", shear_modulus=G, shear_coefficient=SHEAR, modes=5)
    np.testing.assert_allclose(made.frequencies, exact, rtol=TIGHT)


def test_rotary_inertia_of_rayleigh() -> None:
    k = np.pi * np.arange(1, 5) / LENGTH
    exact = np.sqrt(E * MOMENT * k**4 / (DENSITY * AREA + DENSITY * MOMENT * k**2))
    np.testing.assert_allclose(beam(supports="pinned", rotary_inertia=True, modes=4).frequencies, exact, rtol=TIGHT)


@pytest.mark.parametrize(("supports", "first"), [("cantilever", 0.5), ("free", 1.0), ("clamped", 1.0)])
@pytest.mark.parametrize("kind", ["stretch", "twist"])
def test_frequencies_of_bars(supports: str, first: float, kind: str) -> None:
    speed = np.sqrt((E if kind == "stretch" else G * 0.7) / DENSITY)
    exact = (first + np.arange(3)) * np.pi / LENGTH * speed
    options = {"stretch": {"stretch_modes": 3}, "twist": {"twist_modes": 3, "torsion_constant": 1.4 * MOMENT}}[kind]
    made = beam(supports=supports, modes=0, shear_modulus=G, **options)
    np.testing.assert_allclose(made.frequencies, exact, rtol=TIGHT)


def test_directions_have_their_own_second_moments() -> None:
    made = beam(second_moment=(MOMENT, 4 * MOMENT), bending="yz", modes=1)
    assert made.frequencies[1] == pytest.approx(2 * made.frequencies[0], rel=TIGHT)
    end = made.names["end"]
    assert np.count_nonzero(made.data.modes[0, end]) == 1
    assert made.data.modes[0, end, 1] == pytest.approx(1.0)
    assert made.data.modes[1, end, 2] == pytest.approx(1.0)
    assert made.data.rotations[0, end, 2] > 0.0 > made.data.rotations[1, end, 1]


@pytest.mark.parametrize("theory", ["euler_bernoulli", "timoshenko"])
def test_polynomials_have_the_deflection_under_a_force_at_the_end(theory: str) -> None:
    made = beam(theory=theory, shapes="polynomials", modes=3, shear_modulus=G, shear_coefficient=SHEAR)
    end = made.names["end"]
    shape, turn = made.data.modes[:, end, 1], made.data.rotations[:, end, 2]
    flexibility = np.linalg.inv(made.data.stiffness)
    shear = LENGTH / (SHEAR * G * AREA) if theory == "timoshenko" else 0.0
    assert shape @ flexibility @ shape == pytest.approx(LENGTH**3 / (3 * E * MOMENT) + shear, rel=1e-12)
    assert turn @ flexibility @ shape == pytest.approx(LENGTH**2 / (2 * E * MOMENT), rel=1e-12)
    assert turn @ flexibility @ turn == pytest.approx(LENGTH / (E * MOMENT), rel=1e-12)


def test_strain_is_curvature_times_distance() -> None:
    """The static shape under a force at the end: strain -y F (L - x) / (E I)."""
    made = beam(shapes="polynomials", modes=2, stretch_modes=1)
    force, end = 50.0, made.names["end"]
    eta = np.linalg.solve(made.data.stiffness, force * made.data.modes[:, end, 1])
    at = dict(zip(made.coordinates, eta, strict=True))
    for x in (0.0, 0.5, 2.0):
        exact = -0.02 * force * (LENGTH - x) / (E * MOMENT)
        assert float(made.strain(x, y=0.02).subs(at)) == pytest.approx(exact, rel=1e-11, abs=1e-18)
        assert float(made.stress(x, y=0.02).subs(at)) == pytest.approx(E * exact, rel=1e-11, abs=1e-7)


def test_shortening_is_that_of_the_slope() -> None:
    """The end of a beam that bends by eta approaches the start by half of the integral of the squared slope."""
    made = beam(shapes="polynomials", modes=1)  # constant curvature: w = x^2 / L^2 eta
    (eta,) = made.coordinates
    x, y, _ = made.point("end").pos_from(made.origin).to_matrix(made.frame).subs(made.parameters).subs(eta, 0.1)
    assert float(y) == pytest.approx(0.1, rel=1e-13)
    assert float(x) == pytest.approx(LENGTH - 0.1**2 * 4 / 3 / LENGTH / 2, rel=1e-13)


def test_third_order_is_an_arc() -> None:
    """Constant curvature: the end is on a circle up to terms of fourth order along and fifth order across."""
    made = beam(shapes="polynomials", modes=1, third_order=True)
    (eta,) = made.coordinates
    end = made.point("end").pos_from(made.origin).to_matrix(made.frame).subs(made.parameters)
    for angle in (0.1, 0.2):
        x, y, _ = map(float, end.subs(eta, angle * LENGTH / 2))
        assert abs(x - LENGTH * np.sin(angle) / angle) < LENGTH * angle**4 / 100
        assert abs(y - LENGTH * (1 - np.cos(angle)) / angle) < LENGTH * angle**5 / 500


def test_damping_ratio_is_that_of_every_vibration() -> None:
    made = beam(shapes="polynomials", modes=3, damping_ratio=0.02)
    n = 3
    rates = np.block([[np.zeros((n, n)), np.eye(n)], [-made.data.stiffness, -made.data.damping]])
    rates[n:] = np.linalg.solve(made.data.mass_matrix, rates[n:])
    poles = np.linalg.eigvals(rates)
    np.testing.assert_allclose(-poles.real / np.abs(poles), 0.02, rtol=1e-9)
