"""Models with tables of the state, of numbers and parameters: compiled code, derivatives, ensembles, ends, copies."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline, PchipInterpolator
from state_models import point_mass

import kanegen as kg

Array = NDArray[np.float64]
GENERATOR = np.random.default_rng(3501)
KNOTS, LINES = np.array([-3.0, -1.4, -0.3, 0.5, 1.7, 3.0]), np.array([-3.0, -1.0, 0.6, 1.5, 3.0])
FORCES, LAW, FIELD = GENERATOR.normal(size=6), GENERATOR.normal(size=6), GENERATOR.normal(size=(6, 5))
x, y, vx, vy = me.dynamicsymbols("x y vx vy")
SPAN, START = (0.0, 1.5), ([0.37, -0.61], [0.4, 0.8])
TIGHT: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12}
VARIED = ("law_2", "law_4", "field_3_2", "x")

fixed = kg.Table(KNOTS, FORCES, name="fixed")
law = kg.Table(KNOTS, LAW, name="law", kind="monotone", parameters=True, units=("m", "N"))
surface = kg.Table(KNOTS, LINES, FIELD, name="surface")
field = kg.Table(KNOTS, LINES, 2.0 * FIELD, name="field", parameters=True, extrapolate="constant")


def model(name: str = "tabulated") -> kg.Model:
    """A unit mass in a plane under springs, curves and surfaces; one output is a table of both coordinates."""
    m, N, O = sm.Symbol("m"), me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    force = (-3 * x - fixed(x) - law(y) * 0.4) * N.x + (-3 * y - 0.3 * surface(x, y) - 0.2 * field(y, x)) * N.y
    return kg.Model(
        name=name,
        frame=N,
        coordinates=[x, y],
        speeds=[vx, vy],
        kinematics=[x.diff() - vx, y.diff() - vy],
        bodies=[me.Particle("b", P, m)],
        loads=[(P, force)],
        outputs={"height": surface(x, y) + law(y)},
        parameters={m: 1.0, **law.parameters, **field.parameters},
    )


@cache
def solver() -> kg.Solver:
    return kg.build(model(), functions=("rhs", "jacobians", "outputs"))


def tensor(values: Array, a: float, b: float) -> float:
    return float(CubicSpline(LINES, CubicSpline(KNOTS, values)(a))(b))


def accelerations(q: Array, law_values: Array = LAW) -> Array:
    """By SciPy."""
    along = -3 * q[0] - CubicSpline(KNOTS, FORCES)(q[0]) - 0.4 * PchipInterpolator(KNOTS, law_values)(q[1])
    return np.array([along, -3 * q[1] - 0.3 * tensor(FIELD, *q) - 0.4 * tensor(FIELD, q[1], q[0])])


def end(solution: kg.Solution) -> Array:
    return np.concatenate([solution.q[-1], solution.u[-1]])


def test_right_side_and_output_are_those_of_scipy() -> None:
    for q in GENERATOR.uniform(-2.9, 2.9, (20, 2)):
        assert solver().rhs(0.0, q, [0.1, 0.2])[1] == pytest.approx(accelerations(q), abs=1e-12)
        height = tensor(FIELD, *q) + PchipInterpolator(KNOTS, LAW)(q[1])
        assert solver().output("height", 0.0, q, [0.1, 0.2]) == pytest.approx(height, abs=1e-12)


def test_jacobian_against_differences() -> None:
    q, h = np.array(START[0]), 1e-5
    found = solver().jacobian(0.0, q, START[1])
    moved = [(accelerations(q + h * e) - accelerations(q - h * e)) / (2 * h) for e in np.eye(2)]
    assert found.q[2:] == pytest.approx(np.array(moved).T, abs=1e-7)
    e = np.eye(6)[2] * 1e-6
    slope = (accelerations(q, LAW + e)[0] - accelerations(q, LAW - e)[0]) / 2e-6
    assert found.p[2, found.columns["p"].index("law_2")] == pytest.approx(slope, abs=1e-8)


def test_new_values_need_no_build() -> None:
    other = LAW + np.linspace(-0.5, 0.7, 6)
    changed = solver().with_parameters(law.assign(other))
    assert changed.sources is solver().sources
    q = np.array(START[0])
    assert changed.rhs(0.0, q, START[1])[1] == pytest.approx(accelerations(q, other), abs=1e-12)


def test_sensitivities_and_gradients() -> None:
    """Of the motion, against differences, and of an objective against the sensitivities."""
    run = solver().integrate(SPAN, *START, **TIGHT, sensitivities=VARIED)
    S = run.sensitivities
    for name in VARIED[:3]:
        h = 1e-4
        moved = [
            end(solver().with_parameters({name: solver().parameters[name] + s * h}).integrate(SPAN, *START, **TIGHT))
            for s in (1, -1)
        ]
        assert [S[v, name][-1] for v in ("x", "y", "vx", "vy")] == pytest.approx(
            (moved[0] - moved[1]) / (2 * h), abs=2e-5
        )
    objective = kg.Objective(terminal=x * y)
    _, gradient = solver().value_and_gradient(objective, SPAN, *START, **TIGHT, with_respect_to=VARIED)
    a, b = run.q[-1]
    for name in VARIED:
        assert gradient[name] == pytest.approx(S["x", name][-1] * b + a * S["y", name][-1], rel=1e-6, abs=1e-8)


def test_batches_and_ensembles_are_single_states() -> None:
    """On lanes, with another value of a table in each motion; the quantity of the interpreter is the same."""
    Q, U = GENERATOR.uniform(-1.0, 1.0, (21, 2)), GENERATOR.uniform(-1.0, 1.0, (21, 2))
    _, batch = solver().rhs_batch(0.0, Q, U)
    assert batch == pytest.approx(np.array([accelerations(q) for q in Q]), abs=1e-12)
    values = np.linspace(-0.5, 0.5, 21)
    many = solver().integrate_many(SPAN, Q, U, parameters={"law_2": values, "field_3_2": 1 - values}, rtol=1e-9)
    for k in (0, 13, 20):
        one = solver().with_parameters({"law_2": values[k], "field_3_2": 1 - values[k]})
        assert many.q[k, -1] == pytest.approx(one.integrate(SPAN, Q[k], U[k], rtol=1e-9).q[-1], abs=1e-8)
    interpreted = kg.build(model(), backend="interpreted")
    assert interpreted.rhs(0.0, Q[0], U[0])[1] == pytest.approx(batch[0], abs=1e-13)


def test_a_motion_ends_beyond_a_table_without_extrapolation() -> None:
    """With time, name and argument; the table that is constant beyond its ends goes on."""
    message = r"the argument of the table 'surface' in x is 3\.0\d* at t = "
    with pytest.raises(kg.IntegrationError, match=message) as info:
        solver().integrate((0.0, 5.0), [2.8, 0.0], [40.0, 0.0])
    assert info.value.solution.status == kg.Outcome.OUTSIDE_TABLE
    with pytest.raises(kg.SolveError, match=r"the argument of the table 'law' is 3\.5"):
        solver().output("height", 0.0, [0.0, 3.5], [0.0, 0.0])


@pytest.mark.parametrize("parameters", [False, True], ids=["numbers", "parameters"])
def test_pulses_in_time_are_not_stepped_over(parameters: bool) -> None:
    """A pulse of 1 N s within 2 ms after 3 s of rest, as a table of time, and as one of time and of the state."""
    times, pulse, t = [0.0, 3.0, 3.001, 3.002, 5.0], np.array([0.0, 0.0, 1000.0, 0.0, 0.0]), me.dynamicsymbols._t
    options: dict[str, Any] = {"kind": "linear", "extrapolate": "constant", "parameters": parameters}
    curve = kg.Table(times, pulse, name="curve", **options)
    field = kg.Table(times, [-1.0, 0.0, 1.0], np.outer(pulse, np.ones(3)), name="field", **options)
    for table, force in ((curve, curve(t)), (field, field(t, x / 1000))):
        made = kg.build(point_mass("pulse", force, parameters={"m": 1.0, **table.parameters}))
        run = made.integrate((0.0, 7.0), [0.0], [0.0])
        assert run.u[-1, 0] == pytest.approx(1.0, rel=1e-6)


def cubic(a: Any) -> Any:
    return 0.1 * a**3 - 0.3 * a**2 + 0.2 * a


@pytest.mark.parametrize("parameters", [False, True], ids=["numbers", "parameters"])
def test_a_table_of_a_cubic_is_this_cubic_in_all_places_of_a_model(parameters: bool) -> None:
    """In a constraint, a contact, the rate of a state and a feedback law; splines have cubics exactly."""
    points, lines = np.array([-3.0, -1.7, -0.4, 0.9, 2.0, 3.0]), np.array([-2.0, -1.0, 0.3, 1.0, 2.0])
    options: dict[str, Any] = {"parameters": parameters, "extrapolate": "polynomial"}
    curve = kg.Table(points, cubic(points), name="curve", **options)
    field = kg.Table(points, lines, np.outer(cubic(points), np.ones(5)), name="field", **options)
    ends = []
    for f, g in ((cubic, cubic), (curve, lambda a: field(a, sm.sin(a)))):
        values = {} if f is cubic else curve.parameters
        on_a_curve = {"holonomic_constraints": [y - f(x)]}
        contact = kg.Unilateral(y - g(x), kg.Restitution(0.7), kg.Coulomb(0.2), vx, name="road")
        s, F = me.dynamicsymbols("s F")
        in_the_air = {
            "contacts": [contact], "states": {s: f(x) - s}, "inputs": [kg.Input(F, law=-g(x) - vx - s)],
        }  # fmt: skip
        first = kg.build(falling(on_a_curve, F, values))
        second = kg.build(falling(in_the_air, F, {} if f is cubic else {**values, **field.parameters}))
        along = first.integrate((0.0, 1.0), {"x": -1.0}, {"vx": 0.5}, **TIGHT)
        through = second.integrate((0.0, 1.2), [0.5, 1.0], [0.3, 0.0], s0=[0.1], **TIGHT)
        ends.append(np.concatenate([end(along), end(through), through.s[-1], [len(through.events)]]))
    assert ends[1] == pytest.approx(ends[0], abs=1e-10)


def falling(more: Any, F: Any, values: Any) -> kg.Model:
    """A unit mass that falls along y, and is pushed along x by F if this is an input."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, vx * N.x + vy * N.y)
    loads = [(P, F * N.x)] if "inputs" in more else []
    return kg.Model(
        name="falling", frame=N, coordinates=[x, y], speeds=[vx, vy], kinematics=[x.diff() - vx, y.diff() - vy],
        bodies=[me.Particle("b", P, 1)], gravity=-9.81 * N.y, loads=loads, parameters=values, **more,
    )  # fmt: skip


