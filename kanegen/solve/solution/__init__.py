"""The result of an integration: the motion, what happened, quantities along it, tables and files."""

from kanegen.solve.solution.animation import animate as animate
from kanegen.solve.solution.motion import IntegrationError as IntegrationError
from kanegen.solve.solution.motion import IntegrationInterrupted as IntegrationInterrupted
from kanegen.solve.solution.motion import Solution as Solution
from kanegen.solve.solution.motion import load as load
from kanegen.solve.solution.overview import Events as Events
from kanegen.solve.solution.quantities import Acting as Acting
from kanegen.solve.solution.quantities import MotionInputs as MotionInputs
from kanegen.solve.solution.quantities import SolverReference as SolverReference
from kanegen.solve.solution.quantities import inputs_of_run as inputs_of_run
from kanegen.solve.solution.records import MODES as MODES
from kanegen.solve.solution.records import ContactHistory as ContactHistory
from kanegen.solve.solution.records import ControlHistory as ControlHistory
from kanegen.solve.solution.records import Dense as Dense
from kanegen.solve.solution.records import EventRecord as EventRecord
from kanegen.solve.solution.records import Outcome as Outcome
from kanegen.solve.solution.records import Phase as Phase
from kanegen.solve.solution.records import RunRecord as RunRecord
from kanegen.solve.solution.records import Saturation as Saturation
from kanegen.solve.solution.records import Statistics as Statistics
from kanegen.solve.solution.records import conflict_message as conflict_message
