"""The tables of a model: what its functions require of the arguments of splines that end at their last points."""

from __future__ import annotations

from typing import Final

from kanegen.program.builder import Functions
from kanegen.program.records import TableEntry

SUMMARY: Final = "arguments of tables, and whether each is inside of its table"


def add_tables(f: Functions) -> tuple[TableEntry, ...]:
    """Add the function ``tables`` if a function of the program can have arguments beyond a table; return the table."""
    needs = tuple(f.requirements.values())
    if needs:
        rows = f.fragment().rows([(need.argument, need.condition) for need in needs])
        f.add("tables", rows, SUMMARY, anywhere=True)
    return tuple(TableEntry(need.domain.label, need.domain.lowest, need.domain.highest) for need in needs)
