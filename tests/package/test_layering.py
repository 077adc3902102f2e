"""Imports go one way between and inside the layers, functions stay short, and importing kanegen stays cheap."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import ROOT

PACKAGE = ROOT / "kanegen"
ORDER = (
    "_version",
    "errors",
    "arrays",
    "quantities",
    "precision",
    "writing",
    "paths",
    "display",
    "pages",
    "progress",
    "forms",
    "codes",
    "run_options",
    "resources",
    "graph",
    "shapes",
    "units",
    "tires",
    "model",
    "geometry",
    "flexible",
    "logic",
    "robots",
    "derivation",
    "program",
    "codegen",
    "backends",
    "view",
    "solve",
    "sweeps",
    "identification",
    "results",
    "pipeline",
    "control",
    "emission",
    "interop",
    "verification",
    "modelfile",
    "plot",
    "reporting",
    "cli",
)
LONGEST_FILE = 600
"""A file of one concept; what bounds the size of ideas is the length of functions."""

LONGEST_FUNCTION = 40
"""Lines of a Python function without its docstring."""

ROOMS = {"model": 16, "derivation": 16, "program": 10, "solve": 15}
"""Most files and folders directly inside a layer."""

MOST_TYPE_CHECKING = 3
"""Files in which an import may stand under ``if TYPE_CHECKING``."""

LONGEST_C_FUNCTION = 60
"""Lines of a function in the C runtime; those that are rendered from tableaux are longer."""

STANDARD_HEADERS = ROOT / "templates" / "fmu"
"""The headers of FMI, ``fmi*.h`` in this folder, are copied as the standard has them."""

SOURCE_SUFFIXES = {".py", ".jinja", ".h", ".c", ".pyx", ".pxi", ".pxd"}
HEAVY = (
    "jax",
    "casadi",
    "ipyopt",
    "scipy",
    "matplotlib",
    "pint",
    "k3d",
    "Cython",
    "jinja2",
    "rich",
    "click",
    "setuptools",
)


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
    assert {"kanegen.pipeline.build", "kanegen.cli.main"} <= {
        name for name, _ in imported_modules(tree, "kanegen.graph")
    }


def test_no_source_file_is_too_long() -> None:
    sources = tracked_sources()
    assert any(path.suffix == ".h" for path in sources)
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources}
    long = {path for path, length in lengths.items() if length > LONGEST_FILE}
    assert long - set(STANDARD_HEADERS.glob("fmi*.h")) == set()


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def file_imports() -> dict[str, set[str]]:
    """The files that each file imports: everywhere, in functions and under TYPE_CHECKING too."""
    paths = {module_name(path): path for path in PACKAGE.rglob("*.py")}
    graph = {}
    for module, path in paths.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        names = [name for name, _ in imported_modules(ast.parse(path.read_text(encoding="utf-8")), package)]
        files = {name if name in paths else name.rpartition(".")[0] for name in names}
        graph[module] = files & paths.keys() - {module}
    return graph


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Groups of files that import each other (strongly connected components of more than one file)."""
    reach = {name: reachable_from(name, graph) for name in graph}
    found: list[set[str]] = []
    for name in graph:
        circle = {other for other in reach[name] if name in reach[other]}
        if len(circle) > 1 and circle not in found:
            found.append(circle)
    return found


def reachable_from(name: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    stack = [name]
    while stack:
        for other in graph[stack.pop()] - seen:
            seen.add(other)
            stack.append(other)
    return seen


def test_no_files_import_each_other() -> None:
    assert [sorted(circle) for circle in circles(file_imports())] == []


def test_the_rule_sees_a_circle() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]


def imports_for_checkers(tree: ast.AST) -> Iterator[ast.AST]:
    """The imports under ``if TYPE_CHECKING``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from (inner for inner in ast.walk(node) if isinstance(inner, ast.Import | ast.ImportFrom))


def test_type_checking_hides_no_circle() -> None:
    files = [path for path in modules() if list(imports_for_checkers(ast.parse(path.read_text(encoding="utf-8"))))]
    assert PACKAGE / "pipeline.py" in files
    assert len(files) <= MOST_TYPE_CHECKING, files


@pytest.mark.parametrize("layer", ROOMS)
def test_layers_have_few_rooms(layer: str) -> None:
    rooms = [path.name for path in (PACKAGE / layer).iterdir() if path.name not in ("__init__.py", "__pycache__")]
    assert len(rooms) <= ROOMS[layer], sorted(rooms)


def function_lengths(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            start, end = node.lineno, node.end_lineno or node.lineno
            docstring = node.body[0] if ast.get_docstring(node) is not None else None
            skipped = 0 if docstring is None else (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
            yield node.name, end - start + 1 - skipped


def test_no_function_is_too_long() -> None:
    long = {
        f"{path.relative_to(PACKAGE)}:{name}": length
        for path in modules()
        for name, length in function_lengths(path)
        if length > LONGEST_FUNCTION
    }
    assert long == {}


def c_function_lengths(text: str) -> Iterator[tuple[str, int]]:
    """Functions of a C file whose definitions begin and end in the first column."""
    name, start = "", 0
    for number, line in enumerate(text.splitlines()):
        head = re.match(r"(?!typedef)[a-z][\w *]*?(\w+)\(", line)
        if head is not None and not line.endswith(";"):
            name, start = head[1], number
        elif line == "}" and name:
            yield name, number - start + 1
            name = ""


def test_no_c_function_is_too_long() -> None:
    headers = sorted((ROOT / "templates" / "runtime").glob("*.h"))
    lengths = {(path.name, name): n for path in headers for name, n in c_function_lengths(path.read_text("utf-8"))}
    assert len(lengths) > 300
    assert {name: length for name, length in lengths.items() if length > LONGEST_C_FUNCTION} == {}


def test_the_rule_sees_the_lines_of_a_c_function() -> None:
    text = "typedef struct {\n} s;\nint f(void);\nstatic inline int *g(int a,\n  int b) {\n  return 0;\n}\n"
    assert list(c_function_lengths(text)) == [("g", 4)]


def test_importing_kanegen_is_cheap() -> None:
    """What costs most of a second (SciPy) or serves one command only is imported where it is used."""
    program = f"import sys, kanegen; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
