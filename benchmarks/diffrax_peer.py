"""diffrax: differentiable integrators in JAX, compiled by XLA.

Used as its documentation says (https://docs.kidger.site/diffrax): ``diffeqsolve`` with a `PIDController`,
``ForwardMode`` for forward derivatives and ``RecursiveCheckpointAdjoint``, the default, for reverse ones
("Adjoints"), in double precision, compiled by ``jax.jit``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.formulas import algebra
from benchmarks.gradient_problems import GradientProblem
from kanegen.arrays import Array
from kanegen.errors import SolveError

NAME = "diffrax"
METHODS = ("Dopri5", "Dopri8")
MOST_STEPS = 4096


def gradients(problem: GradientProblem) -> Mapping[str, Mapping[str, Callable[[float], Array]]]:
    """``jacfwd`` and ``grad`` of an integration."""
    import jax

    jax.config.update("jax_enable_x64", True)
    return {
        kind: {method: partial(_run, _compiled(problem, kind, method)) for method in METHODS}
        for kind in ("sensitivities", "gradient")
    }


def _compiled(problem: GradientProblem, kind: str, method: str) -> Any:
    """The function of a tolerance, compiled at its first call."""
    import diffrax
    import jax
    import jax.numpy as jnp

    n, start = problem.n, jnp.array(problem.formulas.start)
    places, rows, weights = np.array(problem.places), np.array(problem.rows), jnp.array(problem.weights)
    numbers = algebra(jnp)

    def rates(t: Any, x: Any, p: Any) -> Any:
        return jnp.stack(problem.formulas.rates_in(numbers, [*x, *p])[:n])

    def end(z: Any, tolerance: Any, adjoint: Any) -> Any:
        y = start.at[places].set(z)
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(rates),
            getattr(diffrax, method)(),
            0.0,
            problem.duration,
            None,
            y[:n],
            args=y[n:],
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=0.01 * tolerance),
            adjoint=adjoint,
            max_steps=MOST_STEPS,
        )
        return solution.ys[-1][rows]

    if kind == "sensitivities":
        forward = jax.jacfwd(partial(end, adjoint=diffrax.ForwardMode()))
        return jax.jit(lambda tolerance: forward(start[places], tolerance).ravel())
    reverse = jax.grad(lambda z, tolerance: weights @ end(z, tolerance, diffrax.RecursiveCheckpointAdjoint()))
    return jax.jit(lambda tolerance: reverse(start[places], tolerance))


def _run(function: Any, tolerance: float) -> Array:
    try:
        return np.asarray(function(tolerance).block_until_ready())
    except Exception as error:  # more than `MOST_STEPS` steps
        raise SolveError(f"diffrax with a tolerance of {tolerance:g} stopped") from error
