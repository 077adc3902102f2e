"""The generated files of one model: the record, the templates, the headers of the C runtime, and the Python module.

Templates contain layout only; Python code decides what they print. Unknown names in a template are errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Final

from kanegen.codegen.kept import TEXTS
from kanegen.codegen.methods.table import IMPLICIT, NAMES
from kanegen.codegen.structs import cython_structs
from kanegen.codes import CONTACT_GUARDS, REGULARIZED, ContactLaw, EventKind, Mode, Paradox, Status, SwitchShape
from kanegen.errors import BuildError, FileError
from kanegen.resources import template_folder
from kanegen.run_options import C_TYPES, StepOptions, table
from kanegen.writing import reason, replace_files

_STEM = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DIGEST = re.compile(r"[0-9a-f]{16,128}")


@dataclass(frozen=True)
class Sources:
    """All files that the generator writes for one model.

    ``name`` is the C-safe stem of the kernel file, ``digest`` the model digest (lower-case hexadecimal),
    ``files`` maps relative POSIX paths to text, in sorted order; it contains at least ``<name>.c``.
    Raises `BuildError` for other names, digests, paths and texts.
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
        """The text of one file. Raises `BuildError`, which lists the files, if there is no such file."""
        try:
            return self.files[path]
        except KeyError:
            raise BuildError(f"no generated file is called {path!r}; there are {', '.join(self.files)}") from None

    def write(self, folder: Path) -> None:
        """Write all files below ``folder``, or none; it is created if it is missing. Line ends are those of Unix.

        Raises `FileError` if they cannot be written.
        """
        try:
            replace_files(self.files, folder)
        except OSError as error:
            raise FileError(f"the sources cannot be written into {folder}: {reason(error)}") from error

    def __reduce__(self) -> tuple[type[Sources], tuple[str, str, dict[str, str]]]:
        # A mappingproxy does not pickle, and a Solver pickles with its sources.
        return (Sources, (self.name, self.digest, dict(self.files)))

    def __hash__(self) -> int:
        return hash((self.name, self.digest, tuple(self.files.items())))


def text_digest(parts: Iterable[str]) -> str:
    """SHA-256 over texts; the length precedes each text, so that different sequences give different digests."""
    digest = sha256()
    for part in parts:
        digest.update(len(part.encode()).to_bytes(8, "little") + part.encode())
    return digest.hexdigest()


def files_digest(files: Mapping[str, str]) -> str:
    """SHA-256 over paths and texts."""
    return text_digest(part for file in sorted(files.items()) for part in file)


def _check_path(path: str) -> None:
    pure = PurePosixPath(path)
    if not path or pure.is_absolute() or ".." in pure.parts or "\\" in path or ":" in path:
        raise BuildError(f"the generated file {path!r} is outside its folder; expected a relative POSIX path")


RUNTIME: Final = "runtime"
MODULE: Final = "module"
"""Folders of the templates: the headers of the runtime, and the Python module."""

RENDERED: Final = ("kg_codes.h", "kg_options.h", "kg_methods.h", "kg_tableaux.h", "kg_rosenbrock.h")
"""Headers of the runtime that are rendered from tables."""

STEP_OPTIONS: Final = table(StepOptions)

_INCLUDE = re.compile(r'^ *# *include "([^"]+)"', re.MULTILINE)


