"""Checks."""

from typing import Any


def model_problems(model: Any, places: Any, strangers: Any) -> list[str]:
    return []
