"""Wheels on roads: geometry, forces and moments against vectors in NumPy; at rest, in the air, on slopes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from checkout import ROOT
from messages import raises
from systems import example

import kanegen as kg
from kanegen.graph import Graph, Lowering, count_operations
from kanegen.model.expressions import atoms
from kanegen.tires.functions import held

CAR = ROOT / "build_examples" / "car_tire.tir"
SIMPLE: dict[str, Any] = {"radius": 0.33, "stiffness": 2e5, "nominal_load": 4000.0, "cornering_stiffness": 6e4}
MASS, GRAVITY = 400.0, 9.81


def height(x: Any, y: Any) -> Any:
    """Of a bumpy road, m."""
    return 0.1 * np.sin(0.7 * x) * np.cos(0.4 * y) + 0.05 * x


@cache
def bumps() -> kg.Table:
    x, y = np.linspace(-4.0, 4.0, 33), np.linspace(-4.0, 4.0, 33)
    return kg.Table(x, y, height(x[:, None], y[None, :]), name="bumps")


@cache
def rolling() -> tuple[kg.Solver, kg.tires.Wheel]:
    """A free wheel on bumps; q = position, heading, lean and rotation, u = q'."""
    q, u = me.dynamicsymbols("x y z psi lean turn"), me.dynamicsymbols("vx vy vz wpsi wlean wturn")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    heading = N.orientnew("heading", "Axis", (q[3], N.z))
    leaning = heading.orientnew("leaning", "Axis", (q[4], heading.x))
    frame = leaning.orientnew("wheel", "Axis", (q[5], leaning.y))
    frame.set_ang_vel(N, u[3] * N.z + u[4] * heading.x + u[5] * leaning.y)
    C = O.locatenew("C", q[0] * N.x + q[1] * N.y + q[2] * N.z)
    C.set_vel(N, u[0] * N.x + u[1] * N.y + u[2] * N.z)
    tire = kg.tires.linear(
        **SIMPLE, damping=900.0, slip_stiffness=8e4, camber_stiffness=3e3, trail=0.03, rolling_resistance=0.01
    )
    road = kg.tires.road(N, O, bumps())
    wheel = kg.tires.wheel(tire, "w", center=C, frame=frame, axis=leaning.y, road=road, relaxation=(1.0, 1.0))
    model = kg.Model(
        name="rolling_wheel",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[a.diff() - b for a, b in zip(q, u, strict=True)],
        bodies=[me.RigidBody("wheel", C, frame, MASS, (me.inertia(frame, 6.0, 11.0, 6.0), C))],
        loads=wheel.loads,
        states=wheel.states,
        outputs=wheel.outputs,
    )
    return kg.build(model, functions=("rhs", "outputs", "kinetic_energy")), wheel


def axes_at(q: np.ndarray, u: np.ndarray) -> dict[str, np.ndarray]:
    """Axis of the wheel, contact point from the center, axes of the contact, velocities there; from vectors alone."""
    psi, lean = q[3:5]
    forward = np.array([np.cos(psi), np.sin(psi), 0.0])
    left, up = np.array([-np.sin(psi), np.cos(psi), 0.0]), np.array([0.0, 0.0, 1.0])
    axis = np.cos(lean) * left + np.sin(lean) * up
    turning = u[3] * up + u[4] * forward + u[5] * axis
    table = bumps()
    slope = [_slope(table, q, k) for k in (0, 1)]
    normal = np.array([-slope[0], -slope[1], 1.0])
    normal /= np.linalg.norm(normal)
    # The contact point is the nearest one of the line in which the wheel and the tangent plane meet.
    below = np.array([0.0, 0.0, float(table.python(q[0], q[1])) - q[2]])
    offset = np.linalg.lstsq(np.array([normal, axis]), np.array([normal @ below, 0.0]), rcond=None)[0]
    ahead = np.cross(axis, normal)
    ahead /= np.linalg.norm(ahead)
    there = u[:3] + np.cross(turning, offset)
    return {
        **{"axis": axis, "turning": turning, "offset": offset, "there": there},
        "contact": np.array([ahead, np.cross(normal, ahead), normal]),
    }


def _slope(table: kg.Table, q: np.ndarray, k: int) -> float:
    step = np.eye(2)[k] * 1e-5
    low, high = (float(table.python(*(q[:2] + sign * step))) for sign in (-1, 1))
    return (high - low) / 2e-5


