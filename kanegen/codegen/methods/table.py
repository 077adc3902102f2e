"""The table of all integration methods. To add one, add a file of coefficients to this folder and its name here.

The C runtime with the numbers of the methods (``kg_methods.h``), the options of :meth:`kanegen.Solver.integrate` and
the command line all follow from this table. The coefficients are read when C code is generated.
"""

from __future__ import annotations

from typing import Final

NAMES: Final = ("rk4", "kutta_merson", "dopri5", "dop853", "rodas", "verner9")
"""All methods. The number of a method in C is its position here: add new methods at the end."""

FIXED_STEP: Final = ("rk4", "kutta_merson")
ADAPTIVE: Final = tuple(name for name in NAMES if name not in FIXED_STEP)
IMPLICIT: Final = ("rodas",)
"""The methods that need the Jacobian of the right-hand side."""

EMITTED: Final = tuple(name for name in NAMES if name != "verner9")
"""The methods of standalone projects and of FMUs, the default first; the coefficients of verner9 are longer than most
models."""
