"""The benchmark of the forms, and the estimate by which auto chooses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from messages import raises
from systems import EXAMPLES

import kanegen as kg
from kanegen.bench.forms import FormRow, FormTime, example_files, measure_forms
from kanegen.bench.modelfile import read_model_file
from kanegen.cli import main
from kanegen.derivation import derive
from kanegen.forms import WRITTEN_OUT_LIMIT
from kanegen.graph import Graph
from kanegen.program.assemble import cheapest, form_costs
from kanegen.program.passes.count import CALL_WEIGHT, GUARD_WEIGHT, KERNEL_WEIGHT, cost_estimate, operation_count
from kanegen.program.records import Block, Call, Function, Guard, Invoke, Store


def function(*steps: Any) -> Function:
    return Function("f", (1,), steps, {"A": 4, "x": 2}, "")


def test_estimate_weighs_what_the_count_counts_once() -> None:
    graph = Graph()
    x, y = (graph.input("q", i) for i in range(2))
    block = Block("", (Store("out", 0, x / y + x),))
    solve = Call("lu_solve", (2, "A", "x"))
    plain = function(block)
    assert operation_count(plain) == 2
    assert cost_estimate(plain) == 31.0
    guarded = function(Guard(x, None), block)
    assert operation_count(guarded) == 3
    assert cost_estimate(guarded) == 31.0 + GUARD_WEIGHT
    assert cost_estimate(function(solve)) == CALL_WEIGHT + KERNEL_WEIGHT * operation_count(function(solve))
    assert cost_estimate(function(Invoke(plain, "x"))) == CALL_WEIGHT + 31.0


@pytest.mark.parametrize(
    ("name", "chosen"),
    [("constrained_particle", "range_space"), ("rolling_disk", "reduced"), ("slider_crank", "reduced")],
)
def test_auto_takes_the_form_of_least_estimate(name: str, chosen: str) -> None:
    equations = derive(read_model_file(EXAMPLES / f"{name}.py").model)
    costs = form_costs(equations)
    assert set(costs) == {"reduced", "nonminimal", "range_space", "augmented", "canonical", "pseudoinverse"}
    assert cheapest(equations) == chosen == min(costs, key=costs.__getitem__)


def test_large_systems_are_not_written_out() -> None:
    file = read_model_file(EXAMPLES / "n_link_pendulum.py", options={"n": WRITTEN_OUT_LIMIT + 1})
    assert cheapest(derive(file.model)) == "reduced"


def test_rows_compare_forms_that_integrate_speeds() -> None:
    seconds = {"reduced": 3.0, "range_space": 2.0, "momentum": 1.0}
    row = FormRow("m", "reduced", {form: FormTime(10, value) for form, value in seconds.items()})
    assert row.fastest == "range_space"
    assert row.ratio == 1.5


def test_every_form_of_a_model_is_timed() -> None:
    file = read_model_file(EXAMPLES / "varying_pendulum.py")
    row = measure_forms(file, rounds=1)
    assert row.name == "varying_pendulum"
    assert {"reduced", "nonminimal", "range_space", "canonical", "pseudoinverse", "momentum"} <= set(row.forms)
    assert all(found.seconds > 0.0 for found in row.forms.values())
    assert row.forms["nonminimal"].operations > row.forms["reduced"].operations


def test_examples_are_found_with_their_variants(tmp_path: Path) -> None:
    found = [(file.path.stem, dict(file.options)) for file in example_files(EXAMPLES)]
    assert ("appell_hamel", {"constraints": "linear"}) in found
    assert ("rolling_disk", {}) in found
    with raises(kg.BuildError, "examples"):
        list(example_files(tmp_path))


def test_command_prints_the_choice() -> None:
    arguments = ["bench", str(EXAMPLES / "spherical_pendulum.py"), "--forms", "--rounds", "1"]
    result = CliRunner(env={"COLUMNS": "220"}).invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "spherical_pendulum" in result.output
    assert "pseudoinverse" in result.output
