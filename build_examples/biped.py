"""Biped on rough ground
=====================

A biped with rigid feet on rough ground, whose friction has states without finite forces.

Planar: a torso, two thighs, two shanks and two feet, seven uniform bars. x points forward, y up, z to the left; gravity
``g`` acts along -y. (x, y) is the hip, ``torso`` the angle of the torso from the vertical; ``hip_l`` and ``hip_r`` turn
the thighs forward against the torso, ``knee_l`` and ``knee_r`` are flexions, ``ankle_l`` and ``ankle_r`` lift the
toes. All angles are about z. q = (x, y, torso, hip_l, knee_l, ankle_l, hip_r, knee_r, ankle_r), u = q' (u1 to u9).
Lengths ``l_torso``, ``l_thigh``, ``l_shank``, masses ``m_torso``, ``m_thigh``, ``m_shank``, ``m_foot``. The sole is the
distance ``sole`` below the ankle, from ``heel`` behind it to ``toe`` in front of it.

The moment of each joint is ``-k (angle - reference) - c (angle' - reference')``. The references make the biped walk on
the spot at the rate ``omega``: hip ``a sin(omega t)``, knee ``a (1 - cos(omega t))``, ankle their difference, so that
the foot is level; the right leg is half a period later. The state ``work`` is the work of the joint moments. Nothing
keeps the biped upright: it stumbles.

Heels and toes strike the ground without rebound (e = 0), with the friction ``mu``. A stiff leg behind a foot that
slides forward makes ``D_nn - mu D_nt`` small or negative already at mu = 0.5. With ``paradox="error"`` a run stops
where the law of Coulomb has several solutions or none, with ``paradox="impact"`` it goes on. ``campaign`` counts
the runs of many starts that reach their end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

DEFAULTS = {
    "l_torso": 0.6,
    "l_thigh": 0.45,
    "l_shank": 0.45,
    "sole": 0.07,
    "heel": 0.06,
    "toe": 0.18,
    "m_torso": 45.0,
    "m_thigh": 7.0,
    "m_shank": 3.5,
    "m_foot": 1.2,
    "g": 9.81,
    "mu": 0.5,
    "k": 800.0,
    "c": 20.0,
    "a": 0.35,
    "omega": 6.0,
}
INITIAL: dict[str, Any] = {
    "t": 0.0,
    "q": (0.0, 0.975, 0.0, 0.1, 0.1, 0.0, -0.1, 0.1, 0.2),
    "u": (0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    "r": None,
    "s": (0.0,),
}
CONTACTS = ("heel_l", "toe_l", "heel_r", "toe_r")
DURATION = 3.0
STARTS = 20


def model(paradox: str = "impact") -> kg.Model:
    """The biped; ``paradox`` as in :class:`kanegen.Coulomb`."""
    time = me.dynamicsymbols._t
    x, y, torso, work = me.dynamicsymbols("x y torso work")
    joints = [me.dynamicsymbols(f"hip_{side} knee_{side} ankle_{side}") for side in "lr"]
    q = (x, y, torso, *joints[0], *joints[1])
    u = me.dynamicsymbols("u1:10")
    p = {name: sm.Symbol(name) for name in DEFAULTS}

    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    hip = O.locatenew("hip", x * N.x + y * N.y)
    hip.set_vel(N, u[0] * N.x + u[1] * N.y)
    trunk = N.orientnew("trunk", "Axis", (torso, N.z))
    trunk.set_ang_vel(N, u[2] * N.z)
    legs = [_leg(N, O, hip, trunk, side, joints[k], u[3 + 3 * k :], p, sm.pi * k) for k, side in enumerate("lr")]
    return kg.Model(
        name="biped",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=tuple(speed - position.diff(time) for speed, position in zip(u, q, strict=True)),
        bodies=(_bar("torso", N, hip, trunk, p["l_torso"], p["m_torso"]), *(body for leg in legs for body in leg[0])),
        gravity=-p["g"] * N.y,
        loads=[load for leg in legs for load in leg[1]],
        states={work: sum(leg[2] for leg in legs)},
        contacts=[
            kg.Unilateral(
                point.pos_from(O).dot(N.y),
                friction=kg.Coulomb(p["mu"], paradox=paradox),
                slip=point.vel(N).dot(N.x),
                name=name,
            )
            for leg in legs
            for name, point in leg[3]
        ],
        parameters=DEFAULTS,
    )


def _bar(name: str, N: Any, end: Any, frame: Any, length: Any, mass: Any) -> Any:
    """A uniform bar along y of ``frame`` from ``end``; negative lengths point downwards."""
    center = end.locatenew(f"{name} center", length / 2 * frame.y)
    center.v2pt_theory(end, N, frame)
    return me.RigidBody(name, center, frame, mass, (me.inertia(frame, 0, 0, mass * length**2 / 12), center))


def _leg(
    N: Any, O: Any, hip: Any, trunk: Any, side: str, angles: Any, rates: Any, p: Mapping[str, Any], phase: Any
) -> tuple[list[Any], list[Any], Any, list[tuple[str, Any]]]:
    """Bodies, loads, power of the joint moments, and the points of contact of one leg."""
    time = me.dynamicsymbols._t
    swing = p["omega"] * time + phase
    lift = p["a"] * (1 - sm.cos(swing))
    references = (p["a"] * sm.sin(swing), lift, lift - p["a"] * sm.sin(swing))
    above, joint, bodies, loads, power = trunk, hip, [], [], 0
    for part, angle, rate, reference, sign in zip(
        ("thigh", "shank", "foot"), angles, rates, references, (1, -1, 1), strict=False
    ):
        frame = above.orientnew(f"{part}_{side}", "Axis", (sign * angle, above.z))
        frame.set_ang_vel(above, sign * rate * above.z)
        moment = -p["k"] * (angle - reference) - p["c"] * (rate - reference.diff(time))
        loads += [(frame, sign * moment * N.z), (above, -sign * moment * N.z)]
        power += moment * rate
        if part != "foot":
            length = -p[f"l_{part}"]
            bodies.append(_bar(f"{part}_{side}", N, joint, frame, length, p[f"m_{part}"]))
            lower = joint.locatenew(f"{part}_{side} end", length * frame.y)
            lower.v2pt_theory(joint, N, frame)
            joint = lower
        above = frame
    sole = {name: joint.locatenew(f"{name}_{side}", p_x * above.x - p["sole"] * above.y) for name, p_x in _ends(p)}
    center = joint.locatenew(f"foot_{side} center", (p["toe"] - p["heel"]) / 2 * above.x - p["sole"] / 2 * above.y)
    for point in (center, *sole.values()):
        point.v2pt_theory(joint, N, above)
    inertia = me.inertia(above, 0, 0, p["m_foot"] * (p["heel"] + p["toe"]) ** 2 / 12)
    bodies.append(me.RigidBody(f"foot_{side}", center, above, p["m_foot"], (inertia, center)))
    return bodies, loads, power, [(f"{name}_{side}", point) for name, point in sole.items()]


def _ends(p: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The ends of the sole with their distances in front of the ankle."""
    return ("heel", -p["heel"]), ("toe", p["toe"])


