"""Motions as PyTorch functions with exact derivatives (needs torch; docs/torch.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Unpack

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.interop.varied import Varied
from kanegen.run_options import CommonOptions, takes
from kanegen.solve import Solver


@takes(CommonOptions)
def motion(
    solver: Solver,
    times: Any,
    with_respect_to: Any,
    q0: Mapping[Any, float] | None = None,
    u0: Mapping[Any, float] | None = None,
    r: Mapping[Any, Any] | None = None,
    *,
    s0: Mapping[Any, float] | None = None,
    threads: int = 1,
    **options: Unpack[CommonOptions],
) -> Callable[[Any], Any]:
    """The motions of a solver as a PyTorch function ``f(z) -> y`` of what varies.

    Motions and their sensitivities are computed by the compiled code of the solver, on the CPU and in doubles, those of
    a batch by :meth:`kanegen.Solver.integrate_many`. The function works under ``backward``, ``torch.autograd.grad``,
    and ``grad``, ``vjp``, ``jacrev`` and ``vmap`` of ``torch.func``. Derivatives are computed only where something
    asks for them. There are no second derivatives, and no forward mode.

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
    threads
        The number of threads for a batch.
    **options
        See :class:`kanegen.run_options.CommonOptions`.

    Returns
    -------
    function
        ``z`` (..., n_z): a tensor of floating-point numbers, with values in the order of ``with_respect_to``; leading
        dimensions are those of a batch. The result (..., n_t, n_q + n_u + n_s): coordinates, speeds, states, in the
        type and on the device of z; NaN after a terminal event. Derivatives that do not exist are NaN, and a
        `ModelWarning` says why.

    Raises
    ------
    SolveError
        If torch is missing, for unknown names, and for wrong arguments; from the function, for a z of the wrong shape
        or type, if a motion cannot be computed, and for second derivatives.
    """
    torch = _torch()
    host = _Batches(solver, times, with_respect_to, {"q0": q0, "u0": u0, "s0": s0, "r": r}, options, threads)

    def function(z: Any) -> Any:
        z = torch.as_tensor(z)
        if not z.is_floating_point() or z.ndim == 0 or z.shape[-1] != host.n_z:
            raise SolveError(
                f"z has the type {z.dtype} and the shape {tuple(z.shape)}; expected floating-point numbers "
                f"(..., {host.n_z}): {', '.join(host.names)}"
            )
        states, _ = _differentiable().apply(z, host, z.requires_grad and torch.is_grad_enabled())
        return states

    return function


def _torch() -> Any:
    """The module torch. Raises `SolveError` if it is missing."""
    try:
        import torch
    except ImportError as error:
        raise SolveError("kanegen.interop.torch needs PyTorch: pip install torch") from error
    return torch


@cache
def _differentiable() -> Any:
    """The function (z, host, whether derivatives are needed) -> states, slopes (..., n_t, n_y, n_z).

    The slopes are a result because only results can be kept for ``backward`` under the transformations of `torch.func`.
    """
    torch = _torch()
    function: Any = torch.autograd.Function

    class Motion(function):  # type: ignore[misc]
        @staticmethod
        def forward(z: Any, host: _Batches, sloped: bool) -> Any:
            states, slopes = host.computed(z.detach().cpu().double().numpy(), sloped)
            return tuple(torch.from_numpy(array).to(z) for array in (states, slopes))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(output[1])

        @staticmethod
        def backward(ctx: Any, of_states: Any, of_slopes: Any) -> Any:
            if of_slopes is not None:
                raise SolveError("motions have no second derivatives in PyTorch")
            (slopes,) = ctx.saved_tensors
            return None if of_states is None else torch.einsum("...ti,...tij->...j", of_states, slopes), None, None

        @staticmethod
        def vmap(info: Any, in_dims: Any, z: Any, host: _Batches, sloped: bool) -> Any:
            states, slopes = Motion.apply(z.movedim(in_dims[0], 0), host, sloped)
            return (states, slopes), (0, 0)

    return Motion


class _Batches(Varied):
    """Motions with their derivatives, for arrays of the values of what varies."""

    def __init__(
        self,
        solver: Solver,
        times: Any,
        varied: Any,
        given: Mapping[str, Any],
        options: CommonOptions,
        threads: int,
    ) -> None:
        super().__init__(solver, times, varied, given)
        self._options, self._threads = options, threads

    def computed(self, z: Array, sloped: bool) -> tuple[Array, Array]:
        """The states (..., n_t, n_y) and their derivatives (..., n_t, n_y, n_z); (..., 0, 0, 0) if not ``sloped``."""
        batch = z.shape[:-1]
        if 0 in batch:
            return np.zeros((*batch, *self.shape)), np.zeros((*batch, *self.shape, self.n_z))
        parameters, given = self.arguments(list(z.reshape(-1, self.n_z).T))
        motions = self.solver.integrate_many(
            self.span,
            **given,
            parameters=parameters or None,
            t_eval=self.times,
            sensitivities=self.names if sloped else None,
            threads=self._threads,
            **self._options,
        )
        if motions.failures:
            first = motions.failures[0]
            where = f"motion {first.index}: " if len(motions.status) > 1 else ""
            raise SolveError(f"{where}{first.reason}")
        states = np.concatenate((motions.q, motions.u, motions.s), axis=2).reshape(*batch, *self.shape)
        if motions.sensitivities is None:
            return states, np.zeros((*batch, 0, 0, 0))
        return states, motions.sensitivities.matrix.reshape(*batch, *self.shape, self.n_z)
