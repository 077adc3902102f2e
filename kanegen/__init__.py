"""kanegen: constrained mechanical systems in SymPy, compiled to fast C solvers by Kane's method."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kanegen._version import __version__ as __version__

if TYPE_CHECKING:
    from kanegen import geometry as geometry
    from kanegen import interop as interop
    from kanegen import plot as plot
    from kanegen import results as results
    from kanegen import shapes as shapes
    from kanegen import tires as tires
    from kanegen.backends.cython.toolchain import CompilerOptions as CompilerOptions
    from kanegen.control.joints import PlasticImpact as PlasticImpact
    from kanegen.control.motion import OptimalControlError as OptimalControlError
    from kanegen.control.motion import OptimalMotion as OptimalMotion
    from kanegen.control.predictive.controller import PredictiveController as PredictiveController
    from kanegen.control.problem import OptimalControl as OptimalControl
    from kanegen.control.terms import AtEnd as AtEnd
    from kanegen.control.terms import AtStart as AtStart
    from kanegen.control.terms import AtTime as AtTime
    from kanegen.control.terms import Duration as Duration
    from kanegen.control.terms import Integral as Integral
    from kanegen.control.terms import SampleSum as SampleSum
    from kanegen.control.together import Phases as Phases
    from kanegen.control.together import Trials as Trials
    from kanegen.control.tracking import TrackingFeedback as TrackingFeedback
    from kanegen.derivation import Equations as Equations
    from kanegen.derivation import derive as derive
    from kanegen.emission.casadi import emit_casadi as emit_casadi
    from kanegen.emission.fmu import export_fmu as export_fmu
    from kanegen.emission.jax import emit_jax as emit_jax
    from kanegen.emission.project import emit as emit
    from kanegen.errors import BuildError as BuildError
    from kanegen.errors import DerivationError as DerivationError
    from kanegen.errors import FileError as FileError
    from kanegen.errors import KanegenError as KanegenError
    from kanegen.errors import ModelError as ModelError
    from kanegen.errors import ModelWarning as ModelWarning
    from kanegen.errors import SolveError as SolveError
    from kanegen.errors import VerificationError as VerificationError
    from kanegen.flexible.beam import Beam as Beam
    from kanegen.flexible.beam import beam as beam
    from kanegen.flexible.body import FlexibleBody as FlexibleBody
    from kanegen.graph.functions import Function as Function
    from kanegen.graph.functions import Spline as Spline
    from kanegen.graph.tables import Table as Table
    from kanegen.identification.data import Experiment as Experiment
    from kanegen.identification.fit import fit as fit
    from kanegen.identification.information import fisher_information as fisher_information
    from kanegen.identification.result import IdentificationError as IdentificationError
    from kanegen.logic.modes import Modes as Modes
    from kanegen.logic.modes import Transition as Transition
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
    from kanegen.reporting.report import report as report
    from kanegen.robots.model import RobotModel as RobotModel
    from kanegen.robots.model import from_urdf as from_urdf
    from kanegen.solve import IntegrationError as IntegrationError
    from kanegen.solve import IntegrationInterrupted as IntegrationInterrupted
    from kanegen.solve import Objective as Objective
    from kanegen.solve import Outcome as Outcome
    from kanegen.solve import Signal as Signal
    from kanegen.solve import Solution as Solution
    from kanegen.solve import Solver as Solver
    from kanegen.solve import animate as animate
    from kanegen.solve import load as load
    from kanegen.sweeps.designs import grid as grid
    from kanegen.sweeps.designs import sample as sample
    from kanegen.sweeps.results import SweepError as SweepError
    from kanegen.sweeps.results import SweepInterrupted as SweepInterrupted
    from kanegen.sweeps.sweep import sweep as sweep
    from kanegen.verification import verify as verify

_MODULES: Final = ("geometry", "interop", "plot", "results", "shapes", "tires")
"""Modules that are part of the interface."""

_NAMES: Final = {
    "kanegen.backends.cython.toolchain": ("CompilerOptions",),
    "kanegen.control.joints": ("PlasticImpact",),
    "kanegen.control.motion": (
        "OptimalControlError",
        "OptimalMotion",
    ),
    "kanegen.control.problem": ("OptimalControl",),
    "kanegen.control.terms": (
        "AtEnd",
        "AtStart",
        "AtTime",
        "Duration",
        "Integral",
        "SampleSum",
    ),
    "kanegen.control.together": (
        "Phases",
        "Trials",
    ),
    "kanegen.control.predictive.controller": ("PredictiveController",),
    "kanegen.control.tracking": ("TrackingFeedback",),
    "kanegen.derivation": (
        "Equations",
        "derive",
    ),
    "kanegen.emission.casadi": ("emit_casadi",),
    "kanegen.emission.fmu": ("export_fmu",),
    "kanegen.emission.jax": ("emit_jax",),
    "kanegen.emission.project": ("emit",),
    "kanegen.errors": (
        "BuildError",
        "DerivationError",
        "FileError",
        "KanegenError",
        "ModelError",
        "ModelWarning",
        "SolveError",
        "VerificationError",
    ),
    "kanegen.flexible.beam": (
        "Beam",
        "beam",
    ),
    "kanegen.flexible.body": ("FlexibleBody",),
    "kanegen.graph.functions": (
        "Function",
        "Spline",
    ),
    "kanegen.graph.tables": ("Table",),
    "kanegen.identification.data": ("Experiment",),
    "kanegen.identification.fit": ("fit",),
    "kanegen.identification.information": ("fisher_information",),
    "kanegen.identification.result": ("IdentificationError",),
    "kanegen.logic.modes": (
        "Modes",
        "Transition",
    ),
    "kanegen.model": (
        "Baumgarte",
        "Bilateral",
        "ControlConstraints",
        "Coulomb",
        "Event",
        "Friction",
        "HuntCrossley",
        "ImpactFunction",
        "Input",
        "KelvinVoigt",
        "Latch",
        "Model",
        "Multiplier",
        "Projection",
        "Reaction",
        "Restitution",
        "Servo",
        "Stabilized",
        "Unilateral",
    ),
    "kanegen.pipeline": ("build",),
    "kanegen.reporting.report": ("report",),
    "kanegen.robots.model": (
        "RobotModel",
        "from_urdf",
    ),
    "kanegen.solve": (
        "IntegrationError",
        "IntegrationInterrupted",
        "Objective",
        "Outcome",
        "Signal",
        "Solution",
        "Solver",
        "animate",
        "load",
    ),
    "kanegen.sweeps.designs": (
        "grid",
        "sample",
    ),
    "kanegen.sweeps.results": (
        "SweepError",
        "SweepInterrupted",
    ),
    "kanegen.sweeps.sweep": ("sweep",),
    "kanegen.verification": ("verify",),
}
"""The names of the interface by the module that defines them, which is imported when a name is first used: a model from
the cache needs a third of the package."""

_HOMES: Final = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a part of the interface on its first use."""
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"kanegen.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
