"""Imports go one way, files stay short, and importing kanegen stays cheap."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import ROOT

PACKAGE = ROOT / "kanegen"
ORDER = (
    "_version",
    "arrays",
    "errors",
    "forms",
    "codes",
    "resources",
    "graph",
    "model",
    "derivation",
    "program",
    "codegen",
    "backends",
    "solve",
    "results",
    "pipeline",
    "verification",
    "bench",
    "cli",
)
LONGEST_FILE = 400
SOURCE_SUFFIXES = {".py", ".jinja", ".h", ".c", ".pyx", ".pxi", ".pxd"}
HEAVY = ("scipy", "matplotlib", "Cython", "rich", "click", "setuptools")


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(tree: ast.AST, package: str) -> Iterator[tuple[str, int]]:
    """Absolute names of everything imported, in functions too, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join([*parents[: len(parents) - node.level + 1], *([base] if base else [])])
            yield base, node.lineno
            for alias in node.names:
                yield f"{base}.{alias.name}", node.lineno


def layer_imports(path: Path) -> Iterator[tuple[str, int]]:
    package = ".".join(path.relative_to(ROOT).parent.parts)
    for name, line in imported_modules(ast.parse(path.read_text(encoding="utf-8")), package):
        parts = name.split(".")
        if parts[0] == "kanegen" and len(parts) > 1 and parts[1] in ORDER:
            yield parts[1], line


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.name != "__init__.py")


def tracked_sources() -> list[Path]:
    """The source files git knows; in an unpacked archive, those of the source folders."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        paths = [ROOT / line for line in listing.stdout.splitlines()]
    else:
        folders = ("kanegen", "templates", "tests", "build_examples")
        paths = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    return sorted(path for path in paths if path.suffix in SOURCE_SUFFIXES and path.is_file())


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path: Path) -> None:
    layer = layer_of(path)
    assert layer in ORDER, f"{layer} has no place in the order of layers"
    later = [f"line {line}: {name}" for name, line in layer_imports(path) if ORDER.index(name) > ORDER.index(layer)]
    assert not later


def test_the_rule_sees_an_upward_import() -> None:
    tree = ast.parse("def f():\n    from ..pipeline import build\n    import kanegen.cli.main\n")
    assert {"kanegen.pipeline", "kanegen.cli.main"} <= {name for name, _ in imported_modules(tree, "kanegen.graph")}


def test_no_source_file_is_too_long() -> None:
    sources = tracked_sources()
    assert any(path.suffix == ".h" for path in sources)
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources}
    assert {str(path): length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_importing_kanegen_is_cheap() -> None:
    """What costs most of a second (SciPy) or serves one command only is imported where it is used."""
    program = f"import sys, kanegen; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
