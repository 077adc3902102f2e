"""Solutions as data frames, data sets and netCDF files: what is read is what was written, to the last bit."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from control_models import solver_of as control_solver
from hybrid_models import RATE, block, rough_block
from messages import raises, says
from servo_systems import rod_solver, rod_state
from state_models import solver_of, ticking
from systems import initial, model_of, solver_for

import kanegen as kg
from kanegen.solve.solution import files


def stateful() -> kg.Solution:
    table = {"f": ([0.0, 2.0], [0.0, 1.0])}
    return solver_of("cart").integrate((0.0, 2.0), [0.3], [0.0], table, s0={"a": 0.1, "z": 0.0})


def sampled() -> kg.Solution:
    options = {"s0": {"a": 0.1, "z": 0.0}, "sample_time": 0.1, "delay": 0.05}
    return solver_of("cart").integrate((0.0, 1.0), [0.3], [0.0], lambda t, q, u: -q[0], **options)


def sliding() -> kg.Solution:
    return block().integrate((0.0, 4.0), [0.0, 0.0], [0.0, 0.0], ([0.0, 10.0], [0.0, 10.0 * RATE]))


def bouncing() -> kg.Solution:
    start = initial("bouncing_ball")
    return solver_for("bouncing_ball").integrate((0.0, 2.0), start["q"], start["u"])


def servo() -> kg.Solution:
    state, options = rod_state(1), {"control": True, "sample_time": 0.05, "start_tolerance": None}
    return rod_solver().integrate((0.0, 0.5), state["q"], state["u"], **options)


def extended() -> kg.Solution:
    tau0 = [np.hypot(0.6, 1.2), 0.0]
    return control_solver("winch").integrate((0.0, 1.0), [0.6, -1.2], [0.0, 0.0], control=True, tau0=tau0)


def without_times() -> kg.Solution:
    start = initial("slider_crank")
    return solver_for("slider_crank").integrate((0.0, 0.1), start["q"], start["u"], t_eval=[])


def with_resets() -> kg.Solution:
    solver = kg.build(ticking())
    d = solver.description
    return solver.integrate((0.0, 2.5), [0.0] * len(d.coordinates), [1.0] * len(d.speeds), s0=[0.0] * len(d.states))


RUNS = (stateful, sampled, sliding, bouncing, servo, extended, without_times, with_resets)


def equal(a: Any, b: Any) -> None:
    """Compare records and arrays exactly."""
    if isinstance(a, np.ndarray):
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            equal(x, y)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        equal([*a.values()], [b[key] for key in a])
    else:
        assert a == b


def plain(record: Any) -> Any:
    return None if record is None else asdict(record)


@pytest.mark.parametrize("run", RUNS, ids=[run.__name__ for run in RUNS])
def test_what_is_loaded_is_what_was_saved(run: Any, tmp_path: Path) -> None:
    solution = run()
    file = tmp_path / "motion.nc"
    solution.save(file)
    loaded = kg.load(file, solution.solver)
    for name in ("t", "q", "u", "s", "inputs", "phase", "last", "statistics", "status", "message"):
        equal(getattr(loaded, name), getattr(solution, name))
    for name in ("contacts", "control"):
        equal(plain(getattr(loaded, name)), plain(getattr(solution, name)))
    equal([*map(plain, loaded.events)], [*map(plain, solution.events)])
    assert loaded.run == solution.run
    if solution.t.size:
        middle = 0.5 * (solution.t[0] + solution.t[-1])
        equal(loaded(middle), solution(middle))
    equal(loaded.momentum, solution.momentum)


def test_a_solution_loaded_without_a_solver_has_the_motion(tmp_path: Path) -> None:
    stateful().save(tmp_path / "motion.nc")
    loaded = kg.load(tmp_path / "motion.nc")
    np.testing.assert_allclose(loaded["f"], loaded.t / 2, rtol=1e-14)
    assert loaded.run is not None
    assert loaded.run.parameters["m"] == 1.3
    with raises(kg.SolveError, "kg.load(path, solver)"):
        _ = loaded.kinetic_energy
    with raises(kg.SolveError, "lag", "output", "kg.load(path, solver)"):
        loaded["lag"]


def test_a_quantity_that_was_not_built_is_no_attribute(tmp_path: Path) -> None:
    """`hasattr` raised SolveError; the AttributeError says what is missing, and is a SolveError as before."""
    start = initial("slider_crank")
    solver = kg.build(model_of("slider_crank"), functions=["rhs", "residuals"])
    solution = solver.integrate((0.0, 0.1), start["q"], start["u"])
    assert hasattr(solution, "rhs")
    assert not hasattr(solution, "linear_momentum")
    for error in (AttributeError, kg.SolveError):
        with raises(error, "linear_momentum", "functions="):
            _ = solution.linear_momentum
    solution.save(tmp_path / "motion.nc")
    loaded = kg.load(tmp_path / "motion.nc")
    assert not hasattr(loaded, "energy")
    with raises(kg.SolveError, "kg.load(path, solver)"):
        _ = loaded.outputs


def test_the_digest_of_the_solver_is_compared(tmp_path: Path) -> None:
    file = tmp_path / "motion.nc"
    solution = stateful()
    solution.save(file)
    with raises(kg.SolveError, "cart", "slider_crank", solution.solver.extension.digest[:12]):
        kg.load(file, solver_for("slider_crank"))


def test_quantities_of_a_loaded_solution_use_the_parameters_of_the_run(tmp_path: Path) -> None:
    solver = solver_of("cart")
    solver.with_parameters(m=5.0).integrate((0.0, 1.0), [0.3], [1.0], s0=[0.0, 0.0]).save(tmp_path / "motion.nc")
    loaded = kg.load(tmp_path / "motion.nc", solver)
    np.testing.assert_allclose(loaded.kinetic_energy, 2.5 * loaded["v"] ** 2, rtol=1e-14)


def test_other_files_are_refused(tmp_path: Path) -> None:
    from scipy.io import netcdf_file

    (tmp_path / "text.nc").write_text("t,x\n0,1\n")
    with raises(kg.SolveError, "text.nc"):
        kg.load(tmp_path / "text.nc")
    with netcdf_file(tmp_path / "other.nc", "w") as file:
        file.title = "measurements"
    with raises(kg.SolveError, "other.nc"):
        kg.load(tmp_path / "other.nc")
    with raises(kg.FileError, "missing.nc", "No such file"):
        kg.load(tmp_path / "missing.nc")
    with raises(kg.FileError, "motion.nc", "there is no folder"):
        stateful().save(tmp_path / "missing" / "motion.nc")


def damaged(content: bytes, seed: int) -> Iterator[tuple[str, bytes]]:
    """A hundred versions of a file, each with one kind of damage."""
    draw = np.random.default_rng(seed)
    size = len(content)
    for _ in range(60):
        changed = bytearray(content)
        place, bit = draw.integers(size), draw.integers(8)
        changed[place] ^= 1 << bit
        yield f"bit {bit} of byte {place}", bytes(changed)
    for _ in range(20):
        place = draw.integers(size)
        yield f"cut at {place}", content[:place]
    for _ in range(10):
        changed, place = bytearray(content), draw.integers(size)
        changed[place : place + 512] = draw.bytes(len(changed[place : place + 512]))
        yield f"other bytes from {place}", bytes(changed)
    for _ in range(8):
        a, b = sorted(draw.integers(size, size=2).tolist())
        yield f"without the bytes {a} to {b + 1}", content[:a] + content[b + 1 :]
    yield "a byte more", content + b"\0"
    yield "twice", content * 2


OTHERS = {
    "empty": b"",
    "text": "θ,x\n0,1\n".encode(),
    "JSON": b'{"format": 2}',
    "HDF5": b"\x89HDF\r\n\x1a\n" + bytes(100),
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "ZIP": b"PK\x03\x04" + bytes(100),
    "the start of netCDF": b"CDF\x02",
}
"""Files of other formats."""


@pytest.mark.parametrize("run", RUNS[:6], ids=[run.__name__ for run in RUNS[:6]])
def test_damaged_files_are_refused(run: Any, tmp_path: Path) -> None:
    """Of 600 files, 302 were loaded with other numbers and 70 raised errors of other kinds."""
    solution, file = run(), tmp_path / "motion.nc"
    solution.save(file)
    content = file.read_bytes()
    versions = [item for item in damaged(content, seed=RUNS.index(run)) if item[1] != content]
    assert len(versions) >= 95
    for what, changed in (*versions, *OTHERS.items()):
        file.write_bytes(changed)
        try:
            kg.load(file)
        except kg.FileError as error:
            says(error, str(file))
        else:
            pytest.fail(f"{what}: the file is loaded")


@pytest.mark.parametrize("suffix", ["csv", "npz"])
def test_files_that_kanegen_wrote_in_other_formats_are_named(suffix: str, tmp_path: Path) -> None:
    """The message said that kanegen had not written them."""
    stateful().save(tmp_path / f"motion.{suffix}")
    with raises(kg.FileError, f"motion.{suffix}", "not a netCDF file", "solution.save", ".nc") as caught:
        kg.load(tmp_path / f"motion.{suffix}")
    assert "no solution" not in str(caught.value)


def test_a_file_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "FORMAT", 7)
    stateful().save(tmp_path / "motion.nc")
    monkeypatch.undo()
    with raises(kg.FileError, "motion.nc", "format 7", "format 2", kg.__version__):
        kg.load(tmp_path / "motion.nc")


@pytest.mark.parametrize("name", ["motion", "motion.h5", "motion.zarr", "motion.nc4", "motion.mat", ".nc"])
def test_suffixes_of_other_formats_are_refused(name: str, tmp_path: Path) -> None:
    """They were written as netCDF under that name."""
    with raises(kg.FileError, name, ".nc", ".csv", ".npz", ".parquet"):
        stateful().save(tmp_path / name)
    assert not [*tmp_path.iterdir()]


def test_the_suffix_decides_on_the_format(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    solution = servo()
    assert solution.control is not None
    for name in ("motion.csv", "motion.NPZ", "motion.parquet", "motion.NC"):
        solution.save(tmp_path / name)
    names = [*solution.run.coordinates, *solution.run.speeds, *solution.control.names]
    assert [*pandas.read_csv(tmp_path / "motion.csv").columns] == ["t", *names]
    table = np.loadtxt(tmp_path / "motion.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(table[:, 1], solution.q[:, 0])
    with np.load(tmp_path / "motion.NPZ") as stored:
        assert stored["names"].tolist() == names
        np.testing.assert_array_equal(stored["controls"], solution.control.values)
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "motion.parquet"), solution.to_dataframe())
    np.testing.assert_array_equal(kg.load(tmp_path / "motion.NC").q, solution.q)


@pytest.mark.parametrize("use", [lambda: kg.load(3), lambda: stateful().save(3), lambda: kg.emit(rough_block(), 3)])
def test_what_is_no_path_is_refused(use: Any) -> None:
    with raises(kg.SolveError, "3", "path"):
        use()


def test_a_time_that_is_no_number_is_refused() -> None:
    with raises(kg.SolveError, "'soon'"):
        stateful()("soon")


def test_a_data_frame_has_a_column_for_each_scalar() -> None:
    pytest.importorskip("pandas")
    solution = sliding()
    frame = solution.to_dataframe(["momentum"])
    assert frame.index.name == "t"
    columns = ["phase", "x", "z", "multiplier of floor", "multiplier of floor slip"]
    assert set(columns) <= set(frame.columns)
    np.testing.assert_array_equal(frame["x"], solution["x"])
    np.testing.assert_array_equal(frame["momentum[1]"], solution.momentum[:, 1])
    np.testing.assert_array_equal(frame["multiplier of floor"], solution.contacts.forces[:, 0])


def test_a_data_set_has_the_shapes_of_the_quantities() -> None:
    pytest.importorskip("xarray")
    start = initial("slider_crank")
    solution = solver_for("slider_crank").integrate((0.0, 0.2), start["q"], start["u"])
    data = solution.to_xarray(["Q", "energy", "reactions", "rhs"])
    assert data["Q"].shape == (solution.t.size, 3, 3)
    np.testing.assert_array_equal(data["theta"], solution["theta"])
    np.testing.assert_array_equal(data["rhs 1"], solution.rhs[1])
    assert json.loads(data.attrs["parameters"]) == dict(solution.run.parameters)
    assert set(solution.outputs) <= set(data.data_vars)


def test_times_at_jumps_are_told_apart() -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("xarray")
    solution = bouncing()
    frame, data = solution.to_dataframe(), solution.to_xarray()
    assert not frame.index.is_unique
    assert frame.set_index("phase", append=True).index.is_unique
    np.testing.assert_array_equal(data["phase"], solution.phase)
    assert data["phase"].dims == ("t",)


def test_xarray_reads_the_file_with_names(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    solution = sliding()
    solution.save(tmp_path / "motion.nc")
    with xarray.open_dataset(tmp_path / "motion.nc", engine="scipy") as data:
        np.testing.assert_array_equal(data["q"].sel(coordinate="x"), solution["x"])
        np.testing.assert_array_equal(data["contact_forces"].sel(contact_row="floor"), solution.contacts.forces[:, 0])
        assert data.attrs["model"] == solution.run.model


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    solution = stateful()
    monkeypatch.setattr(importlib, "import_module", missing)
    with raises(kg.SolveError, "pandas", "kanegen[data]"):
        solution.to_dataframe()
    with raises(kg.SolveError, "xarray", "kanegen[data]"):
        solution.to_xarray()


def test_what_is_no_quantity_is_no_column() -> None:
    pytest.importorskip("pandas")
    with raises(kg.SolveError, "status"):
        stateful().to_dataframe(["status"])
    with raises(kg.SolveError, "enrgy"):
        stateful().to_dataframe("enrgy")
