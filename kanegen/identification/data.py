"""Measured motions: what users give, and the record of times, columns and values that is read from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array, real_array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError, brief
from kanegen.identification.weighting import Weighting, read_weighting
from kanegen.solve.run.options import span_of
from kanegen.solve.values import key_name, names_in, require_none, unknown

TIME: Final = "t"
"""The name of the times in data."""

_COMPONENT: Final = re.compile(r"(.*)\[([\d, ]+)\]")


@dataclass(frozen=True, eq=False)
class Experiment:
    """A measured motion, and what is known about it, for :func:`kanegen.fit`. What is None is as for the other ones.

    Attributes
    ----------
    data
        Times in s and measured coordinates, speeds, states and outputs: a mapping from names or symbols to arrays with
        the times at the key ``"t"``, a ``pandas.DataFrame`` with a column ``t`` or the times as index, or an
        ``xarray.Dataset`` with the dimension ``t``. The times increase; NaN marks a missing value. Arrays are (n_t,),
        those of outputs with several components (n_t, ...); ``"tip[0]"`` is one component.
    q0, u0, r, s0
        The start and the inputs, as for :meth:`kanegen.Solver.integrate`.
    t_span
        ``(t0, t1)``: the time of the start, and a time that no sample exceeds, s. Without it the motion starts at the
        time of ``solver.initial``, or at the first sample if there is none.
    sigma
        Standard deviations of the measurements: a number, or a mapping from names to numbers or arrays (n_t,).
    weights
        Factors of the squared residuals in place of ``sigma``, if only their proportions are known.
    covariance
        The covariance matrix (n, n) of the values measured at one time, in the order of the data.
    """

    data: Any
    q0: Any = None
    u0: Any = None
    r: Any = None
    s0: Any = None
    t_span: Any = None
    sigma: Any = None
    weights: Any = None
    covariance: Any = None


class Column(NamedTuple):
    """A measured scalar: the ``label``, the ``name`` of a variable or output, and the ``place`` in an array."""

    label: str
    name: str
    place: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Record:
    """A measured motion as arrays.

    ``t0``: the time of its start. ``times`` (n_t,), ``columns`` of ``values`` (n_t, n), NaN where a value is missing.
    """

    t0: float
    times: Array
    columns: tuple[Column, ...]
    values: Array
    weighting: Weighting

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which values count, (n_t, n)."""
        return self.weighting.known

    @property
    def t1(self) -> float:
        """The last time, s."""
        return float(self.times[-1])


def read_record(d: Description, given: Experiment, start_time: float | None, measured: Any, what: str) -> Record:
    """The record of an experiment; ``what`` names it in messages.

    ``measured``: names of the variables to use, None: all. Raises `SolveError`.
    """
    times, arrays = _arrays(given.data, what)
    arrays = _selected(d, arrays, measured, what)
    _require_times(times, what)
    columns, values = _columns(d, arrays, times.size, what)
    t0 = _start_of(given.t_span, times, start_time, what)
    weighting = read_weighting(given, [(c.label, c.name) for c in columns], values, what)
    if not weighting.known.any():
        raise SolveError(f"{what} contains no measured value: all values are missing or have the weight 0")
    return Record(t0, times, columns, values, weighting)


def planned_record(d: Description, t_span: tuple[float, float], times: Array, measured: Any, sigma: Any) -> Record:
    """The record of a motion that will be measured, with zeros as values. Raises `SolveError`."""
    names = names_in(measured, "measured")
    zeros = {name: np.zeros((times.size, *d.outputs.get(name, ()))) for name in names}
    planned = Experiment({TIME: times, **zeros}, t_span=t_span, sigma=sigma)
    return read_record(d, planned, None, None, "the plan")


def _arrays(data: Any, what: str) -> tuple[Array, dict[str, Any]]:
    """The times and the other arrays by name."""
    if hasattr(data, "data_vars"):
        return _of_data_set(data, what)
    if hasattr(data, "columns") and hasattr(data, "index"):
        named = {_name(key): data[key].to_numpy() for key in data.columns}
        return real_array(named.pop(TIME, data.index.to_numpy()), f"the times of {what}"), named
    if not isinstance(data, Mapping):
        raise SolveError(
            f"{what} is {brief(data)}; expected a mapping from names to arrays, a pandas.DataFrame or an xarray.Dataset"
        )
    named = {_name(key): value for key, value in data.items()}
    if len(named) < len(data):
        raise SolveError(f"{what} has a variable twice, by name and by symbol")
    if TIME not in named:
        raise SolveError(f"{what} has no times: add them with the key {TIME!r}")
    return real_array(named.pop(TIME), f"the times of {what}"), named


def _name(key: Any) -> str:
    return str(key) if isinstance(key, (int, float)) else key_name(key)


