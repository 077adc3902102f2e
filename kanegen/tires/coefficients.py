"""The coefficients of the Magic Formula: which a file must have, and the values of the others where it has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kanegen.errors import ModelError
from kanegen.tires.tir import TirFile

VERSIONS: Final = {
    **dict.fromkeys((6, 21, 52), "5.2"),
    61: "6.1",
    62: "6.2",
}
"""The version of the formulas by FITTYP. PAC2002, by its PROPERTY_FILE_FORMAT, is 5.2."""

REQUIRED: Final = (
    *("UNLOADED_RADIUS", "FNOMIN", "VERTICAL_STIFFNESS", "LONGVL"),
    *("PCX1", "PDX1", "PKX1", "PCY1", "PDY1", "PKY1", "PKY2"),
)

_SCALING: Final = {
    *("LFZO", "LCX", "LMUX", "LEX", "LKX", "LHX", "LVX", "LCY", "LMUY", "LEY", "LKY", "LHY", "LVY", "LTR", "LRES"),
    *("LXAL", "LYKA", "LVYKA", "LS", "LVMX", "LMX", "LMY"),
}
_ONLY_52: Final = ("LGAX", "LGAY", "LGAZ", "LSGKP", "LSGAL")
_ONLY_61: Final = ("LKYC", "LKZC")


def _numbered(prefix: str, *numbers: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{number}" for number in numbers)


_ZERO: Final = (
    *_numbered("PDX", 2, 3),
    *_numbered("PEX", 1, 2, 3, 4),
    *_numbered("PKX", 2, 3),
    *_numbered("PHX", 1, 2),
    *_numbered("PVX", 1, 2),
    *_numbered("RBX", 1, 2),
    *("RCX1", "REX1", "REX2", "RHX1"),
    *_numbered("PDY", 2, 3),
    *_numbered("PEY", 1, 2, 3, 4),
    "PKY3",
    *_numbered("PHY", 1, 2),
    *_numbered("PVY", 1, 2, 3, 4),
    *_numbered("RBY", 1, 2, 3),
    *("RCY1", "REY1", "REY2", "RHY1", "RHY2"),
    *_numbered("RVY", 1, 2, 3, 4, 5, 6),
    *_numbered("QBZ", 1, 2, 3, 4, 5, 9, 10),
    "QCZ1",
    *_numbered("QDZ", 1, 2, 3, 4, 6, 7, 8, 9),
    *_numbered("QEZ", 1, 2, 3, 4, 5),
    *_numbered("QHZ", 1, 2, 3, 4),
    *_numbered("SSZ", 1, 2, 3, 4),
    *_numbered("QSX", 1, 2, 3),
    *_numbered("QSY", 1, 2, 3, 4),
    *("BREFF", "DREFF", "FREFF", "Q_V1", "Q_V2", "Q_FZ2", "VERTICAL_DAMPING"),
)
_ZERO_52: Final = ("PHY3", *_numbered("PTX", 1, 2, 3), *_numbered("PTY", 1, 2))
_ZERO_61: Final = (
    *_numbered("PPX", 1, 2, 3, 4),
    *("RBX3", "PEY5", "PKY5", "PKY6", "PKY7"),
    *_numbered("PPY", 1, 2, 3, 4, 5),
    "RBY4",
    *("QDZ10", "QDZ11", "PPZ1", "PPZ2"),
    *_numbered("QSX", *range(4, 15)),
    "PPMX1",
    *("QSY5", "QSY6", "QSY8", "PFZ1"),
    *("LONGITUDINAL_STIFFNESS", "LATERAL_STIFFNESS"),
    *_numbered("PCFX", 1, 2, 3),
    *_numbered("PCFY", 1, 2, 3),
)
_OTHER: Final = {"Q_RE0": 1.0, "VXLOW": 1.0, "DAMP_VLOW": 0.01}
_OTHER_61: Final = {"PKY4": 2.0, "QSY7": 1.0}


def version(file: TirFile) -> str:
    """The version of the formulas that a file is for: ``"5.2"``, ``"6.1"`` or ``"6.2"``."""
    fit = file.numbers.get("FITTYP")
    form = file.texts.get("PROPERTY_FILE_FORMAT", "").upper()
    if fit in VERSIONS:
        return VERSIONS[int(fit)]
    if fit is None and form == "PAC2002":
        return "5.2"
    if fit is None:
        found = f"no FITTYP, and PROPERTY_FILE_FORMAT {form!r}" if form else "no FITTYP and no PROPERTY_FILE_FORMAT"
    else:
        found = f"FITTYP = {fit:g}"
    raise ModelError(
        f"{file.source} has {found}; expected FITTYP = 6, 21 or 52 (Magic Formula 5.2), 61 or 62 (6.1, 6.2), or the "
        "format 'PAC2002'"
    )


def defaults(of_version: str) -> dict[str, float]:
    """The values of coefficients that a file need not have."""
    old = of_version == "5.2"
    ones = (*sorted(_SCALING), *(_ONLY_52 if old else _ONLY_61))
    zeros = (*_ZERO, *(_ZERO_52 if old else _ZERO_61))
    return {**dict.fromkeys(ones, 1.0), **dict.fromkeys(zeros, 0.0), **_OTHER, **({} if old else _OTHER_61)}


def complete(file: TirFile) -> tuple[dict[str, float], dict[str, float]]:
    """All coefficients of a file, and those of them that it does not have.

    Raises `ModelError` for coefficients that are missing or no numbers.
    """
    known = (*REQUIRED, *defaults(version(file)))
    if wrong := [name for name in known if name in file.texts]:
        raise ModelError(
            [
                f"{file.source}, line {file.lines[name]}: {name} is {file.texts[name]!r}; expected a finite number"
                for name in wrong
            ]
        )
    missing = [name for name in REQUIRED if name not in file.numbers]
    if missing:
        raise ModelError(f"{file.source} lacks the coefficients {', '.join(missing)}, which have no default")
    assumed = {k: v for k, v in defaults(version(file)).items() if k not in file.numbers}
    small = [k for k in ("UNLOADED_RADIUS", "FNOMIN", "VERTICAL_STIFFNESS", "LONGVL") if file.numbers[k] <= 0]
    if small:
        values = ", ".join(f"{name} = {file.numbers[name]:g}" for name in small)
        raise ModelError(f"{file.source} has {values}: expected positive numbers")
    return {**file.numbers, **assumed}, assumed


class Coefficients:
    """The coefficients as attributes: numbers, or SymPy expressions in their place."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(name) from None
