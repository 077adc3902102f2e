"""Interprets programs in any arithmetic: blocks with the graph's interpreter, kernels with their Python twins.

It reads the same records as the printer but shares no code with it, so its results verify those of compiled code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from kanegen.codes import Status
from kanegen.graph.interpret import PYTHON, Context, evaluate, evaluate_all
from kanegen.program.kernels import KERNELS
from kanegen.program.records import Block, Call, Check, Function, Invoke, Program


def interpret(
    program: Program, name: str, inputs: Mapping[str, Sequence[Any]], context: Context | None = None
) -> tuple[int, list[Any]]:
    """Return the status of the C function and its output, row-major; the output is undefined if the status is negative.

    Parameters
    ----------
    program, name
        The program and the name of one of its functions, internal ones included.
    inputs
        ``t`` (one element), ``q``, ``u``, ``r``, ``p`` and ``g``, as numbers of the context.
    context
        The arithmetic (:mod:`kanegen.graph.interpret`), that of Python floats by default.
    """
    function = program.function(name)
    context = context or PYTHON
    with context.scope():
        return _run(program, function, dict(inputs), context)


def _run(program: Program, function: Function, values: dict[str, Any], context: Context) -> tuple[int, list[Any]]:
    arrays = {**values, "out": [context.number(0)] * prod(function.shape)}
    arrays.update((array, [context.number(0)] * length) for array, length in function.arrays.items())
    result: int = Status.OK
    for step in function.steps:
        if isinstance(step, Block):
            _store(step, arrays, context)
        elif isinstance(step, Call | Invoke):
            if isinstance(step, Call):
                arguments = [arrays[a] if isinstance(a, str) else a for a in step.arguments]
                status = context.apply(KERNELS[step.kernel].twin, arguments)
            else:
                status, arrays[step.array] = _run(program, step.function, values, context)
            if status < 0:
                return status, arrays["out"]
            result = max(result, status)
        elif not context.holds(evaluate([step.condition], arrays, context)[0]):
            if isinstance(step, Check):
                return Status.SINGULAR, arrays["out"]
            if step.otherwise is None:
                return step.status, arrays["out"]
            return _run(program, program.function(step.otherwise), values, context)
    return result, arrays["out"]


def _store(block: Block, arrays: dict[str, Any], context: Context) -> None:
    known = evaluate_all(block.nodes, arrays, context)
    for store in block.stores:
        arrays[store.array][store.index] = known[store.value.index]
