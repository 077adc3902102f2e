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

from kanegen.backends.cython import Extension, build
from kanegen.codegen.description import ConstraintLabels, FunctionEntry, InputSlot
from kanegen.codegen.environment import runtime_headers
from kanegen.codegen.sources import Sources
from kanegen.solve import DESCRIPTION_FILE, Description, Solver

_FUNCTIONS = {
    "rhs": (4, 0, "return accelerate(t, u, p, r[2], out);"),
    "rhs_stabilized": (4, 0, "return accelerate(t, u, p, bias(q, u, r, p), out);"),
    "T": (2, 2, "out[0] = -p[2]; out[1] = KG_C(1.0); out[2] = p[1]; out[3] = p[2] * p[1];"),
    "V": (2, 0, "out[0] = bias(q, u, r, p); out[1] = -p[2] * p[1] * p[0];"),
    "J": (1, 2, "out[0] = -p[2]; out[1] = KG_C(1.0);"),
    "b": (1, 0, "out[0] = bias(q, u, r, p);"),
    "A": (1, 1, "out[0] = p[2];"),
    "multipliers": (
        1,
        0,
        "int status = accelerate(t, u, p, bias(q, u, r, p), work); out[0] = p[1] * (work[3] + p[0]); return status;",
    ),
    "kinetic_energy": (-1, 0, "out[0] = KG_C(0.5) * p[1] * (u[0] * u[0] + u[1] * u[1]);"),
    "potential_energy": (-1, 0, "out[0] = p[1] * p[0] * q[1];"),
    "energy": (-1, 0, "out[0] = p[1] * (KG_C(0.5) * (u[0] * u[0] + u[1] * u[1]) + p[0] * q[1]);"),
    "residuals": (2, 0, "out[0] = q[1] - p[2] * q[0] - r[0]; out[1] = u[1] - p[2] * u[0] - r[1];"),
    "output:speed": (-1, 0, "out[0] = KG_SQRT(u[0] * u[0] + u[1] * u[1]);"),
    "output:state": (2, 2, "out[0] = q[0]; out[1] = q[1]; out[2] = u[0]; out[3] = u[1];"),
}
"""Rows, columns and body of every function; p = g, m, s, G1, G2 and r = lift, its rate and acceleration."""

_KERNEL = r"""
#include "kg_model.h"

static kg_real bias(const kg_real *q, const kg_real *u, const kg_real *r, const kg_real *p) {
  return r[2] + p[3] * (u[1] - p[2] * u[0] - r[1]) + p[4] * (q[1] - p[2] * q[0] - r[0]);
}

static int accelerate(kg_real t, const kg_real *u, const kg_real *p, kg_real b, kg_real *out) {
  const kg_real s = p[2];
  out[0] = u[0];
  out[1] = u[1];
  out[2] = -s * (p[0] + b) / (KG_C(1.0) + s * s);
  out[3] = s * out[2] + b;
  if (t > KG_C(1000.0)) { return KG_SINGULAR; }
  return s > KG_C(1000.0) ? KG_REPARTITIONED : KG_OK;
}

static void prepare(kg_real *p) { (void)p; }
"""

_ENDING = r"""
static const char *const coordinates[] = {"x", "y"}; static const char *const speeds[] = {"u1", "u2"}; static
const char *const inputs[] = {"lift", "lift_rate", "lift_acceleration"}; static const char *const parameters[]
= {"g", "mass", "slope"}; static const kg_function functions[] = {TABLE}; static const kg_model model =
{KG_ABI, "track", "DIGEST", 2, 2, 3, 3, 2, 5, coordinates, speeds, inputs, parameters,
                               prepare, COUNT, functions};
const kg_model *kg_get_model(void);
const kg_model *kg_get_model(void) { return &model; }
"""

_OPERATIONS = {"rhs": 9, "rhs_stabilized": 17}


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
    potential_energy=True,
    outputs={"speed": (), "state": (2, 2)},
    functions={name: FunctionEntry(_OPERATIONS.get(name, 0), (0, 1, 2), (0, 1, 2)) for name in _FUNCTIONS},
)
PARAMETERS = {"g": 9.81, "mass": 2.0, "slope": 0.5}


def sources(*without: str) -> Sources:
    """The sources of the track, some functions left out."""
    kept = {name: value for name, value in _FUNCTIONS.items() if name not in without}
    arguments = (
        "kg_real t, const kg_real *KG_RESTRICT q, const kg_real *KG_RESTRICT u, const kg_real *KG_RESTRICT "
        "r, "
        "const kg_real *KG_RESTRICT p, kg_real *KG_RESTRICT work, kg_real *KG_RESTRICT out"
    )
    unused = "(void)t; (void)q; (void)u; (void)r; (void)p; (void)work; (void)out;"
    bodies = [
        f"static int f{k}({arguments}) {{ {unused} {body} {'' if 'return' in body else 'return KG_OK;'} }}\n"
        for k, (_, _, body) in enumerate(kept.values())
    ]
    table = ", ".join(
        f'{{"{name}", {rows}, {cols}, 4, f{k}}}' for k, (name, (rows, cols, _)) in enumerate(kept.items())
    )
    ending = _ENDING.replace("TABLE", table).replace("COUNT", str(len(kept)))
    digest = sha256(repr(without).encode()).hexdigest()
    kernel = _KERNEL + "".join(bodies) + ending.replace("DIGEST", digest)
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
