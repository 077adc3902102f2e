"""The modes of the contacts in each part of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError
from kanegen.program.catalogue import CONTACT_CHANGES, CONTACT_GUARDS
from kanegen.solve.gradients.code import VariationCode
from kanegen.solve.gradients.modes import modes_after
from kanegen.solve.gradients.tape import Part
from kanegen.solve.solution import EventRecord, Solution

_FORCE: Final = CONTACT_GUARDS.index("normal force")

_SAMPLED: Final = 50
"""States of a part at which the sign of a two-sided normal force is checked."""


class RunModes:
    """Gives the parts of a run their modes (:class:`kanegen.solve.gradients.tape.PhaseModes`)."""

    def __init__(self, code: VariationCode, solution: Solution) -> None:
        self._code = code
        self._phases = () if solution.contacts is None else solution.contacts.phases

    def given(self, part: Part, last: Part | None, events: Sequence[EventRecord]) -> Part:
        """The part with its modes. Raises `SolveError` for modes without derivatives."""
        code = self._code
        if not code.functions.description.contacts.rows:
            return replace(part, modes=np.zeros(code.modes.size))
        named = self._named(part, last, events)
        k = len(part.t) // 2
        inside = 0.5 * (part.y[k] + part.y[min(k + 1, len(part.y) - 1)])
        t = float(part.t[k]) if part.t.size else part.t_end
        numbers = code.modes.of_phase(named, code.at(t, inside))
        if code.modes.has_two_sided:
            numbers = self._signed(part, numbers)
        return replace(part, modes=numbers, named_modes=named)

    def _named(self, part: Part, last: Part | None, events: Sequence[EventRecord]) -> Mapping[str, str]:
        """The modes by name: those of the phase of the run, or after the events at its end."""
        if part.t.size:
            middle = 0.5 * (float(part.t[0]) + part.t_end)
            return next(
                phase.modes
                for phase in self._phases
                if min(phase.t_start, phase.t_end) <= middle <= max(phase.t_start, phase.t_end)
            )
        if last is None:
            return self._phases[0].modes
        at = self._code.at(part.t_end, part.y[-1])
        return self._code.modes.with_friction(modes_after(last.named_modes, events), at)

    def _signed(self, part: Part, numbers: Array) -> Array:
        """The numbers with the signs of the two-sided normal forces. Raises `SolveError` if one changes."""
        code, stride = self._code, max(1, len(part.y) // _SAMPLED)
        times, found = np.append(part.t, part.t_end), set()
        for t, y in zip(times[::stride].tolist(), part.y[::stride], strict=True):
            trial = numbers
            for _ in code.modes.table:
                values = code.change(CONTACT_CHANGES, code.at(t, y), np.zeros(code.n_y), modes=trial)
                forces = values.reshape(2, -1, len(CONTACT_GUARDS))[0, :, _FORCE]
                trial = code.modes.signs(trial, forces)
            found.add(trial.tobytes())
        if len(found) > 1:
            raise SolveError(
                f"sensitivities are not available in the interval from t = {float(times[0])!r} to {part.t_end!r} s, in "
                "which the normal force of a joint with friction changes its sign"
            )
        return np.frombuffer(found.pop())
