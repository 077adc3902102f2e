"""Servo-constraints against the oracle: their derivatives by differences along motions, and a system with all kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from oracle import DIGITS, Oracle, Reference
from oracle_instant import INNER_STEP, OUTER_STEP, Instant, derivative
from oracle_numerics import array, exact

import kanegen as kg


@dataclass(frozen=True)
class Plant:
    """The plant at one state: for chosen controls, what the oracle finds, and the servo-constraints' derivatives."""

    model: kg.Model
    oracle: Oracle
    t: float
    q: Sequence[float]
    u: Sequence[float]
    r: np.ndarray
    gains: tuple[Any, Any, Any] | None = None

    @property
    def slots(self) -> list[int]:
        return list(self.model.control.slots(self.model.inputs))

    def inputs(self, tau: Any) -> np.ndarray:
        r = np.array(self.r, dtype=float)
        r[self.slots] = tau
        return r

    def reference(self, tau: Any) -> Reference:
        return self.oracle(self.t, self.q, self.u, r=self.inputs(tau), gains=self.gains)

    def deviation(self, udot: Any, tau: Any) -> np.ndarray:
        """psi'' - Theta1 psi' - Theta2 psi, or psi' - Theta psi, along a motion with these accelerations."""
        servo = self.model.control
        with mpmath.workdps(DIGITS):
            values = array(self.model.parameters.values())
            state = Instant(self.oracle, exact(self.t), array(self.q), array(self.u), values, array(self.inputs(tau)))
            return np.array([float(self._deviation(state, array(udot), k)) for k in range(len(servo.constraints))])

    def _deviation(self, state: Instant, udot: Any, k: int) -> Any:
        psi = self.model.control.constraints[k]
        theta = [self.oracle.value(value, state) for value in self.model.control.theta[k]]
        if len(theta) == 1:
            rate = derivative(lambda s: self.oracle.value(psi, s), state, udot, OUTER_STEP)
            return rate - theta[0] * self.oracle.value(psi, state)

        def rate_at(s: Instant) -> Any:
            return derivative(lambda x: self.oracle.value(psi, x), s, None, INNER_STEP)

        second = derivative(rate_at, state, udot, OUTER_STEP)
        return second - theta[0] * rate_at(state) - theta[1] * self.oracle.value(psi, state)

    def system(self) -> tuple[np.ndarray, np.ndarray]:
        """S and z: the deviations are affine in the controls."""
        zero = np.zeros(len(self.slots))
        z = -self.deviation(self.reference(zero).udot, zero)
        units = np.eye(len(zero))
        return np.array([self.deviation(self.reference(unit).udot, unit) + z for unit in units]).T, z

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """J_s and b_s of the desired dynamics ``J_s u' = b_s``."""
        n_u = len(self.u)
        zero = np.zeros(len(self.slots))
        b = -self.deviation(np.zeros(n_u), zero)
        return np.array([self.deviation(unit, zero) + b for unit in np.eye(n_u)]).T, b

    def ideal_accelerations(self) -> np.ndarray:
        """u' with the servo-constraints as further passive constraints, at zero controls: one multiplier solve."""
        reference = self.reference(np.zeros(len(self.slots)))
        J_s, b_s = self.rows()
        J, b = np.vstack([reference.J, J_s]), np.concatenate([reference.b, b_s])
        n_u, n_c = len(self.u), len(b)
        matrix = np.block([[reference.Q, -J.T], [J, np.zeros((n_c, n_c))]])
        return np.linalg.solve(matrix, np.concatenate([reference.P, b]))[:n_u]


TARGET = 0.4


