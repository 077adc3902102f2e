"""Whether two builds of an example have the same values."""

from __future__ import annotations

from typing import Final

import numpy as np
from systems import initial

import kanegen as kg

ROUNDING: Final = 1e-9
"""Most difference of two compilers, relative to the largest entry: positions may be close to singular ones."""


def require_agreement(name: str, usual: kg.Solver, solver: kg.Solver) -> None:
    """All functions have the same values up to rounding errors, at states near the start of the example."""
    assert solver.extension.digest != usual.extension.digest
    start, rng = initial(name), np.random.default_rng(0)
    r = [0.0] * len(solver.description.inputs) if start.get("r") is None else start["r"]
    for _ in range(3):
        q, u = (np.array(start[key]) + rng.uniform(-0.1, 0.1, len(start[key])) for key in ("q", "u"))
        for function in solver.description.functions:
            arguments = start["t"], q, u, r, start.get("s")
            values, expected = (np.asarray(s._functions.get(function).value(*arguments)) for s in (solver, usual))
            scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
            np.testing.assert_allclose(values, expected, rtol=0.0, atol=ROUNDING * scale, err_msg=function)
