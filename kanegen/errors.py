"""The errors that kanegen raises. Each message says what was found, what was expected, where, and what to do."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from numbers import Number
from pathlib import Path


class KanegenError(Exception):
    """Base class of all errors that kanegen raises on purpose."""


class ModelError(KanegenError, ValueError):
    """An invalid description of a system.

    All problems of a model are reported together: ``problems`` contains one sentence for each of them.
    """

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems: tuple[str, ...] = (problems,) if isinstance(problems, str) else tuple(problems)
        if len(self.problems) == 1:
            text = self.problems[0]
        else:
            text = f"{len(self.problems)} problems:\n" + "\n".join(f"  - {p}" for p in self.problems)
        super().__init__(text)


def brief(value: object) -> str:
    """A value as part of a message: its ``repr``, shortened; integers of thousands of digits have none.

    Numbers of NumPy are written as those of Python: ``nan``, not ``np.float64(nan)``.
    """
    try:
        text = repr(value.item() if isinstance(value, Number) and hasattr(value, "item") else value)
    except Exception:  # of any class of the user
        return f"a {type(value).__name__} that cannot be displayed"
    return text if len(text) <= 200 else f"{text[:150]} ... {text[-40:]}"


def text_of(value: object) -> str:
    """The text of a label or a key of any type; of a value without one, a description."""
    try:
        return str(value)
    except Exception:  # of any class of the user
        return brief(value)


class ModelWarning(UserWarning):
    """Something in a description is legal but probably a mistake, or could not be checked."""


def warn_user(message: str) -> None:
    """Issue a :class:`ModelWarning` that points at the line of the user's code from which kanegen was called."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "kanegen":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, ModelWarning, stacklevel=level)


class DerivationError(KanegenError):
    """An expression cannot be derived or lowered; the message names it in the user's symbols."""


class BuildError(KanegenError, RuntimeError):
    """A build failed: ``command``, its complete ``stderr``, and the ``folder`` that was kept for inspection."""

    def __init__(
        self, message: str, *, command: Sequence[str] = (), stderr: str = "", folder: Path | None = None
    ) -> None:
        self.command = tuple(command)
        self.stderr = stderr
        self.folder = folder
        parts = [message]
        if command:
            parts.append("command: " + " ".join(command))
        if folder is not None:
            parts.append(f"kept for inspection: {folder}")
        if stderr:
            parts.append(stderr.rstrip())
        super().__init__("\n".join(parts))


class SolveError(KanegenError, RuntimeError):
    """The equations cannot be evaluated or integrated for this state or argument."""


class FileError(SolveError, OSError):
    """A file that cannot be read or written, is damaged, or has another format than its name or its use says."""


class VerificationError(KanegenError, AssertionError):
    """Equations or compiled code violate an identity or a principle; ``report`` is the table of checks, or None."""

    def __init__(self, message: str, report: object = None) -> None:
        self.report = report
        super().__init__(message)
