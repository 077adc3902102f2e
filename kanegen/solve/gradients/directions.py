"""What a motion is differentiated with respect to: parameters, start values, and inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError, brief
from kanegen.solve.solution.sensitivities import ordinate_label
from kanegen.solve.values import key_name, unknown


class Kind(Enum):
    """Kinds of quantities that can vary."""

    PARAMETER = "parameter"
    START = "start value"
    INPUT = "input"


@dataclass(frozen=True)
class Direction:
    """One quantity that varies: its ``name``, ``kind``, and ``index`` among the parameters, in y = (q, u, s), or among
    the inputs. ``ordinate``: the number of the value of a table, or the coefficient of a spline, that gives an input.
    """

    name: str
    kind: Kind
    index: int
    ordinate: int | None = None

    @property
    def label(self) -> str:
        """The name, with the number of the ordinate: ``"F[3]"``."""
        return self.name if self.ordinate is None else ordinate_label(self.name, self.ordinate)


def read_directions(d: Description, given: Any, what: str) -> tuple[Direction, ...]:
    """The directions with these names or symbols; ``what`` is the name of the argument.

    The name of a coordinate, a speed or a state stands for its value at the start. Raises `SolveError`.
    """
    if isinstance(given, str) or not isinstance(given, Iterable):
        given = (given,)
    known = {name: Direction(name, kind, k) for kind, names in _names(d) for k, name in enumerate(names)}
    directions: dict[str, Direction] = {}
    for key in given:
        name = key_name(key)
        if name not in known:
            raise SolveError(f"{what}: {unknown(name, tuple(known), 'parameter, start value or input')}")
        directions[name] = known[name]
    if not directions:
        raise SolveError(f"{what} is {brief(given)}; expected names of parameters, start values or inputs")
    return tuple(directions.values())


def _names(d: Description) -> Sequence[tuple[Kind, tuple[str, ...]]]:
    state = (*d.coordinates, *d.speeds, *d.states)
    return (Kind.PARAMETER, d.parameters), (Kind.START, state), (Kind.INPUT, d.inputs)


def unit_columns(directions: Sequence[Direction], kind: Kind, n: int) -> Array:
    """The changes (n, k) of the quantities of one kind along the directions."""
    columns = np.zeros((n, len(directions)))
    for k, direction in enumerate(directions):
        if direction.kind is kind:
            columns[direction.index, k] = 1.0
    return columns
