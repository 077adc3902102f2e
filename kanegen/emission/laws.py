"""Inputs that emitted code computes from the state: continuously, or at the samples of a clock that are held."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kanegen.codegen.description import Description

LAWS: Final = "laws"
"""The function of the feedback laws of a model, and"""
CONTROL: Final = "control"
"""that of the controls of its servo-constraints."""

CONTINUOUS: Final = -1
"""In place of the index of a clock."""


class LawClock(NamedTuple):
    """A clock of sampled laws: sample time and delay, s."""

    sample_time: float
    delay: float

    @property
    def waiting(self) -> int:
        """The largest number of samples that do not act yet, one that acts, and one more for rounding errors."""
        return math.ceil(self.delay / self.sample_time) + 2


AT_EVERY_STEP: Final = LawClock(0.0, 0.0)
"""The clock of what a program samples at every step: it sets the sample time itself."""


class Law(NamedTuple):
    """One value of the function ``laws``: its slot among the inputs, sample time (None: continuous) and delay, s."""

    slot: int
    name: str
    sample_time: float | None
    delay: float

    @property
    def clock(self) -> LawClock | None:
        """The clock of its samples."""
        return None if self.sample_time is None else LawClock(self.sample_time, self.delay)


class PlacedLaw(NamedTuple):
    """One value of the function ``laws``: its slot among the inputs, and its clock (-1: continuous)."""

    slot: int
    name: str
    clock: int


@dataclass(frozen=True)
class LawGroup:
    """Inputs that one function computes together, a ``kg_law`` of kg_feedback.h: ``slots`` among the inputs, ``places``
    among the values of the function, and limits (infinite: none)."""

    function: str
    clock: int
    slots: tuple[int, ...]
    places: tuple[int, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


def laws_of(description: Description) -> list[Law]:
    """The values of the function ``laws`` of a model, in order."""
    return [Law(k, description.inputs[k], law.sample_time, law.delay) for k, law in description.laws.items()]


def context_of_laws(laws: Sequence[Law]) -> dict[str, Any]:
    """What the templates need: the laws with the index of their clock, alone and in groups, and the clocks."""
    clocks = list(dict.fromkeys(law.clock for law in laws if law.clock is not None))
    placed = [
        PlacedLaw(law.slot, law.name, CONTINUOUS if law.clock is None else clocks.index(law.clock)) for law in laws
    ]
    groups = law_groups(placed)
    waiting = max((clock.waiting for clock in clocks), default=0)
    return {"laws": placed, "law_clocks": clocks, "law_groups": groups, "waiting": waiting}


def law_groups(laws: Iterable[PlacedLaw]) -> list[LawGroup]:
    """The continuous laws, then those of each clock."""
    members: dict[int, list[tuple[int, int]]] = {}
    for place, law in enumerate(laws):
        members.setdefault(law.clock, []).append((law.slot, place))
    return [LawGroup(LAWS, clock, *zip(*members[clock], strict=True)) for clock in sorted(members)]
