"""A whole motion as a JAX function with exact derivatives (needs jax; docs/jax.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.interop.modules import jax_in_doubles, require_doubles
from kanegen.interop.varied import Varied
from kanegen.run_options import RunOptions, takes
from kanegen.solve import Solver


@takes(RunOptions)
def motion(
    solver: Solver,
    times: Any,
    with_respect_to: Any,
    q0: Mapping[Any, float] | None = None,
    u0: Mapping[Any, float] | None = None,
    r: Mapping[Any, Any] | None = None,
    *,
    s0: Mapping[Any, float] | None = None,
    **options: Unpack[RunOptions],
) -> Callable[[Any], Any]:
    """The motion of a solver as a JAX function ``f(z) -> y`` of what varies.

    It works under ``jax.jit``, ``vmap``, ``jvp``, ``grad``, ``jacfwd`` and ``jacrev``: motions and their sensitivities
    are computed by the compiled code of the solver, on the CPU (``jax.pure_callback``, ``jax.custom_jvp``). There are
    no second derivatives.

    Parameters
    ----------
    solver
        A solver whose motions have sensitivities (docs/gradients.md).
    times
        Times (n_t,), s, ascending or descending, at which the motion is returned; the first one is the start.
    with_respect_to
        Names or symbols of the entries of z: parameters, start values, and constant inputs.
    q0, u0, r, s0
        Values by name at the start, and inputs, of what does not vary; see :meth:`kanegen.Solver.integrate`.
    **options
        See :class:`kanegen.run_options.RunOptions`.

    Returns
    -------
    function
        ``z`` (n_z,): values in the order of ``with_respect_to``. The result (n_t, n_q + n_u + n_s): coordinates,
        speeds, states. As usual in JAX, motions that cannot be computed are NaN, and raise no error.

    Raises
    ------
    SolveError
        If jax is missing or computes with 32 bits, for unknown names, and for wrong arguments; from the function, for a
        z of the wrong shape.
    """
    jax = jax_in_doubles()
    host = _Motions(solver, times, with_respect_to, {"q0": q0, "u0": u0, "s0": s0, "r": r}, dict(options))

    def call(compute: Callable[[Array], Any], shapes: Any, z: Any) -> Any:
        results = jax.tree.map(lambda shape: jax.ShapeDtypeStruct(shape, np.float64), shapes, is_leaf=_is_shape)
        return jax.pure_callback(compute, results, z, vmap_method="sequential")

    states: Any = jax.custom_jvp(lambda z: call(host.values, host.shape, z))

    def rule(primals: Any, tangents: Any) -> Any:
        values, slopes = call(host.values_and_slopes, (host.shape, (*host.shape, host.n_z)), primals[0])
        return values, slopes @ tangents[0]

    states.defjvp(rule)

    def function(z: Any) -> Any:
        require_doubles(jax)
        array = jax.numpy.asarray(z, dtype=np.float64)
        if array.shape != (host.n_z,):
            raise SolveError(f"z has shape {array.shape}; expected ({host.n_z},): {', '.join(host.names)}")
        return states(array)

    return function


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(n, int) for n in value)


class _Motions(Varied):
    """Motions one by one, NaN where they cannot be computed; ``options``: of `integrate`."""

    def __init__(
        self, solver: Solver, times: Any, varied: Any, given: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        super().__init__(solver, times, varied, given)
        self.options = options

    def values(self, z: Any) -> Array:
        """The states (n_t, n_y); NaN where the motion cannot be computed."""
        try:
            return self._states(self._run(z, None))
        except SolveError:
            return np.full(self.shape, np.nan)

    def values_and_slopes(self, z: Any) -> tuple[Array, Array]:
        """The states, and their derivatives (n_t, n_y, n_z)."""
        try:
            solution = self._run(z, self.names)
        except SolveError:
            return np.full(self.shape, np.nan), np.full((*self.shape, self.n_z), np.nan)
        if solution.sensitivities.reason is not None:
            raise SolveError(solution.sensitivities.reason)
        return self._states(solution), solution.sensitivities.matrix

    @staticmethod
    def _states(solution: Any) -> Array:
        return np.hstack((solution.q, solution.u, solution.s))

    def _run(self, z: Any, sensitivities: Any) -> Any:
        parameters, given = self.arguments(np.asarray(z, dtype=float).tolist())
        solver = self.solver.with_parameters(parameters) if parameters else self.solver
        run: dict[str, Any] = {**given, **self.options, "t_eval": self.times, "sensitivities": sensitivities}
        return solver.integrate(self.span, **run)
