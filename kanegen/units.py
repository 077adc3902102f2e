"""Units of physical quantities: reading them with pint, dimensions, and conversion for display."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Final, TypeAlias

from kanegen.errors import brief

Exponents: TypeAlias = Mapping[str, Fraction]
"""Nonzero exponents of SI base units: ``{"m": 1, "s": -1}`` of a velocity."""

_BASE: Final = {
    "meter": "m",
    "kilogram": "kg",
    "second": "s",
    "ampere": "A",
    "kelvin": "K",
    "mole": "mol",
    "candela": "cd",
}
"""The base units of SI by their names in pint."""


def exponents(**powers: int) -> Exponents:
    """Exponents from powers of base units."""
    return {base: Fraction(power) for base, power in powers.items()}


_DERIVED: Final = {
    "N": exponents(kg=1, m=1, s=-2),
    "N m": exponents(kg=1, m=2, s=-2),
    "J": exponents(kg=1, m=2, s=-2),
    "W": exponents(kg=1, m=2, s=-3),
    "Pa": exponents(kg=1, m=-1, s=-2),
    "N/m": exponents(kg=1, s=-2),
    "N s/m": exponents(kg=1, s=-1),
    "N s": exponents(kg=1, m=1, s=-1),
    "N m s": exponents(kg=1, m=2, s=-1),
    "V": exponents(kg=1, m=2, s=-3, A=-1),
    "ohm": exponents(kg=1, m=2, s=-3, A=-2),
    "H": exponents(kg=1, m=2, s=-2, A=-2),
    "N m/A": exponents(kg=1, m=2, s=-2, A=-1),
    "C": exponents(A=1, s=1),
    "F": exponents(A=2, s=4, kg=-1, m=-2),
}
"""Derived units that messages use in place of powers of base units, of equal ones the first."""


def spelled(powers: Exponents) -> str:
    """A coherent SI unit as text, such as ``"kg m^2"``; ``"1"`` if all exponents are zero."""
    powers = {base: power for base, power in powers.items() if power}
    for name, known in _DERIVED.items():
        if known == powers:
            return name
    above = [_power(base, power) for base, power in powers.items() if power > 0]
    below = [_power(base, -power) for base, power in powers.items() if power < 0]
    numerator = " ".join(above) or "1"
    if not below:
        return numerator
    return f"{numerator}/{below[0]}" if len(below) == 1 else f"{numerator}/({' '.join(below)})"


def _power(base: str, power: Fraction) -> str:
    if power == 1:
        return base
    return f"{base}^{power}" if power.denominator == 1 else f"{base}^({power})"


@dataclass(frozen=True)
class Unit:
    """A unit of display: its text, the coherent SI unit ``si`` of the same dimension, and its size in that unit.

    Values of a model are always in the coherent SI unit (rad for angles). ``display`` converts them to this unit.
    """

    text: str
    si: str
    dimension: tuple[tuple[str, Fraction], ...] = ()
    size: float = 1.0

    @property
    def exponents(self) -> Exponents:
        """The nonzero exponents of the SI base units."""
        return dict(self.dimension)

    @property
    def is_coherent(self) -> bool:
        """Whether values in this unit are those in coherent SI units."""
        return self.size == 1.0

    @property
    def label(self) -> str:
        """The text for a label or after a value; empty for pure numbers."""
        return "" if self.text == "1" else self.text

    def display(self, values: Any) -> Any:
        """A number or an array in coherent SI units, converted to this unit."""
        return values if self.is_coherent else values / self.size

    def __str__(self) -> str:
        return self.text


def coherent(powers: Exponents) -> Unit:
    """The coherent SI unit with these exponents."""
    return Unit(spelled(powers), spelled(powers), _sorted(powers))


def derived(name: str) -> Unit:
    """A derived unit of SI, such as ``"J"``."""
    return Unit(name, name, _sorted(_DERIVED[name]))


def _sorted(powers: Exponents) -> tuple[tuple[str, Fraction], ...]:
    return tuple(sorted((base, power) for base, power in powers.items() if power))


def labeled(name: str, unit: str) -> str:
    """A name with its unit for an axis or a legend: ``"theta (deg)"``; one of the two if the other is empty."""
    return f"{name} ({unit})" if name and unit else name or unit


class Units(Mapping[str, Unit]):
    """Units by the names of what has them, a read-only mapping; names without a unit are not contained."""

    def __init__(self, units: Mapping[str, Unit] | None = None) -> None:
        self._units = dict(units or {})

    def __getitem__(self, name: str) -> Unit:
        return self._units[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._units)

    def __len__(self) -> int:
        return len(self._units)

    def __repr__(self) -> str:
        return f"Units({ {name: unit.text for name, unit in self._units.items()} })"

    def display(self, name: str, values: Any) -> Any:
        """A number or an array in coherent SI units, converted to the unit of this name, if it has one."""
        unit = self.get(name)
        return values if unit is None else unit.display(values)

    def text(self, name: str) -> str:
        """The unit of a name for a label or after a value; empty if it has none or is a pure number."""
        unit = self.get(name)
        return "" if unit is None else unit.label


def read_unit(value: Any, where: str, problems: list[str]) -> Unit | None:
    """The unit of a text that pint can read; None after a problem was appended."""
    if not isinstance(value, str):
        problems.append(f'{where} is {brief(value)}: expected a unit as text, such as "kg m^2" or "deg"')
        return None
    registry, undefined = _registry()
    try:
        factor, base = registry.get_base_units(registry.parse_units(value))
        zero, two = (registry.Quantity(x, registry.parse_units(value)).to_base_units().magnitude for x in (0.0, 2.0))
    except undefined:
        problems.append(f'{where} is {value!r}, which is no unit that pint knows: expected one such as "N m" or "km/h"')
        return None
    except Exception as error:  # pint raises what its parser and tokenizer happen to raise
        problems.append(f'{where} is {value!r}, which is no unit ({error or "it is incomplete"}): expected "N m" or so')
        return None
    if zero != 0.0 or two != 2.0 * factor:
        problems.append(
            f"{where} is {value!r}, a unit with an offset or a logarithm: expected one that is proportional to SI, "
            'such as "K" for temperatures'
        )
        return None
    powers = {name: Fraction(power).limit_denominator(1000) for name, power in base._units.items()}
    angle = powers.pop("radian", Fraction(0))
    unknown = ", ".join(sorted(name for name in powers if name not in _BASE))
    if unknown:
        problems.append(f"{where} is {value!r}, which contains {unknown}: expected a unit of mechanics or electricity")
        return None
    in_base = {_BASE[name]: power for name, power in powers.items()}
    text = value.strip() or "1"
    return Unit(text, text if factor == 1.0 else spelled({"rad": angle, **in_base}), _sorted(in_base), float(factor))


def require_pint(problems: list[str]) -> bool:
    """Whether pint is installed; if not, a problem says how to install it."""
    try:
        importlib.import_module("pint")
    except ImportError:
        problems.append("units need pint: install it by pip install 'kanegen[units]', or leave out units=")
        return False
    return True


@cache
def _registry() -> tuple[Any, type[Exception]]:
    """The registry of pint, which takes a third of a second to read, and its error for unknown names."""
    pint = importlib.import_module("pint")
    return pint.UnitRegistry(), pint.UndefinedUnitError
