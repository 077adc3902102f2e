"""The cost of samples of predictive control while a cart swings up its pole."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import sympy

from kanegen.arrays import Array
from kanegen.control.problem import OptimalControl
from kanegen.control.terms import Integral
from kanegen.modelfile import ModelFile

HORIZON, INTERVALS, SAMPLES = 1.0, 40, 120
"""The horizon, s, its intervals, which are as long as the time between samples, and the number of samples."""

_WEIGHTS: Final = (10.0, 10.0, 0.1, 0.1)
_EFFORT: Final = 0.01
_LIMITS: Final = {"F": (-20.0, 20.0), "x": (-2.0, 2.0)}


class SampleCosts(NamedTuple):
    """The least of the measured times of each sample, s, (SAMPLES,), and whether a bound was active in its plan."""

    seconds: Array
    limited: Array


def predictive_costs(file: ModelFile, rounds: int) -> SampleCosts:
    """Samples from the hanging pole at rest on, each at the state that the one before predicts, called from Python."""
    controller = _controller(file)
    states, limited = np.zeros((SAMPLES, 4)), np.zeros(SAMPLES, dtype=bool)
    best = np.full(SAMPLES, np.inf)
    for turn in range(rounds + 1):
        controller.reset()
        for k in range(SAMPLES):
            controller(k * HORIZON / INTERVALS, states[k, :2], states[k, 2:])
            if turn:
                best[k] = min(best[k], controller.seconds.last)
            else:
                limited[k] = controller.iterations > 0
                states[k + 1 : k + 2] = controller.prediction.states[1]
    return SampleCosts(best, limited)


def _controller(file: ModelFile) -> Any:
    model = file.model
    (x, theta), (v, w), force = model.coordinates, model.speeds, model.inputs[0].symbol
    errors = (x, theta - sympy.pi, v, w)
    cost = sum(weight * error**2 for weight, error in zip(_WEIGHTS, errors, strict=True)) + _EFFORT * force**2
    problem = OptimalControl(model, Integral(cost), HORIZON, bounds=_LIMITS)
    return problem.controller(HORIZON, HORIZON / INTERVALS, intervals=INTERVALS)
