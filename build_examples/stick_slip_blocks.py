"""Stick-slip blocks
=================

Two blocks that stick and slip on a rough floor.

A spring ``K1`` connects the wall with B1, a spring ``K2`` connects B1 with B2. The blocks have the masses ``m1`` and
``m2``. The force ``A`` sin(``omega`` t) acts on B2, and Coulomb friction ``mu`` acts under the weights (``g``). q1
and q2 are displacements from the unstretched position; u = q'. Friction holds a block at rest as long as it can.
``model(mu_s=...)`` sets a different coefficient of static friction.

Source: Bajodah (2003), Example 5.3. ``--plot`` draws figures 38 and 39, together with the tolerance-and-creep model
of the thesis (section 5.8, a = b = 2 1/s), ``model(creep=delta)``. The thesis does not print its tolerance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"m1": 0.1, "m2": 0.1, "K1": 5.0, "K2": 5.0, "A": 10.0, "omega": 1.5, "mu": 1.0, "g": 9.81}
INITIAL: dict[str, Any] = {"t": 0.0, "q": (0.0, 0.0), "u": (0.0, 0.0), "r": None}
# Tolerance of the creep model, m/s, and the rate at which the creep velocity decays, 1/s.
CREEP, CREEP_DECAY = 1e-3, 2.0
CASES: dict[str, dict[str, Any]] = {"stick": {}, "creep": {"creep": CREEP}}


def model(mu_s: float | None = None, creep: float | None = None) -> kg.Model:
    """The blocks; ``mu_s`` adds a parameter of that name and value, ``creep`` (m/s) selects the creep model."""
    q1, q2 = me.dynamicsymbols("q1 q2")
    u1, u2 = me.dynamicsymbols("u1 u2")
    m1, m2, K1, K2, A, omega, mu, g = sm.symbols(tuple(DEFAULTS))
    values = DEFAULTS if mu_s is None else {**DEFAULTS, "mu_s": mu_s}
    static = mu if mu_s is None else sm.Symbol("mu_s")
    law = kg.Coulomb(static, mu) if creep is None else kg.Coulomb(static, mu, creep=creep, decay_rate=CREEP_DECAY)
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    wall = me.Point("wall")
    wall.set_vel(N, 0)
    B1 = wall.locatenew("B1", q1 * N.x)
    B2 = wall.locatenew("B2", q2 * N.x)
    spring1, spring2 = K1 * q1, K2 * (q2 - q1)

    return kg.Model(
        name="stick_slip_blocks" if creep is None else "stick_slip_blocks_creep",
        frame=N,
        coordinates=(q1, q2),
        speeds=(u1, u2),
        kinematics=(u1 - q1.diff(time), u2 - q2.diff(time)),
        bodies=(me.Particle("B1", B1, m1), me.Particle("B2", B2, m2)),
        loads=((B1, (spring2 - spring1) * N.x), (B2, (A * sm.sin(omega * time) - spring2) * N.x)),
        potential_energy=(spring1**2 / K1 + spring2**2 / K2) / 2,
        contacts=(
            kg.Friction((u1,), law, normal=m1 * g, name="B1"),
            kg.Friction((u2,), law, normal=m2 * g, name="B2"),
        ),
        parameters=values,
    )


def simulate(**options: Any) -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model(**options))
    return solver, solver.integrate((0.0, 20.0), INITIAL["q"], INITIAL["u"], rtol=1e-11, atol=1e-13)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    limits = DEFAULTS["mu"] * DEFAULTS["g"] * np.array([DEFAULTS["m1"], DEFAULTS["m2"]])
    excess = np.abs(solution.contacts.forces) - limits
    yield "friction above mu N (N)", max(0.0, excess.max()), 1e-9
    driving, creeping = [], []
    for phase in solution.contacts.phases:
        inside = (solution.t > phase.t_start) & (solution.t < phase.t_end)
        decay = np.exp(-CREEP_DECAY * (solution.t[inside] - phase.t_start))
        for block, mode in enumerate(phase.modes.values()):
            speed = solution.u[inside, block]
            if mode == "slip":
                driving.extend(solution.contacts.forces[inside, block] * speed)
            else:
                creeping.extend(np.abs(speed - solution(phase.t_start)[1][block] * decay))
    yield "power of friction on a block that slips (W)", max(0.0, *driving), 1e-9
    # With stick the speed is zero, and there is nothing to decay.
    yield "speed of a block that does not slip against the creep model (m/s)", max(creeping), 1e-9


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    """Figures 38 (block 1) and 39 (block 2) of the thesis: displacement and velocity."""
    panels = figure.subplots(4, 1, sharex=True)
    for name, (_, solution) in runs.items():
        solution.plot("q1", "u1", "q2", "u2", ax=panels, label=name)
    for axis in panels:
        axis.get_lines()[-1].set_linestyle("--")
        axis.legend(handles=axis.get_lines(), loc="upper right", fontsize="small")
    panels[0].set_title("figure 38: block 1")
    panels[2].set_title("figure 39: block 2")


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot, CASES)
