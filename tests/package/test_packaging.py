"""The templates are found from a wheel, from an editable install and from a checkout that is not installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from checkout import ROOT

from kanegen.backends.cython import wrapper

PATHS = "import sys; sys.path[:0] = {!r}\n"
PROBE = """
import kanegen
from kanegen.derivation.fingerprint import generator_digest
from kanegen.codegen.sources import runtime_headers
from kanegen.codegen.sources import wrapper_files
from kanegen.resources import template_folder
assert "module.pyx" in wrapper_files() and "kg_steppers.h" in runtime_headers()
generator_digest()
print(kanegen.__file__)
print(template_folder())
"""


def probe(folder: Path, code: str = PROBE) -> list[str]:
    """What a program prints that finds kanegen in ``folder``; neither site nor PYTHONPATH point elsewhere."""
    code = PATHS.format([str(folder), sysconfig.get_paths()["purelib"]]) + code
    command = [sys.executable, "-S", "-E", "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built from a copy so that nothing is left behind."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("kanegen", "templates"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    for name in wrapper.installed_names():  # the module for older processors takes a minute to compile
        (copy / "kanegen" / "backends" / "cython" / name).touch()
    options = ["--quiet", "--no-deps", "--no-build-isolation", "-w", str(out)]
    command = [sys.executable, "-m", "pip", "wheel", *options, "."]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl")
    return built


def test_wheel_holds_every_package_and_template(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "kanegen").rglob("*") if path.suffix in (".py", ".toml")
    }
    templates = {
        "kanegen/" + path.relative_to(ROOT).as_posix()
        for path in (ROOT / "templates").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert package | templates | {"kanegen/py.typed"} <= names
    assert "__init__.py" not in names  # that of the root serves the folder above a clone


def test_wheel_holds_the_compiled_python_module(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    assert not wheel.name.endswith("-any.whl")
    names = probe(tmp_path, "from kanegen.backends.cython import wrapper; print(*wrapper.installed_names())")
    assert set(names) == {path.name for path in (tmp_path / "kanegen" / "backends" / "cython").glob("module_*")}


def test_templates_from_a_wheel(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    package, templates = probe(tmp_path)
    assert Path(package).is_relative_to(tmp_path)
    assert Path(templates) == tmp_path / "kanegen" / "templates"


def test_templates_from_a_checkout_that_is_not_installed() -> None:
    package, templates = probe(ROOT)
    assert Path(package) == ROOT / "kanegen" / "__init__.py"
    assert Path(templates) == ROOT / "templates"


FINDER = """
class Finder:
    @staticmethod
    def find_spec(name, path, target=None):
        from importlib.util import spec_from_file_location
        return spec_from_file_location(name, {!r}) if name == "kanegen" else None
sys.meta_path.append(Finder)
"""


@pytest.fixture
def above_a_clone(tmp_path: Path) -> Path:
    """The folder above a clone named kanegen."""
    clone = tmp_path / "projects" / "kanegen"
    for name in ("kanegen", "templates"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "__init__.py", clone)
    return clone.parent


def test_import_in_the_folder_above_a_clone(above_a_clone: Path) -> None:
    package, templates = probe(above_a_clone, "import kanegen as kg; kg.Model\n" + PROBE)
    assert Path(package) == above_a_clone / "kanegen" / "kanegen" / "__init__.py"
    assert Path(templates) == above_a_clone / "kanegen" / "templates"


def test_an_installed_package_precedes_the_clone_below(above_a_clone: Path, wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    package, templates = probe(above_a_clone, f"sys.path.append({str(tmp_path / 'installed')!r})\n" + PROBE)
    assert Path(package).is_relative_to(tmp_path / "installed")
    assert Path(templates).is_relative_to(tmp_path / "installed")


def test_an_editable_package_precedes_the_clone_below(above_a_clone: Path) -> None:
    package, templates = probe(above_a_clone, FINDER.format(str(ROOT / "kanegen" / "__init__.py")) + PROBE)
    assert Path(package) == ROOT / "kanegen" / "__init__.py"
    assert Path(templates) == ROOT / "templates"
