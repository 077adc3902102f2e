"""Rolling disk
============

A thin uniform disk that rolls on a horizontal plane.

The disk has the mass ``m`` and the radius ``R``; ``g`` is gravity and Z points up. It is oriented by 3-1-3 angles:
phi about Z, theta about i0, and psi about the axis k0 of the disk. i0 = (cos phi, sin phi, 0) is tangential to the
rim at the contact, and j0 points from the contact to the center. The disk is upright at theta = pi/2. (X, Y) is the
position of the mass center, whose height is R sin theta. The speeds are the components of the angular velocity on i0,
j0, k0, then X' and Y': u = (theta', phi' sin theta, phi' cos theta + psi', X', Y').

Source: lecture notes on Gibbs-Appell's and Kane's equations (example "rolling disk without slip"). The final
equations 5 u1' = u2^2 cot theta - 6 u2 u3 - 4 (g/R) cos theta, u2' = -u1 u2 cot theta + 2 u1 u3, 3 u3' = 2 u1 u2 are
right for the thin uniform disk. The script compares with them the equations of Kane, those of Gibbs and Appell
(derived and integrated without kanegen), and the reduced and unreduced momentum forms: accelerations, motion, and
conserved quantities.

``model(friction=mu)`` is the disk on a rough plane. The height Z of the mass center is a sixth coordinate with
u6 = Z', the contact is the unilateral constraint Z - R sin theta >= 0, and ``mu`` is the coefficient of Coulomb
friction. The disk slips at first and then rolls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from math import cos, sin, tan
from typing import Any, NamedTuple

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {"m": 1.2, "R": 0.3, "g": 9.81}


def _start() -> dict[str, Any]:
    """A leaning disk that rolls fast enough not to fall; X' and Y' follow from the rolling constraints."""
    theta, phi = 1.2, 0.3
    u1, u2, u3 = 0.2, 0.4, -6.0
    R = DEFAULTS["R"]
    X_rate = R * (sin(phi) * sin(theta) * u1 - cos(phi) * u3)
    Y_rate = -R * (cos(phi) * sin(theta) * u1 + sin(phi) * u3)
    return {"t": 0.0, "q": (theta, phi, 0.0, 0.0, 0.0), "u": (u1, u2, u3, X_rate, Y_rate), "r": None}


def _slipping_start() -> dict[str, Any]:
    """The same disk with a velocity that is too small for its spin, so that it slips."""
    start = _start()
    theta, u1 = start["q"][0], start["u"][0]
    R = DEFAULTS["R"]
    q, u = (*start["q"], R * sin(theta)), (*start["u"][:3], 0.5, -0.25, R * cos(theta) * u1)
    return {"t": 0.0, "q": q, "u": u, "r": None}


INITIAL: dict[str, Any] = _start()
INITIAL_SLIPPING: dict[str, Any] = _slipping_start()
PLANE = "plane"


def model(friction: float | None = None) -> kg.Model:
    """The disk with two nonholonomic rolling constraints (X' and Y' dependent), or on a plane with ``friction``."""
    theta, phi, psi, X, Y, Z = me.dynamicsymbols("theta phi psi X Y Z")
    u1, u2, u3, u4, u5, u6 = me.dynamicsymbols("u1 u2 u3 u4 u5 u6")
    m, R, g, mu = sm.symbols("m R g mu")
    time = me.dynamicsymbols._t

    slip = (
        u4 - R * sm.sin(phi) * sm.sin(theta) * u1 + R * sm.cos(phi) * u3,
        u5 + R * sm.cos(phi) * sm.sin(theta) * u1 + R * sm.sin(phi) * u3,
    )
    height = R * sm.sin(theta)
    coordinates, speeds = [theta, phi, psi, X, Y], [u1, u2, u3, u4, u5]
    kinematics = [
        u1 - theta.diff(time),
        u2 - phi.diff(time) * sm.sin(theta),
        u3 - phi.diff(time) * sm.cos(theta) - psi.diff(time),
        u4 - X.diff(time),
        u5 - Y.diff(time),
    ]
    held: dict[str, Any] = {"nonholonomic_constraints": slip, "dependent_speeds": (u4, u5), "parameters": DEFAULTS}
    if friction is not None:
        contact = kg.Unilateral(Z - height, friction=kg.Coulomb(mu), slip=slip, name=PLANE)
        held = {"contacts": (contact,), "parameters": {**DEFAULTS, "mu": friction}}
        height = Z
        coordinates, speeds, kinematics = [*coordinates, Z], [*speeds, u6], [*kinematics, u6 - Z.diff(time)]

    N = me.ReferenceFrame("N")
    yaw = me.ReferenceFrame("yaw")
    yaw.orient_axis(N, N.z, phi)
    lean = me.ReferenceFrame("lean")
    lean.orient_axis(yaw, yaw.x, theta)
    disk = me.ReferenceFrame("disk")
    disk.orient_axis(lean, lean.z, psi)
    disk.set_ang_vel(N, u1 * lean.x + u2 * lean.y + u3 * lean.z)

    O = me.Point("O")
    O.set_vel(N, 0)
    center = O.locatenew("center", X * N.x + Y * N.y + height * N.z)
    # The disk is symmetric about k0, so that its inertia is constant in the frame that does not spin with it.
    inertia = me.inertia(lean, m * R**2 / 4, m * R**2 / 4, m * R**2 / 2)

    return kg.Model(
        name="rolling_disk" if friction is None else "rolling_disk_friction",
        frame=N,
        coordinates=coordinates,
        speeds=speeds,
        kinematics=kinematics,
        bodies=(me.RigidBody("disk", center, disk, m, (inertia, center)),),
        gravity=-g * N.z,
        **held,
    )


def accelerations(q: np.ndarray, u: np.ndarray, p: Mapping[str, float] = DEFAULTS) -> np.ndarray:
    """u1', u2', u3' from the final equations of the lecture notes."""
    theta = q[0]
    u1, u2, u3 = u[:3]
    gravity = 4 * p["g"] / p["R"] * cos(theta)
    return np.array(
        [
            (u2**2 / tan(theta) - 6 * u2 * u3 - gravity) / 5,
            -u1 * u2 / tan(theta) + 2 * u1 * u3,
            2 * u1 * u2 / 3,
        ]
    )


