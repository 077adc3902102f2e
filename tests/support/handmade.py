"""A kernel written by hand: a damped pendulum, so that the build layer is tested without the generator.

theta' = omega; l^2 omega' = -g l sin(theta) - omega + torque + gain theta, for unit mass and damping.
prepare() fills in l^2 / 2. The function `singular` always fails and `moved` always reports another partition.
"""

from __future__ import annotations

import math
from functools import cache
from hashlib import sha256
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.backends.cython import build
from kanegen.codegen.environment import runtime_headers
from kanegen.codegen.sources import Sources

KERNEL = r"""
#include "kg_model.h"

#define ARGUMENTS                                                                                        \
  kg_real t, const kg_real *KG_RESTRICT q, const kg_real *KG_RESTRICT u, const kg_real *KG_RESTRICT r,   \
      const kg_real *KG_RESTRICT p, kg_real *KG_RESTRICT work, kg_real *KG_RESTRICT out
#define UNUSED (void)t, (void)q, (void)u, (void)r, (void)p, (void)work, (void)out

static void prepare(kg_real *p) { p[3] = KG_C(0.5) * p[1] * p[1]; }

static int rhs(ARGUMENTS) {
  UNUSED;
  work[0] = -p[0] * p[1] * KG_SIN(q[0]) - u[0] + r[0] + p[2] * q[0];
  out[0] = u[0];
  out[1] = work[0] / (p[1] * p[1]);
  return KG_OK;
}

static int T(ARGUMENTS) {
  UNUSED;
  out[0] = KG_C(2.0) * p[3];
  return KG_OK;
}

static int V(ARGUMENTS) {
  UNUSED;
  out[0] = -p[0] * p[1] * KG_SIN(q[0]) - u[0] + r[0];
  return KG_OK;
}

static int wide(ARGUMENTS) {
  UNUSED;
  out[0] = t; out[1] = q[0]; out[2] = u[0]; out[3] = r[0]; out[4] = p[0]; out[5] = p[2];
  return KG_OK;
}

static int kinetic_energy(ARGUMENTS) {
  UNUSED;
  out[0] = p[3] * u[0] * u[0];
  return KG_OK;
}

static int singular(ARGUMENTS) {
  UNUSED;
  return KG_SINGULAR;
}

static int moved(ARGUMENTS) {
  UNUSED;
  out[0] = u[0];
  out[1] = r[0];
  return KG_REPARTITIONED;
}

static const char *const coordinates[] = {"theta"};
static const char *const speeds[] = {"omega"};
static const char *const inputs[] = {"torque"};
static const char *const parameters[] = {"g", "l"};
static const kg_function functions[] = {
    {"rhs", 2, 0, 1, rhs},   {"T", 1, 1, 0, T},           {"V", 1, 0, 0, V},
    {"wide", 2, 3, 0, wide}, {"singular", 2, 0, 0, singular}, {"moved", 2, 0, 0, moved},
    {"kinetic_energy", -1, 0, 0, kinetic_energy},
};
static const kg_model model = {ABI, "NAME", "DIGEST", 1, 1, 1, 2, 1, 4, coordinates, speeds, inputs,
                               parameters, prepare, 7, functions};

const kg_model *kg_get_model(void);
const kg_model *kg_get_model(void) { return &model; }
"""


def pendulum(name: str = "pendulum", *, abi: str = "KG_ABI", change: tuple[str, str] = ("", "")) -> Sources:
    """The sources of the pendulum; ``change`` replaces one text in the kernel by another."""
    digest = sha256(f"{name} {abi} {change}".encode()).hexdigest()
    kernel = KERNEL.replace(*change) if change[0] else KERNEL
    kernel = kernel.replace("ABI, ", f"{abi}, ", 1).replace("NAME", name).replace("DIGEST", digest)
    return Sources(name, digest, {f"{name}.c": kernel, **runtime_headers()})


def pendulum_rhs(
    theta: float, omega: float, torque: float = 0.0, g: float = 9.81, length: float = 0.7, gain: float = 0.0
) -> NDArray[np.float64]:
    """(theta', omega') of the kernel, in Python."""
    moment = -g * length * math.sin(theta) - omega + torque + gain * theta
    return np.array([omega, moment / (length * length)])


@cache
def pendulum_module() -> ModuleType:
    """The compiled pendulum, built once per session."""
    return build(pendulum()).module


def pendulum_function(name: str = "rhs", inputs: object = (0.0,), gain: float = 0.0) -> Any:
    """A function of the compiled pendulum with g = 9.81 and l = 0.7."""
    module = pendulum_module()
    return module.Function(name, module.Prepared([9.81, 0.7], [gain]), inputs)
