"""Results of a sweep in a Zarr store (format 3) that xarray reads: one chunk of every array for each task."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kanegen._version import __version__
from kanegen.errors import SolveError, brief
from kanegen.paths import file_path
from kanegen.solve import Solver
from kanegen.solve.solution.tables import require
from kanegen.sweeps.designs import Design
from kanegen.sweeps.fingerprint import CHUNK_SIZE, Fingerprint
from kanegen.sweeps.stores import ERROR, STATUS, Field, Layout, MemberStatus, stored_names
from kanegen.sweeps.tasks import MEMBER, Task, Values

_MARK: Final = "kanegen_sweep"
"""The attribute of the group with the fingerprint of the sweep."""

_DESIGN_CHUNK: Final = 1 << 17
"""Members in a chunk of the arrays of the design, which are written at once."""


class ZarrStore:
    """A :class:`kanegen.sweeps.stores.Store` in a Zarr group.

    ``status`` of the members is written after the other arrays of a chunk, so that an interrupted write leaves a chunk
    that is computed again.
    """

    def __init__(self, group: Any, chunk_size: int, task: Task) -> None:
        self._group, self._chunk_size, self._task = group, chunk_size, task
        self.status: NDArray[np.int8] = np.asarray(group[STATUS][...], dtype=np.int8)
        names = group.attrs.get("results")
        self.layout: Layout | None = None
        if names is not None:
            arrays = {name: group[name] for name in names}
            self.layout = {name: Field(tuple(x.shape[1:]), x.dtype.kind == "c") for name, x in arrays.items()}

    def begin(self, layout: Layout) -> None:
        """See `Store`."""
        for name, (shape, _) in layout.items():
            dimensions = (MEMBER, *self._task.dimensions(name, len(shape)))
            self._create(name, layout[name].dtype, layout[name].fill, dimensions, shape)
        self._group.attrs["results"] = list(layout)
        _consolidate(self._group)
        self.layout = layout

    def _create(self, name: str, dtype: Any, fill: Any, dimensions: tuple[str, ...], shape: tuple[int, ...]) -> None:
        _array(
            self._group,
            name,
            shape=(self.status.size, *shape),
            chunks=(self._chunk_size, *(max(1, n) for n in shape)),
            dtype=dtype,
            fill_value=fill,
            dimension_names=dimensions,
        )

    def write(self, members: slice, values: Values, status: NDArray[np.int8], errors: Mapping[int, str]) -> None:
        """See `Store`."""
        for name, array in values.items():
            self._group[name][members] = array
        if errors or (self.status[members] == MemberStatus.FAILED).any():
            texts = np.full(members.stop - members.start, "", dtype=object)
            for member, text in errors.items():
                texts[member - members.start] = text
            self._group[ERROR][members] = texts
        self._group[STATUS][members] = status
        self.status[members] = status

    def read(self, name: str) -> NDArray[Any]:
        """See `Store`. Raises `SolveError` if a file of the array is damaged."""
        try:
            return np.asarray(self._group[name][...])
        except Exception as error:  # of zarr, its codecs or the file system
            raise SolveError(
                f"{name!r} cannot be read from the store {self._group.store}: {type(error).__name__}: {error}"
            ) from error

    def errors(self, members: Iterable[int]) -> dict[int, str]:
        """See `Store`."""
        which = list(members)
        texts = self._group[ERROR][...] if which else []
        return {member: str(texts[member]) for member in which}


def open_store(
    given: Any, design: Design, marks: Fingerprint, chunk_size: int, task: Task, solver: Solver
) -> ZarrStore:
    """Create the store of a sweep, or open the one that an earlier call of the same sweep has left.

    ``given``: the path of a folder, a URL that fsspec knows, or a store of zarr. Raises `SolveError` if it cannot be
    written, contains something else, or belongs to another sweep; the message says what differs.
    """
    zarr = require("zarr", "store=", "sweep")
    local = local_folder(given)
    with writable(given, "; give the name of a new folder"):
        try:
            group = _opened(zarr, given)
        except FileNotFoundError:
            if local is not None and local.is_dir() and any(local.iterdir()):
                raise SolveError(
                    f"the folder {local} is not empty and is no store of a sweep; give the name of a new folder"
                ) from None
            axes = None if design.axes is None else {name: axis.tolist() for name, axis in design.axes.items()}
            attributes = {_MARK: dict(marks), "model": solver.description.name, "design": list(design), "axes": axes}
            group = zarr.create_group(given, zarr_format=3, attributes=attributes)
        _require_same(given, group, marks)
        if STATUS not in group:
            _fill(group, design, chunk_size, task, solver)
        group.attrs["kanegen"] = __version__  # notices here that the store cannot be written
        _consolidate(group)
        return ZarrStore(group, chunk_size, task)


def stored_chunk_size(given: Any) -> int | None:
    """The chunk size of the sweep in a store; None if there is none."""
    zarr = require("zarr", "store=", "sweep")
    local_folder(given)
    try:
        marks = zarr.open_group(given, mode="r", use_consolidated=False).attrs.get(_MARK)
        return int(marks[CHUNK_SIZE])
    except Exception:  # whatever is wrong with the store is said when it is opened to write
        return None


def local_folder(given: Any) -> Path | None:
    """The path of a store in the file system; None for URLs and stores of zarr."""
    if isinstance(given, str) and "://" in given:
        return None
    return file_path(given, "store") if isinstance(given, str | bytes | Path | int | float) else None


@contextmanager
def writable(given: Any, advice: str = "") -> Iterator[None]:
    """Turn what zarr and the file system raise into `SolveError`; ``advice`` is for damaged stores."""
    try:
        yield
    except SolveError:
        raise
    except (KeyError, ValueError, RuntimeError) as error:  # an array or its metadata, a checksum
        reason = f"{type(error).__name__}: {error}"
        raise SolveError(f"the store {brief(given)} is damaged ({reason}){advice}") from error
    except ImportError as error:  # fsspec, or what it needs for a protocol
        package = (error.name or "fsspec").partition(".")[0]
        raise SolveError(
            f"the store {brief(given)} is a URL, which needs a package that is not installed: pip install {package}"
        ) from error
    except Exception as error:  # of zarr, fsspec or the file system
        raise SolveError(f"the store {brief(given)} cannot be written: {type(error).__name__}: {error}") from error


def _opened(zarr: Any, given: Any) -> Any:
    """The group of a store. Raises FileNotFoundError if there is none, `SolveError` where nothing can be written."""
    try:
        return zarr.open_group(given, mode="r+", use_consolidated=False)
    except (FileNotFoundError, json.JSONDecodeError):
        raise
    except ValueError as error:  # a store that can only be read, an unknown protocol
        raise SolveError(
            f"the store {brief(given)} cannot be opened to write: {error}; give a folder, a URL that fsspec knows or a "
            "store of zarr that can be written"
        ) from error


def _fill(group: Any, design: Design, chunk_size: int, task: Task, solver: Solver) -> None:
    """Write what is known before the first result; the status last, because a store without it is filled again."""
    names = stored_names(design, task.reserved)
    for name, values in design.items():
        _filled(group, names[name], values, (MEMBER,))
    for name, values in task.labels(solver, design).items():
        _filled(group, name, values, (name,))
    n = (design.members,)
    flags = {"flag_values": [int(x) for x in MemberStatus], "flag_meanings": " ".join(x.name for x in MemberStatus)}
    sizes = {"shape": n, "chunks": (chunk_size,), "dimension_names": (MEMBER,)}
    _array(group, ERROR, dtype="string", fill_value="", **sizes)
    _array(group, STATUS, dtype=np.int8, fill_value=int(MemberStatus.NOT_RUN), attributes=flags, **sizes)


def _filled(group: Any, name: str, values: NDArray[Any], dimensions: tuple[str, ...]) -> None:
    chunks = (max(1, min(values.size, _DESIGN_CHUNK)),)
    dtype: Any = "string" if values.dtype.kind in "UO" else values.dtype
    _array(group, name, shape=values.shape, chunks=chunks, dtype=dtype, dimension_names=dimensions)
    group[name][...] = values.astype(object) if dtype == "string" else values


def _array(group: Any, name: str, **options: Any) -> None:
    """An array in place of one that an interrupted call has left, with a checksum in each of its files."""
    from zarr.codecs import ZstdCodec

    group.create_array(name, overwrite=True, compressors=ZstdCodec(checksum=True), **options)


def _require_same(given: Any, group: Any, marks: Fingerprint) -> None:
    found = group.attrs.get(_MARK)
    if not isinstance(found, Mapping):
        raise SolveError(f"the store {brief(given)} is no store of a sweep; give the name of a new folder")
    other = [what for what in {**found, **marks} if found.get(what) != marks.get(what)]
    if other:
        sizes = f" ({found.get(CHUNK_SIZE)} in the store, {marks[CHUNK_SIZE]} given)" if CHUNK_SIZE in other else ""
        raise SolveError(
            f"the store {brief(given)} belongs to another sweep: {', '.join(other)} differ(s){sizes}; give another "
            "store, or repeat the sweep with what the store was made with"
        )


def _consolidate(group: Any) -> None:
    """Collect the metadata of all arrays in one file, which xarray looks for."""
    from zarr import consolidate_metadata

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata")  # of format 3; others can ignore the file
        warnings.filterwarnings("ignore", message="Object at .*partial")  # what zarr was writing when it was killed
        consolidate_metadata(group.store, path=group.path)
