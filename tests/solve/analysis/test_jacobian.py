"""Compiled Jacobians against differences of the right-hand side in 60 digits: no derivative is shared."""

from __future__ import annotations

from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sm
from hypothesis import HealthCheck, assume, given, settings
from linkages import four_bar
from mechanisms import BRICARD_START, bricard
from messages import raises
from random_systems import RandomSystem, random_systems
from special_systems import TIME, free_body, shaken_pendulum
from sympy.physics import mechanics as me
from systems import NAMES, SYSTEMS, initial, model_of
from tolerances import CONDITION, DIFFERENCES, FINE_INTEGRATION, SOLVE

import kanegen as kg
from kanegen.graph import evaluate, mpmath_context
from kanegen.program.assemble import assemble
from kanegen.program.functions import right_sides
from kanegen.program.interpret import interpret
from kanegen.program.options import BuildOptions
from kanegen.program.records import Program

DIGITS = 60
STEP = mpmath.mpf(10) ** -20
FUNCTIONS = ("rhs", "residuals", "jacobians")
RATES = {f"jacobian_{argument}": argument for argument in "qurpt"}
RESIDUALS = tuple(f"residuals_{argument}" for argument in "qur")
GAINS = kg.Baumgarte(alpha=1.5, beta=2.5)
Values = dict[str, list[float]]


@cache
def solver_with_jacobians(name: str, **options: Any) -> kg.Solver:
    return kg.build(model_of(name, **options), functions=FUNCTIONS)


def program_of(model: kg.Model) -> Program:
    return assemble(kg.derive(model), BuildOptions.of(functions=FUNCTIONS))[0]


def differences(program: Program, function: str, values: Values, argument: str) -> np.ndarray:
    """Central differences of a function in every element of one argument, exact to more than 30 digits."""
    context = mpmath_context(DIGITS)
    columns = []
    with mpmath.workdps(DIGITS):
        exact = {name: [mpmath.mpf(x) for x in array] for name, array in values.items()}
        for k in range(len(values[argument])):
            sides = []
            for step in (STEP, -STEP):
                moved = [x + step if i == k else x for i, x in enumerate(exact[argument])]
                status, value = interpret(program, function, {**exact, argument: moved}, context)
                assert status >= 0
                sides.append(value)
            columns.append([float((a - b) / (2 * STEP)) for a, b in zip(*sides, strict=True)])
    return np.array(columns).T


def right_hand_side(program: Program) -> str:
    return "rhs_stabilized" if program.symbols.gains else "rhs"


def assert_close(actual: Any, expected: np.ndarray, tolerance: float, name: str) -> None:
    assert np.shape(actual) == expected.shape, name
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * scale, err_msg=name)


