"""The generated files of one model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from kanegen.errors import BuildError

_STEM = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DIGEST = re.compile(r"[0-9a-f]{16,128}")


@dataclass(frozen=True)
class Sources:
    """Everything the generator writes for one model.

    ``name`` is the C-safe stem of the kernel file, ``digest`` the model digest (lower-case hexadecimal),
    ``files`` maps relative POSIX paths to text, in sorted order; it holds at least ``<name>.c``.
    Raises `BuildError` when one of these does not hold.
    """

    name: str
    digest: str
    files: Mapping[str, str]

    def __post_init__(self) -> None:
        if not _STEM.fullmatch(self.name):
            raise BuildError(f"sources are named {self.name!r}; expected a C identifier")
        if not _DIGEST.fullmatch(self.digest):
            raise BuildError(f"the model digest is {self.digest!r}; expected 16 to 128 hexadecimal digits")
        for path, text in self.files.items():
            _check_path(path)
            if not isinstance(text, str):
                raise BuildError(f"the generated file {path!r} holds {type(text).__name__}; expected str")
        if self.kernel not in self.files:
            raise BuildError(f"the sources of {self.name!r} hold {sorted(self.files)}; {self.kernel!r} is missing")
        object.__setattr__(self, "files", MappingProxyType(dict(sorted(self.files.items()))))

    @property
    def kernel(self) -> str:
        """The path of the C file that defines ``kg_get_model``."""
        return f"{self.name}.c"

    @property
    def header(self) -> str:
        """The path of the kernel's header."""
        return f"{self.name}.h"

    def text(self, path: str) -> str:
        """The text of one file; `BuildError` names the files there are."""
        try:
            return self.files[path]
        except KeyError:
            raise BuildError(f"no generated file is called {path!r}; there are {', '.join(self.files)}") from None

    def write(self, folder: Path) -> None:
        """Write every file below ``folder`` (made when missing), with Unix line ends on every system."""
        write_files(self.files, folder)

    def __reduce__(self) -> tuple[type[Sources], tuple[str, str, dict[str, str]]]:
        # A mappingproxy does not pickle, and a Solver pickles with its sources.
        return (Sources, (self.name, self.digest, dict(self.files)))

    def __hash__(self) -> int:
        return hash((self.name, self.digest, tuple(self.files.items())))


def write_files(files: Mapping[str, str], folder: Path) -> None:
    """Write texts below ``folder`` by relative path, UTF-8 with Unix line ends."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="\n")


def files_digest(files: Mapping[str, str]) -> str:
    """SHA-256 over paths and texts; each is preceded by its length, so that no two sets of files collide."""
    digest = sha256()
    for path, text in sorted(files.items()):
        for part in (path.encode(), text.encode()):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
    return digest.hexdigest()


def _check_path(path: str) -> None:
    pure = PurePosixPath(path)
    if not path or pure.is_absolute() or ".." in pure.parts or "\\" in path or ":" in path:
        raise BuildError(f"the generated file {path!r} would leave its folder; expected a relative POSIX path")
