"""The feedback laws of a model as emitted code evaluates them: continuously, or at the samples of a clock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from kanegen.codegen.description import Description


class LawClock(NamedTuple):
    """A clock of sampled laws: sample time and delay, s."""

    sample_time: float
    delay: float

    @property
    def waiting(self) -> int:
        """The largest number of samples that do not act yet, one that acts, and one more for rounding errors."""
        return math.ceil(self.delay / self.sample_time) + 2


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


def laws_of(description: Description) -> list[Law]:
    """The values of the function ``laws`` of a model, in order."""
    return [Law(k, description.inputs[k], law.sample_time, law.delay) for k, law in description.laws.items()]


def context_of_laws(laws: Sequence[Law]) -> dict[str, Any]:
    """What the templates need: the clocks of sampled laws, and the laws with the index of their clock."""
    clocks = list(dict.fromkeys(law.clock for law in laws if law.clock is not None))
    placed = [PlacedLaw(law.slot, law.name, -1 if law.clock is None else clocks.index(law.clock)) for law in laws]
    return {"laws": placed, "law_clocks": clocks, "continuous_laws": any(law.clock is None for law in laws)}