def random_states() -> Any:
    rng = np.random.default_rng(3)
    for _ in range(12):
        q = np.array([*rng.uniform(-3, 3, 2), 0.0, rng.uniform(-3, 3), rng.uniform(-0.3, 0.3), rng.uniform(-3, 3)])
        q[2] = float(bumps().python(q[0], q[1])) + rng.uniform(0.27, 0.35)
        psi = q[3]
        speed = rng.uniform(3.0, 20.0)
        u = np.array([speed * np.cos(psi), speed * np.sin(psi), *rng.uniform(-1, 1, 3), speed / 0.33])
        yield q, u + rng.uniform(-1, 1, 6), rng.uniform(-0.05, 0.05, 2)


def test_contact_is_that_of_vectors() -> None:
    solver, wheel = rolling()
    tire: Any = wheel.tire
    touching = 0
    for q, u, s in random_states():
        found, v = solver.outputs(0.0, q, u, s=s), axes_at(q, u)
        deflection = 0.33 - np.linalg.norm(v["offset"])
        assert found["w_deflection"] == pytest.approx(deflection, abs=1e-8)
        assert found["w_gamma"] == pytest.approx(np.arcsin(v["axis"] @ v["contact"][2]), abs=1e-8)
        rate = -(v["there"] @ v["contact"][2]) / np.linalg.norm(np.cross(v["axis"], v["contact"][2]))
        load = float(tire.load(deflection, rate))
        assert found["w_Fz"] == pytest.approx(load, rel=1e-6, abs=1e-3)
        touching += load > 0
        speed, spin = u[:3] @ v["contact"][0], v["turning"] @ v["axis"]
        slip = speed - spin * (0.33 - load / 2e5), v["there"] @ v["contact"][1]
        # Relaxation lengths are 1 m, and the tire has no friction that would shrink them.
        expected = -slip[0] - abs(speed) * s[0], slip[1] - abs(speed) * s[1]
        assert solver.rhs(0.0, q, u, s=s)[2] == pytest.approx(expected, rel=1e-6, abs=1e-6)
        part = load / 4000.0
        assert found["w_Fx"] == pytest.approx(8e4 * part * s[0], rel=1e-6)
        assert found["w_Fy"] == pytest.approx(-part * (6e4 * s[1] + 3e3 * found["w_gamma"]), rel=1e-6, abs=1e-6)
    assert touching >= 6


def test_forces_act_at_the_contact_point() -> None:
    solver, _ = rolling()
    for q, u, s in random_states():
        found, v = solver.outputs(0.0, q, u, s=s), axes_at(q, u)
        force = np.array([found[f"w_F{axis}"] for axis in "xyz"]) @ v["contact"]
        moment = np.array([found[f"w_M{axis}"] for axis in "xyz"]) @ v["contact"]
        qdot, udot, _ = solver.rhs(0.0, q, u, s=s)
        assert udot[:3] == pytest.approx(force / MASS, rel=1e-6, abs=1e-6)
        power = force @ v["there"] + moment @ v["turning"]
        step = 1e-5
        energies = [solver.kinetic_energy(0.0, q + sign * step * qdot, u + sign * step * udot) for sign in (1, -1)]
        rate, least = (energies[0] - energies[1]) / (2 * step), 1e-6 * (1 + abs(force).sum())
        assert rate == pytest.approx(power, rel=1e-5, abs=least)


@cache
def braked(kind: str) -> kg.Solver:
    """A locked wheel, which moves along x and z on a slope of 10 degrees; q = (x, z), u = q'."""
    q, u = me.dynamicsymbols("x z"), me.dynamicsymbols("vx vz")
    N, O, slope = me.ReferenceFrame("N"), me.Point("O"), np.tan(np.radians(10.0))
    O.set_vel(N, 0)
    frame = N.orientnew("wheel", "Axis", (0, N.y))
    frame.set_ang_vel(N, 0)
    C = O.locatenew("C", q[0] * N.x + q[1] * N.z)
    C.set_vel(N, u[0] * N.x + u[1] * N.z)
    brush = kg.tires.brush(**SIMPLE, friction=0.9, half_length=0.06, damping=2000.0, low_speed_damping=0.02)
    tire = kg.tires.from_tir(CAR).with_coefficients(VERTICAL_DAMPING=2000.0) if kind == "file" else brush
    road = kg.tires.road(N, O, lambda x, y: slope * x)
    wheel = kg.tires.wheel(
        tire, "w", center=C, frame=frame, axis=N.y, road=road, relaxation=kind != "without relaxation"
    )
    model = kg.Model(
        name=f"braked wheel {kind}",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[a.diff() - b for a, b in zip(q, u, strict=True)],
        bodies=[me.Particle("wheel", C, MASS)],
        loads=[*wheel.loads, (C, -MASS * GRAVITY * N.z)],
        states=wheel.states,
        initial=wheel.initial,
        outputs=wheel.outputs,
    )
    return kg.build(model, functions=("rhs", "outputs", "jacobians"))


