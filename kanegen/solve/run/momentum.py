"""The momentum forms: the state of an integration is (q, mom), but users give and get (q, u)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.forms import FORMS
from kanegen.solve.functions import CompiledFunctions, refusal
from kanegen.solve.inputs import run_inputs
from kanegen.solve.solution import Dense

_NO_STABILIZATION = (
    "the reduced momentum form has no stabilization: its speeds satisfy the velocity-level constraints exactly; "
    'integrate with_stabilization(None), or build with form="momentum_unreduced" or "reduced"'
)


def state_function(form: str, rhs_name: str) -> str:
    """Name of the function that is integrated: ``rhs_name``, or the corresponding function of the momenta.

    Raises `SolveError` for stabilization in the reduced momentum form.
    """
    if not FORMS[form].momenta:
        return rhs_name
    if form == "momentum" and rhs_name != "rhs":
        raise SolveError(_NO_STABILIZATION)
    return f"momentum_{rhs_name}"


def functions_of_momenta(functions: CompiledFunctions, rhs_name: str) -> dict[str, Callable[..., Any]]:
    """The functions of (t, q, mom, r=None, s=None) by name: ``speeds_from_momentum`` and ``momentum_rhs``.

    ``mom``: (n_u,), or (n_i,) in the reduced form. Functions that were not built raise `SolveError` with the reason.
    """
    form, n_q, n_s = (
        functions.description.form,
        len(functions.description.coordinates),
        len(functions.description.states),
    )
    if form == "momentum" and rhs_name != "rhs":
        rates: Callable[..., Any] = refusal(SolveError(_NO_STABILIZATION))
    else:
        rates = _of_momenta(functions, f"momentum_{rhs_name}" if FORMS[form].momenta else "momentum_rhs")

    def momentum_rhs(t: float, q: Any, mom: Any, r: Any = None, s: Any = None) -> tuple[Array, ...]:
        values = rates(t, q, mom, r, s)
        parts = np.split(values, [n_q, values.shape[-1] - n_s], axis=-1)
        return tuple(parts) if n_s else tuple(parts[:2])

    return {"speeds_from_momentum": _of_momenta(functions, "speeds_from_momentum"), "momentum_rhs": momentum_rhs}


def _of_momenta(functions: CompiledFunctions, name: str) -> Callable[..., Array]:
    """The compiled function with momenta in place of speeds; the reduced form has fewer momenta than speeds."""
    value: Callable[..., Array] = functions.call(name)
    description = functions.description
    if description.form != "momentum":
        return value
    n_i, n_u = len(description.independent), len(description.speeds)

    def padded(t: float, q: Any, mom: Any, r: Any = None, s: Any = None) -> Array:
        momenta = np.asarray(mom, dtype=np.float64)
        if momenta.ndim not in (1, 2) or momenta.shape[-1] != n_i:
            raise SolveError(
                f"mom has shape {momenta.shape}; expected ({n_i},), the reduced momenta of "
                f"{', '.join(description.independent_names)}"
            )
        return value(t, q, np.concatenate([momenta, np.zeros((*momenta.shape[:-1], n_u - n_i))], axis=-1), r, s)

    return padded


class RunMomenta:
    """Conversions between (q, u) and (q, mom) for one run with the inputs ``r``; a pickle holds functions and inputs.

    ``needed``: the indices of the inputs that must have a value (:func:`kanegen.solve.inputs.run_inputs`).
    """

    def __init__(self, functions: CompiledFunctions, r: Any, needed: frozenset[int]) -> None:
        self._made_from = (functions, r, needed)
        description = functions.description
        self._n_q, self._n_u, self._n_s = map(len, (description.coordinates, description.speeds, description.states))
        self._momenta = functions.call("reduced_momentum" if description.form == "momentum" else "momentum")
        self._speeds = _of_momenta(functions, "speeds_from_momentum")
        self._inputs = run_inputs(functions.module, description, r, needed).at

    def __reduce__(self) -> tuple[type[RunMomenta], tuple[Any, ...]]:
        return RunMomenta, self._made_from

    def of(self, t: float, q: Any, u: Any) -> Array:
        """The momenta of a state."""
        momenta: Array = self._momenta(t, q, u, self._inputs(t))
        return momenta

    def speeds(self, times: Array, states: Array) -> Array:
        """States (q, u, s), (n_t, n_q + n_u + n_s), from states (q, mom, s), (n_t, n_q + n_mom + n_s)."""
        n_q, n_u = self._n_q, self._n_u
        result = np.empty((len(times), n_q + n_u + self._n_s))
        q, momenta, s = np.split(states, [n_q, states.shape[1] - self._n_s], axis=1)
        result[:, :n_q], result[:, n_q + n_u :] = q, s
        for row, t, own_q, own_momenta in zip(result, times.tolist(), q, momenta, strict=True):
            row[n_q : n_q + n_u] = self._speeds(t, own_q, own_momenta, self._inputs(t))
        return result

    def to_speeds(self, result: Any) -> None:
        """Put speeds in place of the momenta in a result of the compiled integrator."""
        t, y = result.last
        states = self.speeds(result.t, result.y)
        result.u = states[:, self._n_q : self._n_q + self._n_u].copy()
        result.last = t, self.speeds(np.array([t]), y[None, :])[0]
        if result.dense is not None:
            t_old, h, coefficients = result.dense
            result.dense = SpeedDense(t_old, h, coefficients, self)


@dataclass(frozen=True, eq=False)
class SpeedDense(Dense):
    """Dense output of a run in the momenta: polynomials of (q, mom), converted to speeds on evaluation."""

    momenta: RunMomenta

    def __call__(self, times: Array) -> Array:
        """States (n_t, n_q + n_u + n_s) at ``times`` (n_t,), which must lie within the run."""
        return self.momenta.speeds(times, super().__call__(times))
