"""The equations that SymPy's own KanesMethod forms, as numbers: what every model read from SymPy is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import KanesMethod, dynamicsymbols, find_dynamicsymbols, msubs

import kanegen as kg

TIME = dynamicsymbols._t
CONDITION = 1e6
"""Largest condition number of SymPy's M, rows scaled, at the states where it is compared."""
DRAWS = 40
"""States drawn before a model is said to have none that satisfies its constraints."""


@dataclass(frozen=True)
class State:
    """Numbers for every symbol of a model: t, q, u, parameters, inputs and their derivatives."""

    values: Mapping[Any, float]

    def of(self, symbols: Iterable[Any]) -> np.ndarray:
        return np.array([self.values[symbol] for symbol in symbols], dtype=float)


class KaneReference:
    """SymPy's equations ``M u' = f`` and ``q' = ...`` of a KanesMethod whose equations are formed.

    Everything comes from what the KanesMethod has derived: ``mass_matrix``, ``forcing``, ``kindiffdict`` and its
    velocity constraints. Auxiliary speeds are zero, as Kane's equations have them.
    """

    def __init__(self, km: KanesMethod, parameters: Mapping[Any, float] | None = None) -> None:
        self.q, self.u = list(km.q), list(km.u)
        self.given = {symbol: value for symbol, value in (parameters or {}).items() if value is not None}
        resting = dict.fromkeys([*km._uaux, *km._uaux.diff(TIME)], 0)
        kinematics = km.kindiffdict()
        rates = sm.Matrix([kinematics[q.diff(TIME)] for q in self.q])
        constraints = km._k_nh * km.u + km._f_nh if km._udep else sm.Matrix()
        expressions = (rates, km.mass_matrix, km.forcing, constraints, sm.Matrix(km._f_h))
        self.dependent = list(km._udep)
        expressions = [msubs(sm.Matrix(item), resting) if resting else item for item in expressions]
        self.symbols = sorted({*_symbols(expressions), *self.q, *self.u, TIME}, key=sm.default_sort_key)
        self._rates, self._M, self._f, self._psi, self._phi = (self._function(item) for item in expressions)
        # Where a solution is only implicit (q' in a load), q' is a symbol of its own and gets its value.
        self.rate_symbols = [q.diff(TIME) for q in self.q]

    def _function(self, matrix: Any) -> Any:
        plain = {symbol: sm.Dummy(f"x{k}") for k, symbol in enumerate(self.symbols)}
        function = sm.lambdify([list(plain.values())], _replaced(matrix, plain), modules=["scipy", "numpy"], cse=True)
        shape = sm.Matrix(matrix).shape
        return lambda values: np.array(function([values[s] for s in self.symbols]), dtype=float).reshape(shape)

    def qdot(self, state: State) -> np.ndarray:
        return self._rates(state.values)[:, 0]

    def udot(self, state: State) -> np.ndarray:
        return np.linalg.solve(self._M(state.values), self._f(state.values)[:, 0])

    def deviation(self, state: State, udot: np.ndarray) -> float:
        """The largest residual of ``M u' - f``, each row relative to its terms at accelerations of at least one."""
        M, f = self._M(state.values), self._f(state.values)[:, 0]
        scale = np.abs(M) @ np.maximum(np.abs(udot), 1.0) + np.abs(f)
        return float(np.max(np.abs(M @ udot - f) / np.where(scale > 0.0, scale, 1.0)))

    def kinematic_deviation(self, state: State, qdot: np.ndarray) -> float:
        """The largest difference of q' relative to the largest speed."""
        expected = self.qdot(state)
        scale = max(1.0, np.abs(expected).max(initial=0.0), np.abs(state.of(self.u)).max(initial=0.0))
        return float(np.max(np.abs(qdot - expected), initial=0.0)) / scale

    def states(self, count: int, seed: int = 0) -> Iterator[State]:
        """Random states on the configuration and velocity constraints, where SymPy's equations are regular."""
        rng = np.random.default_rng(seed)
        regular = 0
        for _ in range(DRAWS * count):
            values = self._consistent(self._drawn(rng))
            if values is not None and self._regular(values):
                regular += 1
                yield State(values)
            if regular == count:
                return
        raise AssertionError(f"only {regular} of {count} random states are regular and satisfy the constraints")

    def _drawn(self, rng: np.random.Generator) -> dict[Any, float]:
        """Coordinates, speeds, inputs and their derivatives, of either sign and away from zero and right angles.

        Parameters are positive; those of each state are others, since some may give bodies impossible inertias.
        """
        moving = [s for s in self.symbols if not isinstance(s, sm.Symbol)]
        values = {s: float(rng.uniform(0.5, 1.5)) for s in self.symbols if isinstance(s, sm.Symbol)}
        values |= {s: float(rng.uniform(0.2, 1.1) * rng.choice([-1.0, 1.0])) for s in moving}
        return values | self.given | {TIME: float(rng.uniform(0.5, 2.0))}

    def _consistent(self, values: dict[Any, float]) -> dict[Any, float] | None:
        values = _newton(self._phi, values, self.q)
        if values is None:
            return None
        values = _newton(self._psi, values, self.dependent)
        if values is None:
            return None
        rates = dict(zip(self.rate_symbols, self._rates(values)[:, 0], strict=True))
        return {**values, **{symbol: rate for symbol, rate in rates.items() if symbol in values}}

    def _regular(self, values: Mapping[Any, float]) -> bool:
        """Whether the values are finite, M is well conditioned, and the kinetic energy positive."""
        M, f = self._M(values), self._f(values)
        if not (np.all(np.isfinite(M)) and np.all(np.isfinite(f))):
            return False
        rows = np.abs(M).max(axis=1, keepdims=True)
        if not np.all(rows > 0.0) or np.linalg.cond(M / rows) > CONDITION:
            return False
        p = len(self.u) - len(self.dependent)
        free = np.vstack([np.eye(p), -np.linalg.solve(M[p:, p:], M[p:, :p])])
        return bool(np.linalg.eigvalsh(M[:p] @ free).min() > 0.0)


