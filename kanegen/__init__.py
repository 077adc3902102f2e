"""kanegen: constrained mechanical systems in SymPy, compiled to fast C solvers by Kane's method."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kanegen import plot as plot
from kanegen import results as results
from kanegen import shapes as shapes
from kanegen._version import __version__ as __version__
from kanegen.backends.cython.toolchain import CompilerOptions as CompilerOptions
from kanegen.derivation import Equations as Equations
from kanegen.derivation import derive as derive
from kanegen.errors import BuildError as BuildError
from kanegen.errors import DerivationError as DerivationError
from kanegen.errors import KanegenError as KanegenError
from kanegen.errors import ModelError as ModelError
from kanegen.errors import ModelWarning as ModelWarning
from kanegen.errors import SolveError as SolveError
from kanegen.errors import VerificationError as VerificationError
from kanegen.graph.functions import Function as Function
from kanegen.graph.functions import Spline as Spline
from kanegen.model import Baumgarte as Baumgarte
from kanegen.model import Bilateral as Bilateral
from kanegen.model import ControlConstraints as ControlConstraints
from kanegen.model import Coulomb as Coulomb
from kanegen.model import Event as Event
from kanegen.model import Friction as Friction
from kanegen.model import HuntCrossley as HuntCrossley
from kanegen.model import ImpactFunction as ImpactFunction
from kanegen.model import Input as Input
from kanegen.model import KelvinVoigt as KelvinVoigt
from kanegen.model import Latch as Latch
from kanegen.model import Model as Model
from kanegen.model import Multiplier as Multiplier
from kanegen.model import Projection as Projection
from kanegen.model import Reaction as Reaction
from kanegen.model import Restitution as Restitution
from kanegen.model import Servo as Servo
from kanegen.model import Stabilized as Stabilized
from kanegen.model import Unilateral as Unilateral
from kanegen.pipeline import build as build
from kanegen.reporting import report as report
from kanegen.solve import IntegrationError as IntegrationError
from kanegen.solve import IntegrationInterrupted as IntegrationInterrupted
from kanegen.solve import Outcome as Outcome
from kanegen.solve import Solution as Solution
from kanegen.solve import Solver as Solver
from kanegen.solve import animate as animate
from kanegen.solve import load as load
from kanegen.verification import verify as verify

if TYPE_CHECKING:
    from kanegen import interop as interop
    from kanegen.emission.casadi import emit_casadi as emit_casadi
    from kanegen.emission.fmu import export_fmu as export_fmu
    from kanegen.emission.project import emit as emit
    from kanegen.sweeps.designs import grid as grid
    from kanegen.sweeps.designs import sample as sample
    from kanegen.sweeps.results import SweepError as SweepError
    from kanegen.sweeps.results import SweepInterrupted as SweepInterrupted
    from kanegen.sweeps.sweep import sweep as sweep

_ON_USE = {
    "emit": "kanegen.emission.project",
    "emit_casadi": "kanegen.emission.casadi",
    "export_fmu": "kanegen.emission.fmu",
    **dict.fromkeys(("grid", "sample"), "kanegen.sweeps.designs"),
    **dict.fromkeys(("SweepError", "SweepInterrupted"), "kanegen.sweeps.results"),
    "sweep": "kanegen.sweeps.sweep",
}
"""What takes time to import, and its modules: writing projects and sweeps are not what most programs do."""


def __getattr__(name: str) -> Any:
    """Import what is not needed to build and solve on its first use."""
    if name == "interop":
        return import_module("kanegen.interop")
    if name in _ON_USE:
        return getattr(import_module(_ON_USE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ON_USE, "interop"})
