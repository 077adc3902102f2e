"""Wrong arguments of the public functions and methods: each is an error of kanegen that names the argument."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from messages import raises
from systems import initial, model_of, solver_for
from trim_models import car

import kanegen as kg
from kanegen.errors import BuildError, KanegenError, ModelError, SolveError

HUGE = 10**5000  # has neither a float nor, in Python, a text
WRONG = ("abc", ["a"], {"a": 1}, HUGE, [10**400], [None], object(), [[1.0], [1.0, 2.0]])


@pytest.mark.parametrize(
    ("error", "options", "names"),
    [
        (ModelError, {"stabilization": "baumgarte"}, ("stabilization", "'baumgarte'", "kg.Baumgarte", "kg.Projection")),
        (BuildError, {"compiler": "gcc"}, ("compiler", "'gcc'", "kanegen.CompilerOptions", "CC")),
        (BuildError, {"form": ["reduced"]}, ("form", "['reduced']", "reduced")),
        (BuildError, {"functions": 3}, ("functions", 3)),
        (BuildError, {"functions": [3]}, ("functions", 3)),
        (BuildError, {"backend": 3}, ("backend", 3, "cython", "interpreted")),
    ],
)
def test_options_of_a_build_are_checked(error: type[KanegenError], options: Any, names: tuple[Any, ...]) -> None:
    with raises(error, *names):
        kg.build(model_of("slider_crank"), **options)


def test_numbers_of_numpy_are_written_as_those_of_python() -> None:
    with raises(SolveError, "is nan;"):
        solver_for("slider_crank").with_parameters(m1=np.float64("nan"))


@pytest.mark.parametrize("call", [kg.build, kg.derive, kg.verify, lambda model: kg.emit(model, "unused")])
def test_something_that_is_no_model_is_refused(call: Callable[[Any], Any]) -> None:
    with raises(ModelError, "'pendulum'", "kanegen.Model"):
        call("pendulum")


def test_the_compiler_options_are_public() -> None:
    options = kg.CompilerOptions(kernel=("-std=c99", "-O1"))
    solver, start = kg.build(model_of("elliptic_wire"), compiler=options), initial("elliptic_wire")
    usual = solver_for("elliptic_wire").rhs(start["t"], start["q"], start["u"])
    np.testing.assert_allclose(solver.rhs(start["t"], start["q"], start["u"]), usual, rtol=1e-12)


def crank(method: str, **changes: Any) -> Any:
    """A call of a method of the slider-crank at its start, with other arguments."""
    start = initial("slider_crank")
    arguments = {"t": start["t"], "q": start["q"], "u": start["u"], **changes}
    return getattr(solver_for("slider_crank"), method)(**arguments)


def run(**changes: Any) -> kg.Solution:
    start = initial("slider_crank")
    arguments = {"t_span": (0.0, 1.0), "q0": start["q"], "u0": start["u"], **changes}
    return solver_for("slider_crank").integrate(**arguments)


@pytest.mark.parametrize("t", ["0", 10**400, HUGE, None, np.inf], ids=range(5))
@pytest.mark.parametrize("method", ["rhs", "energy", "residuals", "make_consistent", "partition"])
def test_times_are_checked(method: str, t: Any) -> None:
    with raises(SolveError, "t"):
        crank(method, t=t)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"t_span": (0, 10**400)}, ("t1",)),
        ({"t_span": (0, HUGE)}, ("t1", "int")),
        ({"t_span": (-1e308, 1e308)}, ("t_span", "-1e+308", "1e+308")),
        ({"max_steps": 10**20}, ("max_steps", 10**20, "2**63 - 1")),
        ({"max_steps": HUGE}, ("max_steps", "int")),
        ({"max_steps": True}, ("max_steps", "True")),
        ({"rtol": 10**400}, ("rtol",)),
        ({"modes": 3}, ("contacts", 3, "mapping")),
        ({"s0": "abc"}, ("s0", "'abc'")),
        ({"s0": [1.0]}, ("s0", "slider_crank", "no states")),
    ],
    ids=range(10),
)
def test_options_of_a_run_are_checked(changes: dict[str, Any], names: tuple[Any, ...]) -> None:
    with raises(SolveError, *names):
        run(**changes)


def test_integers_of_numpy_limit_the_steps() -> None:
    assert run(max_steps=np.int64(100000)).success


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda solver: solver.with_parameters([1, 2]), ("parameters", "[1, 2]", "mapping")),
        (lambda solver: solver.with_parameters({"crank": "x"}), ("crank",)),
        (lambda solver: solver.make_consistent(0, [0], [0], fixed=3), ("fixed", 3)),
        (lambda solver: solver.linearize(0, [0.0], [0.0], tolerance="x"), ("tolerance", "'x'")),
    ],
)
def test_arguments_of_other_methods_are_checked(call: Callable[[Any], Any], names: tuple[Any, ...]) -> None:
    with raises(SolveError, *names):
        call(solver_for("slider_crank"))


@pytest.mark.parametrize("stabilization", ["projection", 3, kg.Projection])
def test_a_stabilization_is_an_object(stabilization: Any) -> None:
    with raises(ModelError, "stabilization", "kg.Projection()"):
        solver_for("slider_crank").with_stabilization(stabilization)


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize("name", ["q", "u", "r", "s"])
@pytest.mark.parametrize("method", ["rhs", "make_consistent", "residuals", "outputs", "contacts", "partition"])
def test_states_and_inputs_are_checked(method: str, name: str, wrong: Any) -> None:
    start = initial("dc_motor_arm")
    arguments = {"t": start["t"], "q": start["q"], "u": start["u"], "r": [1.0], "s": start["s"], name: wrong}
    with pytest.raises(SolveError):
        getattr(solver_for("dc_motor_arm"), method)(**arguments)


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
@pytest.mark.parametrize("name", ["q0", "u0", "r", "s0"])
def test_starts_of_runs_are_checked(name: str, wrong: Any) -> None:
    start = initial("dc_motor_arm")
    arguments = {"q0": start["q"], "u0": start["u"], "s0": start["s"], name: wrong}
    with pytest.raises(SolveError):
        solver_for("dc_motor_arm").integrate((0.0, 0.1), **arguments)


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_states_of_a_linear_model_are_checked(wrong: Any) -> None:
    start = initial("dc_motor_arm")
    solver = kg.build(model_of("dc_motor_arm"), functions=("rhs", "residuals", "jacobians", "momentum", "Q"))
    with pytest.raises(SolveError):
        solver.linearize(0.0, start["q"], start["u"], s=wrong)
    with pytest.raises(SolveError):
        solver.impulse(0.0, start["q"], start["u"], [1.0], s=wrong)


class Unprintable:
    """An object of the user that has no text."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