def test_tables_whose_parameters_would_be_the_same_are_refused() -> None:
    one, other = (kg.Table(KNOTS, values, parameters=True) for values in (FORCES, LAW))
    made = point_mass("clash", one(x) + other(x), parameters={"m": 1.0, **one.parameters, **other.parameters})
    with pytest.raises(kg.DerivationError, match=r"two tables with parameters=True have the name 'table'.*name="):
        kg.build(made)
    kg.build(point_mass("twice", one(x) + one(2 * x).diff(x), parameters={"m": 1.0, **one.parameters}))


def test_values_are_identified() -> None:
    """The law of a spring from a measured motion, from a wrong guess."""
    spring, guess = kg.Table(KNOTS, 4 * KNOTS + KNOTS**3, name="spring", parameters=True), 5 * KNOTS
    m, N, O = sm.Symbol("m"), me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    made = kg.Model(
        name="spring", frame=N, coordinates=[x], speeds=[vx], kinematics=[x.diff() - vx],
        bodies=[me.Particle("b", P, m)], loads=[(P, -spring(x) * N.x)], parameters={m: 1.0, **spring.parameters},
    )  # fmt: skip
    truth = kg.build(made, functions=("rhs",))
    times = np.linspace(0.0, 6.0, 200)
    measured = truth.integrate((0.0, 6.0), [2.7], [0.0], t_eval=times, rtol=1e-10).q[:, 0]
    names = [str(symbol) for symbol in spring.parameters]
    found = kg.fit(
        truth.with_parameters(spring.assign(guess)), {"t": times, "x": measured}, parameters=names,
        q0=[2.7], u0=[0.0], sigma=1e-3, rtol=1e-8,
    )  # fmt: skip
    assert [*found.values] == pytest.approx(list(spring.parameters.values()), rel=1e-3, abs=1e-3)


def test_copies_and_checks(tmp_path: Path) -> None:
    """Solvers are pickled, motions saved; kg.verify has nothing to object to; both forms agree."""
    copy = pickle.loads(pickle.dumps(solver()))
    assert copy.rhs(0.0, *START)[1] == pytest.approx(solver().rhs(0.0, *START)[1], abs=0)
    solution = solver().integrate(SPAN, *START)
    solution.save(tmp_path / "motion.nc")
    assert kg.load(tmp_path / "motion.nc").q[-1] == pytest.approx(solution.q[-1])
    kg.verify(model())
