"""Derivation in Kane's method on the expression graph: :func:`derive` gives :class:`Equations`."""

from kanegen.derivation.equations import Equations as Equations
from kanegen.derivation.equations import Quantity as Quantity
from kanegen.derivation.equations import derive as derive
from kanegen.derivation.fingerprint import fingerprint as fingerprint
from kanegen.derivation.speeds import lower_model as lower_model
