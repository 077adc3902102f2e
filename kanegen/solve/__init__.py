"""Solvers of compiled models: evaluation, integration, and their results."""

from kanegen.codegen.description import DESCRIPTION_FILE as DESCRIPTION_FILE
from kanegen.codegen.description import Description as Description
from kanegen.solve.contacts import Impulse as Impulse
from kanegen.solve.gradients.objective import Objective as Objective
from kanegen.solve.inputs import Signal as Signal
from kanegen.solve.solution import IntegrationError as IntegrationError
from kanegen.solve.solution import IntegrationInterrupted as IntegrationInterrupted
from kanegen.solve.solution import Outcome as Outcome
from kanegen.solve.solution import Solution as Solution
from kanegen.solve.solution import animate as animate
from kanegen.solve.solution import load as load
from kanegen.solve.solver import Solver as Solver
