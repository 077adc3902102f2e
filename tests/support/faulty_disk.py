"""Writes outputs while the disk becomes full, and kills processes that write; reports what is left of earlier files.

Each trial is a process of its own, which replaces an output by another version. The system ends its writing at a random
byte of a file (``RLIMIT_FSIZE``): with an error (``full``), as on a full disk, or with a signal (``cut``). Others are
killed before a renaming (``rename``), at a random time (``kill``), or cannot rename (``denied``).

    python faulty_disk.py TRIALS SEED OUTPUT...

prints a JSON object: the number of trials by output, fault and what is left afterwards, and the problems.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from systems import initial, model_of, solver_for

import kanegen as kg
from kanegen.emission.fmu.archive import write_archive
from kanegen.errors import KanegenError
from kanegen.results import Page
from kanegen.writing import write_folder

FAULTS = ("full", "cut", "rename", "kill", "denied")
DONE, REFUSED, WRONG = 0, 3, 4
"""Exit codes of a trial: written, an error of kanegen, another exception."""

Write = Callable[[Path], object]


def motion(span: float) -> kg.Solution:
    start = initial("slider_crank")
    return solver_for("slider_crank").integrate((0.0, span), start["q"], start["u"])


def solutions(suffix: str) -> tuple[Write, Write]:
    first, second = motion(0.5), motion(0.7)
    return first.save, second.save


def pages(make: Callable[[kg.Solution], Page]) -> tuple[Write, Write]:
    first, second = make(motion(0.2)), make(motion(0.3))
    return first.save, second.save


def projects(emit: Callable[..., Path], marker: str) -> tuple[Write, Write]:
    with tempfile.TemporaryDirectory() as name:
        folder = emit(model_of("slider_crank"), Path(name, "project"))
        files = {path.as_posix(): data.decode() for path, data in content(folder).items()}
    second = {path: text + "\n" for path, text in files.items()}
    return tuple(partial(_project, each, marker) for each in (files, second))  # type: ignore[return-value]


def _project(files: dict[str, str], marker: str, path: Path) -> None:
    write_folder(files, path, marker)


def archives() -> tuple[Write, Write]:
    with tempfile.TemporaryDirectory() as name:
        path = kg.export_fmu(model_of("slider_crank"), Path(name, "x.fmu"), values=start_values(), binary=False)
        with zipfile.ZipFile(path) as archive:
            files = {entry: archive.read(entry) for entry in archive.namelist()}
    second = {entry: data + b"\n" for entry, data in files.items()}
    return partial(write_archive, files), partial(write_archive, second)


def start_values() -> dict[Any, float]:
    model, start = model_of("slider_crank"), initial("slider_crank")
    names = [str(symbol.func) for symbol in (*model.coordinates, *model.speeds)]
    return dict(zip(names, (*start["q"], *start["u"]), strict=True))


def sources() -> tuple[Write, Write]:
    first, second = solver_for("slider_crank"), solver_for("rolling_disk")
    return first.sources.write, second.sources.write


class Breaking(Executor):
    """Computes some chunks in this process, and accepts no more."""

    def __init__(self, chunks: int) -> None:
        self._left = chunks

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self._left -= 1
        if self._left < 0:
            raise RuntimeError("no more chunks")
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


DESIGN = {"g": np.linspace(1.0, 11.0, 40)}


def doubled(solver: kg.Solver, member: kg.results.Member) -> Any:
    return {"values": np.full(50, 2.0 * member["g"])}


def swept(path: Path, executor: Executor | None = None) -> kg.results.Sweep:
    return kg.sweep(solver_for("slider_crank"), DESIGN, doubled, store=path, chunk_size=4, executor=executor)


def sweeps() -> tuple[Write, Write]:
    def half(path: Path) -> None:
        with suppress(kg.SweepError):
            swept(path, Breaking(5))

    return half, swept


def outputs() -> dict[str, tuple[str, Callable[[], tuple[Write, Write]]]]:
    """By name, the suffix of an output, and a function that prepares what writes its two versions."""
    return {
        **{suffix: (f".{suffix}", partial(solutions, suffix)) for suffix in ("nc", "csv", "npz", "parquet")},
        "animation": (".html", lambda: pages(lambda solution: solution.animate())),
        "report": (".html", lambda: pages(lambda solution: kg.report(solution, verify=False))),
        "project": ("", lambda: projects(kg.emit, "slider_crank.h")),
        "casadi": ("", lambda: projects(kg.emit_casadi, "slider_crank_casadi.c")),
        "fmu": (".fmu", archives),
        "sources": ("", sources),
        "sweep": (".zarr", sweeps),
    }


def content(path: Path) -> dict[Path, bytes]:
    """The files of an output by relative path, without what a kill has left."""
    found = [path] if path.is_file() else [item for item in path.rglob("*") if item.is_file()]
    return {item.relative_to(path): item.read_bytes() for item in found}


def limit(size: int, action: Any) -> None:
    signal.signal(signal.SIGXFSZ, action)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def at_renaming(count: int, act: Callable[[], None]) -> None:
    """Call ``act`` before the renaming with this number."""
    left = [count]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.rename":
            left[0] -= 1
            if left[0] == 0:
                act()

    sys.addaudithook(hook)


def denied() -> None:
    raise OSError(5, os.strerror(5))


def trial(fault: str, draw: random.Random, write: Write, path: Path, largest: int, renamings: int) -> None:
    """Write in this process, which ends."""
    size, number = draw.randrange(largest), draw.randint(1, renamings)
    if fault == "full":
        limit(size, signal.SIG_IGN)
    elif fault == "cut":
        limit(size, signal.SIG_DFL)
    elif fault == "rename":
        at_renaming(number, lambda: os.kill(os.getpid(), signal.SIGKILL))
    elif fault == "denied":
        at_renaming(number, denied)
    code = WRONG
    try:
        write(path)
        code = DONE
    except KanegenError:
        code = REFUSED
    finally:
        os._exit(code)


def end_of(child: int, fault: str, delay: float) -> int:
    """The exit code of a trial, negative for a signal."""
    if fault == "kill":
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run(name: str, trials: int, seed: int, folder: Path) -> dict[str, Any]:
    suffix, prepare = outputs()[name]
    writes, known, duration = prepare(), [], 0.0
    for k, write in enumerate(writes):
        started = time.perf_counter()
        write(folder / f"known{k}{suffix}")
        duration = time.perf_counter() - started
        known.append(content(folder / f"known{k}{suffix}"))
    counts: Counter[str] = Counter()
    problems: list[str] = []
    for number in range(trials):
        fault, draw = FAULTS[number % len(FAULTS)], random.Random(f"{seed} {number}")
        path = folder / f"{number}" / f"earlier{suffix}"
        path.parent.mkdir()
        writes[0](path)
        largest = max(map(len, known[1].values()))
        child = os.fork()
        if child == 0:
            trial(fault, draw, writes[1], path, largest, len(known[1]))
        code = end_of(child, fault, draw.random() * 1.2 * duration)
        judge = judged_sweep if name == "sweep" else judged
        state, wrong = judge(fault, code, path, known)
        counts[f"{name}, {fault}: {state}"] += 1
        problems += [f"{name} {number} {fault}: {problem}" for problem in wrong]
    return {"counts": counts, "problems": problems}


def judged(fault: str, code: int, path: Path, known: list[dict[Path, bytes]]) -> tuple[str, list[str]]:
    """What a trial has left: the earlier files, the new ones, or some of both; and what is wrong with that."""
    left, wrong = content(path), []
    state = "earlier" if left == known[0] else "new" if left == known[1] else "mixed"
    if code == WRONG or (code < 0 and fault in ("full", "denied")):
        wrong.append(f"ends with {code}")
    if code == REFUSED and state != "earlier":
        wrong.append(f"refused, but the output is {state}")
    if code == DONE and not set(known[1].items()) <= set(left.items()):
        wrong.append(f"written, but the output is {state}")
    torn = [str(item) for item, data in left.items() if data not in (known[0].get(item), known[1].get(item))]
    if torn or not set(known[0]) <= set(left):
        wrong.append(f"torn or lost: {torn or set(known[0]) - set(left)}")
    if state == "mixed" and code != DONE and fault in ("full", "cut", "denied"):
        wrong.append("some files are new, some are not")
    others = [item.name for item in path.parent.iterdir() if item != path]
    if code >= 0 and others:
        wrong.append(f"{others} are left")
    return state, wrong


def judged_sweep(fault: str, code: int, path: Path, known: list[dict[Path, bytes]]) -> tuple[str, list[str]]:
    """What a trial has left of a store: the results that it had, of which a further call makes all."""
    left, wrong = content(path), []
    if code == WRONG:
        wrong.append("ends with another exception")
    chunks = [item for item in known[0] if item.parts[:2] == ("values", "c")]
    if any(left.get(item) != known[0][item] for item in chunks):
        wrong.append("earlier results are lost")
    done = len([item for item in left if item.parts[:2] == ("status", "c") and not item.suffix])
    result = swept(path)
    if not (result.success.all() and np.array_equal(result["values"][:, 0], 2.0 * DESIGN["g"])):
        wrong.append("the sweep cannot be completed")
    return "earlier" if done == len(chunks) else "new" if done == 10 else "some more", wrong


def main(trials: str, seed: str, *names: str) -> None:
    counts: dict[str, int] = {}
    problems: list[str] = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            found = run(name, int(trials), int(seed), Path(folder))
        counts |= found["counts"]
        problems += found["problems"]
    print(json.dumps({"counts": counts, "problems": problems}))


if __name__ == "__main__":
    main(*sys.argv[1:])
