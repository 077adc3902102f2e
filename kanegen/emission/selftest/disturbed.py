"""Evaluation with disturbed numbers: how inexact inputs and rounding change the results of a function.

A number is an array of columns, each of which is an evaluation in double precision. The first column is undisturbed; in
each of the next ones one input is changed; in the last ones every constant and every result of an operation is
changed at random, as by rounding. The differences to the first column are linear in the changes, which are larger than
the errors of double precision and small enough that the functions are nearly linear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.graph import Context, Node, numpy_context

STEP: Final = 2.0**-27
"""Relative change of a number."""

SAMPLES: Final = 16
"""Evaluations with random rounding."""

PATTERNS: Final = 1021
"""Random signs of the roundings; operations whose numbers differ by a multiple of this (a prime) share their signs."""

EXACT: Final = frozenset({"input", "neg", "abs", "min", "max", "select", "floor", "ceil"})
"""Operations without rounding; neither have comparisons."""

ARITHMETIC: Final = frozenset({"const", "add", "sub", "mul", "div", "reciprocal", "sqrt"})
"""Operations whose results are rounded correctly. Those of other functions may be wrong by twice as much."""


KERNEL_ROUNDINGS: Final = 4


class UndecidedError(Exception):
    """A branch, a rank or a status depends on the disturbance."""


class Disturbed:
    """Disturbed numbers for functions of the inputs ``values``, arrays of numbers by name."""

    def __init__(self, values: Mapping[str, Sequence[float]], seed: int) -> None:
        self._moving = [(name, k) for name, array in values.items() for k, x in enumerate(array) if x != 0.0]
        self._n = 1 + len(self._moving) + SAMPLES
        self._roundings = self._random(seed)
        self.values = {name: [np.full(self._n, x) for x in array] for name, array in values.items()}
        for column, (name, k) in enumerate(self._moving, start=1):
            self.values[name][k][column] *= 1.0 + STEP
        self.context: Context = replace(
            numpy_context(), select=self._select, result=self._rounded, apply=self._apply, holds=self._holds
        )

    def _random(self, seed: int) -> Array:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (PATTERNS, SAMPLES))
        factors = np.ones((PATTERNS, self._n))
        factors[:, -SAMPLES:] += STEP * signs
        return factors

    def errors(self, results: Sequence[Any], ulp: Callable[[float], float], unit: float) -> tuple[Array, Array]:
        """The effects of inexact inputs and of rounding on each of the ``results``, (n,) each.

        Parameters
        ----------
        ulp
            The unit in the last place of a number: the largest error of an input.
        unit
            The largest relative error of an operation.

        Returns
        -------
        inputs, rounding
            The sum of the effects of the inputs, and the root mean square of the effect of rounding.
        """
        columns = np.array([np.broadcast_to(x, self._n) for x in results], dtype=float).reshape(-1, self._n)
        changes = np.abs(columns[:, 1:] - columns[:, :1]) / STEP
        n = len(self._moving)
        sizes = [float(self.values[name][k][0]) for name, k in self._moving]
        relative = np.array([ulp(x) / abs(x) for x in sizes])
        # Scaled, because squares of large numbers overflow.
        largest = changes[:, n:].max(axis=1, initial=0.0)[:, None] + np.finfo(float).tiny
        rounding = largest[:, 0] * np.sqrt(((changes[:, n:] / largest) ** 2).mean(axis=1))
        return changes[:, :n] @ relative, unit * rounding

    def _rounded(self, node: Node, value: Any) -> Any:
        if node.op in EXACT or np.asarray(value).dtype == bool:
            return value
        if node.op == "const" and float(value).is_integer():
            return value
        factors = self._roundings[node.index % PATTERNS]
        return value * factors if node.op in ARITHMETIC else value * factors * factors

    def _holds(self, condition: Any) -> bool:
        held = np.asarray((condition > 0) | (condition < 0))
        if held.all() != held.any():
            raise UndecidedError
        return bool(held.all())

    def _select(self, condition: Any, true: Any, false: Any) -> Any:
        return true if self._holds(np.asarray(condition) * 1.0) else false

    def _apply(self, function: Callable[..., int], arguments: Sequence[Any]) -> int:
        """Calls a kernel for each column; its error is that of `KERNEL_ROUNDINGS` roundings of all its arguments."""
        arrays = [k for k, argument in enumerate(arguments) if not isinstance(argument, int)]
        columns: dict[int, Array] = {}
        for k in arrays:
            table = np.array([np.broadcast_to(x, self._n) for x in arguments[k]]).reshape(-1, self._n)
            columns[k] = (
                table * np.resize(self._roundings[k::7], table.shape) ** KERNEL_ROUNDINGS if len(table) else table
            )
        statuses = set()
        for j in range(self._n):
            own = [list(columns[k][:, j]) if k in columns else argument for k, argument in enumerate(arguments)]
            statuses.add(int(function(*own)))
            for k in arrays:
                columns[k][:, j] = own[k]
        if len(statuses) > 1:
            raise UndecidedError
        for k in arrays:
            arguments[k][:] = list(columns[k])
        return statuses.pop()
