"""What a tire model gets from the contact with the road, what it gives, and the curve of the Magic Formula."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy

from kanegen.tires.functions import Max, Min, atan, held, sqrt, tan


@dataclass(frozen=True)
class Contact:
    """A state of the contact patch, in the axes of the tire. All values are numbers or SymPy expressions.

    Attributes
    ----------
    load
        Fz, N, not negative.
    kappa
        Longitudinal slip, ``-Vsx / abs(Vx)``.
    tangent
        Lateral slip, ``Vsy / abs(Vx)``, the tangent of the slip angle.
    gamma
        Inclination, rad.
    pressure
        Pa; None: that of the tire.
    speed
        ``abs(Vx)``, m/s; None: the reference speed.
    direction
        1 forward, -1 backward, and between them near rest.
    """

    load: Any
    kappa: Any
    tangent: Any
    gamma: Any
    pressure: Any
    speed: Any
    direction: Any


class Forces(NamedTuple):
    """Forces (N) and moments (N m) of the road on the tire, at the contact point, in ISO-W axes."""

    Fx: Any
    Fy: Any
    Mx: Any
    My: Any
    Mz: Any


def curve(B: Any, C: Any, E: Any, x: Any) -> Any:
    """The angle ``C atan(B x - E (B x - atan(B x)))``, whose sine or cosine is the Magic Formula."""
    reach = held(B * x)
    return C * atan(reach - E * (reach - atan(reach)))


def at_most_one(E: Any) -> Any:
    """A curvature factor, limited to 1 as the formula demands."""
    return Min(E, 1)


def free(value: Any) -> bool:
    """Whether a value is an expression and not a number."""
    return isinstance(value, sympy.Basic) and not value.is_number


def hypotenuse(a: Any, b: Any) -> Any:
    """``sqrt(a^2 + b^2)`` with finite derivatives at zero: the constant is far below rounding elsewhere."""
    return sqrt(a**2 + b**2 + 1e-20)


def equivalent_slip(slip: Any, by_slip: Any) -> Any:
    """The size of the slip angle, rad, of which the moments of combined slip are those of pure slip (4.E77, 4.E78).

    ``by_slip`` is the longitudinal slip times the ratio of the slip stiffnesses. Slip angles count up to 1.5 rad,
    beyond which the tangent would fold back.
    """
    return atan(hypotenuse(tan(limited(slip, 1.5)), by_slip))


def limited(value: Any, limit: Any = 1.0) -> Any:
    """A value within ``-limit`` and ``limit``."""
    return Max(Min(value, limit), -limit)
