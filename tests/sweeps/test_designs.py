"""Designs: grids and samples, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from messages import raises
from scipy import stats

import kanegen as kg
from kanegen.sweeps.designs import SAMPLERS


def test_grid_has_all_combinations_with_the_last_axis_fastest() -> None:
    design = kg.grid({sm.Symbol("a"): [1.0, 2.0]}, b=(3, 4, 5))
    assert design.members == 6
    assert list(design) == ["a", "b"]
    np.testing.assert_array_equal(design["a"], [1, 1, 1, 2, 2, 2])
    np.testing.assert_array_equal(design[sm.Symbol("b")], [3, 4, 5, 3, 4, 5])
    np.testing.assert_array_equal(design.axes["b"], [3, 4, 5])


def test_values_of_a_design_cannot_be_changed() -> None:
    values = np.array([1.0, 2.0])
    design = kg.grid(a=values)
    values[0] = 7.0
    assert design["a"][0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        design["a"][0] = 3.0


@pytest.mark.parametrize("method", SAMPLERS)
def test_samples_fill_their_ranges(method: str) -> None:
    """Moments of the uniform and of the normal distribution; 512 independent points miss them by less than 0.2."""
    design = kg.sample({"a": (2.0, 4.0), "b": stats.norm(10.0, 1.0)}, n=512, method=method)
    assert design.members == 512
    assert design.axes is None
    assert design["a"].min() >= 2.0
    assert design["a"].max() <= 4.0
    assert abs(design["a"].mean() - 3.0) < 0.1
    assert abs(design["b"].mean() - 10.0) < 0.2
    assert abs(design["b"].std() - 1.0) < 0.2


def test_latin_hypercube_has_one_point_in_each_stratum() -> None:
    design = kg.sample(a=(0.0, 1.0), b=(0.0, 1.0), n=50)
    for values in design.values():
        np.testing.assert_array_equal(np.sort(np.floor(50 * values)), np.arange(50))


def test_the_same_seed_gives_the_same_design() -> None:
    first, again, other = (kg.sample(a=(0, 1), n=20, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first["a"], again["a"])
    assert not np.array_equal(first["a"], other["a"])


def test_bad_designs_are_refused() -> None:
    with raises(kg.SolveError, "design", "{}"):
        kg.grid()
    with raises(kg.SolveError, "a", "(0,)"):
        kg.grid(a=[])
    with raises(kg.SolveError, "a", "text"):
        kg.grid(a="text")
    with raises(kg.SolveError, "a", "twice"):
        kg.grid({"a": [1.0]}, a=[1.0])
    with raises(kg.SolveError, "a", "4.0", "2.0"):
        kg.sample(a=(4.0, 2.0), n=3)
    with raises(kg.SolveError, "a", "scipy.stats"):
        kg.sample(a=3.0, n=3)
    with raises(kg.SolveError, "n", "0"):
        kg.sample(a=(0, 1), n=0)
    with raises(kg.SolveError, "sobol", "magic"):
        kg.sample(a=(0, 1), n=3, method="magic")
    with raises(kg.SolveError, "seed", "x"):
        kg.sample(a=(0, 1), n=3, seed="x")
