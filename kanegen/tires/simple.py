"""Tires with few constants: linear, after Fiala, and the brush model."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

from sympy import Integer, Piecewise

from kanegen.errors import ModelError
from kanegen.tires.contact import Contact, Forces, free, hypotenuse, limited
from kanegen.tires.functions import Abs, Max, Min, signum
from kanegen.tires.tire import Tire
from kanegen.tires.vertical import DAMPING_DEPTH, Vertical


@dataclass(frozen=True, kw_only=True)
class SimpleTire(Tire):
    """What tires with few constants have in common. All values are numbers or expressions of parameters.

    Parameters
    ----------
    radius
        Without load, m.
    stiffness, damping
        Vertical, N/m and N s/m.
    nominal_load
        The load at which the slip stiffnesses are given, N; they are proportional to the load.
    cornering_stiffness
        N/rad, positive.
    relaxation
        Longitudinal and lateral relaxation lengths, m.
    rolling_resistance
        Its moment over load and radius.
    low_speed, low_speed_damping
        As those of `Tire`, m/s and s.
    """

    radius: Any
    stiffness: Any
    nominal_load: Any
    cornering_stiffness: Any
    damping: Any = 0.0
    relaxation: tuple[Any, Any] = (0.2, 0.5)
    rolling_resistance: Any = 0.0
    low_speed: Any = 1.0
    low_speed_damping: Any = 0.01

    def __post_init__(self) -> None:
        positive = ("radius", "stiffness", "nominal_load", "slip_stiffness", "cornering_stiffness", "friction")
        given = {name: getattr(self, name, 1) for name in (*positive, "low_speed")}
        wrong = [name for name, value in given.items() if not free(value) and not value > 0]
        wrong += ["relaxation"] if any(not free(x) and not x > 0 for x in self.relaxation) else []
        if wrong:
            raise ModelError(
                [f"the tire has {name} = {getattr(self, name)}: expected a positive number" for name in wrong]
            )

    def __repr__(self) -> str:
        values = ", ".join(f"{item.name}={getattr(self, item.name)}" for item in fields(self))
        return f"kg.tires.{type(self).__name__.removesuffix('Tire').lower()}({values})"

    def load(self, deflection: Any, rate: Any = 0, spin: Any = 0, pressure: Any = None) -> Any:
        return self._vertical().load(deflection, rate, spin, 0)

    def free_radius(self, spin: Any = 0) -> Any:
        return self.radius

    def effective_radius(self, load: Any, spin: Any = 0, pressure: Any = None) -> Any:
        return self.radius - load / self.stiffness

    def relaxation_lengths(self, load: Any, gamma: Any = 0, pressure: Any = None) -> tuple[Any, Any]:
        return self.relaxation

    def sliding_slips(self, load: Any, gamma: Any = 0, pressure: Any = None) -> tuple[Any, Any] | None:
        friction = getattr(self, "friction", None)
        if friction is None:
            return None
        largest = friction * self.nominal_load
        return largest / getattr(self, "slip_stiffness", self.cornering_stiffness), largest / self.cornering_stiffness

    def _vertical(self) -> Vertical:
        depth = DAMPING_DEPTH * self.radius
        nominal = (self.nominal_load, self.stiffness)
        return Vertical(self.radius, (1, 0), (self.stiffness, 0), 0, self.damping, 0, nominal, (0, 0, 1), depth)

    def _rolling(self, at: Contact) -> Any:
        return -self.rolling_resistance * at.load * self.radius * at.direction


@dataclass(frozen=True, kw_only=True, repr=False)
class LinearTire(SimpleTire):
    """A tire whose forces are proportional to slip, inclination and load, without a limit of friction.

    It has the constants of all simple tires, and these.

    Parameters
    ----------
    slip_stiffness
        Longitudinal, N.
    camber_stiffness
        N/rad, positive.
    trail
        By which the lateral force acts behind the contact point, m.
    """

    slip_stiffness: Any
    camber_stiffness: Any = 0.0
    trail: Any = 0.0

    def forces_at(self, contact: Contact) -> Forces:
        at, part = contact, contact.load / self.nominal_load
        by_slip = -part * self.cornering_stiffness * at.tangent
        Fy = by_slip - part * self.camber_stiffness * at.gamma
        Fx = part * self.slip_stiffness * at.kappa
        return Forces(Fx, Fy, Integer(0), self._rolling(at), -by_slip * self.trail * at.direction)


@dataclass(frozen=True, kw_only=True, repr=False)
class FialaTire(SimpleTire):
    """The model of E. Fiala (VDI-Zeitschrift 96, 1954) as multibody programs have it: few constants, no inclination.

    Longitudinal and lateral slip act on each other by the coefficient of friction only. It has the constants of all
    simple tires, and these.

    Parameters
    ----------
    slip_stiffness
        Longitudinal, N.
    friction, sliding_friction
        Coefficients without slip, and at a slip of 1; None: the same.
    width
        Scales the aligning moment, m.
    """

    slip_stiffness: Any
    friction: Any
    sliding_friction: Any = None
    width: Any = 0.0

    def forces_at(self, contact: Contact) -> Forces:
        at = contact
        lower = self.friction if self.sliding_friction is None else self.sliding_friction
        total = Min(hypotenuse(at.kappa, at.tangent), 1)
        friction = self.friction - (self.friction - lower) * total
        limit = friction * at.load
        Fx = self._longitudinal(at, friction)
        # C tan(alpha) / (3 mu Fz), limited where the whole patch slides; loads cancel in the quotient. The sign of the
        # slip is that of this factor, so that derivatives are right at zero slip, too.
        sliding = limited(at.tangent * self.cornering_stiffness / (3 * friction * self.nominal_load))
        rest = 1 - Abs(sliding)
        Fy = -limit * (1 + rest + rest**2) * sliding
        Mz = limit * self.width * sliding * rest**3 * at.direction
        return Forces(Fx, Fy, Integer(0), self._rolling(at), Mz)

    def _longitudinal(self, at: Contact, friction: Any) -> Any:
        adhering = at.load / self.nominal_load * self.slip_stiffness * at.kappa
        limit = friction * at.load
        lost = friction * self.nominal_load / (4 * self.slip_stiffness * hypotenuse(at.kappa, 0))
        sliding = signum(at.kappa) * limit * (1 - lost)
        if not any(map(free, (adhering, limit))):
            return adhering if 2 * Abs(adhering) <= limit else sliding
        return Piecewise((adhering, 2 * Abs(adhering) <= limit), (sliding, True))


@dataclass(frozen=True, kw_only=True, repr=False)
class BrushTire(SimpleTire):
    """The brush model with a parabolic pressure (Pacejka 2012, chapter 3.2), for combined slip, without inclination.

    The bristles have one stiffness: that of the cornering stiffness, in both directions. It has the constants of all
    simple tires, and these.

    Parameters
    ----------
    friction
        The coefficient of friction.
    half_length
        Of the contact patch, m, for the aligning moment.
    """

    friction: Any
    half_length: Any = 0.0

    def forces_at(self, contact: Contact) -> Forces:
        at = contact
        # The part of the patch that slides grows with theta |s| / (1 + kappa), and is all of it at 1.
        theta = self.cornering_stiffness / (3 * self.friction * self.nominal_load)
        size = hypotenuse(at.kappa, at.tangent)
        gain = Min(theta / Max(1 + at.kappa, Integer(10) ** -6), 1 / size)
        part = gain * size
        force = self.friction * at.load * gain * (3 - 3 * part + part**2)
        trail = self.half_length * (1 - part) ** 3 / (3 - 3 * part + part**2) * at.direction
        Fy = -force * at.tangent
        return Forces(force * at.kappa, Fy, Integer(0), self._rolling(at), -trail * Fy)


linear: Final = LinearTire
fiala: Final = FialaTire
brush: Final = BrushTire
