"""The derivatives of a motion that a run computed, at the stored times and between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from kanegen.arrays import Array, real_array
from kanegen.errors import SolveError
from kanegen.solve.values import key_name, known_name, shown

FIELDS = (
    "variables", "names", "t", "matrix", "valid_until", "reason", "error", "event_times", "rest_times",
)  # fmt: skip
"""The attributes that pickles and files contain."""


class DerivativeSource(Protocol):
    """What computes derivatives beside those at the stored times."""

    @property
    def span(self) -> tuple[float, float]:
        """The times at the start and at the end, s."""
        ...

    def at(self, times: Array) -> Array:
        """The derivatives at times (n_t,), (n_t, n_y, n_z)."""
        ...

    def of(self, quantity: str) -> Array:
        """The derivatives of a quantity, an output or a reaction at the stored times, (n_t, ..., n_z)."""
        ...


def ordinate_label(name: str, ordinate: int) -> str:
    """The name of an ordinate of an input, ``"F[3]"``."""
    return f"{name}[{ordinate}]"


def columns_of(names: Sequence[str], key: Any) -> int | slice:
    """The column of what varies, or those of the ordinates of an input, among ``names``. Raises `SolveError`."""
    if isinstance(key, tuple) and len(key) == 2:
        key = ordinate_label(key_name(key[0]), key[1])
    name = key_name(key)
    if name not in names and (first := ordinate_label(name, 0)) in names:
        start = names.index(first)
        n = sum(other.startswith(f"{name}[") for other in names)
        return slice(start, start + n)
    return names.index(known_name(name, tuple(names), "quantity that varies"))


class Sensitivities:
    """The derivatives of a motion with respect to parameters, start values and inputs.

    ``sensitivities["theta", "m"]`` (n_t,) is the derivative of the variable ``theta`` with respect to ``m`` at the
    stored times of the solution, at fixed time; at an event it is the value after it. ``sensitivities(t)`` gives the
    matrix (n_y, n_z) at a time, or (n_t, n_y, n_z) at several.

    Attributes
    ----------
    variables
        Names of the rows of a matrix, n_y: coordinates, speeds, states.
    names
        Names of the columns, n_z: what varies; ``"F[3]"`` is an ordinate of the table or spline of an input.
    t
        The stored times of the solution, (n_t,), s.
    matrix
        The derivatives at these times, (n_t, n_y, n_z).
    valid_until
        The time up to which the derivatives exist, s; they are NaN after it. The end of the motion if nothing is
        missing.
    reason
        Why they do not exist after it, with the event and the time; None if they do.
    error
        The largest local error of a derivative, relative to its size during the motion; 0 for methods without an
        estimate of errors.
    event_times
        Derivatives of the times of the events of the model that occurred up to then, (n_events, n_z), s per unit.
    rest_times
        Derivatives of the times at which accumulating impacts came to rest, (n, n_z), s per unit.
    """

    def __init__(self, fields: Mapping[str, Any], source: DerivativeSource | None = None) -> None:
        """A record with the attributes ``fields``; ``source``: None for those of a pickle or a file."""
        self.variables: tuple[str, ...] = fields["variables"]
        self.names: tuple[str, ...] = fields["names"]
        self.t: Array = fields["t"]
        self.matrix: Array = fields["matrix"]
        self.valid_until: float = fields["valid_until"]
        self.reason: str | None = fields["reason"]
        self.error: float = fields["error"]
        self.event_times: Array = fields["event_times"]
        self.rest_times: Array = fields["rest_times"]
        self._source = source

    def __repr__(self) -> str:
        return f"<Sensitivities of {', '.join(self.variables)} with respect to {shown(self.names)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Sensitivities, ({name: getattr(self, name) for name in FIELDS},)  # compiled code has no pickle

    @property
    def event_time(self) -> Mapping[str, float]:
        """Derivatives of the time of the last event of the model, by the name of what varies, s per unit."""
        if not len(self.event_times):
            raise SolveError("no event of the model occurred, so there is no derivative of its time")
        return dict(zip(self.names, self.event_times[-1].tolist(), strict=True))

    @property
    def accumulation_time(self) -> Mapping[str, float]:
        """Derivatives of the time at which infinitely many impacts came to rest, the last of which are not computed.

        By the name of what varies, s per unit.
        """
        if not len(self.rest_times):
            raise SolveError("no impacts came to rest, so there is no derivative of the time at which they do")
        return dict(zip(self.names, self.rest_times[-1].tolist(), strict=True))

    def __getitem__(self, key: Any) -> Array:
        """The derivative (n_t,) of a variable with respect to a quantity; both by name or symbol.

        With respect to an input that a table gives, (n_t, n): a column for each ordinate; that of one ordinate is
        ``sensitivities["theta", ("F", 3)]``.
        """
        if not isinstance(key, tuple) or len(key) != 2:
            raise SolveError(f"sensitivities[{key!r}]: expected a pair, the variable and what it depends on")
        row = self.variables.index(known_name(key[0], self.variables, "variable"))
        columns: Array = self.matrix[:, row, columns_of(self.names, key[1])]
        return columns

    def __call__(self, t: Any) -> Array:
        """The derivatives (n_y, n_z) at a time, or (n_t, n_y, n_z) at times (n_t,); at an event those after it."""
        times = real_array(t, "t")
        flat = np.atleast_1d(times)
        start, last = self._known_source.span
        if ((flat < min(start, last)) | (flat > max(start, last))).any():
            raise SolveError(f"times of sensitivities must be within the motion, from t = {start!r} to {last!r} s")
        values = self._known_source.at(flat)
        return values if times.ndim else np.asarray(values[0])

    @property
    def _known_source(self) -> DerivativeSource:
        if self._source is None:
            raise SolveError(
                "pickles and files contain sensitivities at the stored times only: use .matrix, or integrate again"
            )
        return self._source

    def of(self, quantity: Any) -> Array:
        """The derivatives of a quantity, an output or a reaction at the stored times, (n_t, ..., n_z).

        ``quantity``: the name of an attribute of the solver, such as ``"energy"`` or ``"multipliers"``, of an output,
        or of a reaction, whose six components are force and torque; ``"contact_forces"`` for the multipliers of the
        contact rows, in the order of `kanegen.results.ContactHistory`. Raises `SolveError` for other names, and for
        forces of contacts that depend on each other; `BuildError` for forces of constraints in forms for redundant
        constraints.
        """
        return self._known_source.of(key_name(quantity))
