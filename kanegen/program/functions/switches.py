"""The switches of a model: functions of time and parameters at whose levels something that runs evaluate switches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kanegen.codes import Status
from kanegen.graph import Node
from kanegen.graph.switches import switches
from kanegen.program.builder import Functions
from kanegen.program.catalogue import CONTROLLED_RATES
from kanegen.program.kernels import KERNELS
from kanegen.program.records import Block, Call, Function, Guard, Invoke, SwitchEntry

SUMMARY: Final = "functions of time that switch something, and their rates"

_OF_RUNS: Final = (
    *("rhs", "rhs_stabilized", "momentum_rhs", CONTROLLED_RATES, "state_rates", "laws", "control"),
    *("contacts", "gaps", "contact_values", "events"),
)
"""What integrations evaluate within steps."""


def add_switches(f: Functions) -> tuple[SwitchEntry, ...]:
    """Add the function ``switches`` if something that runs evaluate switches at known times; return the table."""
    found = switches(list(_roots(f)), f.graph.input("t", 0))
    if found:
        f.add("switches", f.fragment().rows([(switch.argument, switch.rate) for switch in found]), SUMMARY)
    return tuple(SwitchEntry(switch.shape, switch.levels) for switch in found)


def _roots(f: Functions) -> Iterator[Node]:
    """Yield the nodes that runs evaluate, without laws that are sampled: these act at the instants of a clock only."""
    waiting = [f.known[name] for name in _OF_RUNS if name in f.known]
    seen: set[Function] = set()
    while waiting:
        function = waiting.pop()
        if function in seen:
            continue
        seen.add(function)
        names = [step.otherwise for step in function.steps if isinstance(step, Guard) and step.otherwise is not None]
        waiting += [f.known[name] for name in names]
        waiting += [step.function for step in function.steps if isinstance(step, Invoke)]
        if function.name != "laws":
            yield from _values(function)
            continue
        model = f.equations.model
        for k, root in zip(model.inputs_with_law, function.roots, strict=True):
            if model.inputs[k].sample_time is None:
                yield root


def _values(function: Function) -> Iterator[Node]:
    """Yield the stored values, without those that only tell values from rounding errors, and the ends of tables.

    Other conditions choose between computations of the same results, which do not switch there.
    """
    calls = [step for step in function.steps if isinstance(step, Call)]
    terms = {KERNELS[call.kernel].array_of("terms", call) for call in calls}
    for step in function.steps:
        if isinstance(step, Block):
            yield from (store.value for store in step.stores if store.array not in terms)
        elif isinstance(step, Guard) and step.status is Status.OUTSIDE_TABLE:
            yield step.condition
