"""What a notebook or a terminal shows of a run and of its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from kanegen.display import Table, facts, names, values


class Events(tuple[Any, ...]):
    """The events of a run in order, a tuple of :class:`EventRecord`; a notebook shows them as a table."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        return Events(super().__getitem__(key)) if isinstance(key, slice) else super().__getitem__(key)

    def _repr_html_(self) -> str:
        return event_table(self).html()


def event_table(events: Sequence[Any]) -> Table:
    """Time, name, kind and largest jumps of each event; of many events the first and last ones."""
    kinds = Counter(event.kind for event in events)
    title = f"{len(events)} {'event' if len(events) == 1 else 'events'}"
    title += f": {', '.join(f'{count} {kind}' for kind, count in kinds.items())}" if events else ""
    of_states = ["change of s"] if any(event.s_before.size for event in events) else []
    rows = []
    for event in events:
        jumps = (event.u_after - event.u_before, event.s_after - event.s_before)[: 1 + len(of_states)]
        changes = [f"{np.abs(jump).max(initial=0.0):.6g}" if np.any(jump) else "" for jump in jumps]
        rows.append((f"{event.t:.9g}", event.name, event.kind, *changes))
    return Table.of(title, ("t (s)", "name", "kind", "change of u", *of_states), rows, right=("t (s)",))


def run_table(solution: Any) -> Table:
    """How a run ended, its steps, and the last state."""
    x, statistics, run = solution, solution.statistics, solution.run
    last = np.concatenate(x.last[1:]) if len(x.last) > 1 else np.empty(0)
    variables = (*run.coordinates, *run.speeds, *run.states)
    state = dict(zip(variables, last.tolist(), strict=False))
    contacts = () if x.contacts is None else x.contacts.phases[-1:]
    modes = [f"{name}: {mode}" for phase in contacts for name, mode in phase.modes.items()]
    span = f"{x.t[0]:g} s to {x.t[-1]:g} s, {x.t.size} points" if x.t.size else "no times"
    rows = [
        ("status", f"{x.status.value}: {x.message}"),
        ("t", span),
        ("method", str(run.options.get("method", ""))),
        ("steps", f"{statistics.steps} ({statistics.rejected} rejected)"),
        ("evaluations", str(statistics.evaluations)),
        ("step sizes", f"{statistics.smallest_step:.3g} s to {statistics.largest_step:.3g} s"),
        ("last state", values(state, x.units)),
        ("last modes", names(modes)),
        ("controls", "" if x.control is None else names(x.control.names)),
        *(("warning", text) for text in (() if x.control is None else x.control.warnings)),
    ]
    return facts(f"Solution of {run.model}", rows)
