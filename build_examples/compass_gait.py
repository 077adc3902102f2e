"""Gaits of a compass walker
=========================

A walker of two legs without knees: its gait of least effort on level ground, and its passive gait on a slope.

The hip has the mass ``m_H``; each leg has the mass ``m`` at the distance ``b`` from the hip and ``a`` from the foot.
q = (x, y, q1, q2): the place of the hip, with x along the ground and y normal to it, and the angles of both legs from
the normal, positive when the foot is ahead. u = q', named (vx, vy, w1, w2). The foot of leg 1 stands at the origin,
which two constraints say. Gravity ``g`` is inclined by the slope ``gamma`` of the ground, downhill in the direction of
x, and the torque T between the legs is the control.

A step is one phase, which begins where the last one ended: the legs change their roles, and the plastic impact of the
new stance foot changes the speeds (``kg.PlasticImpact``). As usual for this model, the swing foot may pass through the
ground in the middle of a step. On level ground the integral of T^2 is minimal for a step of ``STRIDE`` in ``TIME``. On
a slope of 3 degrees the walker needs no torque (Goswami, Thuilot and Espiau 1998, "A study of the passive gait of a
compass-like biped robot"). Spong and Bhatia 2003 ("Further results on control of the compass gait biped") give the
start of this gait: q1 = 0.2187, q2 = -0.3234 from the vertical, w1 = -1.0918, w2 = -0.3772.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"m_H": 10.0, "m": 5.0, "a": 0.5, "b": 0.5, "g": 9.81, "gamma": 0.0}
INITIAL: dict[str, Any] = {
    "t": 0.0,
    "q": (-np.sin(0.27), np.cos(0.27), 0.27, -0.27),
    "u": (np.cos(0.27), np.sin(0.27), -1.0, -0.4),
    "r": (0.0,),
}
STRIDE, TIME, SLOPE = 0.5, 0.7, np.radians(3.0)
PUBLISHED = (0.2187 + SLOPE, -0.3234 + SLOPE, -1.0918, -0.3772)
"""q1, q2, w1, w2 of the passive gait after the impact, with angles from the normal of the ground."""


def model() -> kg.Model:
    """The walker on the foot of leg 1, with the torque between the legs as its input."""
    x, y, q1, q2, vx, vy, w1, w2, T = me.dynamicsymbols("x y q1 q2 vx vy w1 w2 T")
    m_H, m, a, b, g, gamma = sm.symbols("m_H m a b g gamma")
    time = me.dynamicsymbols._t

    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    hip = O.locatenew("hip", x * N.x + y * N.y)
    hip.set_vel(N, vx * N.x + vy * N.y)
    legs, centers = [], []
    for k, (q, w) in enumerate(((q1, w1), (q2, w2)), start=1):
        leg = me.ReferenceFrame(f"leg{k}")
        leg.orient_axis(N, N.z, q)
        leg.set_ang_vel(N, w * N.z)
        center = hip.locatenew(f"center{k}", -b * leg.y)
        center.v2pt_theory(hip, N, leg)
        legs.append(leg)
        centers.append(center)
    foot = hip.pos_from(O) - (a + b) * legs[0].y
    return kg.Model(
        name="compass_gait",
        frame=N,
        coordinates=(x, y, q1, q2),
        speeds=(vx, vy, w1, w2),
        kinematics=(x.diff(time) - vx, y.diff(time) - vy, q1.diff(time) - w1, q2.diff(time) - w2),
        bodies=(
            me.Particle("hip", hip, m_H),
            me.Particle("leg 1", centers[0], m),
            me.Particle("leg 2", centers[1], m),
        ),
        gravity=g * (sm.sin(gamma) * N.x - sm.cos(gamma) * N.y),
        loads=((legs[0], -T * N.z), (legs[1], T * N.z)),
        inputs=(T,),
        holonomic_constraints=(foot.dot(N.x), foot.dot(N.y)),
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in (m_H, m, a, b, g, gamma)},
    )


@cache
def walker() -> kg.Model:
    return model()


CHANGE = kg.PlasticImpact({"x": None, "q1": me.dynamicsymbols("q2"), "q2": me.dynamicsymbols("q1"),
                           "w1": me.dynamicsymbols("w2"), "w2": me.dynamicsymbols("w1")})  # fmt: skip
"""Leg 2 becomes leg 1; its foot is at the origin of the next step, so that x jumps."""


def gait(duration: Any, guess: Any, slope: float, conditions: Any = ()) -> kg.OptimalMotion:
    """The step of least effort that goes on into itself."""
    T = walker().inputs[0].symbol
    step = kg.OptimalControl(
        walker(),
        minimize=kg.Integral(T**2),
        duration=duration,
        bounds={"q1": (-1.0, 1.0), "q2": (-1.0, 1.0)},
        subject_to=conditions,
        parameters={"gamma": slope},
        scheme="radau",
        intervals=40,
    )
    (motion,) = kg.Phases([step], closing=CHANGE).solve(guesses=[guess])
    return motion


@cache
def level() -> kg.OptimalMotion:
    """The gait of least effort on level ground, from legs that swing uniformly."""
    x = walker().coordinates[0]
    half, height = STRIDE / 2.0, np.sqrt(1.0 - STRIDE**2 / 4.0)
    swing = np.arcsin(half)
    guess = {"x": [-half, half], "y": [height, height], "q1": [swing, -swing], "q2": [-swing, swing]}
    return gait(TIME, guess, 0.0, [(kg.AtEnd(x) - kg.AtStart(x), STRIDE, STRIDE)])


@cache
def passive() -> kg.OptimalMotion:
    """The gait on the slope, from a simulation of a step that begins as the published one does."""
    q1, q2, w1, w2 = PUBLISHED
    solver = kg.build(walker()).with_parameters({"gamma": SLOPE})
    q0, u0 = [-np.sin(q1), np.cos(q1), q1, q2], [-w1 * np.cos(q1), -w1 * np.sin(q1), w1, w2]
    return gait((0.65, 0.9), solver.integrate((0.0, 0.73), q0, u0, {"T": 0.0}), SLOPE)


def simulate() -> tuple[kg.Solver, kg.Solution]:
    motion = level()
    return motion.solver, motion.solution


def mass_and_foot(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mass matrix, and the Jacobian matrix of the stance foot, written by hand."""
    _, _, q1, q2 = q
    m_H, m, a, b, _, _ = DEFAULTS.values()
    hip = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    first = np.array([[1.0, 0.0, np.cos(q1), 0.0], [0.0, 1.0, np.sin(q1), 0.0]])
    second = np.array([[1.0, 0.0, 0.0, np.cos(q2)], [0.0, 1.0, 0.0, np.sin(q2)]])
    legs = [hip + b * (leg - hip) for leg in (first, second)]
    return m_H * hip.T @ hip + sum(m * leg.T @ leg for leg in legs), hip + (a + b) * (first - hip)


