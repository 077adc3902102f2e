"""The search for zeros of a guard in one step (kg_zeros.h), in C."""

from __future__ import annotations

import ctypes

import pytest
from ccompile import host_source, shared_library

CONDITION, FALLING, RISING, ANY = 2, -1, 1, 0
CROSSING = 1


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return shared_library(host_source("zeros.c"), tmp_path_factory.mktemp("zeros"))


def search(library: ctypes.CDLL, offset: float, slope: float, rule: int, noise: float) -> tuple[int, int]:
    """The kind of the zero of ``offset - slope * place`` (with an error of 1e-14), and how often it was read."""
    values = ctypes.c_long()
    numbers = (ctypes.c_double(x) for x in (offset, slope))
    kind = library.search(*numbers, rule, 1, ctypes.c_double(noise), ctypes.byref(values))
    return kind, values.value


@pytest.mark.parametrize("rule", [CONDITION, FALLING, RISING, ANY])
def test_guard_that_is_rounding_is_read_a_few_times(library, rule):
    """A guard at rest below what counts as zero was read two million times in a step."""
    assert search(library, 2e-14, 0.0, rule, 1e-12)[1] < 20


@pytest.mark.parametrize("rule", [CONDITION, FALLING, ANY])
@pytest.mark.parametrize("size", [1e-11, 1e-6, 1.0])
def test_crossing_of_any_size_is_found(library, rule, size):
    kind, values = search(library, 0.3 * size, size, rule, 1e-12)
    assert kind == CROSSING
    assert values < 200
