"""Sampled PID controller
======================

A crane whose trolley is positioned by a sampled PID controller that reads an encoder.

The trolley of mass ``m_t`` moves on a horizontal rail, with x to the right and the viscous friction ``b``. The load of
mass ``m_l`` hangs on a massless rod of length ``l``; theta is its angle from the downward vertical, positive when the
load is to the right. Gravity ``g`` acts downward, and a constant wind pushes the trolley with the force ``W`` to the
left. u = (x', theta'), named ``v`` and ``w``; the input is the force ``F`` on the trolley, with ``|F| <= F_max``.

Every millisecond the controller reads the encoder, ``y = res floor(x / res)``, and computes the force that acts until
the next sample (Astrom and Wittenmark 1997, "Computer-Controlled Systems", section 8.5):

    F = Kp e + I - Kd D          e = x_ref - y
    I <- I + Ki T e              only while F is not at its limit
    D <- p D + (1 - p) (y - y of the last sample) / T,  p = exp(-T / T_f)

It is the class ``Controller``, ordinary Python with its own memory, which ``integrate(r=controller, sample_time=T)``
calls.

A law without memory can be part of the model: ``model()`` has the PD law ``Kp e - Kd v``, with the encoder and a speed
sensor, as ``kg.Input(F, law=..., sample_time=T)``, which runs without Python. The script compares the motion under the
PID controller with equations written by hand and integrated by SciPy from sample to sample, and the compiled PD law
with the same law in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import cos, exp, floor, sin
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import solve_ivp

import kanegen as kg

T = 1e-3
"""Sample time, s."""
END = 8.0
DEFAULTS = {
    **{"m_t": 2.0, "m_l": 1.0, "l": 0.5, "g": 9.81, "b": 1.5, "W": 1.5},
    **{"Kp": 30.0, "Ki": 8.0, "Kd": 12.0, "T_f": 5e-3, "F_max": 8.0, "x_ref": 0.5, "res": 5e-4},
}
INITIAL: dict[str, Any] = {"t": 0.0, "q": (0.0, 0.0), "u": (0.0, 0.0), "r": None}


def model() -> kg.Model:
    """The crane with the compiled PD law of its force."""
    x, theta, v, w, F = me.dynamicsymbols("x theta v w F")
    m_t, m_l, l, g, b, W, Kp, Kd, F_max, x_ref, res = sm.symbols("m_t m_l l g b W Kp Kd F_max x_ref res")
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    trolley = O.locatenew("trolley", x * N.x)
    trolley.set_vel(N, v * N.x)
    rod = me.ReferenceFrame("rod")
    rod.orient_axis(N, N.z, theta)
    rod.set_ang_vel(N, w * N.z)
    load = trolley.locatenew("load", -l * rod.y)
    load.v2pt_theory(trolley, N, rod)

    law = Kp * (x_ref - res * sm.floor(x / res)) - Kd * v
    return kg.Model(
        name="sampled_pid",
        frame=N,
        coordinates=(x, theta),
        speeds=(v, w),
        kinematics=(v - x.diff(time), w - theta.diff(time)),
        bodies=(me.Particle("trolley", trolley, m_t), me.Particle("load", load, m_l)),
        gravity=-g * N.y,
        loads=((trolley, (F - b * v - W) * N.x),),
        inputs=(kg.Input(F, law=law, saturation=(-F_max, F_max), sample_time=T),),
        parameters={name: value for name, value in DEFAULTS.items() if name not in ("Ki", "T_f")},
        units={x: "m", theta: "deg", w: "deg/s", res: "mm"},
    )


class Controller:
    """The PID controller; ``p`` are its settings."""

    def __init__(self, p: Mapping[str, float]) -> None:
        self.p = p
        self.integral = self.derivative = 0.0
        self.last: float | None = None

    def __call__(self, t: float, q: np.ndarray, u: np.ndarray) -> tuple[float]:
        """The force for one sample; of the state it reads the encoder only."""
        p, y = self.p, self.p["res"] * floor(q[0] / self.p["res"])
        e, memory = p["x_ref"] - y, exp(-T / p["T_f"])
        self.derivative = memory * self.derivative + (1 - memory) * (y - (y if self.last is None else self.last)) / T
        self.last = y
        force = p["Kp"] * e + self.integral - p["Kd"] * self.derivative
        limited = min(max(force, -p["F_max"]), p["F_max"])
        if force == limited:
            self.integral += p["Ki"] * T * e
        return (limited,)


def pd_law(p: Mapping[str, float]) -> Callable[..., tuple[float]]:
    """The law of the model, in Python."""

    def force(t: float, q: np.ndarray, u: np.ndarray) -> tuple[float]:
        value = p["Kp"] * (p["x_ref"] - p["res"] * floor(q[0] / p["res"])) - p["Kd"] * u[0]
        return (min(max(value, -p["F_max"]), p["F_max"]),)

    return force


def simulate(**parameters: float) -> tuple[kg.Solver, kg.Solution]:
    settings = {**DEFAULTS, **parameters}
    solver = kg.build(model()).with_parameters({k: v for k, v in parameters.items() if k not in ("Ki", "T_f")})
    return solver, run(solver, END, Controller(settings))


def run(solver: kg.Solver, end: float, controller: Callable[..., Any] | None) -> kg.Solution:
    """The motion under a controller in Python, or under the law of the model."""
    sampling: dict[str, Any] = {} if controller is None else {"r": controller, "sample_time": T}
    return solver.integrate((0.0, end), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12, **sampling)


def by_hand(p: Mapping[str, float], y: np.ndarray, force: float) -> np.ndarray:
    """y' for y = (x, theta, x', theta'), written by hand."""
    _, theta, v, w = y
    c, s, total = cos(theta), sin(theta), force - p["b"] * v - p["W"]
    a = (total + p["m_l"] * s * (p["l"] * w**2 + p["g"] * c)) / (p["m_t"] + p["m_l"] * s**2)
    return np.array([v, w, a, -(p["g"] * s + c * a) / p["l"]])


