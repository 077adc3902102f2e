"""A built model with its parameters: evaluation, integration, and what they return."""

from kanegen.solve.contact import Contacts as Contacts
from kanegen.solve.contact import ContactState as ContactState
from kanegen.solve.control import Feasibility as Feasibility
from kanegen.solve.control import Underactuation as Underactuation
from kanegen.solve.control_history import ControlHistory as ControlHistory
from kanegen.solve.description import DESCRIPTION_FILE as DESCRIPTION_FILE
from kanegen.solve.description import Description as Description
from kanegen.solve.hybrid import ContactHistory as ContactHistory
from kanegen.solve.hybrid import EventRecord as EventRecord
from kanegen.solve.hybrid import Phase as Phase
from kanegen.solve.impulse import Impulse as Impulse
from kanegen.solve.inverse_dynamics import InverseDynamics as InverseDynamics
from kanegen.solve.linearize import Jacobian as Jacobian
from kanegen.solve.linearize import Linearization as Linearization
from kanegen.solve.outcome import Outcome as Outcome
from kanegen.solve.outcome import Statistics as Statistics
from kanegen.solve.results import Wrench as Wrench
from kanegen.solve.saturation import Saturation as Saturation
from kanegen.solve.solution import IntegrationError as IntegrationError
from kanegen.solve.solution import IntegrationInterrupted as IntegrationInterrupted
from kanegen.solve.solution import Solution as Solution
from kanegen.solve.solver import Solver as Solver
