"""A thin disk on a plane with Coulomb friction: Newton's and Euler's equations with the contact forces as unknowns.

Written by hand in the frame (i0, j0, k0) that leans with the disk and does not spin with it; integrated with SciPy's
DOP853. Nothing of kanegen is used. q = (theta, phi, psi, X, Y, Z), u = (theta', phi' sin theta, phi' cos theta + psi',
X', Y', Z') as in the example ``rolling_disk``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import cos, sin
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

RTOL, ATOL = 1e-12, 1e-13
# Slip velocity, m/s, from which the rest of the way to rolling is extrapolated linearly: the error is of its square.
LAST_SLIP = 1e-7


class Forces(NamedTuple):
    """Rates of the speeds (6,) and the force of the plane: friction along X and Y, and the normal force, N."""

    udot: np.ndarray
    friction: np.ndarray
    normal: float


class Onset(NamedTuple):
    """When and where slip ends, and the friction that rolling needs there."""

    t: float
    q: np.ndarray
    u: np.ndarray
    rolling: Forces


def slip_velocity(q: np.ndarray, u: np.ndarray, p: Mapping[str, float]) -> np.ndarray:
    """Velocity of the disk's lowest point along X and Y, m/s."""
    R, (theta, phi) = p["R"], q[:2]
    return np.array(
        [
            u[3] - R * sin(phi) * sin(theta) * u[0] + R * cos(phi) * u[2],
            u[4] + R * cos(phi) * sin(theta) * u[0] + R * sin(phi) * u[2],
        ]
    )


def forces(q: np.ndarray, u: np.ndarray, p: Mapping[str, float], direction: np.ndarray | None) -> Forces:
    """Accelerations and contact force: slip along the unit vector ``direction``, or rolling (None)."""
    m, R, g = p["m"], p["R"], p["g"]
    (st, ct), (sp, cp) = (sin(q[0]), cos(q[0])), (sin(q[1]), cos(q[1]))
    u1, u2, u3 = u[:3]
    phi_rate = u2 / st
    A, C = m * R**2 / 4, m * R**2 / 2
    spin = np.cross([u1, u2, phi_rate * ct], [A * u1, A * u2, C * u3])
    i0, k0 = np.array([cp, sp, 0.0]), np.array([sp * st, -cp * st, ct])
    # Unknowns: the six accelerations, then the force on X, Y, Z. The arm from the center to the contact is -R j0.
    matrix, right = np.zeros((9, 9)), np.zeros(9)
    matrix[:3, :3] = np.diag([A, A, C])
    matrix[0, 6:], matrix[2, 6:] = R * k0, -R * i0
    right[:3] = -spin
    matrix[3:6, 3:6], matrix[3:6, 6:] = m * np.eye(3), -np.eye(3)
    right[5] = -m * g
    matrix[6, 5], matrix[6, 0], right[6] = 1.0, -R * ct, -R * st * u1**2
    if direction is None:
        matrix[7, [3, 2, 0]] = 1.0, R * cp, -R * sp * st
        matrix[8, [4, 2, 0]] = 1.0, R * sp, R * cp * st
        right[7] = R * (u3 * sp * phi_rate + u1 * (cp * phi_rate * st + sp * ct * u1))
        right[8] = R * (-u3 * cp * phi_rate + u1 * (sp * phi_rate * st - cp * ct * u1))
    else:
        matrix[7:, 6:8] = np.eye(2)
        matrix[7:, 8] = p["mu"] * direction
    solution = np.linalg.solve(matrix, right)
    return Forces(solution[:6], solution[6:8], float(solution[8]))


def _rates(y: np.ndarray, p: Mapping[str, float], slipping: bool) -> np.ndarray:
    q, u = y[:6], y[6:]
    v = slip_velocity(q, u, p)
    contact = forces(q, u, p, v / np.hypot(*v) if slipping else None)
    phi_rate = u[1] / sin(q[0])
    qdot = [u[0], phi_rate, u[2] - phi_rate * cos(q[0]), *u[3:]]
    return np.concatenate([qdot, contact.udot])


@dataclass(frozen=True)
class _Remaining:
    """The slip velocity left, as a terminal event of SciPy's."""

    p: Mapping[str, float]
    terminal: bool = True

    def __call__(self, t: float, y: np.ndarray) -> float:
        return float(np.hypot(*slip_velocity(y[:6], y[6:], self.p))) - LAST_SLIP


def onset_of_rolling(q: Any, u: Any, p: Mapping[str, float], t_end: float) -> Onset:
    """Integrate the slip from t = 0 until it ends."""

    run = solve_ivp(
        lambda t, y: _rates(y, p, slipping=True),
        (0.0, t_end),
        np.concatenate([q, u]),
        method="DOP853",
        rtol=RTOL,
        atol=ATOL,
        events=_Remaining(p),
    )
    y, rates = run.y[:, -1], _rates(run.y[:, -1], p, slipping=True)
    v = slip_velocity(y[:6], y[6:], p)
    h = 1e-6
    later = slip_velocity(y[:6] + h * rates[:6], y[6:] + h * rates[6:], p)
    rest = float(-(v @ v) / (v @ (later - v) / h))
    y = y + rest * rates
    return Onset(float(run.t[-1]) + rest, y[:6], y[6:], forces(y[:6], y[6:], p, None))


def rolled(onset: Onset, p: Mapping[str, float], t_end: float) -> np.ndarray:
    """State (12,) at ``t_end`` after rolling from the onset on."""
    run = solve_ivp(
        lambda t, y: _rates(y, p, slipping=False),
        (onset.t, t_end),
        np.concatenate([onset.q, onset.u]),
        method="DOP853",
        rtol=RTOL,
        atol=ATOL,
    )
    return np.asarray(run.y[:, -1])
