"""The table of all integration methods. A new method is a module with its :class:`.Method`, and a line here.

The C runtime with the numbers of the methods (``kg_methods.h``), the options of :meth:`kanegen.Solver.integrate` and
the command line all follow from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kanegen.codegen.methods.classical import DOPRI5, KUTTA_MERSON, RK4
from kanegen.codegen.methods.dop853 import DOP853
from kanegen.codegen.methods.method import Method
from kanegen.codegen.methods.rodas import RODAS
from kanegen.codegen.methods.verner9 import VERNER9

METHODS: Final[Mapping[str, Method]] = MappingProxyType(
    {method.name: method for method in (RK4, KUTTA_MERSON, DOPRI5, DOP853, RODAS, VERNER9)}
)
"""All methods by name. The number of a method in C is its place in this order: add new methods at the end."""

FIXED_STEP: Final = tuple(name for name, method in METHODS.items() if not method.is_adaptive)
ADAPTIVE: Final = tuple(name for name, method in METHODS.items() if method.is_adaptive)
