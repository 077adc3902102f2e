"""A script for a separate process: it builds models and prints, as JSON, the seconds that each part took.

Usage: ``probe.py FILE [FILE ...]``. The imports, which happen once per process, are measured separately from the cost
of each model. kanegen is imported after the clock has started.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def main(files: list[str]) -> None:
    """Print ``{"sympy":, "numpy":, "kanegen":, "builds": [{"model":, "build":}, ...]}``."""
    marks = [time.perf_counter()]

    def lap() -> float:
        """Seconds since the last lap."""
        marks.append(time.perf_counter())
        return marks[-1] - marks[-2]

    import sympy.physics.mechanics  # noqa: F401  (imported for the time it takes)

    seconds: dict[str, Any] = {"sympy": lap()}
    import numpy  # noqa: F401  (imported for the time it takes)

    seconds["numpy"] = lap()
    import kanegen

    kanegen.Model, kanegen.build  # noqa: B018  (imported when they are first used)
    seconds["kanegen"] = lap()
    # A user's script does not import the reader of model files.
    from kanegen.modelfile import read_model_file

    seconds["builds"] = []
    for file in files:
        lap()
        model = read_model_file(Path(file)).model
        reading = lap()
        kanegen.build(model)
        seconds["builds"].append({"model": reading, "build": lap()})
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(sys.argv[1:])
