"""The code of templates and rendered headers are computed once on a machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kanegen.backends.cython import generator
from kanegen.backends.cython.cache import GENERATOR_NOTE, Cache, open_cache
from kanegen.codegen import sources
from kanegen.codegen.kept import TEXTS
from kanegen.codegen.sources import RENDERED, render, runtime_headers


def forget() -> None:
    """What a new process has forgotten."""
    generator._seen.clear()
    sources._runtime_headers.cache_clear()
    sources.environment.cache_clear()
    TEXTS.clear()


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    """A cache in which one process has left its texts."""
    forget()
    cache = open_cache(tmp_path)
    with generator.known_texts(cache):
        runtime_headers()
        render("project/new_model.py.jinja", name="first")
    yield cache
    forget()


def test_a_later_process_renders_no_headers_and_compiles_no_templates(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers, model = runtime_headers(), render("project/new_model.py.jinja", name="first")
    forget()
    with generator.known_texts(cache):
        monkeypatch.setattr(sources, "_rendered_headers", None)
        assert runtime_headers() == headers
        monkeypatch.setattr(type(sources.environment()), "compile", None)
        assert render("project/new_model.py.jinja", name="first") == model


@pytest.mark.parametrize("change", ["text", "version", "code"])
def test_texts_that_do_not_belong_to_this_version_are_replaced(
    change: str, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = cache.read_note(GENERATOR_NOTE)
    if change == "version":
        monkeypatch.setattr("sys.version", "3.99")
    else:
        name = RENDERED[0] if change == "text" else min(note.keys() - set(RENDERED))
        cache.write_note(GENERATOR_NOTE, {**note, name: "A" + note[name]})
    forget()
    with generator.known_texts(cache):
        assert not TEXTS
        runtime_headers()
    assert {name: cache.read_note(GENERATOR_NOTE)[name] for name in RENDERED} == {name: note[name] for name in RENDERED}


def test_later_processes_add_texts(cache: Cache) -> None:
    first = cache.read_note(GENERATOR_NOTE)
    forget()
    with generator.known_texts(cache):
        sources.environment().get_template("kernel/kernel.h.jinja")
    second = cache.read_note(GENERATOR_NOTE)
    assert len(second) == len(first) + 1
    assert first.keys() < second.keys()


def test_clear_removes_the_texts(cache: Cache) -> None:
    cache.clear()
    assert cache.read_note(GENERATOR_NOTE) == {}
