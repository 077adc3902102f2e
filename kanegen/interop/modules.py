"""The module jax, if it is there and computes with doubles."""

from __future__ import annotations

from typing import Any

from kanegen.errors import SolveError


def jax_in_doubles() -> Any:
    """The module jax. Raises `SolveError` if it is missing or computes with 32 bits."""
    try:
        import jax
        import jax.numpy
    except ImportError as error:
        raise SolveError("kanegen.interop.jax needs jax: pip install 'kanegen[targets]'") from error
    require_doubles(jax)
    return jax


def require_doubles(jax: Any) -> None:
    """Raise `SolveError` if JAX computes with 32 bits."""
    if not jax.config.jax_enable_x64:
        raise SolveError(
            "JAX computes with 32 bits, in which the motion of a mechanism has no accurate derivatives: call "
            "jax.config.update('jax_enable_x64', True) before arrays are made"
        )
