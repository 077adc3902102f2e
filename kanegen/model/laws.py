"""Laws of contacts: forces or accelerations of a violated gap, and Coulomb friction. ``Model`` checks their values.

``x = -gap`` is the penetration, m. Values are numbers or SymPy expressions of parameters. All properties of a law are
methods of its class; a new law is a new class in this module, listed in :data:`LAWS`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Final, Self

import sympy

from kanegen.codes import Paradox
from kanegen.errors import brief

QUANTITIES = ("force", "acceleration")


@dataclass(frozen=True)
class Value:
    """A value of a law and its admissible interval; ``strict`` excludes the ends of the interval."""

    name: str
    expression: Any
    least: float = -math.inf
    greatest: float = math.inf
    strict: bool = False

    def admits(self, number: float) -> bool:
        """Whether the number lies in the interval (NaN does not)."""
        if self.strict:
            return self.least < number < self.greatest
        return self.least <= number <= self.greatest

    @property
    def expected(self) -> str:
        """The interval in words."""
        if self.greatest == math.inf:
            return f"a number {'>' if self.strict else '>='} {self.least:g}"
        return f"a number in [{self.least:g}, {self.greatest:g}]"


#: Metadata of the fields that hold values: the interval of a :class:`Value`.
NOT_NEGATIVE: Final = {"least": 0.0}
POSITIVE: Final = {"least": 0.0, "strict": True}
AT_LEAST_ONE: Final = {"least": 1.0}
FRACTION: Final = {"least": 0.0, "greatest": 1.0}


@dataclass(frozen=True)
class Law:
    """A record with values; None means that a value was not given."""

    def values(self) -> tuple[Value, ...]:
        """The values that were given, with their admissible intervals."""
        given = ((item, getattr(self, item.name)) for item in fields(self) if item.metadata)
        return tuple(Value(item.name, value, **item.metadata) for item, value in given if value is not None)

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """The record with other values, by name; others than its own are ignored."""
        return replace(self, **{value.name: values[value.name] for value in Law.values(self)})

    def option_problem(self) -> str:
        """The problem of arguments that are not values; empty if there is none."""
        return ""


class ContactLaw(Law, ABC):
    """Base class of the laws of a gap. The defaults are those of a law that prescribes the acceleration of its row.

    ``conserves_energy`` is True if the energy is constant while the contact is closed, between impacts.
    """

    conserves_energy: ClassVar[bool] = False

    @property
    def kind(self) -> str:
        """How the runtime treats the contact: ``KG_LAW_...`` of kg_model.h in lower case."""
        return "compliant" if self.gives_force else "stabilized"

    @property
    def gives_force(self) -> bool:
        """Whether the law gives the force; otherwise the force is the multiplier of a constraint."""
        return False

    @property
    def restitution(self) -> Any:
        """Newton's coefficient of restitution."""
        return sympy.S.Zero

    @abstractmethod
    def target(self, gap: Any, rate: Any, level: int) -> Any:
        """The prescribed acceleration of the closed row; zero if the law gives a force."""

    def force(self, x: Any, rate: Any) -> Any:
        """The force, N, at the penetration x and its rate; zero if the force is a multiplier."""
        return sympy.S.Zero

    def level_problem(self, gap: Any, level: int) -> str:
        """Why the law cannot be used for a gap of this level (2: positions, 1: speeds); empty if it can."""
        return ""


class CompliantLaw(ContactLaw):
    """A law of the penetration: :meth:`response` is the force, or with ``quantity="acceleration"`` ``-x''``."""

    quantity: str

    @abstractmethod
    def response(self, x: Any, rate: Any) -> Any:
        """Force or acceleration at the penetration x and its rate; has the sign of x if both are small."""

    @property
    def gives_force(self) -> bool:
        return isinstance(self.quantity, str) and self.quantity == "force"

    def target(self, gap: Any, rate: Any, level: int) -> Any:
        return sympy.S.Zero if self.gives_force else self.response(-gap, -rate)

    def force(self, x: Any, rate: Any) -> Any:
        return self.response(x, rate) if self.gives_force else sympy.S.Zero

    def option_problem(self) -> str:
        if isinstance(self.quantity, str) and self.quantity in QUANTITIES:
            return ""
        return f"has quantity={brief(self.quantity)}: expected {' or '.join(map(repr, QUANTITIES))}"

    def level_problem(self, gap: Any, level: int) -> str:
        if level == 2:
            return ""
        return (
            f"has the law {type(self).__name__}, whose force is a function of a penetration, but its gap {gap} "
            "contains speeds: expected a gap in positions, or Stabilized(damping) or Restitution for a gap in speeds"
        )


