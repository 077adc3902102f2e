"""Where functions of a model are evaluated: the record of their arguments, and how it is read from what users give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array, real_array, row_count
from kanegen.errors import SolveError, brief

_BYTES: Final = np.dtype(np.float64).itemsize


class Point(NamedTuple):
    """The arguments of functions of a model: ``kg_point`` of kg_model.h, with the states after the inputs as in calls.

    ``t`` in s, coordinates ``q`` (n_q,), speeds ``u`` (n_u,), inputs ``r`` (n_r,), states ``s`` (n_s,), ``forces``: the
    multipliers of the contact rows (n_rows,), ``free``: the free vector of servo-constraints (n_free,). Arrays with one
    dimension more have a row for each of N states. None stands for the defaults, which are zero for ``forces`` and
    ``free``.
    """

    t: Any
    q: Any
    u: Any
    r: Any = None
    s: Any = None
    forces: Any = None
    free: Any = None

    def evaluate(self, function: Callable[..., Any]) -> Any:
        """The value of a compiled function (its method ``value`` or ``pair``) here."""
        return function(*self[:5], forces=self.forces, free=self.free)


class Reading(NamedTuple):
    """Arguments as arrays, t (1,), the others (n,), with one dimension more where they have rows; N, or None."""

    point: Point
    n_rows: int | None


def read_point(at: Point, names: Mapping[str, tuple[str, ...]], model: str, others: Mapping[str, int] = {}) -> Reading:
    """Read arguments at one state or at many; what is left out remains None.

    ``names`` are those of the entries of each argument but t. ``others``: numbers of rows of further arguments. The
    forces of contacts can follow the inputs, ``r`` (n_r + n_rows,). Raises `SolveError` for arguments of wrong shapes
    and types, and for different numbers of rows.
    """
    counts: dict[str, int] = {}
    if at.s is not None and not names["s"]:
        raise SolveError(f"s is {brief(at.s)}, but the model {model!r} has no states: leave s out")
    if at.r is not None and at.forces is None and names["forces"]:
        at = _with_forces_behind(at, len(names["r"]), len(names["forces"]))
    t, q, u = _times(at.t, counts), _rows(at.q, "q", names["q"], counts), _rows(at.u, "u", names["u"], counts)
    optional: tuple[Any, ...] = at[3:]
    if any(x is not None for x in optional):
        given = zip(optional, ("r", "s", "forces", "free"), strict=True)
        optional = tuple(x if x is None else _rows(x, what, names[what], counts) for x, what in given)
    point = Point(t, q, u, *optional)
    counts |= others
    return Reading(point, row_count(counts) if counts else None)


def with_defaults(at: Point, defaults: Point, names: Mapping[str, tuple[str, ...]], function: str) -> Point:
    """The arguments with defaults in place of those that were left out.

    Raises `SolveError` where a default of ``function`` is NaN, because it reads this input or state without a default.
    """
    if (at.r is None and names["r"]) or (at.s is None and names["s"]):
        _require_defaults(at, defaults, names, function)
    return Point(*[default if x is None else x for x, default in zip(at, defaults, strict=True)])


def _require_defaults(at: Point, defaults: Point, names: Mapping[str, tuple[str, ...]], function: str) -> None:
    unknown = {
        "r": _without_default(names["r"], defaults.r) if at.r is None else [],
        "s": _without_default(names["s"], defaults.s) if at.s is None else [],
    }
    if missing := [*unknown["r"], *unknown["s"]]:
        ways = {"r": "pass r=, or give each Input a default", "s": "pass s="}
        advice = "; ".join(ways[what] for what, own in unknown.items() if own)
        raise SolveError(f"{function.removeprefix('output:')} needs values of {', '.join(missing)}: {advice}")


def _without_default(names: tuple[str, ...], defaults: Array) -> list[str]:
    return [name for name, x in zip(names, defaults.tolist(), strict=True) if x != x]


def rows_of(at: Point, n_rows: int) -> list[Point]:
    """The arguments of each state, from those that were read: t a number, the others (n,)."""
    columns = [np.broadcast_to(x, (n_rows, x.shape[-1])) for x in at]
    return [Point(float(t[0]), *arrays) for t, *arrays in zip(*columns, strict=True)]


def _with_forces_behind(at: Point, n_r: int, n_rows: int) -> Point:
    """The arguments with the forces of their own, if these follow the inputs."""
    r = array_of(at.r, "r")
    if r.ndim not in (1, 2) or r.shape[-1] != n_r + n_rows:
        return at
    return at._replace(r=r[..., :n_r], forces=r[..., n_r:])


def _times(t: Any, counts: dict[str, int]) -> Array:
    """The times, (1,) or (N, 1); N is noted in ``counts``."""
    if type(t) is float:
        return np.array([t])
    times = array_of(t, "t")
    if times.ndim > 1:
        raise SolveError(f"t has shape {times.shape}, expected a number or (N,)")
    if times.ndim == 1:
        counts["t"] = times.size
    return times[..., np.newaxis]


def _rows(value: Any, what: str, names: tuple[str, ...], counts: dict[str, int]) -> Array:
    """An array (n,) or (N, n) with a value for each name; N is noted in ``counts``."""
    array, n = array_of(value, what), len(names)
    if array.ndim not in (1, 2) or array.shape[-1] != n:
        raise SolveError(
            f"{what} has shape {array.shape}, expected ({n},) or (N, {n}): {', '.join(names) or 'no entries'}"
        )
    if array.ndim == 2:
        counts[what] = array.shape[0]
    return array


def array_of(value: Any, what: str) -> Array:
    """``value`` itself, if compiled code can read it, else a copy. Raises `SolveError` for what is not real."""
    return value if isinstance(value, np.ndarray) and is_plain(value) else real_array(value, what)


def is_plain(array: NDArray[Any]) -> bool:
    """Whether compiled code can read an array: float64, aligned, with strides that are multiples of a number."""
    flags = array.flags
    if array.dtype != np.float64 or not flags.aligned:
        return False
    return flags.forc or all(stride % _BYTES == 0 for stride in array.strides)
