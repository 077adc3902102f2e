"""The record of generated files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from messages import raises

from kanegen.codegen.sources import Sources, files_digest
from kanegen.errors import BuildError

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
