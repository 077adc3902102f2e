"""Solutions as tables: pandas data frames and xarray data sets (the optional dependencies ``kanegen[data]``)."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kanegen.errors import SolveError
from kanegen.solve.solution.quantities import quantity_unit
from kanegen.solve.values import names_in
from kanegen.units import Unit


def data_frame(solution: Any, quantities: Iterable[str]) -> Any:
    """A ``pandas.DataFrame``; see :meth:`kanegen.Solution.to_dataframe`."""
    pandas = require("pandas", "to_dataframe")
    values = _columns(solution, quantities)
    columns = {_phase_name(values): solution.phase}
    for name, array in values.items():
        for place in np.ndindex(array.shape[1:]):
            columns[f"{name}[{', '.join(map(str, place))}]" if place else name] = array[(slice(None), *place)]
    return pandas.DataFrame(columns, index=pandas.Index(solution.t, name="t"))


def data_set(solution: Any, quantities: Iterable[str]) -> Any:
    """An ``xarray.Dataset``; see :meth:`kanegen.Solution.to_xarray`."""
    xarray = require("xarray", "to_xarray")
    requested = names_in(quantities, "quantities")
    values, record = _columns(solution, requested), solution.run
    units = {**solution.units, **{name: quantity_unit(solution, name) for name in requested}}
    variables = {
        name: (("t", *(f"{name}_{k}" for k in range(array.ndim - 1))), array, _attributes(units.get(name)))
        for name, array in values.items()
    }
    coordinates: dict[str, Any] = {"t": ("t", solution.t, {"units": "s"}), _phase_name(values): ("t", solution.phase)}
    if solution.sensitivities is not None:
        derivatives = solution.sensitivities
        variables["sensitivities"] = (("t", "variable", "with_respect_to"), derivatives.matrix, {})
        coordinates |= {"variable": list(derivatives.variables), "with_respect_to": list(derivatives.names)}
    texts = {name: json.dumps(dict(getattr(record, name))) for name in ("parameters", "options")}
    attributes = {"model": record.model, "digest": record.digest, "status": solution.status.value, **texts}
    return xarray.Dataset(variables, coordinates, attributes)


def _attributes(unit: Unit | None) -> dict[str, str]:
    """The coherent SI unit of a variable, if it is known; arrays are never converted."""
    return {} if unit is None else {"units": unit.si}


def require(package: str, what: str, extra: str = "data") -> Any:
    """An optional package. Raises `SolveError` that says how to install it, with an ``extra`` of kanegen."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise SolveError(f"{what} needs {package}: install it by pip install 'kanegen[{extra}]'") from error


def _columns(solution: Any, quantities: Iterable[str]) -> dict[str, Any]:
    """Arrays (n_t, ...) by name: the motion, inputs, contact forces, outputs, and the requested quantities."""
    record, contacts = solution.run, solution.contacts
    columns: dict[str, Any] = {}
    parts = (record.coordinates, solution.q), (record.speeds, solution.u), (record.states, solution.s)
    for names, array in (*parts, (record.inputs, solution.inputs)):
        columns |= dict(zip(names, array.T, strict=True))
    if contacts is not None:
        labels = [f"multiplier of {name}" for name in contacts.names]
        columns |= dict(zip(labels, contacts.forces.T, strict=True))
    if solution.reference is not None:
        d = solution.solver.description
        columns |= {name: solution.outputs[name] for name in solution.outputs if d.has(f"output:{name}")}
    for name in names_in(quantities, "quantities"):
        columns |= _named(name, solution.reactions if name == "reactions" else _quantity(solution, name))
    return columns


def _quantity(solution: Any, name: str) -> Any:
    try:
        return getattr(solution, name)
    except AttributeError as error:
        raise SolveError(f"{error}: name quantities of the solver, or 'reactions'") from error


def _named(name: str, value: Any) -> dict[str, Any]:
    """Arrays by name from a quantity: an array, a tuple of arrays, or reactions."""
    if isinstance(value, Mapping):
        return {f"{key} {part}": x for key, wrench in value.items() for part, x in wrench._asdict().items()}
    if isinstance(value, tuple):
        return {f"{name} {k}": x for k, x in enumerate(value)}
    if not isinstance(value, np.ndarray):
        raise SolveError(f"{name} is no quantity along the motion: name quantities of the solver, or 'reactions'")
    return {name: value}


def _phase_name(columns: Mapping[str, Any]) -> str:
    return "phase" if "phase" not in columns else "phase_index"
