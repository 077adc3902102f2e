"""The arguments of an ensemble: what is common to all motions, and what each has for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kanegen.arrays import Array, real_array, row_count
from kanegen.codegen.description import Description
from kanegen.errors import SolveError, brief
from kanegen.solve.values import by_name, number


@dataclass(frozen=True)
class Argument:
    """One argument of N motions: the same for all; an array (N, n); or a mapping in which some values are (N,).

    ``varied``: the names of these values in a mapping. ``has_rows``: whether an array has a row for each motion.
    """

    value: Any
    varied: tuple[str, ...] = ()
    has_rows: bool = False

    def at(self, row: int) -> Any:
        """The argument of one motion."""
        if self.varied:
            return {**self.value, **{name: self.value[name][row] for name in self.varied}}
        return self.value[row] if self.has_rows else self.value

    @property
    def sample(self) -> Any:
        """The argument with zeros in place of values that differ."""
        if self.varied:
            return {**self.value, **dict.fromkeys(self.varied, 0.0)}
        return np.zeros(self.value.shape[1:]) if self.has_rows else self.value

    @property
    def is_common(self) -> bool:
        """Whether it is the same for all motions."""
        return not (self.varied or self.has_rows)


@dataclass(frozen=True)
class Motions:
    """N motions: their starts, inputs and parameters."""

    count: int
    q0: Argument
    u0: Argument
    s0: Argument
    r: Argument
    parameters: Argument

    @property
    def state(self) -> tuple[Argument, Argument, Argument]:
        """The arguments q0, u0, s0."""
        return self.q0, self.u0, self.s0


def read_motions(d: Description, state: Sequence[Any], r: Any, parameters: Any) -> Motions:
    """Read the arguments of an ensemble; ``state``: q0, u0, s0.

    Raises `SolveError` for unknown names, wrong shapes and types, and numbers of rows that differ.
    """
    counts: dict[str, int] = {}
    kinds = (("q0", "coordinate", d.coordinates), ("u0", "speed", d.speeds), ("s0", "state", d.states))
    q0, u0, s0 = (_of_state(value, *kind, counts) for value, kind in zip(state, kinds, strict=True))
    named = _by_name({} if parameters is None else parameters, "parameter", d.parameters, counts)
    inputs = _of_inputs(r, d, counts)
    return Motions(row_count(counts), q0, u0, s0, inputs, named)


def _of_state(value: Any, what: str, kind: str, names: tuple[str, ...], counts: dict[str, int]) -> Argument:
    if value is None:
        return Argument(None)
    if isinstance(value, Mapping):
        return _by_name(value, kind, names, counts)
    return _array(value, what, names, counts)


def _of_inputs(r: Any, d: Description, counts: dict[str, int]) -> Argument:
    """Arrays (N, n_r) and values (N,) by name differ from motion to motion; anything else is common."""
    if isinstance(r, Mapping):
        named = by_name(r, d.inputs, "input")
        varied = {
            key: _column(x, f"input {key}", counts) for key, x in named.items() if isinstance(x, (np.ndarray, list))
        }
        return Argument(named | varied, tuple(key for key, x in varied.items() if x.ndim))
    is_rows = isinstance(r, (np.ndarray, list)) and real_array(r, "r").ndim != 1
    return _array(r, "r", d.inputs, counts) if is_rows else Argument(r)


def _by_name(values: Any, kind: str, names: tuple[str, ...], counts: dict[str, int]) -> Argument:
    named = by_name(values, names, kind)
    read = {key: _column(value, f"{kind} {key}", counts) for key, value in named.items()}
    varied = tuple(key for key, value in read.items() if value.ndim)
    common = {key: number(value.item(), f"{kind} {key}") for key, value in read.items() if not value.ndim}
    return Argument({**{key: read[key] for key in varied}, **common}, varied)


def _column(value: Any, what: str, counts: dict[str, int]) -> Array:
    array = real_array(value, what)
    if array.ndim > 1:
        raise SolveError(f"{what} has shape {array.shape}; expected a number, or (N,) for N motions")
    if array.ndim:
        counts[what] = array.size
    return array


def _array(value: Any, what: str, names: tuple[str, ...], counts: dict[str, int]) -> Argument:
    array, n = real_array(value, what), len(names)
    if array.ndim not in (1, 2) or array.shape[-1] != n:
        raise SolveError(
            f"{what} has shape {array.shape}; expected ({n},), or (N, {n}) for N motions: "
            f"{', '.join(names) or 'no entries'}"
        )
    if array.ndim == 2:
        counts[what] = array.shape[0]
    return Argument(array, has_rows=array.ndim == 2)


def requested_times(t_eval: Any, t0: float, t1: float) -> Array:
    """``t_eval`` as an array (K,). Raises `SolveError` for times outside the span or not sorted in its direction."""
    times = real_array(t_eval, "t_eval")
    if times.ndim != 1:
        raise SolveError(f"t_eval has shape {times.shape}; expected (K,)")
    if not ((times >= min(t0, t1)) & (times <= max(t0, t1))).all():
        raise SolveError(f"t_eval leaves the span from t = {t0!r} to {t1!r} s: {brief(t_eval)}")
    if not (np.diff(times) * (t1 - t0) >= 0.0).all():
        raise SolveError(f"t_eval is not sorted in the direction of the span, from t = {t0!r} to {t1!r} s")
    return times