@cache
def environment() -> Any:
    """The ``jinja2.Environment`` that renders every template; created once per process."""
    # A model from the cache needs no templates and no coefficients.
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    from kanegen.codegen import filters
    from kanegen.codegen.template_code import TemplateCode

    result = Environment(
        bytecode_cache=TemplateCode(),
        loader=FunctionLoader(_template_text),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    result.filters.update(filters.FILTERS)
    return result


def render(template: str, **context: object) -> str:
    """The text of one template, with Unix line ends and a newline at the end.

    Raises
    ------
    jinja2.TemplateNotFound, jinja2.UndefinedError
        If there is no such template, or if it uses a name that is not in ``context``.
    """
    text: str = environment().get_template(template).render(**context)
    return text


def runtime_headers(methods: Iterable[str] = NAMES) -> dict[str, str]:
    """Every header of the C runtime, file name to text, sorted; headers of codes and methods are rendered.

    ``methods``: names of the integration methods that the headers contain.
    """
    return dict(_runtime_headers(tuple(methods)))


@cache
def _runtime_headers(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    entries = (template_folder() / RUNTIME).iterdir()
    headers = {entry.name: entry.read_text(encoding="utf-8") for entry in entries if entry.name.endswith(".h")}
    if names != NAMES:
        return tuple(sorted((headers | _rendered_headers(names)).items()))
    if any(name not in TEXTS for name in RENDERED):
        TEXTS.update(_rendered_headers(names))
    return tuple(sorted((headers | {name: TEXTS[name] for name in RENDERED}).items()))


def _rendered_headers(names: tuple[str, ...]) -> dict[str, str]:
    from kanegen.codegen.methods.files import METHODS

    methods = [METHODS[name] for name in names]
    codes = render(
        "headers/codes.h.jinja",
        statuses=list(Status),
        modes=list(Mode),
        regularized=REGULARIZED,
        contact_guards=CONTACT_GUARDS,
        laws=list(ContactLaw),
        paradoxes=list(Paradox),
        kinds=list(EventKind),
        shapes=list(SwitchShape),
    )
    texts = (
        codes,
        render("headers/options.h.jinja", options=STEP_OPTIONS, c_types=C_TYPES),
        render("headers/methods.h.jinja", methods=methods),
        render("headers/tableaux.h.jinja", methods=[m for m in methods if not m.is_implicit]),
        render("headers/rosenbrock.h.jinja", methods=[m for m in methods if m.is_implicit]),
    )
    return dict(zip(RENDERED, texts, strict=True))


def include_closure(files: Mapping[str, str], available: Mapping[str, str]) -> dict[str, str]:
    """The headers that C files include, directly or indirectly, and that are not among the files.

    ``files``: texts by path, ``available``: texts by name, whatever the folder in which a file expects them. The result
    is sorted by name; absolute paths, which need no copy, are left out. Raises `BuildError` for a header in neither
    argument.
    """
    own = {PurePosixPath(path).name for path in files}
    included: dict[str, str] = {}
    waiting = [text for path, text in files.items() if path.endswith((".c", ".h"))]
    while waiting:
        paths = map(PurePosixPath, _INCLUDE.findall(waiting.pop()))
        for name in {path.name for path in paths if not path.is_absolute()}:
            if name not in own and name not in included:
                if name not in available:
                    raise BuildError(f"the generated sources lack the runtime header {name!r}")
                included[name] = available[name]
                waiting.append(included[name])
    return dict(sorted(included.items()))


def _template_text(name: str) -> str | None:
    entry = template_folder() / name
    return entry.read_text(encoding="utf-8") if entry.is_file() else None


@dataclass(frozen=True)
class Features:
    """Features of the Python module besides evaluating functions and integrating smooth motion.

    A module with all features, which is the default, works with every model.

    Parameters
    ----------
    events
        Runs with contacts and events, and contacts at a state.
    impulses
        Speeds after impulses; included with ``events`` in any case.
    inverse
        Inverse dynamics along a motion.
    methods
        Names of the integration methods.
    is_shared
        The module serves all models: it is given the address of the description of a kernel, which is a library of its
        own; it calls code on vector lanes, too. Otherwise it is linked with the kernel.
    """

    events: bool = True
    impulses: bool = True
    inverse: bool = True
    methods: tuple[str, ...] = NAMES
    is_shared: bool = False

    @property
    def implicit_methods(self) -> bool:
        """Whether one of the methods needs the Jacobian of the right-hand side."""
        return any(name in IMPLICIT for name in self.methods)


SHARED: Final = Features(is_shared=True)
"""The module that kanegen compiles and loads itself."""

_MODULE_FILE = re.compile(r'^ *#?(?:include|cdef extern from) "(module_[^"]+)"', re.MULTILINE)


def wrapper_files(features: Features = SHARED) -> dict[str, str]:
    """The source of the Python module with these features, without the kernel: file name to text.

    These are the Cython module, the C files compiled with it, and the files that they include.
    """
    files: dict[str, str] = {}
    headers = "\n".join((*runtime_headers().values(), *wrapper_templates().values()))
    waiting = ["module.pyx", "module_steppers.c", "module_runtime.c"]
    while waiting:
        name = waiting.pop()
        if name not in files:
            files[name] = render(
                f"{MODULE}/{name}", has=features, options=STEP_OPTIONS, structs=partial(cython_structs, headers)
            )
            waiting += _MODULE_FILE.findall(files[name])
    return dict(sorted(files.items()))


@cache
def wrapper_templates() -> Mapping[str, str]:
    """The templates of the module, file name to text."""
    files = (template_folder() / MODULE).iterdir()
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(files) if file.is_file()}


@cache
def wrapper_digest() -> str:
    """SHA-256 of the templates of the shared module; rendering them would take longer than loading."""
    return files_digest({"features": repr(SHARED), "options": repr(STEP_OPTIONS), **wrapper_templates()})
