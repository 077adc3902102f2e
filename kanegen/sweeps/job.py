"""The solver and the task of a sweep, which are sent once to each worker, without the C sources.

The sources of a model are long, and most workers have them: in the jobs that they opened, or in the cache of their host
(``KANEGEN_CACHE_DIR``). A pickle therefore contains their digests in their place. A worker that does not know the
sources answers so and gets the chunk again, with the sources, which it keeps for the others on its host. The cache
compiles them once on each host.
"""

from __future__ import annotations

import io
import pickle
import threading
import zlib
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar, NamedTuple

from kanegen._version import __version__
from kanegen.backends.cython.cache import open_cache
from kanegen.codegen.sources import Sources, files_digest
from kanegen.errors import BuildError, SolveError
from kanegen.solve import Solver
from kanegen.sweeps.tasks import Task

_KEPT = 4
"""Jobs that a process keeps."""


class SourcesKey(NamedTuple):
    """The model digest of sources, and the digest of their texts."""

    model: str
    texts: str

    @classmethod
    def of(cls, sources: Sources) -> SourcesKey:
        """The key of these sources."""
        return cls(sources.digest, files_digest(sources.files))


class SourcesMissingError(Exception):
    """This host does not have the sources that a job refers to."""


class Job:
    """A solver and a task."""

    def __init__(self, solver: Solver, task: Task) -> None:
        self.solver, self.task = solver, task
        self._sources: dict[SourcesKey, Sources] = {}

    def open(self, sources: bytes | None = None) -> Job:
        """The job itself."""
        return self

    @cached_property
    def packed(self) -> bytes:
        """The compressed pickle without sources. Raises `SolveError` for a task that cannot be pickled."""
        buffer = io.BytesIO()
        try:
            _pickler(buffer, self._sources).dump((self.solver, self.task))
        except Exception as error:  # of any class of the user's objects
            raise SolveError(
                f"the task cannot be sent to other processes: {type(error).__name__}: {error}; define functions at the "
                "level of a module that the workers can import, or install cloudpickle (pip install 'kanegen[sweep]')"
            ) from error
        return zlib.compress(buffer.getvalue(), 1)

    @cached_property
    def packed_sources(self) -> bytes:
        """The compressed sources that the pickle refers to."""
        _ = self.packed
        return zlib.compress(pickle.dumps(list(self._sources.values())))

    def __reduce__(self) -> tuple[Any, ...]:
        return ReceivedJob, (sha256(self.packed).hexdigest(), self.packed, __version__)


class ReceivedJob:
    """A job in another process, which is opened once."""

    _opened: ClassVar[dict[str, Job]] = {}
    _lock: ClassVar[Any] = threading.Lock()

    def __init__(self, digest: str, packed: bytes, version: str) -> None:
        self._digest, self._packed, self._version = digest, packed, version

    def __reduce__(self) -> tuple[Any, ...]:
        return ReceivedJob, (self._digest, self._packed, self._version)

    def open(self, sources: bytes | None = None) -> Job:
        """The job, with the given sources or those of this host.

        Raises `SourcesMissingError`, and `BuildError` if the model cannot be compiled or loaded here.
        """
        with self._lock:
            if self._digest not in self._opened:
                self._opened[self._digest] = self._unpacked(sources)
                for old in list(self._opened)[:-_KEPT]:
                    del self._opened[old]
            return self._opened[self._digest]

    def _unpacked(self, sources: bytes | None) -> Job:
        if self._version != __version__:
            raise BuildError(f"kanegen {__version__} is installed here, but the sweep uses {self._version}")
        given = () if sources is None else pickle.loads(zlib.decompress(sources))
        for item in given:
            open_cache().store_sources(item)
        known = {SourcesKey.of(item): item for item in given}
        return Job(*_Unpickler(io.BytesIO(zlib.decompress(self._packed)), known).load())


def _pickler(file: Any, found: dict[SourcesKey, Sources]) -> Any:
    """A pickler that writes keys in place of sources, and notes the sources; of cloudpickle if it is installed."""

    def persistent_id(self: Any, value: Any) -> SourcesKey | None:
        if not isinstance(value, Sources):
            return None
        key = SourcesKey.of(value)
        found[key] = value
        return key

    try:
        from cloudpickle import Pickler as Base  # functions of a notebook or a script are sent by value
    except ImportError:
        from pickle import Pickler as Base
    return type("SourcesPickler", (Base,), {"persistent_id": persistent_id})(file)


class _Unpickler(pickle.Unpickler):
    """Reads sources from ``known`` or from the cache of the host."""

    def __init__(self, file: Any, known: dict[SourcesKey, Sources]) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, key: Any) -> Sources:
        key = SourcesKey(*key)
        if key not in self._known:
            sources = open_cache().load_sources(key.model)
            if sources is None or SourcesKey.of(sources) != key:
                raise SourcesMissingError
            self._known[key] = sources
        return self._known[key]
