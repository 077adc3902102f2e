"""Names in any script, with spaces and quotes, go through every output, and come back where it can be read."""

from __future__ import annotations

import csv
import pickle
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

NAMES: Mapping[str, tuple[str, ...]] = {
    "mixed": ("θ", "скорость", "质量", "length of the rod", 'g"0"', "l'höhe", "é, {0} %s"),
    "Greek": ("θ", "ω", "μάζα", "μῆκος", "βαρύτης", "ύψος", "τ"),
    "Cyrillic": ("угол", "скорость", "масса", "длина", "тяжесть", "высота", "момент"),
    "Chinese": ("角度", "角速度", "质量", "长度", "重力", "高度", "力矩"),
    "spaces": ("angle of rod", "speed of rod", "mass 1", "length of the rod", "g 0", "height of it", "torque at pin"),
    "quotes": ("l'angle", 'v"1"', "m`", "l\\1", "g$_0", "h<&>", "tau, {0} %s"),
    "signs": ("q/2", "ω\u0307", "m:1", "l;1", "g[0]", "a.b", "é*?"),
    "beyond": ("\U0001d703", "\U0001f680", "m\u200d", "l\u00a0", "g\u2215", "h\u202e", "t\u0301"),
}
"""Coordinate, speed, mass, length, gravity, output and input of a pendulum."""


def pendulum(names: tuple[str, ...]) -> kg.Model:
    t = me.dynamicsymbols._t
    q, u, torque = (sm.Function(names[k])(t) for k in (0, 1, 6))
    state = sm.Function(f"state {names[0]}")(t)
    m, length, g = (sm.Symbol(name) for name in names[2:5])
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    rod = me.ReferenceFrame(f"frame {names[5]}")
    rod.orient_axis(N, N.z, q)
    tip = O.locatenew(f"point {names[0]}", -length * rod.y)
    return kg.Model(
        name=f"model {names[0]}",
        frame=N,
        coordinates=(q,),
        speeds=(u,),
        kinematics=(u - q.diff(t),),
        bodies=(me.RigidBody(f"body {names[2]}", tip, rod, m, (me.inertia(rod, 0.1, 0.1, 0.1), tip)),),
        loads=[(rod, torque * N.z)],
        gravity=-g * N.y,
        inputs=(kg.Input(torque, default=0.0),),
        states={state: -state},
        parameters={m: 1.0, length: 0.5, g: 9.81},
        initial={q: 0.3, u: 0.1, state: 1.0},
        outputs={names[5]: tip.pos_from(O) & N.y},
        events=(kg.Event(f"event {names[5]}", q),),
    )


def saved(names: tuple[str, ...], solution: kg.Solution, folder: Path) -> None:
    solution.save(folder / "motion.nc")
    loaded = kg.load(folder / "motion.nc", solution.solver)
    assert loaded.run == solution.run
    assert [event.name for event in loaded.events] == [event.name for event in solution.events]
    np.testing.assert_array_equal(loaded[names[0]], solution[names[0]])
    np.testing.assert_array_equal(loaded[names[5]], solution[names[5]])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(solution))[names[0]], solution[names[0]])


def read_by_xarray(names: tuple[str, ...], solution: kg.Solution, folder: Path) -> None:
    xarray = pytest.importorskip("xarray")
    solution.save(folder / "motion.nc")
    with xarray.open_dataset(folder / "motion.nc", engine="scipy") as data:
        assert [*data["coordinate"].values] == [names[0]]
        assert data.attrs["model"] == f"model {names[0]}"


def tables(names: tuple[str, ...], solution: kg.Solution, folder: Path) -> None:
    pandas = pytest.importorskip("pandas")
    for suffix in ("csv", "npz", "parquet"):
        solution.save(folder / f"motion.{suffix}")
    with (folder / "motion.csv").open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file))[:3] == ["t", *names[:2]]
    assert np.load(folder / "motion.npz")["names"].tolist()[:2] == [*names[:2]]
    assert {names[0], names[5]} <= {*pandas.read_parquet(folder / "motion.parquet").columns}


def pages(names: tuple[str, ...], solution: kg.Solution, folder: Path) -> None:
    for page in (solution.animate(), kg.report(solution, verify=False)):
        assert page.save(folder / "page.html").read_text(encoding="utf-8") == page.html


def swept(names: tuple[str, ...], solution: kg.Solution, folder: Path) -> None:
    xarray = pytest.importorskip("xarray")
    design = {names[2]: [1.0, 2.0], names[0]: [0.1, 0.2], names[6]: [0.0, 1.0]}
    for _ in range(2):  # the second call reads the store
        result = kg.sweep(solution.solver, design, t_span=(0.0, 0.5), t_eval=[0.0, 0.5], store=folder / "store.zarr")
    data = xarray.open_zarr(folder / "store.zarr")
    np.testing.assert_array_equal(data[names[2]], design[names[2]])
    assert [*data["coordinate"].values] == [names[0]]
    np.testing.assert_array_equal(data["q"], result["q"])


def emitted(names: tuple[str, ...], solution: kg.Solution, folder: Path) -> None:
    kg.emit(pendulum(names), folder / "project", functions=["rhs"])
    solution.solver.sources.write(folder / "sources")
    assert solution.solver.sources.kernel in {path.name for path in (folder / "sources").iterdir()}


def exported(names: tuple[str, ...], solution: kg.Solution, folder: Path) -> None:
    path = kg.export_fmu(pendulum(names), folder / "model.fmu", binary=False)
    with zipfile.ZipFile(path) as archive:
        root = ElementTree.fromstring(archive.read("modelDescription.xml"))
    found = {item.get("name") for item in root.iter("ScalarVariable")}
    assert {*names} <= found
    assert root.get("modelName") == f"model {names[0]}"


OUTPUTS: tuple[Callable[[tuple[str, ...], kg.Solution, Path], None], ...] = (
    *(saved, read_by_xarray, tables, pages, swept, emitted, exported),
)


@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")  # fonts without a letter
@pytest.mark.filterwarnings("ignore:Matplotlib currently does not support:UserWarning")
@pytest.mark.parametrize("kind", ["mixed", *(pytest.param(x, marks=pytest.mark.campaign) for x in [*NAMES][1:])])
def test_names_go_through_every_output(kind: str, tmp_path: Path) -> None:
    names: Any = NAMES[kind]
    solution = kg.build(pendulum(names)).integrate((0.0, 1.0))
    for output in OUTPUTS:
        folder = tmp_path / output.__name__
        folder.mkdir()
        output(names, solution, folder)
