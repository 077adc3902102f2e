"""The forms of the equations of motion: one table that every layer reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True)
class FormSpec:
    """A form of the equations of motion and its properties.

    ``name``, ``summary``: the value of ``form=``, and what the form solves.
    ``partitioned``: it solves for dependent speeds; where the pivots of the model's own partition become too small,
    code that chooses dependent speeds at run time takes over.
    ``any_rank``: it accepts constraint rows that depend on each other.
    ``definite``: it needs a positive definite Q: every speed must move mass.
    ``candidate``: ``form="auto"`` may choose it, with at most ``speed_limit`` speeds; None for any number.
    ``momenta``: the state of an integration is (q, mom) in place of (q, u); ``rhs`` is that of the reduced form.
    ``functions``: functions that are always compiled with this form.
    """

    name: str
    summary: str
    partitioned: bool = False
    any_rank: bool = False
    definite: bool = False
    candidate: bool = False
    speed_limit: int | None = None
    momenta: bool = False
    functions: tuple[str, ...] = ()


WRITTEN_OUT_LIMIT: Final = 32
"""Speed limit of forms that write out the factors of Q: with more speeds, compiling takes longer than most runs. With
20 speeds of a chain such code is 1.5 to 2 times as fast as the loops of the reduced form."""

_MOMENTA: Final = ("momentum", "Dm", "e")
_TABLE: Final = (
    FormSpec("reduced", "A2 Q A2^T for the independent accelerations", partitioned=True, candidate=True),
    FormSpec("nonminimal", "T u' = V by LU with pivoting", partitioned=True, candidate=True),
    FormSpec(
        "range_space",
        "J Q^-1 J^T for the multipliers, without a branch",
        definite=True,
        candidate=True,
        speed_limit=WRITTEN_OUT_LIMIT,
    ),
    FormSpec("augmented", "the same with Q + J^T W J for Q, which may be singular"),
    FormSpec(
        "canonical",
        "orthogonal parts of u'; redundant constraints allowed",
        any_rank=True,
        definite=True,
        functions=("rank", "acceleration_parts"),
    ),
    FormSpec(
        "pseudoinverse",
        "generalized inverse of J Q^-1/2; redundant constraints allowed",
        any_rank=True,
        definite=True,
        functions=("rank",),
    ),
    FormSpec("momentum", "reduced momenta in place of speeds", momenta=True, functions=("Dm", "e")),
    FormSpec("momentum_unreduced", "momenta of all speeds in place of speeds", momenta=True, functions=_MOMENTA),
    FormSpec("hamilton", "Hamilton's equations, for speeds u = q'", momenta=True, functions=_MOMENTA),
)

FORMS: Final[Mapping[str, FormSpec]] = MappingProxyType({form.name: form for form in _TABLE})
"""Every form by name, in the order in which ``form="auto"`` prefers forms of equal cost."""

AUTO: Final = "auto"
"""The value of ``form=`` for the candidate with the least estimated cost."""
