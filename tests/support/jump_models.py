"""Models whose speeds jump or whose contacts change their modes, small enough to differentiate by differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from numpy.typing import NDArray
from sensitivity_models import differences

import kanegen as kg

Array = NDArray[np.float64]
TIME = me.dynamicsymbols._t
x, y, z, v_x, v_y, v_z = me.dynamicsymbols("x y z v_x v_y v_z")
g, e, mu, m, k, c, a = sm.symbols("g e mu m k c a", positive=True)
PARAMETERS: Mapping[Any, float] = {e: 0.7, mu: 0.3}


def particle(name: str, axes: str = "xz", force: Sequence[Any] = (), **more: Any) -> kg.Model:
    """A particle with the coordinates ``axes`` and their rates v_x ... as speeds, in gravity along -z.

    ``uses``: the symbols among `PARAMETERS` that the arguments contain. ``impulses``: components by name.
    """
    q, u = (me.dynamicsymbols([f"{n}{axis}" for axis in axes]) for n in ("", "v_"))
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    along = [{"x": N.x, "y": N.y, "z": N.z}[axis] for axis in axes]
    P = O.locatenew("P", _vector(q, along))
    P.set_vel(N, _vector(u, along))
    loads = [(P, _vector(force, along))] if force else []
    arguments: dict[str, Any] = {
        "name": name,
        "frame": N,
        "coordinates": q,
        "speeds": u,
        "kinematics": [x.diff(TIME) - v for x, v in zip(q, u, strict=True)],
        "bodies": [me.Particle("P", P, m)],
        "loads": loads,
        "gravity": -g * N.z,
    }
    weight = {} if "gravity" in more and g not in sm.Tuple(*force).free_symbols else {g: 9.81}
    if "impulses" in more:
        struck = {name: _vector(parts, along) for name, parts in more.pop("impulses").items()}
        arguments["impulses"] = {name: [(P, vector)] for name, vector in struck.items()}
    own = {p: PARAMETERS[p] for p in more.pop("uses", ())}
    return kg.Model(**{**arguments, **more, "parameters": {m: 1.2, **weight, **own, **more.get("parameters", {})}})


def _vector(parts: Sequence[Any], along: Sequence[Any]) -> Any:
    return sum((x * n for x, n in zip(parts, along, strict=True)), me.Vector(0))


def slope() -> kg.Model:
    """A ball over a slope without friction."""
    contacts = [kg.Unilateral(z + a * x, kg.Restitution(e), name="slope")]
    return particle("slope_ball", uses=(e,), contacts=contacts, parameters={a: 0.3})


def rough_slope() -> kg.Model:
    """A ball that sticks where it meets a slope."""
    contacts = [kg.Unilateral(z + a * x, kg.Restitution(), kg.Coulomb(mu), v_x - a * v_z, "slope")]
    return particle("rough_slope", contacts=contacts, parameters={a: 0.3, mu: 5.0})


def puck(force: Sequence[Any] = ()) -> kg.Model:
    """A particle on a rough plane."""
    contacts = [kg.Unilateral(z, kg.Restitution(), kg.Coulomb(mu), (v_x, v_y), "plane")]
    return particle("puck", "xyz", force, uses=(mu,), contacts=contacts)


def puck_in_wind() -> kg.Model:
    """A puck that a growing force sets in motion."""
    return puck((10 * TIME, 5 * TIME, 0))


def dragged() -> kg.Model:
    """A block that a spring drags over a floor with different coefficients of static and kinetic friction."""
    contacts = [kg.Unilateral(z, kg.Restitution(), kg.Coulomb(mu, mu / 2), v_x, "floor")]
    return particle(
        "dragged", force=(-k * (x - a * TIME), 0), uses=(mu,), contacts=contacts, parameters={k: 20.0, a: 0.5}
    )


def pulled() -> kg.Model:
    """A block that slides to rest, and that a force begins to pull at 0.6 s."""
    contacts = [kg.Unilateral(z, kg.Restitution(), kg.Coulomb(mu), v_x, "floor")]
    pull = sm.Piecewise((0, sm.Rational(3, 5) > TIME), (k, True))
    return particle("pulled", force=(pull, 0), uses=(mu,), contacts=contacts, parameters={k: 8.0})


def landing(terminal: bool) -> kg.Model:
    """A block that lands on a rough floor, where an event occurs at the same instant."""
    contacts = [kg.Unilateral(z, kg.Restitution(), kg.Coulomb(mu), v_x, "floor")]
    event = kg.Event("lands", z, direction=-1, terminal=terminal)
    return particle("landing", uses=(mu,), contacts=contacts, events=[event])


def mattress() -> kg.Model:
    """A particle that falls on a compliant floor with friction."""
    contacts = [kg.Unilateral(z, kg.KelvinVoigt(k, c), kg.Coulomb(mu), v_x, "floor")]
    return particle("mattress", uses=(mu,), contacts=contacts, parameters={k: 2000.0, c: 20.0})


def latched() -> kg.Model:
    """A particle that is caught at x = a, slides down, and is released."""
    events = [kg.Event("catch", x - a, impose="rail"), kg.Event("release", z + 1, remove="rail")]
    return particle("latched", contacts=[kg.Latch("rail", x - a)], events=events, parameters={a: 0.5})


def guided() -> kg.Model:
    """A particle on a parabola with friction."""
    joint = kg.Friction(v_x, kg.Coulomb(mu), kg.Bilateral(z - a * x**2), "joint")
    return particle("guided", uses=(mu,), contacts=[joint], parameters={a: 0.3})


def pressed() -> kg.Model:
    """A block that a feedback law presses on a floor."""
    press = me.dynamicsymbols("press")
    contacts = [kg.Unilateral(z, kg.Restitution(), kg.Coulomb(mu), v_x, "floor")]
    inputs = [kg.Input(press, law=k * (1 + x))]
    return particle("pressed", force=(0, -press), uses=(mu,), contacts=contacts, inputs=inputs, parameters={k: 5.0})


def struck() -> kg.Model:
    """An oscillator that is struck where a state reaches 1; the impulse depends on the speed."""
    w = me.dynamicsymbols("w")
    return particle(
        "struck",
        "x",
        (-k * x,),
        gravity=None,
        states={w: a + x},
        events=[kg.Event("blow", w - 1, impulse="hammer", reset={w: w / 3 - 1})],
        impulses={"hammer": (a - v_x / 4,)},
        parameters={k: 9.0, a: 2.0},
    )


def creeping(falling: bool = False) -> kg.Model:
    """A block under an oscillating force that creeps instead of sticking."""
    delta, rate, size, omega = sm.symbols("delta rate size omega", positive=True)
    friction = kg.Coulomb(mu, mu / 2, creep=delta, decay_rate=rate)
    contacts = [kg.Unilateral(z, kg.Restitution(), friction, v_x, "floor")]
    force = size * (sm.cos(3 * omega * TIME) if falling else sm.sin(omega * TIME) + sm.sin(3 * omega * TIME) / 3)
    parameters = {delta: 0.3, rate: 2.0, size: 4.0, omega: 3.0}
    return particle(
        "slowed" if falling else "creeping", force=(force, 0), uses=(mu,), contacts=contacts, parameters=parameters
    )


def resting() -> kg.Model:
    """A ball of radius R on a floor."""
    R = sm.Symbol("R", positive=True)
    return particle("resting", "z", contacts=[kg.Unilateral(z - R, name="floor")], parameters={R: 0.2})


def balls() -> kg.Model:
    """Two balls of equal mass on a line, elastic."""
    (x1, x2), (v1, v2) = me.dynamicsymbols("x1 x2"), me.dynamicsymbols("v1 v2")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P, Q = O.locatenew("P", x1 * N.x), O.locatenew("Q", x2 * N.x)
    P.set_vel(N, v1 * N.x)
    Q.set_vel(N, v2 * N.x)
    return kg.Model(
        name="balls",
        frame=N,
        coordinates=(x1, x2),
        speeds=(v1, v2),
        kinematics=(x1.diff(TIME) - v1, x2.diff(TIME) - v2),
        bodies=(me.Particle("P", P, m), me.Particle("Q", Q, m)),
        contacts=(kg.Unilateral(x2 - x1 - a, kg.Restitution(1), name="contact"),),
        parameters={m: 1.2, a: 0.2},
    )


def rod() -> kg.Model:
    """A rod that falls on a rough floor with both ends."""
    l, I = sm.symbols("l I", positive=True)
    q, u = me.dynamicsymbols("x z th"), me.dynamicsymbols("u_x u_z om")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Axis", [q[2], N.y])
    B.set_ang_vel(N, u[2] * N.y)
    G = O.locatenew("G", q[0] * N.x + q[1] * N.z)
    G.set_vel(N, u[0] * N.x + u[1] * N.z)
    ends = [G.locatenew(name, sign * l * B.x) for name, sign in (("end 1", 1), ("end 2", -1))]
    for end in ends:
        end.v2pt_theory(G, N, B)
    contacts = [
        kg.Unilateral(end.pos_from(O).dot(N.z), kg.Restitution(e), kg.Coulomb(mu), end.vel(N).dot(N.x), end.name)
        for end in ends
    ]
    return kg.Model(
        name="rod",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[x.diff(TIME) - v for x, v in zip(q, u, strict=True)],
        bodies=[me.RigidBody("rod", G, B, m, (me.inertia(B, 0, I, 0), G))],
        gravity=-g * N.z,
        contacts=contacts,
        parameters={m: 1.2, g: 9.81, l: 0.5, I: 0.1, e: 0.3, mu: 0.25},
    )


def table() -> kg.Model:
    """A ball on a table that oscillates."""
    omega = sm.Symbol("omega", positive=True)
    contact = kg.Unilateral(z - a * sm.sin(omega * TIME), kg.Restitution(e), name="table")
    return particle("table", "z", uses=(e,), contacts=[contact], parameters={a: 0.05, omega: 20.0})


def rimless_wheel() -> kg.Model:
    """Two spokes of a wheel without rim on a slope, with the half-angle alpha between them; z is the slope's normal."""
    l, I, alpha, gamma = sm.symbols("l I alpha gamma", positive=True)
    q, u = me.dynamicsymbols("x z th"), me.dynamicsymbols("u_x u_z om")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Axis", [q[2], N.y])
    B.set_ang_vel(N, u[2] * N.y)
    hub = O.locatenew("hub", q[0] * N.x + q[1] * N.z)
    hub.set_vel(N, u[0] * N.x + u[1] * N.z)
    feet = [
        hub.locatenew(f"foot {n}", l * (sm.sin(angle) * B.x - sm.cos(angle) * B.z))
        for n, angle in enumerate((0, 2 * alpha))
    ]
    for foot in feet:
        foot.v2pt_theory(hub, N, B)
    contacts = [
        kg.Unilateral(f.pos_from(O).dot(N.z), kg.Restitution(), kg.Coulomb(mu), f.vel(N).dot(N.x), f.name) for f in feet
    ]
    return kg.Model(
        name="rimless_wheel",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[x.diff(TIME) - v for x, v in zip(q, u, strict=True)],
        bodies=[me.RigidBody("wheel", hub, B, m, (me.inertia(B, 0, I, 0), hub))],
        gravity=g * (sm.sin(gamma) * N.x - sm.cos(gamma) * N.z),
        contacts=contacts,
        parameters={m: 1.0, g: 9.81, l: 1.0, I: 0.01, alpha: 0.3, gamma: 0.08, mu: 0.8},
    )


