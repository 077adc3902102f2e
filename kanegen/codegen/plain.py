"""Frozen records as plain values of JSON and back, by the types of their fields."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

from kanegen.model.records import FrozenMapping


def to_plain(value: Any) -> Any:
    """Dictionaries, lists, numbers and strings in place of records, mappings and tuples; infinity as text."""
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


def from_plain(kind: Any, value: Any) -> Any:
    """The value of type ``kind`` that :func:`to_plain` wrote.

    Supported are dataclasses, ``tuple``, ``Mapping`` with text as keys, ``X | None``, float, and what JSON has itself.

    Raises
    ------
    ValueError
        When ``value`` does not have the structure of ``kind``.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        types = _field_types(kind)
        if not isinstance(value, dict) or set(value) != set(types):
            given = sorted(value) if isinstance(value, dict) else type(value).__name__
            raise ValueError(f"{given}, expected {sorted(types)}")
        return kind(**{name: from_plain(types[name], item) for name, item in value.items()})
    if NoneType in arguments:
        return None if value is None else from_plain(arguments[0], value)
    if origin is Mapping:
        return FrozenMapping((key, from_plain(arguments[1], item)) for key, item in value.items())
    if origin is tuple:
        kinds = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
        return tuple(from_plain(each, item) for each, item in zip(kinds, value, strict=True))
    return float(value) if kind is float else value


@cache
def _field_types(record: Any) -> dict[str, Any]:
    types = get_type_hints(record)
    return {field.name: types[field.name] for field in fields(record)}