def start(solver: kg.Solver, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random q and u for which the lowest point of the feet touches the ground."""
    rng = np.random.default_rng(seed)
    leg = ((-0.3, 0.3), (0.0, 0.5), (-0.2, 0.2))
    q = np.array([0.0, 0.0, rng.uniform(-0.1, 0.1), *(rng.uniform(*limits) for limits in (*leg, *leg))])
    u = rng.normal(0.0, 0.5, 9)
    u[0] = rng.uniform(0.0, 1.0)
    q[1] = -sole_heights(q).min()
    return q, u


def sole_heights(q: np.ndarray) -> np.ndarray:
    """Heights of the four points of contact, in the order of ``CONTACTS``, m."""
    heights = []
    for hip, knee, ankle in (q[3:6], q[6:9]):
        thigh = q[2] + hip
        shank = thigh - knee
        foot = shank + ankle
        joint = q[1] - DEFAULTS["l_thigh"] * np.cos(thigh) - DEFAULTS["l_shank"] * np.cos(shank)
        ends = (-DEFAULTS["heel"], DEFAULTS["toe"])
        heights += [joint + end * np.sin(foot) - DEFAULTS["sole"] * np.cos(foot) for end in ends]
    return np.array(heights)


def build(paradox: str = "impact") -> kg.Solver:
    return kg.build(model(paradox), functions=("rhs", "energy"))


def run(solver: kg.Solver, seed: int) -> tuple[kg.Solution, bool]:
    """The motion from a random start, and whether it reached its end."""
    q, u = start(solver, seed)
    try:
        return solver.integrate((0.0, DURATION), q, u, s0=[0.0], rtol=1e-7, atol=1e-9), True
    except kg.IntegrationError as error:
        return error.solution, False


def campaign(count: int = 200, paradox: str = "impact") -> list[tuple[kg.Solution, bool]]:
    """The motions of the starts 0 to ``count - 1``, and whether they reached their end."""
    solver = build(paradox)
    return [run(solver, seed) for seed in range(count)]


def energy_gains(solver: kg.Solver, solution: kg.Solution) -> tuple[float, float]:
    """The largest increase of the energy in an impact, and that of energy less work along the motion, J."""
    impacts = [
        solver.energy(event.t, event.q, event.u_after) - solver.energy(event.t, event.q, event.u_before)
        for event in solution.events
        if event.jumps
    ]
    balance = solver.energy(solution.t, solution.q, solution.u) - solution.s[:, 0]
    return max(impacts, default=0.0), float(np.diff(balance).max())


def simulate(paradox: str = "impact") -> tuple[kg.Solver, kg.Solution]:
    solver = build(paradox)
    return solver, run(solver, 0)[0]


CASES = {"impact": {"paradox": "impact"}}


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    runs = [run(solver, seed) for seed in range(STARTS)]
    yield f"runs of {STARTS} that stop", sum(not finished for _, finished in runs), 0.05 * STARTS
    gains = np.array([energy_gains(solver, motion) for motion, _ in runs]).max(axis=0)
    yield "largest increase of the energy in an impact (J)", max(gains[0], 0.0), 1e-9
    yield "largest increase of energy less work (J)", max(gains[1], 0.0), 1e-4
    depth = min(sole_heights(q).min() for motion, _ in runs for q in motion.q)
    yield "largest penetration of a foot (m)", min(depth, 0.0), 1e-6


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    _, solution = runs["impact"]
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    feet, forces, energy = left.subplots(3, 1, sharex=True)
    feet.plot(solution.t, [sole_heights(q) for q in solution.q], label=CONTACTS)
    feet.set_ylabel("height (m)")
    feet.legend(fontsize="small")
    solution.plot(list(CONTACTS), ax=forces)
    forces.set(ylabel="normal forces (N)", ylim=(0.0, 5e3))
    forces.legend(handles=forces.get_lines(), fontsize="x-small")
    energy.plot(solution.t, solution.energy - solution["work"])
    energy.set(xlabel="t (s)", ylabel="energy less work (J)")
    kg.plot.strobe(solution, _bars, times=np.linspace(0.0, 0.9, 6), ax=right).set_title("0 to 0.9 s")


def _bars(x: Any, y: Any, torso: Any, *angles: Any) -> list[tuple[Any, Any]]:
    """The left leg from toe to hip, the right one from the hip to its toe and back, the top of the torso."""

    def leg(hip: Any, knee: Any, ankle: Any) -> list[tuple[Any, Any]]:
        thigh, shank = torso + hip, torso + hip - knee
        foot, points = shank + ankle, [(x, y)]
        for angle, length in ((thigh, DEFAULTS["l_thigh"]), (shank, DEFAULTS["l_shank"])):
            points.append((points[-1][0] + length * np.sin(angle), points[-1][1] - length * np.cos(angle)))
        ends = ((end, -DEFAULTS["sole"]) for end in (-DEFAULTS["heel"], DEFAULTS["toe"]))
        cosine, sine = np.cos(foot), np.sin(foot)
        ankle_x, ankle_y = points[-1]
        return points + [(ankle_x + a * cosine - b * sine, ankle_y + a * sine + b * cosine) for a, b in ends]

    right = leg(*angles[3:])
    top = x - DEFAULTS["l_torso"] * np.sin(torso), y + DEFAULTS["l_torso"] * np.cos(torso)
    return [*leg(*angles[:3])[::-1], *right[1:], *right[-2::-1], top]


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot, CASES)
