"""The compiler of the Python package ziglang: when it is taken, what it keeps, and that models agree with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from agreement import ROUNDING, require_agreement
from click.testing import CliRunner
from messages import raises, says
from systems import example_names, initial, model_of

import kanegen as kg
from kanegen.backends.cython import packaged, toolchain
from kanegen.backends.cython.cache import open_cache
from kanegen.backends.cython.toolchain import KERNEL_FLAGS, CompilerOptions, Toolchain
from kanegen.cli import main
from kanegen.codegen.lanes import BATCH_FILE, batch_sources
from kanegen.codegen.sources import runtime_headers, wrapper_files
from kanegen.errors import BuildError
from kanegen.pipeline import sources_of
from kanegen.writing import write_files

FEW = ("rolling_disk", "bouncing_ball", "dc_motor_arm", "sampled_pid")
"""Constraints, contacts, states and sampled inputs."""

RECORDING = """#!/bin/sh
echo "$ZIG_GLOBAL_CACHE_DIR" >> {log}
[ "$2" = --version ] || [ "$3" = --version ] && echo "clang version 1.0"
for word; do [ "$last" = -o ] && : > "$word"; last=$word; done
exit 0
"""
"""A program that writes nothing into the files that it should make, and where it was told to keep what it makes."""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without other compilers, with a package whose program records its calls; the path of the records."""
    folder, log = tmp_path / "site" / packaged.PACKAGE, tmp_path / "log"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "zig").write_text(RECORDING.format(log=log), encoding="utf-8")
    (folder / "zig").chmod(0o755)
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.setattr(toolchain, "COMPILER_NAMES", ())
    monkeypatch.setattr(toolchain.sysconfig, "get_config_var", lambda name: None)
    monkeypatch.setenv("KANEGEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    return log


def linked(folder: Path) -> None:
    """Link a library with the compiler that is found."""
    toolchain.link(toolchain.find_toolchain(), CompilerOptions(), [], folder / "library.so")


def test_it_is_taken_where_there_is_no_other(package: Path, tmp_path: Path) -> None:
    found = toolchain.find_toolchain()
    assert found.is_packaged
    assert found.command[0] == str(tmp_path / "site" / packaged.PACKAGE / "zig")
    other = tmp_path / "cc"
    other.write_text("#!/bin/sh\n", encoding="utf-8")
    other.chmod(0o755)
    assert toolchain.find_toolchain({"CC": str(other), "PATH": ""}).command == (str(other),)


def test_it_prepares_itself_once_in_the_cache(package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = []
    activity = packaged.activity
    monkeypatch.setattr(packaged, "activity", lambda text, **options: named.append(text) or activity(text, **options))
    linked(tmp_path)
    linked(tmp_path)
    assert named == [packaged.PREPARING]
    kept = tmp_path / "cache" / "compiler"
    assert set(package.read_text(encoding="utf-8").split()) == {str(kept)}
    (kept / "library").write_bytes(bytes(1000))
    assert open_cache().clear() >= 1000
    assert not kept.exists()
    linked(tmp_path)
    assert len(named) == 2


def test_doctor_says_what_it_takes_and_how_to_remove_it(package: Path, tmp_path: Path) -> None:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["doctor"])
    says(result.output, "clang version 1.0", packaged.PACKAGE, "pip uninstall ziglang", "kanegen cache clear")
    says(result.output, str(tmp_path / "cache" / "compiler"))


def test_neither_a_compiler_nor_the_package(package: Path, tmp_path: Path) -> None:
    (tmp_path / "site" / packaged.PACKAGE / "zig").unlink()
    with raises(BuildError, "no C compiler", packaged.PACKAGE, 'pip install "kanegen[compiler]"') as caught:
        toolchain.find_toolchain()
    (line,) = [line for line in str(caught.value).splitlines() if "kanegen[compiler]" in line]
    assert line.endswith('Run: pip install "kanegen[compiler]"')


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("/usr/bin/zig", "cc"), True),
        ((r"zig.exe", "cc", "-target", "x86_64-windows-gnu"), True),
        (("/usr/bin/python3", "-m", "ziglang", "cc"), True),
        (("/usr/bin/zig", "build"), False),
        (("/usr/bin/gcc",), False),
    ],
)
def test_other_commands_of_it_are_recognized(command: tuple[str, ...], expected: bool) -> None:
    assert packaged.is_zig(command) == expected


