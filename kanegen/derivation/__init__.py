"""Derivation of the equations of motion by Kane's method: :func:`derive` returns :class:`Equations`."""

from kanegen.derivation.equations import Equations as Equations
from kanegen.derivation.equations import Quantity as Quantity
from kanegen.derivation.equations import derive as derive
from kanegen.derivation.fingerprint import fingerprint as fingerprint
from kanegen.derivation.speeds import lower_model as lower_model
