"""Tire property files: units, defaults, axes, and what is wrong with broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkout import ROOT
from messages import raises

import kanegen as kg

CAR = (ROOT / "build_examples" / "car_tire.tir").read_text(encoding="utf-8")
STATE = (4000.0, 0.02, 0.05, 0.03, 20.0)


def written(folder: Path, *changes: tuple[str, str], text: str = CAR) -> Path:
    """A file in which texts are replaced."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = folder / "changed.tir"
    file.write_text(text, encoding="utf-8")
    return file


def test_units_of_the_file_count(tmp_path: Path) -> None:
    changes = (
        ("LENGTH = 'meter'", "LENGTH = 'mm'"),
        ("FORCE  = 'newton'", "FORCE = 'kN'"),
        ("ANGLE  = 'radians'", "ANGLE = 'degrees'"),
        ("UNLOADED_RADIUS = 0.344", "UNLOADED_RADIUS = 344"),
        ("FNOMIN = 4850.0", "FNOMIN = 4.85D0"),
        ("VERTICAL_STIFFNESS = 210000.0", "VERTICAL_STIFFNESS = 0.21"),
        ("VERTICAL_DAMPING = 500.0", "VERTICAL_DAMPING = 5e-4"),
        ("LONGVL = 16.6", "LONGVL = 16600"),
        ("VXLOW = 1\n", "VXLOW = 1000\n"),
        ("CAMMAX = 0.26181", "CAMMAX = 15.0"),
    )
    tire, same = kg.tires.from_tir(written(tmp_path, *changes)), kg.tires.from_tir(written(tmp_path))
    assert list(map(float, tire.forces(*STATE))) == pytest.approx(list(map(float, same.forces(*STATE))), rel=1e-13)
    assert float(tire.load(0.02, 0.3)) == pytest.approx(float(same.load(0.02, 0.3)), rel=1e-13)
    assert tire.ranges["gamma"][1] == pytest.approx(same.ranges["gamma"][1], rel=1e-4)
    assert same.ranges["Fz"] == (225.0, 10125.0)
    assert same.ranges["pressure"] == (None, None)


def test_axes_of_the_book_are_turned(tmp_path: Path) -> None:
    # Turned by pi about x, the curves of lateral force and aligning moment have the other sign.
    signs = ("PKY1", "PVY1", "PVY2", "PVY3", "PVY4", "RVY1", "RVY2", "RVY3", "QDZ6", "QDZ7", "QDZ8", "QDZ9")
    signs += ("SSZ1", "SSZ3", "SSZ4", "QSX3")
    lines = []
    for line in CAR.splitlines():
        name, equals, value = line.partition("=")
        lines.append(f"{name}= {-float(value)!r}" if name.strip() in signs and equals else line)
    file = written(tmp_path, text="\n".join(lines))
    with raises(kg.ModelError, "PKY1 = 21.92", "axes='adapted SAE'"):
        kg.tires.from_tir(file)
    turned, tire = kg.tires.from_tir(file, axes="adapted SAE"), kg.tires.from_tir(written(tmp_path))
    assert list(map(float, turned.forces(*STATE))) == pytest.approx(list(map(float, tire.forces(*STATE))), rel=1e-9)
    assert "adapted SAE" in repr(turned)


