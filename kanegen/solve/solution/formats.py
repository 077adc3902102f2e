"""The formats in which solutions are saved, by the suffix of the file."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import FileError, warn_user
from kanegen.paths import require_writable
from kanegen.solve.solution import files
from kanegen.solve.solution.tables import data_frame, require
from kanegen.writing import written


@dataclass(frozen=True)
class Format:
    """A format: what ``write(file, solution)`` writes, and the ``packages`` that it needs.

    ``has_sensitivities``: whether it contains the derivatives of a run with ``sensitivities=``.
    """

    write: Callable[[IO[bytes], Any], None]
    packages: tuple[str, ...] = ()
    has_sensitivities: bool = False


def save(solution: Any, path: Any, what: str = "the solution") -> None:
    """Write a solution in the format that the suffix of ``path`` names. Raises `FileError`; ``what`` names the file."""
    target, chosen = checked(path, what)
    with written(target, what) as file:
        chosen.write(file, solution)
    if solution.sensitivities is not None and not chosen.has_sensitivities:
        warn_user(f"{what} in {target} has no sensitivities: save as .nc or .npz, or pickle the solution")


def checked(path: Any, what: str = "the solution") -> tuple[Path, Format]:
    """The path of a solution and its format. Raises `FileError` where none can be written, before any work is done."""
    target = require_writable(path, what)
    if target.suffix.lower() not in FORMATS:
        raise FileError(
            f"{what} {target} cannot be written: expected a name that ends in {' or '.join(FORMATS)}; kg.load reads .nc"
        )
    chosen = FORMATS[target.suffix.lower()]
    for package in chosen.packages:
        require(package, f"{what} {target}")
    return target, chosen


def _names(solution: Any) -> list[str]:
    record, control = solution.run, solution.control
    return [*record.coordinates, *record.speeds, *record.states, *(() if control is None else control.names)]


def _controls(solution: Any) -> Array:
    """The controls of a closed loop (n_t, n_tau), without columns for an open one."""
    control = solution.control
    values: Array = np.empty((len(solution.t), 0)) if control is None else control.values
    return values


def _write_csv(file: IO[bytes], solution: Any) -> None:
    header = StringIO()
    csv.writer(header, lineterminator="\n").writerow(["t", *_names(solution)])
    file.write(header.getvalue().encode(errors="replace"))
    table = np.column_stack((solution.t, solution.q, solution.u, solution.s, _controls(solution)))
    np.savetxt(file, table, delimiter=",", fmt="%.17g")


def _write_npz(file: IO[bytes], solution: Any) -> None:
    arrays: Mapping[str, Any] = {name: getattr(solution, name) for name in "tqus"}
    names, derivatives = np.array(_names(solution), dtype=np.str_), solution.sensitivities
    if derivatives is not None:
        varied = np.array(derivatives.names, dtype=np.str_)
        arrays = {**arrays, "sensitivities": derivatives.matrix, "with_respect_to": varied}
    np.savez(file, names=names, controls=_controls(solution), **arrays)


def _write_parquet(file: IO[bytes], solution: Any) -> None:
    data_frame(solution, ()).to_parquet(file)


FORMATS: Final[Mapping[str, Format]] = {
    ".nc": Format(files.write, has_sensitivities=True),
    ".csv": Format(_write_csv),
    ".npz": Format(_write_npz, has_sensitivities=True),
    ".parquet": Format(_write_parquet, ("pandas", "pyarrow")),
}
