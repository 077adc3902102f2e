"""Which compiler is taken, what identifies it, and how its failures are reported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from messages import raises

from kanegen.backends.cython import toolchain as toolchain_module
from kanegen.backends.cython.processes import processors, run
from kanegen.backends.cython.toolchain import (
    CompilerOptions,
    compile_object,
    compiler_version,
    cpu_identity,
    find_toolchain,
    is_gcc,
    link_command,
)
from kanegen.errors import BuildError


def program(folder: Path, name: str, text: str = "exit 0") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_cc_wins_and_keeps_its_arguments(tmp_path: Path) -> None:
    mine = program(tmp_path, "mycc")
    assert find_toolchain({"CC": f"{mine} -m64 '-DX=a b'", "PATH": ""}).command == (
        str(mine),
        "-m64",
        "-DX=a b",
    )
    assert find_toolchain({"CC": "mycc", "PATH": str(tmp_path)}).command[0] == str(mine)


def test_a_wrong_cc_is_an_error_not_a_reason_to_take_another() -> None:
    with raises(BuildError, "CC", "'/nonexistent'", "apt install gcc"):
        find_toolchain({"CC": "/nonexistent", "PATH": "/usr/bin:/bin"})
    with raises(BuildError, "CC", "gcc", "quotation"):
        find_toolchain({"CC": 'gcc "x', "PATH": "/usr/bin:/bin"})


def test_no_compiler_tells_what_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain_module.sysconfig, "get_config_var", lambda name: "icc -pthread")
    monkeypatch.setattr(toolchain_module.packaged, "find_program", lambda: None)
    with raises(BuildError, "icc", "cc", "gcc", "clang", "PATH=", "apt install gcc"):
        find_toolchain({"PATH": str(tmp_path)})


def test_the_compiler_python_was_built_with_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("icc", "cc", "clang"):
        program(tmp_path, name)
    monkeypatch.setattr(toolchain_module.sysconfig, "get_config_var", lambda name: "icc -pthread")
    assert find_toolchain({"PATH": str(tmp_path)}).command == (str(tmp_path / "icc"), "-pthread")
    (tmp_path / "icc").unlink()
    assert find_toolchain({"PATH": str(tmp_path)}).command == (str(tmp_path / "cc"),)


def test_an_updated_compiler_has_another_stamp(tmp_path: Path) -> None:
    program(tmp_path, "cc")
    before = find_toolchain({"CC": "cc", "PATH": str(tmp_path)})
    program(tmp_path, "cc", "exit 1")
    assert find_toolchain({"CC": "cc", "PATH": str(tmp_path)}).stamp != before.stamp


def test_a_program_that_is_no_compiler_is_named_with_the_variable(tmp_path: Path) -> None:
    """CC=python, CC=cl, or a compiler without its libraries: the message says where the choice comes from."""
    source = tmp_path / "model.c"
    source.write_text("int x;\n", encoding="utf-8")
    command = str(program(tmp_path, "foreign", "echo unrecognized option >&2; exit 2"))
    toolchain = find_toolchain({"CC": command, "PATH": ""})
    with raises(BuildError, "foreign", "2", "CC", repr(command), "unrecognized option"):
        compile_object(toolchain, ("-O2",), source, tmp_path / "model.o", ())
    with raises(BuildError, "foreign", "CC", repr(command)):
        compiler_version(toolchain)


def test_passes_of_gcc_are_not_named_to_others() -> None:
    """Clang refuses flags of passes that it does not have, so that no large model could be compiled with it."""
    options = CompilerOptions(kernel=("-O3", "-g0"))
    assert options.of_long_kernels(gcc=False) == ("-O2", "-g0")
    assert "-fno-tree-pre" in options.of_long_kernels(gcc=True)
    assert is_gcc("cc (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.")
    assert not is_gcc("Apple clang version 16.0.0 (clang-1600.0.26.6)\nTarget: arm64-apple-darwin24.1.0")


def test_a_compiler_that_writes_nothing_is_blamed(tmp_path: Path) -> None:
    source, target = tmp_path / "model.c", tmp_path / "model.o"
    source.write_text("int x;\n", encoding="utf-8")
    toolchain = find_toolchain({"CC": str(program(tmp_path, "nothing", "echo a warning")), "PATH": ""})
    with raises(BuildError, "nothing", "model.o", "CC", "a warning"):
        compile_object(toolchain, (), source, target, ())


@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-ffinite-math-only"])
def test_flags_that_hide_nan_are_refused(flag: str) -> None:
    with raises(BuildError, flag, "kernel", "NaN"):
        CompilerOptions(kernel=("-O3", flag))


def test_options_check_themselves() -> None:
    with raises(BuildError, "kernel='-O3'", "sequence"):
        CompilerOptions(kernel="-O3")  # one text is a sequence of letters
    assert CompilerOptions().depends_on_cpu
    assert not CompilerOptions(kernel=("-O2",), steppers=("-O2",), runtime=("-O2",)).depends_on_cpu


def test_the_processor_is_identified() -> None:
    assert cpu_identity() == cpu_identity()
    assert len(cpu_identity()) > 4


def test_link_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolchain = find_toolchain({"CC": str(program(tmp_path, "cc"))})
    monkeypatch.setattr(sys, "platform", "linux")
    command = link_command(toolchain, CompilerOptions(link=("-s",)), ["a.o"], "x.so")
    assert command == [toolchain.command[0], "-shared", "a.o", "-o", "x.so", "-s", "-lm"]
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "-bundle" in link_command(toolchain, CompilerOptions(), ["a.o"], "x.so")


def test_failures_carry_command_output_and_folder(tmp_path: Path) -> None:
    path = program(tmp_path, "cc", "echo spoken; echo 'it is wrong' >&2; exit 3")
    with raises(BuildError, "cc", "3") as caught:
        run((str(path), "-x"), folder=tmp_path)
    assert caught.value.command == (str(path), "-x")
    assert caught.value.folder == tmp_path
    assert "it is wrong" in caught.value.stderr
    assert "spoken" in caught.value.stderr
    path = program(tmp_path, "cc", "kill -9 $$")
    with raises(BuildError, "cc", "signal 9"):
        run((str(path),), folder=None)
    with raises(BuildError, "/nonexistent"):
        run(("/nonexistent",), folder=None)


def test_the_number_of_compilers_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KANEGEN_PROCESSORS", raising=False)
    assert processors() >= 1
    monkeypatch.setenv("KANEGEN_PROCESSORS", " 7 ")
    assert processors() == 7
    for text in ("0", "-1", "2.5", "all"):
        monkeypatch.setenv("KANEGEN_PROCESSORS", text)
        with raises(BuildError, "KANEGEN_PROCESSORS", repr(text), "positive integer"):
            processors()
