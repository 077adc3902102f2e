"""What all tire models have in common: forces as SymPy expressions, vertical law, radius, relaxation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import sympy

from kanegen.tires.contact import Contact, Forces, limited
from kanegen.tires.functions import Abs, sin


class Tire(ABC):
    """A tire: its forces in steady state, and what a wheel needs besides. Arguments and results are SymPy expressions.

    All quantities are in the axes ISO-W: x forward, in the plane of the wheel and of the road; z normal to the road,
    upward; y to the left. The longitudinal slip ``kappa`` is ``-Vsx / |Vx|``, positive when driven; the slip angle
    ``alpha`` (rad) has the tangent ``Vsy / |Vx|``, positive when the tire slips to the left, so that its force is
    negative; the inclination ``gamma`` (rad) is positive when the top of the wheel leans to the right.
    """

    radius: float
    """Of the tire without load, m."""

    low_speed: float
    """Below it, m/s, moments that depend on the direction of rolling fade, and slips are damped and limited."""

    low_speed_damping: float
    """The time, s, by which stiffnesses at rest are multiplied for the damping below ``low_speed``."""

    @abstractmethod
    def forces_at(self, contact: Contact) -> Forces:
        """Forces and moments at a state of the contact patch."""

    @abstractmethod
    def load(self, deflection: Any, rate: Any = 0, spin: Any = 0, pressure: Any = None) -> Any:
        """The vertical force, N, at a deflection (m), its rate (m/s) and a speed of rotation (rad/s); not negative."""

    @abstractmethod
    def free_radius(self, spin: Any = 0) -> Any:
        """The radius without load, m, at a speed of rotation (rad/s)."""

    @abstractmethod
    def effective_radius(self, load: Any, spin: Any = 0, pressure: Any = None) -> Any:
        """The speed of a wheel that rolls freely over its speed of rotation, m."""

    @abstractmethod
    def relaxation_lengths(self, load: Any, gamma: Any = 0, pressure: Any = None) -> tuple[Any, Any]:
        """The lengths, m, over which the longitudinal and the lateral slip adjust."""

    @abstractmethod
    def sliding_slips(self, load: Any, gamma: Any = 0, pressure: Any = None) -> tuple[Any, Any] | None:
        """The longitudinal and the lateral slip at which proportional forces would reach friction; None: nowhere."""

    def forces(
        self, Fz: Any, kappa: Any = 0, alpha: Any = 0, gamma: Any = 0, Vx: Any = None, pressure: Any = None
    ) -> Forces:
        """Forces (N) and moments (N m) in steady state: ``Fx``, ``Fy``, ``Mx``, ``My``, ``Mz``.

        ``Fz``: load, N, not negative. ``kappa``, ``alpha`` (rad), ``gamma`` (rad): slips and inclination. ``Vx``: speed
        of the contact point, m/s, not 0; by default the reference speed of the tire. ``pressure``: Pa.
        """
        speed, direction = (None, sympy.Integer(1)) if Vx is None else (Abs(sympy.sympify(Vx)), self.direction(Vx))
        load, slip, tangent, lean = map(sympy.sympify, (Fz, kappa, sympy.tan(alpha), gamma))
        return self.forces_at(Contact(load, slip, tangent, lean, pressure, speed, direction))

    def direction(self, Vx: Any) -> Any:
        """1 forward, -1 backward, a sine between them below the low speed."""
        return sin(sympy.pi / 2 * limited(sympy.sympify(Vx) / self.low_speed))

    def Fx(self, *state: Any, **values: Any) -> Any:
        """The longitudinal force, N; arguments as those of `forces`."""
        return self.forces(*state, **values).Fx

    def Fy(self, *state: Any, **values: Any) -> Any:
        """The lateral force, N; arguments as those of `forces`."""
        return self.forces(*state, **values).Fy

    def Mx(self, *state: Any, **values: Any) -> Any:
        """The overturning moment, N m; arguments as those of `forces`."""
        return self.forces(*state, **values).Mx

    def My(self, *state: Any, **values: Any) -> Any:
        """The rolling resistance moment, N m; arguments as those of `forces`."""
        return self.forces(*state, **values).My

    def Mz(self, *state: Any, **values: Any) -> Any:
        """The aligning moment, N m; arguments as those of `forces`."""
        return self.forces(*state, **values).Mz