def five_bar() -> kg.Model:
    """Two cranks and two couplers that meet above a floor, in a point that springs hold to the ends of the base."""
    q, u = me.dynamicsymbols("th1 th2 th3 th4"), me.dynamicsymbols("om1 om2 om3 om4")
    l1, l2, d, h, l0 = sm.symbols("l1 l2 d h l0", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    grounds = [O.locatenew("A", -d / 2 * N.x), O.locatenew("B", d / 2 * N.x)]
    bars = [N.orientnew(f"bar {n}", "Axis", [angle, N.z]) for n, angle in enumerate(q, 1)]
    for bar, omega in zip(bars, u, strict=True):
        bar.set_ang_vel(N, omega * N.z)
    elbows, ends = [], []
    for ground, (crank, coupler) in zip(grounds, ((0, 1), (3, 2)), strict=True):
        ground.set_vel(N, 0)
        elbows.append(ground.locatenew(f"elbow {crank}", l1 * bars[crank].x))
        elbows[-1].v2pt_theory(ground, N, bars[crank])
        ends.append(elbows[-1].locatenew(f"end {crank}", l2 * bars[coupler].x))
        ends[-1].v2pt_theory(elbows[-1], N, bars[coupler])
    middle, gap = ends[0], ends[1].pos_from(ends[0])
    loads = []
    for ground in grounds:
        way = middle.pos_from(ground)
        loads.append((middle, -k * (1 - l0 / way.magnitude()) * way))
    return kg.Model(
        name="five_bar",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[x.diff(TIME) - v for x, v in zip(q, u, strict=True)],
        bodies=[me.Particle(point.name, point, m) for point in (*elbows, middle)],
        loads=loads,
        gravity=-g * N.y,
        holonomic_constraints=[gap.dot(N.x), gap.dot(N.y)],
        dependent_speeds=[u[1], u[2]],
        contacts=[kg.Unilateral(middle.pos_from(O).dot(N.y) - h, kg.Restitution(e), name="floor")],
        parameters={m: 1.0, g: 9.81, k: 100.0, l0: 1.2, l1: 0.6, l2: 1.2, d: 1.0, h: 1.05, e: 0.7},
    )


def start_of(solver: kg.Solver, start: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float], Any]:
    """The start values by name, of coordinates, speeds and states (None without states)."""
    d = solver.description
    q, u, s = ({x: start[x] for x in part if x in start} for part in (d.coordinates, d.speeds, d.states))
    return q, u, s or None


