"""The Python module that serves all models: that of the installation, or one that is compiled once on a machine."""

from __future__ import annotations

import platform
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
    (tmp_path / "package" / wrapper.installed_name()).write_bytes(b"not a library")
    return tmp_path / "package"


def test_the_installed_module_is_used(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wrapper, "cpu_features", lambda: wrapper.FEATURES)
    job, headers = job_for(CompilerOptions(kernel=("-O0",)), open_cache()), runtime_headers()
    assert wrapper.wrapper_file(job, headers) == package / wrapper.installed_name()
    # A header that the module does not include does not matter, one that it includes does.
    assert wrapper.installed_name({**headers, "kg_sincos.h": "changed"}) == wrapper.installed_name()
    assert wrapper.installed_name({**headers, "kg_steppers.h": "changed"}) != wrapper.installed_name()
    with raises(BuildError, "'kg_steppers.h'"):
        wrapper.installed_name({name: text for name, text in headers.items() if name != "kg_steppers.h"})


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


@pytest.mark.parametrize("change", ["processor", "sources", "flags"])
def test_a_module_that_does_not_fit_is_not_used(change: str, package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    headers, options = runtime_headers(), CompilerOptions()
    if change == "processor":
        monkeypatch.setattr(wrapper, "cpu_features", frozenset)
        if sys.platform != "linux" or platform.machine() != "x86_64":
            pytest.skip("the module of this machine runs on every processor of its kind")
    elif change == "sources":
        headers = {**headers, "kg_run.h": headers["kg_run.h"] + "/* changed */"}
    else:
        options = CompilerOptions(common=("-fPIC",))
    monkeypatch.setattr(wrapper, "_cached", lambda job, headers: Path("compiled"))
    assert wrapper.wrapper_file(job_for(options, open_cache()), headers) == Path("compiled")


def test_an_installation_replaces_what_belongs_to_other_sources(package: Path, tmp_path: Path) -> None:
    name = wrapper.installed_name()
    stale = package / name.replace(name.partition(".")[0], f"module_{16 * '0'}")
    other_python = package / f"module_{16 * '0'}.cpython-27.so"
    for file in (stale, other_python):
        file.touch()
    wrapper.install_wrapper(tmp_path / "build")
    assert (tmp_path / "build" / name).read_bytes() == b"not a library"
    assert {file.name for file in package.iterdir()} == {name, other_python.name}


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass
