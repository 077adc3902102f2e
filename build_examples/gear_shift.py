"""A car that shifts its gears
===========================

A car accelerates in three gears; a state machine cuts the throttle and opens the clutch while it shifts.

The car (``m``) rolls on a straight road, u = (v, omega): its speed and that of the engine (``J``). The torque of the
engine is a table of omega; the clutch transmits ``Tc tanh((omega - n v / r) / w)``, with the ratio n of the gear and
the radius r of the wheels, and acts on the car with the force n / r times this torque. Air resists with ``c v^2``.

The modes are the gears first, second and third, and the shifts between them, in which the clutch is open and the
engine idles with the torque ``-Tb``. A shift begins where the engine reaches ``shift_at``, and takes ``shift_time``; a
clock, a state with the rate 1 that the transitions reset, ends it. All of these instants are located.

The script compares the motion with the equations written by hand, which SciPy integrates from one instant to the next,
and with the balance of energy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import kanegen as kg

DEFAULTS = {
    **{"m": 1200.0, "J": 0.3, "c": 0.6, "r": 0.3, "Tc": 200.0, "w": 4.0, "Tb": 40.0},
    **{"n1": 13.0, "n2": 7.5, "n3": 4.5, "shift_at": 580.0, "shift_time": 0.35},
}
UNITS = {
    **{"x": "m", "v": "km/h", "phi": "rad", "omega": "rpm", "clock": "s", "work": "kJ", "gear": ""},
    **{"m": "kg", "J": "kg m^2", "c": "N s^2/m^2", "r": "m", "Tc": "N m", "w": "rad/s", "Tb": "N m"},
    **{"n1": "", "n2": "", "n3": "", "shift_at": "rad/s", "shift_time": "s"},
}
CURVE = (
    np.array([0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0]),
    np.array([40.0, 65.0, 85.0, 100.0, 104.0, 100.0, 88.0, 66.0, 30.0]),
)
"""Speeds of the engine, rad/s, and its torque, N m."""

GEARS = ("first", "second", "third")
SHIFTS = ("shift 1-2", "shift 2-3")
T_END = 40.0


def gearbox(omega: Any, clock: Any, shift_at: Any, shift_time: Any) -> kg.Modes:
    """The gears and the shifts between them."""
    transitions = []
    for gear, shift, following in zip(GEARS[:-1], SHIFTS, GEARS[1:], strict=True):
        transitions += [
            kg.Transition(gear, shift, omega - shift_at, reset={clock: 0}),
            kg.Transition(shift, following, clock - shift_time),
        ]
    modes = tuple(name for pair in zip(GEARS, (*SHIFTS, ""), strict=True) for name in pair if name)
    return kg.Modes("gear", modes, transitions, final="third")


def model() -> kg.Model:
    """The car, with its mode, the clock of the shifts and the work of the engine less what is lost."""
    x, v, phi, omega, clock, work = me.dynamicsymbols("x v phi omega clock work")
    m, J, c, r, Tc, w, Tb, n1, n2, n3, shift_at, shift_time = sm.symbols("m J c r Tc w Tb n1 n2 n3 shift_at shift_time")
    road, origin = me.ReferenceFrame("road"), me.Point("origin")
    origin.set_vel(road, 0)
    body = origin.locatenew("body", x * road.x)
    body.set_vel(road, v * road.x)
    crank = road.orientnew("crank", "Axis", (phi, road.x))
    crank.set_ang_vel(road, omega * road.x)
    shaft = origin.locatenew("shaft", 0)
    shaft.set_vel(road, 0)
    engine = me.RigidBody("engine", shaft, crank, 1, (me.inertia(crank, J, 0, 0), shaft))

    gear = gearbox(omega, clock, shift_at, shift_time)
    ratio = gear.choose(dict(zip(GEARS, (n1, n2, n3), strict=True)) | {"otherwise": n3})
    closed = gear.is_in(*GEARS)
    curve = kg.Table(*CURVE, name="torque_curve", units=("rad/s", "N m"))
    driven = gear.choose(dict.fromkeys(GEARS, curve(omega)) | {"otherwise": -Tb})
    slip = omega - ratio * v / r
    clutch = closed * Tc * sm.tanh(slip / w)
    drag = c * v * sm.Abs(v)
    return kg.Model(
        name="gear_shift",
        frame=road,
        coordinates=(x, phi),
        speeds=(v, omega),
        kinematics=(v - x.diff(), omega - phi.diff()),
        bodies=(me.Particle("car", body, m), engine),
        loads=((body, (ratio / r * clutch - drag) * road.x), (crank, (driven - clutch) * road.x)),
        states={clock: 1, work: driven * omega - clutch * slip - drag * v},
        modes=[gear],
        outputs={"clutch": clutch},
        parameters=DEFAULTS,
        units=UNITS,
        initial={"t": 0.0, x: 0.0, v: 0.0, phi: 0.0, omega: 100.0, clock: 0.0, work: 0.0},
    )


def simulate(**parameters: Any) -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model()).with_parameters(**parameters)
    return solver, solver.integrate(T_END, rtol=1e-9, atol=1e-9)


def by_hand(p: Mapping[str, float]) -> tuple[list[float], np.ndarray]:
    """The instants of the shifts, and (x, v, phi, omega) at the end: a run of SciPy for each mode."""
    torque = CubicSpline(*CURVE)
    t, y, instants = 0.0, np.array([0.0, 0.0, 0.0, 100.0]), []

    def rates(ratio: float, t: float, y: np.ndarray) -> list[float]:
        _, v, _, omega = y
        clutch = p["Tc"] * np.tanh((omega - ratio * v / p["r"]) / p["w"]) if ratio else 0.0
        engine = torque(omega) if ratio else -p["Tb"]
        force = ratio / p["r"] * clutch - p["c"] * v * abs(v)
        return [v, force / p["m"], omega, (engine - clutch) / p["J"]]

    def fast(t: float, y: np.ndarray) -> float:
        return float(y[3] - p["shift_at"])

    fast.terminal, fast.direction = True, 1  # type: ignore[attr-defined]
    for k, ratio in enumerate((p["n1"], 0.0, p["n2"], 0.0, p["n3"])):
        end = T_END if ratio else t + p["shift_time"]
        events = fast if ratio and k < 4 else None
        run = solve_ivp(
            lambda t, y, ratio=ratio: rates(ratio, t, y), (t, end), y, "DOP853", events=events, rtol=1e-11, atol=1e-10
        )
        t, y = float(run.t[-1]), run.y[:, -1]
        instants.append(t)
    return instants[:-1], y


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    p = dict(solver.parameters)
    instants, end = by_hand(p)
    found = [event.t for event in solution.events if event.kind == "user"]
    yield "number of transitions, against SciPy", len(found) - len(instants), 0
    yield "instants of the transitions, against SciPy (s)", np.abs(np.subtract(found, instants)).max(), 1e-6
    motion = np.array([solution.q[-1, 0], solution.u[-1, 0], solution.q[-1, 1], solution.u[-1, 1]])
    yield "state at the end, against SciPy, relative", np.abs(motion / end - 1).max(), 1e-6
    (v, omega), (_, omega_start) = solution.u[-1], solution.u[0]
    energy = p["m"] * v**2 / 2 + p["J"] * (omega**2 - omega_start**2) / 2
    yield "energy against work, relative", solution["work"][-1] / energy - 1, 1e-6


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    axes = figure.subplots(3, 1, sharex=True)
    for name, (_, solution) in runs.items():
        solution.plot("v", "omega", "clutch", ax=axes, label=name)
    for axis in axes[::2]:
        if legend := axis.get_legend():
            legend.remove()


if __name__ == "__main__":
    from _report import script

    cases = {"shifts of 0.35 s": {}, "shifts of 1 s": {"shift_time": 1.0}}
    script(__doc__, simulate, checks, plot, cases)
