"""What identifies a task: the same in every process, and another one for other code or values."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sweep_tasks import twice

import kanegen as kg
from kanegen.sweeps.fingerprint import _words


def words(value: Any) -> tuple[str, ...]:
    return tuple(_words(value, ()))


@dataclass(frozen=True)
class Task:
    factor: float
    names: frozenset[str] = frozenset({"a", "b"})

    def __call__(self, solver: Any, member: Any) -> Any:
        return {"x": self.factor}

    def other(self, solver: Any, member: Any) -> Any:
        return {"x": -self.factor}


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value = value


def with_default(factor: float) -> Any:
    def task(solver: Any, member: Any, scale: float = factor) -> Any:
        return {"x": scale}

    return task


def recursive() -> Any:
    def task(solver: Any, member: Any) -> Any:
        return task

    return task


PAIRS = {
    "field": (Task(1.0), Task(2.0)),
    "set": (Task(1.0), Task(1.0, frozenset({"a", "c"}))),
    "method": (Task(1.0).other, Task(2.0).other),
    "methods": (Task(1.0).other, Task(1.0).__call__),
    "argument": (partial(max, 1), partial(max, 2)),
    "keyword": (partial(max, key=abs), partial(max, key=len)),
    "array": (np.arange(3.0), np.arange(3)),
    "gains": (kg.Baumgarte(G1=-np.eye(40), G2=-np.eye(40)), kg.Baumgarte(G1=-np.eye(40), G2=-2 * np.eye(40))),
    "slots": (Slotted(1.0), Slotted(2.0)),
    "default": (with_default(1.0), with_default(2.0)),
    "code": (eval("lambda solver, member: 1"), eval("lambda solver, member: 2")),
    "class": (Task, Slotted),
    "brackets": ([["a"], "b"], [["a", "b"]]),
    "nesting": (["ab", ["c"]], ["ab", "c"]),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_other_values_and_other_code_are_seen(pair: tuple[Any, Any]) -> None:
    first, second = pair
    assert words(first) == words(first)
    assert words(first) != words(second)


def test_objects_that_contain_themselves_have_an_end() -> None:
    ring: list[Any] = [1.0]
    ring.append(ring)
    assert words(ring)
    assert words(recursive()) == words(recursive())


def test_the_words_are_the_same_in_every_process() -> None:
    """Sets of texts have another order in each process."""
    task = "partial(sweep_tasks.twice, {'abc', 'de', 'f', 'g', 'hi'}, 0.1)"
    imports = "import sweep_tasks; from functools import partial; from kanegen.sweeps.fingerprint import _words"
    code = f"{imports}; print(list(_words({task}, ())))"
    folders = Path(__file__).resolve().parents
    environment = {"PYTHONPATH": f"{folders[1] / 'support'}:{folders[2]}", "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(list(words(partial(twice, {"abc", "de", "f", "g", "hi"}, 0.1))))
