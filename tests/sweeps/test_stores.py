"""Sweeps with a Zarr store: what xarray reads, what is resumed, what is refused."""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
import xarray
import zarr
from messages import raises, says
from sweep_models import pendulum
from sweep_tasks import Pickling, acceleration, fails_at_three, twice
from systems import initial, solver_for

import kanegen as kg

G = {"g": np.linspace(9.0, 10.0, 7)}


class Counting:
    """A task that counts its calls in this process."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, solver: kg.Solver, member: kg.results.Member) -> Any:
        self.calls += 1
        return twice(solver, member)

    def __getstate__(self) -> dict[str, Any]:
        return {}


def chunks_of(store: Path, name: str) -> list[str]:
    """The chunks of an array in a store of format 3, in order."""
    return sorted(path.name for path in (store / name / "c").iterdir())


def test_xarray_reads_the_results_without_warnings(tmp_path: Path) -> None:
    store = tmp_path / "results.zarr"
    design = kg.grid(g=[9.0, 9.5, 10.0], theta_1=[0.1, 0.2])
    result = kg.sweep(pendulum(), design, twice, store=store, chunk_size=2)
    data = xarray.open_zarr(store)
    assert data["pair"].dims == ("member", "pair_0")
    np.testing.assert_array_equal(data["two"], 2.0 * design["g"])
    np.testing.assert_array_equal(data["pair"], result["pair"])
    np.testing.assert_array_equal(data["g"], design["g"])
    np.testing.assert_array_equal(data["status"], np.ones(6))
    assert data.attrs["model"] == "n_link_pendulum_3"
    assert data.attrs["axes"] == {"g": [9.0, 9.5, 10.0], "theta_1": [0.1, 0.2]}
    assert chunks_of(store, "two") == chunks_of(store, "status") == ["0", "1", "2"]
    table = result.to_xarray()
    assert dict(table.sizes) == {"g": 3, "theta_1": 2, "pair_0": 2}
    assert float(table["two"].sel(g=9.5, theta_1=0.2)) == 19.0


def test_names_that_zarr_refuses_are_read_too(tmp_path: Path) -> None:
    """Names with slashes were in folders of their own, others were "damaged stores"."""
    names = ["a/b", "a_b", "\\theta", ".", "..", "zarr.json", "a_b_design", "mé θ"]
    design = {name: [float(k), k + 0.5] for k, name in enumerate(names)}
    store = tmp_path / "names.zarr"
    for _ in range(2):  # the second call reads the store
        result = kg.sweep(pendulum(), design, lambda *_: {"one": 1.0}, extra=names, store=store)
    data, table = xarray.open_zarr(store), result.to_xarray()
    assert set(data) == {*result.names.values(), "one", "status", "error"}
    for name, values in design.items():
        np.testing.assert_array_equal(data[result.names[name]], values)
        np.testing.assert_array_equal(table[result.names[name]], values)
    assert {result.names[name] for name in ("a_b", "a_b_design", "mé θ")} == {"a_b", "a_b_design", "mé θ"}
    clash = kg.sweep(pendulum(), {"a/b": [1.0]}, lambda *_: {"..": 1.0}, extra=["a/b"])
    says(clash.failures[0].reason, "called '..'", "expected a name")
    with raises(kg.SolveError, "a_b_design", "another name"):
        kg.sweep(pendulum(), {"a/b": [1.0]}, lambda *_: {"a_b_design": 1.0}, extra=["a/b"])


def test_motions_have_names_and_times(tmp_path: Path) -> None:
    """A coordinate's start and its motion are told apart; times and names label the axes."""
    store, times = tmp_path / "results.zarr", [0.0, 0.25, 0.5]
    solver = pendulum()
    kg.sweep(solver, {"theta_1": [0.1, 0.2]}, t_span=(0.0, 0.5), t_eval=times, store=store)
    data = xarray.open_zarr(store)
    motion = data["q"].sel(coordinate="theta_1")
    assert motion.dims == ("member", "t")
    np.testing.assert_array_equal(motion.sel(t=0.0), data["theta_1"])
    np.testing.assert_array_equal(data["t"], times)
    assert list(data["speed"].values) == list(solver.description.speeds)
    free = kg.sweep(solver, {"theta_1": [0.1, 0.2]}, t_span=(0.0, 0.5), t_eval=times).to_xarray()
    np.testing.assert_array_equal(free["q"], data["q"])


