"""The costs of fits with derivatives of motions, against least squares with differences of motions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.cli.bench.timing import call_task, interleaved
from kanegen.identification.fit import fit
from kanegen.modelfile import ModelFile
from kanegen.pipeline import build

_NOISE: Final = 1e-3
"""Standard deviation of the measured coordinates, in their units."""

_TOLERANCE: Final = 1e-10
"""Relative changes below which both optimizers end."""


def fit_costs(
    file: ModelFile, unknowns: Sequence[str], motion: tuple[float, int], wrong: float, rounds: int
) -> dict[str, float]:
    """For a ``fit`` of parameters to all coordinates, and for ``differences`` in `scipy.optimize.least_squares`.

    ``motion``: its duration, s, and the number of sampled times. ``wrong``: the relative error of the first guess.
    """
    from scipy.optimize import least_squares

    solver, start, rng = build(file.model), file.start(), np.random.default_rng(1)
    run: Any = {"q0": start["q"], "u0": start["u"]}
    span, times = (0.0, motion[0]), np.linspace(0.0, *motion)
    angles = solver.integrate(span, **run, t_eval=times, rtol=1e-11).q
    measured = angles + _NOISE * rng.normal(size=angles.shape)
    first = np.array([solver.parameters[name] for name in unknowns]) * (1.0 + wrong * rng.normal(size=len(unknowns)))
    guess = solver.with_parameters(dict(zip(unknowns, first.tolist(), strict=True)))
    data = {"t": times, **dict(zip(solver.description.coordinates, measured.T, strict=True))}

    def residuals(scaled: Array) -> Array:
        values = dict(zip(unknowns, (scaled * first).tolist(), strict=True))
        found = guess.with_parameters(values).integrate(span, **run, t_eval=times)
        return np.asarray((found.q - measured) / _NOISE).ravel()

    tolerances: Any = dict.fromkeys(("ftol", "xtol", "gtol"), _TOLERANCE)
    tasks = {
        "fit": call_task(partial(fit, guess, data, parameters=unknowns, sigma=_NOISE, tolerance=_TOLERANCE, **run), 1),
        "differences": call_task(
            partial(least_squares, residuals, np.ones(len(first)), x_scale="jac", **tolerances), 1
        ),
    }
    return interleaved(tasks, rounds)