def _of_data_set(data: Any, what: str) -> tuple[Array, dict[str, Any]]:
    if TIME not in data.dims or TIME not in data.coords:
        raise SolveError(f"{what} has no times: an xarray.Dataset needs the dimension {TIME!r} with coordinates")
    named = {_name(key): array for key, array in data.data_vars.items() if TIME in array.dims}
    return data[TIME].to_numpy(), {name: array.transpose(TIME, ...).to_numpy() for name, array in named.items()}


def _split(name: str) -> tuple[str, tuple[int, ...]]:
    """The name of an array and a place in it: ``tip[0]``."""
    found = _COMPONENT.fullmatch(name)
    if found is None:
        return name, ()
    return found[1], tuple(int(part) for part in found[2].split(","))


def _selected(d: Description, arrays: Mapping[str, Any], measured: Any, what: str) -> dict[str, Any]:
    """The arrays of known names. Raises `SolveError` for unknown ones, with similar names."""
    known = (*d.components, *d.outputs)
    wanted = list(arrays) if measured is None else names_in(measured, "measured")
    problems = [
        unknown(name, known, f"measurable variable in {what}") for name in wanted if _split(name)[0] not in known
    ]
    if problems and measured is None:
        problems[-1] += "; measured= selects the variables of data that has others"
    require_none(problems)
    require_none([unknown(name, tuple(arrays), f"variable in {what}") for name in wanted if name not in arrays])
    if not wanted:
        raise SolveError(f"{what} has times, but no measured variable")
    return {name: arrays[name] for name in wanted}


def _require_times(times: Array, what: str) -> None:
    if times.ndim != 1 or not times.size:
        raise SolveError(f"the times of {what} have shape {times.shape}; expected (n_t,), at least one")
    if not np.isfinite(times).all():
        raise SolveError(f"the times of {what} contain {brief(times[~np.isfinite(times)][0])}; expected finite numbers")
    wrong = np.flatnonzero(np.diff(times) <= 0.0)
    if wrong.size:
        k = int(wrong[0])
        raise SolveError(
            f"the times of {what} must increase, but t = {float(times[k])!r} s is followed by {float(times[k + 1])!r} s"
        )


def _columns(d: Description, arrays: Mapping[str, Any], n_t: int, what: str) -> tuple[tuple[Column, ...], Array]:
    columns, values = [], []
    for name, given in arrays.items():
        array, (base, place) = real_array(given, f"{name} in {what}"), _split(name)
        whole = d.outputs.get(base, ())
        shape = () if place else whole
        if place and (len(place) != len(whole) or any(k >= n for k, n in zip(place, whole, strict=True))):
            raise SolveError(f"{what} has {name!r}, but {base} has the shape {whole}")
        if array.shape != (n_t, *shape):
            raise SolveError(f"{name} in {what} has shape {array.shape}; expected {(n_t, *shape)}: one for each time")
        if np.isinf(array).any():
            raise SolveError(f"{name} in {what} contains infinity; missing values are NaN")
        for at in np.ndindex(shape):
            label = f"{name}[{', '.join(map(str, at))}]" if at else name
            columns.append(Column(label, base, at or place))
            values.append(array[(slice(None), *at)])
    return tuple(columns), np.array(values).T


def _start_of(t_span: Any, times: Array, start_time: float | None, what: str) -> float:
    """The time of the start. Raises `SolveError` for data outside the span."""
    first, last = float(times[0]), float(times[-1])
    t0, t1 = (first if start_time is None else start_time, last) if t_span is None else span_of(t_span, start_time)
    if first < t0 or last > t1:
        end = "" if t_span is None else f" to {t1!r}"
        raise SolveError(
            f"{what} has times from {first!r} to {last!r} s, outside the motion, which goes from t = {t0!r}{end} s: "
            "give t_span=(t0, t1), or leave these samples out"
        )
    if not last > t0:
        raise SolveError(f"{what} has no time after the start of the motion at t = {t0!r} s")
    return t0


def experiments_of(data: Any, shared: Experiment) -> tuple[tuple[Experiment, ...], bool]:
    """The experiments of the argument ``data``, completed by ``shared``; whether there is a list of them."""
    several = isinstance(data, Sequence) and not isinstance(data, str)
    given = list(data) if several else [data]
    if not given:
        raise SolveError("data is empty; expected measured motions")
    return tuple(
        _completed(each if isinstance(each, Experiment) else Experiment(each), shared) for each in given
    ), several


_WEIGHTING: Final = ("sigma", "weights", "covariance")


def _completed(own: Experiment, shared: Experiment) -> Experiment:
    """An experiment with the values of the others where it has none; its own kind of weighting excludes the others'."""
    fields = {name: getattr(own, name) for name in Experiment.__dataclass_fields__}
    weighted = any(fields[name] is not None for name in _WEIGHTING)
    for name, value in fields.items():
        if value is None and not (weighted and name in _WEIGHTING):
            fields[name] = getattr(shared, name)
    return Experiment(**fields)
