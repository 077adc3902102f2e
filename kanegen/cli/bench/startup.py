"""Waiting times of new processes: the first model on a machine, the next one, a model from the cache, the imports."""

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
from kanegen.backends.cython.wrapper import installed_wrapper
from kanegen.cli.bench import probe
from kanegen.cli.bench.timing import timed
from kanegen.errors import BuildError


@dataclass(frozen=True)
class Startup:
    """Waiting times in s, each the least of several processes.

    ``first``: a whole process, interpreter and imports included, that builds a model with an empty cache;
    ``following``: building a second model in such a process; ``cached``: loading a model from the cache after all
    imports; ``imports``: importing SymPy, then NumPy, then kanegen. ``is_installed``: the Python module of models was
    compiled when kanegen was installed; otherwise ``first`` includes it.
    """

    first: float
    following: float
    cached: float
    imports: Mapping[str, float]
    is_installed: bool


def measure_startup(first: Path, following: Path, repetitions: int) -> Startup:
    """Measure waiting times with the models of two files. Raises `BuildError` with the output of a failed process."""
    with tempfile.TemporaryDirectory(prefix="kanegen-bench-") as folder:
        caches = [Path(folder) / f"cache{k}" for k in range(repetitions)]
        # pip compiles Python files when it installs them; in a checkout, this process does.
        _run_probe((first, following), Path(folder) / "warm")
        seconds = [timed(partial(_run_probe, (first,), cache))[1] for cache in caches]
        warm = [_run_probe((first,), cache) for cache in caches]
        # Each copy of the cache has the first model, but not the second one.
        copies = [shutil.copytree(cache, cache.with_name(f"{cache.name}-copy")) for cache in caches]
        pairs = [_run_probe((first, following), copy) for copy in copies]
    return Startup(
        first=min(seconds),
        following=min(float(run["builds"][1]["build"]) for run in pairs),
        cached=min(float(run["builds"][0]["build"]) for run in warm),
        imports={name: min(run[name] for run in warm) for name in ("sympy", "numpy", "kanegen")},
        is_installed=installed_wrapper() is not None,
    )


def _run_probe(files: Sequence[Path], cache: Path) -> dict[str, Any]:
    # -P excludes the probe's folder from the path of its process; a checkout that is not installed needs PYTHONPATH.
    package_parent = str(Path(kanegen.__file__).parents[1])
    search_path = os.pathsep.join(filter(None, (package_parent, os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "KANEGEN_CACHE_DIR": str(cache), "PYTHONPATH": search_path}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-P", probe.__file__, *(str(file.resolve()) for file in files)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError("a process that measures start-up failed", command=command, stderr=done.stderr)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
