"""The equations that SymPy's own LagrangesMethod forms, as numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy as sm
from kane_reference import CONDITION, TIME, KaneReference, _symbols
from sympy.physics.mechanics import LagrangesMethod


class LagrangeReference(KaneReference):
    """SymPy's equations ``M (q'', lambda) = f`` of a LagrangesMethod whose equations are formed.

    The speeds are the derivatives of the coordinates; the last rows are the differentiated constraints. The unknowns
    lambda of these matrices have kanegen's sign; those of ``lm.eom`` and ``lm.solve_multipliers`` have the opposite.
    """

    def __init__(self, lm: LagrangesMethod, parameters: Mapping[Any, float] | None = None) -> None:
        self.q, self.u, n_c = list(lm.q), list(lm.u), len(lm.coneqs)
        self.rate_symbols = self.dependent = self.u
        self.given = {symbol: value for symbol, value in (parameters or {}).items() if value is not None}
        M, f = lm.mass_matrix, lm.forcing
        if n_c:
            M, f = M.col_join(lm._m_cd.row_join(sm.zeros(n_c, n_c))), f.col_join(lm._f_cd)
        expressions = (sm.Matrix(self.u), M, f, sm.Matrix(lm.coneqs), sm.Matrix(lm._hol_coneqs))
        self.symbols = sorted({*_symbols(expressions), *self.q, *self.u, TIME}, key=sm.default_sort_key)
        self._rates, self._M, self._f, self._psi, self._phi = (self._function(item) for item in expressions)

    def multipliers(self, state: Any) -> np.ndarray:
        """The multipliers of SymPy's mass matrix."""
        return self._solution(state)[len(self.u) :]

    def udot(self, state: Any) -> np.ndarray:
        return self._solution(state)[: len(self.u)]

    def _solution(self, state: Any) -> np.ndarray:
        return np.linalg.solve(self._M(state.values), self._f(state.values)[:, 0])

    def _regular(self, values: Mapping[Any, float]) -> bool:
        M, f = self._M(values), self._f(values)[:, 0]
        rows = np.abs(M).max(axis=1, keepdims=True)
        finite = np.isfinite(M).all() and np.isfinite(f).all()
        return bool(finite and np.all(rows > 0.0) and np.linalg.cond(M / rows) < CONDITION)
