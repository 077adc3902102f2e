"""Runs of a body that is driven by forces that begin later, and events beside them: no step passes over what it saw."""

from __future__ import annotations

from typing import Any

import driven_models as dm
import numpy as np
import pytest
from driven_models import ADAPTIVE, Drive, Oscillator, triangle

import kanegen as kg

TIMES_TOLERANCE = 100.0
"""Largest error of a damped motion over the relative tolerance, over some tens of seconds."""
SHARE, CAMPAIGN = 20, 2000
"""Random runs in every test run, and in the campaign."""


def check(solution: kg.Solution, oscillator: Oscillator, drive: Drive, rtol: float) -> None:
    """The motion is that in closed form at 30 stored times, and no accepted step exceeds the tolerance."""
    places = np.unique(np.linspace(0, solution.t.size - 1, 30).astype(int))
    states = np.column_stack([solution.q, solution.u])[places]
    expected = oscillator.move(drive, states[0], solution.t[places])
    assert solution.success
    assert solution.statistics.largest_error <= 1.0
    assert np.abs(states - expected).max() <= TIMES_TOLERANCE * rtol * max(np.abs(expected).max(), 1e-2)


@pytest.mark.parametrize("method", ADAPTIVE)
@pytest.mark.parametrize("end", [7.0, 20.0, 25.0])
@pytest.mark.parametrize("solver", [dm.pulse_as_law, dm.pulse_as_load], ids=["law", "load"])
def test_a_pulse_on_a_body_at_rest_between_events(solver: Any, end: float, method: str) -> None:
    """x(7) was 0.1208 with dopri5 to 20 s: the step to the event in the pulse was accepted with an error of 1.4e9."""
    solution = solver().integrate((0.0, end), [0.0], [0.0], dense_output=True, method=method)
    assert solution(7.0)[0][0] == pytest.approx(0.0419239, abs=1e-6)
    check(solution, Oscillator(), triangle(6.0, 1.5, 1.0), 1e-8)
    assert [event.t for event in solution.events] == pytest.approx([4.5, 6.0, 7.5][: 2 if end == 7.0 else 3], abs=1e-9)


def test_a_withdrawn_step_leaves_no_trace() -> None:
    """Stored states and statistics know only the steps that remain."""
    solution = dm.pulse_as_load().integrate((0.0, 20.0), [0.0], [0.0], dense_output=True)
    sizes = np.diff(solution.t)
    assert solution.statistics.steps == sizes.size
    assert solution.statistics.largest_step == pytest.approx(sizes.max(), rel=1e-12)
    assert solution.statistics.smallest_step == pytest.approx(sizes.min(), rel=1e-6)
    assert solution.statistics.last_step == pytest.approx(sizes[-1], rel=1e-12)
    times = np.linspace(0.0, 20.0, 201)
    states = np.column_stack(solution(times)[:2])
    expected = Oscillator().move(triangle(6.0, 1.5, 1.0), [0.0, 0.0], times)
    assert states == pytest.approx(expected, abs=1e-6)


def random_run(rng: np.random.Generator) -> None:
    """A pulse at rest or in motion, that only the events may know about, beside an event of x.

    Where a kink has no event, a step may pass over it: then only what the run says of its errors is tested.
    """
    method, rtol = str(rng.choice(ADAPTIVE)), 10.0 ** rng.uniform(-10.0, -5.0)
    oscillator = Oscillator(k=10.0 ** rng.uniform(-1.0, 2.0), c=10.0 ** rng.uniform(-1.5, 0.5))
    half, height = 10.0 ** rng.uniform(-3.0, 0.17), 10.0 ** rng.uniform(-1.0, 1.0)
    drive = triangle(rng.uniform(half, 20.0), half, height)
    start = rng.normal(size=2) * rng.integers(0, 2)
    every_kink, as_input = rng.integers(0, 2, size=2)
    known = drive.times if every_kink else np.sort(rng.uniform(drive.times[0], drive.times[-1], 3)).tolist()
    values = {"k": oscillator.k, "c": oscillator.c, "level": rng.normal() * 0.1}
    values |= dict(zip(("t_a", "t_b", "t_c"), known, strict=True))
    if not as_input:
        values |= {"middle": drive.times[1], "half": half, "height": height}
    solution = (
        dm.driven()
        .with_parameters(values)
        .integrate(
            (0.0, 25.0),
            start[:1],
            start[1:],
            (lambda t: [drive(t)]) if as_input else None,
            method=method,
            rtol=rtol,
            atol=1e-2 * rtol,
        )
    )
    assert solution.statistics.largest_error <= 1.0
    if every_kink:
        check(solution, oscillator, drive, rtol)


@pytest.mark.parametrize("seed", range(SHARE))
def test_steps_that_end_at_events_keep_the_tolerance(seed: int) -> None:
    random_run(np.random.default_rng([5, seed]))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(SHARE, CAMPAIGN))
def test_steps_that_end_at_events_keep_the_tolerance_in_the_campaign(seed: int) -> None:
    random_run(np.random.default_rng([5, seed]))
