"""A derived quantity: nodes with a shape, and the way back to SymPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy

from kanegen.graph import Node, count_operations, to_sympy, to_sympy_cse

Names = Mapping[tuple[str, int], Any]


@dataclass(frozen=True)
class Quantity:
    """``nodes`` in row-major order with ``shape`` (), (rows,) or (rows, columns)."""

    name: str
    nodes: tuple[Node, ...]
    shape: tuple[int, ...]
    names: Names

    @property
    def operation_count(self) -> int:
        """Operations of one evaluation; what depends on parameters only is not counted."""
        return count_operations(self.nodes)

    def to_sympy(self, cse: bool = False) -> Any:
        """The quantity as a SymPy expression (scalars) or ``ImmutableDenseMatrix`` (vectors are columns).

        With ``cse=True`` the pair ``(replacements, expression)`` in which every shared node appears once, as
        ``sympy.cse`` gives it: large quantities swell without it.
        """
        if cse:
            replacements, expressions = to_sympy_cse(self.nodes, self.names)
            return replacements, self._shaped(expressions)
        return self._shaped(to_sympy(self.nodes, self.names))

    def _shaped(self, expressions: list[Any]) -> Any:
        if not self.shape:
            return expressions[0]
        rows, columns = self.shape if len(self.shape) == 2 else (self.shape[0], 1)
        return sympy.ImmutableDenseMatrix(rows, columns, expressions)
