"""One KanesMethod or LagrangesMethod against the compiled model that kanegen reads from it."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from kane_reference import TIME, KaneReference, input_values
from lagrange_reference import LagrangeReference
from sympy.physics.mechanics import KanesMethod, LagrangesMethod, Particle, Point, ReferenceFrame, dynamicsymbols
from tolerances import SAME_EQUATIONS

import kanegen as kg

STATES = 3


@dataclass(frozen=True)
class Outcome:
    """What came of one method: deviations relative to the terms, or a refusal, or an error.

    ``sympy_seconds`` is the time of SymPy's equations, ``kanegen_seconds`` that of reading and ``build``.
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


def compare(method: KanesMethod | LagrangesMethod, sympy_seconds: float) -> Outcome:
    """Build the model of ``method`` and compare q' and u' at random states with SymPy's equations."""
    of_kane = isinstance(method, KanesMethod)
    n_d, n_aux = (len(method._udep), len(method._uaux)) if of_kane else (len(method.coneqs), 0)
    sizes = f"{len(method.q)} {len(method.u)} {n_d} {n_aux}"
    warm_up()
    start = time.perf_counter()
    try:
        model = read(method)
        solver = kg.build(model)
    except kg.KanegenError as refusal:
        return Outcome(sizes, sympy_seconds, refusal=f"{type(refusal).__name__}: {refusal}")
    except Exception:
        return Outcome(sizes, sympy_seconds, error=traceback.format_exc())
    seconds = time.perf_counter() - start
    try:
        return Outcome(sizes, sympy_seconds, seconds, deviation=_deviation(method, model, solver))
    except Exception:
        return Outcome(sizes, sympy_seconds, seconds, error=traceback.format_exc())


def read(method: KanesMethod | LagrangesMethod) -> kg.Model:
    if isinstance(method, KanesMethod):
        return kg.Model.from_kane(method, configuration_constraints="ignore")
    return kg.Model.from_lagrange(method)


def _deviation(method: KanesMethod | LagrangesMethod, model: kg.Model, solver: kg.Solver) -> float:
    of_kane = isinstance(method, KanesMethod)
    reference = (KaneReference if of_kane else LagrangeReference)(method, model.parameters)
    found = []
    for state in reference.states(STATES):
        values = {str(symbol): state.values.get(symbol, 1.0) for symbol in model.parameters}
        q, u, r = state.of(reference.q), state.of(reference.u), input_values(model, state)
        bound = solver.with_parameters(values)
        qdot, udot = bound.rhs(state.values[TIME], q, u, r)
        lam = [] if of_kane else [bound.multipliers(state.values[TIME], q, u, r)]
        deviation = reference.deviation(state, np.concatenate([udot, *lam]))
        found += [reference.kinematic_deviation(state, qdot), deviation]
    return float(np.max(found))


@cache
def warm_up() -> None:
    """Compile what is compiled once per machine, so that no model is charged with it."""
    q, u = dynamicsymbols("q u")
    N, P = ReferenceFrame("N"), Point("P")
    P.set_vel(N, u * N.x)
    model: dict[str, Any] = {"coordinates": [q], "speeds": [u], "kinematics": [q.diff(TIME) - u]}
    kg.build(kg.Model(name="warm_up", frame=N, bodies=[Particle("P", P, 1)], **model))
