"""The description of a constrained mechanical system: :class:`Model` and what it is made of."""

from kanegen.model.contact.events import Event as Event
from kanegen.model.contact.events import Multiplier as Multiplier
from kanegen.model.contact.laws import Coulomb as Coulomb
from kanegen.model.contact.laws import HuntCrossley as HuntCrossley
from kanegen.model.contact.laws import ImpactFunction as ImpactFunction
from kanegen.model.contact.laws import KelvinVoigt as KelvinVoigt
from kanegen.model.contact.laws import Restitution as Restitution
from kanegen.model.contact.laws import Stabilized as Stabilized
from kanegen.model.contact.records import Bilateral as Bilateral
from kanegen.model.contact.records import Friction as Friction
from kanegen.model.contact.records import Latch as Latch
from kanegen.model.contact.records import Unilateral as Unilateral
from kanegen.model.control.control_constraints import ControlConstraints as ControlConstraints
from kanegen.model.control.servo import Servo as Servo
from kanegen.model.inputs import Input as Input
from kanegen.model.model import Model as Model
from kanegen.model.reactions import Reaction as Reaction
from kanegen.model.stabilization.baumgarte import Baumgarte as Baumgarte
from kanegen.model.stabilization.projection import Projection as Projection
