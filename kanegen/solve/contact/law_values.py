"""Values of the laws of contacts, known in a run only: checked where one starts."""

from __future__ import annotations

from typing import Any

from kanegen.errors import SolveError
from kanegen.solve.functions import Functions


def check_contact_values(functions: Functions, t: float, q: Any, u: Any, r: Any) -> None:
    """Compare the values of the laws of contacts with their intervals, at the parameters of the solver.

    Raises
    ------
    SolveError
        Naming every contact, value and parameter that is out of range.
    """
    entries = functions.description.contacts.values
    if not entries:
        return
    numbers = functions.get("contact_values").value(t, q, u, r).tolist()
    problems = [
        f"{entry.name} = {number:.6g}: expected {entry.expected}"
        for entry, number in zip(entries, numbers, strict=True)
        if not entry.admits(number)
    ]
    if problems:
        raise SolveError(f"values of contacts at t = {t!r} s: " + "; ".join(problems))
