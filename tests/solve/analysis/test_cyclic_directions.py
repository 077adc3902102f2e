"""Steady motions whose cyclic directions are combinations of coordinates, against closed forms."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from trim_models import point_masses

import kanegen as kg
from kanegen.solve.analysis.cyclic import cyclic_directions

FUNCTIONS = ("rhs", "residuals", "consistency", "jacobians")
DRIVE = {"I1": 0.02, "I2": 40.0, "I3": 7.0, "k": 900.0, "c": 4.0, "k2": 2.5e3, "c2": 9.0, "d": 3.0, "M": 0.5}
RATIO = 97


@cache
def drivetrain() -> kg.Solver:
    """Absolute angles a (motor), b and e (load) of three disks: an elastic gear with the ratio 97 between the
    first two, an elastic shaft between the others; a torque M on the motor, and a damper d on the load."""
    t = me.dynamicsymbols._t
    a, b, e, wa, wb, we = me.dynamicsymbols("a b e wa wb we")
    I1, I2, I3, k, c, k2, c2, d, M = sm.symbols("I1 I2 I3 k c k2 c2 d M")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bodies, frames = [], []
    for name, angle, speed, inertia in (("A", a, wa, I1), ("B", b, wb, I2), ("E", e, we, I3)):
        frame = N.orientnew(name, "Axis", (angle, N.z))
        frame.set_ang_vel(N, speed * N.z)
        frames.append(frame)
        bodies.append(me.RigidBody(name, O, frame, 1, (me.inertia(frame, 0, 0, inertia), O)))
    gear = k * (a / RATIO - b) + c * (wa / RATIO - wb)
    shaft = k2 * (b - e) + c2 * (wb - we)
    torques = (M - gear / RATIO, gear - shaft, shaft - d * we)
    return kg.build(
        kg.Model(
            name="drivetrain",
            frame=N,
            coordinates=(a, b, e),
            speeds=(wa, wb, we),
            kinematics=(wa - a.diff(t), wb - b.diff(t), we - e.diff(t)),
            bodies=tuple(bodies),
            loads=tuple((frame, torque * N.z) for frame, torque in zip(frames, torques, strict=True)),
            parameters=DRIVE,
        ),
        functions=FUNCTIONS,
    )


def drive_matrix(p: dict[str, float]) -> np.ndarray:
    """The closed form of the linear model in twist of the gear, twist of the shaft, and the three speeds."""
    n = RATIO
    return np.array(
        [
            [0, 0, 1 / n, -1, 0],
            [0, 0, 0, 1, -1],
            np.array([-p["k"], 0, -p["c"] / n, p["c"], 0]) / n / p["I1"],
            np.array([p["k"], -p["k2"], p["c"] / n, -p["c"] - p["c2"], p["c2"]]) / p["I2"],
            np.array([0, p["k2"], 0, p["c2"], -p["c2"] - p["d"]]) / p["I3"],
        ]
    )


@pytest.mark.parametrize("second", [1e-9, 1.0, 1e6])
def test_drivetrain_in_absolute_angles(second: float) -> None:
    """Only a - 97 b and b - e act; nothing was found, because each of the angles acts."""
    powers = {"k": -2, "c": -1, "k2": -2, "c2": -1, "d": -1, "M": -2}
    p = {name: value * second ** powers.get(name, 0) for name, value in DRIVE.items()}
    found = drivetrain().with_parameters(p).steady_motion([0.3, 0.1, -0.2], [1.0 / second, 0.0, 0.0])
    speed = RATIO * p["M"] / p["d"]
    np.testing.assert_allclose(found.u, [RATIO * speed, speed, speed], rtol=1e-9)
    twists = [found["a"] / RATIO - found["b"], found["b"] - found["e"]]
    np.testing.assert_allclose(twists, [RATIO * p["M"] / p["k"], RATIO * p["M"] / p["k2"]], rtol=1e-9)
    assert found.cyclic == ("a", "b", "e")
    assert (found.isolated, found.stability) == (True, "stable")
    expected = np.linalg.eigvals(drive_matrix(p))
    np.testing.assert_allclose(np.sort_complex(found.eigenvalues), np.sort_complex(expected), rtol=1e-8)


def test_carts_that_a_spring_connects() -> None:
    """Both roll at the speed V of the belt under them, and the spring holds what its damper does not."""
    m, k, c, F, V = sm.symbols("m k c F V")
    solver = kg.build(
        point_masses(
            "carts",
            "x1 x2",
            "v1 v2",
            lambda x1, x2: [(x1, 0, 0), (x2, 0, 0)],
            (m, 2 * m),
            loads=lambda q, u, points, N: [
                (points[0], (k * (q[1] - q[0]) - c * (u[0] - V) + F) * N.x),
                (points[1], (-k * (q[1] - q[0]) - c * (u[1] - V)) * N.x),
            ],
            parameters={m: 0.7, k: 30.0, c: 0.4, F: 0.5, V: 2.0},
        ),
        functions=FUNCTIONS,
    )
    found = solver.steady_motion([0.0, 0.3], [0.0, 0.0])
    speed = 2.0 + 0.5 / 0.8
    np.testing.assert_allclose(found.u, [speed, speed], rtol=1e-12)
    np.testing.assert_allclose(found["x1"] - found["x2"], 0.4 * (speed - 2.0) / 30.0, rtol=1e-10)
    assert found.cyclic == ("x1", "x2")
    assert (found.isolated, found.stability, len(found.linear.coordinates)) == (True, "stable", 1)
    with pytest.raises(kg.SolveError, match="v1'"):
        solver.equilibrium([0.0, 0.3])


def test_directions_in_any_units() -> None:
    """The heading is cyclic because the position is; a factor of a unit changes neither."""
    A = np.array(
        [
            [0.0, 0.0, 0.0, 1.0, 0.0],
            [0.0, 0.0, 0.0, 0.0, 1.0],
            [0.0, 3.0, 0.0, 0.0, 0.0],
            [0.0, 0.0, 0.0, -2.0, 1.0],
            [0.0, 0.0, 0.0, 0.0, -3.0],
        ]
    )
    for unit in (1e-9, 1.0, 1e6):
        scale = np.array([1.0, unit, unit, 1.0, unit])
        found = cyclic_directions([scale[:, None] * A / scale], 3)
        assert found.dropped == [0, 1, 2]
        np.testing.assert_array_equal(found.carried, np.eye(5)[:, :3])
    A[4, 0], A[4, 2] = -6.0, 2.0
    found = cyclic_directions([A], 3)
    assert len(found.dropped) == 1
    np.testing.assert_allclose(A @ found.carried, 0.0, atol=1e-14)
