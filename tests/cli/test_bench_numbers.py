"""The benchmark: its peers are right, and its arithmetic is."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from ccompile import host_source
from checkout import EXAMPLES
from messages import raises

import kanegen as kg
from kanegen.cli.bench.compiled import STATES, TimedFunction, states_near, timed_library
from kanegen.cli.bench.costs import sample_costs
from kanegen.cli.bench.numbers import Result, Target
from kanegen.cli.bench.pair import cheapest
from kanegen.cli.bench.peers import (
    METHODS,
    KaneEquations,
    PeerError,
    apply_kanes_method,
    input_values,
    integrate,
    kane_equations,
    parameter_values,
    peer_library,
    peer_source,
    python_peer,
)
from kanegen.cli.bench.predictive import SAMPLES, predictive_costs
from kanegen.cli.bench.timing import interleaved, machine_lines, processor_name, statement_task
from kanegen.cli.tables import seconds_text
from kanegen.codegen.sources import runtime_headers
from kanegen.errors import BuildError, ModelError, SolveError
from kanegen.modelfile import read_model_file
from kanegen.pipeline import sources_of
from kanegen.plot.work import WorkPoint, relative_error, seconds_at_error, work_points

T = me.dynamicsymbols._t
ROUNDING = 1e-12
"""Both sides evaluate the same formulas of size one in another order."""


def particle(**options: Any) -> kg.Model:
    """A particle in the plane, u = (x', y'), under gravity along -y, with further options of a Model."""
    x, y, u1, u2 = me.dynamicsymbols("x y u1 u2")
    m, g = sm.symbols("m g")
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    extra = {name: make(N, P, (x, y), (u1, u2)) for name, make in options.items()}
    return kg.Model(
        name="particle */ of a test",
        frame=N,
        coordinates=(x, y),
        speeds=(u1, u2),
        kinematics=(u1 - x.diff(T), u2 - y.diff(T)),
        bodies=(me.Particle("P", P, m),),
        gravity=-g * N.y,
        **{"parameters": {m: 2.0, g: 9.0}, **extra},
    )


POINT = {"t": 0.0, "q": (0.6, 0.8), "u": (0.4, -0.3), "r": None}


def equations_of(model: kg.Model, point: dict[str, Any] = POINT) -> KaneEquations:
    return kane_equations(apply_kanes_method(model, point))


def accelerations(model: kg.Model, point: dict[str, Any] = POINT) -> np.ndarray:
    ode = python_peer(equations_of(model, point), input_values(model, point), parameter_values(model))
    return ode(point["t"], np.array((*point["q"], *point["u"])))[2:]


def test_a_free_particle_falls() -> None:
    np.testing.assert_allclose(accelerations(particle()), (0.0, -9.0), atol=ROUNDING)


CIRCLE = -(0.4**2 + 0.3**2) + 0.8 * 9.0
"""The multiplier times m of the circle x^2 + y^2 = 1 at POINT: u' = (0, -g) + CIRCLE (x, y)."""


@pytest.mark.parametrize(
    "constraint",
    [
        {"holonomic_constraints": lambda N, P, q, u: (q[0] ** 2 + q[1] ** 2 - 1,)},
        {"nonholonomic_constraints": lambda N, P, q, u: (q[0] * q[0].diff(T) + q[1] * u[1],)},
        {
            "acceleration_constraints": lambda N, P, q, u: (
                q[0] * u[0].diff(T) + q[1] * u[1].diff(T) + u[0] ** 2 + u[1] ** 2,
            )
        },
    ],
    ids=["holonomic", "nonholonomic", "acceleration"],
)
def test_one_circle_three_ways(constraint: dict[str, Callable[..., Any]]) -> None:
    expected = np.array((0.0, -9.0)) + CIRCLE * np.array((0.6, 0.8))
    np.testing.assert_allclose(accelerations(particle(**constraint)), expected, atol=ROUNDING)


def test_constant_speed_is_nonlinear_in_the_speeds() -> None:
    """u1^2 + u2^2 = const by a force along the velocity (Appell, Chetaev): u' is g's part across it."""
    model = particle(nonholonomic_constraints=lambda N, P, q, u: (u[0] ** 2 + u[1] ** 2 - sm.Rational(1, 4),))
    along = np.array(POINT["u"]) / 0.5
    gravity = np.array((0.0, -9.0))
    np.testing.assert_allclose(accelerations(model), gravity - along * (along @ gravity), atol=ROUNDING)


