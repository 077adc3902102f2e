"""Checks of what users read: a message names their symbols, numbers and options, in whatever words it does so.

``with raises(ModelError, "u1", "kinematics"): ...`` passes if the block raises a ModelError whose message contains both
names, in any order. A sentence can then be reworded without touching a test, but not lose what the user needs: which
symbol, which value, and what to write instead (``"derivatives="``, ``"kg.Baumgarte"``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

E = TypeVar("E", bound=BaseException)


def says(message: object, *names: object) -> None:
    """Assert that the message contains every name or number as a whole: ``x`` is not in ``max``, nor 1 in 10 or 1.5."""
    __tracebackhide__ = True
    absent = [str(name) for name in names if not _contains(str(message), str(name))]
    assert not absent, f"the message does not say {', '.join(map(repr, absent))}:\n{message}"


def says_one(messages: Iterable[object], *names: object) -> None:
    """Assert that one of the messages contains every name."""
    __tracebackhide__ = True
    listed = [str(message) for message in messages]
    complete = [m for m in listed if all(_contains(m, str(name)) for name in names)]
    assert complete, "no message says " + ", ".join(str(n) for n in names) + ":\n" + "\n".join(listed)


def _contains(message: str, name: str) -> bool:
    """A name that starts or ends with a letter or digit starts or ends a word there; a number is the whole number."""
    start = r"(?<!\w)(?<!\d\.)" if re.match(r"\w", name) else ""
    end = r"(?!\w)(?!\.\d)" if re.search(r"\w\Z", name) else ""
    return re.search(start + re.escape(name) + end, message) is not None


@contextmanager
def raises(error: type[E] | tuple[type[E], ...], *names: object) -> Iterator[pytest.ExceptionInfo[E]]:
    """``pytest.raises`` for an error whose message contains the names; see :func:`says`."""
    __tracebackhide__ = True
    with pytest.raises(error) as caught:
        yield caught
    says(caught.value, *names)


@contextmanager
def warns(category: type[Warning], *names: object) -> Iterator[Any]:
    """``pytest.warns`` for a warning whose message contains the names; see :func:`says`."""
    __tracebackhide__ = True
    with pytest.warns(category) as caught:
        yield caught
    says("\n".join(str(w.message) for w in caught if issubclass(w.category, category)), *names)
