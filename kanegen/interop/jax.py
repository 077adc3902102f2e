"""The rates of a model as a JAX function with exact derivatives (needs jax; docs/jax.md)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.solve import Solver

JACOBIANS: Final = {"t": "t", "y": "qus", "r": "r", "p": "p"}
"""The arguments of the JAX function, and those of the compiled Jacobians that it needs."""

REMEMBERED: Final = 256
"""Compiled functions with parameters whose prepared constants are kept."""


def ode(solver: Solver) -> Callable[..., Any]:
    """The right-hand side of a solver as a JAX function ``f(t, y, r=None, p=None) -> y'``.

    It works under ``jax.jit``, ``vmap``, ``jvp``, ``grad``, ``jacfwd`` and ``jacrev``: the values and the derivatives
    with respect to all arguments are computed by the compiled code of the solver, on the CPU (``jax.pure_callback``,
    ``jax.custom_jvp``). Rows of a batch are evaluated in one compiled loop. There are no second derivatives.

    Parameters
    ----------
    solver
        Built with ``functions="all"``, or with the group ``"jacobians"``. Contacts are not supported.

    Returns
    -------
    function
        ``t``: s. ``y`` (n_q + n_u + n_s,): coordinates, speeds, states. ``r`` (n_r,): inputs; None: their defaults.
        ``p`` (n_p,): parameters in the order of ``description.parameters``; None: those of the solver. The result
        (n_q + n_u + n_s,) includes the stabilization of the solver. As usual in JAX, results that cannot be computed
        are NaN, and raise no error.

    Raises
    ------
    SolveError
        If jax is missing or computes with 32 bits, if the Jacobians were not built, for models with contacts, and, from
        the function, for arguments of the wrong shape and for inputs or parameters without a value.
    """
    jax = _jax()
    host = _Host(solver)
    rates = _differentiable(jax, host)

    def function(t: Any, y: Any, r: Any = None, p: Any = None) -> Any:
        _require_doubles(jax)
        given = {"t": t, "y": y, "r": host.inputs if r is None else r, "p": host.parameters if p is None else p}
        host.require_values(r is None, p is None)
        arrays = {name: jax.numpy.asarray(value, dtype=np.float64) for name, value in given.items()}
        for name, array in arrays.items():
            if array.shape != host.shapes[name]:
                advice = "; map a function over a batch with jax.vmap" if name != "t" and array.ndim > 1 else ""
                raise SolveError(f"{name} has shape {array.shape}; expected {host.shapes[name]}{advice}")
        return rates(*arrays.values())

    return function


def _differentiable(jax: Any, host: _Host) -> Any:
    """The JAX function of four arrays, with the rule of its derivatives."""

    def call(function: Callable[..., Array], shape: tuple[int, ...], primals: Any) -> Any:
        result = jax.ShapeDtypeStruct(shape, np.float64)
        return jax.pure_callback(function, result, *primals, vmap_method="expand_dims")

    rates: Any = jax.custom_jvp(lambda *primals: call(host.rates, host.shapes["y"], primals))

    def rule(primals: Any, tangents: Any) -> Any:
        change = jax.numpy.zeros(host.shapes["y"])
        for name, tangent in zip(JACOBIANS, tangents, strict=True):
            if not isinstance(tangent, jax.custom_derivatives.SymbolicZero) and host.shapes[name] != (0,):
                J = call(partial(host.jacobian, name), (*host.shapes["y"], *host.shapes[name]), primals)
                change = change + (J * tangent if name == "t" else J @ tangent)
        return rates(*primals), change

    rates.defjvp(rule, symbolic_zeros=True)
    return rates


class _Host:
    """Evaluates a solver for arrays with leading dimensions of a batch; a dimension of size 1 applies to all of it.

    ``shapes``: of the arguments without these dimensions. ``inputs``, ``parameters``: the values by default, NaN where
    there is none.
    """

    def __init__(self, solver: Solver) -> None:
        d = solver.description
        if d.contacts.rows:
            raise SolveError(f"{d.name!r} has contacts, whose modes and impacts a JAX function does not have")
        self.solver, self.description = solver, d
        sizes = len(d.coordinates) + len(d.speeds) + len(d.states), len(d.inputs), len(d.parameters)
        self.shapes: dict[str, tuple[int, ...]] = {
            "t": (),
            **{name: (n,) for name, n in zip("yrp", sizes, strict=True)},
        }
        self.inputs: Array = np.array([np.nan if x.default is None else x.default for x in d.input_slots], dtype=float)
        values = solver.parameters.values()
        self.parameters: Array = np.array([np.nan if x is None else x for x in values], dtype=float)
        self.rhs = solver._rhs_name
        self._function = lru_cache(REMEMBERED)(self._prepared)
        for name in self._names("y"):
            if name not in d.functions:
                solver._functions.get(name)  # raises the error with the reason

    def require_values(self, by_default: bool, parameters_by_default: bool) -> None:
        """Raise `SolveError` if an input or parameter has no value by default."""
        d = self.description
        for wanted, values, names, advice in (
            (by_default, self.inputs, d.inputs, "pass r=, or give each Input a default"),
            (parameters_by_default, self.parameters, d.parameters, "pass p=, or use solver.with_parameters"),
        ):
            missing = [name for name, x in zip(names, values, strict=True) if np.isnan(x)]
            if wanted and missing:
                raise SolveError(f"the JAX function of {d.name!r} needs values of {', '.join(missing)}: {advice}")

    def rates(self, t: Array, y: Array, r: Array, p: Array) -> Array:
        """y' (..., n)."""
        return self._evaluated((self.rhs,), self.shapes["y"], t, y, r, p)

    def jacobian(self, argument: str, t: Array, y: Array, r: Array, p: Array) -> Array:
        """The derivatives (..., n, m) of y' with respect to an argument, (..., n) for the time."""
        return self._evaluated(self._names(argument), (*self.shapes["y"], *self.shapes[argument]), t, y, r, p)

    def _names(self, argument: str) -> tuple[str, ...]:
        """The compiled functions of the Jacobian, column by column."""
        present = {"s": self.description.states, "r": self.description.inputs, "p": self.description.parameters}
        return tuple(f"jacobian_{letter}" for letter in JACOBIANS[argument] if present.get(letter, True))

    def _prepared(self, key: bytes, name: str) -> Callable[..., Any]:
        """The compiled function of this name with the parameters (n_p,) in ``key``."""
        values, solver = np.frombuffer(key), self.solver
        if not np.array_equal(values, self.parameters, equal_nan=True):
            solver = solver.with_parameters(dict(zip(self.description.parameters, values.tolist(), strict=True)))
        function: Callable[..., Any] = solver._functions.get(name).value
        return function

    def _evaluated(self, names: tuple[str, ...], shape: tuple[int, ...], *arguments: Array) -> Array:
        t, y, r, p = (np.asarray(x, dtype=float) for x in arguments)
        if y.ndim == 1:
            return self._values(names, shape, p, t, y, r)
        batch = np.broadcast_shapes(t.shape, *(x.shape[:-1] for x in (y, r, p)))
        n = int(np.prod(batch))
        rows = [np.broadcast_to(x, (*batch, *x.shape[t.ndim :])).reshape(n, *x.shape[t.ndim :]) for x in (t, y, r)]
        result: Array = np.empty((n, *shape))
        sets, which = np.unique(p.reshape(-1, p.shape[-1]), axis=0, return_inverse=True)
        members = np.broadcast_to(which.reshape(p.shape[:-1]), batch).ravel()
        for k, values in enumerate(sets):
            own = members == k
            result[own] = self._values(names, (int(own.sum()), *shape), values, *(x[own] for x in rows))
        return result.reshape(*batch, *shape)

    def _values(self, names: tuple[str, ...], shape: tuple[int, ...], p: Array, t: Array, y: Array, r: Array) -> Array:
        """Values of functions side by side, for one state or rows of states; NaN where there are none."""
        d, n_q = self.description, len(self.description.coordinates)
        end = n_q + len(d.speeds)
        state = (y[..., :n_q], y[..., n_q:end], r if d.inputs else None, y[..., end:] if d.states else None)
        try:
            key = np.ascontiguousarray(p).tobytes()
            values = [self._function(key, name)(float(t) if t.ndim == 0 else t, *state) for name in names]
        except SolveError:
            if y.ndim == 1:
                return np.full(shape, np.nan)
            each = [self._values(names, shape[1:], p, *row) for row in zip(t, y, r, strict=True)]
            return np.array(each)
        return values[0] if len(values) == 1 else np.concatenate(values, axis=-1)


def _jax() -> Any:
    try:
        import jax
        import jax.numpy
    except ImportError as error:
        raise SolveError("kanegen.interop.jax needs jax: pip install 'kanegen[targets]'") from error
    _require_doubles(jax)
    return jax


def _require_doubles(jax: Any) -> None:
    if not jax.config.jax_enable_x64:
        raise SolveError(
            "JAX computes with 32 bits, in which the motion of a mechanism has no accurate derivatives: call "
            "jax.config.update('jax_enable_x64', True) before arrays are made"
        )
