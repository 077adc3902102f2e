"""One KanesMethod against the compiled model that kanegen reads from it."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from kane_reference import TIME, KaneReference, input_values
from sympy.physics.mechanics import KanesMethod, Particle, Point, ReferenceFrame, dynamicsymbols
from tolerances import SAME_EQUATIONS

import kanegen as kg

STATES = 3


@dataclass(frozen=True)
class Outcome:
    """What came of one KanesMethod: deviations relative to the terms, or a refusal, or an error.

    ``sympy_seconds`` is the time of ``kanes_equations``, ``kanegen_seconds`` that of ``from_kane`` and ``build``.
    """

    sizes: str
    sympy_seconds: float
    kanegen_seconds: float = 0.0
    deviation: float | None = None
    refusal: str = ""
    error: str = ""

    @property
    def agrees(self) -> bool:
        return self.deviation is not None and self.deviation < SAME_EQUATIONS


def compare(km: KanesMethod, sympy_seconds: float) -> Outcome:
    """Build the model of ``km`` and compare q' and u' at random states with SymPy's equations."""
    sizes = f"{len(km.q)} {len(km.u)} {len(km._udep)} {len(km._uaux)}"
    warm_up()
    start = time.perf_counter()
    try:
        model = kg.Model.from_kane(km, configuration_constraints="ignore")
        solver = kg.build(model)
    except kg.KanegenError as refusal:
        return Outcome(sizes, sympy_seconds, refusal=f"{type(refusal).__name__}: {refusal}")
    except Exception:
        return Outcome(sizes, sympy_seconds, error=traceback.format_exc())
    seconds = time.perf_counter() - start
    try:
        return Outcome(sizes, sympy_seconds, seconds, deviation=_deviation(km, model, solver))
    except Exception:
        return Outcome(sizes, sympy_seconds, seconds, error=traceback.format_exc())


def _deviation(km: KanesMethod, model: kg.Model, solver: kg.Solver) -> float:
    reference = KaneReference(km, model.parameters)
    found = []
    for state in reference.states(STATES):
        values = {str(symbol): state.values.get(symbol, 1.0) for symbol in model.parameters}
        q, u, r = state.of(reference.q), state.of(reference.u), input_values(model, state)
        qdot, udot = solver.with_parameters(values).rhs(state.values[TIME], q, u, r)
        found += [reference.kinematic_deviation(state, qdot), reference.deviation(state, udot)]
    return float(np.max(found))


@cache
def warm_up() -> None:
    """Compile what is compiled once per machine, so that no model is charged with it."""
    q, u = dynamicsymbols("q u")
    N, P = ReferenceFrame("N"), Point("P")
    P.set_vel(N, u * N.x)
    model: dict[str, Any] = {"coordinates": [q], "speeds": [u], "kinematics": [q.diff(TIME) - u]}
    kg.build(kg.Model(name="warm_up", frame=N, bodies=[Particle("P", P, 1)], **model))
