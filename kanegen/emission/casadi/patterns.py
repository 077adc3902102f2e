"""Sparsity patterns in CasADi's order: by columns, rows ascending in each (compressed column storage)."""

from __future__ import annotations

from dataclasses import dataclass

from kanegen.program.functions.derivatives import Place


@dataclass(frozen=True)
class Pattern:
    """The shape of a matrix and the places of its entries that are not structurally zero, by columns."""

    rows: int
    columns: int
    places: tuple[Place, ...] = ()

    @classmethod
    def dense(cls, rows: int, columns: int = 1) -> Pattern:
        """The pattern of a full matrix."""
        return cls(rows, columns, tuple((i, k) for k in range(columns) for i in range(rows)))

    @property
    def compressed(self) -> tuple[int, ...]:
        """CasADi's array: rows, columns, the start of each column among the entries, their end, the rows of entries."""
        starts = [sum(column < k for _, column in self.places) for k in range(self.columns + 1)]
        return (self.rows, self.columns, *starts, *(row for row, _ in self.places))
