"""Ranks of matrices whose rows and columns have different units."""

from __future__ import annotations

import numpy as np
import pytest

from kanegen.graph.ranks import comparable_rows, independent_rows, is_regular, null_space, pivoted_columns, rank

# Angular velocity in the body for the angles Z-X-Z at (0.4, 0.7, 1.1): regular, and singular where the second is zero.
ANGLES = np.array([[0.574, 0.454, 0.0], [0.292, -0.891, 0.0], [0.765, 0.0, 1.0]])
SINGULAR = np.array([[0.0, 0.454, 0.0], [0.0, -0.891, 0.0], [1.0, 0.0, 1.0]])


@pytest.mark.parametrize("rows", [(1e-6, 1e-6, 1e6), (1e-12, 1e-12, 1e6), (1e6, 1e-12, 1.0), (1e12, 1.0, 1e-12)])
@pytest.mark.parametrize("columns", [(1.0, 1.0, 1.0), (1e-9, 1e6, 1.0)])
def test_factors_of_rows_and_columns_do_not_decide(rows: tuple[float, ...], columns: tuple[float, ...]) -> None:
    factors = np.outer(rows, columns)
    assert is_regular(ANGLES * factors)
    assert not is_regular(SINGULAR * factors)


@pytest.mark.parametrize("factor", [1e-12, 1e-9, 1.0, 1e9, 1e12])
def test_a_small_row_counts_and_rounding_does_not(factor: float) -> None:
    rows = np.array([[0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0 * factor]])
    assert pivoted_columns(comparable_rows(rows))[0] == 2
    rounding = np.array([[0.0, 2.0, 0.0, 0.0], [0.0, 6e-17, 0.0, 1.2e-16]])
    assert pivoted_columns(comparable_rows(rounding))[0] == 1


@pytest.mark.parametrize(("remainder", "counts"), [(1e-8, True), (1e-10, False)])
def test_what_is_left_of_a_row_counts_above_the_tolerance(remainder: float, counts: bool) -> None:
    """Rounding errors give 1e-13 at most, and rows that are independent by design far more than 1e-6."""
    rows = np.array([[1.0, 0.0], [1.0, remainder]])
    assert rank(rows) == 1 + counts
    assert independent_rows(rows) == (0, 1)[: 1 + counts]
    assert null_space(rows).shape == (2, 1 - counts)
    assert pivoted_columns(rows)[0] == 1 + counts
    assert is_regular(np.array([[1.0, 1.0], [1.0, 1.0 + remainder]])) == counts
