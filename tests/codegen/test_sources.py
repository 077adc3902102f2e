"""The record of generated files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from messages import raises

from kanegen.codegen.environment import runtime_headers
from kanegen.codegen.sources import Sources, files_digest, wrapper_files
from kanegen.errors import BuildError
from kanegen.resources import template_folder

DIGEST = "0123456789abcdef"


def test_files_are_sorted_and_frozen() -> None:
    sources = Sources("m", DIGEST, {"z.h": "z", "m.c": "m"})
    assert list(sources.files) == ["m.c", "z.h"]
    assert sources.kernel == "m.c"
    assert sources.text("z.h") == "z"
    assert not hasattr(sources.files, "__setitem__")
    assert len({sources, Sources("m", DIGEST, {"m.c": "m", "z.h": "z"})}) == 1


@pytest.mark.parametrize(
    ("name", "digest", "files", "names"),
    [
        ("a b", DIGEST, {}, ("'a b'", "C identifier")),
        ("m", "XYZ", {}, ("digest", "'XYZ'")),
        ("m", DIGEST, {"n.c": ""}, ("'m.c'",)),
        ("m", DIGEST, {"m.c": b""}, ("bytes", "str")),
        ("m", DIGEST, {"m.c": "", "../x": ""}, ("'../x'", "folder")),
        ("m", DIGEST, {"m.c": "", "/x": ""}, ("'/x'", "folder")),
    ],
)
def test_records_check_themselves(name: str, digest: str, files: Any, names: tuple[str, ...]) -> None:
    with raises(BuildError, *names):
        Sources(name, digest, files)


def test_a_missing_file_lists_those_there_are() -> None:
    with raises(BuildError, "'x'", "m.c"):
        Sources("m", DIGEST, {"m.c": ""}).text("x")


def test_write_makes_folders(tmp_path: Path) -> None:
    Sources("m", DIGEST, {"m.c": "é\n", "a/b.h": "b\n"}).write(tmp_path)
    assert (tmp_path / "m.c").read_bytes() == "é\n".encode()
    assert (tmp_path / "a" / "b.h").read_text(encoding="utf-8") == "b\n"


def test_digest_separates_paths_from_texts() -> None:
    assert files_digest({"ab": "c"}) != files_digest({"a": "bc"})
    assert files_digest({"a": "1", "b": "2"}) == files_digest({"b": "2", "a": "1"})


INCLUDED = re.compile(r'(?:^ *include|^ *cdef extern from|#include) "([\w/.]+)"', re.MULTILINE)


def test_the_wrapper_is_what_its_module_and_c_files_include() -> None:
    """A file too few does not compile in an emitted package, and one too many is shipped for nothing."""
    files, headers = wrapper_files(), runtime_headers()
    needed: set[str] = set()
    pending = ["module.pyx", *(name for name in files if name.endswith(".c"))]
    while pending:
        name = pending.pop()
        if name not in needed and name not in headers and name not in ("Python.h", "numpy/arrayobject.h"):
            needed.add(name)
            pending += INCLUDED.findall(files[name])
    assert set(files) == needed
    assert set(files) == {path.name for path in template_folder().glob("module*")}
    assert all(text == (template_folder() / name).read_text(encoding="utf-8") for name, text in files.items())
