"""The records in which a :class:`~kanegen.Solver` and a :class:`~kanegen.Solution` hand back results.

They are read, never constructed, by users: for annotations and ``isinstance`` only.
"""

from kanegen.solve import AccelerationParts as AccelerationParts
from kanegen.solve import ContactHistory as ContactHistory
from kanegen.solve import Contacts as Contacts
from kanegen.solve import ContactState as ContactState
from kanegen.solve import ControlHistory as ControlHistory
from kanegen.solve import Description as Description
from kanegen.solve import EventRecord as EventRecord
from kanegen.solve import Feasibility as Feasibility
from kanegen.solve import Impulse as Impulse
from kanegen.solve import InverseDynamics as InverseDynamics
from kanegen.solve import Jacobian as Jacobian
from kanegen.solve import Linearization as Linearization
from kanegen.solve import Phase as Phase
from kanegen.solve import Saturation as Saturation
from kanegen.solve import Statistics as Statistics
from kanegen.solve import Underactuation as Underactuation
from kanegen.solve import Wrench as Wrench
