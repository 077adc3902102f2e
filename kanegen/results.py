"""The records in which a :class:`~kanegen.Solver` and a :class:`~kanegen.Solution` hand back results.

They are read, never constructed, by users: for annotations and ``isinstance`` only.
"""

from kanegen.codegen.description import Description as Description
from kanegen.identification.identifiability import Identifiability as Identifiability
from kanegen.identification.information import Information as Information
from kanegen.identification.result import Fit as Fit
from kanegen.identification.result import FittedMotion as FittedMotion
from kanegen.pages import Page as Page
from kanegen.solve.analysis.continuation import Branch as Branch
from kanegen.solve.analysis.equilibrium import Equilibrium as Equilibrium
from kanegen.solve.analysis.equilibrium import SteadyMotion as SteadyMotion
from kanegen.solve.analysis.linearize import Jacobian as Jacobian
from kanegen.solve.analysis.linearize import Linearization as Linearization
from kanegen.solve.contacts import Contacts as Contacts
from kanegen.solve.contacts import ContactState as ContactState
from kanegen.solve.contacts import Impulse as Impulse
from kanegen.solve.evaluation import AccelerationParts as AccelerationParts
from kanegen.solve.evaluation import Wrench as Wrench
from kanegen.solve.gradients.orbit_curves import Bifurcation as Bifurcation
from kanegen.solve.gradients.orbit_curves import PeriodicCurve as PeriodicCurve
from kanegen.solve.gradients.orbits import PeriodicMotion as PeriodicMotion
from kanegen.solve.inverse import InverseDynamics as InverseDynamics
from kanegen.solve.many.batch import Batch as Batch
from kanegen.solve.many.batch import Failures as Failures
from kanegen.solve.many.batch import Rates as Rates
from kanegen.solve.many.results import Ensemble as Ensemble
from kanegen.solve.many.results import EnsembleSensitivities as EnsembleSensitivities
from kanegen.solve.many.results import Failure as Failure
from kanegen.solve.servo import Feasibility as Feasibility
from kanegen.solve.servo import Underactuation as Underactuation
from kanegen.solve.solution import ContactHistory as ContactHistory
from kanegen.solve.solution import ControlHistory as ControlHistory
from kanegen.solve.solution import EventRecord as EventRecord
from kanegen.solve.solution import Phase as Phase
from kanegen.solve.solution import RunRecord as RunRecord
from kanegen.solve.solution import Saturation as Saturation
from kanegen.solve.solution import Statistics as Statistics
from kanegen.solve.solution.sensitivities import Sensitivities as Sensitivities
from kanegen.sweeps.designs import Design as Design
from kanegen.sweeps.results import MemberFailure as MemberFailure
from kanegen.sweeps.results import Sweep as Sweep
from kanegen.sweeps.stores import MemberStatus as MemberStatus
from kanegen.sweeps.tasks import Member as Member
from kanegen.units import Unit as Unit
from kanegen.units import Units as Units
from kanegen.view.animation import Animation as Animation
