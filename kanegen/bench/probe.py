"""A script for a separate process: it builds models and prints, as JSON, the seconds that each part took.

``probe.py FILE [FILE ...]``. What a process does once (imports) is measured separately from
the cost of each model. kanegen is imported after the clock has started.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise
from pathlib import Path


def main(files: list[str]) -> None:
    """Print ``{"sympy":, "numpy":, "kanegen":, "builds": [{"model":, "build":}, ...]}``."""
    marks = [time.perf_counter()]
    import sympy.physics.mechanics  # noqa: F401  (imported for the time it takes)

    marks.append(time.perf_counter())
    import numpy  # noqa: F401  (imported for the time it takes)

    marks.append(time.perf_counter())
    import kanegen

    kanegen.build  # noqa: B018  (a lazily imported part is loaded here)
    marks.append(time.perf_counter())
    imports = dict(zip(("sympy", "numpy", "kanegen"), _differences(marks), strict=True))
    # A user's script does not import the reader of model files.
    from kanegen.bench.modelfile import read_model_file

    builds = []
    for file in files:
        marks = [time.perf_counter()]
        model = read_model_file(Path(file)).model
        marks.append(time.perf_counter())
        kanegen.build(model)
        marks.append(time.perf_counter())
        builds.append(dict(zip(("model", "build"), _differences(marks), strict=True)))
    print(json.dumps({**imports, "builds": builds}))


def _differences(marks: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(marks)]


if __name__ == "__main__":
    main(sys.argv[1:])
