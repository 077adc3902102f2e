"""Shares of large tables of cases: some run in every session, the others in ``make test-campaigns``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def share(cases: Iterable[Any], of: int) -> list[Any]:
    """Parameters of a test: every ``of``-th case as it is, the others marked ``campaign``; a tuple has several values.

    Give a number of which the lengths of the inner loops over the cases are no multiple, so that each of their values
    occurs.
    """
    marks = [() if k % of == 0 else pytest.mark.campaign for k in range(of)]
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=marks[k % of])
        for k, case in enumerate(cases)
    ]
