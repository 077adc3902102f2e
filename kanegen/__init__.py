"""kanegen: constrained mechanical systems in SymPy, compiled to fast C solvers by Kane's method."""

from kanegen._version import __version__ as __version__
from kanegen.derive import Equations as Equations
from kanegen.derive import derive as derive
from kanegen.errors import BuildError as BuildError
from kanegen.errors import DerivationError as DerivationError
from kanegen.errors import KanegenError as KanegenError
from kanegen.errors import ModelError as ModelError
from kanegen.errors import SolveError as SolveError
from kanegen.graph.functions import Function as Function
from kanegen.graph.functions import Spline as Spline
from kanegen.model import Baumgarte as Baumgarte
from kanegen.model import Input as Input
from kanegen.model import Model as Model
from kanegen.model import Projection as Projection
from kanegen.model import Reaction as Reaction
from kanegen.pipeline import build as build
from kanegen.pipeline import emit as emit
from kanegen.solve import IntegrationError as IntegrationError
from kanegen.solve import IntegrationInterrupted as IntegrationInterrupted
from kanegen.solve import Jacobian as Jacobian
from kanegen.solve import Linearisation as Linearisation
from kanegen.solve import Outcome as Outcome
from kanegen.solve import Solution as Solution
from kanegen.solve import Solver as Solver
from kanegen.solve import Statistics as Statistics
from kanegen.solve import Wrench as Wrench
