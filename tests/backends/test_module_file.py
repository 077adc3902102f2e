"""The Python module that serves all models: that of the installation, or one that is compiled once on a machine."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from handmade import pendulum, pendulum_rhs
from messages import raises

from kanegen.backends.cython import wrapper
from kanegen.backends.cython.cache import open_cache
from kanegen.backends.cython.extension import build
from kanegen.backends.cython.job import job_for
from kanegen.backends.cython.toolchain import CompilerOptions
from kanegen.codegen.sources import runtime_headers
from kanegen.errors import BuildError

QUICK = CompilerOptions(kernel=("-O0",), steppers=("-O0",), runtime=("-O0",), wrapper=("-O0",))
"""Flags with which the installed module was not compiled."""


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder in place of that of the package, with the module of an installation, which cannot be loaded."""
    monkeypatch.setattr(wrapper, "PACKAGE", tmp_path / "package")
    (tmp_path / "package").mkdir()
    for name in wrapper.installed_names():
        (tmp_path / "package" / name).write_bytes(b"not a library")
    return tmp_path / "package"


@pytest.mark.parametrize("processor", ["recent", "old"])
def test_the_installed_module_for_this_processor_is_used(
    processor: str, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On x86-64 there are two; an old processor could not run one of them, and had to compile its own."""
    features = wrapper.FEATURES if processor == "recent" else frozenset({"sse2", "avx"})
    monkeypatch.setattr(wrapper, "cpu_features", lambda: features)
    expected = dict(zip(wrapper.variants(), wrapper.installed_names(), strict=True))
    variant = wrapper.variants()[0 if processor == "recent" else -1]
    assert wrapper.installed_names(here=True) == [expected[variant]]  # all that pip install -e compiles
    job, headers = job_for(CompilerOptions(kernel=("-O0",)), open_cache()), runtime_headers()
    assert wrapper.wrapper_file(job, headers) == package / expected[variant]


def test_names_depend_on_what_the_module_includes() -> None:
    headers, names = runtime_headers(), set(wrapper.installed_names())
    assert set(wrapper.installed_names({**headers, "kg_sincos.h": "changed"})) == names
    assert not names & set(wrapper.installed_names({**headers, "kg_steppers.h": "changed"}))
    with raises(BuildError, "'kg_steppers.h'"):
        wrapper.installed_names({name: text for name, text in headers.items() if name != "kg_steppers.h"})


@pytest.mark.parametrize("system", ["linux", "win32", "darwin"])
def test_modules_of_an_installation(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only Linux says what the processor has; elsewhere the module runs on all processors of its kind."""
    monkeypatch.setattr(wrapper.sys, "platform", system)
    monkeypatch.setattr(wrapper.platform, "machine", lambda: {"linux": "x86_64", "win32": "AMD64"}.get(system, "arm64"))
    found = wrapper.variants()
    assert found == ((wrapper.RECENT_X86, wrapper.ANY_PROCESSOR) if system == "linux" else (wrapper.ANY_PROCESSOR,))
    for variant in found:
        flags = variant.options.steppers + variant.options.runtime
        assert "-march=native" not in flags
        assert ("-march=x86-64-v3" in flags) == bool(variant.features)


def test_modules_are_linked_with_the_library_of_python_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrapper._python_library() == []
    monkeypatch.setattr(wrapper, "WINDOWS", True)
    folder, library = wrapper._python_library()
    assert folder == f"-L{Path(sys.base_prefix, 'libs')}"
    assert library == f"-lpython{sys.version_info.major}{sys.version_info.minor}"


@pytest.mark.target
def test_the_module_is_compiled_where_there_is_none_that_fits(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(wrapper, "activity", lambda text, **options: asked.append(text) or _Nothing())
    extension = build(pendulum("compiled"), QUICK)
    assert asked == [wrapper.FIRST_BUILD]
    module = extension.module
    rhs = module.Function("rhs", module.Prepared([9.81, 0.7], [0.0]), [0.0])
    np.testing.assert_allclose(rhs.ode(0.0, [0.3, 0.1]), pendulum_rhs(0.3, 0.1), rtol=1e-14)
    # The second model of these flags finds it in the cache.
    build(pendulum("compiled_again"), QUICK)
    assert len(asked) == 1


@pytest.mark.parametrize("change", ["sources", "flags"])
def test_a_module_that_does_not_fit_is_not_used(change: str, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    headers, options = runtime_headers(), CompilerOptions()
    if change == "sources":
        headers = {**headers, "kg_run.h": headers["kg_run.h"] + "/* changed */"}
    else:
        options = CompilerOptions(common=("-fPIC",))
    monkeypatch.setattr(wrapper, "_cached", lambda job, headers: Path("compiled"))
    assert wrapper.wrapper_file(job_for(options, open_cache()), headers) == Path("compiled")


def test_an_installation_replaces_what_belongs_to_other_sources(package: Path, tmp_path: Path) -> None:
    names = wrapper.installed_names()
    stale = package / names[0].replace(names[0].partition(".")[0], f"module_{16 * '0'}")
    other_python = package / f"module_{16 * '0'}.cpython-27.so"
    for file in (stale, other_python):
        file.touch()
    wrapper.install_wrapper(tmp_path / "build")
    assert {file.read_bytes() for file in (tmp_path / "build").iterdir()} == {b"not a library"}
    assert {file.name for file in (tmp_path / "build").iterdir()} == set(names)
    assert {file.name for file in package.iterdir()} == {*names, other_python.name}


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass
