"""All checks of a model, so that one error can report every problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kanegen.model.checks.bodies import body_problems
from kanegen.model.checks.contacts import contact_problems
from kanegen.model.checks.control import control_constraint_problems, servo_problems
from kanegen.model.checks.equations import equation_problems
from kanegen.model.checks.reactions import reaction_problems
from kanegen.model.checks.speeds import speed_change_problems
from kanegen.model.checks.symbols import symbol_problems
from kanegen.model.description import SystemDescription
from kanegen.model.places import Place


def model_problems(model: SystemDescription, places: Sequence[Place], unknown_symbols: Sequence[Any]) -> list[str]:
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