def test_motions_have_their_derivatives(tmp_path: Path) -> None:
    """Those of `integrate_many`; the same sweep in other words continues with the store."""
    start, solver = initial("n_link_pendulum", n=2), solver_for("n_link_pendulum", n=2)
    names = (*solver.description.coordinates, *solver.description.speeds)
    solver = solver.with_initial(dict(zip(names, (*start["q"], *start["u"]), strict=True)))
    times, store = [0.25, 0.5], tmp_path / "results.zarr"
    design, g = {"theta_1": [0.1, 0.2, 0.3]}, sympy.Symbol("g")
    run = {"t_span": (0.0, 0.5), "t_eval": times}
    free = kg.sweep(solver, design, sensitivities=("g", "theta_2"), **run)
    many = solver.integrate_many(
        (0.0, 0.5), {"theta_1": design["theta_1"]}, t_eval=times, sensitivities=("g", "theta_2")
    )
    assert many.sensitivities is not None
    np.testing.assert_array_equal(free["sensitivities"], many.sensitivities.matrix)
    kg.sweep(solver, design, sensitivities=[g, "theta_2"], store=store, chunk_size=2, **run)
    data = xarray.open_zarr(store)["sensitivities"]
    assert data.dims == ("member", "t", "variable", "with_respect_to")
    own = data.sel(variable="theta_1", with_respect_to="g")
    np.testing.assert_array_equal(own, many.sensitivities["theta_1", "g"])
    again = kg.sweep(solver, design, sensitivities=("g", "theta_2"), store=store, chunk_size=2, **run)
    np.testing.assert_array_equal(again["sensitivities"], data)
    with raises(kg.SolveError, "belongs to another sweep"):
        kg.sweep(solver, design, sensitivities="g", store=store, chunk_size=2, **run)
    with raises(kg.SolveError, "sensitivities:", "'gg'"):
        kg.sweep(solver, design, sensitivities="gg", **run)


def test_an_interrupted_sweep_continues_where_it_was(tmp_path: Path) -> None:
    store, solver = tmp_path / "results.zarr", pendulum()
    with raises(kg.SweepError, "store", 4, 7) as caught:
        kg.sweep(solver, G, acceleration, executor=Pickling(breaks_at=2), chunk_size=2, store=store)
    np.testing.assert_array_equal(caught.value.sweep.status, [1, 1, 1, 1, -1, -1, -1])
    second = Pickling()
    result = kg.sweep(solver, G, acceleration, executor=second, store=store)
    assert len(second.sent) == 2
    np.testing.assert_array_equal(result["udot"], kg.sweep(solver, G, acceleration)["udot"])
    assert result.success.all()
    third = Pickling()
    np.testing.assert_array_equal(
        kg.sweep(solver, G, acceleration, executor=third, store=store)["udot"], result["udot"]
    )
    assert third.sent == []


def test_a_chunk_whose_write_was_interrupted_is_computed_again(tmp_path: Path) -> None:
    """The status is the last array of a chunk that is written."""
    store, task = tmp_path / "results.zarr", Counting()
    kg.sweep(pendulum(), G, task, chunk_size=2, store=store)
    assert task.calls == 7
    (store / "status" / "c" / "1").unlink()
    (store / "two" / "c" / "1").write_bytes(b"half of a chu")
    result = kg.sweep(pendulum(), G, task, store=store)
    assert task.calls == 9
    np.testing.assert_array_equal(result["two"], 2.0 * G["g"])


@pytest.mark.parametrize("lost", ["status", "error", "two"])
def test_an_interrupted_creation_is_completed(tmp_path: Path, lost: str) -> None:
    store = tmp_path / "results.zarr"
    kg.sweep(pendulum(), G, twice, chunk_size=2, store=store)
    root = json.loads((store / "zarr.json").read_text())
    del root["attributes"]["results"]  # the arrays of the results were not complete
    (store / "zarr.json").write_text(json.dumps(root))
    shutil.rmtree(store / "status")
    if lost != "status":
        shutil.rmtree(store / lost)
    np.testing.assert_array_equal(kg.sweep(pendulum(), G, twice, store=store)["two"], 2.0 * G["g"])


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308])
@pytest.mark.parametrize("chunk_size", [1, 4])
def test_a_member_of_a_constrained_model_with_a_bad_parameter_is_recorded(
    bad: float, chunk_size: int, tmp_path: Path
) -> None:
    """Such a member stopped the sweep, and its store could not be completed."""
    solver, start = solver_for("rolling_disk"), initial("rolling_disk")
    names = (*solver.description.coordinates, *solver.description.speeds)
    solver = solver.with_initial(dict(zip(names, (*start["q"], *start["u"]), strict=True)))
    good = solver.parameters["R"]
    options: dict[str, Any] = {"t_span": (0.0, 0.1), "chunk_size": chunk_size, "store": tmp_path / "results.zarr"}
    for _ in range(2):
        result = kg.sweep(solver, {"R": [good, bad, good, bad]}, **options)
        assert result.success.tolist() == [True, False, True, False]
        assert [failure.index for failure in result.failures] == [1, 3]
    many = solver.integrate_many((0.0, 0.1), parameters={"R": [good, bad]})
    assert many.success.tolist() == [True, False]