def test_named_dependent_speeds_and_inputs_with_rates() -> None:
    """x' = r(t) as a constraint with r' given: x'' = r'."""
    r, rate = me.dynamicsymbols("r rate")
    model = particle(
        nonholonomic_constraints=lambda N, P, q, u: (u[0] - r,),
        dependent_speeds=lambda N, P, q, u: (u[0],),
        inputs=lambda *_: (kg.Input(r, rate=rate),),
    )
    point = {**POINT, "r": (0.4, 0.7)}
    np.testing.assert_allclose(accelerations(model, point), (0.7, -9.0), atol=ROUNDING)
    with raises(PeerError, "r", "rate"):
        input_values(model, POINT)


def test_models_without_a_peer_say_why() -> None:
    r = sm.Symbol("r")
    plain = particle(
        nonholonomic_constraints=lambda N, P, q, u: (u[0] - r,),
        inputs=lambda *_: (kg.Input(r, rate=sm.Symbol("r1"), default=0.0),),
    )
    with raises(PeerError, "Symbol"):
        apply_kanes_method(plain, POINT)
    law = kg.Function("law", 1, python=math.sin, c="return sin(x0);", derivatives=(sm.cos,))
    custom = particle(loads=lambda N, P, q, u: ((P, law(q[0]) * N.x),))
    with raises(PeerError, "law"):
        apply_kanes_method(custom, POINT)
    redundant = particle(
        holonomic_constraints=lambda N, P, q, u: (
            q[0] ** 2 + q[1] ** 2 - 1,
            2 * q[0] ** 2 + 2 * q[1] ** 2 - 2,
        )
    )
    with raises(PeerError, "2", "1", "dependent"):
        apply_kanes_method(redundant, POINT)
    valueless = particle(parameters=lambda *_: {})
    with raises(PeerError, "m", "g"):
        parameter_values(valueless)


@pytest.mark.parametrize("constrained", [False, True], ids=["cholesky", "lu"])
def test_the_c_peer_agrees_with_the_python_peer(constrained: bool) -> None:
    options = {"holonomic_constraints": lambda N, P, q, u: (q[0] ** 2 + q[1] ** 2 - 1,)} if constrained else {}
    model = particle(**options)
    equations = equations_of(model)
    assert equations.constrained is constrained
    states = states_near(POINT, (), parameter_values(model))
    compiled = TimedFunction(peer_library(equations), "rhs", states)
    ode = python_peer(equations, (), parameter_values(model))
    for k in range(STATES):
        expected = ode(states.t, np.concatenate((states.q[k], states.u[k])))
        np.testing.assert_allclose(compiled.evaluate(k), expected, rtol=ROUNDING, atol=ROUNDING)
    assert 1e-9 < compiled.task()() < 1e-4


def particle_with_states() -> kg.Model:
    """The particle between an applied force r and a Maxwell damper with the force f; w is a further state."""
    f, w, r = me.dynamicsymbols("f w r")
    k, c = sm.symbols("k c")
    return particle(
        loads=lambda N, P, q, u: ((P, (r - f) * N.x),),
        inputs=lambda *_: (kg.Input(r),),
        states=lambda N, P, q, u: {f: k * (c * q[0].diff(T) - f), w: f * u[0] + r},
        parameters=lambda *_: {"m": 2.0, "g": 9.0, "k": 3.0, "c": 0.7},
    )


