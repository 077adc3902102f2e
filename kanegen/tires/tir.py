"""Reads tire property files (``.tir``): names and numbers in sections, in the units that the file declares."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kanegen.errors import FileError, ModelError

UNITS: Final[Mapping[str, Mapping[str, float]]] = {
    "LENGTH": {"m": 1.0, "mm": 1e-3, "cm": 1e-2, "km": 1e3, "inch": 0.0254, "foot": 0.3048},
    "FORCE": {"n": 1.0, "kn": 1e3, "lbf": 4.4482216152605, "kgf": 9.80665},
    "ANGLE": {"rad": 1.0, "deg": math.pi / 180},
    "MASS": {"kg": 1.0, "g": 1e-3, "t": 1e3, "lb": 0.45359237, "slug": 14.593902937206365},
    "TIME": {"s": 1.0, "ms": 1e-3, "min": 60.0, "h": 3600.0},
    "PRESSURE": {"pa": 1.0, "kpa": 1e3, "mpa": 1e6, "bar": 1e5, "psi": 6894.757293168361},
}
"""The units that a file can declare, in SI units."""

_LONG_NAMES: Final = {
    **dict.fromkeys(("meter", "meters", "metre"), "m"),
    **dict.fromkeys(("millimeter", "millimeters", "millimetre"), "mm"),
    **dict.fromkeys(("centimeter", "centimeters"), "cm"),
    **dict.fromkeys(("kilometer", "kilometers"), "km"),
    **dict.fromkeys(("in", "inches"), "inch"),
    **dict.fromkeys(("ft", "feet"), "foot"),
    **dict.fromkeys(("newton", "newtons"), "n"),
    **dict.fromkeys(("kilonewton", "knewton"), "kn"),
    **dict.fromkeys(("pound_force", "pound-force"), "lbf"),
    **dict.fromkeys(("kg_force", "kilogram_force"), "kgf"),
    **dict.fromkeys(("radian", "radians"), "rad"),
    **dict.fromkeys(("degree", "degrees"), "deg"),
    **dict.fromkeys(("kilogram", "kilograms"), "kg"),
    **dict.fromkeys(("gram", "grams"), "g"),
    **dict.fromkeys(("tonne", "megagram"), "t"),
    **dict.fromkeys(("pound_mass", "pound"), "lb"),
    **dict.fromkeys(("second", "seconds", "sec"), "s"),
    **dict.fromkeys(("millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("minute", "minutes"), "min"),
    **dict.fromkeys(("hour", "hours"), "h"),
    **dict.fromkeys(("pascal", "newton/meter^2", "n/m^2"), "pa"),
}

_DIMENSIONS: Final[Mapping[str, Mapping[str, int]]] = {
    **{key: {"FORCE": 1} for key in ("FNOMIN", "FZMIN", "FZMAX")},
    **{key: {"LENGTH": 1} for key in ("UNLOADED_RADIUS", "WIDTH", "RIM_RADIUS", "RIM_WIDTH", "BOTTOM_OFFST")},
    **{
        key: {"FORCE": 1, "LENGTH": -1}
        for key in ("VERTICAL_STIFFNESS", "LONGITUDINAL_STIFFNESS", "LATERAL_STIFFNESS", "BOTTOM_STIFF")
    },
    "VERTICAL_DAMPING": {"FORCE": 1, "TIME": 1, "LENGTH": -1},
    **{key: {"LENGTH": 1, "TIME": -1} for key in ("LONGVL", "VXLOW")},
    **{key: {"ANGLE": 1} for key in ("ALPMIN", "ALPMAX", "CAMMIN", "CAMMAX")},
    **{key: {"PRESSURE": 1} for key in ("INFLPRES", "NOMPRES", "PRESMIN", "PRESMAX")},
    "MASS": {"MASS": 1},
    **{key: {"MASS": 1, "LENGTH": 2} for key in ("IXX", "IYY")},
    "DAMP_VLOW": {"TIME": 1},
}
"""The dimensions of what has one; the coefficients of the formulas are numbers, with angles in radians."""

_ALIASES: Final = {
    "LFZ0": "LFZO",
    **{f"Q{name}": f"Q_{name}" for name in ("V1", "V2", "FZ1", "FZ2", "RE0", "FCX", "FCY")},
    "IP": "INFLPRES",
    "IP_NOM": "NOMPRES",
}
"""Other spellings of the same coefficients."""


@dataclass(frozen=True)
class TirFile:
    """The contents of a file: numbers in SI units, and texts, by name, with the lines of both."""

    source: str
    numbers: Mapping[str, float]
    texts: Mapping[str, str]
    lines: Mapping[str, int]


def read_tir(path: Path) -> TirFile:
    """The values of a tire property file.

    Raises `FileError` for a file that cannot be read, and `ModelError` with all of its problems, by line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileError(f"cannot read the tire property file {path}: {error.strerror or error}") from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    reader = _Reader(path.name)
    for number, line in enumerate(text.splitlines(), 1):
        reader.line(number, line)
    return reader.file()


