"""Motions do not depend on units: examples scaled by powers of ten in length, mass and time, and rows by factors."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from scaled import SCALES, Scale, ScaledRun, factored, scalable
from scipy.integrate import solve_ivp
from systems import SYSTEMS, example_names, initial, model_of, names
from trim_models import CAR, car, grain_solver

import kanegen as kg
from kanegen.errors import BuildError
from kanegen.forms import AUTO, FORMS
from kanegen.program.assemble import assemble
from kanegen.program.options import BuildOptions

ACCURACY = 1e-9
MOST_STEPS, FIRST_STEPS = 2, 20
"""How many times the steps of a run its scaled run may take, and how many more to find the size of the first ones."""

WITH_UNITS = ("rheonomic_particle", "muscle_arm", "struck_four_bar")
"""Examples that contain numbers with units: a motion, time constants of muscles, the size and the time of a blow."""

SAMPLED = ("cart_pole_swing_up", "sampled_pid")
"""Examples whose inputs are sampled at times that are numbers: these do not move in other units of time."""

VARIANTS = [*((name, options) for name, options in SYSTEMS if options), ("struck_four_bar", {"struck": False})]
EXAMPLES = {
    **{name: (name, {}) for name in example_names() if name not in WITH_UNITS},
    **dict(zip(names(VARIANTS), VARIANTS, strict=True)),
}
"""Name and options of every other example."""


@cache
def run(case: str, form: str) -> tuple[ScaledRun, np.ndarray, int]:
    """The run of an example in one form, its end in the units of the example, and its steps."""
    name, options = EXAMPLES[case]
    scaled = ScaledRun(kg.build(scalable(name, **options), form=form), name, **options)
    return scaled, *scaled.run(Scale({}))


def assert_scaled(name: str, form: str, scale: Scale) -> None:
    """The end is the same, and no unit needs many more steps than another."""
    scaled, expected, steps = run(name, form)
    end = scaled.end(scale, max_steps=MOST_STEPS * steps + FIRST_STEPS)
    np.testing.assert_allclose(end, expected, rtol=0.0, atol=ACCURACY * np.abs(expected).max())


@pytest.mark.parametrize("scale", SCALES[::2], ids=str)
@pytest.mark.parametrize("name", ["slider_crank", "bouncing_ball"])
def test_motion_in_other_units(name, scale):
    assert_scaled(name, "auto", scale)


@pytest.mark.parametrize("scale", SCALES[1::4], ids=str)
def test_motion_of_any_rank_in_other_units(scale):
    assert_scaled("slider_crank", "pseudoinverse", scale)


@pytest.mark.campaign
@pytest.mark.parametrize("form", [AUTO, *FORMS])
@pytest.mark.parametrize("name", EXAMPLES)
def test_all_motions_in_other_units(name, form):
    try:
        run(name, form)
    except BuildError as refusal:
        pytest.skip(str(refusal))
    for scale in SCALES:
        if not (name in SAMPLED and "s" in scale.bases):
            assert_scaled(name, form, scale)


# -- factors of rows -----------------------------------------------------------------------------------------

EVERY_EXAMPLE = {**EXAMPLES, WITH_UNITS[0]: (WITH_UNITS[0], {})}

PATTERNS = ((1e-12, 1e12), (1e12, 1.0), (1e-9, 1e-12, 1e9), (1e6, 1.0, 1e-12, 1e3))
"""Factors of the rows, in turn."""


def assert_rows_are_scaled(case: str, form: str, patterns: tuple[tuple[float, ...], ...]) -> None:
    """The motion from the start does not depend on factors of the rows, in one form."""
    name, options = EVERY_EXAMPLE[case]
    model, start = factored(name, **options), initial(name, **options)
    solver, ends = kg.build(model, form=form), []
    factors = [p for p in model.parameters if str(p).startswith("factor_")]
    for pattern in ((1.0,), *patterns):
        own = solver.with_parameters({p: pattern[k % len(pattern)] for k, p in enumerate(factors)})
        span = (start["t"], start["t"] + 0.3)
        run = own.integrate(span, start["q"], start["u"], r=start.get("r"), rtol=1e-10, atol=1e-12)
        ends.append(np.concatenate([run.q[-1], run.u[-1]]))
    expected, *found = ends
    for end in found:
        np.testing.assert_allclose(end, expected, rtol=0.0, atol=ACCURACY * np.abs(expected).max())


@pytest.mark.parametrize("form", [AUTO, *FORMS])
def test_factors_of_rows_change_no_motion_in_any_form(form):
    assert_rows_are_scaled("varying_pendulum" if form == "hamilton" else "rolling_disk", form, PATTERNS[:1])


@pytest.mark.campaign
@pytest.mark.parametrize("form", [AUTO, *FORMS])
@pytest.mark.parametrize("case", EVERY_EXAMPLE)
def test_factors_of_rows_change_no_motion_of_any_example(case, form):
    name, options = EVERY_EXAMPLE[case]
    model = model_of(name, **options)
    if not (model.holonomic_constraints or model.nonholonomic_constraints):
        pytest.skip("no constraints")
    try:
        assert_rows_are_scaled(case, form, PATTERNS)
    except BuildError as refusal:
        pytest.skip(str(refusal))


@cache
def redundant(form: str) -> kg.Solver:
    """Two particles of masses m1 and m2; rows with the factors a, b and c, of which the third one is redundant.

    The radius l is a parameter.
    """
    a, b, c, m1, m2, l = sm.symbols("a b c m1 m2 l")
    t = me.dynamicsymbols._t
    x, y, z, u, v, w = me.dynamicsymbols("x y z u v w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    R = O.locatenew("R", z * N.z)
    R.set_vel(N, w * N.z)
    circle, saddle = x**2 + y**2 - l**2, l * z - x * y
    return kg.build(
        kg.Model(
            name="factored",
            frame=N,
            coordinates=[x, y, z],
            speeds=[u, v, w],
            kinematics=[x.diff(t) - u, y.diff(t) - v, z.diff(t) - w],
            bodies=[me.Particle("P", P, m1), me.Particle("R", R, m2)],
            gravity=-9.81 * N.y,
            loads=[(P, m1 * sm.sin(t) * N.x), (R, m2 * N.z)],
            holonomic_constraints=[a * circle, b * saddle, c * (circle + saddle)],
            parameters={a: 1, b: 1, c: 1, m1: 1, m2: 2, l: 1},
        ),
        form=form,
    )


FACTORS = (1e-12, 1e-9, 1.0, 1e9, 1e12)


@pytest.mark.parametrize("form", ["pseudoinverse", "canonical"])
@pytest.mark.parametrize("a", FACTORS)
@pytest.mark.parametrize("b", [1e-12, 1.0, 1e12])
def test_factors_of_rows_change_no_motion(form, a, b):
    """A row 1e9 times smaller than another one was dropped."""
    start = ((0.0, 1.0), [0.6, 0.8, 0.48], [0.0, 0.0, 0.0])
    tolerances = {"rtol": 1e-10, "atol": 1e-12}
    expected = redundant(form).integrate(*start, **tolerances).q[-1]
    found = redundant(form).with_parameters(a=a, b=b, c=a * b).integrate(*start, **tolerances).q[-1]
    np.testing.assert_allclose(found, expected, atol=ACCURACY)


@pytest.mark.parametrize("form", ["pseudoinverse", "canonical"])
def test_masses_of_very_different_sizes_drop_no_row(form):
    """1e20 kg beside 1e-2 kg: the heavy particle swings as if the light one were not there, and carries it along."""
    solver = redundant(form).with_parameters(c=0.0, m1=1e20, m2=1e-2)
    found = solver.integrate((0.0, 0.5), [0.6, 0.8, 0.48], [0.0, 0.0, 0.0], rtol=1e-10, atol=1e-12).q[-1]
    angle = solve_ivp(
        lambda t, y: [y[1], -9.81 * np.cos(y[0]) - np.sin(t) * np.sin(y[0])],
        (0.0, 0.5),
        [np.arctan2(0.8, 0.6), 0.0],
        "DOP853",
        rtol=1e-13,
        atol=1e-13,
    ).y[0, -1]
    x, y = np.cos(angle), np.sin(angle)
    np.testing.assert_allclose(found, [x, y, x * y], atol=1e-8)


@pytest.mark.parametrize("form", ["pseudoinverse", "canonical"])
@pytest.mark.parametrize(("m1", "m2"), [(1.0, 1e-33), (1e33, 1.0), (1e-33, 1.0), (1.0, 1e-20), (1e20, 1e-20)])
def test_masses_of_any_ratio(form, m1, m2):
    """At 1e33 rows counted as orthogonal whose product is rounding for one mass, and decides about the other one."""
    q, u = [0.6, 0.8, 0.48], [0.8, -0.6, 0.28]
    found = redundant(form).with_parameters(c=0.0, m1=m1, m2=m2).rhs(0.5, q, u)[1]
    rows = sm.Matrix([[1.2, 1.6, 0], [-0.8, -0.6, 1]]).applyfunc(sm.Rational)
    b = sm.Matrix([-2 * (u[0] ** 2 + u[1] ** 2), 2 * u[0] * u[1]]).applyfunc(sm.Rational)
    masses = sm.diag(*map(sm.Rational, (m1, m1, m2)))
    forces = masses * sm.Matrix([sm.sin(sm.Rational(1, 2)).n(60), -sm.Rational(9.81), 0]) + sm.Matrix(
        [0, 0, sm.Rational(m2)]
    )
    system = masses.row_join(-rows.T).col_join(rows.row_join(sm.zeros(2)))
    expected = np.array(system.LUsolve(forces.col_join(b))[:3], dtype=float)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("form", ["pseudoinverse", "canonical"])
@pytest.mark.parametrize("length", [1e-9, 1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("b", [1e-9, 1e-5, 1.0, 1e5, 1e9])
def test_factors_of_rows_in_any_unit(form, length, b):
    """At 1e-6 m, a row with the factor 1e-5 was replaced by its rate: 1 m was the distance at which rows may vanish."""
    q, u = np.array([0.6, 0.8, 0.48]) * length, np.array([0.8, -0.6, 0.28]) * np.sqrt(length)
    found = redundant(form).with_parameters(a=1.0, b=b, c=0.0, l=length).rhs(0.5, q, u)[1]
    J = np.array([[1.2, 1.6, 0.0], [-0.8, -0.6, 1.0]])
    bias = np.array([-2.0 * (0.8**2 + 0.6**2), -2.0 * 0.8 * 0.6])
    masses, forces = np.diag([1.0, 1.0, 2.0]), np.array([np.sin(0.5), -9.81, 2.0])
    system = np.block([[masses, -J.T], [J, np.zeros((2, 2))]])
    expected = np.linalg.solve(system, np.concatenate([forces, bias]))[:3]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@cache
def bob() -> kg.Solver:
    """A particle on a circle of radius l, whose closure has the unit of an area, times a factor."""
    l, factor = sm.symbols("l factor")
    t = me.dynamicsymbols._t
    x, y, u, v = me.dynamicsymbols("x y u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    return kg.build(
        kg.Model(
            name="bob",
            frame=N,
            coordinates=[x, y],
            speeds=[u, v],
            kinematics=[x.diff(t) - u, y.diff(t) - v],
            bodies=[me.Particle("P", P, 1)],
            gravity=-9.81 * N.y,
            holonomic_constraints=[factor * (x**2 + y**2 - l**2)],
            parameters={l: 1, factor: 1},
        )
    )


@pytest.mark.parametrize("length", [1e-9, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e12])
def test_consistent_states_in_any_unit(length, factor):
    """At 1e-6 m the closure, in square meters, was below the tolerance: 3 % off."""
    solver = bob().with_parameters(l=length, factor=factor)
    q, u = solver.make_consistent(0.0, [0.63 * length, 0.82 * length], [0.1 * length, 0.2 * length])
    assert np.hypot(*q) == pytest.approx(length, rel=1e-12)
    assert q @ u == pytest.approx(0.0, abs=1e-12 * length**2)


@pytest.mark.parametrize("length", [1e-9, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("violation", [1e-7, 1e-4])
def test_start_in_any_unit(length, factor, violation):
    """A start may violate the constraints by 1e-6 of the coordinates, not of the unit of the constraint."""
    solver = bob().with_parameters(l=length, factor=factor)
    arguments = ((0.0, 1e-3 * length**0.5), [0.0, -length * (1.0 + violation)], [0.0, 0.0])
    if violation < 1e-6:
        solver.integrate(*arguments)
        assert solver.integrate_many(arguments[0], [arguments[1]], [arguments[2]]).success.all()
    else:
        with pytest.raises(kg.SolveError, match="violates 1 constraint"):
            solver.integrate(*arguments)


LENGTHS = (1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("start", [(0.1, -1.0), (0.3, -0.9), (-0.5, -0.7), (3.0, -4.0)])
def test_equilibrium_in_any_unit(length, start):
    """At 1e-6 m it was 9e-5 of the length off, at 1e-9 m any state was accepted, and at 1e6 m some were refused."""
    found = bob().with_parameters(l=length).equilibrium(np.array(start) * length)
    np.testing.assert_allclose(found.q, [0.0, -length], rtol=0.0, atol=ACCURACY * length)
    assert (found.isolated, found.stability) == (True, "marginal")


@cache
def held_bob() -> kg.Solver:
    """The same particle as a pendulum of length l, with a horizontal force F as an input and a damper."""
    l, m, g, c = sm.symbols("l m g c")
    t = me.dynamicsymbols._t
    x, y, u, v, F = me.dynamicsymbols("x y u v F")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    return kg.build(
        kg.Model(
            name="held",
            frame=N,
            coordinates=[x, y],
            speeds=[u, v],
            kinematics=[x.diff(t) - u, y.diff(t) - v],
            bodies=[me.Particle("P", P, m)],
            gravity=-g * N.y,
            loads=[(P, F * N.x - c * (u * N.x + v * N.y))],
            holonomic_constraints=[x**2 + y**2 - l**2],
            inputs=(kg.Input(F, default=0.0),),
            parameters={l: 1, m: 1, g: 9.81, c: 0.1},
        ),
        functions=("rhs", "residuals", "consistency", "jacobians"),
    )


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_force_that_holds_a_pendulum_in_any_unit(scale):
    """F = m g tan of the angle; at 1e-9 m positions off the circle were accepted."""
    units = {"l": {"m": 1}, "m": {"kg": 1}, "g": {"m": 1, "s": -2}, "c": {"kg": 1, "s": -1}}
    solver = held_bob()
    values = {name: solver.parameters[name] * scale.of(powers) for name, powers in units.items()}
    length, force = values["l"], values["m"] * values["g"]
    solver = solver.with_parameters(values)
    found = solver.equilibrium({"x": 0.6 * length, "y": -0.75 * length}, fixed="x", free_inputs="F")
    np.testing.assert_allclose(found.q, [0.6 * length, -0.8 * length], rtol=ACCURACY)
    np.testing.assert_allclose(found["F"], 0.75 * force, rtol=ACCURACY)
    assert found.stability == "stable"
    with pytest.raises(kg.SolveError, match="no steady state of 'held'"):
        solver.equilibrium({"x": 1.1 * length, "y": -0.1 * length}, fixed="x", free_inputs="F")
    with pytest.raises(kg.SolveError, match="no steady state of 'held'"):
        solver.equilibrium({"x": 0.6 * length, "y": -0.8 * length}, fixed="x")


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_car_settles_in_any_unit(scale):
    """Contacts close and open at gaps of any size."""
    units = {
        **{name: {"kg": 1} for name in ("m1", "m2")},
        **{name: {"kg": 1, "s": -2} for name in ("k1", "k2")},
        **{name: {"kg": 1, "s": -1} for name in ("c1", "c2")},
        "g": {"m": 1, "s": -2},
    }
    length = scale.of({"m": 1})
    values = {name: CAR[name] * scale.of(powers) for name, powers in units.items()}
    z2 = -(CAR["m1"] + CAR["m2"]) * CAR["g"] / CAR["k2"]
    for start in ([0.0, 0.0], [-0.2, -0.02], [0.3, 0.3]):
        found = car().with_parameters(values).equilibrium(np.array(start) * length)
        np.testing.assert_allclose(found.q / length, [z2 - CAR["m1"] * CAR["g"] / CAR["k1"], z2], rtol=ACCURACY)
        assert (found.stability, found.contacts["tire"].mode) == ("stable", "closed")
    with pytest.raises(kg.SolveError, match="no steady state"):
        car().with_parameters(values).equilibrium([0.0, 0.0], r=[1e6 * scale.of({"kg": 1, "m": 1, "s": -2})])


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_grain_sticks_in_any_unit(scale):
    """The slope |x| / L is at most mu; beyond, the grain rests at the edge."""
    length, force = scale.of({"m": 1}), scale.of({"kg": 1, "m": 1, "s": -2})
    values = {"m": 0.7 * scale.of({"kg": 1}), "g": 9.81 * scale.of({"m": 1, "s": -2}), "L": length}
    for x, expected in ((0.1, 0.1), (0.0, 0.0), (-1.0, -0.3)):
        found = grain_solver().with_parameters(values).equilibrium([x * length, x**2 / 2 * length])
        np.testing.assert_allclose(found.q / length, [expected, expected**2 / 2], atol=ACCURACY)
        np.testing.assert_allclose(found.forces[1] / force, expected * found.forces[0] / force, atol=1e-8)
        assert not found.isolated


def test_angles_are_the_coordinates_of_which_constraints_contain_sines():
    """Their unit is 1. That of x in sin(x / l) is a length."""
    t = me.dynamicsymbols._t
    coordinates = a, b, x, y = me.dynamicsymbols("a b x y")
    speeds = me.dynamicsymbols("u1:5")
    N, O, l = me.ReferenceFrame("N"), me.Point("O"), sm.Symbol("l")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, speeds[2] * N.x + speeds[3] * N.y)
    A, B = N.orientnew("A", "Axis", (a, N.z)), N.orientnew("B", "Axis", (b, N.z))
    model = kg.Model(
        name="angles",
        frame=N,
        coordinates=coordinates,
        speeds=speeds,
        kinematics=[q.diff(t) - u for q, u in zip(coordinates, speeds, strict=True)],
        bodies=[
            me.Particle("P", P, 1),
            me.RigidBody("A", O, A, 1, (me.inertia(A, 1, 1, 1), O)),
            me.RigidBody("B", O, B, 1, (me.inertia(B, 1, 1, 1), O)),
        ],
        holonomic_constraints=[x - sm.cos(2 * a - b + t), y - sm.sin(x / l)],
        parameters={l: 2},
    )
    assert assemble(kg.derive(model), BuildOptions.of("reduced"))[0].angles == (True, True, False, False)


# -- projections ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1e-9, 1e-6, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e12])
def test_projection_in_any_unit(length, factor):
    """Residuals below 1e-13, in whatever unit, were not corrected: at 1e-6 m, in square meters, none was."""
    solver = bob().with_parameters(l=length, factor=factor).with_stabilization(kg.Projection())
    start = [0.6 * length, -0.8 * length], [0.0, 0.0]
    found = solver.integrate((0.0, 3.0 * length**0.5), *start, rtol=1e-6, atol=1e-10 * length)
    np.testing.assert_allclose(np.hypot(*found.q.T), length, rtol=1e-13)
    np.testing.assert_allclose((found.q * found.u).sum(axis=1), 0.0, atol=1e-13 * length**1.5)


@pytest.mark.parametrize("form", ["auto", "pseudoinverse"])
@pytest.mark.parametrize("scale", [SCALES[0], SCALES[4], SCALES[7], SCALES[10], SCALES[14]], ids=str)
def test_projected_motion_in_other_units(form, scale):
    """The slider-crank has angles beside a length, which may be 1e-9 m."""
    scaled, end = projected_slider_crank(form)
    np.testing.assert_allclose(scaled.end(scale), end, rtol=0.0, atol=ACCURACY)


@cache
def projected_slider_crank(form: str) -> tuple[ScaledRun, np.ndarray]:
    solver = kg.build(model_of("slider_crank"), form=form, stabilization=kg.Projection())
    scaled = ScaledRun(solver, "slider_crank")
    return scaled, scaled.end(Scale({}))


@pytest.mark.parametrize("form", ["auto", "pseudoinverse"])
@pytest.mark.parametrize("amplitude", [1e-12, 1e-9, 1e-3])
def test_projection_of_small_motions_of_large_parts(form, amplitude):
    """Coordinates of 1 nm beside a bar of 1 m: residuals are rounding of 1 m, which no correction removes."""
    t = me.dynamicsymbols._t
    x, y, u, v = me.dynamicsymbols("x y u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + (y - 1) * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    model = kg.Model(
        name="small",
        frame=N,
        coordinates=[x, y],
        speeds=[u, v],
        kinematics=[x.diff(t) - u, y.diff(t) - v],
        bodies=[me.Particle("P", P, 1)],
        gravity=-9.81 * N.y,
        holonomic_constraints=[sm.sqrt((sm.Rational(1, 10) + x) ** 2 + (y - 1) ** 2) - sm.sqrt(sm.Rational(101, 100))],
        loads=[(P, 0.981 * N.x)],
    )
    solver = kg.build(model, form=form, stabilization=kg.Projection())
    q, u0 = solver.make_consistent(0.0, [amplitude, 0.1 * amplitude], [0.0, 0.0])
    found = solver.integrate((0.0, 2.0), q, u0, rtol=1e-9, atol=1e-9 * amplitude, start_tolerance=None)
    assert found.success
    assert np.abs(found.q).max() < 3.0 * amplitude


def test_projection_compares_residuals_with_their_own_coordinates():
    """The closure of the bicycle contains small angles: it was compared with the 300 rad by which its wheels turn."""
    start = initial("whipple_bicycle")
    solver = kg.build(model_of("whipple_bicycle"), stabilization=kg.Projection())
    found = solver.integrate((0.0, 20.0), start["q"], start["u"], rtol=1e-6, atol=1e-6)
    residuals = [solver.residuals(*state) for state in zip(found.t, found.q, found.u, strict=True)]
    assert max(np.abs(positions).max() for positions, _ in residuals) < 1e-13
    assert max(np.abs(speeds).max() for _, speeds in residuals) < 1e-13


def test_projection_with_large_corrections_ends_at_rounding():
    """Directions of the first correction, of 6e-3, made the next ones converge slowly."""
    w = me.dynamicsymbols("w1:4")
    q = me.dynamicsymbols("e0:4")
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    O.set_vel(N, 0)
    B.orient_quaternion(N, q)
    B.set_ang_vel(N, sum((wi * axis for wi, axis in zip(w, B, strict=True)), me.Vector(0)))
    E = sm.Matrix([[-q[1], -q[2], -q[3]], [q[0], -q[3], q[2]], [q[3], q[0], -q[1]], [-q[2], q[1], q[0]]])
    rates = E * sm.Matrix(w) / 2
    model = kg.Model(
        name="tumbling",
        frame=N,
        coordinates=q,
        speeds=w,
        kinematics=[x.diff() - rate for x, rate in zip(q, rates, strict=True)],
        bodies=[me.RigidBody("B", O, B, 1, (me.inertia(B, 1, 2, 3), O))],
        holonomic_constraints=[sum(x**2 for x in q) - 1],
    )
    solver = kg.build(model, stabilization=kg.Projection())
    found = solver.integrate((0.0, 20.0), [1.0, 0.0, 0.0, 0.0], [0.4, 2.0, 0.3], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose((found.q**2).sum(axis=1), 1.0, rtol=0.0, atol=2e-13)


# -- positions along a path, and consistent positions ------------------------------------------------------------


@cache
def rods() -> kg.Solver:
    """A crank of length l and a rod of length 2 l, the end of which slides along x."""
    t = me.dynamicsymbols._t
    l, force = sm.Symbol("l"), me.dynamicsymbols("force")
    coordinates = a, b, x = me.dynamicsymbols("a b x")
    speeds = me.dynamicsymbols("u1:4")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, speeds[2] * N.x)
    A, B = N.orientnew("A", "Axis", (a, N.z)), N.orientnew("B", "Axis", (b, N.z))
    return kg.build(
        kg.Model(
            name="rods",
            frame=N,
            coordinates=coordinates,
            speeds=speeds,
            kinematics=[q.diff(t) - u for q, u in zip(coordinates, speeds, strict=True)],
            bodies=[
                me.RigidBody("A", O, A, 1, (me.inertia(A, 0, 0, l**2 / 3), O)),
                me.RigidBody("B", O, B, 1, (me.inertia(B, 0, 0, l**2 / 3), O)),
                me.Particle("P", P, 1),
            ],
            loads=[(P, force * N.x)],
            inputs=[force],
            holonomic_constraints=[l * (sm.cos(a) + 2 * sm.cos(b)) - x, sm.sin(a) + 2 * sm.sin(b)],
            parameters={l: 1},
        ),
        functions="all",
    )


LENGTHS = (1e-9, 1e-6, 1e-3, 1.0, 1e3, 1e6)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_mechanism_follows_its_slider_in_any_unit(length):
    """At 1e-9 m it was said to have no position; the angles have another unit than x, which is prescribed."""
    times = np.linspace(0.0, 2.0, 11)
    path = {"x": length * (2.2 + 0.3 * sm.cos(me.dynamicsymbols._t))}
    found = rods().with_parameters(l=length).inverse_dynamics(path, times, q0={"a": 1.0, "b": -0.4})
    x = 2.2 + 0.3 * np.cos(times)
    np.testing.assert_allclose(np.cos(found.q[:, 0]), (x**2 - 3.0) / (2.0 * x), rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(found.u[:, 2] / length, -0.3 * np.sin(times), rtol=0.0, atol=1e-14)
    np.testing.assert_allclose((np.cos(found.q[:, :2]) * found.u[:, :2]) @ [1.0, 2.0], 0.0, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("times", [np.linspace(0.0, 3.0, 31), np.array([0.0, 1.5, 3.0])], ids=len)
def test_a_position_from_a_rough_guess_in_any_unit(length, times):
    """It was refused from 1e3 m on, and 6e-8 off at 1e-9 m: corrections were compared with numbers without units."""
    path = {"x": 0.8 * length * sm.sin(me.dynamicsymbols._t)}
    driven = driven_bob().with_parameters(l=length)
    found = driven.inverse_dynamics(path, times, q0={"y": -2.0 * length})
    expected = -np.sqrt(1.0 - (0.8 * np.sin(times)) ** 2)
    np.testing.assert_allclose(found.q[:, 1] / length, expected, rtol=0.0, atol=1e-14)


@cache
def driven_bob() -> kg.Solver:
    """A particle on a circle of radius l, driven by a force along x."""
    t = me.dynamicsymbols._t
    l, force = sm.Symbol("l"), me.dynamicsymbols("force")
    x, y, u, v = me.dynamicsymbols("x y u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    return kg.build(
        kg.Model(
            name="driven_bob",
            frame=N,
            coordinates=[x, y],
            speeds=[u, v],
            kinematics=[x.diff(t) - u, y.diff(t) - v],
            bodies=[me.Particle("P", P, 1)],
            loads=[(P, force * N.x)],
            inputs=[force],
            holonomic_constraints=[x**2 + y**2 - l**2],
            parameters={l: 1},
        ),
        functions="all",
    )


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("error", [1e-5, 0.1])
def test_consistent_positions_with_angles_beside_a_length(length, error):
    """A slider was left 1e-5 of 1e-9 m off, which was compared with the angles."""
    angle = np.arcsin(np.sin(1.0) / 2.0)
    x = np.cos(1.0) + 2.0 * np.cos(angle)
    solver = rods().with_parameters(l=length)
    q, _ = solver.make_consistent(0.0, [1.0, -angle, x * (1.0 + error) * length], [0.0, 0.0, 0.0], fixed=["a"])
    np.testing.assert_allclose(q, [1.0, -angle, x * length], rtol=1e-13)