@dataclass(frozen=True)
class Stabilized(ContactLaw):
    """A violated gap decays: ``gap'' + damping gap' + stiffness gap = 0`` (Bajodah 2003, (328), signs reversed).

    Without a stiffness, for a gap at velocity level: ``gap' + damping gap = 0`` (Bajodah 2003, (329)). The contact acts
    if the gap is violated and the required multiplier is compressive.

    Parameters
    ----------
    damping
        1/s, positive; ``-Delta1`` of the source.
    stiffness
        1/s^2, positive, ``-Delta2`` of the source; None at velocity level.
    """

    damping: Any = field(metadata=POSITIVE)
    stiffness: Any = field(default=None, metadata=POSITIVE)

    def target(self, gap: Any, rate: Any, level: int) -> Any:
        return -self.damping * rate - self.stiffness * gap if level == 2 else -self.damping * gap

    def level_problem(self, gap: Any, level: int) -> str:
        if (self.stiffness is None) == (level == 1):
            return ""
        forms = ("Stabilized(damping)", "Stabilized(damping, stiffness)")
        given, expected = forms if self.stiffness is None else forms[::-1]
        kind = "positions" if level == 2 else "speeds"
        return f"has the law {given}, but its gap {gap} is an expression of {kind}: expected {expected}"


@dataclass(frozen=True)
class Restitution(ContactLaw):
    """A rigid contact: an impact with Newton's coefficient of restitution, then separation or rest.

    While the contact is closed, ``gap'' + 2 decay_rate gap' + decay_rate^2 gap = 0`` removes the rounding errors of
    the gap.

    Parameters
    ----------
    e
        Coefficient of restitution, 0 to 1. It has no effect for a gap at velocity level, which closes without impact.
    decay_rate
        Rate of that decay, 1/s.
    """

    e: Any = field(default=0.0, metadata=FRACTION)
    decay_rate: Any = field(default=10.0, metadata=NOT_NEGATIVE)

    conserves_energy: ClassVar[bool] = True

    @property
    def kind(self) -> str:
        return "restitution"

    @property
    def restitution(self) -> Any:
        return self.e

    def target(self, gap: Any, rate: Any, level: int) -> Any:
        return decay(self.decay_rate, gap, rate, level)


@dataclass(frozen=True)
class KelvinVoigt(CompliantLaw):
    """A linear spring and damper: ``stiffness x + damping x'``, never tensile.

    Parameters
    ----------
    stiffness, damping
        N/m and N s/m; with ``quantity="acceleration"`` 1/s^2 and 1/s.
    quantity
        What the law gives. ``"force"``: the contact force; ``"acceleration"``: ``x'' + damping x' + stiffness x = 0``
        (Bajodah 2003, (367) divided by m).
    """

    stiffness: Any = field(metadata=NOT_NEGATIVE)
    damping: Any = field(metadata=NOT_NEGATIVE)
    quantity: str = "force"

    def response(self, x: Any, rate: Any) -> Any:
        return self.stiffness * x + self.damping * rate


@dataclass(frozen=True)
class HuntCrossley(CompliantLaw):
    """``x^n (stiffness + damping x')``, n the exponent, never tensile (Hunt and Crossley 1975; Bajodah 2003, (368)).

    Parameters
    ----------
    stiffness, damping
        N/m^n and N s/m^(n + 1); with ``quantity="acceleration"`` those of ``x'' + x^n (stiffness + damping x') = 0``.
        Positive damping dissipates energy (the thesis prints a negative alpha in (369)).
    exponent
        At least 1; 3/2 for a Hertzian contact.
    quantity
        What the law gives: ``"force"`` or ``"acceleration"``.
    """

    stiffness: Any = field(metadata=NOT_NEGATIVE)
    damping: Any = field(metadata=NOT_NEGATIVE)
    exponent: Any = field(default=sympy.Rational(3, 2), metadata=AT_LEAST_ONE)
    quantity: str = "force"

    def response(self, x: Any, rate: Any) -> Any:
        return odd_power(x, self.exponent) * (self.stiffness + self.damping * rate)


