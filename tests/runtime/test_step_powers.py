"""The logarithms and powers of two with which steps are chosen: errors, continuity, and values at the ends."""

from __future__ import annotations

import ctypes
from pathlib import Path

import ccompile
import numpy as np
import pytest
from compiled import DOUBLES
from numpy.typing import NDArray

Array = NDArray[np.float64]
# The documented errors, which are those of the polynomials, and some roundings.
LOGARITHM, SCALE = 2.3e-6, 7.6e-8


class Powers:
    def __init__(self, folder: Path) -> None:
        self.library = ccompile.shared_library(ccompile.host_source("step_powers.c"), folder)

    def logarithms(self, x: Array) -> Array:
        return self._call(self.library.logarithms, x)

    def scales(self, size: float, x: Array) -> Array:
        return self._call(self.library.scales, x, ctypes.c_double(size))

    @staticmethod
    def _call(function: ctypes._CFuncPtr, x: Array, *arguments: ctypes.c_double) -> Array:
        out = np.empty_like(x)
        function(ctypes.c_int(x.size), *arguments, x.ctypes.data_as(DOUBLES), out.ctypes.data_as(DOUBLES))
        return out


@pytest.fixture(scope="module")
def powers(tmp_path_factory: pytest.TempPathFactory) -> Powers:
    return Powers(tmp_path_factory.mktemp("powers"))


def test_logarithms(powers: Powers) -> None:
    random = np.random.default_rng(5)
    x = np.concatenate([2.0 ** random.uniform(-1022, 1024, 20000), random.uniform(0.5, 4.0, 20000)])
    assert np.abs(powers.logarithms(x) - np.log2(x)).max() < LOGARITHM


def test_scales(powers: Powers) -> None:
    x = np.random.default_rng(6).uniform(-900.0, 900.0, 20000)
    assert np.abs(powers.scales(3e-5, x) / (3e-5 * np.exp2(x)) - 1.0).max() < SCALE


def test_they_grow_without_jumps(powers: Powers) -> None:
    near = 1.0 + np.arange(-2000, 2000) * np.spacing(1.0)
    for point in (0.25, 1.0, 2.0, 3.0, 1e-6):
        values = np.diff(powers.logarithms(point * near))
        assert values.min() >= 0.0
        assert values.max() < 1e-14
    for point in (-2.5, -1.0, -0.5, 0.5, 1.0, 1.5):
        values = np.diff(powers.scales(1.0, point * near))
        assert (values if point > 0 else -values).min() >= -1e-15  # rounding
        assert np.abs(values).max() < 1e-14


def test_the_logarithm_of_one_and_of_errors_that_vanish(powers: Powers) -> None:
    """An error is accepted if and only if its logarithm is not positive; one of zero allows the largest step."""
    one, below, above, zero = powers.logarithms(np.array([1.0, np.nextafter(1.0, 0.0), np.nextafter(1.0, 2.0), 0.0]))
    assert one == 0.0
    assert below < 0.0 < above
    assert -1024.0 < zero <= -1022.0
