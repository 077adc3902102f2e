"""The switches of a model: functions of time and parameters at whose levels something that runs evaluate switches."""

from __future__ import annotations

from collections.abc import Container, Iterator
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
        model = f.equations.model
        laws = model.inputs_with_law if function.name == "laws" else ()
        sampled = {place for place, k in enumerate(laws) if model.inputs[k].sample_time is not None}
        yield from _values(function, sampled)


def _values(function: Function, sampled: Container[int]) -> Iterator[Node]:
    """Yield the values that switch: those stored, except ``sampled`` elements of the result, and the ends of tables.

    What only tells values from rounding errors switches nothing, nor do other conditions: they choose between
    computations of the same results.
    """
    calls = [step for step in function.steps if isinstance(step, Call)]
    terms = {KERNELS[call.kernel].array_of("terms", call) for call in calls}
    for step in function.steps:
        if isinstance(step, Block):
            for store in step.stores:
                if store.array not in terms and not (store.array == "out" and store.index in sampled):
                    yield store.value
        elif isinstance(step, Guard) and step.status is Status.OUTSIDE_TABLE:
            yield step.condition
