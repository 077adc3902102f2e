"""Arm with muscles
================

A two-link arm that is moved by three muscles, in a vertical plane.

The shoulder is at the origin, x points forward and y up; gravity is -g y. theta1 is the angle of the upper arm from the
downward vertical, theta2 the flexion of the elbow; both are positive if they move the hand of the hanging arm forward.
u = (theta1', theta2'). Upper arm and forearm are uniform bars (``l_1``, ``m_1`` and ``l_2``, ``m_2``).

The muscles are those of ``sympy.physics.biomechanics``: ``MusculotendonDeGroote2016`` with the activation
``FirstOrderActivationDeGroote2016``, along straight lines. Each of them provides its forces, ``muscle.to_loads()``, and
its states with their rates, ``muscle.x`` and ``muscle.rhs()``. The excitations are the inputs.

``biceps``
    from (``x_s``, ``y_s``), fixed in space, over both joints to the forearm at ``r_b`` from the elbow. Its tendon is
    elastic, and the fiber length is a state.
``triceps``
    from the upper arm, at ``r_t`` from the shoulder and ``h_t`` behind the bone, to the forearm at ``r_o`` behind the
    elbow. Its tendon is rigid, as is that of the deltoid.
``deltoid``
    from (``x_s``, ``y_s``) to the upper arm at ``r_d`` from the shoulder.

The additional states are s = (fiber length of the biceps, in units of its optimal length; activations of biceps,
triceps and deltoid; ``work`` of the muscles on the bones, J). The inputs are the excitations in the same order.

Source of the muscle: De Groote, Kinney, Rao and Fregly (2016), "Evaluation of direct collocation optimal control
problem formulations for solving the muscle redundancy problem". The script integrates SymPy's own ``KanesMethod`` with
the rates of the muscles in SciPy and compares the motions, and compares the energy of the arm with the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import solve_ivp
from scipy.interpolate import PchipInterpolator
from sympy.physics import biomechanics as bio

import kanegen as kg

DEFAULTS = {
    **{"l_1": 0.31, "m_1": 1.9, "l_2": 0.33, "m_2": 1.5, "g": 9.81},
    **{"x_s": 0.03, "y_s": 0.03, "r_b": 0.045, "r_t": 0.1, "h_t": 0.015, "r_o": 0.025, "r_d": 0.14},
    # Peak force (N), optimal fiber length (m), slack length of the tendon (m), maximal speed of the fiber (m/s).
    **{"F_M_max_biceps": 620.0, "l_M_opt_biceps": 0.12, "l_T_slack_biceps": 0.235, "v_M_max_biceps": 1.2},
    **{"F_M_max_triceps": 800.0, "l_M_opt_triceps": 0.11, "l_T_slack_triceps": 0.09, "v_M_max_triceps": 1.1},
    **{"F_M_max_deltoid": 1100.0, "l_M_opt_deltoid": 0.1, "l_T_slack_deltoid": 0.065, "v_M_max_deltoid": 1.0},
}
# Excitations at which the arm rests, with the activations equal to them.
REST = {"biceps": 0.1396175550974035, "triceps": 0.05, "deltoid": 0.042262795133884146}
START = {
    **{"t": 0.0, "theta1": 0.3, "theta2": 1.0, "u1": 0.0, "u2": 0.0},
    **{"l_M_tilde_biceps": 0.9648493612901128, "work": 0.0},
    **{f"a_{name}": excitation for name, excitation in REST.items()},
}
# The arm is raised, braked by the triceps, and held. Excitations at these times, with smooth changes between them.
TIMES = (0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 2.0)
EXCITATIONS = {
    "biceps": (REST["biceps"], REST["biceps"], 0.35, 0.35, 0.3, 0.28, 0.28),
    "triceps": (0.05, 0.05, 0.05, 0.1, 0.12, 0.05, 0.05),
    "deltoid": (REST["deltoid"], REST["deltoid"], 0.2, 0.2, 0.15, 0.12, 0.12),
}


def model() -> kg.Model:
    """The arm with its muscles; outputs are the tendon forces ``F_biceps``, ``F_triceps`` and ``F_deltoid``, N."""
    theta1, theta2, u1, u2, work = me.dynamicsymbols("theta1 theta2 u1 u2 work")
    l_1, m_1, l_2, m_2, g = sm.symbols("l_1 m_1 l_2 m_2 g")
    time = me.dynamicsymbols._t

    N, A, B = (me.ReferenceFrame(name) for name in ("N", "upper_arm", "forearm"))
    A.orient_axis(N, N.z, theta1 - sm.pi / 2)
    B.orient_axis(A, A.z, theta2)
    A.set_ang_vel(N, u1 * N.z)
    B.set_ang_vel(A, u2 * A.z)
    shoulder = me.Point("shoulder")
    shoulder.set_vel(N, 0)
    elbow = shoulder.locatenew("elbow", l_1 * A.x)
    elbow.v2pt_theory(shoulder, N, A)
    bars = []
    for point, frame, length, mass in ((shoulder, A, l_1, m_1), (elbow, B, l_2, m_2)):
        center = point.locatenew(f"{frame.name}_center", length / 2 * frame.x)
        center.v2pt_theory(point, N, frame)
        inertia = me.inertia(frame, 0, 0, mass * length**2 / 12)
        bars.append(me.RigidBody(frame.name, center, frame, mass, (inertia, center)))

    muscles = _muscles(shoulder, elbow, N, A, B)
    states = {x: rate for muscle in muscles for x, rate in zip(muscle.x, muscle.rhs(), strict=True)}
    power = sum(muscle.force * muscle.pathway.extension_velocity for muscle in muscles)
    return kg.Model(
        name="muscle_arm",
        frame=N,
        coordinates=(theta1, theta2),
        speeds=(u1, u2),
        kinematics=(u1 - theta1.diff(time), u2 - theta2.diff(time)),
        bodies=bars,
        gravity=-g * N.y,
        loads=[load for muscle in muscles for load in muscle.to_loads()],
        states={**states, work: power},
        inputs=[kg.Input(muscle.e, default=REST[muscle.name]) for muscle in muscles],
        outputs={f"F_{muscle.name}": -muscle.force for muscle in muscles},
        parameters=DEFAULTS,
        initial=START,
    )


def _muscles(
    shoulder: me.Point, elbow: me.Point, N: me.ReferenceFrame, A: me.ReferenceFrame, B: me.ReferenceFrame
) -> list[bio.MusculotendonDeGroote2016]:
    x_s, y_s, r_b, r_t, h_t, r_o, r_d = sm.symbols("x_s y_s r_b r_t h_t r_o r_d")
    blade = shoulder.locatenew("blade", x_s * N.x + y_s * N.y)
    blade.set_vel(N, 0)
    origin = shoulder.locatenew("triceps_origin", r_t * A.x - h_t * A.y)
    deltoid_insertion = shoulder.locatenew("deltoid_insertion", r_d * A.x)
    for point in (origin, deltoid_insertion):
        point.v2pt_theory(shoulder, N, A)
    biceps_insertion = elbow.locatenew("biceps_insertion", r_b * B.x)
    olecranon = elbow.locatenew("olecranon", -r_o * B.x)
    for point in (biceps_insertion, olecranon):
        point.v2pt_theory(elbow, N, B)
    return [
        _muscle("biceps", blade, biceps_insertion, bio.MusculotendonFormulation.FIBER_LENGTH_EXPLICIT),
        _muscle("triceps", origin, olecranon),
        _muscle("deltoid", blade, deltoid_insertion),
    ]


def _muscle(
    name: str,
    origin: me.Point,
    insertion: me.Point,
    formulation: bio.MusculotendonFormulation = bio.MusculotendonFormulation.RIGID_TENDON,
) -> bio.MusculotendonDeGroote2016:
    return bio.MusculotendonDeGroote2016.with_defaults(
        name,
        me.LinearPathway(origin, insertion),
        bio.FirstOrderActivationDeGroote2016.with_defaults(name),
        musculotendon_dynamics=formulation,
        # SymPy's default of 10 is meant in fiber lengths per second.
        maximal_fiber_velocity=sm.Symbol(f"v_M_max_{name}"),
    )


def excitations() -> dict[str, PchipInterpolator]:
    """The excitation of each muscle as a function of time, by the name of the input."""
    return {f"e_{name}": PchipInterpolator(TIMES, values) for name, values in EXCITATIONS.items()}


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model())
    return solver, solver.integrate(TIMES[-1], r=excitations(), method="dop853", rtol=1e-11, atol=1e-13)


def kane(arm: kg.Model) -> Callable[[float, np.ndarray, np.ndarray], np.ndarray]:
    """``y' = f(t, y, r)`` with y = (q, u, s) by SymPy alone: KanesMethod, and the rates of the muscles."""
    time = me.dynamicsymbols._t
    method = me.KanesMethod(arm.frame, arm.coordinates, arm.speeds, kd_eqs=arm.kinematics)
    weights = [(body.masscenter, body.mass * arm.gravity) for body in arm.bodies]
    method.kanes_equations(arm.bodies, [*arm.loads, *weights])
    names = [time, *arm.coordinates, *arm.speeds, *arm.states, *(item.symbol for item in arm.inputs)]
    rates = method.kindiffdict()
    parts = (method.mass_matrix, method.forcing, sm.Matrix(list(arm.states.values())))
    # The characteristic curves of the muscles become exponentials and logarithms by doit().
    values = [part.xreplace(rates).xreplace(arm.parameters).doit() for part in parts]
    evaluate = sm.lambdify(names, values, cse=True)

    def ode(t: float, y: np.ndarray, r: np.ndarray) -> np.ndarray:
        mass, forcing, states = evaluate(t, *y, *r)
        return np.concatenate([y[2:4], np.linalg.solve(mass, forcing).ravel(), states.ravel()])

    return ode


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    rates = np.concatenate(solver.rhs(0.0, None, None))  # at the start, with the excitations at rest
    yield "the arm rests at the start: rates of q, u, s", np.abs(rates).max(), 1e-9
    f, inputs = kane(model()), excitations().values()
    motion = np.hstack([solution.q, solution.u, solution.s])
    options = {"t_eval": solution.t, "method": "LSODA", "rtol": 1e-12, "atol": 1e-13}
    peer = solve_ivp(lambda t, y: f(t, y, np.array([r(t) for r in inputs])), (0.0, TIMES[-1]), motion[0], **options).y.T
    yield "q, u, s against SymPy's KanesMethod in SciPy", np.abs(motion - peer).max(), 1e-9
    yield "energy less the work of the muscles (J)", np.ptp(solution.energy - solution["work"]), 1e-9


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    """The arm at equal intervals of time; angles, activations with excitations, and tendon forces."""
    ((_, solution),) = runs.values()
    panels = figure.subplots(2, 2)
    (arm, angle), (activation, force) = panels
    kg.plot.strobe(solution, _arm, times=np.linspace(0.0, 0.7, 8), ax=arm).set_title("0 to 0.7 s")
    solution.plot("coordinates", ax=angle)
    solution.plot([f"a_{name}" for name in EXCITATIONS] + ["l_M_tilde_biceps"], ax=activation)
    for name, line in zip(EXCITATIONS, activation.get_lines(), strict=False):
        activation.plot(solution.t, solution[f"e_{name}"], ":", color=line.get_color())
    activation.set_title("states; excitations dotted")
    solution.plot([f"F_{name}" for name in EXCITATIONS], ax=force)
    force.set_title("tendon forces (N)")


def _arm(theta1: Any, theta2: Any) -> list[tuple[Any, Any]]:
    upper, lower = theta1 - np.pi / 2, theta1 + theta2 - np.pi / 2
    elbow = DEFAULTS["l_1"] * np.cos(upper), DEFAULTS["l_1"] * np.sin(upper)
    hand = elbow[0] + DEFAULTS["l_2"] * np.cos(lower), elbow[1] + DEFAULTS["l_2"] * np.sin(lower)
    return [(0.0, 0.0), elbow, hand]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot)
