"""What fits accept as data, and what they refuse, in the names of the user."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
from identified import TIMES, constrained, measured, oscillator
from messages import raises, says
from systems import example

import kanegen as kg
from kanegen.errors import SolveError

DATA = {"t": TIMES, "x": np.cos(TIMES)}
K: dict[str, Any] = {"parameters": ["k"]}


def test_data_are_mappings_data_frames_and_data_sets() -> None:
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    data = measured(oscillator(), sigma=0.01)
    solution = oscillator().integrate((0.0, 4.0), t_eval=TIMES)
    both = np.stack([data["x"], data["x"]], axis=1)
    forms = [
        {"t": TIMES.tolist(), sm.Function("x")(sm.Symbol("t")): data["x"].tolist()},
        pandas.DataFrame(data),
        pandas.DataFrame({"x": data["x"]}, index=TIMES),
        xarray.Dataset({"x": ("t", data["x"])}, {"t": TIMES}),
        [kg.Experiment(data)],
    ]
    values = [kg.fit(oscillator(), form, **K).values for form in forms]
    assert np.ptp(values) == 0.0
    for table in (solution.to_dataframe(), solution.to_xarray()):
        fit = kg.fit(oscillator().with_parameters(k=9.0), table, measured=["x", "v"], rtol=1e-10, **K)
        assert fit.parameters["k"] == pytest.approx(8.0, rel=1e-7)
    assert list(kg.fit(oscillator(), {"t": TIMES, "both": both}, **K).residuals) == ["both[0]", "both[1]"]


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (3.0, ("the data", "3.0", "mapping", "DataFrame", "Dataset")),
        ({"x": np.cos(TIMES)}, ("times", "'t'")),
        (DATA | {"y": TIMES}, ("'y'", "the data", "measured=")),
        ({"t": TIMES}, ("no measured variable",)),
        (DATA | {"x": np.cos(TIMES[:-1])}, ("x", "(80,)", "(81,)")),
        (DATA | {"both": np.cos(TIMES)}, ("both", "(81,)", "(81, 2)")),
        (DATA | {"both[2]": TIMES}, ("both[2]", "(2,)")),
        (DATA | {"t": TIMES[::-1]}, ("increase", "4.0", "3.95")),
        (DATA | {"t": np.where(TIMES == 1.0, np.nan, TIMES)}, ("times", "nan", "finite")),
        (DATA | {"t": TIMES[:, None]}, ("times", "(81, 1)")),
        (DATA | {"t": TIMES - 1.0}, ("-1.0", "outside", "t_span")),
        (DATA | {"x": np.full(81, np.nan)}, ("no measured value",)),
        (DATA | {"x": np.full(81, np.inf)}, ("x", "infinity", "NaN")),
        (DATA | {"x": ["a"] * 81}, ("x", "real numbers")),
        ({"t": [0.0], "x": [0.5]}, ("no time after the start", "0.0")),
        ([], ("data", "empty")),
    ],
)
def test_wrong_data_are_refused(data: Any, names: tuple[str, ...]) -> None:
    solver = oscillator().with_initial(x=0.5, v=0.0, t=0.0)
    with raises(SolveError, *names):
        kg.fit(solver, data, **K)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({}, ("nothing to estimate", "parameters=")),
        ({"parameters": ["kk"]}, ("'kk'", "'k'")),
        ({"start": ["xx"]}, ("start value", "'xx'", "'x'")),
        ({"inputs": ["G"]}, ("input", "'G'")),
        ({"parameters": ["k", "k"]}, ("twice", "k")),
        ({"parameters": {"k": (9.0, 10.0)}}, ("k = 8.0", "(9.0, 10.0)")),
        ({"parameters": {"k": (10.0, 9.0)}}, ("bounds of k", "(10.0, 9.0)")),
        ({"parameters": {"k": 3.0}}, ("bounds of k", "3.0", "(low, high)")),
        ({"parameters": {"k": ("a", None)}}, ("bounds of k", "'a'")),
        (K | {"prior": {"d": (1.0, 1.0)}, "sigma": 1.0}, ("'d'", "prior")),
        (K | {"prior": {"k": 3.0}, "sigma": 1.0}, ("prior of k", "3.0")),
        (K | {"prior": {"k": (1.0, -1.0)}, "sigma": 1.0}, ("prior of k", "-1.0")),
        (K | {"prior": {"k": (1.0, 1.0)}}, ("prior", "sigma")),
        (K | {"measured": ["z"]}, ("'z'", "the data")),
        (K | {"measured": ["v"]}, ("'v'", "the data")),
        (K | {"sigma": 0.0}, ("sigma", "0.0", "positive")),
        (K | {"sigma": [0.1]}, ("sigma", "(1,)", "mapping")),
        (K | {"sigma": {"y": 0.1}}, ("sigma", "'y'")),
        (K | {"sigma": {}}, ("sigma", "x")),
        (K | {"sigma": {"x": [0.1, 0.2]}}, ("sigma of x", "(2,)", "(81,)")),
        (K | {"weights": -1.0}, ("weights", "-1.0")),
        (K | {"weights": 1.0, "sigma": 1.0}, ("sigma", "weights", "one of them")),
        (K | {"covariance": np.eye(2)}, ("covariance", "(2, 2)", "(1, 1)")),
        (K | {"covariance": [[-1.0]]}, ("covariance", "positive definite")),
        (K | {"t_span": (0.0, 3.0)}, ("outside", "3.0", "4.0")),
        (K | {"loss": "l3"}, ("loss", "'l3'", "'huber'")),
        (K | {"loss_scale": 0.0}, ("loss_scale", "0.0")),
        (K | {"segments": 0}, ("segments", "0")),
        (K | {"segments": 50}, ("segments=50", "81")),
        (K | {"undetermined": "no"}, ("undetermined", "'no'", "'warn'")),
        (K | {"t_eval": TIMES}, ("t_eval",)),
        ({"inputs": ["F"], "r": lambda t: [0.0]}, ("r", "mapping", "F")),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], names: tuple[str, ...]) -> None:
    with raises(SolveError, *names):
        kg.fit(oscillator(), DATA, **arguments)


def test_a_model_is_no_solver() -> None:
    with raises(SolveError, "solver", "kanegen.Solver"):
        kg.fit("oscillator", DATA, **K)  # type: ignore[arg-type]
    with raises(SolveError, "solver", "kanegen.Solver"):
        kg.fisher_information("oscillator", 1.0, measured="x", sigma=1.0, t_eval=[1.0])  # type: ignore[arg-type]


def test_unknowns_without_a_value_are_named() -> None:
    with raises(SolveError, "x", "q0="):
        kg.fit(oscillator().with_initial(v=0.0), DATA, start=["x"])
    with raises(SolveError, "g", "with_parameters"):
        bare = kg.Solver(constrained().extension, constrained().description, {"m": 1.0, "l": 1.0})
        kg.fit(bare, DATA, parameters=["g"])


def test_fewer_values_than_unknowns_are_refused() -> None:
    with raises(SolveError, "2 measured values", "3 unknowns", "d", "k", "x"):
        kg.fit(oscillator(), {"t": [1.0, 2.0], "x": [0.1, 0.2]}, parameters=["d", "k"], start=["x"])


def test_experiments_must_agree_on_what_is_known_of_their_errors() -> None:
    with raises(SolveError, "sigma", "all"):
        kg.fit(oscillator(), [kg.Experiment(DATA, sigma=0.1), DATA], **K)
    with raises(SolveError, "experiment 1", "increase"):
        kg.fit(oscillator(), [DATA, DATA | {"t": TIMES[::-1]}], **K)


def test_constraints_exclude_segments_and_dependent_start_values() -> None:
    solver, start = constrained().with_initial(y=-0.8), {"q0": {"x": 0.6}, "u0": {"vx": 0.0}}
    data = measured(solver, **start)
    with raises(SolveError, "segments", "constraints"):
        kg.fit(solver, data, parameters=["g"], segments=2, **start)
    with raises(SolveError, "y", "determine"):
        kg.fit(solver, data, start=["x", "y"], q0={"x": 0.6, "y": -0.8}, u0={"vx": 0.0})


def test_a_motion_that_cannot_be_computed_at_the_start_is_an_error() -> None:
    with raises(SolveError):
        kg.fit(oscillator(), DATA, max_steps=2, **K)


def test_a_fit_that_does_not_converge_warns() -> None:
    with pytest.warns(kg.ModelWarning, match="not converge"):
        fit = kg.fit(oscillator().with_parameters(k=2.0), measured(oscillator()), max_evaluations=2, **K)
    assert not fit.success
    says(fit.message, "evaluations")


def test_points_whose_motion_cannot_be_computed_shorten_the_step() -> None:
    """The first step leads to a motion so stiff that it would take hours."""
    module = example("identify_double_pendulum")
    solver = kg.build(module.model())
    start = {"q0": (1.2, 0.9), "u0": (0.0, 0.0)}
    fit = kg.fit(
        solver, module.measurements(solver), parameters=list(module.TRUE), start="theta_2", sigma=0.01, **start
    )
    assert fit.parameters == pytest.approx(module.TRUE, rel=0.2)
    says(fit.message, "1 point", "steps")


def test_a_plan_outside_the_span_is_refused() -> None:
    with raises(SolveError, "outside", "t_span"):
        kg.fisher_information(oscillator(), (0.0, 1.0), t_eval=[2.0], measured="x", sigma=1.0, **K)
    with raises(SolveError, "'z'"):
        kg.fisher_information(oscillator(), (0.0, 1.0), t_eval=[1.0], measured="z", sigma=1.0, **K)


def test_what_a_fit_shows() -> None:
    plots = pytest.importorskip("matplotlib.pyplot")
    data = measured(oscillator(), sigma=0.01)
    fit = kg.fit(oscillator(), [data, data], parameters=["d", "k"], sigma=0.01)
    says(repr(fit), "d", "k", "change")
    page = fit._repr_html_()
    assert all(text in page for text in ("identified_oscillator", "standard error", "95 % interval", "160 degrees"))
    figure = plots.figure()
    (axis,) = fit.plot(ax=figure)
    assert len([line for line in axis.get_lines() if line.get_marker() == "."]) == 2
    assert axis.get_ylabel() == "residual of x"
    assert axis.get_xlabel() == "t (s)"
    plots.close(figure)
    with raises(SolveError, "level", "95.0", "0.95"):
        fit.intervals(95)
    says(repr(fit.identifiability), "all determined")
