"""What problems of optimal control refuse, and what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sm
from controlled import F, block, v, x
from messages import raises
from systems import example

import kanegen as kg
from kanegen.control import ipopt

ENDS: tuple[Any, ...] = ({x: 0, v: 0}, {x: 1, v: 0})
EFFORT = kg.Integral(F**2)


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ({"minimize": kg.Integral(sm.Symbol("k"))}, ["k"]),
        ({"minimize": EFFORT**2}, ["minimize", "numbers"]),
        ({"minimize": v}, ["minimize", "v", "kg.Integral"]),
        ({"minimize": "F"}, ["minimize", "F", "SymPy"]),
        ({"minimize": kg.Duration}, ["kg.Duration", "duration=1"]),
        ({"duration": -1}, ["duration", "-1", "positive"]),
        ({"duration": (2, 1)}, ["duration", "2", "1"]),
        ({"start": {"z": 0}}, ["start=", "z"]),
        ({"bounds": {F: (0, float("nan"))}}, ["F", "bounds", "nan"]),
        ({"bounds": {x: (0, 1)}, "end": {x: 2}}, ["end", "x = 2", "[0, 1]"]),
        ({"path": [(x, 1)]}, ["path[0]", "(expression, low, high)"]),
        ({"path": [(kg.AtEnd(x), 0, 1)]}, ["path[0]", "AtEnd(x(t))", "the whole motion"]),
        ({"start": {x + kg.Duration: 0}}, ["start", "kg.Duration", "the whole motion"]),
        ({"subject_to": [(x, 0, 1)]}, ["subject_to", "x", "kg.AtStart", "path="]),
        ({"subject_to": [(kg.AtEnd(sm.Symbol("k")), 0, 1)]}, ["k"]),
        ({"subject_to": [(kg.AtTime(x, 2.0), 0, 1)]}, ["kg.AtTime", "2 s", "after the end at 1 s"]),
        ({"subject_to": [(kg.AtTime(x, 0.5), 0, 1)], "duration": (1, 2)}, ["kg.AtTime", "the duration is unknown"]),
        ({"subject_to": [(kg.AtTime(F, 0.5), 0, 1)]}, ["F", "unknown input", "path="]),
        ({"subject_to": [(kg.AtEnd(v.diff()), 0, 1)], "scheme": "gauss"}, ["v'", "at the end", "gauss2"]),
        ({"subject_to": [(kg.SampleSum(x, [0.5]), 0, 1)]}, ["subject_to", "SampleSum(x(t), 1 sample)", "minimize="]),
        ({"minimize": kg.SampleSum(x, [0.5]) ** 2}, ["SampleSum", "numbers"]),
        ({"minimize": kg.SampleSum(x, [0.5, 2.0])}, ["kg.SampleSum", "2 s", "after the end"]),
        ({"minimize": kg.SampleSum(sm.Symbol("z") * x, [0.5])}, ["z", "symbol of the model"]),
        ({"parameters": {"M": 1}}, ["M", "m"]),
        (
            {"minimize": kg.Integral(sm.Symbol("k") * F**2), "parameters": {"k": (1, 2)}},
            ["k", "no parameter of the model"],
        ),
        ({"scheme": "shooting"}, ["shooting", "hermite-simpson"]),
        ({"scheme": "hermite-simson"}, ["hermite-simson", "hermite-simpson"]),
        ({"intervals": 0}, ["intervals", "0"]),
        ({"intervals": [0.0, 0.5, 0.5, 1.0]}, ["intervals", "0 to 1"]),
    ],
)
def test_wrong_problems_are_refused(arguments: dict[str, Any], texts: list[str]) -> None:
    given = {"minimize": EFFORT, "duration": 1.0, "start": ENDS[0], "end": ENDS[1]} | arguments
    with raises(kg.SolveError, *texts):
        kg.OptimalControl(block(), **given)


@pytest.mark.parametrize("inner", [kg.AtEnd(x) * F, kg.Duration * F, EFFORT])
def test_values_of_whole_motions_are_not_integrated(inner: Any) -> None:
    with raises(kg.SolveError, "the argument of kg.Integral contains", "the whole motion; expected values at one time"):
        kg.Integral(inner)


@pytest.mark.parametrize(
    ("times", "data", "texts"),
    [
        ([[0.0]], {}, ["times of kg.SampleSum"]),
        ([-1.0], {}, ["times of kg.SampleSum", "after the start"]),
        ([0.0, 1.0], {"z": [1.0]}, ["z", "(1,)", "(2,)"]),
        ([0.0], {"k": [1.0]}, ["k", "does not contain"]),
        ([0.0], {"z": [np.nan]}, ["each sample has a NaN"]),
        ([0.0], [1.0], ["mapping"]),
    ],
)
def test_wrong_samples_are_refused(times: Any, data: Any, texts: list[str]) -> None:
    with raises(kg.SolveError, *texts):
        kg.SampleSum(x - sm.Symbol("z"), times, data)


@pytest.mark.parametrize(
    ("guess", "texts"),
    [
        ({F: np.array([0.0, np.nan])}, ["F", "guess"]),
        ({F: np.zeros((2, 2))}, ["F", "guess", "(2, 2)"]),
        ({"G": 1.0}, ["guess=", "G"]),
        (3.0, ["guess", "3.0"]),
    ],
)
def test_wrong_guesses_are_refused(guess: Any, texts: list[str]) -> None:
    pytest.importorskip("ipyopt")
    with raises(kg.SolveError, *texts):
        kg.OptimalControl(block(), EFFORT, 1.0, *ENDS, intervals=4).solve(guess=guess)


def test_models_whose_motions_are_not_smooth_are_refused() -> None:
    with raises(kg.SolveError, "contacts", "kanegen.Phases"):
        kg.OptimalControl(example("bouncing_ball").model(), kg.Duration, (0.1, 1.0))
    with raises(kg.SolveError, "kanegen.Model"):
        kg.OptimalControl("block", kg.Duration, (0.1, 1.0))


def test_least_time_without_bounds_of_inputs_warns() -> None:
    with pytest.warns(kg.ModelWarning, match="the inputs F have no bounds"):
        kg.OptimalControl(block(), kg.Duration, (0.1, 10.0), *ENDS)


def test_without_the_solver_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ipyopt", None)
    with raises(kg.SolveError, "pip install 'kanegen[control]'"):
        ipopt.require_ipopt()
    assert "pushed block" in repr(kg.OptimalControl(block(), EFFORT, 1.0, *ENDS))
