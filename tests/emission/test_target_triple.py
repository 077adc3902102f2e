"""Emitted projects for other systems, which the makefile compiles with the compiler of the Python package ziglang."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from checkout import EXAMPLES
from click.testing import CliRunner
from messages import raises
from systems import model_of

import kanegen as kg
from kanegen.backends.cython import packaged
from kanegen.cli import main
from kanegen.errors import BuildError

HERE = "x86_64-linux-gnu"
"""Its C library is there; one of musl is compiled as a whole, which takes most of a minute."""
MACHINES = {"aarch64-linux-musl": 0xB7, HERE: 0x3E}
"""Numbers of processors in the header of an ELF file."""

EMULATORS = {"aarch64-linux-musl": "qemu-aarch64"}


@pytest.fixture
def zig() -> str:
    if find_spec("ziglang") is None:
        pytest.skip("needs the Python package ziglang: pip install ziglang")
    if shutil.which("make") is None:
        pytest.skip("needs make")
    return f"ZIG={sys.executable} -m ziglang"


def project(folder: Path, triple: str) -> Path:
    return kg.emit(model_of("slider_crank"), folder, name="slider_crank", target_triple=triple)


def test_the_makefile_has_the_triple(tmp_path: Path) -> None:
    text = (project(tmp_path / "for", "aarch64-linux-musl") / "Makefile").read_text(encoding="utf-8")
    assert "TARGET_TRIPLE ?= aarch64-linux-musl" in text
    plain = kg.emit(model_of("slider_crank"), tmp_path / "plain", name="slider_crank")
    # The code is the same, the digest in it as well.
    files = {path.relative_to(plain) for path in plain.rglob("*") if path.is_file()}
    differing = [str(f) for f in files if (plain / f).read_bytes() != (tmp_path / "for" / f).read_bytes()]
    assert differing == ["Makefile"]


def test_another_compiler_goes_first(tmp_path: Path) -> None:
    folder = project(tmp_path, "aarch64-linux-musl")
    commands = {
        "CC=mycc": "mycc -std",
        "CROSS_COMPILE=riscv64-": "riscv64-gcc -std",
        "ZIG=zig": "zig cc -target aarch64-linux-musl -std",
    }
    for option, expected in commands.items():
        done = subprocess.run(
            ["make", "--no-print-directory", "-n", option], cwd=folder, capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith(expected)


@pytest.mark.parametrize("triple", ["aarch64", "AArch64-linux", "a-b; rm x", "", "x86_64-linux-gnu\nall:", 3])
def test_wrong_triples(triple: object, tmp_path: Path) -> None:
    with raises(BuildError, "target_triple", "'aarch64-linux-musl'"):
        kg.emit(model_of("slider_crank"), tmp_path / "p", target_triple=triple)  # type: ignore[arg-type]
    assert not (tmp_path / "p").exists()


def test_one_file_has_no_makefile(tmp_path: Path) -> None:
    with raises(BuildError, "target_triple", "single_header"):
        kg.emit(model_of("slider_crank"), tmp_path / "p", target_triple=HERE, single_header=True)


@pytest.mark.target
@pytest.mark.parametrize("triple", MACHINES)
def test_the_project_compiles_and_its_selftest_passes(triple: str, zig: str, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    file = str(EXAMPLES / "rolling_disk.py")
    result = CliRunner().invoke(main, ["emit", file, str(folder), "--target-triple", triple])
    assert result.exit_code == 0, result.output
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": str(packaged.folder())}
    make = ["make", zig, "all", "selftest"]
    done = subprocess.run(make, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert struct.unpack_from("<H", (folder / "selftest").read_bytes(), 18)[0] == MACHINES[triple]
    emulator = EMULATORS.get(triple)
    if emulator is not None and shutil.which(emulator) is None:
        pytest.skip(f"compiled; running it needs {emulator} (Debian's package qemu-user)")
    for program in ("selftest", "example"):
        command = [*([emulator] if emulator else []), f"./{program}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
