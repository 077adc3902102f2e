"""Values of the laws of contacts, known in a run only: checked where one starts."""

from __future__ import annotations

import math
from typing import Any

from kanegen.errors import SolveError
from kanegen.model.contact.laws import Value
from kanegen.solve.functions import Functions


def check_contact_values(functions: Functions, t: float, q: Any, u: Any, r: Any) -> None:
    """Compare the values of the laws of contacts with their intervals, at the parameters of the solver.

    Raises
    ------
    SolveError
        Naming every contact, value and parameter that is out of range.
    """
    entries = functions.description.contact_values
    if not entries:
        return
    found = functions.get("contact_values").value(t, q, u, r)
    problems = []
    for (label, least, greatest, strict), number in zip(entries, found.tolist(), strict=True):
        value = Value(
            label, None, -math.inf if least is None else least, math.inf if greatest is None else greatest, strict
        )
        if not value.admits(number):
            problems.append(f"{label} = {number:.6g}: expected {value.expected}")
    if problems:
        raise SolveError(f"values of contacts at t = {t!r} s: " + "; ".join(problems))
