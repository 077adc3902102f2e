"""Controls that differ least from the free vector, by kernels; the free vector may contain the controls.

With L the inverse of S (Moore-Penrose, in the metric of the weight, damped), ``tau = y + L (z - S y)``. For
``y = Y tau + y0`` (Bajodah 2003, (481): y is arbitrary) this is an equation for tau,
``(I - (I - L S) Y) tau = y0 + L (z - S y0)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kanegen.derivation.control.servo import lowered
from kanegen.graph import Node
from kanegen.program.functions.control.servo_systems import (
    Solved,
    by_kernels,
    in_metric,
    metric_of,
    product,
    scaled_rows,
    stored_rows,
    without_free,
)
from kanegen.program.kernels.control import control_work
from kanegen.program.kernels.servo import control_damped_work
from kanegen.program.records import Block, Call, Check, Step
from kanegen.program.registry import Functions, all_hold, stores


def least_change(f: Functions) -> Solved:
    """The controls of the resolutions that start from y, by singular values, which also tell where there are none."""
    law, changes = f.servo, _Changes(f)
    moved = changes.to("change", changes.system.right)
    nearest = tuple(a + b for a, b in zip(law.free, moved, strict=True))
    if not law.feedback:
        return Solved(tuple(changes.steps), changes.arrays, (), nearest)
    n = len(nearest)
    kept = []
    for j, column in enumerate(law.feedback):
        lost = changes.to(f"change{j}", [product(f.graph, row, column) for row in changes.system.rows])
        kept.append([a - b for a, b in zip(column, lost, strict=True)])
    matrix = [[(f.graph.one if i == j else f.graph.zero) - kept[j][i] for j in range(n)] for i in range(n)]
    steps = (
        *changes.steps,
        Block("(I - (I - S^+ S) Y) tau = S^+ z + (I - S^+ S) y0", (*stored_rows("K", matrix), *stores("tau", nearest))),
        Call("lu_solve", (n, "K", "tau")),
    )
    return Solved(steps, {**changes.arrays, "K": n * n, "tau": n}, (), tuple(f.array("tau", n)))


class _Changes:
    """L times vectors (n_s,), each by one call of a kernel; ``system`` is ``S change = z - S y0`` with scaled rows."""

    def __init__(self, f: Functions) -> None:
        self._f, self._metric = f, metric_of(f)
        servo, linear = f.servo.servo, by_kernels(f)
        damped = servo.damping is not None
        rest = replace(linear.system, right=without_free(f, linear.system))
        self.system = rest if damped else scaled_rows(f, rest)
        m, n = len(rest.right), len(f.servo.free)
        self._sizes = m, n
        work = control_damped_work(m, n) if damped else control_work(m, n)
        self.arrays = {**linear.arrays, "A": m * n, "z": m, "solving": work}
        self.steps: list[Step] = list(linear.steps)
        if self._metric is not None and (held := all_hold(f.graph, self._metric.conditions)) is not None:
            self.steps.append(Check(held))
        # The last input of the kernel: the damping, or the vector that it is to start from.
        self._kernel, self._extra, values = (
            ("control_damped", "damping", lowered(f.equations, [servo.damping]))
            if damped
            else ("control_solve", "zero", (f.graph.zero,) * n)
        )
        self.arrays[self._extra] = len(values)
        self.steps.append(Block("", stores(self._extra, values)))

    def to(self, name: str, right: Sequence[Node]) -> tuple[Node, ...]:
        """``L right``, which passes through a work array of this name."""
        (m, n), rows = self._sizes, in_metric(self.system, self._metric).rows
        self.arrays[name] = n
        self.steps += [
            Block("S (tau - y) = z - S y", (*stored_rows("A", rows), *stores("z", right))),
            Call(self._kernel, (m, n, "A", "z", self._extra, "solving", name)),
        ]
        change = self._f.array(name, n)
        return tuple(change) if self._metric is None else tuple(self._metric.colored(change))
