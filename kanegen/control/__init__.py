"""Optimal control: motions that minimize a cost, by direct transcription of the equations of motion."""

from kanegen.control.motion import OptimalControlError as OptimalControlError
from kanegen.control.motion import OptimalMotion as OptimalMotion
from kanegen.control.predictive import PredictiveController as PredictiveController
from kanegen.control.problem import OptimalControl as OptimalControl
from kanegen.control.terms import AtEnd as AtEnd
from kanegen.control.terms import AtStart as AtStart
from kanegen.control.terms import Duration as Duration
from kanegen.control.terms import Integral as Integral
from kanegen.control.tracking import TrackingFeedback as TrackingFeedback
