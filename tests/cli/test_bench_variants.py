"""The benchmarks of flags and compilers: which compilers are found, and what the tables say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from systems import EXAMPLES

from kanegen.backends.cython import toolchain
from kanegen.cli import main
from kanegen.cli.bench.variants import FLAG_VARIANTS, VariantRow, toolchains, variants_table


def test_the_compiler_that_kanegen_takes_comes_first() -> None:
    found = toolchains()
    assert next(iter(found.values())) == toolchain.find_toolchain()
    assert {"gcc", "clang"} & set(found) == {name for name in ("gcc", "clang") if shutil.which(name)}
    assert len({tools.command for tools in found.values()}) == len(found)


def test_a_compiler_is_measured_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One that CC names by its path is the one on the PATH."""
    path = shutil.which("gcc") or pytest.skip("no gcc")
    monkeypatch.setenv("CC", path)
    assert next(iter(toolchains())) == "gcc"
    assert list(toolchains()).count("gcc") == 1


def test_times_are_relative_to_the_first_variant() -> None:
    rows = [
        VariantRow("a", {"gcc": 2e-8, "clang": 1e-8}),
        VariantRow("b", {"gcc": 1e-8, "clang": 2e-8}),
    ]
    table = variants_table(rows)
    columns = [list(column.cells) for column in table.columns]
    assert columns == [["a", "b", "geometric mean"], ["20 ns", "10 ns", ""], ["0.50", "2.00", "1.00"]]


def test_two_tables_are_refused() -> None:
    result = CliRunner().invoke(main, ["bench", str(EXAMPLES / "elliptic_wire.py"), "--flags", "--compilers"])
    assert result.exit_code == 2
    assert "--flags and --compilers make a table each" in result.output


@pytest.mark.target
@pytest.mark.parametrize(
    ("option", "example"),
    [("--flags", "elliptic_wire"), ("--compilers", "elliptic_wire"), ("--compilers", "lqr_cart_pole")],
)
def test_command(option: str, example: str) -> None:
    """All variants compute the same right-hand side, or the command fails. A law determines the input of the last."""
    file = str(EXAMPLES / f"{example}.py")
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["bench", file, option, "--rounds", "1"])
    assert result.exit_code == 0, result.output
    names = FLAG_VARIANTS if option == "--flags" else [f"{name}, fused" for name in toolchains()]
    for name in names:
        assert name in result.output
