"""The vertical force of a tire, and its radii."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kanegen.tires.functions import Abs, Max, Min, atan

DAMPING_DEPTH: Final = 0.01
"""The deflection over which damping grows to its full size, as a part of the radius: forces have no jump at contact."""


@dataclass(frozen=True)
class Vertical:
    """``(1 + stiffening |spin|) (k1 d + k2 d^2)(1 + by_pressure dpi)`` and damping, never negative.

    radius: m. growth: the radius without load is ``radius (growth[0] + growth[1] spin^2)``. stiffness: k1, N/m, and k2,
    N/m^2. damping: N s/m. nominal: load, N, and stiffness, N/m, by which the effective rolling radius is scaled.
    rolling: the coefficients B, D and F of it. depth: the deflection, m, over which damping grows.
    """

    radius: Any
    growth: tuple[Any, Any]
    stiffness: tuple[Any, Any]
    stiffening: Any
    damping: Any
    by_pressure: Any
    nominal: tuple[Any, Any]
    rolling: tuple[Any, Any, Any]
    depth: Any

    def load(self, deflection: Any, rate: Any, spin: Any, dpi: Any) -> Any:
        """The force, N."""
        depth = Max(deflection, 0)
        elastic = (self.stiffness[0] * depth + self.stiffness[1] * depth**2) * (1 + self.stiffening * Abs(spin))
        damping = self.damping * rate * Min(depth / self.depth, 1)
        return Max(elastic * (1 + self.by_pressure * dpi) + damping, 0)

    def free_radius(self, spin: Any) -> Any:
        """Without load, m."""
        return self.radius * (self.growth[0] + self.growth[1] * spin**2)

    def effective_radius(self, load: Any, spin: Any, dpi: Any) -> Any:
        """The speed of a wheel that rolls freely over its speed of rotation, m."""
        relative = load / self.nominal[0]
        B, D, F = self.rolling
        deflection = self.nominal[0] / (self.nominal[1] * (1 + self.by_pressure * dpi))
        return self.free_radius(spin) - deflection * (D * atan(B * relative) + F * relative)
