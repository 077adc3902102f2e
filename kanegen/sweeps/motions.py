"""The task of a sweep without a function of the user: the motions of its members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError, brief
from kanegen.solve import Solver
from kanegen.solve.many.results import Ensemble
from kanegen.solve.values import Variables, by_name, key_name
from kanegen.sweeps.designs import Design
from kanegen.sweeps.tasks import Computed, Piece, Values, among

SENSITIVITIES: Final = "sensitivities"
"""The argument of motions, and the result."""

_OF_SENSITIVITIES: Final = ("variable", "with_respect_to")
"""The dimensions of derivatives besides the time."""

_STARTS: Final = ("q0", "u0", "s0")

_WITHOUT_INFLUENCE: Final = ("threads", "progress")
"""Arguments on which the motions do not depend."""


@dataclass(frozen=True)
class MotionTask:
    """The motions over ``t_span``; ``options`` are arguments of :meth:`kanegen.Solver.integrate_many`.

    Results are q (K, n_q), u (K, n_u), s (K, n_s) at K times, the value of a reduction, the derivatives (K, n_y, n_z)
    with ``sensitivities=``, and how the motion ended.
    """

    t_span: Any
    options: Mapping[str, Any]
    reserved: ClassVar[tuple[str, ...]] = (
        *("t", "q", "u", "s", "value", "outcome", "t_end", "n_steps", "n_evaluations"),
        *("coordinate", "speed", "state"),
        *(SENSITIVITIES, *_OF_SENSITIVITIES),
    )

    _AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "q": ("coordinate",),
        "u": ("speed",),
        "s": ("state",),
        SENSITIVITIES: _OF_SENSITIVITIES,
    }

    def __post_init__(self) -> None:
        names = self.options.get(SENSITIVITIES)
        if names is not None:  # symbols have no digest
            listed = (names,) if isinstance(names, str) or not isinstance(names, Iterable) else names
            object.__setattr__(self, "options", {**self.options, SENSITIVITIES: tuple(map(key_name, listed))})

    def check(self, solver: Solver, design: Design) -> None:
        """Raise `SolveError` for arguments that are wrong for all members."""
        if "parameters" in self.options:
            raise SolveError("a sweep takes no parameters=: give them in the design, or by solver.with_parameters")
        self._integrate(solver, {name: array[:0] for name, array in design.items()})

    @property
    def settings(self) -> Mapping[str, Any]:
        """See `Task`; results do not depend on the number of threads, nor on whether a default is written out."""
        defaults = {name: item.default for name, item in signature(Solver.integrate_many).parameters.items()}
        given = {name: _plain(value) for name, value in {"t_span": self.t_span, **self.options}.items()}
        return {
            name: value
            for name, value in given.items()
            if name not in _WITHOUT_INFLUENCE and (isinstance(value, np.ndarray) or value != defaults.get(name))
        }

    def run(self, solver: Solver, piece: Piece) -> Computed:
        """See `Task`."""
        many = self._integrate(solver, piece.values)
        values: Values = {
            "outcome": many.status.astype(np.float64),
            "t_end": many.t_end,
            "n_steps": many.n_steps.astype(np.float64),
            "n_evaluations": many.n_evaluations.astype(np.float64),
        }
        values |= {name: x for name, x in (("q", many.q), ("u", many.u), ("s", many.s)) if x.shape[1] and x.shape[2]}
        if many.values is not None:
            values["value"] = many.values
        if many.sensitivities is not None:
            values[SENSITIVITIES] = many.sensitivities.matrix
        return Computed([(np.arange(len(many.status)), values)], {x.index: x.reason for x in many.failures})

    def _integrate(self, solver: Solver, columns: Mapping[str, Array]) -> Ensemble:
        """The motions whose values (n,) are given by name."""
        d, options = solver.description, dict(self.options)
        given = [options.pop(name, None) for name in _STARTS]
        starts: dict[str, Any] = {
            name: {**variables.read(value), **among(variables.names, columns)} or None
            for name, value, variables in zip(_STARTS, given, Variables.of(d, "0"), strict=True)
        }
        inputs, parameters = among(d.inputs, columns), among(d.parameters, columns)
        r = options.pop("r", None)
        if inputs:
            r = {**_named_inputs(r, d), **inputs}
        return solver.integrate_many(self.t_span, **starts, r=r, parameters=parameters, **options)

    def dimensions(self, name: str, ndim: int) -> tuple[str, ...]:
        """See `Task`."""
        return ("t", *self._AXES[name]) if name in self._AXES else ()

    def labels(self, solver: Solver, design: Design) -> Mapping[str, NDArray[Any]]:
        """See `Task`."""
        d, times = solver.description, self.options.get("t_eval")
        if times is None:
            if self.options.get("reduce") is not None:
                return {}
            times = [self.t_span if np.ndim(self.t_span) == 0 else self.t_span[-1]]
        named = {"coordinate": d.coordinates, "speed": d.speeds, "state": d.states}
        if self.options.get(SENSITIVITIES) is not None:
            none = self._integrate(solver, {name: array[:0] for name, array in design.items()}).sensitivities
            named |= dict(zip(_OF_SENSITIVITIES, (none.variables, none.names), strict=True)) if none else {}
        labels: dict[str, NDArray[Any]] = {"t": np.array(times, dtype=np.float64)}
        return labels | {key: np.array(names, dtype=object) for key, names in named.items() if names}


def _plain(value: Any) -> Any:
    """Numbers as floats, and sequences of numbers as arrays, so that equal arguments are the same."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number | list | tuple | np.ndarray):
        return value
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):  # names, functions, splines
        return value
    return array if array.ndim else float(array)


def _named_inputs(r: Any, d: Description) -> dict[str, Any]:
    """The inputs ``r`` by name, beside those of the design."""
    if r is None:
        return {}
    if isinstance(r, Mapping):
        return by_name(r, d.inputs, "input")
    if isinstance(r, np.ndarray | list | tuple) and len(r) == len(d.inputs) and not any(map(np.iterable, r)):
        return dict(zip(d.inputs, r, strict=True))
    raise SolveError(
        f"r is {brief(r)}, and the design has values of inputs: give r as a mapping from the names of the others"
    )
