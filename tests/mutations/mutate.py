"""Tries the mutations of mutations.toml: each in a copy of the project, with the tests nearest to it.

``python tests/mutations/mutate.py [NAME ...]`` prints a line for each and lists the survivors, which no test noticed.
The exit status is 1 if there are more survivors than `MOST`.
"""

from __future__ import annotations

import argparse
import os
import queue
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TABLE: Final = Path(__file__).with_name("mutations.toml")

MOST: Final = 2
"""The number of survivors that is no failure."""

LIMIT: Final = 900.0
"""Seconds after which the tests of a mutation are ended: it counts as noticed."""

OUTCOMES: Final = {0: "SURVIVED", None: "timed out"}

FAILED: Final = 1
"""The exit status of pytest when a test has failed."""

NOT_COPIED: Final = (".git", ".venv*", "__pycache__", "*.so", "build", "dist", "*.egg-info", ".*_cache", ".hypothesis")


@dataclass(frozen=True)
class Mutation:
    """A wrong program: ``old`` replaced by ``new`` in ``file``. ``tests``: arguments of pytest."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def mutated(self, root: Path) -> str:
        """The text of the file with the mutation. Raises ValueError unless the old text occurs exactly once."""
        text = (root / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.old!r} occurs {text.count(self.old)} times in {self.file}")
        return text.replace(self.old, self.new)


def mutations() -> dict[str, Mutation]:
    """The table, by name."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {
        name: Mutation(name, row["file"], row["old"], row["new"], tuple(shlex.split(row["tests"])))
        for name, row in table.items()
    }


def run_tests(copy: Path, tests: Sequence[str], environment: Mapping[str, str], log: Path) -> int | None:
    """The exit status of pytest in a copy; None if it did not end in time."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    with log.open("w", encoding="utf-8") as out:
        try:
            done = subprocess.run(
                command, cwd=copy, env={**environment, "PYTHONPATH": str(copy)}, stdout=out, stderr=out, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            return None
    return done.returncode


class Trials:
    """Copies of the project in ``folder``, one for each process at a time, that share one cache of models."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self.folder = folder
        self.environment = {"KANEGEN_TEST_CACHE": str(folder / "models"), **os.environ}
        self.copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for number in range(jobs):
            copy = folder / f"copy_{number}"
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*NOT_COPIED))
            self.copies.put(copy)

    def complaint(self, tests: Sequence[str]) -> str:
        """What these tests say of the project as it is; empty if they pass."""
        copy, log = self.copies.get(), self.folder / "unchanged.log"
        status = run_tests(copy, tests, self.environment, log)
        self.copies.put(copy)
        return log.read_text(encoding="utf-8") if status != 0 else ""

    def notice(self, mutation: Mutation) -> bool:
        """Whether a test notices the mutation. Raises RuntimeError where tests cannot run."""
        start = time.monotonic()
        copy, log = self.copies.get(), self.folder / f"{mutation.name}.log"
        file = copy / mutation.file
        text = file.read_text(encoding="utf-8")
        try:
            file.write_text(mutation.mutated(copy), encoding="utf-8")
            status = run_tests(copy, mutation.tests, self.environment, log)
        finally:
            file.write_text(text, encoding="utf-8")
            self.copies.put(copy)
        if status not in (0, FAILED, None):
            raise RuntimeError(f"{mutation.name}: pytest ended with {status}\n{log.read_text(encoding='utf-8')}")
        print(
            f"{OUTCOMES.get(status, 'noticed'):10}{time.monotonic() - start:5.0f} s  {mutation.name}",
            flush=True,
        )
        return status != 0


def main() -> int:
    table = mutations()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(table))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--unchecked", action="store_true", help="do not run the tests without mutations first")
    arguments = parser.parse_args()
    chosen = [table[name] for name in arguments.names or table]
    with tempfile.TemporaryDirectory(prefix="kanegen-mutations-") as folder, ThreadPoolExecutor(arguments.jobs) as pool:
        trials = Trials(Path(folder), arguments.jobs)
        tests = [*dict.fromkeys(test for mutation in chosen for test in mutation.tests)]
        if not arguments.unchecked and (text := trials.complaint(tests)):
            print(f"{text}\nThese tests fail without any mutation.")
            return 1
        noticed = list(pool.map(trials.notice, chosen))
    survivors = [mutation.name for mutation, found in zip(chosen, noticed, strict=True) if not found]
    print(f"{len(survivors)} of {len(chosen)} mutations survived", *survivors, sep="\n  ")
    return int(len(survivors) > MOST)


if __name__ == "__main__":
    sys.exit(main())
