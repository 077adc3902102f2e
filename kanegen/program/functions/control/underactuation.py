"""The function of the equations of motion in which no control appears."""

from __future__ import annotations

from typing import Final

from kanegen.derivation.control.underactuation import underactuation
from kanegen.derivation.equations import PIVOT_LIMIT, Equations
from kanegen.program.records import Block, Guard
from kanegen.program.registry import Functions, Made, all_hold, stores

SUMMARY: Final = "[R c] of R u' = c: the equations of motion along the directions that no control reaches"


def exists(equations: Equations) -> bool:
    """Whether the model has controls, and degrees of freedom that they do not reach."""
    return (
        bool(equations.model.inputs)
        and equations.has_partition
        and bool(equations.once(underactuation).equations.nodes)
    )


def make(f: Functions) -> Made:
    """Straight-line code, guarded where the directions of the controls or the partition degenerate."""
    found = f.equations.once(underactuation)
    pivots = (*f.equations.partition.pivots, *found.pivots)
    held = [condition for pivot in pivots if (condition := pivot.holds(PIVOT_LIMIT)) is not None]
    condition = all_hold(f.graph, held)
    guard = () if condition is None else (Guard(condition, None),)
    return (*guard, Block("", stores("out", found.equations.nodes))), found.equations.shape, {}
