"""Change of generalized speeds: ``w = Phi1(q, t) u + Phi2(q, t)`` (Bajodah 2003, section 2.6, (45))."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy
from sympy.physics.vector import dynamicsymbols

from kanegen.model import normalize
from kanegen.model.expressions import atoms, base_symbol, symbol_name
from kanegen.model.linear import coefficients, is_affine, is_regular

if TYPE_CHECKING:
    from kanegen.model.model import Model


@dataclass(frozen=True, eq=False)
class SpeedChange:
    """The speeds of a model in those of the model ``before``, in which everything else is written.

    ``definitions`` are ``Phi1 u + Phi2``, in the order of the new speeds; None: ``w = L^T u`` with ``Q = L D L^T``,
    which makes the kinetic-energy matrix the diagonal D.
    """

    before: Model
    definitions: tuple[Any, ...] | None

    @property
    def orthogonal(self) -> bool:
        """Whether the speeds diagonalize the kinetic-energy matrix."""
        return self.definitions is None


def speed_changes(model: Model) -> Iterator[SpeedChange]:
    """All changes that led to a model, the last one first."""
    while model.speed_change is not None:
        yield model.speed_change
        model = model.speed_change.before


def former_speeds(model: Model) -> tuple[Any, ...]:
    """The speeds of all models before, the last ones first."""
    return tuple(speed for change in speed_changes(model) for speed in change.before.speeds)


def all_speeds(model: Model) -> tuple[Any, ...]:
    """Every symbol that stands for a speed in the expressions of a model, auxiliary ones aside."""
    return (*model.speeds, *former_speeds(model))


def definitions_of(speeds: tuple[Any, ...], given: Any, problems: list[str]) -> tuple[Any, ...]:
    """The definitions in the order of the speeds, from a list, equations or a mapping ``w: expression``."""
    if not isinstance(given, Mapping):
        items = normalize.sequence(given, "definitions", problems)
        if not items or not all(isinstance(item, sympy.Equality) for item in items):
            return normalize.scalars(items, "definitions", problems)
        given = {item.lhs: item.rhs for item in items}
    if set(given) != set(speeds):
        problems.append(
            f"definitions are of ({', '.join(map(str, given))}): expected one for each of the new speeds "
            f"({', '.join(map(str, speeds))})"
        )
    return normalize.scalars([given[speed] for speed in speeds if speed in given], "definitions", problems)


def default_names(speeds: tuple[Any, ...]) -> tuple[Any, ...]:
    """``w_u1`` for ``u1``."""
    return tuple(dynamicsymbols(f"w_{symbol_name(speed)}") for speed in speeds)


def speed_change_problems(model: Model) -> list[str]:
    """Problems of the numbers of new speeds and of their definitions."""
    change = model.speed_change
    if change is None:
        return []
    old = change.before.speeds
    if len(model.speeds) != len(old):
        return [f"{len(model.speeds)} new speed(s) replace {len(old)}: expected one for each of {_names(old)}"]
    if change.definitions is None:
        return []
    if len(change.definitions) != len(old):
        return [f"definitions has {len(change.definitions)} entries for {len(old)} speeds: expected one for each"]
    return _definition_problems(model, change.definitions, old)


def _definition_problems(model: Model, definitions: tuple[Any, ...], old: tuple[Any, ...]) -> list[str]:
    wrong = {*model.speeds, *model.auxiliary_speeds, *former_speeds(model)} - set(old)
    problems = []
    for speed, expr in zip(model.speeds, definitions, strict=True):
        found = sorted(symbol_name(atom) for atom in atoms((expr,)) if base_symbol(atom) in wrong)
        if found:
            problems.append(
                f"the definition of {symbol_name(speed)} contains {', '.join(found)}: of the speeds it may contain "
                f"{_names(old)} only"
            )
        elif not is_affine(expr, frozenset(old)):
            problems.append(
                f"the definition of {symbol_name(speed)} ({expr}) is not linear in the speeds {_names(old)}: expected "
                "Phi1(q, t) u + Phi2(q, t)"
            )
    if problems or is_regular([coefficients(expr, frozenset(old)) for expr in definitions], old):
        return problems
    return [
        f"the definitions of {_names(model.speeds)} cannot be solved for {_names(old)}: the matrix Phi1 of their "
        f"coefficients has no inverse at random states; give {len(old)} independent combinations"
    ]


def _names(speeds: tuple[Any, ...]) -> str:
    return ", ".join(map(symbol_name, speeds))
