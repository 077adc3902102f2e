"""Sweeps in memory: results, failures, what is sent to workers, and executors that break."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises, says
from sweep_models import pendulum
from sweep_tasks import Pickling, acceleration, fails_at_three, twice
from tolerances import FINE_INTEGRATION, SOLVE

import kanegen as kg
from kanegen.backends.cython.cache import Cache
from kanegen.sweeps import job, sweep

G = {"g": np.linspace(9.0, 10.0, 7)}


@cache
def particle_with_inputs() -> kg.Solver:
    """A particle in a plane with the inputs F and G along x and y."""
    x, y, u, v, F, G = me.dynamicsymbols("x y u v F G")
    N, O, m = me.ReferenceFrame("N"), me.Point("O"), sm.Symbol("m")
    P = O.locatenew("P", x * N.x + y * N.y)
    O.set_vel(N, 0)
    P.set_vel(N, u * N.x + v * N.y)
    t = me.dynamicsymbols._t
    model = kg.Model(
        name="swept_particle",
        frame=N,
        coordinates=(x, y),
        speeds=(u, v),
        kinematics=(x.diff(t) - u, y.diff(t) - v),
        bodies=(me.Particle("body", P, m),),
        loads=((P, F * N.x + G * N.y),),
        inputs=(F, G),
    )
    return kg.build(model)


# -- results --------------------------------------------------------------------------------------------------------


def test_each_member_has_its_own_values() -> None:
    result = kg.sweep(pendulum(), G, twice)
    np.testing.assert_array_equal(result["two"], 2.0 * G["g"])
    np.testing.assert_array_equal(result["pair"], np.stack([G["g"], 1j * G["g"]], axis=1))
    assert result.success.all()
    assert result.failures == ()
    assert list(result) == ["two", "pair"]


@pytest.mark.parametrize("executor", [None, ThreadPoolExecutor(3), Pickling()], ids=["here", "threads", "pickles"])
def test_parameters_and_starts_are_those_of_the_member(executor: Any) -> None:
    """Against right-hand sides of solvers that are made one by one."""
    solver = pendulum()
    design = kg.grid(g=[1.0, 9.81], theta_1=[0.1, 0.2, 0.4], u_1=[0.0, -1.0])
    result = kg.sweep(solver, design, acceleration, executor=executor, chunk_size=5)
    q = np.array([solver.initial[name] for name in solver.description.coordinates])
    u = np.array([solver.initial[name] for name in solver.description.speeds])
    k, m = solver.description.coordinates.index("theta_1"), solver.description.speeds.index("u_1")
    for i in range(design.members):
        q[k], u[m] = design["theta_1"][i], design["u_1"][i]
        expected = solver.with_parameters(g=design["g"][i]).rhs(0.0, q, u)[1]
        np.testing.assert_array_equal(result["udot"][i], expected)
    assert result.on_grid("udot").shape == (2, 3, 2, 4)
    np.testing.assert_array_equal(result.on_grid("udot")[1, 2, 0], result["udot"][10])
    np.testing.assert_array_equal(result.on_grid("theta_1")[0, :, 0], design.axes["theta_1"])


def test_failed_members_are_recorded_and_the_others_computed() -> None:
    result = kg.sweep(pendulum(), G, fails_at_three, chunk_size=2)
    expected = 2.0 * G["g"]
    expected[3] = np.nan
    np.testing.assert_array_equal(result["two"], expected)
    (failure,) = result.failures
    assert (failure.index, failure.values) == (3, {"g": 9.5})
    says(failure.reason, "ZeroDivisionError", "no value at three")
    says(repr(result), 6, 7, "1 failed")


def test_a_value_that_is_not_finite_fails_alone() -> None:
    design = {"g": [9.0, np.nan, 9.5]}
    result = kg.sweep(pendulum(), design, twice)
    np.testing.assert_array_equal(result.success, [True, False, True])
    says(result.failures[0].reason, "g", "nan")


def test_results_that_differ_from_the_first_ones_are_failures() -> None:
    def irregular(solver: kg.Solver, member: Mapping[str, float]) -> Any:
        choices = [{"x": [1.0, 2.0]}, {"x": [1.0]}, {"y": 1.0}, {"x": [1j, 1.0]}, 5.0, {"x": "text"}, {"x": (True, 2)}]
        return choices[round((member["g"] - 9.0) * 6.0)]

    result = kg.sweep(pendulum(), G, irregular, chunk_size=1)
    np.testing.assert_array_equal(result["x"][result.success], [[1.0, 2.0], [1.0, 2.0]])
    reasons = {failure.index: failure.reason for failure in result.failures}
    assert list(reasons) == [1, 2, 3, 4, 5]
    says(reasons[1], "x", "(1,)", "(2,)")
    says(reasons[2], "x", "no")
    says(reasons[3], "x", "complex")
    says(reasons[4], "5.0", "mapping")
    says(reasons[5], "x", "text")
    together = kg.sweep(pendulum(), G, irregular, chunk_size=7)
    np.testing.assert_array_equal(together["x"], result["x"])
    assert {failure.index: failure.reason for failure in together.failures} == reasons


def test_values_that_only_the_task_reads_are_named() -> None:
    def task(solver: kg.Solver, member: Mapping[str, float]) -> Mapping[str, float]:
        return {"sum": member["load"] + solver.parameters["g"]}

    design = {"g": [1.0, 2.0], "load": [10.0, 20.0]}
    np.testing.assert_array_equal(kg.sweep(pendulum(), design, task, extra="load")["sum"], [11.0, 22.0])
    with raises(kg.SolveError, "load", "extra="):
        kg.sweep(pendulum(), design, task)
    with raises(kg.SolveError, "extra", 3):
        kg.sweep(pendulum(), design, task, extra=3)
    with raises(kg.SolveError, "mass", "extra="):
        kg.sweep(pendulum(), design, task, extra=("load", "mass"))


# -- motions --------------------------------------------------------------------------------------------------------


def test_motions_are_those_of_integrate() -> None:
    solver, times = pendulum(), np.linspace(0.0, 1.0, 5)
    design = kg.sample(g=(9.0, 10.0), theta_2=(-0.5, 0.5), n=6)
    result = kg.sweep(solver, design, t_span=(0.0, 1.0), t_eval=times, rtol=1e-9, atol=1e-11, chunk_size=4)
    assert result["q"].shape == (6, 5, 4)
    for i in range(6):
        own = solver.with_parameters(g=design["g"][i])
        x = own.integrate((0.0, 1.0), {"theta_2": design["theta_2"][i]}, rtol=1e-9, atol=1e-11, t_eval=times)
        np.testing.assert_allclose(result["q"][i], x.q, rtol=FINE_INTEGRATION, atol=FINE_INTEGRATION)
        np.testing.assert_allclose(result["u"][i], x.u, rtol=FINE_INTEGRATION, atol=FINE_INTEGRATION)
    np.testing.assert_array_equal(result["t_end"], 1.0)
    assert (result["n_steps"] > 5).all()


@pytest.mark.parametrize("size", [2, 7])
def test_reductions_are_those_of_integrate_many(size: int) -> None:
    """The same bits in any chunk."""
    solver = pendulum()
    result = kg.sweep(solver, G, t_span=(0.0, 0.5), reduce="max_energy_drift", chunk_size=size, threads=2)
    many = solver.integrate_many((0.0, 0.5), parameters=G, reduce="max_energy_drift")
    np.testing.assert_array_equal(result["value"], many.values)
    np.testing.assert_array_equal(result["n_steps"], many.n_steps)
    assert set(result) == {"value", "outcome", "t_end", "n_steps", "n_evaluations"}


def test_a_motion_that_fails_keeps_what_it_reached() -> None:
    design = {"g": [np.nan, 50.0, 40.0]}
    result = kg.sweep(pendulum(), design, t_span=(0, 1), t_eval=[0, 1e-6, 1], max_steps=3, q0={"x": 2}, rtol=1e-6)
    np.testing.assert_array_equal(result.success, [False, False, False])
    np.testing.assert_array_equal(result["q"][:, 0, 0], [np.nan, 2.0, 2.0])
    assert np.isfinite(result["q"][1:, 1]).all()
    assert np.isnan(result["q"][:, 2]).all()
    assert (result["t_end"][1:] < 1.0).all()
    reasons = [failure.reason for failure in result.failures]
    says(reasons[0], "g", "nan")
    says(reasons[1], "max_steps")
    assert result["outcome"][1] == kg.Outcome.TOO_MANY_STEPS.code


def test_inputs_of_the_design_join_those_of_the_sweep() -> None:
    """A particle with two forces: x = F t^2 / (2 m)."""
    solver = particle_with_inputs()
    for r in ({"G": 3.0}, [7.0, 3.0]):
        result = kg.sweep(solver, {"F": [1.0, 2.0], "m": [1.0, 4.0]}, t_span=(0.0, 2.0), r=r, q0=[0, 0], u0=[0, 0])
        np.testing.assert_allclose(result["q"][:, -1], [[2.0, 6.0], [1.0, 1.5]], rtol=SOLVE)
    holes = {"F": [0.0, 2.0], "m": [np.nan, 4.0]}  # m has no value in the model
    one_by_one = kg.sweep(solver, holes, t_span=(0.0, 2.0), r={"G": 3.0}, q0=[0, 0], u0=[0, 0], chunk_size=1)
    np.testing.assert_allclose(one_by_one["q"][:, -1], [[np.nan, np.nan], [1.0, 1.5]], rtol=SOLVE)
    given = kg.sweep(solver, {"m": [1.0]}, t_span=(0.0, 2.0), r=lambda t: (1.0, t), q0=[0, 0], u0=[0, 0])
    np.testing.assert_allclose(given["q"][0, -1], [2.0, 8.0 / 6.0], rtol=SOLVE)
    with raises(kg.SolveError, "r", "mapping"):
        kg.sweep(solver, {"F": [1.0]}, t_span=(0.0, 2.0), r=lambda t: (1.0, t), q0=[0, 0], u0=[0, 0])


def test_arguments_that_are_wrong_for_all_motions_are_refused() -> None:
    for options, names in (
        ({"method": "magic"}, ("method", "magic", "dopri5")),
        ({"t_eval": [2.0]}, ("t_eval", "2.0")),
        ({"rtoll": 1e-3}, ("rtoll", "'rtol'")),
        ({"q0": np.zeros((7, 4))}, ("q0", "(7, 4)", "(4,)")),
        ({"parameters": {"m_1": 1.0}}, ("parameters=", "solver.with_parameters")),
        ({"reduce": "height"}, ("height",)),
        ({"extra": "h"}, ("h", "extra=")),
    ):
        with raises(kg.SolveError, *names) as caught:
            kg.sweep(pendulum(), G, **{"t_span": (0.0, 1.0), **options})
        assert not isinstance(caught.value, kg.SweepError)


# -- what is sent ---------------------------------------------------------------------------------------------------


def test_a_task_contains_no_sources() -> None:
    solver, executor = pendulum(), Pickling()
    kg.sweep(solver, G, acceleration, executor=executor, chunk_size=2)
    assert len(executor.sent) == 4
    assert sum(map(len, solver.sources.files.values())) > 300_000
    assert max(map(len, executor.sent)) < 20_000


def test_sources_follow_where_they_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job.ReceivedJob, "_opened", {})
    monkeypatch.setattr(Cache, "load_sources", lambda self, digest: None)
    stored = []
    monkeypatch.setattr(Cache, "store_sources", lambda self, sources: stored.append(sources))
    solver, executor = pendulum(), Pickling()
    result = kg.sweep(solver, G, twice, executor=executor, chunk_size=2)
    np.testing.assert_array_equal(result["two"], 2.0 * G["g"])
    assert stored == [solver.sources]
    assert len(executor.sent) == 4 + len([sent for sent in executor.sent if len(sent) > 50_000])


def test_other_sources_of_the_same_model_digest_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handmade change of a kernel has the digest of its model; the worker compares the texts, too."""
    sources = pendulum().sources
    changed = replace(sources, files={**sources.files, sources.kernel: sources.text(sources.kernel) + "/* mine */\n"})
    monkeypatch.setattr(Cache, "load_sources", lambda self, digest: sources)
    reader = job._Unpickler(BytesIO(), {})
    assert reader.persistent_load(job.SourcesKey.of(sources)) == sources
    with pytest.raises(job.SourcesMissingError):
        reader.persistent_load(job.SourcesKey.of(changed))


