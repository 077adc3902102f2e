"""The rates of a model as a JAX function with exact derivatives (needs jax; docs/jax.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.interop.modules import jax_in_doubles, require_doubles
from kanegen.interop.motions import motion as motion
from kanegen.solve import Solver
from kanegen.solve.values import by_name

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
        ``t``: s. ``y`` (n_q + n_u + n_s,): coordinates, speeds, states. ``r``: inputs (n_r,), or a mapping from names
        to values; inputs that it leaves open have the values of their laws, or their defaults; None leaves all open.
        ``p`` (n_p,): parameters in the order of ``description.parameters``; None: those of the solver. The result
        (n_q + n_u + n_s,) includes the stabilization of the solver. As usual in JAX, results that cannot be computed
        are NaN, and raise no error.

    Raises
    ------
    SolveError
        If jax is missing or computes with 32 bits, if the Jacobians were not built, for models with contacts, and, from
        the function, for arguments of the wrong shape and for inputs or parameters without a value.
    """
    jax = jax_in_doubles()
    host = _Host(solver)
    rates, laws = (_differentiable(jax, host, values) for values in (host.rates, host.laws))

    def function(t: Any, y: Any, r: Any = None, p: Any = None) -> Any:
        require_doubles(jax)
        open_inputs, by_law = (r, ()) if host.gives_all(r) else host.beside_laws(jax.numpy, r)
        given = {"t": t, "y": y, "r": open_inputs, "p": host.parameters if p is None else p}
        if p is None:
            host.require_parameters()
        arrays = {name: jax.numpy.asarray(value, dtype=np.float64) for name, value in given.items()}
        for name, array in arrays.items():
            if array.shape != host.shapes[name]:
                advice = "; map a function over a batch with jax.vmap" if name != "t" and array.ndim > 1 else ""
                raise SolveError(f"{name} has shape {array.shape}; expected {host.shapes[name]}{advice}")
        if by_law:
            places = [list(host.description.laws).index(slot) for slot in by_law]
            values = laws(*arrays.values())[np.array(places)]
            arrays["r"] = arrays["r"].at[np.array(by_law)].set(values)
        return rates(*arrays.values())

    return function


def _differentiable(jax: Any, host: _Host, traced: _Traced) -> Any:
    """The JAX function of four arrays, with the rule of its derivatives."""

    def call(names: tuple[str, ...], shape: tuple[int, ...], primals: Any) -> Any:
        result = jax.ShapeDtypeStruct(shape, np.float64)
        return jax.pure_callback(partial(host.evaluated, names, shape), result, *primals, vmap_method="expand_dims")

    function: Any = jax.custom_jvp(lambda *primals: call((traced.name,), traced.shape, primals))

    def rule(primals: Any, tangents: Any) -> Any:
        change = jax.numpy.zeros(traced.shape)
        for name, tangent in zip(JACOBIANS, tangents, strict=True):
            if not isinstance(tangent, jax.custom_derivatives.SymbolicZero) and host.shapes[name] != (0,):
                J = call(host.slopes(traced, name), (*traced.shape, *host.shapes[name]), primals)
                change = change + (J * tangent if name == "t" else J @ tangent)
        return function(*primals), change

    function.defjvp(rule, symbolic_zeros=True)
    return function


class _Traced(NamedTuple):
    """A compiled function, the first part of the names of its Jacobians, and the shape of its values."""

    name: str
    slopes: str
    shape: tuple[int]


class _Host:
    """Evaluates a solver for arrays with leading dimensions of a batch; a dimension of size 1 applies to all of it.

    ``shapes``: of the arguments without these dimensions. ``parameters``: the values by default, NaN where there is
    none. ``rates``, ``laws``: the functions that are differentiated.
    """

    def __init__(self, solver: Solver) -> None:
        d = solver.description
        if d.contacts.rows:
            raise SolveError(f"{d.name!r} has contacts, whose modes and impacts a JAX function does not have")
        self.solver, self.description = solver, d
        sizes = len(d.components), len(d.inputs), len(d.parameters)
        self.shapes: dict[str, tuple[int, ...]] = {
            "t": (),
            **{name: (n,) for name, n in zip("yrp", sizes, strict=True)},
        }
        values = solver.parameters.values()
        self.parameters: Array = np.array([np.nan if x is None else x for x in values], dtype=float)
        self.rates = _Traced(solver._rhs_name, "jacobian", (sizes[0],))
        self.laws = _Traced("laws", "laws", (len(d.laws),))
        self._function = lru_cache(REMEMBERED)(self._prepared)
        for name in self.slopes(self.rates, "y"):
            if name not in d.functions:
                solver._functions.get(name)  # raises the error with the reason

    def gives_all(self, r: Any) -> bool:
        """Whether ``r`` is an array of all inputs."""
        return r is not None and not isinstance(r, Mapping)

    def beside_laws(self, numpy: Any, r: Mapping[Any, Any] | None) -> tuple[Any, tuple[int, ...]]:
        """The inputs (n_r,) from values by name and defaults, zero where laws give them, and the slots of these.

        Raises `SolveError` for inputs without a value.
        """
        d, functions = self.description, self.solver._functions
        named = by_name(r or {}, d.inputs, "input")
        try:
            known, slots = functions.beside_laws((self.rates.name,), r and dict.fromkeys(named, 0.0))
        except SolveError as error:
            raise SolveError(f"the JAX function of {d.name!r}: {error}") from None
        array = numpy.asarray(known)
        for name, value in named.items():
            array = array.at[d.inputs.index(name)].set(value)
        return array, slots

    def require_parameters(self) -> None:
        """Raise `SolveError` if a parameter has no value by default."""
        d = self.description
        missing = [name for name, x in zip(d.parameters, self.parameters, strict=True) if np.isnan(x)]
        if missing:
            raise SolveError(
                f"the JAX function of {d.name!r} needs values of {', '.join(missing)}: pass p=, or use "
                "solver.with_parameters"
            )

    def slopes(self, traced: _Traced, argument: str) -> tuple[str, ...]:
        """The compiled functions of the Jacobian in an argument, column by column."""
        present = {"s": self.description.states, "r": self.description.inputs, "p": self.description.parameters}
        return tuple(f"{traced.slopes}_{letter}" for letter in JACOBIANS[argument] if present.get(letter, True))

    def _prepared(self, key: bytes, name: str) -> Callable[..., Any]:
        """The compiled function of this name with the parameters (n_p,) in ``key``."""
        values, solver = np.frombuffer(key), self.solver
        if not np.array_equal(values, self.parameters, equal_nan=True):
            solver = solver.with_parameters(dict(zip(self.description.parameters, values.tolist(), strict=True)))
        function: Callable[..., Any] = solver._functions.get(name).value
        return function

    def evaluated(self, names: tuple[str, ...], shape: tuple[int, ...], *arguments: Array) -> Array:
        """Values of functions side by side, (..., *shape), at (t, y, r, p) with leading dimensions of a batch."""
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