def test_processors_have_the_names_of_zig() -> None:
    flags = ("-march=x86-64-v3", "-march=native", "-fno-x86-64-v3")
    assert packaged.spelled(flags) == ["-march=x86_64_v3", "-march=native", "-fno-x86-64-v3"]


@pytest.fixture
def zig() -> str:
    """The command of the compiler of the package."""
    program = packaged.find_program()
    if program is None:
        pytest.skip("needs the Python package ziglang: pip install ziglang")
    return " ".join((str(program), *packaged.ARGUMENTS))


def pair(name: str, command: str, monkeypatch: pytest.MonkeyPatch) -> tuple[kg.Solver, kg.Solver]:
    """An example as the usual compiler makes it, and this one with the flags that users have."""
    usual = kg.build(model_of(name))
    monkeypatch.setenv("CC", command)
    monkeypatch.setenv("KANEGEN_KERNEL_FLAGS", "")
    return usual, kg.build(model_of(name))


@pytest.mark.target
@pytest.mark.parametrize("name", FEW)
def test_models_agree(name: str, zig: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, solver = pair(name, zig, monkeypatch)
    require_agreement(name, usual, solver)
    start = initial(name)
    runs = [s.integrate((start["t"], start["t"] + 0.5), start["q"], start["u"]) for s in (solver, usual)]
    assert runs[0].t[-1] == runs[1].t[-1]
    np.testing.assert_allclose(runs[0].q[-1], runs[1].q[-1], atol=1e-5)


@pytest.mark.campaign
@pytest.mark.parametrize("name", [name for name in example_names() if name not in FEW])
def test_all_other_models_agree(name: str, zig: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_agreement(name, *pair(name, zig, monkeypatch))


@pytest.mark.target
def test_lanes_agree(zig: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start, rng = initial("slider_crank"), np.random.default_rng(0)
    q, u = (np.array(start[key]) + rng.uniform(-0.1, 0.1, (19, len(start[key]))) for key in ("q", "u"))
    usual, solver = (s.rhs_batch(0.0, q, u) for s in pair("slider_crank", zig, monkeypatch))
    for values, expected in zip(solver[:2], usual[:2], strict=True):
        np.testing.assert_allclose(values, expected, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.target
@pytest.mark.parametrize("system", ["x86_64-windows-gnu", "aarch64-macos", "aarch64-linux-gnu"])
def test_the_c_code_compiles_for_other_systems(system: str, zig: str, tmp_path: Path) -> None:
    """A kernel, its batches, and the parts of the Python module in C, with the flags that they have there.

    The last flag of the two long parts is -O0, which saves most of the time and refuses what -O3 refuses.
    """
    sources, options = sources_of(model_of("bouncing_ball")), CompilerOptions()
    batch = batch_sources(sources, "rhs")
    write_files({**runtime_headers(), **wrapper_files(), **sources.files, **batch}, tmp_path)
    target = Toolchain((*zig.split(), "-target", system), "another system")
    for file, flags in {
        sources.kernel: (*KERNEL_FLAGS, "-fvisibility=default"),
        BATCH_FILE: options.lanes,
        "module_steppers.c": (*options.steppers, "-O0"),
        "module_runtime.c": (*options.runtime, "-O0"),
    }.items():
        chosen = [flag for flag in (*options.common, *flags) if flag != "-march=native"]
        toolchain.compile_object(target, chosen, tmp_path / file, tmp_path / f"{file}.o", [str(tmp_path)])
