"""Random functions of time: whatever changes between two samples of their parts has an instant between them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy as sm
from switching_times import RandomFunctions, SwitchingTimes, particle, states_of, x

SPAN = (-3.03, 12.07)
SAMPLES = 3001


def require_all_instants(seed: int, folder: Path) -> int:
    """Compare the instants of a model forward and backward with samples; return how many there are."""
    made = RandomFunctions(seed)
    functions = [made.function() for _ in range(6)]
    functions = [f for f in functions if not f.has(sm.ITE)]  # may contain conditions that decide nothing, as t < t
    force = sum(k * f for k, f in enumerate(functions, 1)) - x
    search = SwitchingTimes(particle(force, made.values), folder)
    forward, backward = search(*SPAN), search(*SPAN[::-1])[::-1]
    apart = 1e-9
    times = np.linspace(SPAN[0] + 2 * apart, SPAN[1] - 2 * apart, SAMPLES)  # no search finds its start
    for function in functions:
        for part, states in states_of(function, made.values, times).items():
            known = ~np.isnan(states[1:] + states[:-1])
            for k in np.flatnonzero(known & (states[1:] != states[:-1])):
                for found in (forward, backward):
                    inside = (found >= times[k] - apart) & (found <= times[k + 1] + apart)
                    assert inside.any(), f"seed {seed}: {part} changes between {times[k]} and {times[k + 1]}"
    return forward.size


@pytest.mark.parametrize("seed", range(6))
def test_nothing_changes_between_instants(seed: int, tmp_path: Path) -> None:
    require_all_instants(seed, tmp_path)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_nothing_changes_between_instants_of_many(seed: int, tmp_path: Path) -> None:
    require_all_instants(seed, tmp_path)