def _symbols(expressions: Iterable[Any]) -> set[Any]:
    symbols: set[Any] = set()
    for item in expressions:
        if len(item):
            symbols |= sm.Matrix(item).free_symbols | find_dynamicsymbols(sm.Matrix(item))
    return symbols


def _replaced(matrix: Any, symbols: Mapping[Any, Any]) -> Any:
    """The matrix in plain symbols; derivatives first, since they contain the functions."""
    return msubs(sm.Matrix(matrix), symbols) if len(matrix) else sm.Matrix(matrix)


def _newton(residual: Any, values: dict[Any, float], unknowns: list[Any]) -> dict[Any, float] | None:
    """``values`` with the residual zero, by Newton steps of least norm with differences; None where they fail."""
    for _ in range(40):
        r = residual(values).ravel()
        if not len(r):
            return values
        if not np.all(np.isfinite(r)):
            return None
        if np.abs(r).max() < 1e-13:
            return values
        slopes = np.array([(residual(_moved(values, s, 1e-6)) - residual(_moved(values, s, -1e-6))).ravel() / 2e-6
                           for s in unknowns]).T  # fmt: skip
        step = np.linalg.lstsq(slopes, r, rcond=None)[0]
        values = {**values, **{s: values[s] - float(d) for s, d in zip(unknowns, step, strict=True)}}
    return values if np.abs(residual(values)).max() < 1e-11 else None


def _moved(values: dict[Any, float], symbol: Any, step: float) -> dict[Any, float]:
    return {**values, symbol: values[symbol] + step}


def input_values(model: kg.Model, state: State) -> np.ndarray:
    """The inputs of a model at a state: an input that stands for the rate of another is that derivative.

    Inputs that SymPy's equations do not contain are random, since they must not matter.
    """
    values = dict(state.values)
    for item in model.inputs:
        for order, symbol in enumerate((item.rate, item.acceleration), start=1):
            derivative = item.symbol.diff(TIME, order)
            if isinstance(symbol, AppliedUndef) and derivative in values:
                values[symbol] = values[derivative]
    rng = np.random.default_rng(len(values))
    return np.array([values.get(item.symbol, rng.uniform(0.2, 1.1)) for item in model.inputs], dtype=float)
