"""Sweeps on processes, loky, Dask and MPI: the same results, one compilation on each host, workers that die."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from messages import raises
from sweep_models import pendulum
from sweep_tasks import acceleration, ends_the_process, log_compilations, set_variables, slow
from systems import solver_for

import kanegen as kg
from kanegen.backends.cython.cache import open_cache

pytestmark = pytest.mark.target
REASON = "not installed: pip install 'kanegen[targets]'"

G = {"g": np.linspace(9.0, 10.0, 24)}


def processes(workers: int = 2, variables: dict[str, str] | None = None) -> ProcessPoolExecutor:
    """Processes that start afresh, with further environment variables."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, context, initializer=set_variables, initargs=(variables or {},))


@contextmanager
def loky() -> Iterator[Executor]:
    module = pytest.importorskip("loky", reason=REASON)
    with module.ProcessPoolExecutor(2) as executor:
        yield executor


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """A client of a Dask cluster of processes on this machine."""
    distributed = pytest.importorskip("distributed", reason=REASON)
    with (
        distributed.LocalCluster(workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as local,
        distributed.Client(local) as client,
    ):
        yield client


def sweep_here() -> Any:
    """The accelerations that this process computes."""
    return kg.sweep(pendulum(), G, acceleration)["udot"]


def test_other_processes_compute_the_same() -> None:
    """Functions of this module, which the workers cannot import, are sent by value."""
    factor = 3.0
    with processes() as executor:
        result = kg.sweep(pendulum(), G, acceleration, executor=executor)
        local = kg.sweep(pendulum(), G, lambda solver, member: {"x": factor * member["g"]}, executor=executor)
        motions = kg.sweep(pendulum(), G, t_span=(0.0, 0.5), executor=executor)
    np.testing.assert_array_equal(result["udot"], sweep_here())
    assert os.getpid() not in result["process"]
    np.testing.assert_array_equal(local["x"], factor * G["g"])
    np.testing.assert_array_equal(motions["q"], kg.sweep(pendulum(), G, t_span=(0.0, 0.5))["q"])


def test_a_host_without_the_model_compiles_it_once(tmp_path: Path, session_cache: Path) -> None:
    """Processes with another cache folder stand for another host; four of them begin at the same time."""
    solver, cache, log = pendulum(), tmp_path / "cache", tmp_path / "log"
    shutil.copytree(session_cache, cache, ignore=shutil.ignore_patterns("sources", "extensions", "locks"))
    arguments = log, {"KANEGEN_CACHE_DIR": str(cache)}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(4, context, initializer=log_compilations, initargs=arguments) as executor:
        result = kg.sweep(solver, G, slow, executor=executor)
    np.testing.assert_array_equal(result["udot"], sweep_here())
    assert len(set(result["process"])) > 1
    compiled = log.read_text().splitlines()
    assert compiled
    assert len(set(compiled)) == len(compiled)  # each file of the kernel, once
    kinds = [entry.kind for entry in open_cache(cache).entries() if entry.name == solver.sources.name]
    assert sorted(kinds) == ["extensions", "sources"]


def test_a_worker_without_a_compiler_is_named(tmp_path: Path) -> None:
    variables = {"KANEGEN_CACHE_DIR": str(tmp_path / "cache"), "CC": "/nonexistent"}
    with processes(1, variables) as executor, raises(kg.SweepError, "host", "CC", "'/nonexistent'", 0, 24):
        kg.sweep(pendulum(), G, acceleration, executor=executor)


@pytest.mark.parametrize("make", [processes, loky])
def test_a_process_that_dies_breaks_the_executor_and_the_sweep_continues(
    make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("zarr", reason=REASON)
    repaired, store = tmp_path / "repaired", tmp_path / "results.zarr"
    monkeypatch.setenv("SWEEP_TEST_REPAIRED", str(repaired))
    with make() as executor, raises(kg.SweepError, "executor broke", "store", 24) as caught:
        kg.sweep(pendulum(), G, ends_the_process, executor=executor, store=store)
    status = caught.value.sweep.status
    assert status[4] == -1
    assert 0 < np.count_nonzero(status == 1) < 24
    repaired.touch()
    seen: list[int] = []
    with make() as executor:
        report = lambda done, count: seen.append(done)  # noqa: E731
        result = kg.sweep(pendulum(), G, ends_the_process, executor=executor, store=store, progress=report)
    assert seen[0] > np.count_nonzero(status == 1)
    np.testing.assert_array_equal(result["two"], 2.0 * G["g"])


# -- Dask -----------------------------------------------------------------------------------------------------------


def test_a_killed_worker_of_dask_loses_nothing(tmp_path: Path) -> None:
    """Its chunks are computed by the others; what is stored can be read by xarray."""
    xarray = pytest.importorskip("xarray", reason=REASON)
    pytest.importorskip("zarr", reason=REASON)
    store, design = tmp_path / "results.zarr", {"g": np.linspace(9.0, 10.0, 60)}
    with cluster(3) as client:
        victim = next(iter(client.run(os.getpid).values()))
        killed = threading.Event()

        def progress(done: int, count: int) -> None:
            if done >= 10 and not killed.is_set():
                os.kill(victim, signal.SIGKILL)
                killed.set()

        result = kg.sweep(pendulum(), design, slow, executor=client.get_executor(), store=store, progress=progress)
    assert killed.is_set()
    assert result.success.all()
    np.testing.assert_array_equal(result["udot"], kg.sweep(pendulum(), design, acceleration)["udot"])
    workers = set(result["process"].tolist())
    assert victim in workers
    assert workers - {victim}
    np.testing.assert_array_equal(xarray.open_zarr(store)["udot"], result["udot"])


def test_a_dask_cluster_that_is_closed_leaves_what_was_finished(tmp_path: Path) -> None:
    pytest.importorskip("zarr", reason=REASON)
    store, closing = tmp_path / "results.zarr", []
    with cluster(2) as client:

        def progress(done: int, count: int) -> None:
            if done >= 4 and not closing:
                closing.append(threading.Thread(target=client.cluster.close))
                closing[0].start()

        with raises(kg.SweepError, "executor", "store", 24) as caught:
            kg.sweep(pendulum(), G, slow, executor=client.get_executor(), store=store, progress=progress)
        closing[0].join()
    done = np.count_nonzero(caught.value.sweep.success)
    assert 4 <= done < 24
    np.testing.assert_array_equal(kg.sweep(pendulum(), G, slow, store=store)["udot"], sweep_here())


# -- MPI ------------------------------------------------------------------------------------------------------------

MPI_PROGRAM = """
import os, sys
import numpy as np
from mpi4py.futures import MPIPoolExecutor
import kanegen as kg
from sweep_tasks import acceleration
from systems import solver_for

if __name__ == "__main__":
    solver = solver_for("n_link_pendulum", n=3)
    names = (*solver.description.coordinates, *solver.description.speeds)
    solver = solver.with_initial(dict.fromkeys(names, 0.1))
    design = {"g": np.linspace(9.0, 10.0, 24)}
    with MPIPoolExecutor() as executor:
        result = kg.sweep(solver, design, acceleration, executor=executor)
    np.testing.assert_array_equal(result["udot"], kg.sweep(solver, design, acceleration)["udot"])
    print("ranks", len(set(result["process"])), os.getpid() in result["process"])
"""


def test_ranks_of_mpi_compute_the_same(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py", reason=REASON)
    mpiexec = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if mpiexec is None:
        pytest.skip("mpiexec is not installed: pip install mpich")
    solver_for("n_link_pendulum", n=3)  # compiled here, where others wait for it
    program = tmp_path / "program.py"
    program.write_text(MPI_PROGRAM)
    path = os.pathsep.join(str(ROOT / part) for part in ("", "tests/support"))
    command = [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", str(program)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ranks 2 False" in done.stdout
