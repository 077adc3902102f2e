"""Checks of a change of generalized speeds: ``w = Phi1(q, t) u + Phi2(q, t)`` (Bajodah 2003, section 2.6, (45))."""

from __future__ import annotations

from typing import Any

from kanegen.model.description import SystemDescription
from kanegen.model.expressions import atoms, base_symbol, symbol_name, symbol_names
from kanegen.model.linear import coefficients, is_affine, is_regular


def speed_change_problems(model: SystemDescription) -> list[str]:
    """Problems of the numbers of new speeds and of their definitions."""
    change = model.speed_change
    if change is None:
        return []
    old = change.before.speeds
    if len(model.speeds) != len(old):
        return [f"{len(model.speeds)} new speed(s) replace {len(old)}: expected one for each of {symbol_names(old)}"]
    if change.definitions is None:
        return []
    if len(change.definitions) != len(old):
        return [f"definitions has {len(change.definitions)} entries for {len(old)} speeds: expected one for each"]
    return _definition_problems(model, change.definitions, old)


def _definition_problems(model: SystemDescription, definitions: tuple[Any, ...], old: tuple[Any, ...]) -> list[str]:
    wrong = {*model.speeds, *model.auxiliary_speeds, *model.former_speeds} - set(old)
    problems = []
    for speed, expr in zip(model.speeds, definitions, strict=True):
        forbidden = sorted(symbol_name(atom) for atom in atoms((expr,)) if base_symbol(atom) in wrong)
        if forbidden:
            problems.append(
                f"the definition of {symbol_name(speed)} contains {', '.join(forbidden)}: of the speeds it may contain "
                f"{symbol_names(old)} only"
            )
        elif not is_affine(expr, frozenset(old)):
            problems.append(
                f"the definition of {symbol_name(speed)} ({expr}) is not linear in the speeds {symbol_names(old)}: "
                "expected Phi1(q, t) u + Phi2(q, t)"
            )
    if problems or is_regular([coefficients(expr, frozenset(old)) for expr in definitions], old):
        return problems
    return [
        f"the definitions of {symbol_names(model.speeds)} cannot be solved for {symbol_names(old)}: the matrix Phi1 of "
        f"their coefficients has no inverse at random states; give {len(old)} independent combinations"
    ]
