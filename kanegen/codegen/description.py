"""What a solver knows of its model beyond the compiled struct: ``description.json`` of the sources."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from kanegen.codegen.sources import Sources
from kanegen.errors import BuildError

DESCRIPTION_FILE = "description.json"
"""Path of the description within the sources: a cached build then derives nothing."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """Names, sizes and labels of a built model; plain values only. Parameter values belong to the model.

    ``input_rate_of[k]`` is the slot whose time derivative slot k holds, None where slot k is a derivative of
    none. ``dependent`` and ``independent`` are indices of speeds. ``constraints`` labels the rows of J,
    ``positions`` and ``velocities`` those of ``residuals``. ``n_holonomic`` and ``n_nonholonomic`` count the
    rows of J that have gains (:meth:`kanegen.Baumgarte.flatten`). ``outputs`` pairs names with shapes,
    ``operations`` names of functions with operation counts; ``functions`` are those that were compiled,
    ``cyclic_coordinates`` those of Hamilton's form; ``no_integrals`` pairs the energy and outputs that a projection
    cannot keep with the reason. ``contact_rows`` names the multipliers of the contacts, ``impulses`` the model's
    impulses, ``events`` are its events as text. ``contact_values`` labels the entries of the function of that name:
    label, least and greatest value (None: no limit), whether the limits are excluded. ``joined`` are the inputs that
    control constraints make part of the state, ``control_levels`` the rows of ``control_residuals``: label, whether
    those inputs can satisfy it, whether it decays. ``controls`` are the inputs that enforce the servo-constraints,
    ``control_limits`` their limits (None: none), ``servo_constraints`` labels the entries of ``servo_residuals``,
    ``servo_levels`` has 2 for each holonomic and 1 for each nonholonomic one; ``servo_free``: the free vector y is
    given at run time. ``path_controls`` are the inputs that inverse dynamics solves for. ``fallible_constants`` pairs
    functions with the numbers of those constants they need that have no value for some parameters. ``reads`` has the
    name of each function, the indices of the parameters and those of the inputs that it reads; ``spare_parameters``
    names the constants of the user's objects that no function reads, which may be given a value all the same.
    ``unavailable`` pairs functions that the model does not have with the reason.
    """

    name: str
    form: str
    coordinates: tuple[str, ...]
    speeds: tuple[str, ...]
    inputs: tuple[str, ...]
    input_defaults: tuple[float | None, ...]
    input_rate_of: tuple[int | None, ...]
    parameters: tuple[str, ...]
    dependent: tuple[int, ...]
    independent: tuple[int, ...]
    constraints: tuple[str, ...]
    positions: tuple[str, ...]
    velocities: tuple[str, ...]
    n_holonomic: int
    n_nonholonomic: int
    potential_energy: bool
    outputs: tuple[tuple[str, tuple[int, ...]], ...]
    operations: tuple[tuple[str, int], ...]
    functions: tuple[str, ...]
    cyclic_coordinates: tuple[str, ...] = ()
    contact_rows: tuple[str, ...] = ()
    contact_values: tuple[tuple[str, float | None, float | None, bool], ...] = ()
    impulses: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    no_integrals: tuple[tuple[str, str], ...] = ()
    fallible_constants: tuple[tuple[str, tuple[int, ...]], ...] = ()
    joined: tuple[int, ...] = ()
    control_levels: tuple[tuple[str, bool, bool], ...] = ()
    controls: tuple[int, ...] = ()
    servo_constraints: tuple[str, ...] = ()
    servo_levels: tuple[int, ...] = ()
    servo_free: bool = False
    control_limits: tuple[tuple[float | None, float | None], ...] = ()
    path_controls: tuple[int, ...] = ()
    reads: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = ()
    spare_parameters: tuple[str, ...] = ()
    unavailable: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        problems = [
            f"{name} has {len(getattr(self, name))} entries for {len(self.inputs)} inputs"
            for name in ("input_defaults", "input_rate_of")
            if len(getattr(self, name)) != len(self.inputs)
        ]
        chosen = sorted((*self.dependent, *self.independent))
        # None chosen: redundant constraints, which only forms without a partition solve.
        if chosen and chosen != list(range(len(self.speeds))):
            problems.append(
                f"dependent {self.dependent} and independent {self.independent} speeds do not make up the "
                f"{len(self.speeds)} speeds"
            )
        if problems:
            raise BuildError(f"the description of the model {self.name!r} is inconsistent: {'; '.join(problems)}")

    @property
    def dependent_names(self) -> tuple[str, ...]:
        """Names of the dependent speeds."""
        return tuple(self.speeds[i] for i in self.dependent)

    @property
    def independent_names(self) -> tuple[str, ...]:
        """Names of the independent speeds."""
        return tuple(self.speeds[i] for i in self.independent)

    def to_json(self) -> str:
        """The record as text: the same record, the same bytes."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Description:
        """The record :meth:`to_json` wrote. Raises `BuildError` for any other text."""
        try:
            values = json.loads(text)
        except ValueError as error:
            raise BuildError(f"{DESCRIPTION_FILE} is not JSON: {error}; clear the cache and build again") from error
        names = {field.name for field in fields(cls)}
        if not isinstance(values, dict) or set(values) != names:
            found = sorted(values) if isinstance(values, dict) else type(values).__name__
            raise BuildError(
                f"{DESCRIPTION_FILE} holds {found}, expected {sorted(names)}; it was written by another "
                "version of "
                "kanegen: clear the cache and build again"
            )
        return cls(**{name: _tuples(value) for name, value in values.items()})

    @classmethod
    def from_sources(cls, sources: Sources) -> Description:
        """The description stored with the sources. Raises `BuildError` when there is none."""
        return cls.from_json(sources.text(DESCRIPTION_FILE))


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
