"""FMUs of models, exported once per session, and the importer in C of the tests."""

from __future__ import annotations

import re
import subprocess
import tempfile
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import ccompile
from checkout import EXAMPLES, ROOT
from systems import model_of

import kanegen as kg
from kanegen.model.expressions import symbol_name
from kanegen.modelfile import read_model_file

VERSIONS = ("2.0", "3.0")
STEP = 1e-3

MODELS = (
    "slider_crank", "bouncing_ball", "dc_motor_arm", "rolling_disk", "cart_pole", "sampled_pid", "stick_slip_blocks",
)  # fmt: skip
"""Loops, contacts, states and outputs with units, no integrals, inputs, sampled laws, friction."""

CASES = [*((name, "2.0") for name in MODELS), *((name, "3.0") for name in MODELS[:3])]
"""Models and versions; both versions share the code that depends on the model."""

FAST = kg.CompilerOptions(kernel=("-std=c99", "-O0"), steppers=("-std=c99", "-O0"))
"""Flags with which an FMU compiles in about a second."""

SOLVER = kg.CompilerOptions()
"""The flags of the solver, with which motions without events have the same bits."""


@dataclass(frozen=True)
class Fmu:
    """An exported FMU, also unpacked in ``folder``."""

    name: str
    version: str
    path: Path
    folder: Path
    root: ElementTree.Element

    @property
    def token(self) -> str:
        return self.root.get("guid") or self.root.get("instantiationToken") or ""

    @property
    def library(self) -> Path:
        return next((self.folder / "binaries").rglob("*.so"))

    @property
    def indicators(self) -> int:
        """The number of event indicators."""
        return sum(name.startswith("event_indicator.") for name in self.variables())

    def variables(self) -> dict[str, dict[str, str]]:
        """The attributes of the variables by name."""
        elements = self.root.find("ModelVariables")
        assert elements is not None
        found = {}
        for element in elements:
            inner = {} if self.version == "3.0" else {k: v for child in element for k, v in child.attrib.items()}
            found[element.attrib["name"]] = {**inner, **element.attrib}
        return found

    def references(self, *names: str) -> list[int]:
        """Value references by name."""
        known = self.variables()
        return [int(known[name]["valueReference"]) for name in names]

    def run(
        self,
        what: str,
        count: int,
        names: tuple[str, ...],
        library: Path | None = None,
        program: Path | None = None,
    ) -> list[list[float]]:
        """Rows of numbers that the importer in C prints (tests/fmi/importer.c).

        ``library`` and ``program`` replace the binary of the FMU and the importer.
        """
        references = [str(reference) for reference in self.references(*names)]
        options = [what, repr(STEP), str(count), str(self.indicators), str(len(names))]
        command = [str(program or importer(self.version)), str(library or self.library), self.token]
        done = subprocess.run([*command, *options, *references], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return [[float.fromhex(word) for word in line.split()] for line in done.stdout.splitlines()]


def start_of(name: str) -> dict[str, Any]:
    """The start of an example by name, with its inputs."""
    return read_model_file(EXAMPLES / f"{name}.py").named_values()


def components(name: str) -> tuple[str, ...]:
    """Names of coordinates, speeds and states."""
    model = model_of(name)
    return tuple(map(symbol_name, (*model.coordinates, *model.speeds, *model.states)))


@cache
def folder() -> Path:
    """A folder for the FMUs of this session."""
    holder = tempfile.TemporaryDirectory(prefix="kanegen-fmus-")
    _KEPT.append(holder)
    return Path(holder.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def unpacked(path: Path, version: str) -> Fmu:
    """The FMU at a path."""
    target = path.with_suffix("")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(target)
    root = ElementTree.parse(target / "modelDescription.xml").getroot()
    return Fmu(path.stem, version, path, target, root)


@cache
def fmu_of(name: str, version: str, compiler: kg.CompilerOptions = FAST, **options: Any) -> Fmu:
    """The FMU of an example with its start, exported once per session."""
    key = re.sub(r"\W+", "_", f"{name}_{version}_{len(list(folder().iterdir()))}")
    path = folder() / f"{key}.fmu"
    kg.export_fmu(model_of(name), path, fmi=version, values=start_of(name), compiler=compiler, **options)
    return unpacked(path, version)


@cache
def importer(version: str, *flags: str) -> Path:
    """The importer in C, compiled with all warnings as errors."""
    target = folder() / f"importer{version[0]}{len(flags)}"
    headers = ROOT / "templates" / "fmu"
    command = [ccompile.C_COMPILER.command, "-std=c99", "-O1", "-Wall", "-Wextra", "-Werror"]
    source = str(ROOT / "tests" / "fmi" / "importer.c")
    subprocess.run(
        [*command, f"-DFMI={version[0]}", f"-I{headers}", *flags, source, "-ldl", "-o", str(target)], check=True
    )
    return target
