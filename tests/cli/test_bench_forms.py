"""The benchmark of the forms, and the estimate by which auto chooses."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from accelerated_models import TIME, Line, inerter, line
from click.testing import CliRunner
from messages import raises
from systems import EXAMPLES

import kanegen as kg
from kanegen.cli import main
from kanegen.cli.bench.compiled import states_near
from kanegen.cli.bench.forms import FormRow, FormTime, _with_unit_norms, example_files, measure_forms
from kanegen.cli.bench.peers import PeerError, input_values, parameter_values
from kanegen.derivation import Equations, derive
from kanegen.derivation.algebra import range_space_operations
from kanegen.derivation.forms import range_space_accelerations
from kanegen.graph import Graph, count_operations
from kanegen.modelfile import read_model_file
from kanegen.program.assemble import assemble, cheapest, form_costs
from kanegen.program.functions.right_sides import RIGHT_SIDES
from kanegen.program.options import BuildOptions
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
    assert set(costs) == set(RIGHT_SIDES)
    assert cheapest(equations) == chosen == min(costs, key=costs.__getitem__)


def cloth(rows: int, columns: int, rods: int = 0) -> kg.Model:
    """A net of particles joined by springs, or by ``rods`` rigid rods: many speeds, and few nonzeros."""
    n, t = rows * columns, me.dynamicsymbols._t
    x = [me.dynamicsymbols(f"x{k} y{k} z{k}") for k in range(n)]
    q, u = [c for point in x for c in point], me.dynamicsymbols(f"u0:{3 * n}")
    m, k, l = sm.symbols("m k l", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points = [O.locatenew(f"P{i}", a * N.x + b * N.y + c * N.z) for i, (a, b, c) in enumerate(x)]
    pairs = [(i, i + 1) for i in range(n) if (i + 1) % columns] + [(i, i + columns) for i in range(n - columns)]
    loads, constraints = [], []
    for a, b in pairs:
        r = points[b].pos_from(points[a])
        squared = sum((d - c) ** 2 for c, d in zip(x[a], x[b], strict=True))
        constraints.append(squared - l**2)
        force = k * (1 - l / sm.sqrt(squared)) * r
        loads += [(points[a], force), (points[b], -force)]
    return kg.Model(
        name="cloth",
        frame=N,
        coordinates=q,
        speeds=u,
        kinematics=[v - c.diff(t) for c, v in zip(q, u, strict=True)],
        bodies=[me.Particle(f"particle{i}", point, m) for i, point in enumerate(points)],
        loads=[] if rods else loads,
        holonomic_constraints=constraints[:rods],
    )


@pytest.mark.parametrize(("rods", "chosen"), [(0, "articulated"), (24, "range_space")])
def test_sparse_systems_are_written_out_whatever_their_size(
    rods: int, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    equations = derive(cloth(5, 6, rods))
    # The dense system of the independent accelerations is not derived to find this.
    monkeypatch.delattr(Equations, "reduced")
    assert cheapest(equations) == chosen
    program, form = assemble(equations, BuildOptions.of("auto", ("rhs",)))
    assert form == chosen
    assert operation_count(program.function("rhs"), program.constants) < 3000


def test_large_full_systems_are_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    file = read_model_file(EXAMPLES / "n_link_pendulum.py", options={"n": 33})
    monkeypatch.setattr("kanegen.program.assemble.FEW_SPEEDS", 34)
    assert cheapest(derive(file.model)) == "reduced"


@pytest.mark.parametrize(
    ("name", "n", "chosen"),
    [
        ("n_link_pendulum", 10, "range_space"),
        ("n_link_pendulum", 40, "articulated"),
        ("spatial_chain", 5, "articulated"),
        ("scissor_lift", 4, "reduced"),
        ("scissor_lift", 6, "articulated"),
    ],
)
def test_long_chains_take_the_form_of_order_n(name: str, n: int, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    equations = derive(read_model_file(EXAMPLES / f"{name}.py", options={"n": n}).model)
    if n == 40:  # its kinetic-energy matrix is not derived to find this
        monkeypatch.delattr(Equations, "mass_matrix")
    nodes = len(equations.graph)
    assert cheapest(equations) == chosen
    assert n != 40 or len(equations.graph) == nodes


def test_eliminations_with_much_fill_in_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    equations = derive(read_model_file(EXAMPLES / "scissor_lift.py", options={"n": 12}).model)
    monkeypatch.setattr("kanegen.program.assemble.RECURSIVE_LIMIT", 5)
    monkeypatch.delattr(Equations, "articulated_accelerations")
    assert cheapest(equations) == "reduced"


def test_loads_that_couple_bodies_take_another_form() -> None:
    def together(of: Line) -> list[Any]:
        force = -of.b * sum(speed.diff(TIME) for speed in of.u) * of.N.x
        return [(point, force) for point in of.points]

    assert cheapest(derive(line(10, inerter))) == "articulated"
    assert cheapest(derive(line(10, together))) == "range_space"


@pytest.mark.parametrize("seed", range(6))
def test_operations_of_the_range_space_follow_from_the_nonzeros(seed: int) -> None:
    random, graph, n, rows = Random(seed), Graph(), 12, 5
    lower = [{i, *(j for j in range(i) if random.random() < 0.2)} for i in range(n)]
    J = [{i, *(j for j in range(n) if random.random() < 0.2)} for i in range(rows)]
    Q = [[graph.input("A", i * n + j) if j in lower[i] else graph.zero for j in range(i + 1)] for i in range(n)]
    full = [[Q[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]
    right, bias = ([graph.input(name, i) for i in range(count)] for name, count in (("x", n), ("b", rows)))
    matrix = [[graph.input("J", i * n + j) if j in J[i] else graph.zero for j in range(n)] for i in range(rows)]
    udot = range_space_accelerations(graph, full, right, matrix, bias).udot
    predicted = sum(range_space_operations(lower, J))
    # Sums that start from zero and products that rows have in common make the code shorter than predicted.
    assert 0.75 * predicted <= count_operations(udot, excluding_constant=False) <= predicted


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


def test_forms_are_compared_where_euler_parameters_have_norm_1() -> None:
    file = read_model_file(EXAMPLES / "humanoid.py")
    near = states_near(file.start(), input_values(file.model, file.start()), parameter_values(file.model))
    moved = _with_unit_norms(derive(file.model), near)
    group = slice(3, 7)  # e0 to e3
    assert np.ptp(np.linalg.norm(near.q[:, group], axis=1)) > 1e-3
    np.testing.assert_allclose(np.linalg.norm(moved.q[:, group], axis=1), 1.0, rtol=1e-12)


def test_inputs_of_laws_need_no_value() -> None:
    file = read_model_file(EXAMPLES / "lqr_cart_pole.py")
    assert input_values(file.model, file.start(), of_laws=0.0) == (0.0,)
    with raises(PeerError, "lqr_cart_pole", "F"):
        input_values(file.model, file.start())
