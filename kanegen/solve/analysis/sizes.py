"""The sizes of equations and unknowns, in whatever units they are.

Nothing is small or large by itself: a residual is compared with the terms of its equation, a correction with its
unknown. The sum of the absolute terms of a compiled function is measured. Its arguments and parameters get relative
errors of some roundings, and what it changes by is that many roundings of its terms, those inside the function
included (stochastic arithmetic, Vignes 1993). Entries of a Jacobian that these errors change altogether are roundings
of zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.errors import SolveError
from kanegen.solve.functions import DISTURBANCE, SAMPLES, CompiledFunctions, disturbed

NORMWISE: Final = 64.0 * float(np.finfo(float).eps)
"""Rounding errors of the solution of linear equations, relative to the largest unknown."""

_TINY: Final = 1e-140
"""Sizes below this are zero: their squares have no inverse."""
_LEAST: Final = 1e-3
"""Sizes of unknowns below this fraction of the largest, in units in which the equations are comparable, are zero."""
_ROUNDED: Final = 1e-3
"""Relative change of an entry by disturbances that shows that it consists of rounding errors."""
_SMALL: Final = 1e-9
"""Such an entry is rounding if it is smaller than this beside the others of its row and its column."""
_EQUILIBRATIONS: Final = 12
"""Scalings of rows and columns in turn; the largest entries then differ from 1 by less than a factor of 2."""


def terms(value: Array, others: Iterator[Array]) -> Array:
    """The sums of absolute terms of an array, from its value and disturbed ones; zero where these do not differ.

    The largest change counts, because roundings of one or two terms are often zero.
    """
    changes = [np.abs(other - value) for other in others]
    return np.max(changes, axis=0) / DISTURBANCE if changes else np.zeros_like(value)


def evaluations(evaluate: Callable[[int], Array]) -> Iterator[Array]:
    """The disturbed values ``evaluate(k)`` of all samples; those outside the domain of an expression are left out."""
    for k in range(SAMPLES):
        try:
            value = evaluate(k)
        except SolveError:
            continue
        if np.isfinite(value).all():
            yield value


def disturbed_arguments(arguments: Sequence[Any], sample: int) -> list[Any]:
    """The arguments of a compiled function with relative errors, different ones in each sample; None remains None."""
    return [None if x is None else disturbed(x, sample + SAMPLES * i) for i, x in enumerate(arguments, 2)]


def terms_of(
    functions: CompiledFunctions, name: str, value: Array, t: Any, arguments: Sequence[Any], method: str = "value"
) -> Array:
    """The sums of the absolute terms of a compiled function at one or more states, from its ``value`` there.

    ``arguments`` are those after t of a `Point`, as far as they are given; None stands for the defaults.
    """

    def at(k: int) -> Array:
        function = getattr(functions.disturbed[k].get(name), method)
        result = Point(t, *disturbed_arguments(arguments, k)).evaluate(function)
        return np.concatenate(result) if isinstance(result, tuple) else np.asarray(result)

    return terms(value, evaluations(at))


def without_roundings(matrix: Array, disturbed_matrix: Callable[[int], Array], samples: int) -> Array:
    """The matrix with zeros in place of entries that are rounding errors, from ``disturbed_matrix(k)``, k < samples.

    These change with every disturbance, and are small beside the other entries of their row and their column. Entries
    that change because the state is at a kink are not.
    """
    certain = np.full(matrix.shape, True)
    for k in range(samples):
        try:
            certain &= np.abs(disturbed_matrix(k) - matrix) <= _ROUNDED * np.abs(matrix)
        except SolveError:  # outside the domain of an expression
            return matrix
    if certain.all():
        return matrix
    known = np.where(certain, matrix, 0.0)
    rows, columns = equilibrated(known)
    rows, columns = np.where(known.any(axis=1), rows, 0.0), np.where(known.any(axis=0), columns, 0.0)
    return np.where(certain | (rows[:, None] * np.abs(matrix) * columns > _SMALL), matrix, 0.0)


def equilibrated(matrix: Array) -> tuple[Array, Array]:
    """Factors (m,) and (n,) of rows and columns with which the largest entries of all of them are about 1.

    They are those of Ruiz ("A scaling algorithm to equilibrate both rows and columns norms in matrices", 2001), and
    1 for rows and columns of zeros.
    """
    sizes = np.abs(matrix)
    rows, columns = np.ones(sizes.shape[0]), np.ones(sizes.shape[1])
    if sizes.size:
        for _ in range(_EQUILIBRATIONS):
            scaled = rows[:, None] * sizes * columns
            largest = scaled.max(axis=1), scaled.max(axis=0)
            rows, columns = (
                x / np.sqrt(np.where(y > 0.0, y, 1.0)) for x, y in zip((rows, columns), largest, strict=True)
            )
    return rows, columns


def natural_sizes(slopes: Array, row_terms: Array) -> Array:
    """The changes (n,) of unknowns that change an equation by as much as its terms; 0 where there is no such equation.

    ``slopes`` (m, n) are the derivatives of the equations, ``row_terms`` (m,) the sums of their absolute terms.
    """
    known = (slopes != 0.0) & (row_terms > 0.0)[:, None]
    with np.errstate(over="ignore"):
        ratios = np.divide(row_terms[:, None], np.abs(slopes), out=np.full(slopes.shape, np.inf), where=known)
    sizes = ratios.min(axis=0, initial=np.inf)
    return np.where(np.isfinite(sizes), sizes, 0.0)


def weights(slopes: Array, row_terms: Array, sizes: Array) -> tuple[Array, Array, Array]:
    """Weights of equations (m,), units of unknowns (n,), and rounding errors of solutions of linear equations (n,).

    The weight of an equation is the inverse of its terms and of its changes when each unknown changes by its own size:
    that of its derivatives alone would grow where they vanish at the root, as with a square, and Newton's method for
    more equations than unknowns would converge linearly.
    """
    J = np.abs(slopes)
    # Parts of the equations that are not coupled are compared by the sizes of their unknowns.
    known = np.where(sizes > _TINY, sizes, 1.0)
    rows, columns = equilibrated(slopes * known)
    columns = columns * known
    largest = float((sizes / columns).max(initial=0.0))
    total = row_terms + J @ np.maximum(sizes, _LEAST * largest * columns)
    rows = np.divide(1.0, total, out=rows, where=total > _TINY)
    influence = (rows[:, None] * J).max(axis=0, initial=0.0)
    return rows, np.divide(1.0, influence, out=columns.copy(), where=influence > _TINY), NORMWISE * largest * columns
