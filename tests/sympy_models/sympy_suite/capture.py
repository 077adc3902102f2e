"""Every KanesMethod and LagrangesMethod whose equations a SymPy test forms, compared as it happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sympy.physics.mechanics import KanesMethod, LagrangesMethod

_ORIGINALS = {KanesMethod: KanesMethod.kanes_equations, LagrangesMethod: LagrangesMethod.form_lagranges_equations}
"""The function of each class that forms the equations."""


def install(seen: Callable[[Any, float], None]) -> None:
    """Call ``seen(method, seconds)`` after every successful ``kanes_equations`` or ``form_lagranges_equations``."""
    for method, original in _ORIGINALS.items():
        setattr(method, original.__name__, _watched(original, seen))


def _watched(original: Callable[..., Any], seen: Callable[[Any, float], None]) -> Callable[..., Any]:
    def watched(self: Any, *args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        found = original(self, *args, **options)
        seen(self, time.perf_counter() - start)
        return found

    return watched


def uninstall() -> None:
    for method, original in _ORIGINALS.items():
        setattr(method, original.__name__, original)
