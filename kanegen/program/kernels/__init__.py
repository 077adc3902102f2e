"""The runtime kernels that programs call, with their Python twins."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kanegen.program.kernels import linear, singular
from kanegen.program.records import Kernel

KERNELS: Final[Mapping[str, Kernel]] = MappingProxyType(
    {kernel.name: kernel for kernel in (*linear.KERNELS, *singular.KERNELS)}
)
"""Every kernel by the name that a ``Call`` has; the C function is ``kg_<name>``."""
