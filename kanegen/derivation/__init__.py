"""Derivation of the equations of motion by Kane's method: :func:`derive` returns :class:`Equations`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kanegen.derivation.fingerprint import fingerprint as fingerprint
from kanegen.derivation.speeds import lower_model as lower_model

if TYPE_CHECKING:
    from kanegen.derivation.equations import Equations as Equations
    from kanegen.derivation.equations import Quantity as Quantity
    from kanegen.derivation.equations import derive as derive


def __getattr__(name: str) -> Any:
    """Import the equations when they are first used: a model from the cache is lowered and not derived."""
    if name in ("Equations", "Quantity", "derive"):
        return getattr(import_module("kanegen.derivation.equations"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
