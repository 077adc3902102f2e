"""Inputs of an integration that are sampled and held."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.protocol import Evaluator
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.solve.inputs.sources import RunInputs, Scalar, State, of_scalars, with_laws
from kanegen.solve.values import number


def held(
    module: Evaluator,
    description: Description,
    inputs: RunInputs,
    times: tuple[float, float],
    start: tuple[float, State],
    needed: Collection[int],
) -> RunInputs:
    """The inputs, sampled at multiples of the sample time after the start of a run and held in between.

    An input of which a rate is in ``needed`` (indices) stays continuous: a value that is held has no rate.

    Parameters
    ----------
    times
        Sample time and delay (s), from `sample_times`: the values for the state at t_k act from t_k + delay on. Before
        the first of them acts, inputs have their defaults or, without one, the values of the first sample.
    start
        Time and state at the start of the run, from which the first sample is computed.

    Raises
    ------
    SolveError
        If the first sample cannot be computed, has the wrong shape or is not finite, and if inputs that must stay
        continuous are not given by themselves.
    """
    laws, (sample_time, delay), own = inputs.laws, times, inputs.without_laws or inputs
    first, rated = _first_sample(own, description, *start), _with_rates(description, needed)
    others = of_scalars(module, description, _unsampled(own, description, rated))
    defaults = (slot.default for slot in description.input_slots)
    before = np.array([np.nan if default is None else default for default in defaults])
    excluded = {*rated, *(() if laws is None else laws.slots)}
    slots = [k for k in range(len(first)) if k not in excluded]
    infinite = np.full(len(slots), np.inf)
    options = {"sample_time": sample_time, "delay": delay, "before": before[slots], "first": first[slots]}
    control = module.Control(own.compiled, slots, -infinite, infinite, **options)
    acting = first if delay == 0.0 else np.where(np.isnan(before), first, before)

    def values(t: float, *state: Any) -> Array:
        r = np.array(others.function(t, *state), dtype=np.float64)
        r[slots] = acting[slots]
        return r

    changes = replace(others.changes, breakpoints=own.changes.breakpoints if rated else ())
    sampled = RunInputs(others.compiled, values, others.n_arguments, (control,), held=tuple(slots), changes=changes)
    return sampled if laws is None else with_laws(module, sampled, laws)


def _first_sample(inputs: RunInputs, description: Description, t: float, state: State) -> Array:
    try:
        first = np.array(inputs.at(t, state), dtype=np.float64)
    except SolveError:
        raise
    except Exception as error:
        raise SolveError(f"r cannot be evaluated at the start, t = {t!r} s: {type(error).__name__}: {error}") from error
    for name, value in zip(description.inputs, first.tolist(), strict=True):
        number(value, f"{name} (r at t = {t!r} s)")
    return first


def _with_rates(description: Description, needed: Collection[int]) -> set[int]:
    """Indices of the inputs of which rates are needed, and of these rates."""
    rated, slots = set(), description.input_slots
    for k in needed:
        base = slots[k].rate_of
        while base is not None:
            rated |= {k, base}
            base = slots[base].rate_of
    return rated


def _unsampled(inputs: RunInputs, description: Description, rated: Collection[int]) -> list[Scalar]:
    """A scalar for every input: those that stay continuous, and zeros."""
    names = [description.inputs[k] for k in sorted(rated)]
    if rated and inputs.scalars is None:
        raise SolveError(
            f"the equations need rates of inputs, which values that are held do not have: give r as a mapping, in "
            f"which {', '.join(names)} stay continuous, or leave out sample_time"
        )
    return [inputs.scalars[k] if inputs.scalars and k in rated else 0.0 for k in range(len(description.inputs))]


def sample_times(sample_time: float | None, delay: float | None) -> tuple[float, float]:
    """The sample time and the delay (s) as numbers; 0: inputs are not sampled, or not delayed.

    Raises `SolveError` for a delay of inputs that are not sampled.
    """
    if sample_time is None and delay is not None:
        raise SolveError(
            f"delay is {delay!r}, but sample_time is not given: only sampled values can be delayed, because with a "
            "continuous delay the derivative of the state would depend on earlier states; give sample_time="
        )
    return float(sample_time or 0.0), float(delay or 0.0)
