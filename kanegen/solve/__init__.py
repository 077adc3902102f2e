"""A built model with its parameters: evaluation, integration, and what they return."""

from kanegen.codegen.description import DESCRIPTION_FILE as DESCRIPTION_FILE
from kanegen.codegen.description import Description as Description
from kanegen.solve.analysis.inverse_dynamics import InverseDynamics as InverseDynamics
from kanegen.solve.analysis.linearize import Jacobian as Jacobian
from kanegen.solve.analysis.linearize import Linearization as Linearization
from kanegen.solve.analysis.structure import AccelerationParts as AccelerationParts
from kanegen.solve.contact.contacts import Contacts as Contacts
from kanegen.solve.contact.contacts import ContactState as ContactState
from kanegen.solve.contact.impulse import Impulse as Impulse
from kanegen.solve.control.saturation import ControlHistory as ControlHistory
from kanegen.solve.control.saturation import Saturation as Saturation
from kanegen.solve.control.servo import Feasibility as Feasibility
from kanegen.solve.control.servo import Underactuation as Underactuation
from kanegen.solve.outcome import Outcome as Outcome
from kanegen.solve.outcome import Statistics as Statistics
from kanegen.solve.results import Wrench as Wrench
from kanegen.solve.run.hybrid import ContactHistory as ContactHistory
from kanegen.solve.run.hybrid import EventRecord as EventRecord
from kanegen.solve.run.hybrid import Phase as Phase
from kanegen.solve.solution import IntegrationError as IntegrationError
from kanegen.solve.solution import IntegrationInterrupted as IntegrationInterrupted
from kanegen.solve.solution import Solution as Solution
from kanegen.solve.solver import Solver as Solver
