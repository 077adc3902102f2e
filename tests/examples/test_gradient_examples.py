"""The examples of periodic motions and of design by gradients pass their checks, draw, and animate."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from systems import example


@pytest.mark.parametrize("name", ["simplest_walker", "linkage_design"])
def test_example_passes_its_checks_and_draws(name: str, tmp_path: Path) -> None:
    module, figure = example(name), tmp_path / "figure.png"
    run = example("_report").command(module.__doc__, module.simulate, module.checks, module.plot)
    result = CliRunner().invoke(run, ["--plot", str(figure), "--html", str(tmp_path / "motion.html")])
    assert result.exit_code == 0, result.output
    assert "FAILED" not in result.output
    assert figure.read_bytes().startswith(b"\x89PNG")