class _Reader:
    """Reads line after line, and collects the problems."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._section = ""
        self._in_table = False
        self._numbers: dict[str, float] = {}
        self._texts: dict[str, str] = {}
        self._units: dict[str, str] = {}
        self._lines: dict[tuple[str, str], int] = {}
        self._problems: list[str] = []

    def line(self, number: int, text: str) -> None:
        stripped = _without_comment(text)
        if not stripped:
            return
        if stripped.startswith("[") and stripped.endswith("]"):
            self._section, self._in_table = stripped[1:-1].strip().upper(), False
        elif stripped.startswith("{"):
            self._in_table = True
        elif not self._in_table or "=" in stripped:
            self._in_table = False
            self._assignment(number, stripped)

    def _assignment(self, number: int, text: str) -> None:
        key, equals, value = (part.strip() for part in text.partition("="))
        key = _ALIASES.get(key.upper(), key.upper())
        if not equals or not value or not re.fullmatch(r"\w+", key):
            self._problems.append(f"{self._source}, line {number}: found {text!r}; expected NAME = VALUE")
        elif (place := (self._kind, key)) in self._lines:
            first = self._lines[place]
            self._problems.append(f"{self._source}, line {number}: {key} is given again; line {first} gives it, too")
        else:
            self._lines[place] = number
            self._keep(number, key, value)

    @property
    def _kind(self) -> str:
        """The section, where names have a meaning of their own in it: those of units."""
        return self._section if self._section == "UNITS" else ""

    def _keep(self, number: int, key: str, value: str) -> None:
        quoted = re.fullmatch(r"(['\"])(.*)\1", value)
        if self._section == "UNITS":
            self._units[key] = (quoted[2] if quoted else value).strip()
        elif quoted:
            self._texts[key] = quoted[2].strip()
        else:
            read = _number(value)
            if read is None and re.fullmatch(r"[+-]?[\d.].*", value):
                self._problems.append(f"{self._source}, line {number}: {key} is {value!r}; expected a finite number")
            elif read is None:
                self._texts[key] = value
            else:
                self._numbers[key] = read

    def file(self) -> TirFile:
        scales = self._scales()
        if not self._lines and not self._problems:
            self._problems.append(f"{self._source}: there is no NAME = VALUE; expected a tire property file")
        if self._problems:
            raise ModelError(self._problems)
        numbers = {k: v * _scale(k, scales) for k, v in self._numbers.items()}
        lines = {key: line for (kind, key), line in self._lines.items() if not kind}
        return TirFile(self._source, numbers, self._texts, lines)

    def _scales(self) -> dict[str, float]:
        scales = {}
        for kind, known in UNITS.items():
            given = self._units.get(kind, next(iter(known))).lower()
            unit = _LONG_NAMES.get(given, given)
            if unit not in known:
                line = self._lines["UNITS", kind]
                expected = ", ".join(known)
                self._problems.append(
                    f"{self._source}, line {line}: the unit of {kind} is {self._units[kind]!r}; expected {expected}"
                )
            scales[kind] = known.get(unit, 1.0)
        if "PRESSURE" not in self._units:
            scales["PRESSURE"] = scales["FORCE"] / scales["LENGTH"] ** 2
        return scales


def _without_comment(line: str) -> str:
    """The line up to ``$`` or ``!`` outside of quotes."""
    kept = re.match(r"(?:[^$!'\"]|'[^']*'|\"[^\"]*\"|['\"](?=[^'\"]*$))*", line)
    return kept[0].strip() if kept else ""


def _number(text: str) -> float | None:
    """A finite number, with exponents of Fortran, too."""
    if "_" in text:
        return None
    try:
        value = float(re.sub(r"(?<=[\d.])[dD](?=[+-]?\d)", "e", text))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _scale(key: str, scales: Mapping[str, float]) -> float:
    return math.prod(scales[kind] ** power for kind, power in _DIMENSIONS.get(key, {}).items())
