"""Predictive control: the problem of optimal control over a horizon ahead, solved again at each sample."""

from kanegen.control.predictive.controller import Prediction as Prediction
from kanegen.control.predictive.controller import PredictiveController as PredictiveController
from kanegen.control.predictive.controller import SampleTimes as SampleTimes
from kanegen.control.predictive.controller import predictive_controller as predictive_controller
