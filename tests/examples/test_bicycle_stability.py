"""The map of the stability of the benchmark bicycle, from a sweep."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner
from systems import EXAMPLES, example
from tolerances import PUBLISHED_EIGENVALUES

pytestmark = pytest.mark.target


@pytest.fixture
def stability(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(EXAMPLES))  # the example imports the bicycle
    return example("bicycle_stability")


def test_benchmark_is_stable_between_its_weave_and_capsize_speed(stability: ModuleType) -> None:
    """Meijaard et al. (2007), section 6: 4.292 and 6.024 m/s, and the eigenvalues of their table 2."""
    result = stability.stability([4.29, 4.295, 5.0, 6.02, 6.03], [stability.DEFAULTS["c"], 0.12])
    rates = result.on_grid("eigenvalues").real.max(axis=2)
    np.testing.assert_array_equal(rates[0] < 0.0, [False, True, True, True, False])
    values = tuple(result.on_grid("eigenvalues")[0, 2])
    published = stability.whipple_bicycle.EIGENVALUES[5]
    assert stability.whipple_bicycle.largest_difference(np.array(published), values) < PUBLISHED_EIGENVALUES
    assert stability.largest_difference(result) < PUBLISHED_EIGENVALUES


def test_script(stability: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a map of few points."""
    monkeypatch.setattr(stability, "SPEEDS", stability.SPEEDS[::8])
    monkeypatch.setattr(stability, "TRAILS", stability.TRAILS[::8])
    figure = tmp_path / "map.png"
    arguments = stability.simulate, stability.checks, stability.plot, stability.CASES
    result = CliRunner().invoke(example("_report").command(stability.__doc__, *arguments), ["--plot", str(figure)])
    assert result.exit_code == 0, result.output
    assert "FAILED" not in result.output
    assert figure.read_bytes().startswith(b"\x89PNG")
