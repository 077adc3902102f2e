"""What a program knows of a runtime kernel: one record for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

Shapes: TypeAlias = Mapping[str, tuple[str | int, ...]]
"""Shapes of arrays by name: numbers, names of sizes and sums of these names."""


@dataclass(frozen=True)
class Kernel:
    """A function ``kg_<name>(*sizes, *arrays)`` of the C runtime.

    Parameters
    ----------
    twin
        The same function in Python, for numbers of any precision: it takes the same arguments and has the name of the
        C function without ``kg_``.
    header
        The header that defines the C function.
    sizes
        Names of the leading integer arguments.
    arrays
        Every array argument, in order. The array ``work`` has the shape () and the length that ``work`` gives.
    results
        The arrays that hold a result afterwards.
    operations, work
        Operations of one call and the length of the array ``work``, as functions of the sizes.
    """

    twin: Callable[..., int]
    header: str
    sizes: tuple[str, ...]
    arrays: Shapes
    results: tuple[str, ...]
    operations: Callable[..., int]
    work: Callable[..., int] = lambda *_: 0

    @property
    def name(self) -> str:
        return self.twin.__name__

    def lengths(self, *sizes: int) -> dict[str, int]:
        """The length of every array argument for these sizes."""
        values = dict(zip(self.sizes, sizes, strict=True))
        lengths = {
            name: prod(size if isinstance(size, int) else sum(values[n] for n in size.split(" + ")) for size in shape)
            for name, shape in self.arrays.items()
        }
        return lengths | {"work": self.work(*sizes)} if "work" in lengths else lengths
