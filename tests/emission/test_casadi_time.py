"""The time of an external function for CasADi against the same model written in CasADi."""

from __future__ import annotations

import importlib.util

import pytest
from checkout import ROOT

pytestmark = pytest.mark.timing
pytest.importorskip("casadi")


def test_an_external_function_takes_half_the_time_of_expressions() -> None:
    """Dynamics and Jacobian of ``spatial_chain(4)``, compiled with the same flags, with CasADi's faster solver."""
    spec = importlib.util.spec_from_file_location("bench_casadi", ROOT / "docs" / "bench_casadi.py")
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    ours, theirs = bench.measured(4, bench.FLAGS[0], ["SX, `L D L^T`"]).values()
    assert ours.both < 0.5 * theirs.both
