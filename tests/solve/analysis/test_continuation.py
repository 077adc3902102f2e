"""Steady states along a parameter, against closed forms: a pitchfork, a fold, and the modes of the bicycle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import sympy.physics.mechanics as me
from messages import raises
from scipy.optimize import minimize_scalar
from state_models import point_mass
from systems import example
from trim_models import CAR, HOOP, TRUSS, car, grain_solver, hoop_solver, truss_solver

import kanegen as kg

POSITION = 1e-12
"""Newton's method converges to rounding; coordinates are of order one."""


def force(y: np.ndarray) -> np.ndarray:
    """The load that holds the truss at y."""
    k, b, h = TRUSS["k"], TRUSS["b"], TRUSS["h"]
    length = np.hypot(b, y)
    return -2 * k * (length - np.hypot(b, h)) * y / length


def test_bead_leaves_the_bottom_of_the_hoop_at_the_pitchfork() -> None:
    """cos theta = g / (R Omega^2) for fast hoops, theta = 0 for slow ones: Omega^2 = g / R between them."""
    R, g = HOOP["R"], HOOP["g"]
    branch = hoop_solver().equilibria("Omega", np.linspace(10.0, 2.0, 17), [1.0])
    expected = np.arccos(np.minimum(1.0, g / (R * branch.values**2)))
    np.testing.assert_allclose(branch["theta"], expected, atol=1e-9)
    assert branch.jumps == ()
    theta, Omega = branch["theta"], branch.values
    squares = Omega**2 * np.cos(2 * theta) - g / R * np.cos(theta)  # theta'' = squares * d theta
    np.testing.assert_allclose(branch.eigenvalues**2, np.column_stack([squares, squares]), atol=1e-7)


def test_curve_of_the_truss_passes_the_fold() -> None:
    """Snap-through: stable until the load is largest, then unstable, down to the flat truss at y = 0."""
    curve = truss_solver().equilibrium_curve("load", (0.0, 80.0), [0.5])
    y = curve["y"]
    np.testing.assert_allclose(curve.values, force(y), atol=1e-9)
    np.testing.assert_allclose([y[0], y[-1]], [0.5, 0.0], atol=POSITION)
    fold = minimize_scalar(lambda x: -force(x), bounds=(0.1, 0.5), method="bounded", options={"xatol": 1e-12})
    assert curve.values.max() <= -fold.fun
    np.testing.assert_allclose(curve.values.max(), -fold.fun, rtol=1e-3)
    assert set(np.array(curve.stability)[y > fold.x + 1e-6]) == {"stable"}
    assert set(np.array(curve.stability)[y < fold.x - 1e-6]) == {"unstable"}


def test_natural_continuation_ends_at_the_fold() -> None:
    truss = truss_solver()
    branch = truss.equilibria("load", np.linspace(0.0, 40.0, 9), [0.5])
    np.testing.assert_allclose(branch.values, force(branch["y"]), atol=1e-9)
    with raises(kg.SolveError, "load", "45", "truss", "equilibrium_curve"):
        truss.equilibria("load", [0.0, 20.0, 40.0, 45.0], [0.5])


def test_curve_along_a_parameter() -> None:
    """The unloaded truss is at rest at its height, whatever that is."""
    curve = truss_solver().equilibrium_curve("h", (0.5, 0.2), [0.5])
    np.testing.assert_allclose(curve["y"], curve.values, atol=POSITION)
    assert curve.values[-1] == 0.2


def test_car_lifts_off_along_the_force() -> None:
    """z2 = -(weight - push) / k2 while the tire touches; nothing holds the car beyond, which is an error."""
    m1, m2, _, _, k2, _, g = CAR.values()
    weight = (m1 + m2) * g
    branch = car().equilibria("push", np.linspace(0.0, 0.9 * weight, 4), [0.0, 0.0])
    np.testing.assert_allclose(branch["z2"], -(weight - branch.values) / k2, atol=POSITION)
    with raises(kg.SolveError, "push", "v1'"):
        car().equilibria("push", [0.9 * weight, 1.1 * weight], [0.0, 0.0])


def test_modes_of_the_bicycle_over_the_speed() -> None:
    """The published eigenvalues from 1 to 9 m/s; stable between 4.29 and 6.02 m/s (Meijaard and others 2007)."""
    bicycle = example("whipple_bicycle")
    branch = bicycle.solver().steady_motions("u_x", np.arange(1.0, 10.0), *bicycle.upright(1.0))
    for speed, found, stability in zip(branch.values, branch.eigenvalues, branch.stability, strict=True):
        for value in bicycle.EIGENVALUES[int(speed)]:
            assert np.abs(found - value).min() < 1e-9
        assert stability == ("stable" if speed in (5.0, 6.0) else "unstable")
    assert branch.q.shape == (9, 8)
    assert branch.u.shape == (9, 8)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: truss_solver().equilibria("lode", [0.0]), ("'lode'", "load")),
        (lambda: truss_solver().equilibria("load", []), ("values",)),
        (lambda: truss_solver().equilibria("load", [0.0, np.nan], [0.5]), ("values", "nan")),
        (lambda: truss_solver().equilibrium_curve("y", (0.5, 0.2), [0.5]), ("'y'", "load", "k")),
        (lambda: truss_solver().equilibrium_curve("load", (1.0,), [0.5]), ("limits", "(1.0,)", "2")),
        (lambda: truss_solver().equilibrium_curve("load", (1.0, 1.0), [0.5]), ("limits", "1.0")),
        (lambda: truss_solver().equilibrium_curve("load", (0.0, 80.0), [0.5], step=0.0), ("step", "0.0")),
        (lambda: truss_solver().equilibrium_curve("load", (0.0, 80.0), [0.5], max_steps=0), ("max_steps", "0")),
        (lambda: truss_solver().equilibrium_curve("load", (0.0, 80.0), [0.5], max_steps=3), ("load", "max_steps", "3")),
        (lambda: grain_solver().equilibrium_curve("m", (0.5, 2.0), [0.1, 0.005]), ("grain", "m", "equilibria")),
    ],
)
def test_arguments_are_checked(call: Callable[[], object], names: tuple[str, ...]) -> None:
    with raises(kg.SolveError, *names):
        call()


def test_time_zero_is_a_time() -> None:
    """The search is at t = 0, although the start of the model is at t = 1."""
    x, push = me.dynamicsymbols("x F")
    options = {"inputs": [push], "initial": {"t": 1.0}, "parameters": {"m": 1.0}}
    solver = kg.build(point_mass("pushed", push - x, **options), functions="all")
    branch = solver.equilibria("m", [1.0, 2.0], [0.0], r={push: lambda t: 3.0 + t}, t=0.0)
    np.testing.assert_allclose(branch["x"], 3.0, atol=POSITION)
