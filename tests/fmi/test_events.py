"""Events of the user in FMUs: counts, resets of states, latches, impulses and ends of runs, in both kinds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import fmus
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from fmus import VERSIONS
from hybrid_models import block, rough_block, wall_pendulum
from state_models import point_mass, ticking

import kanegen as kg

pytestmark = pytest.mark.target

t = me.dynamicsymbols._t
KINDS = ("CoSimulation", "ModelExchange")


@pytest.fixture(scope="module")
def fmpy() -> ModuleType:
    return pytest.importorskip("fmpy", reason="FMPy is not installed: pip install 'kanegen[targets]'")


def ends(
    fmpy: ModuleType, path: Path, model: kg.Model, version: str, values: Mapping[str, float], t1: float
) -> dict[str, Any]:
    """The last rows of both kinds of simulation."""
    kg.export_fmu(model, path, fmi=version, name="events", values=values, compiler=fmus.FAST)
    names = [name for name, v in fmus.unpacked(path, version).variables().items() if v["causality"] == "output"]
    return {
        kind: fmpy.simulate_fmu(
            str(path), stop_time=t1, output_interval=0.01, fmi_type=kind, output=names, relative_tolerance=1e-9
        )[-1]
        for kind in KINDS
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_events_reset_states(version: str, fmpy: ModuleType, tmp_path: Path) -> None:
    """z returns to 0 at 1 s, 2 s and 3 s, n counts that; the force z / m drives the mass."""
    rows = ends(fmpy, tmp_path / "x.fmu", ticking(), version, dict.fromkeys("xvzn", 0.0), 3.5)
    for row in rows.values():
        assert row["event.tick.count"] == 3
        assert row["n"] == pytest.approx(3.0, abs=1e-7)
        assert row["z"] == pytest.approx(0.5, abs=1e-7)
        assert row["v"] == pytest.approx((3 * 0.5 + 0.125) / 2, abs=1e-7)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sample_at_the_instant_of_an_event_reads_the_state_after_it(
    version: str, fmpy: ModuleType, tmp_path: Path
) -> None:
    """A force of 1 N begins at the sample at 2.25 s, as in `integrate`."""
    F, on = me.dynamicsymbols("F on")
    model = point_mass(
        "sampled",
        F,
        parameters={sm.Symbol("m"): 1.0},
        inputs=[kg.Input(F, law=on, sample_time=0.25)],
        states={on: 0},
        events=[kg.Event("switch", t - sm.Rational(9, 4), reset={on: 1})],
    )
    rows = ends(fmpy, tmp_path / "x.fmu", model, version, dict.fromkeys(("x", "v", "on"), 0.0), 5.0)
    for kind, row in rows.items():
        assert row["x"] == pytest.approx((5.0 - 2.25) ** 2 / 2, rel=1e-7), kind


@pytest.mark.parametrize("version", VERSIONS)
def test_a_terminal_event_ends_the_simulation(version: str, fmpy: ModuleType, tmp_path: Path) -> None:
    """Friction 0.3 N against F = 14 N: x = 2 t^2, and the run ends at x = 1 m."""
    values = {"x": 0.0, "z": 0.0, "u": 0.0, "w": 0.0, "F": 14.0}
    rows = ends(fmpy, tmp_path / "x.fmu", rough_block(), version, values, 3.0)
    for kind, row in rows.items():
        if (kind, version) != ("CoSimulation", "3.0"):  # there FMPy shows the time that it asked for
            assert row["time"] == pytest.approx(np.sqrt(0.5), abs=1e-6)
        assert row["x"] == pytest.approx(1.0, abs=1e-6)
        assert row["contact.floor.mode"] == 5  # slip
        assert row["contact_force.floor slip"] == pytest.approx(-6.0)
        assert row["event.passes.count"] == 1


def test_an_impulse_acts_on_a_block_that_sticks(fmpy: ModuleType, tmp_path: Path) -> None:
    """3 N s at 1 s give 1.5 m/s, less what friction takes in the impact; after that it slides to rest."""
    values = {"x": 0.0, "z": 0.0, "u": 0.0, "w": 0.0, "F": 4.0}
    rows = ends(fmpy, tmp_path / "x.fmu", rough_block(), "2.0", values, 1.4)
    expected = block().integrate((0.0, 1.4), [0.0, 0.0], [0.0, 0.0], [4.0], rtol=1e-10, atol=1e-12)
    for row in rows.values():
        assert row["event.hit.count"] == 1
        assert row["x"] == pytest.approx(expected.last[1][0], abs=1e-6)
        assert row["u"] == pytest.approx(expected.last[2][0], abs=1e-6)


def test_latches_and_impacts(fmpy: ModuleType, tmp_path: Path) -> None:
    solver = wall_pendulum().with_stabilization(None)
    q0, u0 = [0.6, -0.8], [2.4, 1.8]
    solution = solver.integrate((0.0, 4.0), q0, u0, rtol=1e-11, atol=1e-13)
    assert {event.kind for event in solution.events} >= {"imposed", "removed"}
    values = dict(zip(("x", "z", "u", "w"), (*q0, *u0), strict=True))
    assert solver.model is not None
    rows = ends(fmpy, tmp_path / "x.fmu", solver.model, "2.0", values, 4.0)
    for kind, row in rows.items():
        end = np.array([row[name] for name in values])
        # The drift of the constraints differs between CVode at its tolerance and the fixed steps.
        tolerance = 1e-6 if kind == "CoSimulation" else 1e-3
        assert np.abs(end - np.concatenate(solution.last[1:])).max() < tolerance
        assert (row["event.caught.count"], row["event.released.count"]) == (1, 1)
