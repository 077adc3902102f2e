"""Waiting times: for the first model on a machine, the next one, and one from the cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
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
    ``following``: building a second model in such a process. ``cached``: loading a model from the cache in a
    new process after its imports; ``imports`` are the times to import SymPy, NumPy and kanegen.
    """

    first: float
    following: float
    cached: float
    imports: Mapping[str, float]


def measure_startup(first: Path, following: Path, repetitions: int) -> Startup:
    """Measure in new processes: ``first`` once, the others as the least of ``repetitions``.

    Raises `BuildError` with the output of a process that fails.
    """
    with tempfile.TemporaryDirectory(prefix="kanegen-bench-") as folder:
        cache = Path(folder) / "cache"
        seconds = once(partial(_run_probe, (first,), cache))
        warm = [_run_probe((first,), cache) for _ in range(repetitions)]
        # Each copy of the cache has the wrapper and the first model, but not the second one.
        copies = [shutil.copytree(cache, Path(folder) / f"copy{k}") for k in range(repetitions)]
        pairs = [_run_probe((first, following), copy) for copy in copies]
    return Startup(
        first=seconds,
        following=min(float(run["builds"][1]["build"]) for run in pairs),
        cached=min(float(run["builds"][0]["build"]) for run in warm),
        imports={name: min(float(run[name]) for run in warm) for name in ("sympy", "numpy", "kanegen")},
    )


def _run_probe(files: Sequence[Path], cache: Path) -> dict[str, Any]:
    # -P excludes the probe's folder from the path of its process; a checkout that is not installed needs PYTHONPATH.
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
