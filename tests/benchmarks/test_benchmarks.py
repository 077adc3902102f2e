"""The comparison with other packages: its equations and references are right, and it survives what peers do."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sympy as sm
from checkout import EXAMPLES, ROOT
from click.testing import CliRunner
from messages import raises

from benchmarks import measure, own, registry, tables
from benchmarks.__main__ import main
from benchmarks.formulas import algebra, written_formulas
from benchmarks.gradient_problems import read_gradient_problem
from benchmarks.measure import Comparison, Results, read_results
from benchmarks.problems import Problem, read_problem
from benchmarks.program import Program, check_rates
from benchmarks.reference import reference_solution
from benchmarks.trees import ZERO, Joint, grouped
from kanegen.cli.bench.peers import PeerError, integrate
from kanegen.derivation import derive
from kanegen.errors import SolveError
from kanegen.graph import evaluate
from kanegen.plot.work import WorkPoint, relative_error


@cache
def problem(name: str) -> Problem:
    return read_problem(EXAMPLES, name)


@pytest.mark.parametrize("name", ["n_link_pendulum(2)", "rolling_disk", "four_bar", "whipple_bicycle"])
def test_formulas_of_peers_describe_the_motion_of_the_model(name: str) -> None:
    given = problem(name)
    equations = derive(given.file.model)
    nodes = [*equations.system.qdot, *equations.accelerations(stabilized=False).udot]
    for y, q, u in zip(given.samples, given.states.q, given.states.u, strict=True):
        expected = evaluate(nodes, {"q": q.tolist(), "u": u.tolist(), "p": given.parameters})
        found = given.formulas.values(given.formulas.whole_rates, y)
        # Rounding times the condition number of the four-bar linkage and of the bicycle, about 1e3.
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_formulas_are_finite_at_the_start() -> None:
    # The form of the bicycle with the fewest operations divides by zero while the bicycle is upright.
    formulas = problem("whipple_bicycle").formulas
    assert np.isfinite(formulas.values(formulas.whole_rates, formulas.start)).all()


@pytest.mark.parametrize("name", ["n_link_pendulum(2)", "spatial_chain(2)"])
def test_the_motion_satisfies_the_equations_of_the_lagrangian(name: str) -> None:
    given = problem(name)
    n = len(given.formulas.start) // 2
    q, u = (sm.symbols(f"{letter}:{n}") for letter in "qu")
    (energy,) = evaluate([given.lagrangian], {"q": q, "u": u}, algebra(sm))
    momenta = sm.Matrix([energy]).jacobian(u).T
    parts = [momenta.jacobian(u), momenta.jacobian(q), sm.Matrix([energy]).jacobian(q).T]
    of_state = sm.lambdify([q, u], parts)
    for y in given.samples:
        mass, of_q, force = of_state(y[:n], y[n:])
        udot = given.formulas.values(given.formulas.rates, y)[n:]
        # Terms of some 100 N m that cancel.
        np.testing.assert_allclose(mass @ udot + of_q @ y[n:], force.ravel(), rtol=1e-12, atol=1e-11)


def test_no_lagrangian_of_models_with_constraints() -> None:
    with raises(PeerError, "rolling_disk", "constraints"):
        _ = problem("rolling_disk").lagrangian


def test_dependent_speeds_of_formulas_satisfy_the_constraints() -> None:
    given = problem("whipple_bicycle")
    assert len(given.formulas.start) == 8 + 3
    rows = derive(given.file.model).constraints.rows
    for q, u in zip(given.states.q, given.states.u, strict=True):
        values = {"q": q.tolist(), "u": u.tolist(), "p": given.parameters}
        for row in rows:
            assert abs(np.dot(evaluate(row.J, values), u)) < 1e-13


def test_reference_solution_is_right_to_rounding() -> None:
    x, v = sm.symbols("x v")
    oscillator = written_formulas((x, v), (v, -sm.Rational(9, 4) * x), (x, v), np.array([1.0, 0.5]))
    found = reference_solution(oscillator, "oscillator", 20.0)
    sine, cosine = math.sin(30.0), math.cos(30.0)
    np.testing.assert_allclose(found, [cosine + sine / 3, cosine / 2 - 1.5 * sine], rtol=0, atol=1e-15)


def test_motion_that_is_too_sensitive_has_no_reference() -> None:
    x = sm.Symbol("x")
    blow_up = written_formulas((x,), (x**2,), (x,), np.array([1.0]))
    with raises(PeerError, "blow_up"):
        reference_solution(blow_up, "blow_up", 2.0)


def test_joints_without_mass_belong_to_the_next_body() -> None:
    away = (0.0, 1.0, 0.0)
    joints = [Joint(-1, "rx"), Joint(0, "ry", mass=1.0), Joint(1, "rx", away), Joint(2, "ry", ZERO, mass=1.0)]
    joints += [Joint(1, "rz", away, mass=1.0)]
    assert grouped(joints) == [(-1, [0, 1]), (0, [2, 3]), (0, [4])]


def test_run_whose_derivatives_are_not_finite_is_refused() -> None:
    with raises(SolveError, "DOP853"):
        integrate(lambda t, y: np.full(2, np.nan), 1.0, (0.0, np.zeros(2)), "DOP853", 1e-6)


def test_wrong_rates_are_refused() -> None:
    with raises(SolveError, "n_link_pendulum(2)", "wrong"):
        check_rates(problem("n_link_pendulum(2)"), "wrong", lambda y: y)


SLOW = pytest.param("four_bar", marks=pytest.mark.target)


@pytest.mark.parametrize("name", ["double_pendulum", "rolling_disk", SLOW])
def test_derivatives_of_motions_have_the_references_of_their_formulas(name: str) -> None:
    """The variational equations of the formulas in long double, against those of the model and its differences."""
    given = read_gradient_problem(EXAMPLES, name)
    for kind, run in (("sensitivities", own.gradients), ("gradient", own.gradients), ("gradient", own.differences)):
        reference, tolerance = given.reference(kind), 1e-10 if run is own.gradients else 1e-12
        found = run(given)[kind]["verner9"](tolerance)
        assert relative_error(found, reference) < (1e-7 if run is own.gradients else 1e-4)


def test_derivatives_are_in_the_table_and_in_files(tmp_path: Path) -> None:
    """A method that fails is left out, and so is one that is wrong."""

    def stop(tolerance: float) -> Any:
        raise SolveError("no derivatives")

    reference = np.array([1.0, 2.0])
    peers = {
        "kanegen": {"exact": lambda tolerance: reference + tolerance, "stops": stop},
        "heyoka": {"wrong": lambda tolerance: reference + 1.0},
        "kanegen, differences": {"exact": lambda tolerance: reference + tolerance},
    }
    results = Results(gradients={"disk, gradient": measure.differentiated(peers, reference)})
    results.write(tmp_path / "results.json")
    (table,) = tables.all_tables(read_results(tmp_path / "results.json"), str)
    assert table.headings == ("motion", "derivatives", "error", "kanegen", "kanegen, differences", "heyoka", "ratio")
    assert [row[:3] for row in table.rows] == [("`disk`", "gradient", "1e-05"), ("`disk`", "gradient", "1e-07")]
    assert all("exact" in row[3] and row[5] == "" and float(row[6]) > 0.0 for row in table.rows)


# -- robustness ------------------------------------------------------------------------------------------------------


def _stop(given: Problem, *more: Any) -> Any:
    raise RuntimeError(f"no {given.name}\nsecond line")


def _wrong(given: Problem) -> Program:
    return Program("wrong", runs={"only": lambda tolerance: given.reference + 1.0})


def _exact(given: Problem) -> Program:
    return Program("exact", in_c=lambda: 2e-9, runs={"only": lambda tolerance: given.reference + tolerance})


def _in_other_states(given: Problem) -> Program:
    runs = {"only": lambda tolerance: 2.0 * (given.reference + tolerance)}
    return Program("exact", in_c=lambda: 2e-9, runs=runs, whole=lambda y: y / 2.0)


@pytest.fixture
def comparison(monkeypatch: pytest.MonkeyPatch) -> Comparison:
    """kanegen, a peer that fails, a wrong one, one that is right, and one that is not installed."""
    modules = {
        "kanegen": SimpleNamespace(program=_exact),
        "heyoka": SimpleNamespace(program=_stop, batch=_stop),
        "CasADi": SimpleNamespace(program=_wrong),
        "PyDy": SimpleNamespace(program=_in_other_states),
    }
    monkeypatch.setattr(measure, "installed", lambda names: (modules, {"MuJoCo": "pip install mujoco"}))
    return Comparison(EXAMPLES, rounds=1)


def test_peers_that_fail_are_named_and_the_others_measured(comparison: Comparison, tmp_path: Path) -> None:
    for _, part in comparison.parts(["n_link_pendulum(2)"]):
        part()
    results = comparison.results
    refused = results.refused["n_link_pendulum(2)"]
    assert refused["heyoka"] == "RuntimeError: no n_link_pendulum(2)"
    assert "reference" in refused["CasADi"]
    assert set(refused) == {"heyoka", "CasADi"}
    assert results.evaluation["n_link_pendulum(2)"]["in C"] == {"kanegen": 2e-9, "PyDy": 2e-9}
    assert set(results.integration["n_link_pendulum(2)"]) == {"kanegen", "PyDy"}
    results.write(tmp_path / "folder" / "results.json")
    assert read_results(tmp_path / "folder" / "results.json") == results
    text = "\n".join(" ".join(row) for table in tables.all_tables(results, str) for row in table.rows)
    assert "pip install mujoco" in text
    assert "no n_link_pendulum(2)" in text


def test_package_that_cannot_be_imported_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = registry.Peer("heyoka", "heyoka_peer", "kanegen_has_no_such_module", "heyoka")
    monkeypatch.setattr(registry, "PEERS", {"heyoka": broken})
    modules, missing = registry.installed(("heyoka",))
    assert list(modules) == ["kanegen"]
    assert "pip install heyoka" in missing["heyoka"]


def test_ratio_is_to_the_fastest_peer_at_the_error() -> None:
    def runs(seconds: float) -> list[WorkPoint]:
        return [WorkPoint(10.0**-k, 10.0**-k, seconds * k) for k in (4, 8, 12)]

    curves = {"kanegen": {"a": runs(1.0)}, "heyoka": {"a": runs(4.0), "b": runs(2.0)}, "PyDy": {"a": runs(50.0)[:1]}}
    results = Results(integration={"x": curves, "alone": {"kanegen": {"a": runs(1.0)}}})
    values = {(ratio.problem, ratio.error): ratio.value for ratio in tables.ratios(results)}
    assert values["x", 1e-8] == pytest.approx(0.5)
    assert math.isnan(values["alone", 1e-8])
    integration, means = tables.all_tables(results, lambda text: f"*{text}*")
    (row,) = [row for row in integration.rows if row[:2] == ("`x`", "1e-08")]
    assert row[2:] == ("*8 s* a", "16 s b", "", "0.5")
    assert means.rows[-1][1:] == ("0.5", "0.5 (`x`)")


@pytest.mark.parametrize("name", ["nonsense", "n_link_pendulum(x)"])
def test_problems_must_exist(name: str) -> None:
    result = CliRunner().invoke(main, ["--problem", name])
    assert result.exit_code == 1
    assert name in result.output
    assert "rolling_disk" in result.output


def test_page_has_a_place_for_the_results() -> None:
    script = (ROOT / "docs" / "make_peers.py").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    marks = [line for line in page.splitlines() if line.startswith("<!-- results")]
    assert len(marks) == 2
    assert all(mark in script for mark in marks)


# -- installed peers ---------------------------------------------------------------------------------------------


@pytest.mark.target
@pytest.mark.parametrize(("peer", "package"), [("CasADi", "casadi"), ("MuJoCo", "mujoco")])
def test_peer_solves_the_same_problem(peer: str, package: str) -> None:
    pytest.importorskip(package, reason=f"needs {package}")
    given = problem("n_link_pendulum(2)")
    module = registry.PEERS[peer].load()
    program = module.program(given)  # compares accelerations
    assert program.in_c is not None
    assert 0.0 < program.in_c() < 1e-3
    run = program.runs[{"CasADi": "cvodes adams", "MuJoCo": "RK4"}[peer]]
    # A multistep method of tolerance 1e-9 errs by some tolerances after 5 s.
    np.testing.assert_allclose(program.whole(run(1e-9)), given.reference, rtol=0, atol=1e-6)
