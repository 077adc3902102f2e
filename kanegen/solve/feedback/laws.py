"""The feedback laws of a model in a run: groups of inputs that compiled code computes from the state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.protocol import Evaluator
from kanegen.codegen.description import Description

LAWS = "laws"
"""The compiled function of all laws."""

UNLIMITED_LAWS = "unlimited_laws"
"""The same without dead bands and saturation, in models with such limits."""

Values = Callable[..., Any]
"""The values of all laws at (t, q, u, r, s)."""


@dataclass(frozen=True)
class ActiveLaws:
    """The laws that give the values of inputs in a run: those of the inputs ``slots``.

    ``values(t, q, u, r, s)`` are the values of all laws of the model.
    """

    slots: tuple[int, ...]
    description: Description
    values: Values

    @property
    def held(self) -> tuple[int, ...]:
        """Indices of the inputs whose laws are sampled."""
        return tuple(k for k in self.slots if self.is_held(k))

    def controls(self, module: Evaluator) -> tuple[Any, ...]:
        """The module's ``Control`` for each group of laws that are evaluated together: continuously, or at samples."""
        return tuple(self._control(module, slots) for slots in self.groups())

    def groups(self) -> tuple[list[int], ...]:
        """The inputs, by index, of each group of laws that are evaluated together."""
        groups: dict[tuple[float | None, float], list[int]] = {}
        for k in self.slots:
            law = self.description.laws[k]
            groups.setdefault((law.sample_time, law.delay), []).append(k)
        return tuple(groups.values())

    def is_held(self, slot: int) -> bool:
        """Whether the law of an input is sampled."""
        return self.description.laws[slot].sample_time is not None

    def _control(self, module: Evaluator, slots: Sequence[int]) -> Any:
        sample_time, delay = self.description.laws[slots[0]].sample_time, self.description.laws[slots[0]].delay
        infinite = np.full(len(slots), np.inf)  # the function contains the limits
        options: dict[str, Any] = {"sample_time": sample_time or 0.0, "delay": delay}
        if len(slots) < len(self.description.laws):
            options["places"] = self.places(slots)
        return module.Control(LAWS, slots, -infinite, infinite, **options)

    def places(self, slots: Sequence[int]) -> tuple[int, ...]:
        """Indices of inputs among the values of all laws."""
        order = list(self.description.laws)
        return tuple(order.index(k) for k in slots)

    def function(self, inputs: Callable[..., Any], n_arguments: int) -> Callable[..., Array]:
        """The values of all inputs (n_r,) at (t, q, u) or (t, q, u, s), from those of the others and the laws.

        ``inputs`` takes the first ``n_arguments`` of these arguments.
        """
        slots, places = list(self.slots), list(self.places(self.slots))

        def evaluate(t: float, *state: Any) -> Array:
            r = np.array(inputs(t, *state[: n_arguments - 1]), dtype=np.float64)
            q, u, *s = state
            r[slots] = self.values(t, q, u, r, *s)[places]
            return r

        return evaluate

    def switches(self) -> tuple[int, ...]:
        """Indices of the kinks of these laws among the events of the compiled model."""
        d = self.description
        active = {name for k in self.slots for name in d.laws[k].switches}
        return tuple(len(d.events) + i for i, name in enumerate(d.switches) if name in active)
