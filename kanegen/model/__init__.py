"""The description of a constrained mechanical system: :class:`Model` and what it is made of."""

from kanegen.model.baumgarte import Baumgarte as Baumgarte
from kanegen.model.inputs import Input as Input
from kanegen.model.model import Model as Model
from kanegen.model.projection import Projection as Projection
from kanegen.model.reactions import Reaction as Reaction
