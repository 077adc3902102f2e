"""Magic Formula 5.2, also known as PAC2002: Pacejka, Tyre and Vehicle Dynamics, 1st edition 2002, chapter 4.3.

Without turn slip. Large slips enter by the tangent of the slip angle, the inclination by its sine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sympy import pi

from kanegen.tires.coefficients import Coefficients
from kanegen.tires.combined import Lateral, State, lateral_force_by_slip, weight_x, weight_y
from kanegen.tires.contact import Contact, Forces, at_most_one, curve, equivalent_slip
from kanegen.tires.functions import Abs, atan, cos, exp, signum, sin, sqrt

EPSILON: Final = 1e-9
"""Added to denominators that vanish without load, N."""


@dataclass(frozen=True)
class _State(State):
    """What all formulas need besides: the sine of the inclination, and the speed."""

    gamma: Any
    speed: Any
    direction: Any


def forces(c: Coefficients, at: Contact) -> Forces:
    """Forces and moments at a state of the contact patch."""
    nominal = c.FNOMIN * c.LFZO
    dfz = (at.load - nominal) / nominal
    speed = c.LONGVL if at.speed is None else at.speed
    x = _State(c, at.load, dfz, at.kappa, at.tangent, sin(at.gamma), speed, at.direction)
    lateral = _lateral(x)
    Fx = _longitudinal_force(x) * weight_x(x, c.RBX1)
    SVk = lateral_force_by_slip(x, lateral.mu, x.gamma)
    Fy = weight_y(x, c.RBY1) * lateral.Fy + SVk
    Mz = _aligning_moment(x, lateral, Fx, Fy, SVk)
    return Forces(Fx, Fy, _overturning_moment(x, Fy), _rolling_moment(x, Fx), Mz)


def slip_stiffness(c: Coefficients, Fz: Any) -> Any:
    """The derivative of the longitudinal force by the slip, N."""
    dfz = Fz / (c.FNOMIN * c.LFZO) - 1
    return Fz * (c.PKX1 + c.PKX2 * dfz) * exp(c.PKX3 * dfz) * c.LKX


def cornering_stiffness(c: Coefficients, Fz: Any, lean: Any) -> Any:
    """The derivative of the lateral force by the slip, N; negative."""
    nominal = c.FNOMIN * c.LFZO
    camber = 1 - c.PKY3 * Abs(lean * c.LGAY)
    return c.PKY1 * nominal * sin(2 * atan(Fz / (c.PKY2 * nominal))) * c.LKY * camber


def frictions(c: Coefficients, Fz: Any, lean: Any) -> tuple[Any, Any]:
    """The largest longitudinal and lateral force over the load."""
    dfz = Fz / (c.FNOMIN * c.LFZO) - 1
    return _friction_x(c, dfz, lean), _friction_y(c, dfz, lean)


def _friction_x(c: Coefficients, dfz: Any, lean: Any) -> Any:
    return (c.PDX1 + c.PDX2 * dfz) * (1 - c.PDX3 * (lean * c.LGAX) ** 2) * c.LMUX


def _friction_y(c: Coefficients, dfz: Any, lean: Any) -> Any:
    return (c.PDY1 + c.PDY2 * dfz) * (1 - c.PDY3 * (lean * c.LGAY) ** 2) * c.LMUY


def relaxation_lengths(c: Coefficients, Fz: Any, gamma: Any) -> tuple[Any, Any]:
    """Lengths over which slips adjust, m."""
    nominal = c.FNOMIN * c.LFZO
    dfz = Fz / nominal - 1
    ahead = Fz * (c.PTX1 + c.PTX2 * dfz) * exp(-c.PTX3 * dfz) * c.UNLOADED_RADIUS / c.FNOMIN * c.LSGKP
    arc = 2 * atan(Fz / (c.PTY2 * nominal))
    camber = 1 - c.PKY3 * Abs(sin(gamma) * c.LGAY)
    return ahead, c.PTY1 * sin(arc) * camber * c.UNLOADED_RADIUS * c.LFZO * c.LSGAL


def _longitudinal_force(x: _State) -> Any:
    c, Fz, dfz = x.c, x.Fz, x.dfz
    kappa = x.kappa + (c.PHX1 + c.PHX2 * dfz) * c.LHX
    C = c.PCX1 * c.LCX
    D = Fz * _friction_x(c, dfz, x.gamma)
    E = at_most_one((c.PEX1 + c.PEX2 * dfz + c.PEX3 * dfz**2) * (1 - c.PEX4 * signum(kappa)) * c.LEX)
    B = slip_stiffness(c, Fz) / (C * D + EPSILON)
    return D * sin(curve(B, C, E, kappa)) + Fz * (c.PVX1 + c.PVX2 * dfz) * c.LVX * c.LMUX


def _lateral(x: _State) -> Lateral:
    c, Fz, dfz = x.c, x.Fz, x.dfz
    gamma = x.gamma * c.LGAY
    K = cornering_stiffness(c, Fz, x.gamma)
    SH = (c.PHY1 + c.PHY2 * dfz) * c.LHY + c.PHY3 * gamma
    SV = Fz * ((c.PVY1 + c.PVY2 * dfz) * c.LVY + (c.PVY3 + c.PVY4 * dfz) * gamma) * c.LMUY
    slip = x.tangent + SH
    mu = _friction_y(c, dfz, x.gamma)
    C = c.PCY1 * c.LCY
    E = at_most_one((c.PEY1 + c.PEY2 * dfz) * (1 - (c.PEY3 + c.PEY4 * gamma) * signum(slip)) * c.LEY)
    B = K / (C * mu * Fz + EPSILON)
    return Lateral(mu * Fz * sin(curve(B, C, E, slip)) + SV, K, B, C, mu, SH, SV)


def _aligning_moment(x: _State, lateral: Lateral, Fx: Any, Fy: Any, SVk: Any) -> Any:
    c, dfz = x.c, x.dfz
    K = lateral.K + EPSILON * signum(c.PKY1)
    by_slip = slip_stiffness(c, x.Fz) / K * x.kappa
    trail = _trail(x, by_slip)
    slip = equivalent_slip(x.tangent + lateral.SH + lateral.SV / K, by_slip)
    B = c.QBZ9 * c.LKY / c.LMUY + c.QBZ10 * lateral.B * lateral.C
    by_camber = (c.QDZ8 + c.QDZ9 * dfz) * x.gamma * c.LGAZ
    D = x.Fz * ((c.QDZ6 + c.QDZ7 * dfz) * c.LRES + by_camber) * c.UNLOADED_RADIUS * c.LMUY
    residual = D * cos(atan(B * slip)) / sqrt(1 + x.tangent**2) * x.direction
    offset = c.SSZ1 + c.SSZ2 * Fy / (c.FNOMIN * c.LFZO) + (c.SSZ3 + c.SSZ4 * dfz) * x.gamma
    return -trail * (Fy - SVk) + residual + offset * c.UNLOADED_RADIUS * c.LS * Fx


def _trail(x: _State, by_slip: Any) -> Any:
    """The pneumatic trail, m; an even function of the slip angle."""
    c, dfz = x.c, x.dfz
    gamma = x.gamma * c.LGAZ
    slip = x.tangent + c.QHZ1 + c.QHZ2 * dfz + (c.QHZ3 + c.QHZ4 * dfz) * gamma
    B = (c.QBZ1 + c.QBZ2 * dfz + c.QBZ3 * dfz**2) * (1 + c.QBZ4 * gamma + c.QBZ5 * Abs(gamma)) * c.LKY / c.LMUY
    D = x.Fz * (c.QDZ1 + c.QDZ2 * dfz) * (1 + c.QDZ3 * gamma + c.QDZ4 * gamma**2)
    asymmetry = (c.QEZ4 + c.QEZ5 * gamma) * 2 / pi * atan(B * c.QCZ1 * slip)
    E = at_most_one((c.QEZ1 + c.QEZ2 * dfz + c.QEZ3 * dfz**2) * (1 + asymmetry))
    equivalent = equivalent_slip(slip, by_slip)
    trail = D * cos(curve(B, c.QCZ1, E, equivalent)) / sqrt(1 + x.tangent**2) * x.direction
    return trail * c.UNLOADED_RADIUS / c.FNOMIN * c.LTR


def _overturning_moment(x: _State, Fy: Any) -> Any:
    c = x.c
    return c.UNLOADED_RADIUS * x.Fz * (c.QSX1 * c.LVMX - c.QSX2 * x.gamma + c.QSX3 * Fy / c.FNOMIN) * c.LMX


def _rolling_moment(x: _State, Fx: Any) -> Any:
    c = x.c
    v = x.speed / c.LONGVL
    factor = c.QSY1 + c.QSY2 * Fx / c.FNOMIN + c.QSY3 * v + c.QSY4 * v**4
    return -c.UNLOADED_RADIUS * x.Fz * factor * c.LMY * x.direction
