"""Two-track vehicle on tires
=========================

A car of five bodies on tires with the Magic Formula and relaxation, which turns, crosses a bump and brakes with slip
control.

The body has six degrees of freedom: the position ``x``, ``y``, ``z`` of its center, yaw ``psi``, pitch ``theta`` and
roll ``phi``, with x forward, y to the left and z upward. Each wheel (``fl``, ``fr``, ``rl``, ``rr``) moves along z of
the body on a spring and a damper, ``h_fl`` and so on, positive upward, and rotates with the speed ``w_fl`` and so on.
Speeds are the velocity ``vx``, ``vy``, ``vz`` and the angular velocity ``wx``, ``wy``, ``wz`` of the body in its own
axes. The springs carry the weight at h = 0.

Inputs are the angle ``delta`` of the front wheels, which is taken as slow; the torque ``drive`` on each rear wheel,
by default ``kv (v - vx)``; and the torque ``brake`` (not negative) on each wheel. Brakes act against the rotation, by
a Coulomb friction that is rounded below 0.5 rad/s. Where the slip of a wheel exceeds ``slip``, its brake is released,
in proportion to ``gain``.

``kg.tires.from_tir`` reads the coefficients from car_tire.tir. The tire was measured on the left; those on the right
are mirrored. The road is a table of x and y, with a bump on the left that one case crosses; beyond it the road is
a plane.

For small angles the steady yaw rate is that of the linear bicycle model (Pacejka 2012, chapter 1.3) with the slopes
of lateral force and aligning moment of the tire over slip angle and inclination, at the roll angle of the solution.
The script compares with it. Over the bump, the impulse of all loads must carry the weight; braking with slip control
must use the friction of the tires and stop the car earlier than without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

FILE = Path(__file__).with_name("car_tire.tir")
CORNERS = {"fl": (1, 1), "fr": (1, -1), "rl": (-1, 1), "rr": (-1, -1)}
"""Front or rear, and left or right."""

DEFAULTS = {
    **{"m": 1350.0, "Ix": 480.0, "Iy": 1900.0, "Iz": 2100.0, "g": 9.81},
    **{"a": 1.2, "b": 1.4, "track": 1.5, "height": 0.25},
    **{"mw": 35.0, "Jw": 1.1, "Jd": 0.7},
    **{"k_f": 24e3, "k_r": 22e3, "c_f": 2200.0, "c_r": 2000.0},
    **{"slip": 0.08, "gain": 12.0, "v": 20.0, "kv": 2000.0},
}
"""``height`` is that of the center above those of the wheels; k and c are per wheel."""

CASES = {name: {"case": name} for name in ("turn", "bump", "brake", "brake without control")}
RADIUS = 0.327
"""Of the tires under their loads, m."""

STEER, BRAKE = 0.002, 2500.0
"""Angle, rad, of the turn, and torque on each wheel, N m."""


BEYOND = 20.0
"""Where cases on the plane start, beyond the bump, m."""


def bump() -> kg.Table:
    """A bump of 6 cm for the left wheels, between x = 10 m and 12 m."""
    x, y = np.linspace(5.0, 17.0, 49), np.linspace(-3.0, 3.0, 25)
    along = np.where((x >= 10) & (x <= 12), 0.03 * (1 - np.cos(np.pi * (x - 10))), 0.0)
    left = (1 + np.clip(2 * y, -1, 1)) / 2
    return kg.Table(x, y, np.outer(along, left), kind="natural", name="bump", extrapolate="constant")


def model() -> kg.Model:
    """The car; outputs are those of the wheels, such as ``fl_Fz``, ``fl_kappa`` and ``fl_alpha``."""
    p = {name: sm.Symbol(name) for name in DEFAULTS}
    delta, drive, brake = me.dynamicsymbols("delta drive brake")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    parts, car, C = _body(p, N, O)
    tire, road = kg.tires.from_tir(FILE), kg.tires.road(N, O, bump())
    for name, (front, left) in CORNERS.items():
        steered = car.orientnew(f"steered_{name}", "Axis", (delta, car.z)) if front > 0 else car
        hub, frame = _corner(parts, p, name, (N, car, steered), C, (front, left))
        mounted = tire.mounted("left") if left > 0 else tire.mounted("right")
        wheel = kg.tires.wheel(mounted, name, center=hub, frame=frame, axis=steered.y, road=road)
        slip, rate = next(iter(wheel.states)), parts["speeds"][-1]
        release = sm.Max(0, 1 - p["gain"] * sm.Max(0, -slip - p["slip"]))
        torque = (0 if front > 0 else drive) - brake * release * sm.tanh(rate / 0.5)
        parts["loads"] += [*wheel.loads, (frame, torque * steered.y), (car, -torque * steered.y)]
        parts["states"] |= wheel.states
        parts["outputs"] |= wheel.outputs
    return kg.Model(
        name="two_track_vehicle",
        frame=N,
        inputs=(
            kg.Input(delta, rate=0, default=0.0),
            kg.Input(drive, law=p["kv"] * (p["v"] - parts["speeds"][0])),
            kg.Input(brake, default=0.0),
        ),
        gravity=-p["g"] * N.z,
        parameters={p[name]: value for name, value in DEFAULTS.items()},
        initial=_start(parts),
        **parts,
    )


def _start(parts: Mapping[str, Any]) -> dict[Any, float]:
    """Straight ahead with the speed v, close to the static deflection of tires and springs."""
    moving = {"z": DEFAULTS["height"] + RADIUS, "vx": DEFAULTS["v"]}
    moving |= {f"w_{name}": DEFAULTS["v"] / RADIUS for name in CORNERS}
    symbols = (*parts["coordinates"], *parts["speeds"], *parts["states"])
    return {"t": 0.0, **{symbol: moving.get(symbol.func.__name__, 0.0) for symbol in symbols}}


def _body(p: Mapping[str, Any], N: Any, O: Any) -> tuple[dict[str, Any], Any, Any]:
    """The parts of a model with the body alone, its frame and its center."""
    x, y, z, psi, theta, phi = place = me.dynamicsymbols("x y z psi theta phi")
    vx, vy, vz, wx, wy, wz = speeds = me.dynamicsymbols("vx vy vz wx wy wz")
    car = N.orientnew("car", "Body", (psi, theta, phi), "ZYX")
    car.set_ang_vel(N, wx * car.x + wy * car.y + wz * car.z)
    C = O.locatenew("C", x * N.x + y * N.y + z * N.z)
    C.set_vel(N, vx * car.x + vy * car.y + vz * car.z)
    turn = (wy * sm.sin(phi) + wz * sm.cos(phi)) / sm.cos(theta)
    rates = [coordinate.diff() - C.vel(N).dot(axis) for coordinate, axis in zip((x, y, z), N, strict=True)]
    rates += [
        psi.diff() - turn,
        theta.diff() - wy * sm.cos(phi) + wz * sm.sin(phi),
        phi.diff() - wx - turn * sm.sin(theta),
    ]
    body = me.RigidBody("car", C, car, p["m"], (me.inertia(car, p["Ix"], p["Iy"], p["Iz"]), C))
    parts = {"coordinates": [*place], "speeds": [*speeds], "kinematics": rates, "bodies": [body], "loads": []}
    return {**parts, "states": {}, "outputs": {}}, car, C


def _corner(
    parts: dict[str, Any], p: Mapping[str, Any], name: str, frames: tuple[Any, Any, Any], C: Any, side: tuple[int, int]
) -> tuple[Any, Any]:
    """Add a wheel with its strut to the parts; returns its center and its frame."""
    (N, car, steered), (front, left) = frames, side
    h, angle, v, w = me.dynamicsymbols(f"h_{name} angle_{name} v_{name} w_{name}")
    along, axle = (p["a"], "f") if front > 0 else (-p["b"], "r")
    hub = C.locatenew(f"hub_{name}", along * car.x + left * p["track"] / 2 * car.y + (h - p["height"]) * car.z)
    hub.set_vel(N, C.vel(N) + car.ang_vel_in(N).cross(hub.pos_from(C)) + v * car.z)
    frame = steered.orientnew(f"wheel_{name}", "Axis", (angle, steered.y))
    frame.set_ang_vel(N, car.ang_vel_in(N) + w * steered.y)
    inertia = me.inertia(frame, p["Jd"], p["Jw"], p["Jd"])
    weight = p["m"] * p["g"] * (p["b"] if front > 0 else p["a"]) / (p["a"] + p["b"]) / 2
    strut = (weight + p[f"k_{axle}"] * h + p[f"c_{axle}"] * v) * car.z
    parts["coordinates"] += [h, angle]
    parts["speeds"] += [v, w]
    parts["kinematics"] += [h.diff() - v, angle.diff() - w]
    parts["bodies"].append(me.RigidBody(f"wheel_{name}", hub, frame, p["mw"], (inertia, hub)))
    there = C.locatenew(f"mount_{name}", hub.pos_from(C))
    there.set_vel(N, C.vel(N) + car.ang_vel_in(N).cross(hub.pos_from(C)))
    parts["loads"] += [(hub, -strut), (there, strut)]
    return hub, frame


@cache
def built() -> kg.Solver:
    return kg.build(model())


def simulate(case: str = "turn") -> tuple[kg.Solver, kg.Solution]:
    """A case: ``"turn"``, ``"bump"``, ``"brake"``, or ``"brake without control"``."""
    solver = built()
    if case.startswith("brake"):
        solver = solver.with_parameters(kv=0.0, slip=solver.parameters["slip"] if case == "brake" else 10.0)
    times, inputs = {
        "turn": (6.0, {"delta": ([0.0, 0.5, 0.7, 6.0], [0.0, 0.0, STEER, STEER])}),
        "bump": (4.0, {}),
    }.get(case, (4.0, {"brake": ([0.0, 0.5, 0.6, 4.0], [0.0, 0.0, BRAKE, BRAKE])}))
    start = {"x": 0.0 if case == "bump" else BEYOND}
    return solver, solver.integrate(times, start, r=inputs, rtol=1e-8, atol=1e-10)


def yaw_rate(solver: kg.Solver, solution: kg.Solution) -> float:
    """The steady yaw rate, rad/s, of the linear bicycle model with the roll of the solution."""
    p = solver.parameters
    speed, roll = solution.u[-1, 0], solution.q[-1, 5]
    mass = p["m"] + 4 * p["mw"]
    ahead = 2 * p["mw"] * (p["a"] - p["b"]) / mass
    front, rear = p["a"] - ahead, p["b"] + ahead
    slopes = [_slopes(mass * p["g"] * other / (front + rear) / 2) for other in (rear, front)]
    # Unknown are the sideslip b and the yaw rate r: slip angles are b + front r / v - delta and b - rear r / v.
    lateral, moment = np.array([-mass * speed * np.array([0.0, 1.0]), np.zeros(2)])
    known = np.zeros(2)
    for arm, steer, (force, couple) in ((front, STEER, slopes[0]), (-rear, 0.0, slopes[1])):
        turning = arm * force + couple
        angle = np.array([1.0, arm / speed])
        lateral, moment = lateral + 2 * force[0] * angle, moment + 2 * turning[0] * angle
        known += 2 * np.array([force, turning]) @ np.array([steer, -roll])
    return float(np.linalg.solve([lateral, moment], known)[1])


def _slopes(load: float) -> np.ndarray:
    """The derivatives of lateral force and moment (rows) by slip angle and inclination, at rest of both."""
    tire, step = kg.tires.from_tir(FILE), 1e-4
    pairs = [[tire.forces(load, **{key: sign * step}) for sign in (1, -1)] for key in ("alpha", "gamma")]
    return np.array([[float(getattr(b, n) - getattr(a, n)) / -2 / step for a, b in pairs] for n in ("Fy", "Mz")])


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    p, outputs = solver.parameters, solution.outputs
    loads = np.array([outputs[f"{name}_Fz"] for name in CORNERS])
    yield "least load of a tire (N)", min(loads.min(), 0.0), 0.0
    if p["kv"] == 0.0:
        yield from _braking(solver, solution)
    elif abs(solution.u[-1, 5]) > 1e-3:
        yield "yaw rate relative to the linear bicycle model", solution.u[-1, 5] / yaw_rate(solver, solution) - 1, 2e-2
    else:
        weight = (p["m"] + 4 * p["mw"]) * p["g"] * solution.t[-1]
        impulse = np.trapezoid(loads.sum(axis=0), solution.t)
        yield "impulse of the loads relative to that of the weight", impulse / weight - 1, 5e-3
        yield "the bump is forgotten: roll at the end (rad)", solution.q[-1, 5], 1e-3


def _braking(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    if solver.parameters["slip"] > 1.0:
        return
    tire, g = kg.tires.from_tir(FILE).coefficients, solver.parameters["g"]
    fast = (solution.t > 0.9) & (solution.u[:, 0] > 5.0)
    times, speeds = solution.t[fast], solution.u[fast, 0]
    mean = (speeds[0] - speeds[-1]) / (times[-1] - times[0])
    yield "lost of the friction at the nominal load", 1 - mean / (tire["PDX1"] * g), 0.08
    slips = np.array([solution.s[fast, 2 * k] for k in range(4)])
    yield "largest slip", slips.min(), 0.25
    longer = simulate("brake without control")[1]
    distance, other = (run.q[-1, 0] - run.q[0, 0] for run in (solution, longer))
    yield "braking distance relative to that without control", distance / other, 0.9


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    top, bottom = figure.subfigures(2, 1)
    left, right = top.subplots(1, 2)
    turn, bumpy = runs["turn"][1], runs["bump"][1]
    for name in CORNERS:
        left.plot(turn.t, 1e3 * turn.outputs[f"{name}_alpha"], label=name)
        right.plot(bumpy.t, bumpy.outputs[f"{name}_Fz"] / 1e3, label=name)
    left.set(title="turn", xlabel="t / s", ylabel="slip angle / mrad")
    right.set(title="bump", xlabel="t / s", ylabel="load / kN", xlim=(0.3, 1.5))
    right.legend()
    speed, slip = bottom.subplots(1, 2)
    for name in ("brake", "brake without control"):
        solution = runs[name][1]
        speed.plot(solution.t, solution.u[:, 0], label=name)
        slip.plot(solution.t, solution.s[:, 0], label=name)
    speed.set(xlabel="t / s", ylabel="speed / (m/s)")
    slip.set(xlabel="t / s", ylabel="slip of a front tire")
    speed.legend()


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot, CASES)
