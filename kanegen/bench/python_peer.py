"""The pure Python peer: SymPy's ``lambdify``, NumPy's ``solve`` and SciPy's ``solve_ivp``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sm
from sympy.physics.vector import dynamicsymbols

from kanegen.arrays import Array
from kanegen.bench.kane import KaneEquations
from kanegen.errors import SolveError

METHODS = ("RK45", "DOP853", "LSODA")


@dataclass(frozen=True)
class PythonPeer:
    """``ode(t, y)`` with y = (q, u), at fixed parameters and inputs."""

    ode: Callable[[float, Array], Array]
    n_q: int

    def integrate(self, end: float, start: tuple[float, Array], method: str, tolerance: float) -> Array:
        """The state at ``end`` by `scipy.integrate.solve_ivp`, rtol = ``tolerance`` and atol = ``tolerance``
        / 100."""
        from scipy.integrate import solve_ivp

        t, y = start
        solution = solve_ivp(self.ode, (t, end), y, method=method, rtol=tolerance, atol=0.01 * tolerance)
        if not solution.success:
            raise SolveError(f"solve_ivp with {method} and rtol={tolerance:g} stopped: {solution.message}")
        return np.asarray(solution.y[:, -1])


def python_peer(
    equations: KaneEquations, inputs: Sequence[float], parameters: Sequence[float], functions: str = "math"
) -> PythonPeer:
    """``lambdify(cse=True)`` of q', mass matrix and forcing, and one `numpy.linalg.solve` for u'.

    ``functions``: ``"math"``, which is faster here than NumPy's scalars, the peer of a careful user; or ``"numpy"``,
    what ``lambdify`` takes when nothing is said.
    """
    arguments = [dynamicsymbols._t, *(equations.symbols(array) for array in ("q", "u", "r", "p"))]
    values = [list(equations.qdot), equations.mass.tolist(), list(equations.forcing)]
    evaluate = sm.lambdify(arguments, values, modules=functions, cse=True)
    n_q = equations.sizes["q"]
    r, p = tuple(map(float, inputs)), tuple(map(float, parameters))

    def ode(t: float, y: Array) -> Array:
        state = y.tolist()
        qdot, mass, forcing = evaluate(t, state[:n_q], state[n_q:], r, p)
        return np.concatenate((qdot, np.linalg.solve(mass, forcing)))

    return PythonPeer(ode, n_q)
