"""The files of the Python extension module, with all features and with few."""

from __future__ import annotations

import re

import pytest
from messages import raises

from kanegen.codegen.sources import SHARED, Features, include_closure, runtime_headers, wrapper_files
from kanegen.errors import BuildError
from kanegen.resources import template_folder

EXPLICIT = ("rk4", "dop853")
PLAIN = Features(events=False, impulses=False, inverse=False, methods=EXPLICIT)
SETS = [SHARED, PLAIN, Features(impulses=False, inverse=False), Features(events=False), Features(methods=EXPLICIT)]
INCLUDED = re.compile(r'(?:^ *include|^ *cdef extern from|#include) "([\w/.]+)"', re.MULTILINE)


@pytest.mark.parametrize("features", SETS)
def test_the_files_are_what_the_module_and_its_c_files_include(features: Features) -> None:
    """A file too few does not compile in an emitted package, and one too many is shipped for nothing."""
    files, headers = wrapper_files(features), runtime_headers()
    needed: set[str] = set()
    pending = ["module.pyx", *(name for name in files if name.endswith(".c"))]
    while pending:
        name = pending.pop()
        if name not in needed and name not in headers and name not in ("Python.h", "numpy/arrayobject.h"):
            needed.add(name)
            pending += INCLUDED.findall(files[name])
    assert set(files) == needed


def test_a_module_with_everything_has_all_files() -> None:
    assert set(wrapper_files()) == {path.name for path in (template_folder() / "module").iterdir()}


def test_a_model_without_contacts_needs_none_of_their_headers() -> None:
    everything = include_closure(wrapper_files(), runtime_headers())
    plain = include_closure(wrapper_files(PLAIN), runtime_headers(EXPLICIT))
    assert set(plain) < set(everything)
    others = ("kg_contact", "kg_mode_", "kg_modes", "kg_hybrid", "kg_inverse", "kg_rosenbrock")
    assert not {name for name in plain if name.startswith(others)}


def test_the_closure_follows_includes_of_includes() -> None:
    available = {"a.h": '#include "b.h"\n#include <math.h>', "b.h": '  #  include "a.h"', "c.h": ""}
    assert list(include_closure({"x.c": '#include "a.h"', "x.pyx": '#include "none.h"'}, available)) == ["a.h", "b.h"]
    with raises(BuildError, "d.h"):
        include_closure({"x.c": '#include "d.h"'}, available)
