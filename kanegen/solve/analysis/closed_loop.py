"""Derivatives of a model whose inputs follow feedback laws."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.solve.analysis.slopes import Evaluate
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.values import numbers

AT_KINK: Final = 1e-9
"""A state is at a kink of a law if the distance is below this fraction of the values of the laws, or of 1."""


def in_closed_loop(evaluate: Evaluate, description: Description) -> Evaluate:
    """The derivatives of a model whose laws act: those in an input with a law are zero."""
    slots = list(description.laws)

    def closed(name: str) -> Array:
        kind, _, argument = name.rpartition("_")
        value = evaluate(name)
        if argument not in ("q", "u", "s", "r", "t"):
            return value
        through = evaluate(f"{kind}_r")[:, slots]
        if argument == "r":
            value = value.copy()
            value[:, slots] = 0.0
        return np.asarray(value + through @ evaluate(f"laws_{argument}"))

    return closed


def closed_inputs(functions: CompiledFunctions, t: float, q: Any, u: Any, r: Any, s: Any) -> Array:
    """All inputs (n_r,), with the values of the laws.

    Raises `SolveError` for a model without laws, for sampled laws, and at a kink of a law.
    """
    d = functions.description
    if not d.laws:
        raise SolveError(
            f"closed_loop=True linearizes with the feedback laws of the model, but {d.name!r} has none: give "
            "kg.Input(..., law=...), or leave closed_loop=True out"
        )
    sampled = [d.inputs[k] for k, law in d.laws.items() if law.sample_time is not None]
    if sampled:
        raise SolveError(
            f"the laws of {', '.join(sampled)} are sampled, so that the closed loop has no linear differential "
            "equations: linearize without closed_loop=True and close the loop of the discretized model, or build a "
            "model whose laws have no sample_time"
        )
    if r is not None:
        r = numbers(r, "r", d.inputs)
        r[list(d.laws)] = 0.0
    values = functions.get("laws").value(t, q, u, r, s)
    inputs = functions.with_laws(["laws", "rhs"], t, q, u, None, s) if r is None else r
    inputs = np.zeros(len(d.inputs)) if inputs is None else inputs
    inputs[list(d.laws)] = values
    _refuse_kinks(functions, (t, q, u, inputs, s), values)
    return np.asarray(inputs)


def _refuse_kinks(functions: CompiledFunctions, state: tuple[Any, ...], values: Array) -> None:
    switches = functions.description.switches
    if not switches:
        return
    distances = functions.get("events").value(*state)[-len(switches) :]
    near = AT_KINK * max(1.0, float(np.abs(values).max()))
    kinks = [name for name, distance in zip(switches, distances, strict=True) if abs(distance) <= near]
    if kinks:
        raise SolveError(
            f"the model {functions.description.name!r} cannot be linearized at t = {state[0]!r} s with its laws, which "
            f"have a kink there: {', '.join(kinks)}; linearize beside the kink, or without closed_loop=True"
        )
