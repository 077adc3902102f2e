"""The forms of the equations of motion: one table that every layer reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True)
class FormSpec:
    """A form of the equations of motion and its properties.

    ``name``, ``summary``: the value of ``form=``, and the system that the form solves.
    ``repartitions``: where pivots of the straight-line code become too small, the compiled code solves the constraints
    for dependent speeds that it chooses at run time.
    ``any_rank``: the form accepts linearly dependent constraint rows.
    ``definite``: the form needs a positive definite Q: every speed must move mass.
    ``symmetric``: the form needs a symmetric matrix of the accelerations, which loads in u' can make unsymmetric.
    ``candidate``: ``form="auto"`` can choose the form.
    ``written_out``: the code contains the factorization of Q without loops; ``form="auto"`` chooses the form up to
    `WRITTEN_OUT_LIMIT` operations.
    ``recursive``: the code follows the bodies from the tips to the root; ``form="auto"`` considers the form for more
    than `FEW_SPEEDS` speeds.
    ``momenta``: the state of an integration is (q, mom) instead of (q, u); ``rhs`` is that of the reduced form, or of
    the nonminimal form if the matrix of the accelerations is unsymmetric.
    ``functions``: functions that are always compiled with the form.
    """

    name: str
    summary: str
    repartitions: bool = False
    any_rank: bool = False
    definite: bool = False
    symmetric: bool = False
    candidate: bool = False
    written_out: bool = False
    recursive: bool = False
    momenta: bool = False
    functions: tuple[str, ...] = ()


WRITTEN_OUT_LIMIT: Final = 14_000
"""Most operations of a factorization and its solves in straight-line code that ``form="auto"`` accepts: those of a full
matrix of 32 unknowns, or of thousands of unknowns in a chain or a net of springs. With more operations, compiling takes
longer than most runs. For a chain with 26 speeds this code is 1.6 times as fast as the loops of the reduced form.
"""

FEW_SPEEDS: Final = 8
"""Most speeds for which ``form="auto"`` does not consider recursive forms: a dense system takes at most a tenth more
time then, and often less."""

RECURSIVE_LIMIT: Final = 500
"""Most entries of matrices for each speed and multiplier in a recursive form that ``form="auto"`` considers. Chains,
trees and chains of loops take 10 to 100; bodies that are all coupled with each other exceed any number."""

_MOMENTA: Final = ("momentum", "Dm", "e")
_TABLE: Final = (
    FormSpec(
        "reduced", "A2 Q A2^T for the independent accelerations", repartitions=True, symmetric=True, candidate=True
    ),
    FormSpec("nonminimal", "T u' = V by LU with pivoting", repartitions=True, candidate=True),
    FormSpec(
        "range_space",
        "J Q^-1 J^T for the multipliers, without a branch",
        definite=True,
        symmetric=True,
        candidate=True,
        written_out=True,
    ),
    FormSpec(
        "articulated",
        "velocities of the bodies, one after the other, in operations of order n",
        repartitions=True,
        symmetric=True,
        candidate=True,
        recursive=True,
    ),
    FormSpec(
        "augmented",
        "the range-space system with Q + J^T W J in place of Q; Q can be singular",
        repartitions=True,
        symmetric=True,
    ),
    FormSpec(
        "canonical",
        "orthogonal parts of u'; redundant constraints allowed",
        any_rank=True,
        definite=True,
        symmetric=True,
        functions=("rank", "acceleration_parts"),
    ),
    FormSpec(
        "pseudoinverse",
        "generalized inverse of J Q^-1/2; redundant constraints allowed",
        any_rank=True,
        definite=True,
        symmetric=True,
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
