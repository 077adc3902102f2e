"""Benchmark bicycle
=================

The nonlinear benchmark bicycle of Meijaard, Papadopoulos, Ruina and Schwab, and its eigenvalues.

The four rigid bodies are the rear wheel R, the rear frame with rider B, the front fork with handlebar H, and the
front wheel F. The wheels are knife edges that roll without slip on a horizontal plane. x points forward, y to the
right, z down. The coordinates are the rear contact point (x, y), yaw psi, roll phi and pitch th of the rear frame,
the angle thR of the rear wheel relative to the rear frame, the steer angle de, and the angle thF of the front wheel
relative to the fork; u = q'. Contact of the front wheel with the ground is a holonomic constraint, which makes the
pitch dependent. Rolling of both wheels gives four nonholonomic constraints, so that three degrees of freedom remain.
Positions and inertias are those of the upright position in the paper with th = de = 0, measured from the rear
contact.

``model(tracked=False)`` omits the coordinates on which nothing depends: the position (x, y) and the angles thR and
thF of the wheels. Its four coordinates (psi, phi, th, de) have six speeds, since the wheels still turn. Of the rear
contact only the velocity is given, which is zero, so that the heights of the bodies are measured from it.

Source: J. P. Meijaard, J. M. Papadopoulos, A. Ruina and A. L. Schwab, "Linearized dynamics equations for the balance
and steer of a bicycle: a benchmark and review", Proc. R. Soc. A 463 (2007) 1955-1982: parameters of its table 1,
eigenvalues of its table 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from math import pi
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {
    **{"w": 1.02, "c": 0.08, "lambda": pi / 10, "g": 9.81},
    **{"rR": 0.3, "mR": 2.0, "IRxx": 0.0603, "IRyy": 0.12},
    **{"xB": 0.3, "zB": -0.9, "mB": 85.0, "IBxx": 9.2, "IByy": 11.0, "IBzz": 2.8, "IBxz": 2.4},
    **{"xH": 0.9, "zH": -0.7, "mH": 4.0, "IHxx": 0.05892, "IHyy": 0.06, "IHzz": 0.00708, "IHxz": -0.00756},
    **{"rF": 0.35, "mF": 3.0, "IFxx": 0.1405, "IFyy": 0.28},
}
"""Parameters of the benchmark, in m, rad, kg, kg m^2 and m/s^2."""


def _modes(weave: complex, capsize: float, castering: float) -> tuple[complex, ...]:
    return weave, weave.conjugate(), capsize, castering


EIGENVALUES: dict[int, tuple[complex, ...]] = {
    0: (5.53094371765393, 3.13164324790656, -3.13164324790656, -5.53094371765393),
    1: _modes(3.52696170990070 + 0.80774027519930j, -3.13423125066578, -7.11008014637442),
    2: _modes(2.68234517512745 + 1.68066296590675j, -3.07158645641514, -8.67387984831735),
    3: _modes(1.70675605663975 + 2.31582447384325j, -2.63366137253667, -10.35101467245920),
    4: _modes(0.41325331521125 + 3.07910818603206j, -1.42944427361326, -12.15861426576447),
    5: _modes(-0.77534188219585 + 4.46486771378823j, -0.32286642900409, -14.07838969279822),
    6: _modes(-1.52644486584142 + 5.87673060598709j, -0.00406690076970, -16.08537123098026),
    7: _modes(-2.13875644258362 + 7.19525913329805j, 0.10268170574766, -18.15788466125262),
    8: _modes(-2.69348683581097 + 8.46037971396931j, 0.14327879765713, -20.27940894394569),
    9: _modes(-3.21675402252485 + 9.69377351531791j, 0.15790184030917, -22.43788559040858),
    10: _modes(-3.72016840437287 + 10.90681139476287j, 0.16105338653172, -24.62459635017404),
}
"""Table 2 of the paper: eigenvalues (1/s) by forward speed (m/s); from 1 m/s on: weave pair, capsize, castering."""


COORDINATES = ("x", "y", "psi", "phi", "th", "thR", "de", "thF")
IGNORABLE = ("x", "y", "thR", "thF")
PLACE = ("x", "y")


def upright(speed: float, tracked: bool = True) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """q and u of steady straight riding at ``speed`` (m/s)."""
    spin_R, spin_F = -speed / DEFAULTS["rR"], -speed / DEFAULTS["rF"]
    q, u = (0.0,) * 8, (speed, 0.0, 0.0, 0.0, 0.0, spin_R, 0.0, spin_F)
    return (q, u) if tracked else (q[:4], u[2:])


def pushed(speed: float = 4.6, roll_rate: float = 0.5) -> dict[str, Any]:
    """Upright at ``speed`` (m/s) with a ``roll_rate`` (rad/s), the start of the paper's figure 4.

    To first order, rolling does not move the front contact sideways, so that no other speed changes.
    """
    q, u = upright(speed)
    return {"t": 0.0, "q": q, "u": (*u[:3], roll_rate, *u[4:]), "r": None}


INITIAL: dict[str, Any] = pushed()


def model(tracked: bool = True) -> kg.Model:
    """The bicycle; phi', thR' and de' are independent speeds.

    With ``tracked``, the coordinates include those on which nothing depends: x, y, thR and thF.
    """
    symbols = {name: me.dynamicsymbols(name) for name in COORDINATES}
    speeds = {name: me.dynamicsymbols(f"u_{name}") for name in COORDINATES if tracked or name not in PLACE}
    q = tuple(symbols[name] for name in COORDINATES if tracked or name not in IGNORABLE)
    _, _, psi, phi, th, thR, de, thF = symbols.values()
    p = {name: sm.Symbol(name) for name in DEFAULTS}
    time = me.dynamicsymbols._t
    rates = {name: symbols[name].diff(time) if symbols[name] in q else speed for name, speed in speeds.items()}

    N = me.ReferenceFrame("N")
    yaw, roll, B = (me.ReferenceFrame(name) for name in ("yaw", "roll", "B"))
    yaw.orient_axis(N, N.z, psi)
    roll.orient_axis(yaw, yaw.x, phi)
    B.orient_axis(roll, roll.y, th)
    # The steer axis is the z axis of B tilted back by lambda. H is turned back, so that it is parallel to B at de = 0.
    tilted, steered, H = (me.ReferenceFrame(name) for name in ("tilted", "steered", "H"))
    tilted.orient_axis(B, B.y, p["lambda"])
    steered.orient_axis(tilted, tilted.z, de)
    H.orient_axis(steered, steered.y, -p["lambda"])
    R, F = (_wheel(name, carrier, angle if tracked else None, rates[f"th{name}"]) for name, carrier, angle in (
        ("R", B, thR), ("F", H, thF)
    ))  # fmt: skip

    O, contact = me.Point("O"), me.Point("rear_contact")
    rear = contact.locatenew("rear_wheel", -p["rR"] * roll.z)
    if tracked:
        O.set_vel(N, 0)
        contact.set_pos(O, symbols["x"] * N.x + symbols["y"] * N.y)
    else:
        contact.set_vel(N, 0)
        rear.v2pt_theory(contact, N, R)
    frame = rear.locatenew("rear_frame", p["xB"] * B.x + (p["zB"] + p["rR"]) * B.z)
    # The steer axis meets the ground at w + c: trail c ahead of the front contact.
    axis = rear.locatenew("steer_axis", (p["w"] + p["c"]) * B.x + p["rR"] * B.z)
    fork = axis.locatenew("fork", (p["xH"] - p["w"] - p["c"]) * H.x + p["zH"] * H.z)
    front = axis.locatenew("front_wheel", -p["c"] * H.x - p["rF"] * H.z)

    def body(name: str, center: me.Point, turning: Any, axes: Any, **inertia: Any) -> me.RigidBody:
        moments = [p[f"I{name}{k}"] for k in ("xx", "yy", inertia.get("zz", "zz"))]
        return me.RigidBody(
            name, center, turning, p[f"m{name}"], (me.inertia(axes, *moments, izx=inertia.get("xz", 0)), center)
        )

    bodies = (
        # The wheels are symmetric, so that their inertia is constant in the frames that do not spin with them.
        body("R", rear, R, roll, zz="xx"),
        body("B", frame, B, B, xz=p["IBxz"]),
        body("H", fork, H, H, xz=p["IHxz"]),
        body("F", front, F, H, zz="xx"),
    )
    height, slip = _front_contact((N, yaw, roll, B, H), (contact, rear, axis, front), p, rates)
    forward = p["rR"] * (rates["th"] + rates["thR"])
    rolling = (rates["x"] + forward * sm.cos(psi), rates["y"] + forward * sm.sin(psi)) if tracked else ()
    return kg.Model(
        name="whipple_bicycle" if tracked else "whipple_bicycle_untracked",
        frame=N,
        coordinates=q,
        speeds=tuple(speeds.values()),
        kinematics=[speeds[name] - rates[name] for name in COORDINATES if symbols[name] in q],
        bodies=bodies,
        **({"gravity": p["g"] * N.z} if tracked else _weights(bodies, contact, p["g"] * N.z)),
        holonomic_constraints=(height,),
        nonholonomic_constraints=(*rolling, *slip),
        dependent_speeds=[speeds[name] for name in speeds if name not in ("phi", "thR", "de")],
        parameters={p[name]: value for name, value in DEFAULTS.items()},
        shapes={name: kg.shapes.Torus(0.95 * p[f"r{name}"], 0.05 * p[f"r{name}"], axis="y") for name in ("R", "F")},
    )


def _weights(bodies: tuple[me.RigidBody, ...], contact: me.Point, gravity: me.Vector) -> dict[str, Any]:
    """Loads and potential energy of uniform gravity; the contact point moves on a horizontal plane."""
    heights = (body.mass * gravity.dot(body.masscenter.pos_from(contact)) for body in bodies)
    return {
        "loads": [(body.masscenter, body.mass * gravity) for body in bodies],
        "potential_energy": -sm.Add(*heights),
    }


def _wheel(name: str, carrier: me.ReferenceFrame, angle: sm.Expr | None, rate: sm.Expr) -> me.ReferenceFrame:
    """The frame of a wheel that turns in its carrier; without an ``angle`` only its angular velocity is set."""
    wheel = me.ReferenceFrame(name)
    if angle is None:
        wheel.set_ang_vel(carrier, rate * carrier.y)
    else:
        wheel.orient_axis(carrier, carrier.y, angle)
    return wheel


def _front_contact(
    frames: tuple[me.ReferenceFrame, ...],
    points: tuple[me.Point, ...],
    p: Mapping[str, sm.Symbol],
    rates: Mapping[str, sm.Expr],
) -> tuple[sm.Expr, tuple[sm.Expr, sm.Expr]]:
    """Depth of the lowest point of the front wheel, and the velocity of the material point there along yaw x, y."""
    N, yaw, roll, B, H = frames
    rear_contact, rear, axis, front = points
    leaning = N.z.dot(H.y)
    root = sm.sqrt(1 - leaning**2)
    depth = front.pos_from(rear_contact).dot(N.z) + p["rF"] * root

    roll_velocity = rates["psi"] * N.z + rates["phi"] * roll.x
    B_velocity = roll_velocity + rates["th"] * B.y
    tilt = p["lambda"]
    H_velocity = B_velocity + rates["de"] * (sm.sin(tilt) * B.x + sm.cos(tilt) * B.z)
    F_velocity = H_velocity + rates["thF"] * H.y
    lowest = p["rF"] / root * (N.z - leaning * H.y)
    if "x" in rates:
        hub = rates["x"] * N.x + rates["y"] * N.y + roll_velocity.cross(rear.pos_from(rear_contact))
    else:
        hub = rear.vel(N)
    velocity = (
        hub + B_velocity.cross(axis.pos_from(rear)) + H_velocity.cross(front.pos_from(axis)) + F_velocity.cross(lowest)
    )
    return depth, (velocity.dot(yaw.x), velocity.dot(yaw.y))


@cache
def solver(tracked: bool = True) -> kg.Solver:
    """The bicycle with the functions that this script needs."""
    return kg.build(model(tracked), functions=("rhs", "residuals", "energies", "jacobians"))


def linear(speed: float, bicycle: kg.Solver | None = None) -> kg.results.Linearization:
    """Steady straight riding at ``speed`` (m/s), linearized in phi, de, phi', thR', de'."""
    bicycle = bicycle or solver()
    start = upright(speed, tracked="x" in bicycle.description.coordinates)
    upright_linear = bicycle.linearize(0.0, *start, speeds=("u_phi", "u_thR", "u_de"))
    return upright_linear.without_ignorable()


