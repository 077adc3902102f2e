"""Models of one particle on a line, whose motions have derivatives in closed form, and differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sympy
import sympy.physics.mechanics as me
from numpy.typing import NDArray

import kanegen as kg

Array = NDArray[np.float64]

x, v = me.dynamicsymbols("x v")
k, m, c, F, a = sympy.symbols("k m c F a", real=True)
RATE = x.diff(me.dynamicsymbols._t)


def line(name: str, force: Any, parameters: Mapping[Any, float], **more: Any) -> kg.Model:
    """A particle of mass m = 1 under a force in x, v, inputs and parameters.

    ``reactions``: a function that makes them from the frame and the particle's point.
    """
    N, O = me.ReferenceFrame("N"), me.Point("O")
    P = O.locatenew("P", x * N.x)
    O.set_vel(N, 0)
    P.set_vel(N, v * N.x)
    description = {
        "frame": N,
        "bodies": [me.Particle("P", P, m)],
        "loads": [(P, force * N.x)],
        "coordinates": [x],
        "speeds": [v],
        "kinematics": [RATE - v],
        "parameters": {m: 1.0, **parameters},
    }
    if "reactions" in more:
        more["reactions"] = more["reactions"](N, P)
    return kg.Model(name=name, **(description | more))


def differences(function: Callable[[float], Any], step: float) -> Any:
    """The derivative at 0 by central differences of order 6."""
    weights = {1: 3.0 / 4.0, 2: -3.0 / 20.0, 3: 1.0 / 60.0}
    return sum(w * (function(n * step) - function(-n * step)) for n, w in weights.items()) / step