def rod(redundant: bool = False, dependent: Any = None, wind: float | None = 0.3, **servo: Any) -> kg.Model:
    """Two particles on a rod in a vertical plane (passive), three forces, two servo-constraints.

    A holonomic one tracks a prescribed input with its rates, a nonholonomic one the angular momentum about the origin,
    which depends on time. Loads depend on speeds and on an input that is no control.
    """
    x1, y1, x2, y2, v1, w1, v2, w2 = me.dynamicsymbols("x1 y1 x2 y2 v1 w1 v2 w2")
    F1, F2, F3, target, breeze = me.dynamicsymbols("F1 F2 F3 target wind")
    first, second = me.dynamicsymbols("target1 target2")
    m1, m2, l, k, d, g, s = sm.symbols("m1 m2 l k d g s")
    time = me.dynamicsymbols._t
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    A, B = O.locatenew("A", x1 * N.x + y1 * N.y), O.locatenew("B", x2 * N.x + y2 * N.y)
    A.set_vel(N, v1 * N.x + w1 * N.y)
    B.set_vel(N, v2 * N.x + w2 * N.y)
    length = ((x1 - x2) ** 2 + (y1 - y2) ** 2 - l**2) / 2
    spin = m1 * (x1 * w1 - y1 * v1) + m2 * (x2 * w2 - y2 * v2)
    return kg.Model(
        name="rod",
        frame=N,
        coordinates=(x1, y1, x2, y2),
        speeds=(v1, w1, v2, w2),
        kinematics=(x1.diff() - v1, y1.diff() - w1, x2.diff() - v2, y2.diff() - w2),
        bodies=(me.Particle("A", A, m1), me.Particle("B", B, m2)),
        loads=(
            (A, (F1 - k * x1 - d * v1 * sm.Abs(v1)) * N.x + F2 * sm.cos(x1) * N.y),
            (B, F3 * N.x + (breeze - d * w2) * N.y),
        ),
        gravity=-g * N.y,
        holonomic_constraints=(length, length * (1 + x1**2)) if redundant else (length,),
        dependent_speeds=dependent and tuple({"v1": v1, "w1": w1, "v2": v2, "w2": w2}[name] for name in dependent),
        inputs=(
            F1,
            kg.Input(target, rate=first, acceleration=second, default=TARGET),
            F2,
            kg.Input(breeze, default=wind),
            F3,
        ),
        parameters={m1: 1.2, m2: 0.8, l: 1.3, k: 2.0, d: 0.4, g: 9.81, s: 3.0},
        control=kg.Servo(
            (x2 - target, sm.Eq(spin, sm.sin(2 * time))),
            theta=((-2 * s, -(s**2)), -1.5),
            controls=(F1, F2, F3),
            **servo,
        ),
    )


def rod_state(seed: int, gains: bool = True) -> dict[str, Any]:
    """A random state off the manifolds, t != 0, with inputs and Baumgarte gains."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0.3, 1.2)
    end = np.array([0.7, 0.2]) + 1.25 * np.array([np.cos(angle), np.sin(angle)])
    return {
        "t": rng.uniform(0.5, 2.0),
        "q": np.array([0.7, 0.2, *end]) + rng.uniform(-0.1, 0.1, 4),
        "u": rng.uniform(-1.0, 1.0, 4),
        # F1, target, F2, wind, F3, then the rates of the target
        "r": np.array([0.0, TARGET, 0.0, rng.uniform(-1, 1), 0.0, rng.uniform(-1, 1), rng.uniform(-1, 1)]),
        "gains": (-6.0 * np.eye(1), -9.0 * np.eye(1), np.zeros((0, 0))) if gains else None,
    }


@cache
def rod_solver(form: str = "auto", **options: Any) -> kg.Solver:
    return kg.build(rod(**options), form=form, stabilization=kg.Baumgarte(3.0, 3.0))


@cache
def rod_oracle() -> Oracle:
    return Oracle(rod())


def line(n: int, **servo: Any) -> kg.Model:
    """n particles on a line, coupled by springs, a force on each; the distances of neighbors are prescribed."""
    x, v, F = (me.dynamicsymbols(f"{name}1:{n + 1}") for name in "xvF")
    k = sm.Symbol("k")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points = [O.locatenew(f"P{i}", x[i] * N.x) for i in range(n)]
    pulls = [k * (b - a) ** 3 for a, b in pairwise(x)]
    forces = [F[i] + (pulls[i] if i < n - 1 else 0) - (pulls[i - 1] if i else 0) for i in range(n)]
    return kg.Model(
        name="line",
        frame=N,
        coordinates=x,
        speeds=v,
        kinematics=[a.diff() - b for a, b in zip(x, v, strict=True)],
        bodies=[me.Particle(f"P{i}", point, 1 + sm.Rational(i, 3)) for i, point in enumerate(points)],
        loads=[(point, force * N.x) for point, force in zip(points, forces, strict=True)],
        inputs=F,
        parameters={k: 2.0},
        control=kg.Servo([b - a - 1 for a, b in pairwise(x)], theta=[(-2, -3)] * (n - 1), **servo),
    )
