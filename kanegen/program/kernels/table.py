"""All runtime kernels by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kanegen.program.kernels import control, generalized, linear
from kanegen.program.kernels.records import Kernel

KERNELS: Final[Mapping[str, Kernel]] = MappingProxyType(
    {kernel.name: kernel for module in (linear, generalized, control) for kernel in module.KERNELS}
)
"""Every kernel by the name that a ``Call`` has; the C function is ``kg_<name>``."""
