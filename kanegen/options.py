"""What a user may choose at build time, checked once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from kanegen.errors import BuildError
from kanegen.forms import AUTO, FORMS

FUNCTION_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "forces": ("constraint_force", "multipliers"),
    "energies": ("kinetic_energy", "potential_energy", "energy"),
    "consistency": ("Q", "residuals", "displacements", "position_level", "velocity_level"),
    "jacobians": (
        *("jacobian_q", "jacobian_u", "jacobian_r", "jacobian_p", "jacobian_t"),
        *("residuals_q", "residuals_u", "residuals_r"),
        *("outputs_q", "outputs_u", "outputs_r"),
    ),
    "servo": ("control", "servo_matrix", "servo_right_side", "servo_residuals", "servo_gains", "feasibility"),
}
"""Names that stand for several functions."""

DEFAULT_FUNCTIONS: Final = (
    "rhs", "T", "V", "Q", "P", "J", "b", "A", "B", "constraint_force", "multipliers", "kinetic_energy",
    "potential_energy", "energy", "momentum", "residuals", "displacements", "position_level", "velocity_level",
    "outputs", "reactions", "old_speeds", "new_speeds", *FUNCTION_GROUPS["servo"], "control_forces", "kinematics",
)  # fmt: skip

EXTRA_FUNCTIONS: Final = (
    *("A1", "A2", "N", "L", "F", "Dm", "e", "rank", "acceleration_parts", "integrals", "underactuation"),
    *FUNCTION_GROUPS["jacobians"],
)
"""Functions that are compiled on request only."""


COMPANIONS: Final = {"control": ("servo_gains",)}
"""What is compiled with a function: the gains of servo-constraints are judged whenever parameters change."""


@dataclass(frozen=True)
class BuildOptions:
    """Form of the equations and functions to compile.

    ``form``: ``"auto"`` or one of :data:`kanegen.forms.FORMS`; ``"auto"`` takes the one with the least estimated cost.
    ``functions``: names to compile in the order of :data:`DEFAULT_FUNCTIONS`; ``None`` means those; ``"all"`` adds
    :data:`EXTRA_FUNCTIONS`; ``rhs`` is always among them.
    """

    form: str = AUTO
    functions: tuple[str, ...] = DEFAULT_FUNCTIONS

    @classmethod
    def of(cls, form: str = AUTO, functions: str | Iterable[str] | None = None) -> BuildOptions:
        """The options in normal form.

        Raises
        ------
        BuildError
            For a form or function that does not exist, with the nearest that does.
        """
        if form != AUTO and form not in FORMS:
            raise BuildError(f"form is {form!r}: expected one of {', '.join((AUTO, *FORMS))}")
        known = (*DEFAULT_FUNCTIONS, *EXTRA_FUNCTIONS)
        own = () if form == AUTO else FORMS[form].functions
        if functions is None:
            return cls(form, (*DEFAULT_FUNCTIONS, *own))
        if functions == "all":
            return cls(form, known)
        wanted = {"rhs", *own}
        for name in [functions] if isinstance(functions, str) else functions:
            members = FUNCTION_GROUPS.get(name, (name,))
            if not set(members) <= set(known):
                near = difflib.get_close_matches(name, [*known, *FUNCTION_GROUPS], n=1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise BuildError(f"functions contains {name!r}: expected names among {', '.join(known)}{hint}")
            wanted.update(members)
            wanted.update(other for member in members for other in COMPANIONS.get(member, ()))
        return cls(form, tuple(name for name in known if name in wanted))

    def including(self, *names: str) -> BuildOptions:
        """These options with further functions."""
        known = (*DEFAULT_FUNCTIONS, *EXTRA_FUNCTIONS)
        return replace(self, functions=tuple(name for name in known if name in (*self.functions, *names)))
