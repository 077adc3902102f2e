"""Derivation in Kane's method on the expression graph: :func:`derive` gives :class:`Equations`."""

from kanegen.derive.equations import Equations as Equations
from kanegen.derive.equations import derive as derive
from kanegen.derive.fingerprint import fingerprint as fingerprint
from kanegen.derive.quantity import Quantity as Quantity
from kanegen.derive.system import System as System