def lateral_eigenvalues(speed: float, bicycle: kg.Solver | None = None) -> np.ndarray:
    """The four eigenvalues of roll and steer (1/s), without that of the forward speed, which is zero."""
    linearized = linear(speed, bicycle)
    lateral = [i for i, name in enumerate(linearized.states) if name != "u_thR"]
    return np.linalg.eigvals(linearized.A[np.ix_(lateral, lateral)]).astype(complex)


def largest_difference(computed: np.ndarray, published: tuple[complex, ...]) -> float:
    """The largest distance of a published eigenvalue from the nearest computed one (1/s)."""
    return float(max(np.abs(computed - value).min() for value in published))


def simulate() -> tuple[kg.Solver, kg.Solution]:
    bicycle = solver()
    return bicycle, bicycle.integrate((0.0, 5.0), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12)


def checks(bicycle: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    for speed, published in EIGENVALUES.items():
        difference = largest_difference(lateral_eigenvalues(speed, bicycle), published)
        yield f"eigenvalues at {speed} m/s against table 2 (1/s)", difference, 1e-11
    difference = largest_difference(lateral_eigenvalues(5, solver(tracked=False)), EIGENVALUES[5])
    yield "eigenvalues at 5 m/s, four coordinates and six speeds (1/s)", difference, 1e-11
    states = list(zip(solution.t, solution.q, solution.u, strict=True))
    energy = np.array([bicycle.energy(*state) for state in states])
    yield "energy drift, relative", np.ptp(energy) / energy[0], 1e-9
    residuals = [bicycle.residuals(*state) for state in states]
    yield "depth of the front contact (m)", max(np.abs(position).max() for position, _ in residuals), 1e-9
    yield "slip of the wheels (m/s)", max(np.abs(velocity).max() for _, velocity in residuals), 1e-8


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((bicycle, solution),) = runs.values()
    speeds = np.linspace(0.0, 10.0, 401)
    real, imaginary, motion = figure.subplots(3, 1, height_ratios=(3, 2, 2))
    states = [linear(speed, bicycle) for speed in speeds]
    kg.plot.modes(states, speeds, parameter="forward speed (m/s)", ax=(real, imaginary))
    for speed, published in EIGENVALUES.items():
        values = [complex(x) for x in published]
        real.plot([speed] * len(values), np.real(values), "k+", markersize=5)
        imaginary.plot([speed] * len(values), np.imag(values), "k+", markersize=5)
    crosses = real.plot([], [], "k+", markersize=5, label="Meijaard et al. (2007)")
    real.set(ylim=(-12.0, 7.0), title="unstable speeds shaded")
    real.legend(handles=crosses)
    solution.plot(["u_phi", "u_de"], ax=motion)
    motion.set(ylabel="rates (rad/s)", title="pushed sideways at 4.6 m/s")
    forward = motion.twinx()
    forward.plot(solution.t, -DEFAULTS["rR"] * solution.u[:, 5], color="C2", label="forward speed (m/s)")
    forward.set(ylabel="speed (m/s)")
    motion.legend(handles=[*motion.lines, *forward.lines], loc="upper right")


def print_eigenvalues() -> None:
    """Print the eigenvalues at 0 to 10 m/s for comparison with the table of the paper."""
    from rich.console import Console
    from rich.table import Table

    table = Table("speed (m/s)", "eigenvalues (1/s)", title="Steady straight riding", header_style="bold")
    for speed in EIGENVALUES:
        values = sorted(lateral_eigenvalues(speed), key=lambda x: (-x.real, -x.imag))
        table.add_row(str(speed), "  ".join(_written(x) for x in values if x.imag >= 0.0))
    Console().print(table)


def _written(x: complex) -> str:
    return f"{x.real:.14f}" + (f" ± {x.imag:.14f}i" if x.imag > 0.0 else "")


if __name__ == "__main__":
    from _report import script

    print_eigenvalues()
    script(__doc__, simulate, checks, plot)
