"""The results of a sweep, and the errors that contain them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.errors import SolveError
from kanegen.model.records import FrozenMapping
from kanegen.solve.solution.tables import require
from kanegen.solve.values import key_name, unknown
from kanegen.sweeps.designs import Design
from kanegen.sweeps.stores import ERROR, STATUS, MemberStatus, Store
from kanegen.sweeps.tasks import MEMBER


@dataclass(frozen=True)
class MemberFailure:
    """A member that failed: its ``index``, its ``values`` of the design, and the ``reason`` in words."""

    index: int
    values: Mapping[str, float]
    reason: str


@dataclass(frozen=True, eq=False)
class Sweep(Mapping[str, NDArray[Any]]):
    """The results of a sweep of N members: a mapping from their names to arrays (N, ...).

    Members without a result have NaN. Results in a Zarr store are read when they are asked for.

    ``design`` are the values of the members, ``status`` (N,) the states of the members
    (:class:`kanegen.results.MemberStatus`), ``dimensions`` the names of the axes of each result after the first one,
    ``labels`` the coordinates of dimensions by name, for motions ``t`` and the names of coordinates, speeds and states.
    ``store`` holds the results, ``names`` are the names of the design in it.
    """

    design: Design
    status: NDArray[np.int8]
    dimensions: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, NDArray[Any]]
    store: Store
    names: Mapping[str, str]

    def __getitem__(self, name: Any) -> NDArray[Any]:
        if name not in self:
            raise KeyError(unknown(key_name(name), tuple(self), "result"))
        return self.store.read(key_name(name))

    def __contains__(self, name: object) -> bool:
        return key_name(name) in (self.store.layout or ())

    def __iter__(self) -> Iterator[str]:
        return iter(self.store.layout or ())

    def __len__(self) -> int:
        return len(self.store.layout or ())

    def __repr__(self) -> str:
        counts = {code: int(np.count_nonzero(self.status == code)) for code in MemberStatus}
        text = f"{counts[MemberStatus.FINISHED]} of {self.status.size} members finished"
        failed, missing = counts[MemberStatus.FAILED], counts[MemberStatus.NOT_RUN]
        parts = (text, f"{failed} failed" if failed else "", f"{missing} not run" if missing else "")
        return f"<Sweep over {', '.join(self.design)}: {', '.join(filter(None, parts))}; {', '.join(self)}>"

    @property
    def success(self) -> NDArray[np.bool_]:
        """Whether each member finished, (N,)."""
        return np.equal(self.status, MemberStatus.FINISHED)

    @property
    def failures(self) -> tuple[MemberFailure, ...]:
        """The members that failed, in order, with the reasons."""
        which = np.flatnonzero(self.status == MemberStatus.FAILED).tolist()
        reasons = self.store.errors(which)
        columns = self.design.items()
        return tuple(MemberFailure(i, FrozenMapping({k: float(x[i]) for k, x in columns}), reasons[i]) for i in which)

    def on_grid(self, name: Any) -> NDArray[Any]:
        """A result, (n_1, n_2, ..., ...) over the axes of a grid; also ``"status"``, and names of the design.

        Raises `SolveError` for a design that is no grid, `KeyError` for unknown names.
        """
        axes = self.design.axes
        if axes is None:
            raise SolveError("the design of this sweep is no grid: on_grid needs one made by kg.grid")
        key = key_name(name)
        of_members = self.status if key == STATUS else self.design.get(key)
        array = self[key] if of_members is None or key in self else of_members
        return array.reshape(*(axis.size for axis in axes.values()), *array.shape[1:])

    def to_xarray(self) -> Any:
        """The results as ``xarray.Dataset`` in memory, over the axes of a grid, or over ``member``.

        A large store is better read by ``xarray.open_zarr(path)``, which loads what is used. Raises `SolveError` if
        xarray is not installed.
        """
        xarray = require("xarray", "to_xarray", "sweep")
        names, axes = self.names, self.design.axes
        sizes = {MEMBER: self.status.size} if axes is None else {names[key]: axis.size for key, axis in axes.items()}

        def variable(array: NDArray[Any], dimensions: tuple[str, ...] = ()) -> Any:
            return (*sizes, *dimensions), array.reshape(*sizes.values(), *array.shape[1:])

        results = {key: self[key] for key in self}
        variables = {key: variable(x, self.dimensions[key]) for key, x in results.items()}
        texts = np.full(self.status.shape, "", dtype=object)
        for failure in self.failures:
            texts[failure.index] = failure.reason
        variables |= {STATUS: variable(self.status), ERROR: variable(texts)}
        of_design = {names[key]: variable(x) for key, x in self.design.items()}
        of_axes = {names[key]: (names[key], np.array(axis)) for key, axis in (axes or {}).items()}
        return xarray.Dataset(variables, {**self.labels, **(of_axes or of_design)})


class _WithSweep(BaseException):
    """An exception with the results of the chunks that were finished."""

    def __init__(self, message: str, sweep: Sweep) -> None:
        super().__init__(message)
        self.sweep = sweep

    def __reduce__(self) -> tuple[type[BaseException], tuple[str, Sweep]]:
        return (type(self), (str(self), self.sweep))


class SweepError(_WithSweep, SolveError):
    """A sweep that was not finished: a worker, the executor or the store failed.

    ``sweep`` holds the results of the finished chunks.
    """


class SweepInterrupted(_WithSweep, KeyboardInterrupt):
    """Ctrl-C during a sweep; ``sweep`` holds the results of the finished chunks."""
