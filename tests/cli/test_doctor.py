"""``kanegen doctor``: what is found and what is missing, with the command that installs it."""

from __future__ import annotations

import sysconfig
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from messages import says

from kanegen._version import __version__
from kanegen.cli import doctor as doctor_module
from kanegen.cli import main


def doctor(**variables: str) -> Result:
    return CliRunner(env={"COLUMNS": "200", **variables}).invoke(main, ["doctor"])


def test_a_complete_machine(tmp_path: Path) -> None:
    result = doctor(KANEGEN_CACHE_DIR=str(tmp_path), KANEGEN_CACHE_SIZE="123")
    assert result.exit_code == 0, result.output
    for text in (f"kanegen {__version__}", metadata.version("sympy"), "-march=native", str(tmp_path), "123.0 MB"):
        assert text in result.output
    assert "missing" not in result.output


def test_no_compiler(tmp_path: Path) -> None:
    result = doctor(KANEGEN_CACHE_DIR=str(tmp_path), CC="/nonexistent")
    assert result.exit_code == 1
    says(result.output, "C compiler", "missing", "'/nonexistent'", "apt", "dnf", "xcode-select", "interpreted")


def test_a_compiler_that_cannot_link(tmp_path: Path) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] && echo broken 1.0 && exit\necho no libc >&2; exit 1\n')
    compiler.chmod(0o755)
    result = doctor(KANEGEN_CACHE_DIR=str(tmp_path / "cache"), CC=str(compiler))
    assert result.exit_code == 1
    says(result.output, "broken 1.0", "compiling and linking", "no libc")


GCC = "#!/bin/sh\necho gcc 1.0; echo Copyright Free Software Foundation\n"
"""What tells GCC from other compilers."""


@pytest.mark.parametrize(
    ("others", "named", "expected"), [("clang", "", True), ("clang", "cc", False), ("", "", False)]
)
def test_clang_beside_gcc_is_named(
    others: str, named: str, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which compiler is used, why, and what the other one would be."""
    for name in filter(None, ("cc", others)):
        (tmp_path / name).write_text(GCC, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: None)
    result = doctor(KANEGEN_CACHE_DIR=str(tmp_path / "cache"), PATH=str(tmp_path), CC=named)
    says(result.output, "gcc 1.0", "the environment variable CC is" if named else "found on the PATH")
    assert ("CC=clang" in result.output) == expected


@pytest.mark.parametrize("is_there", [False, True])
def test_what_quick_builds_use(is_there: bool, tmp_path: Path) -> None:
    for name in ("cc", *(["tcc"] if is_there else [])):
        (tmp_path / name).write_text(GCC, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    result = doctor(KANEGEN_CACHE_DIR=str(tmp_path / "cache"), PATH=str(tmp_path), CC="cc")
    words = (str(tmp_path / "tcc"), "quick=True") if is_there else ("without optimizations", "tcc is not")
    says(result.output, "quick builds", *words)


@pytest.mark.parametrize("is_installed", [False, True])
def test_no_headers_of_python(is_installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the compilation of the Python module needs them, and an installation can have that module."""
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"include": str(tmp_path), "platinclude": str(tmp_path)})
    monkeypatch.setattr("kanegen.cli.doctor.installed_wrapper", lambda: tmp_path if is_installed else None)
    result = doctor(KANEGEN_CACHE_DIR=str(tmp_path / "cache"))
    assert result.exit_code == (0 if is_installed else 1)
    words = ("not needed",) if is_installed else ("python3-dev", "python3-devel")
    says(result.output, "headers of Python", *words)


def test_an_unusable_cache(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    result = doctor(KANEGEN_CACHE_DIR=str(tmp_path))
    assert result.exit_code == 1
    says(result.output, "cache", "chmod 700", "KANEGEN_CACHE_DIR")


def test_packages_that_are_missing_or_old(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name in ("rich", "matplotlib"):
            raise metadata.PackageNotFoundError(name)
        return {"numpy": "1.9.3", "sympy": "1.13.0rc1"}.get(name, "1000.0")

    requirements = [
        "sympy>=1.13",
        "mpmath>=1.3",
        "numpy>=1.26",
        "rich>=13",
        'matplotlib>=3.8; extra == "plot"',
        'k3d>=3.2; extra == "view"',
        'pydy>=0.8; extra == "peers"',
        'mypy; extra == "dev"',
    ]
    monkeypatch.setattr(doctor_module.metadata, "requires", lambda name: requirements)
    monkeypatch.setattr(doctor_module.metadata, "version", version)
    found: dict[str, Any] = {finding.what: finding for finding in doctor_module.packages()}
    assert {name: finding.mark for name, finding in found.items()} == {
        "packages": "ok",
        "numpy": "missing",
        "rich": "missing",
        "plots": "optional",
        "animations": "ok",
    }
    assert found["packages"].found == "sympy 1.13.0rc1, mpmath 1000.0"
    says(found["numpy"].found, "1.9.3", "1.26")
    says(found["plots"].found, "matplotlib", "not installed")
    assert found["plots"].advice == "pip install 'kanegen[plot]'"


def test_what_decides_comes_first_and_each_use_once(tmp_path: Path) -> None:
    """There were 29 lines of packages, those of developers among them, and the compiler came last."""
    lines = [line for line in doctor(KANEGEN_CACHE_DIR=str(tmp_path)).output.splitlines()[1:] if line.strip()]
    names = [line.split("  ")[0].strip() for line in lines]
    assert names.index("C compiler") < names.index("cache") < names.index("packages") < names.index("plots")
    assert len(names) == len(set(names)) < 20
    assert not {"mujoco", "pydy", "mypy"} & {word for line in lines for word in line.split()}
