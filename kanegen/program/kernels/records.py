"""What a program knows of a runtime kernel: one record for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

OK: Final = 0
REPARTITIONED: Final = 1
RANK_DEFICIENT: Final = 3
SINGULAR: Final = -1
INFEASIBLE: Final = -2
"""Statuses, as in C: negative ones are failures."""


@dataclass(frozen=True)
class Kernel:
    """A function ``kg_<name>(*sizes, *arrays)`` of the C runtime.

    Parameters
    ----------
    name, header
        The name without ``kg_``, and the header that defines the C function.
    sizes
        Names of the leading integer arguments.
    arrays
        Name and shape of every array argument, in order; a shape consists of numbers, names of sizes and sums of these
        names. The array ``work`` has the shape () and the length that ``work`` gives.
    results
        The arrays that hold a result afterwards.
    twin
        The same function in Python, for numbers of any precision: it takes the same arguments.
    operations, work
        Operations of one call and the length of the array ``work``, as functions of the sizes.
    """

    name: str
    header: str
    sizes: tuple[str, ...]
    arrays: Mapping[str, tuple[str | int, ...]]
    results: tuple[str, ...]
    twin: Callable[..., int]
    operations: Callable[..., int]
    work: Callable[..., int] = lambda *_: 0

    def lengths(self, *sizes: int) -> dict[str, int]:
        """The length of every array argument for these sizes."""
        values = dict(zip(self.sizes, sizes, strict=True))
        lengths = {
            name: prod(size if isinstance(size, int) else sum(values[n] for n in size.split(" + ")) for size in shape)
            for name, shape in self.arrays.items()
        }
        return lengths | {"work": self.work(*sizes)} if "work" in lengths else lengths