def test_peers_integrate_the_states_of_a_model() -> None:
    """Both peers against s' by hand, and the compiled rhs against the peer in C."""
    model, point = particle_with_states(), {**POINT, "r": (0.2,), "s": (0.5, -0.1)}
    values = input_values(model, point), parameter_values(model)
    states = states_near(point, *values)
    equations = kane_equations(apply_kanes_method(model, point))
    assert equations.sizes == {"q": 2, "u": 2, "s": 2, "r": 1, "p": 4}
    q, u, (f, _), (r,) = states.q[0], states.u[0], states.s, states.r
    expected = (*u, (r - f) / 2.0, -9.0, 3.0 * (0.7 * u[0] - f), f * u[0] + r)
    found = python_peer(equations, *values)(states.t, np.concatenate((q, u, states.s)))
    np.testing.assert_allclose(found, expected, rtol=ROUNDING)
    sources = sources_of(model, "auto", ("rhs",))
    for library in (peer_library(equations), timed_library(sources.files, sources.kernel)):
        np.testing.assert_allclose(TimedFunction(library, "rhs", states).evaluate(0), expected, rtol=ROUNDING)


def test_a_load_that_depends_on_accelerations_has_no_peer() -> None:
    model = particle(loads=lambda N, P, q, u: ((P, -3 * u[0].diff(T) * N.x),))
    with raises(PeerError, "accelerations", "P"):
        apply_kanes_method(model, POINT)


def test_the_peer_is_printed_for_speed_and_cannot_be_broken_by_a_name() -> None:
    model = particle(holonomic_constraints=lambda N, P, q, u: (q[0] ** 2 + q[1] ** 2 - 1,))
    text = peer_source(equations_of(model))
    assert "pow(" not in text
    assert "particle */" not in text


def test_a_missing_function_and_a_failing_one_are_errors() -> None:
    states = states_near(POINT, (), ())
    library = timed_library({**runtime_headers(), "failing.c": host_source("failing.c")}, "failing.c")
    with raises(BuildError, "'rhs'"):
        TimedFunction(library, "rhs", states)
    function = TimedFunction(library, "f", states)
    with raises(SolveError, "-1"):
        function.evaluate(0)
    with raises(SolveError, "-1"):
        function.task()


def test_the_python_peer_integrates_by_every_method() -> None:
    model = particle()
    ode = python_peer(equations_of(model), (), parameter_values(model))
    expected = np.array((0.6 + 0.4 * 0.5, 0.8 - 0.3 * 0.5 - 4.5 * 0.25, 0.4, -0.3 - 4.5))
    for method in METHODS:
        state = integrate(ode, 0.5, (0.0, np.array((*POINT["q"], *POINT["u"]))), method, 1e-10)
        np.testing.assert_allclose(state, expected, rtol=1e-8)


def test_costs_are_compared_at_equal_error() -> None:
    points = tuple(WorkPoint(10.0**-k, 10.0**-k, 2.0**k) for k in (2, 4, 6))
    assert seconds_at_error(points, 1e-5) == pytest.approx(2.0**5)
    assert seconds_at_error(points, 1e-1) == 4.0
    assert seconds_at_error(points, 1e-9) == math.inf
    other = (WorkPoint(1e-3, 1e-2, 10.0), WorkPoint(1e-6, 1e-6, 11.0))
    best = cheapest({"first": points, "second": other}, 1e-6)
    assert (best.method, best.seconds) == ("second", pytest.approx(11.0))


def test_tolerances_are_tightened_until_the_error_is_small() -> None:
    reference = np.zeros(2)
    seen: list[float] = []

    def run(tolerance: float) -> np.ndarray:
        seen.append(tolerance)
        return np.array((0.0, 10.0 * tolerance))

    points = work_points(run, reference, smallest_error=1e-5, repetitions=1)
    assert points[-1].error < 1e-5 <= points[-2].error
    assert min(seen) == points[-1].tolerance
    assert relative_error(np.array((11.0,)), np.array((10.0,))) == pytest.approx(1.0 / 11.0)


def test_a_run_that_fails_gives_no_point() -> None:
    """Explicit steps with a loose tolerance can leave the domain of a function."""

    def run(tolerance: float) -> np.ndarray:
        if tolerance > 1e-4:
            raise SolveError("math range error")
        return np.array((tolerance,))

    points = work_points(run, np.zeros(1), smallest_error=1e-6, repetitions=1)
    assert points[0].tolerance == 1e-4
    with raises(SolveError, "range"):
        integrate(lambda t, y: np.array((math.exp(1e3 * y[0]),)), 1.0, (0.0, np.ones(1)), "RK45", 1e-3)


