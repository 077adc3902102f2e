"""The type of NumPy arrays of doubles, which most of the interface takes and returns."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
