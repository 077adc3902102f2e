"""What became of a sample of predictive control."""

from __future__ import annotations

from enum import IntEnum


class SampleStatus(IntEnum):
    """The status of a sample, with a ``label`` for users; C code has the same numbers."""

    label: str

    def __new__(cls, number: int, label: str) -> SampleStatus:
        member = int.__new__(cls, number)
        member._value_ = number
        member.label = label
        return member

    @classmethod
    def of(cls, number: int) -> SampleStatus:
        """The status with a number."""
        return next(status for status in cls if status == number)

    SOLVED = (0, "solved")
    VIOLATED = (1, "solved; bounds of states or conditions cannot be met, and are violated as little as possible")
    INEXACT = (2, "the quadratic program was not solved to its tolerance; the inputs are within their bounds")
    FAILED = (3, "the prediction has no finite value; the inputs are those of the plan before")
    INVALID = (4, "the time or the state is not finite; the inputs are those of the plan before")
    UNUSED = (5, "there was no sample yet")