def end_state(solution: kg.Solution) -> Array:
    """The last state (n_y,)."""
    return np.concatenate(solution.last[1:])


def difference_quotients(
    solver: kg.Solver, t1: float, start: Mapping[str, float], names: Iterable[str], step: float = 1e-4, **options: Any
) -> Array:
    """The derivatives (n_y, k) of the state at ``t1`` by differences of order 6 of accurate runs."""
    d = solver.description

    def end(name: str, change: float) -> Array:
        moved, values = solver, dict(start)
        if name in d.parameters:
            moved = solver.with_parameters({name: solver.parameters[name] * (1.0 + change)})
        else:
            values[name] += change
        q, u, s = ({x: values[x] for x in part if x in values} for part in (d.coordinates, d.speeds, d.states))
        return end_state(
            moved.integrate((0.0, t1), q, u, s0=s or None, rtol=1e-12, atol=1e-13, method="dop853", **options)
        )

    columns = []
    for name in names:
        size = solver.parameters[name] if name in d.parameters else 1.0
        columns.append(differences(lambda x, name=name: end(name, x), step) / size)
    return np.column_stack(columns)


def sensitivities_at(
    solver: kg.Solver, t1: float, start: Mapping[str, float], names: Sequence[str], **options: Any
) -> tuple[kg.Solution, Array]:
    """A run with sensitivities, and their matrix at the end."""
    q, u, s = start_of(solver, start)
    settings = {"rtol": 1e-11, "atol": 1e-12, "method": "dop853", **options}
    solution = solver.integrate((0.0, t1), q, u, s0=s, sensitivities=names, **settings)
    return solution, solution.sensitivities.matrix[-1]