ODD = (*WRONG, Unprintable(), b"ab", 1j, np.array(3.0), np.zeros((2, 3, 4)), "\ud800", int, {1: 2}, iter([1]), {1})
"""Values that are legal nowhere below, or only by their meaning in that place."""


def refused(call: Callable[[], Any], error: type[Exception] | tuple[type[Exception], ...] = KanegenError) -> None:
    """The call succeeds or raises an error of kanegen."""
    with suppress(error):
        call()


@pytest.mark.parametrize(
    "option", ["method", "events", "modes", "dense_output", "progress", "control", "t_eval", "step"]
)
def test_no_option_of_a_run_raises_an_error_of_python(option: str) -> None:
    for value in ODD:
        refused(lambda value=value: run(t_span=(0.0, 0.01), max_steps=100, **{option: value}))


@pytest.mark.parametrize("place", ["path", "motion", "table", "times", "r", "q0", "path_tolerance"])
def test_no_argument_of_inverse_dynamics_raises_an_error_of_python(place: str) -> None:
    solver = solver_for("particle_tracking")
    path = {"r": 1, "theta": 0.2, "phi": 0.1}
    for value in ODD:
        given: dict[str, Any] = {"path": path, "times": [0.0], "path_tolerance": None, place: value}
        if place == "motion":
            given = {"path": {**path, "r": value}, "times": [0.0], "path_tolerance": None}
        elif place == "table":
            given = {"path": (value, value), "times": [0.0], "path_tolerance": None}
        refused(lambda given=given: solver.inverse_dynamics(**given))


def test_names_of_quantities_are_checked() -> None:
    solver, motion = solver_for("slider_crank"), run(t_span=(0.0, 0.01))
    start = initial("slider_crank")
    state = start["t"], start["q"], start["u"]
    for value in (None, *ODD):
        for call in (
            lambda name: solver.output(name, *state),
            lambda name: solver.reaction(name, *state),
            lambda name: motion.outputs[name],
            lambda name: motion.reactions[name],
            lambda name: motion[name],
            lambda name: kg.load(name),
            lambda name: motion.with_solver(name),
            lambda name: solver.with_parameters(name),
            lambda name: solver.with_parameters({}, strict=name),
            lambda name: solver.with_initial(name),
            lambda name: solver.rhs(0.0, {"theta": name}, start["u"]),
        ):
            refused(lambda call=call, value=value: call(value), (KanegenError, OSError))
    with raises(SolveError, "output", "3"):
        wrong: Any = 3
        solver.output(wrong, *state)
    with raises(SolveError, "solver", "'again'", "kanegen.Solver"):
        motion.with_solver("again")
    for path in ("", "a\0b", "\ud800"):
        with raises(SolveError, "path"):
            motion.save(path)


def test_quantities_of_tables_are_checked() -> None:
    pytest.importorskip("pandas")
    motion = run(t_span=(0.0, 0.01))
    with raises(SolveError, "enrgy", "energy"):
        motion.to_dataframe("enrgy")
    for value in ODD:
        refused(lambda value=value: motion.to_dataframe(value))