class Motion(NamedTuple):
    """Times (n_t,) in s, coordinates (n_t, 5) and speeds (n_t, 5) of a run."""

    t: np.ndarray
    q: np.ndarray
    u: np.ndarray


class GibbsAppell:
    """The disk by Gibbs-Appell's equations dS/du_r' = F_r, r = 1, 2, 3, in SymPy and SciPy, without kanegen.

    ``S = m a.a / 2 + alpha.I.alpha / 2 + (w x I.w).alpha``. The velocity of the center of the
    rolling disk is ``w x R j0``, with the components X' and Y'. The speeds u1, u2, u3 remain, without constraints.
    """

    def __init__(self) -> None:
        theta, phi = me.dynamicsymbols("theta phi")
        u, rates = me.dynamicsymbols("u1:4"), sm.symbols("a1:4")
        m, R, g = (sm.Float(DEFAULTS[name]) for name in ("m", "R", "g"))
        time = me.dynamicsymbols._t
        turning = {theta.diff(time): u[0], phi.diff(time): u[1] / sm.sin(theta)}
        motion = {**dict(zip((x.diff(time) for x in u), rates, strict=True)), **turning}

        N, yaw, lean = (me.ReferenceFrame(name) for name in ("N", "yaw", "lean"))
        yaw.orient_axis(N, N.z, phi)
        lean.orient_axis(yaw, yaw.x, theta)
        w = u[0] * lean.x + u[1] * lean.y + u[2] * lean.z
        v = w.cross(R * lean.y)
        a, alpha = v.dt(N).subs(motion), w.dt(N).subs(motion)
        inertia = me.inertia(lean, m * R**2 / 4, m * R**2 / 4, m * R**2 / 2)
        S = m * a.dot(a) / 2 + alpha.dot(inertia.dot(alpha)) / 2 + w.cross(inertia.dot(w)).dot(alpha)
        F = [v.diff(x, N).dot(-m * g * N.z) for x in u]

        balance = sm.Matrix([S.diff(rate) - force for rate, force in zip(rates, F, strict=True)])
        solved = sm.solve(list(balance), rates)
        accelerations = [solved[rate] for rate in rates] + [a.dot(axis).subs(solved) for axis in (N.x, N.y)]
        q_rates = [*turning.values(), u[2] - turning[phi.diff(time)] * sm.cos(theta), v.dot(N.x), v.dot(N.y)]
        self._rates = sm.lambdify([(theta, phi), u], [*q_rates, *accelerations], cse=True)

    def rhs(self, t: float, q: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """q' (5,) and u' (5,), like ``rhs`` of a solver."""
        rates = np.array(self._rates(q[:2], u[:3]))
        return rates[:5], rates[5:]

    def motion(self, end: float) -> Motion:
        """The motion from INITIAL to ``end`` s by SciPy."""
        from scipy.integrate import solve_ivp

        run = solve_ivp(
            lambda t, y: np.concatenate(self.rhs(t, y[:5], y[5:])),
            (0.0, end),
            [*INITIAL["q"], *INITIAL["u"]],
            "DOP853",
            rtol=1e-10,
            atol=1e-12,
        )
        return Motion(run.t, run.y[:5].T, run.y[5:].T)


FORMS: dict[str, dict[str, Any]] = {
    "Kane": {"form": "reduced"},
    "Gibbs-Appell": {"form": "gibbs_appell"},
    "momentum": {"form": "momentum"},
    "unreduced momentum": {"form": "momentum_unreduced"},
}
CASES = {**FORMS, "friction": {"friction": 0.4}}
END = 10.0


@cache
def kane() -> tuple[kg.Solver, kg.Solution]:
    """The solver of Kane's equations and their motion, with which the other forms are compared."""
    solver = kg.build(model(), form="reduced")
    return solver, solver.integrate((0.0, END), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12)


def simulate(
    form: str = "reduced", friction: float | None = None
) -> tuple[kg.Solver | GibbsAppell, kg.Solution | Motion]:
    """The equations in one form and their motion; with ``friction``, the motion on a rough plane."""
    if friction is not None:
        solver, start = kg.build(model(friction)), INITIAL_SLIPPING
        return solver, solver.integrate((0.0, END), start["q"], start["u"], rtol=1e-10, atol=1e-12)
    if form == "reduced":
        return kane()
    if form == "gibbs_appell":
        equations = GibbsAppell()
        return equations, equations.motion(END)
    solver = kg.build(model(), form=form)
    return solver, solver.integrate((0.0, END), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12)


def own_accelerations(solver: kg.Solver | GibbsAppell, t: float, q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """u' (5,) from the equations of the form.

    The momentum forms compute only mom'. For them u' is the derivative of the speeds u(q, mom) along (q', mom'), by
    differences of fourth order.
    """
    if isinstance(solver, GibbsAppell) or not solver.description.form.startswith("momentum"):
        return solver.rhs(t, q, u)[1]
    to_momenta = solver.reduced_momentum if solver.description.form == "momentum" else solver.momentum
    momenta = to_momenta(t, q, u)
    q_rate, rate = solver.momentum_rhs(t, q, momenta)
    h = 1e-3
    one, two = (
        solver.speeds_from_momentum(t, q + k * h * q_rate, momenta + k * h * rate)
        - solver.speeds_from_momentum(t, q - k * h * q_rate, momenta - k * h * rate)
        for k in (1, 2)
    )
    return (8 * one - two) / (12 * h)


def checks(solver: kg.Solver | GibbsAppell, solution: kg.Solution | Motion) -> Iterator[tuple[str, float, float]]:
    if isinstance(solver, kg.Solver) and isinstance(solution, kg.Solution) and solution.contacts is not None:
        yield from plane_checks(solver, solution)
        return
    reference, motion = kane()
    states = list(zip(solution.t, solution.q, solution.u, strict=True))
    own = np.array([own_accelerations(solver, *state) for state in states])
    kanes = np.array([reference.rhs(*state)[1] for state in states])
    lecture = np.array([accelerations(q, u) for _, q, u in states])
    yield "u' against Kane's", np.abs(own - kanes).max(), 1e-9
    yield "u1', u2', u3' against the lecture's", np.abs(own[:, :3] - lecture).max(), 1e-9
    yield "motion against Kane's (m, rad)", np.abs(solution.q - motion(solution.t)[0]).max(), 1e-7
    energy = np.array([reference.energy(*state) for state in states])
    yield "energy drift (J)", np.ptp(energy), 1e-7
    slip = [np.abs(reference.residuals(*state)[1]).max() for state in states]
    yield "slip at the contact (m/s)", max(slip), 1e-8


def plane_checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    """Checks of the disk on the rough plane.

    Friction dissipates energy, and after the onset of rolling the motion is that of the disk with rolling constraints.
    """
    states = list(zip(solution.t, solution.q, solution.u, strict=True))
    yield "height less R sin theta (m)", np.abs(solution.q[:, 5] - DEFAULTS["R"] * np.sin(solution.q[:, 0])).max(), 1e-9
    energy = np.array([solver.energy(*state) for state in states])
    yield "increase of the energy by friction (J)", max(0.0, np.diff(energy).max()), 1e-8
    (onset,) = solution.events
    reference, _ = kane()
    slip = np.array(_slip_speeds(reference, solution))
    yield "slip at the contact (m/s)", slip[solution.t > onset.t].max(), 1e-8
    rolled = reference.integrate((onset.t, END), onset.q[:5], onset.u_after[:5], rtol=1e-10, atol=1e-12)
    yield "motion against Kane's (m, rad)", np.abs(rolled.q[-1] - solution.q[-1, :5]).max(), 1e-7


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    """Path and lean of the disk that rolls and of the disk that slips first, with slip and friction of the latter."""
    panels = figure.subplots(2, 2)
    titles = {"Kane": "always rolling", "friction": "on a rough plane"}
    for (path, lean), (name, title) in zip(panels, titles.items(), strict=True):
        _, solution = runs[name]
        times = solution.t[0] + (solution.t[-1] - solution.t[0]) * np.linspace(0.0, 0.6, 25)
        kg.plot.strobe(solution, _contact_and_center, times=times, ax=path).set_title(f"{title}, seen from above")
        solution.plot("theta", ax=lean)
        lean.set_title(title)
    history = panels[-1, 1]
    _, solution = runs["friction"]
    normal, *friction = solution.contacts.forces.T
    history.plot(solution.t, _slip_speeds(runs["Kane"][0], solution), label="slip (m/s)")
    history.plot(solution.t, np.hypot(*friction) / normal, label="friction / normal force")
    history.set_ylabel("")
    history.legend(fontsize="small")


def _contact_and_center(theta: Any, phi: Any, psi: Any, X: Any, Y: Any, *height: Any) -> list[tuple[Any, Any]]:
    tilt = DEFAULTS["R"] * np.cos(theta)
    return [(X, Y), (X + tilt * np.sin(phi), Y - tilt * np.cos(phi))]


def _slip_speeds(reference: kg.Solver, solution: kg.Solution) -> list[float]:
    """Slip speeds (m/s) at the states of a run on the plane: residuals of the rolling constraints."""
    states = zip(solution.t, solution.q, solution.u, strict=True)
    return [float(np.hypot(*reference.residuals(t, q[:5], u[:5])[1])) for t, q, u in states]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot, CASES)
