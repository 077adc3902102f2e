"""The table of `make mutate`: every place that it changes still exists."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
from checkout import ROOT


def _load() -> ModuleType:
    """The script, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("mutate", ROOT / "tests" / "mutations" / "mutate.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MUTATIONS = _load().mutations()


@pytest.mark.parametrize("name", MUTATIONS)
def test_the_place_of_a_mutation_exists_once(name: str) -> None:
    """Where a place has moved or was reworded, so must its entry in tests/mutations/mutations.toml."""
    mutation = MUTATIONS[name]
    text = (ROOT / mutation.file).read_text(encoding="utf-8")
    assert mutation.mutated(ROOT) != text
    assert all((ROOT / test).exists() for test in mutation.tests)


def test_there_are_enough_mutations() -> None:
    assert len(MUTATIONS) >= 40
    assert len({(mutation.file, mutation.old) for mutation in MUTATIONS.values()}) == len(MUTATIONS)
