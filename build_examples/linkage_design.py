"""Design of a four-bar linkage
============================

A linkage whose coupler point passes five points at five crank angles, with little torque.

The crank turns about O = (0, 0) by theta, the rocker about C = (``L1``, 0) by psi, and the coupler by beta against the
crank. They are uniform bars of the lengths ``L2``, ``L4`` and ``L3`` and the mass ``rho`` per length. The coupler point
E has the coordinates ``a`` and ``b`` in the frame of the coupler, and the counterweight ``w`` is on the crank, ``r_c``
behind O. The motor holds the speed ``Omega`` by the torque T = K (Omega - omega); y points up.

The lengths, a, b and w are found by ``scipy.optimize.minimize`` for the least mean square of the distances from the
points, and of the torque over one revolution. ``value_and_gradient`` gives the gradient through the motion with its
loop constraints, in the time of a few runs whatever the number of unknowns. A crank that turns is a condition of
Grashof on the lengths.

Source of the points and angles: a test problem of path generation with prescribed timing (Cabrera, Simon and Prado,
Optimal synthesis of mechanisms with genetic algorithms, Mechanism and Machine Theory 37 (2002), 1165-1177), in
decimeters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS: Final = {
    **{"L1": 0.3, "L2": 0.2, "L3": 0.3, "L4": 0.25, "a": 0.15, "b": 0.15, "w": 2.0},
    **{"rho": 5.0, "J": 0.05, "K": 20.0, "Omega": 6.0, "g": 9.81, "r_c": 0.1},
}
UNKNOWNS: Final = ("L1", "L2", "L3", "L4", "a", "b", "w")
BOUNDS: Final = ((0.05, 0.6),) * 4 + ((-0.4, 0.4),) * 2 + ((0.0, 20.0),)
POINTS: Final = 0.1 * np.array([(3.0, 3.0), (2.759, 3.363), (2.372, 3.663), (1.890, 3.862), (1.355, 3.943)])
ANGLES: Final = np.pi / 12.0 * np.arange(2.0, 7.0)
REVOLUTION: Final = 2.0 * np.pi / DEFAULTS["Omega"]
GRASHOF: Final = np.array([(-1, -1, 1, 1), (1, -1, -1, 1), (1, -1, 1, -1)])
"""The crank turns if the lengths of the links times these rows are positive."""

MARGIN: Final = 0.01
TORQUE: Final = 0.1
"""Weight of the mean square torque, in (N m)^2, against that of the distance, in mm^2."""


def _start() -> dict[str, Any]:
    """The crank at the first angle with its speed, and the other links as the loop demands."""
    L1, L2, L3, L4 = (DEFAULTS[name] for name in UNKNOWNS[:4])
    A = L2 * np.exp(1j * ANGLES[0])
    away = A - L1  # from C to the end of the crank
    psi = np.angle(away) - np.arccos((abs(away) ** 2 + L4**2 - L3**2) / (2.0 * abs(away) * L4))
    coupler = L1 + L4 * np.exp(1j * psi) - A
    speed = DEFAULTS["Omega"]
    turned: Any = np.array([1j * coupler, -1j * L4 * np.exp(1j * psi)])
    driven = -1j * (A + coupler) * speed
    rates = np.linalg.solve([turned.real, turned.imag], [driven.real, driven.imag])
    return {"t": 0.0, "q": (ANGLES[0], np.angle(coupler / A), psi), "u": (speed, *rates), "r": None}


INITIAL: dict[str, Any] = _start()


def model() -> kg.Model:
    """The linkage with its loop, its motor, and the place of the coupler point as the output ``E``."""
    angles, speeds = me.dynamicsymbols("theta beta psi"), me.dynamicsymbols("omega omega_beta omega_psi")
    T, time = me.dynamicsymbols("T"), me.dynamicsymbols._t
    symbols = {name: sm.Symbol(name, real=True) for name in DEFAULTS}
    L1, L2, L3, L4, a, b, w, rho, J, K, Omega, g, r_c = symbols.values()

    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    C = O.locatenew("C", L1 * N.x)
    C.set_vel(N, 0)
    crank, coupler, rocker = (me.ReferenceFrame(name) for name in ("crank", "coupler", "rocker"))
    for link, base, angle, speed in zip((crank, coupler, rocker), (N, crank, N), angles, speeds, strict=True):
        link.orient_axis(base, N.z, angle)
        link.set_ang_vel(base, speed * N.z)
    A = O.locatenew("A", L2 * crank.x)
    A.v2pt_theory(O, N, crank)
    E = A.locatenew("E", a * coupler.x + b * coupler.y)
    E.v2pt_theory(A, N, coupler)
    counterweight = O.locatenew("W", -r_c * crank.x)
    counterweight.v2pt_theory(O, N, crank)
    gap = A.locatenew("B", L3 * coupler.x).pos_from(C.locatenew("end", L4 * rocker.x))

    bodies = [me.Particle("counterweight", counterweight, w)]
    for start, link, length, rotor in ((O, crank, L2, J), (A, coupler, L3, 0), (C, rocker, L4, 0)):
        center = start.locatenew(f"middle of the {link.name}", length / 2 * link.x)
        center.v2pt_theory(start, N, link)
        inertia = me.inertia(link, 0, 0, rho * length**3 / 12 + rotor)
        bodies.append(me.RigidBody(link.name, center, link, rho * length, (inertia, center)))

    return kg.Model(
        name="linkage_design",
        frame=N,
        coordinates=angles,
        speeds=speeds,
        kinematics=[u - q.diff(time) for q, u in zip(angles, speeds, strict=True)],
        bodies=bodies,
        gravity=-g * N.y,
        loads=[(crank, T * N.z)],
        holonomic_constraints=[gap.dot(N.x), gap.dot(N.y)],
        inputs=[kg.Input(T, law=K * (Omega - speeds[0]))],
        outputs={"E": E.pos_from(O).to_matrix(N)[:2]},
        parameters={symbols[name]: value for name, value in DEFAULTS.items()},
        shapes={
            "crank": kg.shapes.Link(O, A),
            "coupler": [kg.shapes.Link(A, C.locatenew("D", L4 * rocker.x)), kg.shapes.Link(A, E)],
            "rocker": kg.shapes.Link(C, C.locatenew("D", L4 * rocker.x)),
        },
    )


@cache
def solver() -> kg.Solver:
    """The first guess; the values at the start choose how the loop closes."""
    built = kg.build(model())
    names = (*built.description.coordinates, *built.description.speeds)
    return built.with_initial(dict(zip(names, (*INITIAL["q"], *INITIAL["u"]), strict=True)))


def objective(torque: float) -> kg.Objective:
    """The mean square distance from the points (mm^2), and that of the torque ((N m)^2) with a weight."""
    described: Any = solver().model
    (T,) = (item.symbol for item in described.inputs)
    x_E, y_E = described.outputs["E"]
    times = (ANGLES - ANGLES[0]) / DEFAULTS["Omega"]
    samples = [
        (float(t), 1e6 * ((x_E - float(x)) ** 2 + (y_E - float(y)) ** 2) / len(POINTS))
        for t, (x, y) in zip(times, POINTS, strict=True)
    ]
    return kg.Objective(samples=samples, running=torque * T**2 / float(REVOLUTION))


def value_and_gradient(design: Any, torque: float) -> tuple[float, Any]:
    """The objective and its gradient in `UNKNOWNS`."""
    value, gradient = with_design(design).value_and_gradient(
        objective(torque),
        (0.0, REVOLUTION),
        {"theta": ANGLES[0]},
        {"omega": DEFAULTS["Omega"]},
        with_respect_to=UNKNOWNS,
        rtol=1e-8,
        atol=1e-10,
    )
    return value, np.array([gradient[name] for name in UNKNOWNS])


def with_design(design: Any) -> kg.Solver:
    return solver().with_parameters(dict(zip(UNKNOWNS, design, strict=True)))


def guess() -> Any:
    return np.array([DEFAULTS[name] for name in UNKNOWNS])


@cache
def designed(torque: float = TORQUE) -> Any:
    """The best values of `UNKNOWNS` for a weight of the torque."""
    from scipy.optimize import LinearConstraint, minimize

    turns = LinearConstraint(np.hstack((GRASHOF, np.zeros((3, 3)))), MARGIN, np.inf)
    found = minimize(
        value_and_gradient,
        guess(),
        args=(torque,),
        jac=True,
        method="SLSQP",
        bounds=BOUNDS,
        constraints=turns,
        options={"ftol": 1e-9, "maxiter": 300},
    )
    return found.x


def turned(design: Any) -> kg.Solution:
    """One revolution of a linkage, from the first point."""
    start = {"theta": ANGLES[0]}, {"omega": DEFAULTS["Omega"]}
    return with_design(design).integrate((0.0, REVOLUTION), *start, rtol=1e-10, atol=1e-12)


def simulate() -> tuple[kg.Solver, kg.Solution]:
    return with_design(designed()), turned(designed())


def torques(solution: kg.Solution) -> Any:
    return DEFAULTS["K"] * (DEFAULTS["Omega"] - solution.u[:, 0])


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    _, gradient = value_and_gradient(guess(), TORQUE)
    for k, name in enumerate(UNKNOWNS):
        step = 1e-5 * np.eye(len(UNKNOWNS))[k]
        higher, lower = (value_and_gradient(guess() + sign * step, TORQUE)[0] for sign in (1, -1))
        error = (higher - lower) / 2e-5 - gradient[k]
        yield f"slope in {name} against differences, relative to the largest", error / np.abs(gradient).max(), 1e-6
    exact = designed(0.0)
    yield "distance from the points, if only that counts (mm)", np.sqrt(value_and_gradient(exact, 0.0)[0]), 0.1
    yield "distance from the points (mm)", np.sqrt(value_and_gradient(designed(), 0.0)[0]), 1.0
    largest = [np.abs(torques(run)).max() for run in (solution, turned(exact))]
    yield "largest torque, relative to that of this linkage", largest[0] / largest[1], 0.75
    yield "lengths that keep the crank from turning (m)", min(0.0, (GRASHOF @ designed()[:4]).min()), 0.0
    states = zip(solution.t, solution.q, solution.u, strict=True)
    residuals = [np.abs(solver.residuals(*state)[0]).max() for state in states]
    yield "gap of the loop (m)", max(residuals), 1e-8
    times = np.linspace(0.0, REVOLUTION, 20001)
    speed = solution(times)[1][:, 0]
    work = np.trapezoid(DEFAULTS["K"] * (DEFAULTS["Omega"] - speed) * speed, times)
    yield "work of the motor less the change of energy (J)", work - (solution.energy[-1] - solution.energy[0]), 1e-5


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    above, below = figure.subplots(2, 1, height_ratios=(3, 2))
    others = {"first guess": turned(guess()), "path only": turned(designed(0.0)), "path and torque": solution}
    for (name, run), color in zip(others.items(), ("0.6", "tab:orange", "tab:blue"), strict=True):
        above.plot(*run.outputs["E"].T, color=color, linewidth=1.2, label=name)
        below.plot(np.degrees(run.q[:, 0]), torques(run), color=color, linewidth=1.2)
    above.plot(*POINTS.T, "k+", markersize=9, label="points")
    for joints in _links(solution, len(POINTS)):
        above.plot(*joints.T, "o-", color="tab:blue", alpha=0.35, linewidth=1.0, markersize=2)
    above.set(aspect="equal", xlabel="x (m)", ylabel="y (m)", title="path of the coupler point")
    above.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.02, 0.5))
    below.set(xlabel="crank angle (degrees)", ylabel="torque (N m)")


def _links(solution: kg.Solution, count: int) -> Iterator[Any]:
    """Corners of the linkage (6, 2) at the times of the points: O, A, E, the end of the coupler, A again, and so on."""
    L1, L2, L3, _, a, b, _ = designed()
    for t in (ANGLES - ANGLES[0])[:count] / DEFAULTS["Omega"]:
        theta, beta, _ = solution(t)[0]
        turn = theta + beta
        along, across = np.array([np.cos(turn), np.sin(turn)]), np.array([-np.sin(turn), np.cos(turn)])
        A = L2 * np.array([np.cos(theta), np.sin(theta)])
        B = A + L3 * along
        yield np.array([(0.0, 0.0), A, A + a * along + b * across, B, A, B, (L1, 0.0)])


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