def test_a_function_of_a_script_is_refused_without_cloudpickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cloudpickle", None)
    lock = threading.Lock()
    with raises(kg.SolveError, "task", "cloudpickle", "kanegen[sweep]"):
        kg.sweep(pendulum(), G, lambda solver, member: {"x": lock.locked()}, executor=Pickling())


# -- what goes wrong ------------------------------------------------------------------------------------------------


def test_a_broken_executor_leaves_what_was_finished() -> None:
    with raises(kg.SweepError, "BrokenExecutor", "a worker died", 4, 7, "store=") as caught:
        kg.sweep(pendulum(), G, twice, executor=Pickling(breaks_at=2), chunk_size=2)
    partial = caught.value.sweep
    np.testing.assert_array_equal(partial["two"], [*(2.0 * G["g"][:4]), np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(partial.status, [1, 1, 1, 1, -1, -1, -1])
    says(repr(partial), "3 not run")
    assert isinstance(caught.value, kg.SolveError)


def test_a_broken_executor_gets_no_more_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two chunks at a time: the first two are computed, the next two are lost, three are not submitted."""
    monkeypatch.setattr("kanegen.sweeps.sweep._IN_FLIGHT", 2)
    executor = Pickling(breaks_at=2)
    with raises(kg.SweepError, "2 chunks", 2, 7):
        kg.sweep(pendulum(), G, twice, executor=executor, chunk_size=1)
    assert len(executor.sent) == 4


def test_an_executor_that_was_shut_down() -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with raises(kg.SweepError, "executor", "shutdown"):
        kg.sweep(pendulum(), G, twice, executor=executor)


def test_an_executor_that_is_shut_down_on_the_way() -> None:
    """It cancels what has not begun, without waking those who wait for it."""
    executor = ThreadPoolExecutor(1)

    def shut_down(done: int, count: int) -> None:
        executor.shutdown(wait=False, cancel_futures=True)

    started = threading.Event()

    def task(solver: kg.Solver, member: Mapping[str, float]) -> Mapping[str, float]:
        if member.index > 1:
            started.wait(0.2)
        return {"two": 2.0 * member["g"]}

    with raises(kg.SweepError, "CancelledError", 7) as caught:
        kg.sweep(pendulum(), G, task, executor=executor, chunk_size=1, progress=shut_down)
    assert 0 < np.count_nonzero(caught.value.sweep.success) < 7


def test_results_can_be_pickled() -> None:
    result = kg.sweep(pendulum(), kg.grid(g=[9.0, 10.0]), lambda solver, member: {"x": member["g"]})
    restored = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(restored.on_grid("x"), result["x"])
    assert restored.success.all()


def test_a_worker_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any, sources: Any = None) -> Any:
        raise kg.BuildError("no C compiler was found")

    monkeypatch.setattr(job.ReceivedJob, "open", refuse)
    with raises(kg.SweepError, "host", "no C compiler was found", 0, 7):
        kg.sweep(pendulum(), G, twice, executor=Pickling(), chunk_size=2)


def test_a_worker_with_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = Pickling()
    kg.sweep(pendulum(), G, twice, executor=executor)
    monkeypatch.setattr(job, "__version__", "0.0.1")
    with raises(kg.BuildError, "0.0.1", kg.__version__):
        job.ReceivedJob("other digest", b"", kg.__version__).open()


def test_interrupts_keep_what_was_finished() -> None:
    def interrupted(solver: kg.Solver, member: Any) -> Mapping[str, float]:
        if member.index == 5:
            raise KeyboardInterrupt
        return {"two": 2.0 * member["g"]}

    with pytest.raises(kg.SweepInterrupted) as caught:
        kg.sweep(pendulum(), G, interrupted, chunk_size=2)
    np.testing.assert_array_equal(caught.value.sweep.status, [1, 1, 1, 1, -1, -1, -1])
    assert isinstance(caught.value, KeyboardInterrupt)


def test_progress_counts_members() -> None:
    seen: list[tuple[int, int]] = []
    kg.sweep(pendulum(), G, twice, chunk_size=3, progress=lambda done, count: seen.append((done, count)))
    assert seen == [(3, 7), (6, 7), (7, 7)]


def test_chunks_of_a_large_design() -> None:
    assert [sweep._chunk_size(None, None, n) for n in (1, 100, 801, 10_000, 10**7)] == [1, 1, 16, 104, 8192]
    assert sweep._chunk_size(50, None, 7) == 7


def test_wrong_arguments_are_refused() -> None:
    solver = pendulum()
    for arguments, names in (
        (({"g": [1.0], "m_1": [1.0, 2.0]}, twice), ("g has 1", "m_1 has 2")),
        (({"G": [1.0]}, twice), ("'G'", "theta_1")),
        (({"g": 1.0}, twice), ("g", "()")),
        ((G,), ("t_span", "task=")),
        ((G, 5), ("task", "5")),
    ):
        with raises(kg.SolveError, *names):
            kg.sweep(solver, *arguments)
    for options, names in (
        ({"t_span": (0.0, 1.0)}, ("t_span", "task=")),
        ({"rtol": 1e-3}, ("rtol", "task=")),
        ({"chunk_size": 0}, ("chunk_size", "0")),
        ({"retry_failed": True}, ("retry_failed", "store=")),
        ({"progress": 3}, ("progress", "3")),
        ({"executor": map}, ("executor", "concurrent.futures.Executor")),
    ):
        with raises(kg.SolveError, *names):
            kg.sweep(solver, G, twice, **options)
    with raises(kg.SolveError, "kanegen.Solver", "pendulum"):
        kg.sweep("pendulum", G, twice)
    with raises(kg.SolveError, "grid"):
        kg.sweep(solver, G, twice).on_grid("two")
    with raises(KeyError, "three", "two"):
        kg.sweep(solver, G, twice)["three"]
    with raises(kg.SweepError, "g", "name"):
        kg.sweep(solver, G, lambda solver, member: {"g": 1.0})


def test_a_dask_client_is_no_executor() -> None:
    class Client:
        def get_executor(self) -> None: ...

    with raises(kg.SolveError, "client.get_executor()"):
        kg.sweep(pendulum(), G, twice, executor=Client())
