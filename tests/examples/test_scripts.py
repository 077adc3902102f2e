"""The examples as a reader runs them: their own checks, their figures, their scripts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from messages import raises
from systems import (
    EXAMPLES,
    FEEDBACK,
    HYBRID,
    LARGE,
    NAMES,
    STATEFUL,
    SYSTEMS,
    example,
    initial,
    model_of,
    solver_for,
    states,
)
from tolerances import CONSISTENT_START, SOLVE

import kanegen as kg
from kanegen.graph.interpret import evaluate

OPTIMAL = ("brachistochrone", "compass_gait", "optimal_swing_up", "sliding_block")
PREDICTIVE = ("cart_pole_predictive",)
BY_GRADIENTS = ("linkage_design", "simplest_walker")
ON_SURFACES = ("ball_on_table",)
BY_LISTS = (name for name, _ in (*SYSTEMS, *HYBRID, *STATEFUL, *FEEDBACK))
NAMED = sorted({*OPTIMAL, *PREDICTIVE, *BY_GRADIENTS, *ON_SURFACES, *BY_LISTS})


@pytest.mark.parametrize(("name", "options"), SYSTEMS, ids=NAMES)
def test_start_is_consistent(name: str, options: dict[str, Any]) -> None:
    reference = states(name, **options)[0].reference
    residuals = np.concatenate([reference.position_residuals, reference.velocity_residuals])
    assert np.abs(residuals).max(initial=0.0) < CONSISTENT_START


@pytest.mark.parametrize("name", [*NAMED, *(pytest.param(name, marks=pytest.mark.target) for name, _ in LARGE)])
def test_example_passes_its_checks_and_draws(name: str, tmp_path: Path) -> None:
    if name in OPTIMAL:
        pytest.importorskip("ipyopt")
    module = example(name)
    report = example("_report")
    run = report.command(module.__doc__, module.simulate, module.checks, module.plot, getattr(module, "CASES", None))
    figure, page = tmp_path / "figure.png", tmp_path / "motion.html"
    result = CliRunner().invoke(run, ["--plot", str(figure), "--html", str(page)])
    assert result.exit_code == 0, result.output
    assert "FAILED" not in result.output
    assert "</html>" in page.read_text(encoding="utf-8")
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_a_missed_bound_is_reported() -> None:
    module, report = example("rheonomic_particle"), example("_report")

    def checks(solver: Any, solution: Any) -> Any:
        yield "impossible", 1.0, 0.5

    run = report.command("Title.", module.simulate, checks, module.plot)
    result = CliRunner().invoke(run, [])
    assert result.exit_code == 1
    assert "FAILED" in result.output


def test_script_runs_from_any_folder(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, EXAMPLES / "rolling_disk.py", "--plot", "path.png"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "thin uniform disk" in result.stdout
    assert (tmp_path / "path.png").exists()


def test_rolling_disk_by_gibbs_and_appell_and_in_momenta() -> None:
    """The equations that the script puts side by side, against the oracle, and against each other where it moves."""
    module, start = example("rolling_disk"), states("rolling_disk")[0]
    for name, case in module.FORMS.items():
        equations, motion = module.simulate(**case)
        rates = module.own_accelerations(equations, start.t, start.q, start.u)
        np.testing.assert_allclose(rates, start.reference.udot, rtol=1e-10, atol=1e-10, err_msg=name)
        assert motion.t[-1] == module.END


def test_appell_hamel_refuses_an_unknown_variant() -> None:
    with raises(ValueError, "nonlinear"):
        example("appell_hamel").model(constraints="quadratic")


def test_both_appell_hamel_sets_move_alike() -> None:
    """On the manifold the two descriptions have the same accelerations: (201)-(205) and (212)-(216)."""
    start = initial("appell_hamel")
    rates = [
        solver_for("appell_hamel", constraints=kind).rhs(start["t"], start["q"], start["u"])[1]
        for kind in ("nonlinear", "linear")
    ]
    np.testing.assert_allclose(rates[0], rates[1], rtol=1e-12)


@pytest.mark.parametrize(("name", "n"), [("n_link_pendulum", 1), ("n_link_pendulum", 4), ("spatial_chain", 1)])
def test_chains_of_any_length(name: str, n: int) -> None:
    """Accelerations by the interpreter against the oracle, at the start of the example."""
    state = states(name, 0, n=n)[0]
    model = model_of(name, n=n)
    values = {"t": [state.t], "q": state.q, "u": state.u, "r": [], "p": [*model.parameters.values()]}
    udot = evaluate(kg.derive(model).udot.nodes, values)
    np.testing.assert_allclose(udot, state.reference.udot, rtol=SOLVE, atol=SOLVE)
