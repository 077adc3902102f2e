"""What the versions of the Magic Formula have in common: the results of side slip, and combined slip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kanegen.tires.coefficients import Coefficients
from kanegen.tires.contact import at_most_one, curve
from kanegen.tires.functions import atan, cos, sin


@dataclass(frozen=True)
class State:
    """The part of the state of the contact patch that combined slip needs; ``dfz``: relative change of the load."""

    c: Coefficients
    Fz: Any
    dfz: Any
    kappa: Any
    tangent: Any


@dataclass(frozen=True)
class Lateral:
    """Side slip: force, stiffness, factors, friction and shifts."""

    Fy: Any
    K: Any
    B: Any
    C: Any
    mu: Any
    SH: Any
    SV: Any


def weight_x(x: State, steepness: Any) -> Any:
    """The part of the longitudinal force that side slip leaves (4.E51); ``steepness``: B without slip."""
    c = x.c
    B = steepness * cos(atan(c.RBX2 * x.kappa)) * c.LXAL
    E = at_most_one(c.REX1 + c.REX2 * x.dfz)
    return cos(curve(B, c.RCX1, E, x.tangent + c.RHX1)) / cos(curve(B, c.RCX1, E, c.RHX1))


def weight_y(x: State, steepness: Any) -> Any:
    """The part of the lateral force that longitudinal slip leaves (4.E59); ``steepness``: B without slip."""
    c = x.c
    B = steepness * cos(atan(c.RBY2 * (x.tangent - c.RBY3))) * c.LYKA
    E = at_most_one(c.REY1 + c.REY2 * x.dfz)
    SH = c.RHY1 + c.RHY2 * x.dfz
    return cos(curve(B, c.RCY1, E, x.kappa + SH)) / cos(curve(B, c.RCY1, E, SH))


def lateral_force_by_slip(x: State, mu: Any, lean: Any) -> Any:
    """The lateral force of longitudinal slip; ``lean``: the sine of the inclination."""
    c = x.c
    D = mu * x.Fz * (c.RVY1 + c.RVY2 * x.dfz + c.RVY3 * lean) * cos(atan(c.RVY4 * x.tangent))
    return D * sin(c.RVY5 * atan(c.RVY6 * x.kappa)) * c.LVYKA
