"""Impacts of a double pendulum
============================

A double pendulum that falls on an obstacle, with four contact laws.

The pendulum is that of ``obstructed_pendulum`` without motors: a disc (radius ``R``, central inertia ``I_D``) with a
uniform bar (``m_B``, ``L``, ``I_B``) hinged at its rim. x points down, theta1 and theta2 are absolute angles from x,
and ``g`` is gravity. The penetration of the tip is x = R cos theta1 + L cos theta2 - R - L/3. The laws are:

- ``"acceleration"``: x'' + ``lam`` x^1.5 x' + ``k`` x^1.5 = 0 while this requires a compressive force (Bajodah 2003,
  Example 5.2; k = 1, lam = 7.5e7, with the sign that dissipates energy),
- ``"force"``: Hunt and Crossley's contact force k x^1.5 + lam x^1.5 x',
- ``"kelvin_voigt"``: the contact force ``k`` x + ``c`` x',
- ``"restitution"``: an instantaneous impact with the coefficient of restitution ``e``.

``--plot`` draws figures 31 to 36 of the thesis for all laws. The thesis does not print R, L, m_B, I_D and I_B.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"R": 0.5, "L": 1.0, "m_B": 2.0, "I_D": 0.8, "I_B": 1.0 / 6.0, "g": 9.81}
# Parameters of the laws. The force k x^1.5 supports the weight of the bar at a penetration of about 0.3 mm.
LAWS: dict[str, dict[str, float]] = {
    "acceleration": {"k": 1.0, "lam": 7.5e7},
    "force": {"k": 4e6, "lam": 2e6},
    "kelvin_voigt": {"k": 1e5, "c": 100.0},
    "restitution": {"e": 0.6},
}
CASES = {law.replace("_", "-"): {"law": law} for law in LAWS}
INITIAL: dict[str, Any] = {"t": 0.0, "q": (1.0, 1.0), "u": (0.0, 0.0), "r": None}
CONTACT = "obstacle"


def model(law: str = "acceleration") -> kg.Model:
    """The pendulum with one unilateral constraint; outputs ``x`` and ``x_rate``, the penetration (m) and its rate."""
    if law not in LAWS:
        raise ValueError(f"law must be one of {', '.join(map(repr, LAWS))}, not {law!r}")
    theta1, theta2 = me.dynamicsymbols("theta1 theta2")
    u1, u2 = me.dynamicsymbols("u1 u2")
    R, L, m_B, I_D, I_B, g = sm.symbols(tuple(DEFAULTS))
    values = {**DEFAULTS, **LAWS[law]}
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    disc_frame, bar_frame = me.ReferenceFrame("disc"), me.ReferenceFrame("bar")
    disc_frame.orient_axis(N, N.z, theta1)
    bar_frame.orient_axis(N, N.z, theta2)
    O = me.Point("O")
    O.set_vel(N, 0)
    hinge = O.locatenew("hinge", R * disc_frame.x)
    center = hinge.locatenew("center", L / 2 * bar_frame.x)
    # The center of the disc does not move, so that only its inertia matters.
    disc = me.RigidBody("disc", O, disc_frame, sm.Integer(0), (me.inertia(disc_frame, 0, 0, I_D), O))
    bar = me.RigidBody("bar", center, bar_frame, m_B, (me.inertia(bar_frame, 0, 0, I_B), center))
    x = R * sm.cos(theta1) + L * sm.cos(theta2) - R - L / 3

    return kg.Model(
        name=f"impacting_pendulum_{law}",
        frame=N,
        coordinates=(theta1, theta2),
        speeds=(u1, u2),
        kinematics=(u1 - theta1.diff(time), u2 - theta2.diff(time)),
        bodies=(disc, bar),
        gravity=g * N.x,
        contacts=(kg.Unilateral(-x, law=_law(law), name=CONTACT),),
        outputs={"x": x, "x_rate": x.diff(time)},
        parameters=values,
    )


def _law(law: str) -> Any:
    k, lam, c, e = sm.symbols("k lam c e")
    return {
        "acceleration": kg.HuntCrossley(stiffness=k, damping=lam, quantity="acceleration"),
        "force": kg.HuntCrossley(stiffness=k, damping=lam),
        "kelvin_voigt": kg.KelvinVoigt(stiffness=k, damping=c),
        "restitution": kg.Restitution(e),
    }[law]


def simulate(law: str = "acceleration") -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model(law))
    return solver, solver.integrate((0.0, 10.0), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12)


def lost_in_impact(solver: kg.Solver, event: kg.results.EventRecord) -> tuple[Any, Any]:
    """Kinetic energy (J) lost in an impact, and (1 - e^2) v^2 / (2 w Q^-1 w), its value in theory, w the normal row."""
    before, after = (solver.kinetic_energy(event.t, event.q, u) for u in (event.u_before, event.u_after))
    normal = np.array([DEFAULTS["R"], DEFAULTS["L"]]) * np.sin(event.q)
    speed = normal @ event.u_before
    response = normal @ np.linalg.solve(solver.Q(event.t, event.q, event.u_before), normal)
    return before - after, (1.0 - LAWS["restitution"]["e"] ** 2) * speed**2 / (2.0 * response)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    yield "tensile contact force (N)", max(0.0, -solution.contacts.forces.min()), 1e-9
    energy = np.array([solver.energy(*state) for state in zip(solution.t, solution.q, solution.u, strict=True)])
    yield "energy above its initial value (J)", max(0.0, (energy - energy[0]).max()), 1e-8
    drift = [np.ptp([solver.energy(t, *solution(t)) for t in times]) for times in _flights(solution)]
    yield "energy drift without contact (J)", max(drift), 1e-8
    rebounds = [
        event for event in solution.events if event.kind == "impact" and event.t not in _ends_of_bouncing(solution)
    ]
    if rebounds:
        lost = [lost_in_impact(solver, event) for event in rebounds]
        yield "energy lost in impacts against the theory (J)", max(abs(loss - theory) for loss, theory in lost), 1e-10


def _flights(solution: kg.Solution) -> Iterator[np.ndarray]:
    """Times between two events without contact, without the time of the later event, where the speeds may jump."""
    marks = np.unique([event.t for event in solution.events])
    for phase in solution.contacts.phases:
        if phase.modes[CONTACT] in ("open", "penetrated"):
            inside = marks[(marks > phase.t_start) & (marks < phase.t_end)]
            for start, end in pairwise([phase.t_start, *inside, phase.t_end]):
                yield np.linspace(start, end, 10, endpoint=False)


def _ends_of_bouncing(solution: kg.Solution) -> set[float]:
    """Times of impacts without rebound, at which the bounces have become too small to be resolved."""
    return {event.t for event in solution.events if event.kind == "closes"}


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    """Figures 31 to 34 (motion), 35 and 36 (penetration) of the thesis, with one curve for each law."""
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    panels = left.subplots(3, 2).ravel()
    names = ("theta1", "u1", "theta2", "u2", "x", "x")
    for law, (_, solution) in runs.items():
        for number, (axis, name) in enumerate(zip(panels, names, strict=True), start=31):
            axis.plot(solution.t, solution[name], label=law, linewidth=0.9)
            axis.set(title=f"figure {number}", xlabel="t (s)", ylabel=name)
    panels[-1].set_ylim(-0.002, 0.003)
    panels[0].legend(fontsize="x-small")
    solution = runs["restitution"][1]
    kg.plot.strobe(solution, _pendulum, times=np.linspace(0.0, 1.5, 10), ax=right).set_title("restitution, 0 to 1.5 s")


def _pendulum(theta1: Any, theta2: Any) -> list[tuple[Any, Any]]:
    """Center and hinge of the disc, tip of the bar; x points down."""
    R, L = DEFAULTS["R"], DEFAULTS["L"]
    hinge = R * np.sin(theta1), -R * np.cos(theta1)
    return [(0.0, 0.0), hinge, (hinge[0] + L * np.sin(theta2), hinge[1] - L * np.cos(theta2))]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot, CASES)
