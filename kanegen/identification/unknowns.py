"""What is estimated: parameters, start values and constant inputs, with bounds, priors and scales."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError, brief
from kanegen.identification.data import Experiment
from kanegen.solve.gradients.directions import Kind
from kanegen.solve.values import Variables, by_name, key_name, number, positive, require_none


@dataclass(frozen=True)
class Unknown:
    """One number that is estimated.

    ``name`` of the quantity and its ``kind``; ``experiment``: that of a start value, None for what all of them share.
    ``label``: its name in results. ``value``: before the fit. ``low``, ``high``: bounds. ``prior``: mean and standard
    deviation, or None. ``scale``: its size.
    """

    name: str
    kind: Kind
    experiment: int | None
    label: str
    value: float
    low: float = -np.inf
    high: float = np.inf
    prior: tuple[float, float] | None = None
    scale: float = 1.0


@dataclass(frozen=True)
class Start:
    """What is known of the motion of one experiment: start values by name, and the inputs ``r`` of `integrate`."""

    values: Mapping[str, float]
    r: Any


def read_starts(solver: Any, experiments: Sequence[Experiment]) -> tuple[Start, ...]:
    """The given start values of experiments. Raises `SolveError`."""
    starts = []
    for each in experiments:
        values: dict[str, float] = {}
        for variables, given in zip(Variables.of(solver.description, "0"), (each.q0, each.u0, each.s0), strict=True):
            values |= variables.read(given)
        starts.append(Start(values, each.r))
    return tuple(starts)


def read_unknowns(
    solver: Any, starts: Sequence[Start], several: bool, parameters: Any, start: Any, inputs: Any, prior: Any
) -> tuple[Unknown, ...]:
    """The unknowns of a fit, in the order parameters, inputs, start values of each experiment. Raises `SolveError`.

    ``parameters``, ``start``, ``inputs``: names, or a mapping from names to bounds. ``several``: whether labels of
    start values contain the number of the experiment. ``prior``: a mapping from names to (mean, standard deviation).
    """
    d: Description = solver.description
    bounds = {
        kind: _bounds(given, known, kind.value)
        for kind, given, known in (
            (Kind.PARAMETER, parameters, d.parameters),
            (Kind.INPUT, inputs, d.inputs),
            (Kind.START, start, d.components),
        )
    }
    if not any(bounds.values()):
        raise SolveError("there is nothing to estimate: name parameters=, start= or inputs=")
    priors = by_name(prior or {}, [name for named in bounds.values() for name in named], "estimated quantity (prior)")
    unknowns = []
    for kind, named in bounds.items():
        for k, known in enumerate(starts if kind is Kind.START else starts[:1]):
            for name, (low, high) in named.items():
                value = _value_before(solver, known, kind, name)
                label = f"{name}[{k}]" if kind is Kind.START and several else name
                of_prior = _prior(priors[name], name) if name in priors else None
                place = k if kind is Kind.START else None
                scale = _scale(value, low, high, of_prior)
                unknowns.append(Unknown(name, kind, place, label, value, low, high, of_prior, scale))
    require_none([_outside(each) for each in unknowns if not each.low <= each.value <= each.high])
    return tuple(unknowns)


def _bounds(given: Any, known: Sequence[str], what: str) -> dict[str, tuple[float, float]]:
    if given is None:
        return {}
    if isinstance(given, str) or not isinstance(given, Iterable):
        given = (given,)
    named = by_name(given if isinstance(given, Mapping) else dict.fromkeys(given), known, what)
    if not isinstance(given, Mapping) and len(named) < len(list(given)):
        raise SolveError(f"a {what} to estimate is named twice: {', '.join(map(key_name, given))}")
    return {name: _interval(value, f"the bounds of {name}") for name, value in named.items()}


def _interval(given: Any, what: str) -> tuple[float, float]:
    if given is None:
        return -np.inf, np.inf
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable) or len(pair := list(given)) != 2:
        raise SolveError(f"{what} are {brief(given)}; expected (low, high), None for an open end, or None")
    low, high = (
        open_end if x is None else _bound(x, what) for x, open_end in zip(pair, (-np.inf, np.inf), strict=True)
    )
    if not low < high:
        raise SolveError(f"{what} are ({low!r}, {high!r}); expected a low bound below the high one")
    return low, high


def _bound(value: Any, what: str) -> float:
    if isinstance(value, float) and np.isinf(value):
        return float(value)
    return number(value, f"one of {what}")


def _prior(given: Any, name: str) -> tuple[float, float]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable) or len(pair := list(given)) != 2:
        raise SolveError(f"the prior of {name} is {brief(given)}; expected (mean, standard deviation)")
    return number(pair[0], f"the mean of the prior of {name}"), positive(
        pair[1], f"the deviation of the prior of {name}"
    )


def _value_before(solver: Any, start: Start, kind: Kind, name: str) -> float:
    """The value of an unknown before the fit. Raises `SolveError` if it has none."""
    d: Description = solver.description
    if kind is Kind.PARAMETER:
        value, how = solver.parameters[name], "solver.with_parameters"
    elif kind is Kind.START:
        value, how = start.values.get(name, solver.initial.get(name)), "q0=, u0=, s0= or solver.with_initial"
    else:
        default = next(slot.default for slot in d.input_slots if slot.name == name)
        value, how = _inputs_by_name(start.r, name).get(name, default), "r="
    if value is None:
        raise SolveError(f"the {kind.value} {name} has no value at which the fit could start: give one by {how}")
    return number(value, f"the {kind.value} {name}")


def _inputs_by_name(r: Any, name: str) -> dict[str, Any]:
    if r is not None and not isinstance(r, Mapping):
        raise SolveError(f"r is {brief(r)}; expected a mapping from names to inputs, because {name} is estimated")
    return {key_name(key): value for key, value in (r or {}).items()}


def with_inputs(r: Any, values: Mapping[str, float]) -> Any:
    """The inputs of a run with other values of some, which are constant."""
    return {**_inputs_by_name(r, next(iter(values))), **values} if values else r


def _scale(value: float, low: float, high: float, prior: tuple[float, float] | None) -> float:
    if value != 0.0:
        return abs(value)
    if prior is not None:
        return prior[1]
    return high - low if np.isfinite(high - low) else 1.0


def _outside(each: Unknown) -> str:
    return (
        f"the fit starts with {each.label} = {each.value!r}, which is not within its bounds ({each.low!r}, "
        f"{each.high!r}): change the bounds or the value"
    )


def array(unknowns: Sequence[Unknown], field: str) -> Array:
    """One field of all unknowns, (n,)."""
    return np.array([getattr(each, field) for each in unknowns], dtype=np.float64)
