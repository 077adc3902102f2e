"""One line of the table of numbers: a measurement and its target."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """The values a number shall reach: ``at_least`` and, better, ``goal``. If ``goal < at_least``, less is better."""

    at_least: float
    goal: float
    unit: str

    def verdict(self, measured: float) -> str:
        """``"goal"``, ``"met"`` or ``"missed"``."""
        sign = 1.0 if self.goal >= self.at_least else -1.0
        if sign * measured >= sign * self.goal:
            return "goal"
        return "met" if sign * measured >= sign * self.at_least else "missed"


@dataclass(frozen=True)
class Result:
    """A measured number; ``measured`` is None when there is no peer, and ``detail`` says why.

    ``judged`` is False for a smaller problem than the one that the target is for.
    """

    what: str
    measured: float | None
    target: Target
    detail: str
    judged: bool = True

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "no peer"
        return self.target.verdict(self.measured) if self.judged else "not judged"


def seconds_text(seconds: float) -> str:
    """A duration with a suitable unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
