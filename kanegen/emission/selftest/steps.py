"""The steps of emitted projects in any arithmetic: integration methods, and Newton iterations onto the constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from kanegen.codegen.methods.files import METHODS
from kanegen.emission.methods import SEMI_IMPLICIT
from kanegen.emission.selftest.expected import UndefinedError
from kanegen.emission.step import Level, Projected
from kanegen.graph import Context
from kanegen.program.kernels import KERNELS

Values: TypeAlias = Mapping[str, Sequence[Any]]
State: TypeAlias = list[Any]
Rates: TypeAlias = Callable[[Any, State], State]
"""The derivatives at a time and a state."""

Advance: TypeAlias = Callable[[Rates, Any, State, Any, Context], State]
"""The state after a step, from the rates, the time, the state and the step size."""


def advance(method: str, n_q: int) -> Advance:
    """The step of a method; ``n_q``: the number of coordinates."""
    return _semi_implicit(n_q) if method == SEMI_IMPLICIT else _runge_kutta(method)


def _semi_implicit(n_q: int) -> Advance:
    def step(rates: Rates, t: Any, y: State, h: Any, _: Context) -> State:
        moved = [x if i < n_q else x + h * rate for i, (x, rate) in enumerate(zip(y, rates(t, y), strict=True))]
        after = rates(t, moved)
        return [x + h * rate if i < n_q else x for i, (x, rate) in enumerate(zip(moved, after, strict=True))]

    return step


def _runge_kutta(method: str) -> Advance:
    tableau = METHODS[method].coefficients
    rows, nodes = [*tableau.a[: tableau.stages], tableau.b], [*tableau.c[: tableau.stages], None]

    def step(rates: Rates, t: Any, y: State, h: Any, context: Context) -> State:
        known: list[State] = []
        moved = y
        for row, node in zip(rows, nodes, strict=True):
            weights = [(context.number(weight), rate) for weight, rate in zip(row, known, strict=False) if weight]
            moved = [x + h * sum(w * rate[i] for w, rate in weights) for i, x in enumerate(y)]
            if node is not None:
                known.append(rates(t + context.number(node) * h, moved))
        return moved

    return step


@dataclass(frozen=True)
class Projection:
    """Newton iterations onto the constraints; ``function(name, t, y)`` evaluates a function of the model."""

    project: Projected
    iterations: int
    function: Callable[[str, Any, State], State]
    context: Context

    def __call__(self, n_q: int, t: Any, y: State) -> State:
        """The state moved towards the constraints, as by ``project`` of the C code."""
        for level in self.project.levels:
            for _ in range(self.iterations):
                w = self._least_change(level, t, y)
                if level.is_position and self.project.displacements is not None:
                    S = _rows(self.function(self.project.displacements.name, t, y), level.n)
                    change = [_dot(row, w) for row in S]
                    y = [x + dx for x, dx in zip(y[:n_q], change, strict=True)] + y[n_q:]
                else:
                    change = [*[0] * n_q, *w, *[0] * (len(y) - n_q - len(w))]
                    y = [x + dx for x, dx in zip(y, change, strict=True)]
        return y

    def _least_change(self, level: Level, t: Any, y: State) -> State:
        """w of least norm with ``A w = -residual``, in the metric of the kinetic energy for the first entries."""
        n, m, n_u = level.n, level.m, self.project.n_u
        rows = _rows(self.function(level.function.name, t, y), n + 1)
        metric = [[self.context.number(int(i == j)) for j in range(n)] for i in range(n)]
        for i, row in enumerate(_rows(self.function(self.project.mass.name, t, y), n_u)):
            metric[i][:n_u] = row
        response = _rows(self._solved(metric, [[rows[k][i] for k in range(m)] for i in range(n)]), m)
        gram = [[_dot(rows[k][:n], [line[j] for line in response]) for j in range(m)] for k in range(m)]
        multipliers = self._solved(gram, [[-rows[k][n]] for k in range(m)])
        return [_dot(line, multipliers) for line in response]

    def _solved(self, matrix: list[State], right: list[State]) -> State:
        """The solution (n, m), row-major, of a symmetric positive definite system."""
        solution = [x for line in right for x in line]
        flat = [x for line in matrix for x in line]
        twin = KERNELS["cholesky_solve_many"].twin
        if self.context.apply(twin, [len(matrix), len(right[0]), flat, solution]) < 0:
            raise UndefinedError("the projection is singular there")
        return solution


def _rows(values: Sequence[Any], width: int) -> list[State]:
    return [list(values[k : k + width]) for k in range(0, len(values), width)]


def _dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return sum(x * y for x, y in zip(a, b, strict=True))
