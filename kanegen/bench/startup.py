"""How long a user waits: the first model ever on a machine, the next one, and one from the cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import kanegen
from kanegen.bench import probe
from kanegen.bench.timing import once
from kanegen.errors import BuildError


@dataclass(frozen=True)
class Startup:
    """Seconds.

    ``first``: a whole process with an empty cache, interpreter and imports included, that builds one model.
    ``following``: building a second model in such a process. ``cached``: importing kanegen and building one
    that is in the cache, in a process that has imported SymPy and NumPy (``imports``: those two) before.
    """

    first: float
    following: float
    cached: float
    imports: float


def measure_startup(first: Path, following: Path, repetitions: int) -> Startup:
    """Measure in fresh processes; ``cached`` is the least of ``repetitions``, the cold builds happen once.

    Raises `BuildError` with the output of a process that fails.
    """
    with tempfile.TemporaryDirectory(prefix="kanegen-bench-") as folder:
        cache = Path(folder)
        seconds = once(partial(_run_probe, (first,), cache))
        # The first of the pair comes from the cache, the second is new: only the wrapper is there already.
        pair = _run_probe((first, following), cache)
        warm = [_run_probe((first,), cache) for _ in range(repetitions)]
    return Startup(
        first=seconds,
        following=float(pair["builds"][1]["build"]),
        cached=min(float(run["kanegen"]) + float(run["builds"][0]["build"]) for run in warm),
        imports=min(float(run["sympy"]) + float(run["numpy"]) for run in warm),
    )


def _run_probe(files: Sequence[Path], cache: Path) -> dict[str, Any]:
    # -P keeps the probe's own folder off the path of its process; PYTHONPATH is for a checkout that is not
    # installed.
    package_parent = str(Path(kanegen.__file__).parents[1])
    inherited = [part for part in (os.environ.get("PYTHONPATH"),) if part]
    environment = {
        **os.environ,
        "KANEGEN_CACHE_DIR": str(cache),
        "PYTHONPATH": os.pathsep.join([package_parent, *inherited]),
    }
    command = [sys.executable, "-P", probe.__file__, *(str(file.resolve()) for file in files)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError("a process that measures start-up failed", command=command, stderr=done.stderr)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