def after_impact(q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """The state at the start of the next step, from that at the end of one."""
    q1, q2 = q[3], q[2]
    legs = np.array([-np.sin(q1), q[1], q1, q2])
    M, J = mass_and_foot(legs)
    K = np.block([[M, -J.T], [J, np.zeros((2, 2))]])
    before = u[[0, 1, 3, 2]]
    return np.concatenate([legs, np.linalg.solve(K, np.concatenate([M @ before, np.zeros(2)]))[:4]])


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    for name, motion in (("level", level()), ("passive", passive())):
        run, start = motion.solution, np.concatenate([motion.solution.q[0], motion.solution.u[0]])
        closed = np.abs(after_impact(run.q[-1], run.u[-1]) - start).max()
        yield f"{name}: the next step begins as this one (rad, rad/s)", closed, 1e-7
        yield f"{name}: error of mesh intervals against the integrator", motion.error, 1e-6
    yield "level: length of a step (m)", np.ptp(solution["x"][[0, -1]]) - STRIDE, 1e-8
    yield "passive: largest torque (N m)", np.abs(passive().solution["T"]).max(), 1e-6
    found = np.concatenate([passive().solution.q[0, 2:], passive().solution.u[0, 2:]])
    yield "passive: start against the published one (rad, rad/s)", np.abs(found - PUBLISHED).max(), 1e-3


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    left, right = figure.subfigures(1, 2, width_ratios=(2, 3))
    level().solution.plot("q1", "q2", "T", ax=left)
    axes = right.subplots(2, 1)
    for axis, motion, title in (
        (axes[0], level(), "level ground"),
        (axes[1], passive(), "slope of 3 degrees, no torque"),
    ):
        kg.plot.strobe(motion.solution, _legs, times=np.linspace(0.0, motion.duration, 9), ax=axis)
        axis.set_title(title)


def _legs(x: Any, y: Any, q1: Any, q2: Any) -> list[tuple[Any, Any]]:
    """Points from the stance foot over the hip to the swing foot."""
    return [(x + np.sin(q1), y - np.cos(q1)), (x, y), (x + np.sin(q2), y - np.cos(q2))]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
