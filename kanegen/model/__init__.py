"""The description of a constrained mechanical system: :class:`Model` and what it is made of."""

from kanegen.model.baumgarte import Baumgarte as Baumgarte
from kanegen.model.contact import Bilateral as Bilateral
from kanegen.model.contact import Friction as Friction
from kanegen.model.contact import Latch as Latch
from kanegen.model.contact import Unilateral as Unilateral
from kanegen.model.contact_laws import Coulomb as Coulomb
from kanegen.model.contact_laws import HuntCrossley as HuntCrossley
from kanegen.model.contact_laws import KelvinVoigt as KelvinVoigt
from kanegen.model.contact_laws import Restitution as Restitution
from kanegen.model.contact_laws import Stabilized as Stabilized
from kanegen.model.control_constraints import ControlConstraints as ControlConstraints
from kanegen.model.events import Event as Event
from kanegen.model.events import Multiplier as Multiplier
from kanegen.model.inputs import Input as Input
from kanegen.model.model import Model as Model
from kanegen.model.projection import Projection as Projection
from kanegen.model.reactions import Reaction as Reaction
from kanegen.model.servo import Servo as Servo
