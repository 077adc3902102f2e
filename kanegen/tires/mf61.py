"""Magic Formula 6.1, of which 6.2 differs in the vertical law only: Pacejka, Tire and Vehicle Dynamics, 3rd edition
2012, equations 4.E1 to 4.E78, without turn slip.

Files for 6.1 have the coefficients of Besselink, Schmeitz and Pacejka, An improved Magic Formula/Swift tyre model that
can handle inflation pressure changes, Vehicle System Dynamics 48 (2010) S337-S352. Where the book differs, as in the
trail, the overturning and the rolling resistance moment, the formulas are those of this paper.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from sympy import Integer, pi

from kanegen.tires.coefficients import Coefficients
from kanegen.tires.combined import Lateral, State, lateral_force_by_slip, weight_x, weight_y
from kanegen.tires.contact import Contact, Forces, at_most_one, curve, equivalent_slip
from kanegen.tires.functions import Abs, atan, cos, exp, signum, sin, sqrt

EPSILON: Final = 1e-6
"""Added to denominators that vanish without load, N, and to a speed, m/s (4.E6a)."""


@dataclass(frozen=True)
class _State(State):
    """What all formulas need besides: the pressure and its relative change, the inclination and its sine, the speed."""

    pressure: Any
    dpi: Any
    gamma: Any
    lean: Any
    speed: Any
    direction: Any


def forces(c: Coefficients, at: Contact) -> Forces:
    """Forces and moments at a state of the contact patch."""
    x = _state(c, at)
    lateral = _lateral(x)
    Fx = _longitudinal_force(x) * weight_x(x, c.RBX1 + c.RBX3 * x.lean**2)
    weight = weight_y(x, c.RBY1 + c.RBY4 * x.lean**2)
    Fy = weight * lateral.Fy + lateral_force_by_slip(x, lateral.mu, x.lean)
    upright = _lateral(replace(x, gamma=Integer(0), lean=Integer(0)))
    Mz = _aligning_moment(x, lateral, Fx, Fy, weight * upright.Fy)
    return Forces(Fx, Fy, _overturning_moment(x, Fy), _rolling_moment(x, Fx), Mz)


def increment(c: Coefficients, pressure: Any) -> Any:
    """The relative change of the inflation pressure."""
    return (pressure - c.NOMPRES) / c.NOMPRES


def slip_stiffness(c: Coefficients, Fz: Any, dpi: Any) -> Any:
    """The derivative of the longitudinal force by the slip, N (4.E15)."""
    dfz = Fz / (c.FNOMIN * c.LFZO) - 1
    by_pressure = 1 + c.PPX1 * dpi + c.PPX2 * dpi**2
    return Fz * (c.PKX1 + c.PKX2 * dfz) * exp(c.PKX3 * dfz) * by_pressure * c.LKX


def cornering_stiffness(c: Coefficients, Fz: Any, dpi: Any, lean: Any) -> Any:
    """The derivative of the lateral force by the slip, N; negative (4.E25)."""
    nominal = c.FNOMIN * c.LFZO
    arc = atan(Fz / nominal / ((c.PKY2 + c.PKY5 * lean**2) * (1 + c.PPY2 * dpi)))
    return c.PKY1 * nominal * (1 + c.PPY1 * dpi) * (1 - c.PKY3 * Abs(lean)) * sin(c.PKY4 * arc) * c.LKY


def frictions(c: Coefficients, Fz: Any, gamma: Any, dpi: Any) -> tuple[Any, Any]:
    """The largest longitudinal and lateral force over the load (4.E13, 4.E23)."""
    dfz = Fz / (c.FNOMIN * c.LFZO) - 1
    return _friction_x(c, dfz, dpi, gamma), _friction_y(c, dfz, dpi, sin(gamma))


def _friction_x(c: Coefficients, dfz: Any, dpi: Any, gamma: Any) -> Any:
    return (c.PDX1 + c.PDX2 * dfz) * (1 + c.PPX3 * dpi + c.PPX4 * dpi**2) * (1 - c.PDX3 * gamma**2) * c.LMUX


def _friction_y(c: Coefficients, dfz: Any, dpi: Any, lean: Any) -> Any:
    return (c.PDY1 + c.PDY2 * dfz) * (1 + c.PPY3 * dpi + c.PPY4 * dpi**2) * (1 - c.PDY3 * lean**2) * c.LMUY


def relaxation_lengths(c: Coefficients, Fz: Any, gamma: Any, pressure: Any) -> tuple[Any, Any]:
    """Lengths over which slips adjust, m: the slip stiffnesses over those of the carcass (Besselink 2010)."""
    dfz, dpi = Fz / (c.FNOMIN * c.LFZO) - 1, increment(c, pressure)
    ahead = c.LONGITUDINAL_STIFFNESS * (1 + c.PCFX1 * dfz + c.PCFX2 * dfz**2) * (1 + c.PCFX3 * dpi)
    aside = c.LATERAL_STIFFNESS * (1 + c.PCFY1 * dfz + c.PCFY2 * dfz**2) * (1 + c.PCFY3 * dpi)
    return slip_stiffness(c, Fz, dpi) / ahead, Abs(cornering_stiffness(c, Fz, dpi, sin(gamma))) / aside


def _state(c: Coefficients, at: Contact) -> _State:
    nominal = c.FNOMIN * c.LFZO
    pressure = c.INFLPRES if at.pressure is None else at.pressure
    return _State(
        c,
        at.load,
        (at.load - nominal) / nominal,
        at.kappa,
        at.tangent,
        pressure,
        increment(c, pressure),
        at.gamma,
        sin(at.gamma),
        c.LONGVL if at.speed is None else at.speed,
        at.direction,
    )


def _longitudinal_force(x: _State) -> Any:
    c, Fz, dfz, dpi = x.c, x.Fz, x.dfz, x.dpi
    kappa = x.kappa + (c.PHX1 + c.PHX2 * dfz) * c.LHX
    C = c.PCX1 * c.LCX
    mu = _friction_x(c, dfz, dpi, x.gamma)
    E = at_most_one((c.PEX1 + c.PEX2 * dfz + c.PEX3 * dfz**2) * (1 - c.PEX4 * signum(kappa)) * c.LEX)
    B = slip_stiffness(c, Fz, dpi) / (C * mu * Fz + EPSILON)
    return mu * Fz * sin(curve(B, C, E, kappa)) + Fz * (c.PVX1 + c.PVX2 * dfz) * c.LVX * c.LMUX


def _lateral(x: _State) -> Lateral:
    c, Fz, dfz, dpi, lean = x.c, x.Fz, x.dfz, x.dpi, x.lean
    K = cornering_stiffness(c, Fz, dpi, lean)
    by_camber = Fz * (c.PVY3 + c.PVY4 * dfz) * lean * c.LKYC * c.LMUY
    thrust = Fz * (c.PKY6 + c.PKY7 * dfz) * (1 + c.PPY5 * dpi) * c.LKYC * lean
    SH = (c.PHY1 + c.PHY2 * dfz) * c.LHY + (thrust - by_camber) / (K + EPSILON * signum(c.PKY1))
    SV = Fz * (c.PVY1 + c.PVY2 * dfz) * c.LVY * c.LMUY + by_camber
    slip = x.tangent + SH
    C = c.PCY1 * c.LCY
    mu = _friction_y(c, dfz, dpi, lean)
    asymmetry = (c.PEY3 + c.PEY4 * lean) * signum(slip)
    E = at_most_one((c.PEY1 + c.PEY2 * dfz) * (1 + c.PEY5 * lean**2 - asymmetry) * c.LEY)
    B = K / (C * mu * Fz + EPSILON)
    return Lateral(mu * Fz * sin(curve(B, C, E, slip)) + SV, K, B, C, mu, SH, SV)


def _aligning_moment(x: _State, lateral: Lateral, Fx: Any, Fy: Any, upright_Fy: Any) -> Any:
    c, dfz, lean = x.c, x.dfz, x.lean
    K = lateral.K + EPSILON * signum(c.PKY1)
    by_slip = slip_stiffness(c, x.Fz, x.dpi) / K * x.kappa
    slip = equivalent_slip(x.tangent + lateral.SH + lateral.SV / K, by_slip)
    B = c.QBZ9 * c.LKY / c.LMUY + c.QBZ10 * lateral.B * lateral.C
    by_camber = (c.QDZ8 + c.QDZ9 * dfz) * (1 + c.PPZ2 * x.dpi) + (c.QDZ10 + c.QDZ11 * dfz) * Abs(lean)
    D = x.Fz * c.UNLOADED_RADIUS * ((c.QDZ6 + c.QDZ7 * dfz) * c.LRES + by_camber * lean * c.LKZC) * c.LMUY
    residual = D * cos(atan(B * slip)) / sqrt(1 + x.tangent**2) * x.direction
    offset = c.SSZ1 + c.SSZ2 * Fy / c.FNOMIN + (c.SSZ3 + c.SSZ4 * dfz) * x.gamma
    return -_trail(x, by_slip) * upright_Fy + residual + offset * c.UNLOADED_RADIUS * c.LS * Fx


def _trail(x: _State, by_slip: Any) -> Any:
    """The pneumatic trail, m; an even function of the slip angle."""
    c, dfz, gamma = x.c, x.dfz, x.gamma
    slip = x.tangent + c.QHZ1 + c.QHZ2 * dfz + (c.QHZ3 + c.QHZ4 * dfz) * x.lean
    B = (c.QBZ1 + c.QBZ2 * dfz + c.QBZ3 * dfz**2) * (1 + c.QBZ4 * gamma + c.QBZ5 * Abs(gamma)) * c.LKY / c.LMUY
    D = x.Fz * (c.QDZ1 + c.QDZ2 * dfz) * (1 - c.PPZ1 * x.dpi) * (1 + c.QDZ3 * gamma + c.QDZ4 * gamma**2)
    asymmetry = (c.QEZ4 + c.QEZ5 * x.lean) * 2 / pi * atan(B * c.QCZ1 * slip)
    E = at_most_one((c.QEZ1 + c.QEZ2 * dfz + c.QEZ3 * dfz**2) * (1 + asymmetry))
    equivalent = equivalent_slip(slip, by_slip)
    cosine = x.speed / (x.speed * sqrt(1 + x.tangent**2) + EPSILON)
    trail = D * cos(curve(B, c.QCZ1, E, equivalent)) * cosine * x.direction
    return trail * c.UNLOADED_RADIUS / c.FNOMIN * c.LTR


def _overturning_moment(x: _State, Fy: Any) -> Any:
    c, gamma, f = x.c, x.gamma, x.Fz / x.c.FNOMIN
    mixed = c.QSX4 * cos(c.QSX5 * atan((c.QSX6 * f) ** 2))
    mixed *= sin(c.QSX7 * gamma + c.QSX8 * atan(c.QSX9 * Fy / c.FNOMIN))
    arm = c.QSX1 * c.LVMX - c.QSX2 * gamma * (1 + c.PPMX1 * x.dpi) + c.QSX3 * Fy / c.FNOMIN
    arm += mixed + c.QSX10 * atan(c.QSX11 * f) * gamma - c.QSX12 * gamma * Abs(gamma)
    return c.UNLOADED_RADIUS * c.LMX * (x.Fz * arm + Fy * (c.QSX13 + c.QSX14 * Abs(gamma)))


def _rolling_moment(x: _State, Fx: Any) -> Any:
    c, f, v = x.c, x.Fz / x.c.FNOMIN, x.speed / x.c.LONGVL
    factor = c.QSY1 + c.QSY2 * Fx / c.FNOMIN + c.QSY3 * v + c.QSY4 * v**4 + (c.QSY5 + c.QSY6 * f) * x.gamma**2
    # The small number keeps derivatives finite where a tire leaves the road.
    load = (f + 1e-12) ** c.QSY7 * (x.pressure / c.NOMPRES) ** c.QSY8
    return -c.UNLOADED_RADIUS * c.FNOMIN * factor * load * c.LMY * x.direction
