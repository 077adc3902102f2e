"""The double pendulum at its obstacle, by SciPy: Lagrange's equations by hand, and one run for each stretch of contact.

Laws are functions of the penetration x and its rate: ``acceleration(x, rate)`` is the x'' that the contact enforces,
``force(x, rate)`` the contact force. Either acts while x > 0 and the force is compressive. Nothing of kanegen is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import cos, sin
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

RTOL, ATOL = 1e-13, 1e-14
# SciPy does not see a flight that is shorter than a step, s.
SHORT_FLIGHT = 1e-3
Law = Callable[[float, float], float]


class Instant(NamedTuple):
    """What the equations need at a state: mass matrix, right side, row of the gap -x, its rest, and the free motion."""

    Q: np.ndarray
    P: np.ndarray
    normal: np.ndarray
    curvature: float
    x: float
    rate: float


def instant(y: np.ndarray, p: Mapping[str, float], level: float) -> Instant:
    """The equations at y = (q, u); x = R cos th1 + L cos th2 - R - ``level``."""
    th1, th2, u1, u2 = y
    R, L, m, g = p["R"], p["L"], p["m_B"], p["g"]
    h, tau1, tau2 = m * R * L / 2, p.get("tau1", 0.0), p.get("tau2", 0.0)
    c12, s12 = cos(th1 - th2), sin(th1 - th2)
    Q = np.array([[m * R**2 + p["I_D"], h * c12], [h * c12, m * L**2 / 4 + p["I_B"]]])
    P = np.array(
        [
            -m * g * R * sin(th1) - h * s12 * u2**2 + tau1 - tau2,
            -m * g * L / 2 * sin(th2) + h * s12 * u1**2 + tau2,
        ]
    )
    normal = np.array([R * sin(th1), L * sin(th2)])
    curvature = R * cos(th1) * u1**2 + L * cos(th2) * u2**2
    return Instant(Q, P, normal, curvature, R * cos(th1) + L * cos(th2) - R - level, -float(normal @ [u1, u2]))


@dataclass(frozen=True)
class Pendulum:
    """The pendulum with a law, which gives an acceleration or a force (``quantity``).

    ``factor``: for a law that vanishes with x, the factor of it whose sign says whether the force is compressive. The
    law itself and x would fall through zero at the same instant, and rounding would decide which of them SciPy sees.
    """

    parameters: Mapping[str, float]
    level: float
    law: Law
    quantity: str
    factor: Law | None = None

    def force(self, y: np.ndarray) -> float:
        """The contact force that the law asks for, whatever its sign."""
        now = instant(y, self.parameters, self.level)
        if self.quantity == "force":
            return self.law(now.x, now.rate)
        free = now.normal @ np.linalg.solve(now.Q, now.P) + now.curvature
        wanted = -self.law(now.x, now.rate)
        return float((wanted - free) / (now.normal @ np.linalg.solve(now.Q, now.normal)))

    def compression(self, y: np.ndarray) -> float:
        """Positive while the force is compressive."""
        if self.factor is None:
            return self.force(y)
        now = instant(y, self.parameters, self.level)
        return self.factor(now.x, now.rate)

    def rates(self, y: np.ndarray, acting: bool) -> np.ndarray:
        now = instant(y, self.parameters, self.level)
        pushed = now.P + now.normal * self.force(y) if acting else now.P
        return np.concatenate([y[2:], np.linalg.solve(now.Q, pushed)])

    def penetration(self, y: np.ndarray) -> float:
        return instant(y, self.parameters, self.level).x

    def run(self, y: np.ndarray, t_end: float) -> tuple[list[tuple[float, str]], np.ndarray]:
        """Switches (time, new mode) from an open start at t = 0, and the state at ``t_end``."""
        t, mode, switches = 0.0, "open", []
        while True:
            followers = FOLLOWERS[mode]
            run = solve_ivp(
                lambda _, y, acting: self.rates(y, acting),
                (t, t_end),
                y,
                method="DOP853",
                rtol=RTOL,
                atol=ATOL,
                events=[_Crossing(getattr(self, quantity), rising) for quantity, rising, _ in followers],
                args=(mode == "closed",),
            )
            t, y = float(run.t[-1]), run.y[:, -1]
            if run.status != 1:
                return switches, y
            mode = next(follower[2] for follower, times in zip(followers, run.t_events, strict=True) if len(times))
            switches.append((t, mode))


# Per mode: what crosses zero, whether it rises, and the mode after that.
FOLLOWERS = {
    "open": (("penetration", 1.0, "closed"),),
    "closed": (("penetration", -1.0, "open"), ("compression", -1.0, "penetrated")),
    "penetrated": (("penetration", -1.0, "open"), ("compression", 1.0, "closed")),
}


@dataclass(frozen=True)
class _Crossing:
    """A terminal event of SciPy's."""

    quantity: Callable[[np.ndarray], float]
    direction: float
    terminal: bool = True

    def __call__(self, t: float, y: np.ndarray, acting: bool) -> float:
        return self.quantity(y)


def bounces(
    p: Mapping[str, float], level: float, e: float, y: np.ndarray, count: int
) -> tuple[list[tuple[float, float]], np.ndarray]:
    """The first impacts with the coefficient of restitution e: time and the energy lost in theory; the state after."""
    free = Pendulum(p, level, lambda x, rate: 0.0, "force")
    t, impacts = 0.0, []
    for _ in range(count):
        run = solve_ivp(
            lambda _, y, acting: free.rates(y, acting),
            (t, t + 10.0),
            y,
            method="DOP853",
            rtol=RTOL,
            atol=ATOL,
            max_step=SHORT_FLIGHT,
            events=[_Crossing(free.penetration, 1.0)],
            args=(False,),
        )
        t, y = float(run.t[-1]), run.y[:, -1]
        now = instant(y, p, level)
        answer = np.linalg.solve(now.Q, now.normal)
        response = float(now.normal @ answer)
        impacts.append((t, (1.0 - e**2) * now.rate**2 / (2.0 * response)))
        y = np.concatenate([y[:2], y[2:] + (1.0 + e) * now.rate / response * answer])
    return impacts, y