def test_missing_coefficients_have_defaults_and_are_said(tmp_path: Path) -> None:
    combined = [line for line in CAR.splitlines() if line.startswith(("RBX", "RCX", "REX", "RHX"))]
    tire = kg.tires.from_tir(written(tmp_path, *((f"{line}\n", "") for line in combined)))
    assert {"RBX1", "RCX1", "REX2", "RHX1", "Q_V1"} <= set(tire.assumed)
    assert "coefficients by default" in repr(tire)
    # Without its coefficients, side slip takes nothing of the longitudinal force.
    assert float(tire.Fx(4000.0, 0.05, 0.2)) == float(tire.Fx(4000.0, 0.05))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("PCX1 = 1.6411", "PCX1 1.6411", ("line 65", "'PCX1 1.6411'", "NAME = VALUE")),
        ("PCX1 = 1.6411", "PCX1 = 1.64.11", ("line 65", "PCX1", "'1.64.11'", "number")),
        ("PCX1 = 1.6411", "PCX1 = ", ("line 65", "NAME = VALUE")),
        ("PCX1 = 1.6411", "PCX1 = 1.6411\nPCX1 = 1.7", ("line 66", "PCX1", "line 65")),
        ("PCX1 = 1.6411", "PCX1 = abc", ("line 65", "PCX1 is 'abc'", "finite number")),
        ("PCX1 = 1.6411", "PCX1 = 1_1", ("line 65", "PCX1 is '1_1'", "finite number")),
        ("PCX1 = 1.6411", "PCX1 = nan", ("line 65", "PCX1 is 'nan'", "finite number")),
        ("PCX1 = 1.6411", "PCX1 = 1.6411\n[MORE]\nPCX1 = 1.7", ("line 67", "PCX1 is given again", "line 65")),
        ("PCX1 = 1.6411\n", "", ("changed.tir", "PCX1", "no default")),
        ("PKY1 = -21.92\n", "", ("PKY1", "no default")),
        ("PKY1 = -21.92", "PKY1 = 0", ("PKY1 = 0", "cornering stiffness")),
        ("FNOMIN = 4850.0", "FNOMIN = -4850.0", ("FNOMIN = -4850", "positive")),
        ("FITTYP = 6", "FITTYP = 5", ("FITTYP = 5", "61 or 62")),
        ("FITTYP = 6", "PROPERTY_FILE_FORMAT = 'FIALA'", ("'FIALA'", "PAC2002")),
        ("LENGTH = 'meter'", "LENGTH = 'furlong'", ("line 5", "LENGTH", "'furlong'", "mm")),
    ],
)
def test_broken_files_are_refused(old: str, new: str, words: tuple[str, ...], tmp_path: Path) -> None:
    padded = CAR.replace("  =", " =").replace("  =", " =")
    padded = "\n".join(" = ".join(part.strip() for part in line.split(" = ")) for line in padded.splitlines())
    with raises(kg.ModelError, "changed.tir", *words):
        kg.tires.from_tir(written(tmp_path, (old, new), text=padded + "\n"))


def test_all_problems_of_a_file_are_reported(tmp_path: Path) -> None:
    with pytest.raises(kg.ModelError) as caught:
        kg.tires.from_tir(written(tmp_path, ("[MODEL]", "[MODEL]\nfirst\nsecond"), ("LONGVL = 16.6", "LONGVL = 16,6")))
    assert len(caught.value.problems) == 3


def test_files_that_are_none(tmp_path: Path) -> None:
    with raises(kg.FileError, "none.tir"):
        kg.tires.from_tir(tmp_path / "none.tir")
    (tmp_path / "empty.tir").write_text("$ nothing\n", encoding="utf-8")
    with raises(kg.ModelError, "empty.tir", "NAME = VALUE"):
        kg.tires.from_tir(tmp_path / "empty.tir")
    with raises(kg.ModelError, "axes", "'SAE'"):
        kg.tires.from_tir(written(tmp_path), axes="SAE")  # type: ignore[arg-type]


def test_comments_tables_and_cases_are_read(tmp_path: Path) -> None:
    table = "[SHAPE]\n{radial width}\n 1.0 0.0\n 0.9 1.0\n! a comment = 3\n[MODEL]  "
    changes = (("[MODEL]", table), ("FITTYP = 6", "property_file_format = 'PAC2002' $ 'text' ! more"))
    tire = kg.tires.from_tir(written(tmp_path, *changes))
    assert tire.version == "5.2"
    assert "SHAPE" not in tire.coefficients


def test_what_a_tire_does_not_know_is_said(tmp_path: Path) -> None:
    tire = kg.tires.from_tir(written(tmp_path, ("TYRESIDE = 'LEFT'\n", ""), *_without("PTX", "PTY")))
    with raises(kg.ModelError, "TYRESIDE", "mirror()"):
        tire.mounted("left")
    with raises(kg.ModelError, "PTX1", "PTY2", "relaxation="):
        tire.relaxation_lengths(4000.0)
    with raises(kg.ModelError, "PCX9", "5.2"):
        tire.with_coefficients(PCX9=1.0)
    with raises(kg.ModelError, "'up'", "'left'"):
        tire.mounted("up")  # type: ignore[arg-type]


def _without(*prefixes: str) -> list[tuple[str, str]]:
    return [(f"{line}\n", "") for line in CAR.splitlines() if line.startswith(prefixes)]