def state_near(start: dict[str, Any], seed: int) -> tuple[float, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = np.array(start["q"]) + rng.uniform(-0.2, 0.2, len(start["q"]))
    return 0.7, q, np.array(start["u"]) + rng.uniform(-0.5, 0.5, len(start["u"]))


@pytest.mark.parametrize(("name", "options"), SYSTEMS, ids=NAMES)
def test_jacobians_of_every_example(name: str, options: dict[str, Any]) -> None:
    solver, program = solver_with_jacobians(name, **options), program_of(model_of(name, **options))
    d = solver.description
    sizes = d.constraints.n_holonomic, d.constraints.n_nonholonomic
    stabilizable = sum(sizes) > 0
    solver = solver.with_stabilization(GAINS) if stabilizable else solver
    gains = list(GAINS.flatten(*sizes)) if stabilizable else []
    for seed in (1, 2):
        t, q, u = state_near(initial(name, **options), seed)
        values = {"t": [t], "q": list(q), "u": list(u), "r": [], "p": list(solver.parameters.values()), "g": gains}
        found = solver.jacobian(t, q, u)
        for argument in ("q", "u", "p"):
            if values[argument]:
                expected = differences(program, right_hand_side(program), values, argument)
                assert_close(getattr(found, argument), expected, SOLVE, f"{name} {argument}")
        assert found.r.shape == (len(q) + len(u), 0)


@pytest.mark.parametrize("gains", [None, GAINS], ids=["bare", "stabilized"])
def test_jacobians_belong_to_the_rhs_of_the_solver(gains: kg.Baumgarte | None) -> None:
    """Plain differences of the compiled right-hand side, with the gains of the solver and without."""
    solver = solver_with_jacobians("slider_crank").with_stabilization(gains)
    t, q, u = state_near(initial("slider_crank"), 3)
    found, h = solver.jacobian(t, q, u), 1e-6
    for k in range(3):
        e = h * np.eye(3)[k]
        slope = (np.concatenate(solver.rhs(t, q + e, u)) - np.concatenate(solver.rhs(t, q - e, u))) / (2 * h)
        assert_close(found.q[:, k], slope, DIFFERENCES, "q")
        slope = (np.concatenate(solver.rhs(t, q, u + e)) - np.concatenate(solver.rhs(t, q, u - e))) / (2 * h)
        assert_close(found.u[:, k], slope, DIFFERENCES, "u")
    for k, (name, value) in enumerate(solver.parameters.items()):
        above, below = (np.concatenate(solver.with_parameters({name: value + s}).rhs(t, q, u)) for s in (h, -h))
        assert_close(found.p[:, k], (above - below) / (2 * h), DIFFERENCES, name)


@pytest.mark.parametrize("y", [1e-9, 0.0])
def test_jacobians_where_the_usual_partition_fails(y: float) -> None:
    """Where the wire is vertical u2 cannot be the dependent speed; the derivatives exist."""
    solver, program = solver_with_jacobians("elliptic_wire"), program_of(model_of("elliptic_wire"))
    q, u = [0.4 - np.sqrt(3.0 - 2.0 * y**2), y], [0.3, -1.4]
    p = list(solver.parameters.values())
    values = {"t": [0.7], "q": q, "u": u, "r": [], "p": p, "g": [0.0] * len(program.symbols.gains)}
    found = solver.jacobian(0.7, q, u)
    for argument in ("q", "u", "p"):
        expected = differences(program, "rhs_stabilized", values, argument)
        assert_close(getattr(found, argument), expected, SOLVE, argument)


def test_inputs_and_their_rates_are_arguments_of_their_own() -> None:
    """theta'' = -sin(theta) (g + r'') / l with g = 10, l = 1/2: only the acceleration of the pivot matters."""
    solver = kg.build(shaken_pendulum(), functions=FUNCTIONS)
    found = solver.jacobian(0.3, [0.4], [1.1], [0.2, -0.7, 1.3])
    assert solver.description.inputs == ("r", "r1", "r2")
    np.testing.assert_allclose(found.r, [[0, 0, 0], [0, 0, -2 * np.sin(0.4)]], atol=1e-14)
    np.testing.assert_allclose(found.q, [[0], [-2 * np.cos(0.4) * 11.3]], rtol=1e-14)
    np.testing.assert_allclose(found.u, [[1], [0]], atol=1e-14)
    assert found.p.shape == (2, 0)


def test_splines_and_functions_of_the_user() -> None:
    """A bead on a straight wire, driven by a spline of its place and a function of its speed."""
    x, u = me.dynamicsymbols("x u")
    m = sm.Symbol("m")
    spline = kg.Spline([0.0, 0.5, 1.5, 2.0], [0.0, 1.0, -1.0, 2.0], name="force")
    argument = sm.Symbol("v", real=True)
    drag = kg.Function(
        "drag", 1, python=lambda v: v**3, c="x * x * x", derivatives=(sm.Lambda(argument, 3 * argument**2),)
    )
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    bead = O.locatenew("P", x * N.x)
    model = kg.Model(
        name="driven_bead",
        frame=N,
        coordinates=(x,),
        speeds=(u,),
        kinematics=(u - x.diff(TIME),),
        bodies=(me.Particle("bead", bead, m),),
        loads=((bead, (spline(x) - drag(u) + sm.sin(3 * TIME)) * N.x),),
        parameters={m: 2.0},
    )
    solver, program = kg.build(model, functions=FUNCTIONS), program_of(model)
    values = {"t": [0.4], "q": [0.8], "u": [1.2], "r": [], "p": [2.0], "g": []}
    found, h = solver.jacobian(0.4, [0.8], [1.2]), 1e-6
    assert_close(found.u, differences(program, "rhs", values, "u"), SOLVE, "u")
    assert_close(found.p, differences(program, "rhs", values, "p"), SOLVE, "p")
    slope = (solver.rhs(0.4, [0.8 + h], [1.2])[1] - solver.rhs(0.4, [0.8 - h], [1.2])[1]) / (2 * h)
    assert_close(found.q[1], slope, DIFFERENCES, "q")


def test_more_coordinates_than_speeds() -> None:
    model = free_body()
    solver, program = kg.build(model, functions=FUNCTIONS), program_of(model)
    values = {"t": [0.0], "q": [0.5, 0.1, -0.7, 0.5], "u": [0.3, -1.0, 0.8], "r": [], "p": [], "g": []}
    found = solver.jacobian(0.0, values["q"], values["u"])
    assert found.q.shape == (7, 4)
    for argument in ("q", "u"):
        assert_close(getattr(found, argument), differences(program, "rhs", values, argument), SOLVE, argument)


@pytest.mark.parametrize(("name", "options"), SYSTEMS, ids=NAMES)
def test_solves_by_kernel_give_the_same(name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Large systems leave the factorization to a runtime kernel; here small ones do, too. Also the residuals."""
    monkeypatch.setattr(right_sides, "WRITTEN_OUT", 0)
    model = model_of(name, **options)
    program = program_of(model)
    t, q, u = state_near(initial(name, **options), 4)
    gains = [-0.3 * (k + 1) for k in range(len(program.symbols.gains))]
    values = {"t": [t], "q": list(q), "u": list(u), "r": [], "p": list(model.parameters.values()), "g": gains}
    built = [f for f in program.functions if f.name in (*RATES, *RESIDUALS)]
    assert {"jacobian_q", "jacobian_u", "jacobian_t"} <= {f.name for f in built}
    for function in built:
        argument = function.name.rpartition("_")[2]
        base = "residuals" if function.name in RESIDUALS else right_hand_side(program)
        status, found = interpret(program, function.name, values)
        assert status >= 0
        expected = differences(program, base, values, argument)
        expected = expected[:, 0] if argument == "t" else expected
        assert_close(np.reshape(found, function.shape), expected, SOLVE, function.name)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(random_systems())
def test_jacobians_of_random_systems(system: RandomSystem) -> None:
    equations = kg.derive(system.model)
    assume(equations.has_partition)
    program = assemble(equations, BuildOptions.of(functions=FUNCTIONS))[0]
    gains = [-1.0 - 0.2 * k for k in range(len(equations.gain_names))]
    values = {"t": [system.t], "q": system.q, "u": system.u, "r": system.r, "p": system.p, "g": gains}
    assume(_well_conditioned(equations, values))
    for name, argument in RATES.items():
        if values[argument]:
            status, found = interpret(program, name, values)
            assert status >= 0
            expected = differences(program, right_hand_side(program), values, argument)
            assert_close(np.reshape(found, expected.shape), expected, SOLVE, name)


def _well_conditioned(equations: kg.Equations, values: Values) -> bool:
    Q, J = (np.reshape(evaluate(x.nodes, values), x.shape).astype(float) for x in (equations.Q, equations.J))
    if np.linalg.cond(Q) > CONDITION:
        return False
    dependent = list(equations.partition.dependent)
    return not dependent or bool(
        np.linalg.cond(J @ np.linalg.solve(Q, J.T)) < CONDITION and np.linalg.cond(J[:, dependent]) < CONDITION
    )


def test_jacobians_must_be_asked_for() -> None:
    solver = kg.build(model_of("rheonomic_particle"), functions=("rhs",))
    start = initial("rheonomic_particle")
    with raises(kg.SolveError, "jacobian_q", "functions="):
        solver.jacobian(start["t"], start["q"], start["u"])
    with raises(kg.SolveError, "Jacobians", 'functions=("rhs", "residuals", "jacobians")'):
        kg.build(model_of("rheonomic_particle")).linearize(start["t"], start["q"], start["u"])
    assert "jacobian_q" not in kg.build(model_of("rheonomic_particle")).description.functions
    assert "jacobian_q" in BuildOptions.of(functions="all").functions


# --- constraints of any rank ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [("slider_crank", {}), ("rolling_disk", {}), ("appell_hamel", {"constraints": "nonlinear"}), ("elliptic_wire", {})],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_jacobians_in_the_pseudoinverse_form(name: str, options: dict[str, Any]) -> None:
    """Where all rows are independent: of the program, against differences of its right-hand side in 60 digits."""
    model = model_of(name, **options)
    program = assemble(kg.derive(model), BuildOptions.of("pseudoinverse", FUNCTIONS))[0]
    t, q, u = state_near(initial(name, **options), 5)
    gains = [-0.3 * (k + 1) for k in range(len(program.symbols.gains))]
    values = {"t": [t], "q": list(q), "u": list(u), "r": [], "p": list(model.parameters.values()), "g": gains}
    for argument in ("q", "u", "p"):
        status, found = interpret(program, f"jacobian_{argument}", values)
        assert status >= 0
        expected = differences(program, right_hand_side(program), values, argument)
        assert_close(np.reshape(found, expected.shape), expected, SOLVE, f"{name} {argument}")


def test_jacobians_with_every_row_given_twice() -> None:
    """The rank is the same everywhere: plain differences of the compiled right-hand side, off the manifold as well."""
    solver = kg.build(four_bar(copies=2), form="pseudoinverse", functions=FUNCTIONS)
    single = kg.build(four_bar(), functions=FUNCTIONS)
    q, u, h = np.array([1.1, 0.2, -1.4]), np.array([0.7, -0.4, 0.9]), 1e-6
    found, expected = solver.jacobian(0.0, q, u), single.jacobian(0.0, q, u)
    for name in ("q", "u", "p"):
        assert_close(getattr(found, name), getattr(expected, name), SOLVE, name)
    for k in range(3):
        e = h * np.eye(3)[k]
        slope = (np.concatenate(solver.rhs(0.0, q + e, u)) - np.concatenate(solver.rhs(0.0, q - e, u))) / (2 * h)
        assert_close(found.q[:, k], slope, DIFFERENCES, "q")


def test_jacobians_of_an_overconstrained_mechanism_along_its_motion() -> None:
    """Its rows are dependent on the manifold only: the derivative along the motion is that of u' along the motion."""
    solver = kg.build(bricard(), form="pseudoinverse", functions=(*FUNCTIONS, "consistency"))
    solution = solver.integrate((0.0, 1.0), BRICARD_START, np.zeros(5), method="dop853", rtol=1e-12, atol=1e-12)
    h = 1e-3
    for t in (0.3, 0.6):
        at = {k: solver.make_consistent(0.0, *solution(t + k * h)) for k in (-2, -1, 0, 1, 2)}
        rates = {k: np.concatenate(solver.rhs(0.0, *state)) for k, state in at.items()}
        slope = (8.0 * (rates[1] - rates[-1]) - (rates[2] - rates[-2])) / (12.0 * h)
        found = solver.jacobian(0.0, *at[0])
        assert solver.rank(0.0, *at[0]) == 4
        assert_close(found.q @ rates[0][:5] + found.u @ rates[0][5:], slope, 1e-7, f"t = {t}")


def test_the_stiff_method_runs_an_overconstrained_mechanism() -> None:
    solver = kg.build(bricard(), form="pseudoinverse", functions=(*FUNCTIONS, "consistency"))
    solver = solver.with_stabilization(kg.Projection())
    end = solver.integrate((0.0, 1.0), BRICARD_START, np.zeros(5), method="rodas", rtol=1e-8, atol=1e-8)
    exact = solver.integrate((0.0, 1.0), BRICARD_START, np.zeros(5), method="dop853", rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(end.q[-1], exact.q[-1], atol=FINE_INTEGRATION)