def test_failures_are_kept_and_can_be_repeated(tmp_path: Path) -> None:
    store, allowed = tmp_path / "results.zarr", tmp_path / "allowed"
    task = partial(_fails_until, str(allowed))
    first = kg.sweep(pendulum(), G, task, chunk_size=2, store=store)
    assert [failure.index for failure in first.failures] == [3]
    allowed.touch()
    again = kg.sweep(pendulum(), G, task, store=store)
    says(again.failures[0].reason, "no value at three")
    assert "no value at three" in str(xarray.open_zarr(store)["error"].values[3])
    repeated = kg.sweep(pendulum(), G, task, store=store, retry_failed=True)
    assert repeated.failures == ()
    np.testing.assert_array_equal(repeated["two"], 2.0 * G["g"])
    assert set(xarray.open_zarr(store)["error"].values.tolist()) == {""}


def _fails_until(file: str, solver: kg.Solver, member: kg.results.Member) -> Any:
    return {"two": 2.0 * member["g"]} if Path(file).exists() else fails_at_three(solver, member)


def test_a_store_of_another_sweep_is_refused(tmp_path: Path) -> None:
    store, solver = tmp_path / "results.zarr", pendulum()
    kg.sweep(solver, G, twice, chunk_size=2, store=store)
    others: tuple[tuple[str, Any, Any, Any], ...] = (
        ("design", solver, {"g": G["g"] + 1e-15}, twice),
        ("design", solver, {"m_1": G["g"]}, twice),
        ("task", solver, G, fails_at_three),
        ("parameters", solver.with_parameters(m_1=2.0), G, twice),
        ("start", solver.with_initial({"x": 1.0}), G, twice),
        ("model", solver_for("n_link_pendulum", n=3, form="reduced"), G, twice),
    )
    for what, other, design, task in others:
        with raises(kg.SolveError, "another sweep", what, "results.zarr"):
            kg.sweep(other, design, task, store=store)
    with raises(kg.SolveError, "another sweep", "chunk_size=", "2 in the store, 3 given"):
        kg.sweep(solver, G, twice, store=store, chunk_size=3)
    with raises(kg.SolveError, "another sweep", "t_span=", "task="):
        kg.sweep(solver, G, t_span=(0.0, 1.0), store=store)
    np.testing.assert_array_equal(kg.sweep(solver, G, twice, store=store)["two"], 2.0 * G["g"])


def test_settings_and_values_of_closures_belong_to_a_sweep(tmp_path: Path) -> None:
    def scaled(factor: float) -> Any:
        return lambda solver, member: {"x": factor * member["g"]}

    solver = pendulum()
    kg.sweep(solver, G, scaled(2.0), store=tmp_path / "a.zarr")
    kg.sweep(solver, G, scaled(2.0), store=tmp_path / "a.zarr")
    with raises(kg.SolveError, "task"):
        kg.sweep(solver, G, scaled(3.0), store=tmp_path / "a.zarr")
    kg.sweep(solver, G, t_span=(0.0, 0.1), store=tmp_path / "b.zarr")
    with raises(kg.SolveError, "rtol="):
        kg.sweep(solver, G, t_span=(0.0, 0.1), rtol=1e-6, store=tmp_path / "b.zarr")


def test_the_same_motions_may_be_asked_for_in_other_words(tmp_path: Path) -> None:
    store, solver = tmp_path / "results.zarr", pendulum()
    first = kg.sweep(solver, G, t_span=(0, 1), t_eval=[0, 1], store=store)
    again = kg.sweep(solver, G, t_span=[0.0, 1.0], t_eval=np.array([0.0, 1.0]), rtol=1e-8, threads=2, store=store)
    np.testing.assert_array_equal(first["q"], again["q"])
    with raises(kg.SolveError, "t_eval="):
        kg.sweep(solver, G, t_span=(0, 1), t_eval=[0.0, 0.5], store=store)


