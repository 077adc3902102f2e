"""A constrained kernel written by hand: a particle on a sloping track that is lifted by an input.

x' = u1, y' = u2; ``phi = y - s x - r``, so ``J = [-s, 1]``, ``b = r'' + G1 phi' + G2 phi``; mass m, gravity
g. The dependent speed is u2; for slopes above 1000 the kernel reports that it used others. It fails beyond x
= 1000.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from hashlib import sha256
from typing import Any

import numpy as np
from ccompile import host_source

from kanegen.backends.cython.extension import Extension, build
from kanegen.codegen.description import ConstraintLabels, FunctionEntry, InputSlot
from kanegen.codegen.sources import Sources, runtime_headers
from kanegen.solve import DESCRIPTION_FILE, Description, Solver

_OPERATIONS = {"rhs": 9, "rhs_stabilized": 17}
_FUNCTIONS = (
    *("rhs", "rhs_stabilized", "T", "V", "J", "b", "A", "multipliers"),
    *("kinetic_energy", "potential_energy", "energy", "residuals", "output:speed", "output:state"),
)


def input_slots(*defaults: float | None) -> tuple[InputSlot, ...]:
    """The inputs of the track, a height and its rates, with other defaults than zero."""
    names = ("lift", "lift_rate", "lift_acceleration")
    return tuple(map(InputSlot, names, defaults or (0.0, 0.0, 0.0), (None, 0, 1)))


CONSTRAINTS = ConstraintLabels(
    rows=("y - lift - slope*x",),
    positions=("y - lift - slope*x",),
    velocities=("d/dt (y - lift - slope*x)",),
    n_holonomic=1,
)
DESCRIPTION = Description(
    name="track",
    form="reduced",
    coordinates=("x", "y"),
    speeds=("u1", "u2"),
    input_slots=input_slots(),
    parameters=("g", "mass", "slope"),
    dependent=(1,),
    independent=(0,),
    constraints=CONSTRAINTS,
    outputs={"speed": (), "state": (2, 2)},
    functions={name: FunctionEntry(_OPERATIONS.get(name, 0), (0, 1, 2), (0, 1, 2), ()) for name in _FUNCTIONS},
)
PARAMETERS = {"g": 9.81, "mass": 2.0, "slope": 0.5}


def sources(*without: str) -> Sources:
    """The sources of the track, some functions left out."""
    text = host_source("track.c")
    macros = [f"WITHOUT_{name.replace(':', '_').upper()}" for name in without]
    assert all(f"#ifndef {macro}\n" in text for macro in macros), "the track cannot be built without this function"
    digest = sha256(repr(without).encode()).hexdigest()
    kernel = "".join([f'#define DIGEST "{digest}"\n', *(f"#define {macro}\n" for macro in macros), text])
    files = {"track.c": kernel, DESCRIPTION_FILE: DESCRIPTION.to_json(), **runtime_headers()}
    return Sources("track", digest, files)


@cache
def extension(*without: str) -> Extension:
    """The compiled track, built once per session."""
    return build(sources(*without))


def solver(parameters: Any = None, stabilization: Any = None, without: tuple[str, ...] = (), **changes: Any) -> Solver:
    """A solver of the track; ``changes`` are fields of the description."""
    values = PARAMETERS if parameters is None else parameters
    return Solver(extension(*without), replace(DESCRIPTION, **changes), values, stabilization)


def start(x: float = 0.3, speed: float = 0.2, slope: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """A consistent state for an input that is zero."""
    return np.array([x, slope * x]), np.array([speed, slope * speed])


def acceleration(slope: float = 0.5, g: float = 9.81, lift: float = 0.0) -> np.ndarray:
    """(u1', u2') on the manifold; ``lift`` is the acceleration of the input."""
    along = -slope * (g + lift) / (1.0 + slope**2)
    return np.array([along, slope * along + lift])