@dataclass(frozen=True)
class ImpactFunction(CompliantLaw):
    """``stiffness x^n + c(x) x'``, n the exponent, never tensile: IMPACT of MSC Adams (Adams/Solver, functions).

    The damping coefficient c(x) rises from zero at first touch to ``damping`` at the penetration ``depth``, with the
    cubic ``c = damping s^2 (3 - 2 s)``, ``s = x/depth``, so that the force is continuous at any impact velocity.

    Parameters
    ----------
    stiffness
        N/m^n; with ``quantity="acceleration"`` that of ``x'' + c(x) x' + stiffness x^n = 0``.
    damping
        Largest damping coefficient, N s/m (1/s).
    depth
        Penetration, m, at which the damping coefficient reaches ``damping``; positive.
    exponent
        At least 1; 3/2 for a Hertzian contact.
    quantity
        What the law gives: ``"force"`` or ``"acceleration"``.
    """

    stiffness: Any = field(metadata=NOT_NEGATIVE)
    damping: Any = field(metadata=NOT_NEGATIVE)
    depth: Any = field(metadata=POSITIVE)
    exponent: Any = field(default=sympy.Rational(3, 2), metadata=AT_LEAST_ONE)
    quantity: str = "force"

    def response(self, x: Any, rate: Any) -> Any:
        s = sympy.Min(sympy.Max(x / self.depth, 0), 1)
        return self.stiffness * odd_power(x, self.exponent) + self.damping * s**2 * (3 - 2 * s) * rate


def odd_power(x: Any, exponent: Any) -> Any:
    """``|x|^exponent`` with the sign of x, so that a force changes its sign when the gap opens."""
    return x * sympy.Abs(x) ** (sympy.nsimplify(exponent, rational=True) - 1)


def decay(decay_rate: Any, gap: Any, rate: Any, level: int) -> Any:
    """The acceleration of a row whose value decays at the rate ``decay_rate``, 1/s."""
    return -2 * decay_rate * rate - decay_rate**2 * gap if level == 2 else -decay_rate * gap


@dataclass(frozen=True)
class Coulomb(Law):
    """Dry friction: stick while ``|F_t| <= mu_s N``, slip with the force ``-mu_k N v/|v|``.

    Parameters
    ----------
    mu_s, mu_k
        Coefficients of static and kinetic friction, ``0 <= mu_k <= mu_s``; mu_k None: equal to mu_s.
    creep
        Tolerance delta of the slip velocity, m/s: the tolerance-and-creep model of Bajodah (2003), section 5.8, in
        place of stick. Below delta the slip velocity decays, ``v' = -decay_rate v`` (383)-(386), as long as the
        friction force is large enough.
    decay_rate
        Rate, 1/s, at which the slip velocity decays in stick (where it is a rounding error) and in creep.
    paradox
        What happens at a rigid contact where no finite forces agree with the laws of all contacts, or several do
        (Painleve 1895). ``"error"``: the run stops. ``"impact"``: an impulse without collision follows where there
        is no solution (Lecornu 1905; Darboux 1880, Keller 1986), and of several solutions the stable one with the least
        normal forces is taken. ``"regularize"``: the same choice among several solutions; where there is none, the
        contact obeys ``compliance`` from then on until it opens.
    compliance
        The law of ``paradox="regularize"``: :class:`KelvinVoigt`, :class:`HuntCrossley` or :class:`ImpactFunction`
        with ``quantity="force"``.
    """

    mu_s: Any = field(metadata=NOT_NEGATIVE)
    mu_k: Any = field(default=None, metadata=NOT_NEGATIVE)
    creep: Any = field(default=None, metadata=POSITIVE)
    decay_rate: Any = field(default=10.0, metadata=NOT_NEGATIVE)
    paradox: str = Paradox.ERROR.label
    compliance: CompliantLaw | None = None

    def values(self) -> tuple[Value, ...]:
        own = super().values()
        return own if self.compliance is None else (*own, *self.compliance.values())

    def with_values(self, values: Mapping[str, Any]) -> Self:
        law = super().with_values(values)
        return law if law.compliance is None else replace(law, compliance=law.compliance.with_values(values))

    def option_problem(self) -> str:
        choices = Paradox.labels()
        if not isinstance(self.paradox, str) or self.paradox not in choices:
            return (
                f"has paradox={brief(self.paradox)}: expected {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}"
            )
        known = isinstance(self.compliance, CompliantLaw) and self.compliance.gives_force
        if not (known if self.paradox == Paradox.REGULARIZE.label else self.compliance is None):
            return (
                f"has paradox={self.paradox!r} and compliance={brief(self.compliance)}: expected a law that gives a "
                'force, such as compliance=kg.KelvinVoigt(stiffness, damping), with paradox="regularize" only'
            )
        return ""

    @property
    def kinetic(self) -> Any:
        """The coefficient of kinetic friction."""
        return self.mu_s if self.mu_k is None else self.mu_k

    def order(self) -> tuple[Value, ...]:
        """``mu_s - mu_k``, which must not be negative."""
        return () if self.mu_k is None else (Value("mu_s - mu_k", self.mu_s - self.mu_k, 0.0),)


LAWS: tuple[type[ContactLaw], ...] = (Stabilized, Restitution, KelvinVoigt, HuntCrossley, ImpactFunction)
