"""All checks of a model, so that one error can report every problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kanegen.model.checks.bodies import body_problems
from kanegen.model.checks.contacts import contact_problems
from kanegen.model.checks.equations import equation_problems
from kanegen.model.checks.servo import servo_problems
from kanegen.model.checks.symbols import symbol_problems
from kanegen.model.control.control_constraints import control_constraint_problems
from kanegen.model.places import Place
from kanegen.model.reactions import reaction_problems
from kanegen.model.speeds import speed_change_problems

if TYPE_CHECKING:
    from kanegen.model.model import Model


def model_problems(model: Model, places: Sequence[Place], unknown_symbols: Sequence[Any]) -> list[str]:
    """Every problem of ``model``, one sentence each; ``unknown_symbols`` are given parameters that do not occur."""
    return [
        *symbol_problems(model, places, unknown_symbols),
        *speed_change_problems(model),
        *equation_problems(model),
        *body_problems(model),
        *reaction_problems(model),
        *contact_problems(model, places),
        *servo_problems(model),
        *control_constraint_problems(model),
    ]
