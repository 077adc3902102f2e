"""Solutions in files: netCDF (classic format), which xarray, MATLAB and many other programs read.

The numbers are variables, ``q`` (time, coordinate) and so on, with the names along each dimension; everything else is
text in the attributes, mappings and lists as JSON. Variables without elements are left out, because the format has no
dimensions of length zero. An attribute is the checksum of the whole file, so that a damaged file is recognized before
anything in it is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from kanegen._version import __version__
from kanegen.arrays import Array
from kanegen.errors import FileError
from kanegen.model.records import FrozenMapping
from kanegen.solve.solution.overview import Events
from kanegen.solve.solution.quantities import Acting
from kanegen.solve.solution.records import (
    ContactHistory,
    ControlHistory,
    Dense,
    EventRecord,
    Outcome,
    Phase,
    RunRecord,
    Saturation,
    Statistics,
)
from kanegen.solve.solution.sensitivities import Sensitivities
from kanegen.writing import reason

FORMAT: Final = 2
"""The version of the layout of the files."""

_ZEROS: Final = b"0" * 64
"""The checksum of a file, SHA-256, is that of the file with these characters in its place."""

_CHECKSUM: Final = re.compile(rb"\0\0\0\x08checksum\0\0\0\x02\0\0\0\x40([0-9a-f]{64})")
"""The attribute ``checksum`` in the bytes of a file."""

EVENT_ARRAYS = {
    "q": "coordinate",
    "u_before": "speed",
    "u_after": "speed",
    "s_before": "state",
    "s_after": "state",
    "impulse": "contact_row",
}
"""The arrays of an :class:`.EventRecord`, with their dimensions."""


def write(file: IO[bytes], solution: Any) -> None:
    """Write a solution with its inputs and checksum."""
    content = _content(solution)
    place = content.index(_ZEROS)
    content[place : place + len(_ZEROS)] = sha256(content).hexdigest().encode()
    file.write(content)


def _content(solution: Any) -> bytearray:
    """The bytes of the file, without the checksum."""
    from scipy.io import netcdf_file

    record: RunRecord = solution.run
    labels = {"coordinate": record.coordinates, "speed": record.speeds, "state": record.states, "input": record.inputs}
    if solution.contacts is not None:
        labels["contact_row"] = solution.contacts.names
    if solution.control is not None:
        labels |= {"control": solution.control.names, "servo_error": solution.control.constraints}
    if solution.sensitivities is not None:
        labels |= {"variable": solution.sensitivities.variables, "with_respect_to": solution.sensitivities.names}
    buffer = BytesIO()
    file = netcdf_file(buffer, "w", version=2)
    for name, value in _attributes(solution).items():
        text = value if isinstance(value, str) else json.dumps(value)
        setattr(file, name, _encoded(text))
    for name, (dimensions, values) in _variables(solution).items():
        _put(file, name, dimensions, values)
    for dimension, names in labels.items():
        if names:
            encoded = np.array([_encoded(name) for name in names])
            characters = encoded.view("S1").reshape(len(names), -1)
            _put(file, dimension, (dimension, f"{dimension}_name"), characters, "c")
            file.variables[dimension]._Encoding = "utf-8"
    if "t" in file.variables:
        file.variables["t"].units = "s"
    file.flush()
    content = bytearray(buffer.getbuffer())
    buffer.close()  # so that the garbage collector does not write once more
    return content


def _encoded(text: str) -> bytes:
    """UTF-8; names can contain surrogates, for which other programs get a question mark."""
    return text.encode(errors="replace")


def _put(file: Any, name: str, dimensions: Sequence[str], values: Any, kind: str = "") -> None:
    if not np.size(values):
        return
    for dimension, size in zip(dimensions, values.shape, strict=True):
        if dimension not in file.dimensions:
            file.createDimension(dimension, size)
    integers = values.dtype.kind == "i"
    variable = file.createVariable(name, kind or ("i" if integers else "d"), tuple(dimensions))
    variable[:] = values


def _attributes(solution: Any) -> dict[str, Any]:
    record, contacts, control = solution.run, solution.contacts, solution.control
    own = ("model", "digest", "parameters", "options")
    return {
        "checksum": _ZEROS.decode(),
        "format": FORMAT,
        "kanegen_version": __version__,
        **{name: _plain(getattr(record, name)) for name in own},
        "status": solution.status.value,
        "message": solution.message,
        "statistics": solution.statistics._asdict(),
        "names": {name: list(getattr(record, name)) for name in ("coordinates", "speeds", "states", "inputs", "held")},
        "events": [[event.name, event.kind] for event in solution.events],
        "contacts": contacts
        and {
            "names": list(contacts.names),
            "phases": [[phase.t_start, phase.t_end, dict(phase.modes)] for phase in contacts.phases],
        },
        "control": control
        and {
            "names": list(control.names),
            "constraints": list(control.constraints),
            "errors": control.errors is not None,
            "saturation": [list(astuple(item)) for item in control.saturation],
            "warnings": list(control.warnings),
        },
        "sensitivities": solution.sensitivities and _of_sensitivities(solution.sensitivities),
    }


def _of_sensitivities(found: Sensitivities) -> dict[str, Any]:
    own = {name: getattr(found, name) for name in ("valid_until", "reason", "error")}
    return {"variables": list(found.variables), "names": list(found.names), **own}


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _variables(solution: Any) -> dict[str, tuple[tuple[str, ...], Any]]:
    contacts, control, dense = solution.contacts, solution.control, solution.dense
    variables: dict[str, tuple[tuple[str, ...], Any]] = {
        "t": (("time",), solution.t),
        "phase": (("time",), solution.phase),
        "q": (("time", "coordinate"), solution.q),
        "u": (("time", "speed"), solution.u),
        "s": (("time", "state"), solution.s),
        "r": (("time", "all_inputs"), _acting(solution)),
        "last": (("last",), np.hstack(solution.last)),
        "event_t": (("event",), np.array([event.t for event in solution.events])),
    }
    for name, dimension in EVENT_ARRAYS.items():
        rows = [getattr(event, name) for event in solution.events]
        variables[f"event_{name}"] = (("event", dimension), np.array(rows))
    if type(dense) is Dense:  # that of a momentum form needs the functions of its solver
        variables |= {f"dense_{item.name}": (("step",), getattr(dense, item.name)) for item in fields(Dense)[:2]}
        variables["dense_coefficients"] = (("step", "dense_row", "y"), dense.coefficients)
    if contacts is not None:
        variables["contact_forces"] = (("time", "contact_row"), contacts.forces)
    if control is not None:
        variables["controls"] = (("time", "control"), control.values)
        if control.errors is not None:
            variables["servo_errors"] = (("time", "servo_error"), control.errors)
    if (found := solution.sensitivities) is not None:
        variables["sensitivities"] = (("time", "variable", "with_respect_to"), found.matrix)
        variables["event_time_sensitivities"] = (("model_event", "with_respect_to"), found.event_times)
        variables["rest_time_sensitivities"] = (("accumulation", "with_respect_to"), found.rest_times)
    return variables


def _acting(solution: Any) -> Array:
    """What acts, in columns: the inputs, contact forces, the free vector, then the states."""
    n_t, at = len(solution.t), solution.point
    return np.hstack(
        [np.broadcast_to(x, (n_t, x.shape[-1])) for x in (at.r, at.forces, at.free, at.s) if x is not None]
    )


def _acting_of(columns: Array, n_r: int, n_s: int, forces: Array | None) -> Acting:
    """The parts of such columns (n_t, n); ``forces`` is None without contacts."""
    n_rows = 0 if forces is None else forces.shape[1]
    free = columns[:1, n_r + n_rows : columns.shape[1] - n_s]
    return Acting(columns[:, :n_r], forces, free[0] if free.size else None)


def read(path: Path) -> tuple[dict[str, Any], Acting]:
    """The fields of the solution in a file, without its solver, and what acts at its times.

    Raises `FileError` for a file that cannot be read, that :func:`write` did not write, or that was changed since.
    """
    from scipy.io import netcdf_file

    content = _checked(path)
    file = netcdf_file(BytesIO(content), "r", mmap=False)
    stored = {name: x.decode() if isinstance(x, bytes) else str(x) for name, x in file._attributes.items()}
    if stored["format"] != str(FORMAT):
        raise FileError(
            f"{path} has the format {stored['format']}; this version of kanegen reads the format {FORMAT}: read it "
            f"with kanegen {stored['kanegen_version']}, which wrote it"
        )
    arrays = {name: np.array(x[:], x[:].dtype.newbyteorder("=")) for name, x in file.variables.items()}
    texts = ("checksum", "model", "digest", "status", "message", "kanegen_version")
    attributes = {name: value if name in texts else json.loads(value) for name, value in stored.items()}
    values = _fields(arrays, attributes)
    record, contacts = values["run"], values["contacts"]
    columns = arrays.get("r", np.empty((len(values["t"]), len(record.inputs))))
    forces = None if contacts is None else contacts.forces
    return values, _acting_of(columns, len(record.inputs), len(record.states), forces)


def _checked(path: Path) -> bytes:
    """The bytes of a file whose checksum is right."""
    try:
        content = bytearray(path.read_bytes())
    except OSError as error:
        raise FileError(f"{path} cannot be read: {reason(error)}") from error
    if not content.startswith(b"CDF"):
        raise FileError(
            f"{path} cannot be read: it is not a netCDF file of the classic format; kg.load reads the files that "
            "solution.save writes under names that end in .nc"
        )
    found = _CHECKSUM.search(content)
    if found is None:
        raise FileError(f"{path} is no solution that kanegen wrote, or it is damaged: it has no checksum")
    place, checksum = found.start(1), found[1]
    del found  # it holds the buffer
    content[place : place + len(_ZEROS)] = _ZEROS
    if sha256(content).hexdigest().encode() != checksum:
        raise FileError(
            f"{path} is damaged, or was changed after kanegen wrote it: its checksum does not fit its content; use a "
            "copy, or save the solution again"
        )
    return bytes(content)


def _fields(arrays: dict[str, Any], a: dict[str, Any]) -> dict[str, Any]:
    names = {kind: tuple(values) for kind, values in a["names"].items()}
    n_t, n_q, n_u, n_s = len(arrays.get("t", ())), *(len(names[kind]) for kind in ("coordinates", "speeds", "states"))
    last = np.split(arrays["last"][1:], [n_q, n_q + n_u])
    record = RunRecord(
        a["model"],
        a["digest"],
        **names,
        parameters=FrozenMapping(a["parameters"]),
        options=FrozenMapping(a["options"]),
    )
    return {
        "t": arrays.get("t", np.empty(0)),
        **{x: arrays.get(x, np.empty((n_t, n))) for x, n in zip("qus", (n_q, n_u, n_s), strict=True)},
        "status": next(outcome for outcome in Outcome if outcome.value == a["status"]),
        "message": a["message"],
        "statistics": Statistics(**a["statistics"]),
        "last": (float(arrays["last"][0]), *(last if n_s else last[:2])),
        "dense": _dense(arrays),
        "events": _events(arrays, a, (n_q, n_u, n_u, n_s, n_s)),
        "contacts": a["contacts"] and _contacts(arrays, a["contacts"], n_t),
        "control": a["control"] and _control(arrays, a["control"], n_t),
        "sensitivities": _sensitivities(arrays, a.get("sensitivities")),
        "run": record,
    }


def _dense(arrays: dict[str, Any]) -> Dense | None:
    names = [f"dense_{item.name}" for item in fields(Dense)]
    return Dense(*(arrays[name] for name in names)) if set(names) <= arrays.keys() else None


def _events(arrays: dict[str, Any], a: dict[str, Any], sizes: tuple[int, ...]) -> Events:
    count, n_rows = len(a["events"]), len((a["contacts"] or {"names": ()})["names"])
    widths = zip(EVENT_ARRAYS, (*sizes, n_rows), strict=True)
    columns = {name: arrays.get(f"event_{name}", np.empty((count, width))) for name, width in widths}
    names = (*a["names"]["speeds"], *a["names"]["states"])
    return Events(
        EventRecord(float(arrays["event_t"][k]), name, kind, names=names, **{part: x[k] for part, x in columns.items()})
        for k, (name, kind) in enumerate(a["events"])
    )


def _contacts(arrays: dict[str, Any], a: dict[str, Any], n_t: int) -> ContactHistory:
    phases = tuple(Phase(start, end, FrozenMapping(modes)) for start, end, modes in a["phases"])
    return ContactHistory(phases, arrays.get("contact_forces", np.empty((n_t, len(a["names"])))), tuple(a["names"]))


def _sensitivities(arrays: dict[str, Any], a: dict[str, Any] | None) -> Sensitivities | None:
    """The derivatives at the stored times; None in files of runs without them, and of earlier versions."""
    if a is None:
        return None
    t, (variables, names) = arrays.get("t", np.empty(0)), (tuple(a[key]) for key in ("variables", "names"))
    none = np.empty((0, len(names)))
    return Sensitivities(
        {
            **a,
            "variables": variables,
            "names": names,
            "t": t,
            "matrix": arrays.get("sensitivities", np.empty((len(t), len(variables), len(names)))),
            "event_times": arrays.get("event_time_sensitivities", none),
            "rest_times": arrays.get("rest_time_sensitivities", none),
        }
    )


def _control(arrays: dict[str, Any], a: dict[str, Any], n_t: int) -> ControlHistory:
    names, constraints = tuple(a["names"]), tuple(a["constraints"])
    errors = arrays.get("servo_errors", np.empty((n_t, len(constraints)))) if a["errors"] else None
    saturation = tuple(Saturation(*item) for item in a["saturation"])
    values = arrays.get("controls", np.empty((n_t, len(names))))
    return ControlHistory(values, names, errors, constraints, saturation, tuple(a["warnings"]))
