"""Sweeps: chunks of an ensemble on any executor, with results in memory or in a Zarr store."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from kanegen.errors import SolveError, brief
from kanegen.progress import counting
from kanegen.solve import Solver
from kanegen.solve.values import flag, positive_integer
from kanegen.sweeps.designs import Design, design_of
from kanegen.sweeps.fingerprint import fingerprint
from kanegen.sweeps.job import Job
from kanegen.sweeps.motions import MotionTask
from kanegen.sweeps.results import Sweep, SweepError, SweepInterrupted
from kanegen.sweeps.stores import ERROR, STATUS, Layout, MemberStatus, Memory, Store, layout_of, stored_names
from kanegen.sweeps.tasks import MEMBER, Computed, FunctionTask, Member, Piece, Task, Values
from kanegen.sweeps.worker import NeedsSources, Refused, run_chunk
from kanegen.sweeps.zarr_store import open_store, stored_chunk_size, writable

_CHUNKS: Final = 100
"""Chunks of a sweep, unless they would be larger than `_LARGEST_CHUNK`."""

_LARGEST_CHUNK: Final = 8192
_LANES: Final = 8
"""Chunks of more members are multiples of this, so that the vector lanes of ensembles are full."""

_IN_FLIGHT: Final = 512
"""Chunks that an executor has at a time."""

_LOOK: Final = 1.0
"""Seconds between two looks for futures that were canceled."""


def sweep(
    solver: Solver,
    design: Mapping[Any, Any],
    task: Callable[[Solver, Member], Mapping[str, Any]] | None = None,
    *,
    t_span: Any = None,
    executor: Executor | None = None,
    store: Any = None,
    chunk_size: int | None = None,
    extra: Iterable[str] = (),
    retry_failed: bool = False,
    progress: bool | Callable[[int, int], None] = False,
    **motion: Any,
) -> Sweep:
    """Compute motions, or a function of the user, for all members of a design, in chunks on an executor.

    A chunk is one task of the executor and one chunk of the arrays in the store. Workers get the generated sources if
    their host does not have them, and compile them once per host. Each finished chunk is written to the store, and a
    sweep with the same arguments continues with the chunks that are missing there. A member that fails is recorded with
    the reason; the others are computed.

    Parameters
    ----------
    solver
        The compiled model with the values that do not vary.
    design
        Values (N,) of parameters, coordinates, speeds, states and inputs by name or symbol: a mapping, or what
        :func:`kanegen.grid` and :func:`kanegen.sample` return. Coordinates, speeds and states are those of the start.
    task
        A function of (solver, member) that returns a mapping from names to numbers or arrays of fixed shapes. The
        solver has the parameters and the start of the member; ``member["k"]`` is a value of the design, and
        ``member.r`` its inputs. None: motions over ``t_span``.
    t_span
        For motions: as for :meth:`kanegen.Solver.integrate`.
    executor
        A ``concurrent.futures.Executor``: of threads or processes, of loky, ``client.get_executor()`` of Dask, or
        ``mpi4py.futures.MPIPoolExecutor``. It is not shut down. None: this process, one chunk after the other.
    store
        The folder of a Zarr store, which is created; a URL that fsspec knows; or a store of zarr. None: memory.
    chunk_size
        Members of a chunk; None: that of the store, or 1 % of the members (at most 8192).
    extra
        Names in the design that the model does not have, which the task reads.
    retry_failed
        Compute chunks with failed members of an earlier call again.
    progress
        True: a progress bar in long sweeps; False: a line that names sweeps of more than a second, in terminals and
        notebooks. A function: it is called with the number of members that have been computed, and N.
    motion
        For motions: further arguments of :meth:`kanegen.Solver.integrate_many`, such as ``q0``, ``u0``, ``t_eval``,
        ``reduce``, ``rtol`` and ``threads``, for a member without rows: ``q0`` (n_q,). Values of the design replace
        those of ``q0``, ``u0``, ``s0`` and ``r``.

    Returns
    -------
    Sweep
        Results by name, (N, ...).

    Raises
    ------
    SolveError
        For wrong arguments, for a task that cannot be sent to other processes, and for a store that cannot be written,
        is no store of a sweep, or belongs to another sweep.
    SweepError
        A `SolveError` if a worker cannot build the model, the executor breaks, or the store cannot be written any more.
        The finished chunks are in its ``sweep`` and in the store.
    SweepInterrupted
        A `KeyboardInterrupt` with the same ``sweep``.
    """
    _check(solver, executor, retry_failed, store, progress)
    if task is None and t_span is None:
        raise SolveError("give t_span=(t0, t1) for motions, or task=, a function of (solver, member)")
    if task is not None and (t_span is not None or motion):
        given = ", ".join((*(["t_span"] if t_span is not None else []), *motion))
        raise SolveError(f"task= replaces motions, which need {given}: leave out one or the other")
    kind: Task = MotionTask(t_span, motion) if task is None else FunctionTask(task)
    columns = design_of(design, solver.description, extra)
    if task is None and extra:
        raise SolveError("extra= names values that a task= reads; motions need none of them")
    solver = _completed(solver, columns)
    kind.check(solver, columns)
    size = _chunk_size(chunk_size, store, columns.members)
    kept: Store = Memory(columns.members)
    if store is not None:
        marks = fingerprint(solver, columns, kind.settings, size)
        kept = open_store(store, columns, marks, size, kind, solver)
    job = Job(solver, kind)
    if not (executor is None or isinstance(executor, ThreadPoolExecutor)):
        _ = job.packed  # says now that the task cannot be sent
    run = _Run(job, columns, size, kept, store, bool(retry_failed))
    name, count = solver.description.name, columns.members
    call = (lambda done: progress(done, count)) if callable(progress) else bool(progress)
    with counting(call, f"sweep of {name}", f"sweeping {name!r}", count, "members") as report:
        run.execute(executor or _Here(), report)
    return run.result()


class _Here(Executor):
    """Runs each task in this process when it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The finished future of a call."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@dataclass
