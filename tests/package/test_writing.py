"""Files are replaced completely or not at all: on a full disk, after a kill, and whatever was there before."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checkout import SUPPORT, environment
from messages import raises, says
from systems import solver_for

import kanegen as kg
from kanegen.results import Page
from kanegen.writing import replace_files, replacing, write_folder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits of files and signals are those of POSIX")


def faults(trials: int, seed: int, *outputs: str) -> dict[str, int]:
    """The trials of tests/support/faulty_disk.py by fault and what it left. Fails if an earlier file is lost."""
    command = [sys.executable, str(SUPPORT / "faulty_disk.py"), str(trials), str(seed), *outputs]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["problems"] == []
    assert sum(report["counts"].values()) == trials * len(outputs)
    return dict(report["counts"])


def test_full_disks_and_kills_leave_the_earlier_files() -> None:
    counts = faults(5, 1, "nc", "animation", "fmu", "sweep")
    for output in ("nc", "animation", "fmu", "sweep"):
        assert counts[f"{output}, full: earlier"] == 1
    for fault in ("cut", "rename", "denied"):
        assert counts[f"nc, {fault}: earlier"] == 1


OUTPUTS = ("nc", "csv", "npz", "parquet", "animation", "report", "project", "casadi", "fmu", "sources", "sweep")


@pytest.mark.campaign
@pytest.mark.parametrize("output", OUTPUTS)
def test_many_full_disks_and_kills_leave_the_earlier_files(output: str) -> None:
    faults(30, 2, output)


def test_an_exception_in_the_block_leaves_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("earlier")

    def interrupted() -> None:
        with replacing(path) as file:
            file.write(b"half of")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "earlier"
    assert [*tmp_path.iterdir()] == [path]


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("earlier")
    path.chmod(0o640)
    link.symlink_to(path)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_devices_are_written_directly() -> None:
    assert Page("title", "<p>text</p>").save(os.devnull) == Path(os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root can write everywhere")
def test_a_file_that_is_read_only_stays(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("earlier")
    path.chmod(0o444)
    with raises(kg.FileError, "page.html", "permission"):
        Page("title", "<p>text</p>").save(path)
    assert path.read_text() == "earlier"


def test_a_project_is_taken_back_if_one_file_cannot_be_moved(tmp_path: Path) -> None:
    files = {name: f"new {name}" for name in ("a.c", "b/b.c", "c.c")}
    replace_files({name: f"old {name}" for name in files if name != "c.c"}, tmp_path / "project")
    (tmp_path / "project" / "c.c").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_files(files, tmp_path / "project")
    assert (tmp_path / "project" / "a.c").read_text() == "old a.c"
    assert (tmp_path / "project" / "b" / "b.c").read_text() == "old b/b.c"
    assert [item.name for item in tmp_path.iterdir()] == ["project"]


def test_errors_of_files_are_named(tmp_path: Path) -> None:
    """They were `OSError` of saving a solution, `SolveError` of a page; a FileError is both."""
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "none" / "x", tmp_path / "file" / "x"):
        with raises(kg.FileError, str(path), "cannot be written") as caught:
            Page("title", "<p>text</p>").save(path)
        assert isinstance(caught.value, OSError)
        assert isinstance(caught.value, kg.SolveError)
    with raises(kg.FileError, "cannot be written", str(tmp_path / "file")):
        solver_for("slider_crank").sources.write(tmp_path / "file")


def test_names_and_links_that_lead_nowhere_are_refused(tmp_path: Path) -> None:
    """The first was an `OSError`, the second a missing permission, the third a `RuntimeError` or replaced by a file."""
    (tmp_path / "away").symlink_to(tmp_path / "none" / "x")
    (tmp_path / "loop").symlink_to("loop")
    for name, words in (("x" * 300, ("too long",)), ("away", ("no folder", "none")), ("loop", ("link", "itself"))):
        with raises(kg.FileError, name, "cannot be written", *words):
            Page("title", "<p>text</p>").save(tmp_path / name)
    with pytest.raises(OSError, match="link"), replacing(tmp_path / "loop"):
        pass
    for folder in (tmp_path / "loop", tmp_path / "loop" / "project"):  # it was "File exists"
        with raises(kg.BuildError, "link", "itself"):
            write_folder({"a.c": ""}, folder, "a.c")
    assert sorted(item.name for item in tmp_path.iterdir() if item.is_symlink()) == ["away", "loop"]


@pytest.mark.parametrize("name", ["motion.mp4", "motion.gif", "report.pdf", "page.html.nc"])
def test_a_page_has_the_name_of_a_page(tmp_path: Path, name: str) -> None:
    """It was HTML in a file that is called a film, a picture or data."""
    with raises(kg.FileError, name, "HTML", ".html"):
        Page("title", "<p>text</p>").save(tmp_path / name)
    assert not [*tmp_path.iterdir()]


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with raises(kg.FileError, "page.html") as caught:
        Page("title", "<p>text</p>").save(tmp_path / "page.html")
    says(caught.value, "No space left on device")
    assert not [*tmp_path.iterdir()]
