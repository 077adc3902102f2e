"""Where this checkout is, and the environment in which a fresh interpreter finds it and the helpers of the tests."""

from __future__ import annotations

import os
from pathlib import Path

SUPPORT = Path(__file__).resolve().parent
ROOT = SUPPORT.parents[1]
EXAMPLES = ROOT / "build_examples"


def environment(**variables: str) -> dict[str, str]:
    """The variables of this process with ``PYTHONPATH`` set for kanegen and ``tests/support``."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT), str(ROOT)]), **variables}