class _Run:
    """A sweep while it is computed.

    ``store_name`` is the argument of the user, None for memory; ``lost``: why chunks got no results, by their numbers;
    ``broken``: no more chunks can be computed.
    """

    job: Job
    design: Design
    chunk_size: int
    store: Store
    store_name: Any
    retry_failed: bool
    lost: dict[int, str] = field(default_factory=dict)
    broken: bool = False

    def result(self) -> Sweep:
        """What has been computed so far."""
        task = self.job.task
        dimensions = {name: task.dimensions(name, len(f.shape)) for name, f in (self.store.layout or {}).items()}
        labels, names = task.labels(self.job.solver, self.design), stored_names(self.design, task.reserved)
        return Sweep(self.design, self.store.status, dimensions, labels, self.store, names)

    def execute(self, executor: Executor, report: Callable[[int], None]) -> None:
        """Compute the missing chunks. Raises `SweepError` and `SweepInterrupted`."""
        todo = self._missing()
        running: dict[Future[Any], int] = {}
        most = 1 if isinstance(executor, _Here) else _IN_FLIGHT
        try:
            while True:
                while len(running) < most and not self.broken and (chunk := next(todo, None)) is not None:
                    self._submit(executor, running, chunk)
                if not running:
                    break
                # Futures that an executor cancels when it is shut down do not wake those who wait.
                done = wait(running, _LOOK, FIRST_COMPLETED).done or {x for x in running if x.cancelled()}
                for future in done & running.keys():  # a refused chunk removes others that were canceled
                    self._take(executor, running, future)
                if done:
                    report(int(np.count_nonzero(self.store.status != MemberStatus.NOT_RUN)))
        except KeyboardInterrupt as error:
            raise SweepInterrupted(f"the sweep was interrupted: {self._kept()}", self.result()) from error
        except SolveError as error:
            raise SweepError(f"{error}; {self._kept()}", self.result()) from error
        finally:
            for future in running:
                future.cancel()
        if self.lost:
            first, reason = next(iter(self.lost.items()))
            what = f"{len(self.lost)} chunks" if len(self.lost) > 1 else f"chunk {first}"
            raise SweepError(f"{what} of the sweep got no results: {reason}; {self._kept()}", self.result())

    def _missing(self) -> Iterator[int]:
        """The numbers of the chunks that are to be computed."""
        open_ = self.store.status == MemberStatus.NOT_RUN
        if self.retry_failed:
            open_ |= self.store.status == MemberStatus.FAILED
        return iter(np.unique(np.flatnonzero(open_) // self.chunk_size).tolist())

    def _members(self, chunk: int) -> slice:
        first = chunk * self.chunk_size
        return slice(first, min(first + self.chunk_size, self.design.members))

    def _submit(
        self, executor: Executor, running: dict[Future[Any], int], chunk: int, sources: bytes | None = None
    ) -> None:
        members = self._members(chunk)
        piece = Piece(members.start, {name: np.array(array[members]) for name, array in self.design.items()})
        try:
            running[executor.submit(run_chunk, self.job, piece, sources)] = chunk
        except Exception as error:  # a broken executor, or one that was shut down
            self._lose(chunk, f"the executor accepts no tasks: {type(error).__name__}: {error}", broken=True)

    def _take(self, executor: Executor, running: dict[Future[Any], int], future: Future[Any]) -> None:
        """Keep the results of a chunk, or note why there are none."""
        chunk = running.pop(future)
        try:
            answer = future.result()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # of the executor; cancellation is no Exception in all of them
            broken = isinstance(error, BrokenExecutor)
            who = "the executor broke" if broken else "the executor lost it"
            self._lose(chunk, f"{who}: {type(error).__name__}: {error}", broken)
            return
        if isinstance(answer, NeedsSources):
            self._submit(executor, running, chunk, self.job.packed_sources)
        elif isinstance(answer, Refused):
            self._lose(chunk, f"a worker could not compute it: {answer.reason}", broken=True)
            for other in [other for other in running if other.cancel()]:
                self._lose(running.pop(other), "canceled", broken=True)
        else:
            self._keep(chunk, answer)

    def _lose(self, chunk: int, reason: str, broken: bool) -> None:
        """Note a chunk without results. With ``broken`` no others are submitted; running ones can still finish."""
        self.lost[chunk] = reason
        self.broken |= broken

    def _keep(self, chunk: int, computed: Computed) -> None:
        """Write the results of a chunk; results that differ in names or shapes from the first ones are failures."""
        members = self._members(chunk)
        errors = dict(computed.errors)
        fitting = []
        for places, group in computed.groups:
            found = layout_of(group)
            if self.store.layout is None:
                self._begin(found)
            if problem := _difference(found, self.store.layout or {}):
                errors |= {place: errors.get(place, problem) for place in places.tolist()}
            else:
                fitting.append((places, group))
        n = members.stop - members.start
        layout = self.store.layout or {}
        values: Values = {name: np.full((n, *f.shape), f.fill, f.dtype) for name, f in layout.items()}
        for places, group in fitting:
            for name, array in group.items():
                values[name][places] = array
        status = np.full(n, MemberStatus.FINISHED, dtype=np.int8)
        status[list(errors)] = MemberStatus.FAILED
        with writable(self.store_name):
            self.store.write(members, values, status, {members.start + place: text for place, text in errors.items()})

    def _begin(self, layout: Layout) -> None:
        stored = stored_names(self.design, ()).values()
        taken = {*self.design, *stored, MEMBER, STATUS, ERROR} if isinstance(self.job.task, FunctionTask) else ()
        if clash := [name for name in layout if name in taken]:
            raise SolveError(
                f"the task returned {', '.join(clash)}, a name of the design or of every sweep ({MEMBER}, {STATUS}, "
                f"{ERROR}): give the result another name"
            )
        with writable(self.store_name):
            self.store.begin(layout)

    def _kept(self) -> str:
        """How much has been computed, and how to continue."""
        done = int(np.count_nonzero(self.store.status != MemberStatus.NOT_RUN))
        have = f"{done} of {self.design.members} members have been computed"
        if self.store_name is None:
            return f"{have} and are in .sweep of this exception; with store= a sweep can be resumed"
        return (
            f"{have} and are in the store; the same call computes the others (with a new executor, if this one broke)"
        )


def _difference(found: Layout, expected: Layout) -> str:
    """What distinguishes the results of a member from those of others; empty if they fit."""
    for name in {**expected, **found}:
        if name not in found:
            return f"the task returned no {name}, which other members have"
        if name not in expected:
            return f"the task returned {name}, which other members do not have"
        have, need = found[name], expected[name]
        if have.shape != need.shape or have.is_complex > need.is_complex:
            return f"the task returned for {name} {have}; other members have {need}, and all must be alike"
    return ""


def _check(solver: Any, executor: Any, retry_failed: Any, store: Any, progress: Any) -> None:
    if not isinstance(solver, Solver):
        raise SolveError(f"solver is {brief(solver)}; expected a kanegen.Solver")
    if executor is not None and not isinstance(executor, Executor):
        advice = ": give client.get_executor()" if hasattr(executor, "get_executor") else ""
        raise SolveError(f"executor is {brief(executor)}; expected a concurrent.futures.Executor{advice}")
    if flag(retry_failed, "retry_failed") and store is None:
        raise SolveError("retry_failed=True needs store=, where an earlier sweep has left its failures")
    if not (isinstance(progress, bool | np.bool_) or callable(progress)):
        raise SolveError(f"progress is {brief(progress)}; expected True, False or a function of (members done, N)")


def _completed(solver: Solver, design: Design) -> Solver:
    """The solver, in which parameters without a value have the first finite one of the design.

    Without any, chunks in which all values are NaN would be refused, where their members are to fail.
    """
    missing = [name for name, value in solver.parameters.items() if value is None and name in design]
    finite = {name: design[name][np.isfinite(design[name])] for name in missing}
    return solver.with_parameters({name: float(array[0]) for name, array in finite.items() if array.size})


def _chunk_size(given: Any, store: Any, members: int) -> int:
    if given is None and store is not None:
        given = stored_chunk_size(store)
    if given is None:
        size = math.ceil(members / _CHUNKS)
        return min(size if size <= _LANES else math.ceil(size / _LANES) * _LANES, _LARGEST_CHUNK)
    return min(positive_integer(given, "chunk_size", "a positive integer, or None"), members)