@pytest.mark.parametrize("kind", ["file", "brush"])
def test_a_locked_wheel_stands_on_a_slope(kind: str) -> None:
    solver = braked(kind)
    solution = solver.integrate((0.0, 12.0), [0.0, 0.4], [-2.0, 0.0], rtol=1e-8, atol=1e-10)
    assert np.abs(solution.u[-1]).max() < 1e-5
    assert -1.0 < solution.q[-1, 0] < 0.0
    at_rest = solver.outputs(12.0, solution.q[-1], solution.u[-1], s=solution.s[-1])
    angle = np.radians(10.0)
    assert at_rest["w_Fz"] == pytest.approx(MASS * GRAVITY * np.cos(angle), rel=1e-6)
    assert at_rest["w_Fx"] == pytest.approx(MASS * GRAVITY * np.sin(angle), rel=1e-4)
    assert solution.outputs["w_Fz"].min() >= 0.0


@pytest.mark.parametrize("kind", ["file", "brush"])
@pytest.mark.parametrize("state", [(0.32, 0.0), (0.4, 0.0), (0.32, 3.0)], ids=["at rest", "in the air", "moving"])
def test_derivatives_are_finite(kind: str, state: tuple[float, float]) -> None:
    jacobian = braked(kind).jacobian(0.0, [0.0, state[0]], [state[1], 0.0], s=[0.0, 0.0])
    assert all(np.all(np.isfinite(part)) for part in (jacobian.q, jacobian.u, jacobian.s))


def test_in_the_air_there_is_no_force() -> None:
    found = braked("file").outputs(0.0, [0.0, 0.5], [3.0, 0.0], s=[0.1, 0.1])
    assert [found[f"w_F{axis}"] for axis in "xyz"] == [0.0, 0.0, 0.0]


def test_without_relaxation_slips_are_those_of_steady_motion() -> None:
    solver = braked("without relaxation")
    assert solver.outputs(0.0, [0.0, 0.33], [5.0, 0.0])["w_kappa"] == pytest.approx(-1.0)
    slow = solver.outputs(0.0, [0.0, 0.33], [0.1, 0.0])["w_kappa"]
    assert slow == pytest.approx(-0.1 * np.cos(np.radians(10.0)))


def test_wrong_arguments_are_named() -> None:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    table = kg.Table([0.0, 1.0, 2.0], [0.0, 0.1, 0.0], kind="linear", name="ramp")
    with raises(kg.ModelError, "'ramp'", "linear", "'monotone'"):
        kg.tires.road(N, O, table)
    with raises(kg.ModelError, "height", "0.3"):
        kg.tires.road(N, O, 0.3)  # type: ignore[arg-type]
    with raises(kg.ModelError, "Point"):
        kg.tires.road(N, sm.Symbol("O"))
    with raises(kg.ModelError, "'front'", "kg.tires"):
        kg.tires.wheel("slick", "front", center=O, frame=N, axis=N.y, road=kg.tires.road(N, O))  # type: ignore[arg-type]


def test_the_axis_is_a_unit_vector() -> None:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    tire, road = kg.tires.from_tir(ROOT / "build_examples" / "car_tire.tir"), kg.tires.road(N, O)
    with raises(kg.ModelError, "axis of the wheel", "length 2", "unit vector"):
        kg.tires.wheel(tire, "wheel", center=O, frame=N, axis=2 * N.y, road=road)


def test_printed_expressions_keep_their_signs() -> None:
    a, b, c = sm.symbols("a b c")
    for expression in (a + held(c - b), a - held(c - b) * held(-a), held(b - a) ** -1 - held(-c)):
        values = {a: 2.0, b: 5.0, c: 0.3}
        expected = float(expression.subs(values).doit())
        assert float(sm.sympify(str(expression)).subs(values)) == pytest.approx(expected)
        for modules in ("math", "numpy", "mpmath"):
            assert float(sm.lambdify([a, b, c], expression, modules)(*values.values())) == pytest.approx(expected)


def test_four_wheels_cost_at_most_four_times_one() -> None:
    model = example("two_track_vehicle").model()
    costs = []
    for names in (["fl"], ["fl", "fr", "rl", "rr"]):
        graph = Graph()
        symbols = sorted(atoms(model.states.values()), key=str)
        lowering = Lowering(graph, {symbol: graph.input("q", k) for k, symbol in enumerate(symbols)})
        wheels = [f"{name}_{key}" for name in names for key in ("Fx", "Fy", "Fz", "Mx", "My", "Mz")]
        costs.append(count_operations([lowering.lower(model.outputs[name].expressions[0]) for name in wheels]))
    one, four = costs
    assert one < 600  # with the table of the road
    assert four < 4 * one
