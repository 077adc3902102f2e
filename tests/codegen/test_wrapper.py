"""The files of the Python extension module, with all features and with few."""

from __future__ import annotations

import re

import pytest

from kanegen.codegen.environment import include_closure, runtime_headers
from kanegen.codegen.wrapper import Features, wrapper_files
from kanegen.errors import BuildError

PLAIN = Features(events=False, solver=False)


@pytest.mark.parametrize("features", [Features(), PLAIN, Features(solver=False), Features(events=False)])
def test_a_module_includes_exactly_its_files(features: Features) -> None:
    files = wrapper_files(features)
    included = re.findall(r'^include "(.*)"', files["module.pyx"], re.MULTILINE)
    assert {name for name in files if name.endswith(".pxi")} == set(included)


def test_a_model_without_contacts_needs_none_of_their_headers() -> None:
    everything = include_closure(wrapper_files(), runtime_headers())
    plain = include_closure(wrapper_files(PLAIN), runtime_headers())
    assert set(plain) < set(everything)
    assert {"kg_hybrid.h", "kg_contact.h", "kg_inverse.h"} & set(everything) - set(plain)
    assert not {
        name for name in plain if name.startswith(("kg_contact", "kg_mode_", "kg_modes", "kg_hybrid", "kg_inverse"))
    }


def test_the_closure_follows_includes_of_includes() -> None:
    available = {"a.h": '#include "b.h"\n#include <math.h>', "b.h": '  #  include "a.h"', "c.h": ""}
    assert list(include_closure({"x.c": '#include "a.h"', "x.pyx": '#include "none.h"'}, available)) == ["a.h", "b.h"]
    with pytest.raises(BuildError, match=r"'d\.h'"):
        include_closure({"x.c": '#include "d.h"'}, available)
