"""The inputs of an integration: what users give, as polynomials and other sources that are evaluated or sampled."""

from kanegen.solve.inputs.instants import Signal as Signal
from kanegen.solve.inputs.samples import held as held
from kanegen.solve.inputs.samples import sample_times as sample_times
from kanegen.solve.inputs.sources import RunInputs as RunInputs
from kanegen.solve.inputs.sources import run_inputs as run_inputs
