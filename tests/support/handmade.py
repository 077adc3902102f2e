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
from ccompile import host_source
from numpy.typing import NDArray

from kanegen.backends.cython.extension import build
from kanegen.codegen.sources import Sources, runtime_headers


def pendulum(name: str = "pendulum", *, abi: str = "KG_ABI", change: tuple[str, str] = ("", "")) -> Sources:
    """The sources of the pendulum; ``change`` replaces one text in the kernel by another."""
    digest = sha256(f"{name} {abi} {change}".encode()).hexdigest()
    text = host_source("pendulum.c").replace(*change) if change[0] else host_source("pendulum.c")
    kernel = f'#define NAME "{name}"\n#define DIGEST "{digest}"\n#define ABI {abi}\n{text}'
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
