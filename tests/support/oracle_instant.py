"""A state of a model and what follows from it: q', the rates of the inputs, neighbors along the motion."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
from oracle_numerics import Array, array, solve, units

if TYPE_CHECKING:
    from oracle import Oracle

INNER_STEP = mpmath.mpf(10) ** -20
OUTER_STEP = mpmath.mpf(10) ** -15


class Instant:
    """A state and what follows from it: q', the rates of the inputs, and the neighbors along the motion."""

    def __init__(self, oracle: Oracle, t: Any, q: Array, u: Array, p: Array, r: Array) -> None:
        self.oracle, self.t, self.q, self.u, self.p, self.r = oracle, t, q, u, p, r
        self.rotations: dict[Any, Array] = {}
        self._neighbors: dict[Any, Instant] = {}

    def moved(self, s: Any, udot: Array) -> Instant:
        return self._neighbor((s, *udot), lambda: self._moved(s, udot))

    def _moved(self, s: Any, udot: Array) -> Instant:
        r = self.r + s * self.input_rates if len(self.r) else self.r
        return Instant(self.oracle, self.t + s, self.q + s * self.qdot, self.u + s * udot, self.p, r)

    def with_speeds(self, u: Array) -> Instant:
        return self._neighbor(tuple(u), lambda: Instant(self.oracle, self.t, self.q, u, self.p, self.r))

    def _neighbor(self, key: Any, make: Callable[[], Instant]) -> Instant:
        """Every neighbor once, so that all bodies share what is known about it."""
        if key not in self._neighbors:
            self._neighbors[key] = make()
        return self._neighbors[key]

    @cached_property
    def qdot(self) -> Array:
        """The kinematical equations solved numerically: they are affine in q'."""
        n = len(self.q)
        equations = self.oracle.model.kinematics

        def residual(qdot: Array) -> Array:
            probe = Instant(self.oracle, self.t, self.q, self.u, self.p, self.r)
            probe.__dict__["qdot"] = qdot
            return self.oracle.values(tuple(equations), probe)

        offset = residual(array([0] * n))
        columns = [residual(unit) - offset for unit in units(n)]
        return solve(np.array(columns, dtype=object).T, -offset)

    @cached_property
    def input_rates(self) -> Array:
        return self._input_values("rate")

    @cached_property
    def input_accelerations(self) -> Array:
        return self._input_values("acceleration")

    def _input_values(self, which: str) -> Array:
        return array(self.oracle.rate_values(which)(*self.r, *self.p, self.t))

    def arguments(self, udot: Array | None, needs_second: bool = False) -> list[Any]:
        model = self.oracle.model
        udot = array([0] * len(self.u)) if udot is None else udot
        second = array([0] * len(self.q))
        if needs_second:
            second = derivative(lambda s: s.qdot, self, udot, OUTER_STEP)
        dynamic = [k for k, item in enumerate(model.inputs) if item.symbol.is_Function]
        rates = [self.input_rates[k] for k in dynamic]
        accelerations = [self.input_accelerations[k] for k in dynamic]
        return [*second, *accelerations, *self.qdot, *udot, *rates, *self._state]

    @cached_property
    def _state(self) -> list[Any]:
        return [*self.q, *self.u, *self.r, *self.p, self.t]


def derivative(function: Callable[[Instant], Any], state: Instant, udot: Array | None, step: Any) -> Any:
    """d/dt along the motion with the given u' (None: zero)."""
    udot = array([0] * len(state.u)) if udot is None else udot
    forward, backward = function(state.moved(step, udot)), function(state.moved(-step, udot))
    return (forward - backward) / (2 * step)