FALLING = {"x": 0.0, "z": 1.0, "v_x": 2.0, "v_z": 0.0}
ROD = {"x": 0.0, "z": 1.0, "th": 0.3, "u_x": 1.0, "u_z": 0.0, "om": 0.0}
TIGHT: dict[str, Any] = {"rtol": 1e-11, "atol": 1e-12, "method": "dop853"}
LYING = {"x": 0.0, "z": 0.0, "th": 0.0, "u_x": 1.0, "u_z": 0.0, "om": 0.0}

CASES: dict[str, tuple[str, float, Mapping[str, float], tuple[str, ...], set[str]]] = {
    "a ball on a slope": ("slope", 1.2, FALLING, ("e", "a", "g", "z", "v_x"), {"impact"}),
    "impacts of a rod that stick and slip": ("rod", 0.55, ROD, ("e", "mu", "l", "I", "th", "u_x"), {"impact"}),
    "a rod that slides until both ends stick": ("rod", 0.6, LYING, ("mu", "g", "u_x", "x"), {"sticks"}),
    "sliding in a plane": (
        "puck",
        1.4,
        {"x": 0.0, "y": 0.0, "z": 0.5, "v_x": 2.0, "v_y": 1.0, "v_z": 0.0},
        ("mu", "g", "z", "v_x", "v_y"),
        {"impact", "closes", "sticks"},
    ),
    "a dragged block": (
        "dragged",
        3.0,
        {"x": 0.0, "z": 0.0, "v_x": 0.0, "v_z": 0.0},
        ("mu", "k", "a", "g", "m", "x"),
        {"slips", "sticks"},
    ),
    "a force that begins": (
        "pulled",
        1.2,
        {"x": 0.0, "z": 0.0, "v_x": 1.0, "v_z": 0.0},
        ("mu", "k", "g", "v_x"),
        {"sticks", "slips"},
    ),
    "a compliant floor with friction": (
        "mattress",
        1.0,
        FALLING,
        ("k", "c", "g", "mu", "m", "v_x"),
        {"closes", "sticks", "penetrates", "opens"},
    ),
    "a latch": ("latched", 1.2, {**FALLING, "v_x": 2.0}, ("a", "g", "z"), {"user", "imposed", "removed"}),
    "friction in a joint": (
        "guided",
        0.7,
        {"x": 0.0, "z": 0.0, "v_x": 2.0, "v_z": 0.0},
        ("mu", "g", "a", "v_x"),
        {"sticks"},
    ),
    "a creeping block": (
        "creeping",
        4.0,
        {"x": 0.0, "z": 0.0, "v_x": -0.2, "v_z": 0.0},
        ("mu", "delta", "rate", "size", "omega", "g", "v_x"),
        {"slips", "sticks", "reverses"},
    ),
    "a blow": ("struck", 1.0, {"x": 0.0, "v_x": 1.0, "w": 0.0}, ("a", "k", "m", "x", "v_x", "w"), {"user"}),
}
"""Motions with jumps: model, duration, start, names of what varies, and kinds of events."""
