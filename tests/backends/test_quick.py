"""Kernels that compile in the shortest time: by tcc, and where it is missing without optimizations."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import require_agreement
from handmade import pendulum
from messages import raises
from systems import example_names, initial, model_of

import kanegen as kg
from kanegen.backends.cython import job, kernel, toolchain
from kanegen.backends.cython.cache import open_cache
from kanegen.backends.cython.extension import build
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.backends.cython.wrapper import wrapper_file
from kanegen.codegen.sources import runtime_headers
from kanegen.errors import BuildError

EXAMPLES = ("rolling_disk", "bouncing_ball", "muscle_arm", "n_link_pendulum")
"""Constraints with code for rare states, contacts, a spline, and a long right-hand side."""


def integrated(solver: kg.Solver, start: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    solution = solver.integrate((start["t"], start["t"] + 0.5), start["q"], start["u"], rtol=1e-10, atol=1e-10)
    return np.concatenate((solution.q[-1], solution.u[-1]))


@pytest.mark.parametrize("name", EXAMPLES)
def test_tcc_agrees_and_compiles_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("tcc") is None:
        pytest.skip("needs tcc: apt install tcc")
    usual = kg.build(model_of(name))
    monkeypatch.setattr(kernel, "compile_object", None)  # the other compiler is not called
    quick = kg.build(model_of(name), compiler=CompilerOptions(quick=True))
    require_agreement(name, usual, quick)
    runs = [integrated(solver, initial(name)) for solver in (quick, usual)]
    np.testing.assert_allclose(*runs, rtol=1e-7, atol=1e-7)
    assert [path.name for path in quick.extension.path.parent.glob("*.so")] == [
        path.name for path in usual.extension.path.parent.glob("*.so")
    ]


@pytest.mark.parametrize("name", [name for name in example_names() if name not in EXAMPLES])
def test_all_other_models_agree(name: str) -> None:
    if shutil.which("tcc") is None:
        pytest.skip("needs tcc: apt install tcc")
    require_agreement(name, kg.build(model_of(name)), kg.build(model_of(name), compiler=CompilerOptions(quick=True)))


def test_without_tcc_nothing_is_optimized_and_bits_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, commands = kg.build(model_of("rolling_disk")), list[tuple[str, ...]]()
    monkeypatch.setattr(job, "quick_toolchain", lambda: None)
    compile_object = toolchain.compile_object

    def recording(tools: toolchain.Toolchain, flags: tuple[str, ...], *arguments: Any) -> None:
        commands.append(flags)
        compile_object(tools, flags, *arguments)

    monkeypatch.setattr(kernel, "compile_object", recording)
    quick = kg.build(model_of("rolling_disk"), compiler=CompilerOptions(quick=True))
    assert [flag for flag in commands[0] if flag.startswith("-O")][-1] == "-O0"
    start = initial("rolling_disk")
    np.testing.assert_array_equal(*(integrated(solver, start) for solver in (quick, usual)))


def test_it_has_another_key_and_the_same_python_module() -> None:
    usual, quick = (job.job_for(CompilerOptions(quick=quick), open_cache()) for quick in (False, True))
    assert usual.key("model") != quick.key("model")
    assert wrapper_file(usual, runtime_headers()) == wrapper_file(quick, runtime_headers())


def test_an_update_of_tcc_compiles_again(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = set()
    for stamp in ("one", "two"):
        tools = toolchain.Toolchain(("tcc",), stamp)
        monkeypatch.setattr(job, "quick_toolchain", lambda tools=tools: tools)
        keys.add(job.job_for(CompilerOptions(quick=True), open_cache()).key("model"))
    assert len(keys) == 2


def test_a_tcc_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "tcc"
    broken.write_text("#!/bin/sh\necho no such processor >&2\nexit 3\n", encoding="utf-8")
    broken.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with raises(BuildError, "tcc", "quick=True", "no such processor"):
        build(pendulum(), CompilerOptions(quick=True))


def test_the_environment_chooses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, expected in {"1": True, "0": False, "": False}.items():
        monkeypatch.setenv("KANEGEN_QUICK", text)
        assert CompilerOptions().quick is expected
    monkeypatch.setenv("KANEGEN_QUICK", "yes")
    with raises(BuildError, "KANEGEN_QUICK", "'yes'"):
        CompilerOptions()
    with raises(BuildError, "quick='tcc'", "True or False"):
        CompilerOptions(quick="tcc")  # type: ignore[arg-type]