NEAR = {"z1": -0.1, "z2": -0.02}
AT_REST = {"v1": 0.0, "v2": 0.0}


@pytest.mark.parametrize(
    ("method", "arguments", "places"),
    [
        ("equilibrium", {"q0": NEAR}, ("q0", "t", "s0", "r", "fixed", "free_inputs", "tolerance")),
        ("steady_motion", {"q0": NEAR, "u0": AT_REST}, ("q0", "u0", "fixed", "cyclic", "speeds")),
        ("equilibria", {"q0": NEAR, "parameter": "m1", "values": [300.0]}, ("q0", "parameter", "values", "r")),
        (
            "equilibrium_curve",
            {"q0": NEAR, "parameter": "m1", "limits": (300.0, 301.0)},
            ("q0", "parameter", "limits", "step", "max_steps", "fixed"),
        ),
        (
            "linearize",
            {"t": 0.0, "q": [-0.1, -0.02], "u": [0.0, 0.0]},
            ("t", "q", "u", "r", "s", "tolerance", "coordinates", "speeds", "closed_loop"),
        ),
    ],
)
def test_no_argument_of_an_analysis_raises_an_error_of_python(
    method: str, arguments: dict[str, Any], places: tuple[str, ...]
) -> None:
    for place in places:
        for value in (None, *ODD):
            refused(lambda place=place, value=value: getattr(car(), method)(**{**arguments, place: value}))


def shown_motion() -> kg.Solution:
    return car().integrate((0.0, 0.05), NEAR, AT_REST)


def test_no_argument_of_a_plot_raises_an_error_of_python() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    motion, state = shown_motion(), car().equilibrium(NEAR)
    precision = {"solvers": car(), "t_span": (0, 0.01), "q0": NEAR, "u0": AT_REST, "methods": "dopri5"}
    for call, arguments, places in (
        (motion.plot, {}, ("ax", "label")),
        (kg.plot.drift, {"solutions": motion}, ("solutions", "ax")),
        (kg.plot.phase, {"solutions": motion, "x": "z1", "y": "v1"}, ("solutions", "x", "y", "ax")),
        (
            kg.plot.modes,
            {"states": [state, state], "values": [1.0, 2.0]},
            ("states", "values", "kind", "parameter", "ax"),
        ),
        (
            kg.plot.strobe,
            {"solution": motion, "points": lambda *z: [z], "times": 2},
            ("solution", "times", "traces", "ax"),
        ),
        (
            kg.plot.work_precision,
            {**precision, "tolerances": [1e-3]},
            ("solvers", "t_span", "q0", "methods", "tolerances", "steps", "work", "reference", "ax"),
        ),
    ):
        for place in places:
            for value in (None, [], *ODD):
                refused(lambda call=call, given={**arguments, place: value}: call(**given))
                pyplot.close("all")
    for value in (None, *ODD):
        refused(lambda value=value: motion.plot(value))
        refused(lambda value=value: kg.plot.strobe(motion, lambda *z: value))
        refused(lambda value=value: kg.plot.drift({id(value): value}))
        pyplot.close("all")
    with raises(SolveError, "points", "3", "function"):
        wrong: Any = 3
        kg.plot.strobe(motion, wrong)
    kg.plot.drift({Unprintable(): motion, 10**5000: motion})  # labels can be of any type
    pyplot.close("all")


def test_no_argument_of_a_page_raises_an_error_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("k3d")
    monkeypatch.chdir(tmp_path)  # some of the values are names of files
    motion, refuses = shown_motion(), (KanegenError, OSError)
    for place in ("title", "labels", "offsets", "frames", "traces", "forces", "model"):
        for value in (None, *ODD):
            refused(lambda given={place: value}: kg.animate(motion, **given))
    for value in (None, *ODD):
        refused(lambda value=value: kg.animate(value))
        refused(lambda value=value: kg.report(value))
        refused(lambda value=value: kg.report(motion, verify=value) if value is not True else None)
        refused(lambda value=value: kg.report(motion, model=value, verify=3))
    page = kg.animate(motion, title="\ud800")
    for value in (None, "", "a\0b", *ODD):
        refused(lambda value=value: page.save(value), refuses)


def test_products_beyond_the_numbers_are_no_divisions_by_zero() -> None:
    """The square of 1e308 overflowed, and the message spoke of a mass that vanishes."""
    solver = kg.build(model_of("rolling_disk"))
    start = initial("rolling_disk")
    with raises(kg.SolveError, "R = 1e+308", "units"):
        solver.with_parameters({"R": 1e308}).integrate((0.0, 1.0), start["q"], start["u"])
    with raises(kg.SolveError, "zero are: R"):
        solver.with_parameters({"R": 0.0}).integrate((0.0, 1.0), start["q"], start["u"])
