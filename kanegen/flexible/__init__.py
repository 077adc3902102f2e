"""Bodies that bend: modal coordinates in a floating frame."""

from kanegen.flexible.beam import Beam as Beam
from kanegen.flexible.beam import beam as beam
from kanegen.flexible.body import FlexibleBody as FlexibleBody
