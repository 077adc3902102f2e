"""Derivatives of a model whose inputs follow feedback laws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.solve.analysis.sizes import terms_of
from kanegen.solve.analysis.slopes import Slopes
from kanegen.solve.functions import CompiledFunctions

AT_KINK: Final = 1e-9
"""A state is at a kink of a law if the distance from it is below this fraction of the terms of the distance."""


class ClosedSlopes(Slopes):
    """Derivatives of a model in which the laws of the inputs ``slots`` act: those in these inputs are zero."""

    def __init__(self, base: Slopes, slots: Sequence[int]) -> None:
        super().__init__(base.evaluate, base.description)
        self._base, self._slots, self.outputs, self.rows = base, list(slots), base.outputs, base.rows
        order = list(self.description.laws)
        self._places = [order.index(slot) for slot in slots]

    def of(self, name: str, argument: str) -> Array:
        """The derivatives of one function with respect to one argument, (rows, columns)."""
        own = self._base.of(name, argument)
        if name == "laws" or argument not in ("q", "u", "s", "r", "t"):
            return own
        through = self._base.of(name, "r")[:, self._slots]
        if argument == "r":
            own = own.copy()
            own[:, self._slots] = 0.0
        return np.asarray(own + through @ self._base.of("laws", argument)[self._places])


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
    require_continuous(d, tuple(d.laws))
    r = None if r is None else functions.inputs_beside_laws(r)
    values = functions.get("laws").value(t, q, u, r, s)
    inputs = functions.with_laws(["laws", "rhs"], t, q, u, None, s) if r is None else r
    inputs = np.zeros(len(d.inputs)) if inputs is None else inputs
    inputs[list(d.laws)] = values
    refuse_kinks(functions, (t, q, u, inputs, s))
    return np.asarray(inputs)


def require_continuous(d: Description, slots: Sequence[int]) -> None:
    """Raise `SolveError` for inputs whose laws are sampled."""
    sampled = [d.inputs[k] for k in slots if d.laws[k].sample_time is not None]
    if sampled:
        raise SolveError(
            f"the laws of {', '.join(sampled)} are sampled, so that the closed loop has no linear differential "
            "equations: linearize without closed_loop=True and close the loop of the discretized model, or build a "
            "model whose laws have no sample_time"
        )


def refuse_kinks(functions: CompiledFunctions, state: tuple[Any, ...]) -> None:
    """Raise `SolveError` at a kink of a law."""
    switches = functions.description.switches
    if not switches:
        return
    guards = np.asarray(Point(*state).evaluate(functions.get("events").value))
    near = np.abs(guards) <= AT_KINK * terms_of(functions, "events", guards, state[0], state[1:])
    kinks = [name for name, is_near in zip(switches, near[-len(switches) :], strict=True) if is_near]
    if kinks:
        raise SolveError(
            f"the model {functions.description.name!r} cannot be linearized at t = {state[0]!r} s with its laws, which "
            f"have a kink there: {', '.join(kinks)}; linearize beside the kink, or without closed_loop=True"
        )
