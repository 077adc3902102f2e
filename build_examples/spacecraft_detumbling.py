"""Detumbling of a spacecraft
==========================

A spacecraft whose rotation is stopped by a servo-constraint that contains the controls.

A rigid body with the central principal inertias ``I1``, ``I2``, ``I3`` rotates freely. The controls tau are the
angular accelerations that three torques cause: the torques are I1 tau1, I2 tau2, I3 tau3. Under the
servo-constraint K' + a K = 0 the kinetic energy K decays. Its acceleration form contains tau', so that the controls
become part of the state. The constraint leaves a part y of tau' free; K(t) = K0 exp(-a t) for every y. With y = 0 the
controls grow and turn the body back and forth ever faster. With y = -tau all of them decay.

Source: Bajodah (2003), Example 8.1 (figures 45 to 60), with the kinetic energy of (533): the term w1 w2 w3 [...] of
(535) is zero. The attitude is given by body-fixed angles 3-1-2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

INITIAL: dict[str, Any] = {
    "t": 0.0,
    "q": (0.0, 0.0, 0.0),
    "u": (0.1, 0.1, 0.1),
    "r": (0.1, 0.1, -0.33764705882352941),
}
CASES = {"y = 0": {"y": "zero"}, "y = -tau": {"y": "decay"}}
SPANS = {"zero": 5.0, "decay": 8.0}


def model(y: str = "decay") -> kg.Model:
    """The spacecraft; ``y`` is "zero" or "decay" (y = -tau)."""
    psi, theta, phi = me.dynamicsymbols("psi theta phi")
    w = me.dynamicsymbols("w1:4")
    tau = me.dynamicsymbols("tau1:4")
    inertias = sm.symbols("I1:4")
    m, a = sm.symbols("m a")
    time = me.dynamicsymbols._t

    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_body_fixed(N, (psi, theta, phi), "312")
    rates = B.ang_vel_in(N).to_matrix(B)
    B.set_ang_vel(N, w[0] * B.x + w[1] * B.y + w[2] * B.z)
    O = me.Point("O")
    O.set_vel(N, 0)
    body = me.RigidBody("spacecraft", O, B, m, (me.inertia(B, *inertias), O))
    torque = sum((I * x * axis for I, x, axis in zip(inertias, tau, B, strict=True)), 0 * B.x)

    K = sm.Add(*(I * x**2 for I, x in zip(inertias, w, strict=True))) / 2
    return kg.Model(
        name=f"spacecraft_detumbling_{y}",
        frame=N,
        coordinates=(psi, theta, phi),
        speeds=w,
        kinematics=[rate - x for rate, x in zip(rates, w, strict=True)],
        bodies=(body,),
        loads=((B, torque),),
        inputs=tau,
        control=kg.ControlConstraints(
            constraints=(K.diff(time) + a * K,),
            y={"zero": 0, "decay": [-x for x in tau]}[y],
        ),
        parameters={m: 1.0, a: 1.0, **dict(zip(inertias, (10.0, 6.3, 8.5), strict=True))},
        outputs={"K": K},
    )


def simulate(y: str = "decay") -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model(y))
    options: dict[str, Any] = {"method": "dop853", "rtol": 1e-11, "atol": 1e-13}
    start = INITIAL["q"], INITIAL["u"]
    return solver, solver.integrate((0.0, SPANS[y]), *start, control=True, tau0=INITIAL["r"], **options)


def kinetic_energy(solver: kg.Solver, u: np.ndarray) -> np.ndarray:
    """K (n_t,) of the angular velocities u (n_t, 3)."""
    inertias = [solver.parameters[name] for name in ("I1", "I2", "I3")]
    return np.asarray(u**2 @ inertias / 2)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    K = kinetic_energy(solver, solution.u)
    decay = K[0] * np.exp(-solver.parameters["a"] * solution.t)
    yield "K(t) against K0 exp(-a t), relative", np.abs(K / decay - 1.0).max(), 1e-6
    inertias = np.array([solver.parameters[name] for name in ("I1", "I2", "I3")])
    power = (inertias * solution.u * solution.control.values).sum(axis=1)
    yield "power of the torques against -a K, relative", np.abs(power / (solver.parameters["a"] * K) + 1.0).max(), 1e-6


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    columns = figure.subplots(3, len(runs), sharex="col", squeeze=False).T
    for (name, (_, solution)), column in zip(runs.items(), columns, strict=True):
        solution.plot("speeds", "controls", "K", ax=column)
        column[0].set_title(name)


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot, CASES)