def test_damaged_stores_are_named(tmp_path: Path) -> None:
    def sweep(name: str) -> Any:
        return kg.sweep(pendulum(), G, twice, store=tmp_path / name, chunk_size=2)

    for name in ("lost.zarr", "cut.zarr", "junk.zarr"):
        sweep(name)
    shutil.rmtree(tmp_path / "lost.zarr" / "two")
    with raises(kg.SolveError, "lost.zarr", "damaged", "two"):
        sweep("lost.zarr")
    metadata = tmp_path / "cut.zarr" / "zarr.json"
    metadata.write_text(metadata.read_text(encoding="utf-8")[:40], encoding="utf-8")
    with raises(kg.SolveError, "cut.zarr", "damaged"):
        sweep("cut.zarr")
    (tmp_path / "junk.zarr" / "two" / "c" / "0").write_bytes(b"junk")
    with raises(kg.SolveError, "junk.zarr", "two", "cannot be read"):
        _ = sweep("junk.zarr")["two"]


def test_no_flipped_bit_in_a_chunk_changes_a_number(tmp_path: Path) -> None:
    """Numbers that cannot be compressed lie in a chunk as they are; a checksum tells that they were changed."""
    store, rng = tmp_path / "results.zarr", np.random.default_rng(1)

    def values() -> dict[str, np.ndarray]:
        result = kg.sweep(pendulum(), {"g": np.linspace(9.0, 10.0, 40)}, t_span=(0.0, 1.0), store=store)
        return {name: result[name] for name in ("q", "u", "t_end", "outcome")}

    known = values()
    chunks = [path for path in store.rglob("c/*") if path.is_file()]
    chunks += [path for path in store.rglob("c/*/*") if path.is_file()]
    for _ in range(12):
        path = chunks[rng.integers(len(chunks))]
        content = path.read_bytes()
        damaged = bytearray(content)
        damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            found = values()
        except kg.SolveError as error:
            says(error, "results.zarr")
        else:
            for name in known:
                np.testing.assert_array_equal(found[name], known[name])
        path.write_bytes(content)


def test_a_url_of_an_unknown_protocol_is_refused() -> None:
    pytest.importorskip("fsspec")
    with raises(kg.SolveError, "'foo://x'", "Protocol", "URL"):
        kg.sweep(pendulum(), G, twice, store="foo://x")


def test_without_fsspec_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "fsspec"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with raises(kg.SolveError, "'memory://x'", "URL", "pip install fsspec"):
        kg.sweep(pendulum(), G, twice, store="memory://x")


def test_stores_that_cannot_be_used(tmp_path: Path) -> None:
    def sweep(store: Any) -> None:
        kg.sweep(pendulum(), G, twice, store=store)

    read_only = zarr.storage.LocalStore(tmp_path / "read only", read_only=True)
    with raises(kg.SolveError, "store", "read-only", "written"):
        sweep(read_only)
    (tmp_path / "file").write_text("no folder")
    with raises(kg.SolveError, "file", "store"):
        sweep(tmp_path / "file")
    with raises(kg.SolveError, "store"):
        sweep(tmp_path / "file" / "inside")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with raises(kg.SolveError, "mine", "not empty"):
        sweep(tmp_path / "mine")
    zarr.create_group(tmp_path / "other.zarr", attributes={"of": "somebody else"})
    with raises(kg.SolveError, "other.zarr", "no store of a sweep"):
        sweep(tmp_path / "other.zarr")
    zarr.create_array(tmp_path / "array.zarr", shape=3, dtype="f8")
    with raises(kg.SolveError, "array.zarr"):
        sweep(tmp_path / "array.zarr")
    with raises(kg.SolveError, "store", 5):
        sweep(5)
    memory = zarr.storage.MemoryStore()
    sweep(memory)
    with raises(kg.SolveError, "store", "read-only"):
        sweep(memory.with_read_only(True))


def test_a_store_that_fails_on_the_way_keeps_the_finished_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, put = tmp_path / "results.zarr", zarr.storage.LocalStore.set

    async def full(self: Any, key: str, value: Any) -> None:
        if key.endswith("two/c/2"):
            raise OSError(28, "No space left on device")
        await put(self, key, value)

    monkeypatch.setattr(zarr.storage.LocalStore, "set", full)
    with raises(kg.SweepError, "No space left", 4, 7) as caught:
        kg.sweep(pendulum(), G, twice, chunk_size=2, store=store)
    np.testing.assert_array_equal(caught.value.sweep.status, [1, 1, 1, 1, -1, -1, -1])
    monkeypatch.undo()
    np.testing.assert_array_equal(kg.sweep(pendulum(), G, twice, store=store)["two"], 2.0 * G["g"])
