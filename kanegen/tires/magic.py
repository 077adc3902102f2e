"""Tires with the Magic Formula, from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from types import MappingProxyType
from typing import Any, Final, Literal

import sympy

from kanegen.errors import ModelError, brief
from kanegen.paths import file_path
from kanegen.tires import mf52, mf61
from kanegen.tires.coefficients import Coefficients, complete, version
from kanegen.tires.contact import Contact, Forces
from kanegen.tires.functions import Abs, sin
from kanegen.tires.tir import TirFile, read_tir
from kanegen.tires.tire import Tire
from kanegen.tires.vertical import DAMPING_DEPTH, Vertical

AXES: Final = ("ISO-W", "adapted SAE")
SIDES: Final = ("left", "right")


def from_tir(path: str | PathLike[str], axes: Literal["ISO-W", "adapted SAE"] = "ISO-W") -> MagicFormula:
    """The tire of a property file (``.tir``): Magic Formula 5.2 (FITTYP 6, 21, 52, or PAC2002), 6.1 or 6.2.

    Parameters
    ----------
    path
        The file. Its [UNITS] count; names can have both cases; comments begin with ``$`` or ``!``.
    axes
        The axes of its coefficients: ``"ISO-W"`` (x forward, y left, z up), those of the file format, or ``"adapted
        SAE"`` (x forward, y right, z down) of Pacejka's book, in which the cornering stiffness is positive. The tire
        itself always has the axes ISO-W.

    Raises
    ------
    FileError
        If the file cannot be read.
    ModelError
        For lines that are no assignments, with their numbers; for values that are no numbers; if coefficients without
        defaults are missing; for other formulas; and if the sign of PKY1 is that of the other axes.
    """
    if axes not in AXES:
        raise ModelError(f"axes is {brief(axes)}: expected {AXES[0]!r} or {AXES[1]!r}")
    file = read_tir(file_path(path))
    values, assumed = complete(file)
    stiffness, sign = values["PKY1"], 1 if axes == AXES[1] else -1
    if stiffness * sign <= 0:
        raise ModelError(
            f"{file.source} has PKY1 = {stiffness:g}; in the axes {axes!r} the cornering stiffness is "
            f"{'positive' if sign > 0 else 'negative'}: give axes={AXES[sign < 0]!r}"
            if stiffness
            else f"{file.source} has PKY1 = 0: the tire has no cornering stiffness"
        )
    return MagicFormula(
        file.source, version(file), MappingProxyType(values), MappingProxyType(assumed), _side(file), axes=axes
    )


def _side(file: TirFile) -> str | None:
    given = file.texts.get("TYRESIDE", "").lower()
    return given if given in SIDES else None


@dataclass(frozen=True, repr=False)
class MagicFormula(Tire):
    """A tire with the Magic Formula; `from_tir` reads it.

    ``source``: name of the file. ``version``: ``"5.2"``, ``"6.1"`` or ``"6.2"``. ``coefficients``: all coefficients in
    SI units. ``assumed``: those of them that the file does not have, with their defaults. ``side``: the side of the car
    on which the tire was measured, ``"left"``, ``"right"`` or None. ``axes``: those of the coefficients. ``mirrored``:
    whether the tire is the mirror image of the measured one.
    """

    source: str
    version: str
    coefficients: Mapping[str, Any]
    assumed: Mapping[str, float]
    side: str | None
    axes: str = "ISO-W"
    mirrored: bool = False

    def __repr__(self) -> str:
        side = f", measured on the {self.side}" if self.side else ""
        mirrored = ", mirrored" if self.mirrored else ""
        assumed = f", {len(self.assumed)} coefficients by default" if self.assumed else ""
        return f"<Magic Formula {self.version} from {self.source}: {self.axes}{side}{mirrored}{assumed}>"

    @property
    def _c(self) -> Coefficients:
        return Coefficients(self.coefficients)

    @property
    def radius(self) -> Any:  # type: ignore[override]
        return self.coefficients["UNLOADED_RADIUS"]

    @property
    def low_speed(self) -> Any:  # type: ignore[override]
        return self.coefficients["VXLOW"]

    @property
    def low_speed_damping(self) -> Any:  # type: ignore[override]
        return self.coefficients["DAMP_VLOW"]

    @property
    def ranges(self) -> dict[str, tuple[float | None, float | None]]:
        """The ranges that the file declares: load (N), slips, slip angle and inclination (rad), pressure (Pa)."""
        names = {"Fz": "FZ", "kappa": "KPU", "alpha": "ALP", "gamma": "CAM", "pressure": "PRES"}
        return {
            name: (self.coefficients.get(f"{key}MIN"), self.coefficients.get(f"{key}MAX"))
            for name, key in names.items()
        }

    def with_coefficients(self, **values: Any) -> MagicFormula:
        """The same tire with other coefficients: numbers, or SymPy expressions such as a parameter for ``LMUY``."""
        unknown = sorted(name for name in values if name not in self.coefficients)
        if unknown:
            raise ModelError(
                f"{self.source} has no coefficients {', '.join(unknown)} of the Magic Formula {self.version}"
            )
        merged = {**self.coefficients, **{name: sympy.sympify(value) for name, value in values.items()}}
        return replace(self, coefficients=MappingProxyType(merged))

    def mounted(self, side: Literal["left", "right"]) -> MagicFormula:
        """The tire on this side of a car: mirrored if it was measured on the other side."""
        if side not in SIDES:
            raise ModelError(f"side is {brief(side)}: expected 'left' or 'right'")
        if self.side is None:
            raise ModelError(
                f"{self.source} does not say TYRESIDE = 'LEFT' or 'RIGHT': use mirror() to mirror the tire"
            )
        return replace(self, mirrored=side != self.side)

    def mirror(self) -> MagicFormula:
        """The mirror image of the tire."""
        return replace(self, mirrored=not self.mirrored)

    def forces_at(self, contact: Contact) -> Forces:
        at = replace(contact, tangent=-contact.tangent, gamma=-contact.gamma) if self.mirrored else contact
        found = mf52.forces(self._c, at) if self.version == "5.2" else mf61.forces(self._with_pressure(), at)
        # In the adapted SAE axes, y and z point the other way.
        sides = (-1 if self.mirrored else 1) * (-1 if self.axes == AXES[1] else 1)
        Mx = -found.Mx if self.mirrored else found.Mx
        return Forces(found.Fx, sides * found.Fy, Mx, found.My, sides * found.Mz)

    def _with_pressure(self) -> Coefficients:
        """With the nominal pressure where the file has none: any number, if pressure has no influence."""
        values = self.coefficients
        pressure = values.get("NOMPRES", values.get("INFLPRES", 1.0))
        return Coefficients({"NOMPRES": pressure, "INFLPRES": pressure, **values})

    def load(self, deflection: Any, rate: Any = 0, spin: Any = 0, pressure: Any = None) -> Any:
        return self._vertical().load(deflection, rate, spin, self._increment(pressure))

    def free_radius(self, spin: Any = 0) -> Any:
        return self._vertical().free_radius(spin)

    def effective_radius(self, load: Any, spin: Any = 0, pressure: Any = None) -> Any:
        return self._vertical().effective_radius(load, spin, self._increment(pressure))

    def relaxation_lengths(self, load: Any, gamma: Any = 0, pressure: Any = None) -> tuple[Any, Any]:
        c = self._with_pressure()
        if self.version == "5.2":
            self._require("PTX1", "PTY1", "PTY2")
            lengths = mf52.relaxation_lengths(c, load, gamma)
        else:
            self._require("LONGITUDINAL_STIFFNESS", "LATERAL_STIFFNESS")
            lengths = mf61.relaxation_lengths(c, load, gamma, c.INFLPRES if pressure is None else pressure)
        return lengths

    def sliding_slips(self, load: Any, gamma: Any = 0, pressure: Any = None) -> tuple[Any, Any]:
        c = self._with_pressure()
        if self.version == "5.2":
            frictions = mf52.frictions(c, load, sin(gamma))
            stiffnesses = mf52.slip_stiffness(c, load), mf52.cornering_stiffness(c, load, sin(gamma))
        else:
            dpi = self._increment(pressure)
            frictions = mf61.frictions(c, load, gamma, dpi)
            stiffnesses = mf61.slip_stiffness(c, load, dpi), mf61.cornering_stiffness(c, load, dpi, sin(gamma))
        # One newton more: without load both are zero.
        ahead, aside = (mu * (load + 1) / (Abs(k) + 20) for mu, k in zip(frictions, stiffnesses, strict=True))
        return ahead, aside

    def _require(self, *names: str) -> None:
        missing = [name for name in names if self.coefficients[name] == 0]
        if missing:
            raise ModelError(
                f"{self.source} lacks {', '.join(missing)} for relaxation lengths: give them by with_coefficients, or "
                "relaxation=(longitudinal, lateral) in m to the wheel"
            )

    def _increment(self, pressure: Any) -> Any:
        if self.version == "5.2":
            return 0
        c = self._with_pressure()
        return mf61.increment(c, c.INFLPRES if pressure is None else pressure)

    def _vertical(self) -> Vertical:
        c = self._c
        quadratic = c.Q_FZ2
        linear = self.coefficients.get("Q_FZ1")
        if linear is None:
            linear = sympy.sqrt((c.VERTICAL_STIFFNESS * c.UNLOADED_RADIUS / c.FNOMIN) ** 2 - 4 * quadratic)
        return Vertical(
            radius=c.UNLOADED_RADIUS,
            growth=(c.Q_RE0, c.Q_V1 * (c.UNLOADED_RADIUS / c.LONGVL) ** 2),
            stiffness=(linear * c.FNOMIN / c.UNLOADED_RADIUS, quadratic * c.FNOMIN / c.UNLOADED_RADIUS**2),
            stiffening=c.Q_V2 * c.UNLOADED_RADIUS / c.LONGVL,
            damping=c.VERTICAL_DAMPING,
            by_pressure=self.coefficients.get("PFZ1", 0.0),
            nominal=(c.FNOMIN, c.VERTICAL_STIFFNESS),
            rolling=(c.BREFF, c.DREFF, c.FREFF),
            depth=DAMPING_DEPTH * c.UNLOADED_RADIUS,
        )
