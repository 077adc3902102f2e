"""The Magic Formula against three other implementations, and where its formulas could divide zero by zero."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sm
from checkout import ROOT

import kanegen as kg
from kanegen.graph import Graph, Lowering, evaluate, gradient

DATA = Path(__file__).parent / "data"
CAR = ROOT / "build_examples" / "car_tire.tir"
MF61 = DATA / "mf61.tir"

SAME = 1e-10
"""Relative to the size of each force; OpenTire has no constants against divisions by zero, and 2e-12 was seen."""

SCALED_52 = {
    **{"LKY": 1.2, "LMUX": 0.8, "LMUY": 0.7, "LTR": 1.1, "LGAX": 1.1, "LGAY": 1.2, "LGAZ": 0.9, "LRES": 0.9},
    **{"LXAL": 1.1, "LYKA": 1.2, "LVYKA": 0.9, "LS": 1.1, "LVX": 0.9, "LHX": 0.9, "LVY": 1.2, "LHY": 0.9, "LMX": 0.9},
    **{"LMY": 1.1, "LKX": 1.1, "LCX": 1.02, "LCY": 0.97, "LEX": 0.9, "LEY": 1.1, "LSGKP": 1.1, "LSGAL": 0.9},
    **{"LVMX": 1.2},
}
SCALED_61 = {
    **{"LFZO": 0.9, "LKY": 1.2, "LMUX": 0.8, "LMUY": 0.7, "LTR": 1.1, "LKYC": 0.8, "LKZC": 1.2, "LRES": 0.9},
    **{
        "LXAL": 1.1,
        "LYKA": 1.2,
        "LVYKA": 0.9,
        "SSZ1": 0.01,
        "SSZ2": 0.02,
        "SSZ3": 0.3,
        "SSZ4": 0.2,
        "LS": 1.1,
        "QSX12": 0.1,
    },
    **{"QSX13": 0.2, "QSX14": 0.1, "LVX": 0.9, "LHX": 0.9, "LVY": 1.2, "LHY": 0.9, "LMX": 0.9, "LMY": 1.1, "LKX": 1.1},
}


def rows(name: str) -> list[dict[str, float]]:
    with (DATA / f"{name}.csv").open(newline="") as file:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]


def forces_at(tire: Any, row: Mapping[str, float]) -> dict[str, float]:
    state = [row[key] for key in ("Fz", "kappa", "alpha", "gamma", "Vx")]
    found = tire.forces(*state, pressure=row.get("pressure"))
    return {key: float(value) for key, value in found._asdict().items()}


def sizes(row: Mapping[str, float]) -> dict[str, float]:
    """The size of a force and of a moment, N and N m, at the load of a row."""
    load = row["Fz"]
    return {"Fx": load, "Fy": load, "Mx": 0.3 * load, "My": 0.01 * load, "Mz": 0.03 * load}


@pytest.mark.parametrize(("name", "scaling"), [("opentire_52", {}), ("opentire_52_scaled", SCALED_52)])
def test_version_5_2_agrees_with_opentire(name: str, scaling: dict[str, float]) -> None:
    tire = kg.tires.from_tir(CAR).with_coefficients(**scaling)
    for row in rows(name):
        found, size = forces_at(tire, row), sizes(row)
        assert all(abs(found[key] - row[key]) <= SAME * size[key] for key in found), row
        lengths = tire.relaxation_lengths(row["Fz"], row["gamma"])
        assert [float(x) for x in lengths] == pytest.approx([row["sigma_x"], row["sigma_y"]], rel=SAME)


@pytest.mark.parametrize(("name", "scaling"), [("mfeval_61", {}), ("mfeval_61_scaled", SCALED_61)])
def test_version_6_1_agrees_with_mfeval(name: str, scaling: dict[str, float]) -> None:
    tire = kg.tires.from_tir(MF61).with_coefficients(**scaling)
    for row in rows(name):
        found, size = forces_at(tire, row), sizes(row)
        # MFeval has the cosine of tan(alpha) in the residual moment in place of that of alpha.
        other = row["Mzr"] * (np.cos(row["alpha"]) / np.cos(np.tan(row["alpha"])) - 1)
        expected = {**row, "Mz": row["Mz"] + other}
        assert all(abs(found[key] - expected[key]) <= SAME * size[key] for key in found), row
        lengths = tire.relaxation_lengths(row["Fz"], row["gamma"], row["pressure"])
        assert [float(abs(x)) for x in lengths] == pytest.approx([row["sigma_x"], row["sigma_y"]], rel=SAME)
        radius = tire.effective_radius(row["Fz"], row["omega"], row["pressure"])
        assert float(radius) == pytest.approx(row["Re"], rel=SAME)


def test_versions_6_agree_with_tyredyn() -> None:
    tire = kg.tires.from_tir(MF61)
    for row in rows("tyredyn_62"):
        found, size = forces_at(tire, row), sizes(row)
        assert all(abs(found[key] - row[key]) <= 10 * SAME * size[key] for key in ("Fx", "Fy", "Mx", "My")), row


@pytest.mark.parametrize("file", [CAR, MF61], ids=["5.2", "6.1"])
def test_forces_and_slopes_are_finite_without_load_slip_and_inclination(file: Path) -> None:
    symbols = sm.symbols("Fz kappa alpha gamma Vx", real=True)
    graph = Graph()
    inputs = [graph.input("q", k) for k in range(5)]
    lowering = Lowering(graph, dict(zip(symbols, inputs, strict=True)))
    forces = [lowering.lower(force) for force in kg.tires.from_tir(file).forces(*symbols)]
    slopes = [slope for force in forces for slope in gradient([force], [graph.one], inputs)]
    sliding, standing = (4000.0, -1.0, 0.0, 0.0, 20.0), (4000.0, 0.0, 0.0, 0.0, 0.0)
    unloaded, upright = (0.0, 0.1, -0.1, 0.05, 20.0), (4000.0, 0.0, 0.0, 0.0, 20.0)
    for state in (sliding, standing, unloaded, upright, (0.0,) * 5):
        values = np.array(evaluate([*forces, *slopes], {"q": state}), dtype=float)
        assert np.all(np.isfinite(values)), state
        if state[0] == 0:
            assert np.abs(values[:5]).max() < 1e-6


def test_a_mirrored_tire_is_the_mirror_image() -> None:
    tire = kg.tires.from_tir(CAR)
    state = (4000.0, 0.02, 0.05, 0.03, 20.0)
    right, mirrored = tire.mounted("right"), (4000.0, 0.02, -0.05, -0.03, 20.0)
    here, there = (np.array(forces, dtype=float) for forces in (tire.forces(*state), right.forces(*mirrored)))
    assert there == pytest.approx(here * (1, -1, -1, 1, -1))
    assert tire.mounted("left") == tire
    assert right == tire.mirror()
    assert "mirrored" in repr(right)


def test_a_coefficient_can_be_an_expression() -> None:
    mu = sm.Symbol("mu")
    tire = kg.tires.from_tir(CAR).with_coefficients(LMUY=mu)
    force = tire.Fy(4000.0, alpha=0.1, Vx=20.0)
    number = kg.tires.from_tir(CAR).with_coefficients(LMUY=0.6).Fy(4000.0, alpha=0.1, Vx=20.0)
    assert force.free_symbols == {mu}
    assert float(force.subs(mu, 0.6).doit()) == pytest.approx(float(number), rel=1e-14)


def test_vertical_law_is_that_of_the_file() -> None:
    tire = kg.tires.from_tir(MF61)
    c = tire.coefficients
    assert float(tire.load(0.0)) == float(tire.load(-0.01)) == float(tire.load(-0.01, 100.0)) == 0.0
    assert float(tire.load(0.02, -1e4)) == 0.0
    assert float(tire.load(0.02, 0.1) - tire.load(0.02)) == pytest.approx(0.1 * c["VERTICAL_DAMPING"])
    # Besselink 2010: q_Fz1 follows from the stiffness at the nominal load.
    linear = np.sqrt((c["VERTICAL_STIFFNESS"] * c["UNLOADED_RADIUS"] / c["FNOMIN"]) ** 2 - 4 * c["Q_FZ2"])
    depth, spin, pressure = 0.02 / c["UNLOADED_RADIUS"], 50.0, 240000.0
    expected = (linear * depth + c["Q_FZ2"] * depth**2) * c["FNOMIN"]
    expected *= 1 + c["Q_V2"] * c["UNLOADED_RADIUS"] / c["LONGVL"] * spin
    expected *= 1 + c["PFZ1"] * (pressure / c["NOMPRES"] - 1)
    assert float(tire.load(0.02, 0.0, spin, pressure)) == pytest.approx(expected, rel=1e-13)
