"""kg_spline.h: which piece of a piecewise polynomial gives the value."""

from __future__ import annotations

import ctypes
from pathlib import Path

from ccompile import shared_library

HOST = """
#include "kg_spline.h"
double value(double x) {
  static const double breakpoints[4] = {0.0, 1.0, 2.0, 4.0}, coefficients[6] = {0.0, 1.0, 5.0, 0.0, 7.0, 2.0};
  return kg_spline(4, 1, breakpoints, coefficients, x);
}
"""


def test_a_breakpoint_belongs_to_the_piece_after_it(tmp_path: Path) -> None:
    """The first and the last piece continue beyond the ends."""
    value = shared_library("double value(double x);" + HOST, tmp_path).value
    value.argtypes, value.restype = [ctypes.c_double], ctypes.c_double
    found = [value(x) for x in (-1.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)]
    assert found == [-1.0, 0.5, 5.0, 5.0, 7.0, 9.0, 11.0, 13.0]
