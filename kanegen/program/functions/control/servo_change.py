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
from kanegen.program.fragment import Fragment, Source, flat
from kanegen.program.functions.control.servo_systems import (
    by_kernels,
    in_metric,
    metric_of,
    product,
    scaled_rows,
    without_free,
)
from kanegen.program.registry import Functions


def least_change(f: Functions, s: Fragment) -> Sequence[Node]:
    """The controls of the resolutions that start from y, by singular values, which also tell where there are none."""
    law, changes = f.servo, _Changes(f, s)
    moved = changes.to("change", changes.system.right)
    nearest = [a + b for a, b in zip(law.free, moved, strict=True)]
    if not law.feedback:
        return nearest
    n = len(nearest)
    kept = []
    for j, column in enumerate(law.feedback):
        lost = changes.to(f"change{j}", [product(f.graph, row, column) for row in changes.system.rows])
        kept.append([a - b for a, b in zip(column, lost, strict=True)])
    K = [(f.graph.one if i == j else f.graph.zero) - kept[j][i] for i in range(n) for j in range(n)]
    title, names = "(I - (I - S^+ S) Y) tau = S^+ z + (I - S^+ S) y0", {"a": "K", "b": "tau"}
    return s.call("lu_solve", n, title=title, names=names, a=K, b=nearest)["b"]


class _Changes:
    """L times vectors (n_s,), each by one call of a kernel; ``system`` is ``S change = z - S y0`` with scaled rows."""

    def __init__(self, f: Functions, s: Fragment) -> None:
        self._f, self._s, self._metric = f, s, metric_of(f)
        law, linear = f.servo, by_kernels(f, s)
        damping = law.servo.damping
        rest = replace(linear.system, right=without_free(f, linear.system))
        self.system = rest if damping is not None else scaled_rows(f, rest)
        if self._metric is not None:
            s.require(*self._metric.conditions)
            s.check()
        # The last input of the kernel: the damping, or the vector that it is to start from.
        self._last: dict[str, Source]
        if damping is not None:
            self._kernel, self._last = "control_damped", {"damping": "damping"}
            s.store("", damping=lowered(f.equations, [damping]))
        else:
            self._kernel, self._last = "control_solve", {"y": "zero"}
            s.store("", zero=(f.graph.zero,) * len(law.free))

    def to(self, name: str, right: Sequence[Node]) -> Sequence[Node]:
        """``L right``, which passes through a work array of this name."""
        rows, n = in_metric(self.system, self._metric).rows, len(self._f.servo.free)
        title, A = "S (tau - y) = z - S y", flat(rows)
        solved = self._s.call(self._kernel, len(rows), n, title=title, names={"x": name}, A=A, z=right, **self._last)
        return solved["x"] if self._metric is None else self._metric.colored(solved["x"])