def test_measurements_are_interleaved() -> None:
    order: list[str] = []

    def task(name: str) -> Callable[[], float]:
        def measure() -> float:
            order.append(name)
            return float(len(order))

        return measure

    found = interleaved({"a": task("a"), "b": task("b")}, rounds=3)
    assert order == ["a", "b"] * 3
    assert found == {"a": 1.0, "b": 2.0}
    assert 0.0 < statement_task("x + 1", {"x": 1})() < 1e-3


def test_first_call_of_a_statement_may_compile_something() -> None:
    calls = []

    def function() -> None:
        if not calls:
            time.sleep(0.3)
        calls.append(None)

    task = statement_task("function()", {"function": function})
    before = len(calls)
    task()
    assert len(calls) - before > 100  # the time of the first call gives one


@pytest.mark.parametrize(
    ("target", "verdicts"),
    [
        (Target(500.0, 1000.0, "times"), {1200.0: "goal", 600.0: "met", 400.0: "missed"}),
        (Target(0.7, 0.5, "of its time"), {0.4: "goal", 0.6: "met", 0.8: "missed"}),
    ],
)
def test_verdicts(target: Target, verdicts: dict[float, str]) -> None:
    assert {value: target.verdict(value) for value in verdicts} == verdicts
    assert Result("what", None, target, "why").verdict == "no peer"
    assert Result("what", 1.0, target, "how", judged=False).verdict == "not judged"


def test_seconds_have_a_suitable_unit() -> None:
    assert [seconds_text(x) for x in (12.0, 0.0123, 4.56e-6, 7.8e-8)] == [
        "12 s",
        "12.3 ms",
        "4.56 us",
        "78 ns",
    ]


def test_the_machine_is_named() -> None:
    assert processor_name()
    assert any("SymPy" in line for line in machine_lines())


FILE = """
import sympy as sm
import sympy.physics.mechanics as me
import kanegen as kg

def initial(n=1):
    return {"t": 0.0, "q": (0.1,) * n, "u": (0.0,) * n, "r": None}

def model(n=1):
    x, u = me.dynamicsymbols("x u")
    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    body = me.Particle("P", O.locatenew("P", x * N.x), sm.Symbol("m"))
    return kg.Model(name=f"file{n}", frame=N, coordinates=(x,), speeds=(u,),
                    kinematics=(u - x.diff(me.dynamicsymbols._t),), bodies=(body,))

def other():
    return 3
"""


def test_a_model_file_is_read_with_its_options(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(FILE, encoding="utf-8")
    file = read_model_file(path, options={"n": 2})
    assert file.model.name == "file2"
    assert file.start()["q"] == (0.1, 0.1)


@pytest.mark.parametrize(
    ("function", "options", "names"),
    [
        ("nothing", {}, ("'nothing'", "initial", "model", "other")),
        ("other", {}, ("int",)),
        ("model", {"size": 3}, ("model(n=1)", "'size'")),
    ],
)
def test_a_wrong_model_file_is_explained(
    tmp_path: Path, function: str, options: dict[str, Any], names: tuple[str, ...]
) -> None:
    path = tmp_path / "file.py"
    path.write_text(FILE, encoding="utf-8")
    with raises(ModelError, *names):
        read_model_file(path, function, options)


def test_a_file_without_a_start_or_that_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(FILE.replace("def initial", "def start"), encoding="utf-8")
    with raises(ModelError, "INITIAL"):
        read_model_file(path).start()
    with raises(ModelError, "absent.py"):
        read_model_file(tmp_path / "absent.py")


def test_a_sample_is_timed_with_constant_inputs_and_with_a_callable() -> None:
    costs = sample_costs(read_model_file(EXAMPLES / "cart_pole.py"), 1)
    assert set(costs) == {"constant", "python", "callable"}
    assert min(costs.values()) > 0.0


def test_samples_of_predictive_control_are_those_of_a_swing_up() -> None:
    """At first the force is at its bounds, and at the end the pole stands."""
    found = predictive_costs(read_model_file(EXAMPLES / "optimal_swing_up.py"), 1)
    assert found.seconds.shape == (SAMPLES,)
    assert np.isfinite(found.seconds).all()
    assert found.limited[:10].all()
    assert not found.limited[-10:].any()