def sampled_by_scipy(p: Mapping[str, float], controller: Callable[..., Any], samples: int) -> np.ndarray:
    """(x, theta, x', theta') after each sample, (samples + 1, 4), each interval integrated by SciPy."""
    motion = [np.array([*INITIAL["q"], *INITIAL["u"]])]
    for k in range(samples):
        (force,) = controller(k * T, motion[-1][:2], motion[-1][2:])
        span, options = (k * T, (k + 1) * T), {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14}
        motion.append(solve_ivp(lambda t, y, force=force: by_hand(p, y, force), span, motion[-1], **options).y[:, -1])
    return np.array(motion)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    p = {**DEFAULTS, **solver.parameters}
    samples = 500
    peer = sampled_by_scipy(p, Controller(p), samples)
    motion = np.hstack(solution(np.arange(samples + 1) * T))
    yield f"motion against SciPy, {samples} samples", np.abs(motion - peer).max(), 1e-8
    compiled, in_python = (np.hstack(run(solver, 2.0, law).last[1:]) for law in (None, pd_law(p)))
    yield "compiled PD law against the same law in Python", np.abs(compiled - in_python).max(), 1e-9
    yield "largest force over its limit", np.abs(solution["F"]).max() / p["F_max"] - 1.0, 1e-15
    late = solution["x"][solution.t > END - 1.0]
    yield "distance from x_ref in the last second (m)", np.abs(late - p["x_ref"]).max(), 2 * p["res"]


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((solver, solution),) = runs.values()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    axes = solution.plot("x", "theta", "F", ax=left)
    axes[0].axhline(solver.parameters["x_ref"], color="k", linewidth=0.5)
    kg.plot.strobe(solution, _trolley_and_load, times=np.linspace(0.0, 2.0, 13), ax=right).set_title("0 to 2 s")


def _trolley_and_load(x: Any, theta: Any) -> list[tuple[Any, Any]]:
    return [(x, 0.0), (x + DEFAULTS["l"] * np.sin(theta), -DEFAULTS["l"] * np.cos(theta))]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
