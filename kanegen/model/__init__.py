"""The description of a constrained mechanical system: :class:`Model` and the records that it consists of."""

from kanegen.model.contacts import Bilateral as Bilateral
from kanegen.model.contacts import Event as Event
from kanegen.model.contacts import Friction as Friction
from kanegen.model.contacts import Latch as Latch
from kanegen.model.contacts import Multiplier as Multiplier
from kanegen.model.contacts import Unilateral as Unilateral
from kanegen.model.control import ControlConstraints as ControlConstraints
from kanegen.model.control import Servo as Servo
from kanegen.model.inputs import Input as Input
from kanegen.model.laws import Coulomb as Coulomb
from kanegen.model.laws import HuntCrossley as HuntCrossley
from kanegen.model.laws import ImpactFunction as ImpactFunction
from kanegen.model.laws import KelvinVoigt as KelvinVoigt
from kanegen.model.laws import Restitution as Restitution
from kanegen.model.laws import Stabilized as Stabilized
from kanegen.model.model import Model as Model
from kanegen.model.reactions import Reaction as Reaction
from kanegen.model.stabilization import Baumgarte as Baumgarte
from kanegen.model.stabilization import Projection as Projection
