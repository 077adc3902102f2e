"""Every KanesMethod whose equations a SymPy test forms, compared as it happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sympy.physics.mechanics import KanesMethod

_original = KanesMethod.kanes_equations


def install(seen: Callable[[KanesMethod, float], None]) -> None:
    """Call ``seen(kanes_method, seconds)`` after every successful ``kanes_equations``."""

    def kanes_equations(self: KanesMethod, *args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        found = _original(self, *args, **options)
        seen(self, time.perf_counter() - start)
        return found

    KanesMethod.kanes_equations = kanes_equations


def uninstall() -> None:
    KanesMethod.kanes_equations = _original
