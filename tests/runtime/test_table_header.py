"""kg_table.h: which interval contains an argument, and the derivatives of polynomials."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from ccompile import shared_library

from kanegen.codegen.tables import guide
from kanegen.precision import DOUBLE, FLOAT

HOST = """
#include "kg_table.h"
double value(double x) {
  static const double starts[5] = {0.0, 1.0, 2.0, 1e300, 1e300}, coefficients[6] = {0.0, 1.0, 5.0, 0.0, 7.0, 2.0};
  static const int cells[1] = {0};
  const int i = kg_interval(starts, 2, cells, 0.0, 2, x);
  return kg_polynomial(1, coefficients + 2 * i, x - starts[i]);
}
int interval(const double *starts, int last, const int *cells, double scale, int count, double x) {
  return kg_interval(starts, last, cells, scale, count, x);
}
double cell(int a, int b, const double *c, double d, double e) { return kg_bicubic(a, b, c, d, e); }
"""

DECLARATIONS = """double value(double x);
int interval(const double *starts, int last, const int *cells, double scale, int count, double x);
double cell(int a, int b, const double *c, double d, double e);
"""

REALS = ctypes.POINTER(ctypes.c_double)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return shared_library(DECLARATIONS + HOST, Path(tmp_path_factory.mktemp("table")))


def test_a_breakpoint_belongs_to_the_piece_after_it(library: ctypes.CDLL) -> None:
    """The first and the last piece continue beyond the ends."""
    value = library.value
    value.argtypes, value.restype = [ctypes.c_double], ctypes.c_double
    found = [value(x) for x in (-1.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)]
    assert found == [-1.0, 0.5, 5.0, 5.0, 7.0, 9.0, 11.0, 13.0]


@pytest.mark.parametrize("name", ["even", "uneven", "clusters", "decades", "tiny", "two"])
def test_intervals_are_those_of_bisection(library: ctypes.CDLL, name: str) -> None:
    """At random arguments, at all starts and beside them, at infinity, and 0 for NaN."""
    generator = np.random.default_rng(5)
    starts = {
        "even": np.linspace(-1.0, 2.0, 100),
        "uneven": np.cumsum(generator.exponential(size=100) ** 2 + 1e-6),
        "clusters": np.sort(np.concatenate([1.0 + 1e-9 * np.arange(30), 5.0 + 1e-12 * np.arange(30), [9.0]])),
        "decades": np.logspace(-12, 3, 60),
        "tiny": 5e-324 * np.arange(1, 12),
        "two": np.array([0.5]),
    }[name]
    made = guide(starts.tolist(), DOUBLE)
    padded = np.concatenate([starts, [DOUBLE.largest] * made.count])
    cells = np.array(made.cells, dtype=np.int32)
    between = starts[0] + (starts[-1] - starts[0]) * generator.uniform(-0.2, 1.2, 500)
    beside = [np.nextafter(starts, side) for side in (-np.inf, np.inf)]
    arguments = np.concatenate([between, starts, *beside, [np.inf, -np.inf, DOUBLE.largest]])
    real, whole = ctypes.c_double, ctypes.c_int
    library.interval.argtypes = [REALS, whole, ctypes.POINTER(whole), real, whole, real]
    call = (padded.ctypes.data_as(REALS), len(starts) - 1, cells.ctypes.data_as(ctypes.POINTER(whole)))
    found = [library.interval(*call, made.scale, made.count, x) for x in arguments]
    assert found == np.clip(np.searchsorted(starts, arguments, side="right") - 1, 0, len(starts) - 1).tolist()
    assert library.interval(*call, made.scale, made.count, np.nan) == 0


def test_few_comparisons_remain() -> None:
    """Of 100 uneven points, at most three starts are in a cell, in both precisions; of even ones at most one."""
    generator = np.random.default_rng(5)
    uneven = np.cumsum(generator.exponential(size=100) + 0.05).tolist()
    assert {guide(uneven, precision).count for precision in (DOUBLE, FLOAT)} <= {1, 2, 3}
    assert guide(np.linspace(0.0, 1.0, 100).tolist(), DOUBLE).count == 1


def test_derivatives_of_cells(library: ctypes.CDLL) -> None:
    """Against NumPy's polynomials of two arguments."""
    c = np.random.default_rng(7).normal(size=(4, 4))  # along y, along x
    library.cell.argtypes, library.cell.restype = [ctypes.c_int] * 2 + [REALS] + [ctypes.c_double] * 2, ctypes.c_double
    polynomial = np.polynomial.polynomial
    for a in range(4):
        for b in range(4):
            expected = polynomial.polyval2d(
                0.3, -0.7, polynomial.polyder(polynomial.polyder(c.T, a, axis=0), b, axis=1)
            )
            assert library.cell(a, b, c.ctypes.data_as(REALS), 0.3, -0.7) == pytest.approx(expected, rel=1e-13)
