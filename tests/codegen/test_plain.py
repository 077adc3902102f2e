"""Records as plain values of JSON and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from messages import raises

from kanegen.codegen.description import from_plain, to_plain
from kanegen.model.records import FrozenMapping


@dataclass(frozen=True)
class Part:
    limits: tuple[float, float]
    default: float | None = None


@dataclass(frozen=True)
class Whole:
    name: str
    shapes: Mapping[str, tuple[int, ...]]
    parts: tuple[Part, ...]
    last: Part | None = None


WHOLE = Whole("w", FrozenMapping({"a": (), "b": (2, 3)}), (Part((-math.inf, 1.5)), Part((0.0, math.inf), 2.0)))


@pytest.mark.parametrize("record", [WHOLE, Whole("v", FrozenMapping(), (), Part((0.1, 0.2)))])
def test_records_survive_json(record: Whole) -> None:
    text = json.dumps(to_plain(record), allow_nan=False)
    assert from_plain(Whole, json.loads(text)) == record


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"name": 1, "more": 2}, "more"),
        ({"parts": [{"limits": [0.0, 1.0]}]}, "default"),
        ({"parts": [{"limits": [0.0], "default": None}]}, "shorter"),
    ],
)
def test_other_structures_are_refused(change: dict[str, object], name: str) -> None:
    with raises(ValueError, name):
        from_plain(Whole, {**to_plain(WHOLE), **change})
