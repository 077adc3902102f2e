"""Checks of a model's kinematics and constraints, and of changes of its generalized speeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy

from kanegen.model.description import CONSTRAINT_KINDS, SystemDescription
from kanegen.model.expressions import atoms, base_symbol, derivatives, symbol_name, symbol_names
from kanegen.model.linear import coefficients, is_affine, is_regular
from kanegen.model.records import ACCELERATION, POSITION, VELOCITY


def equation_problems(model: SystemDescription) -> Iterator[str]:
    """Problems of the numbers of equations, the kinematics, the constraints and the dependent speeds."""
    n_q, n_k = len(model.coordinates), len(model.kinematics)
    if not model.speeds:
        yield "the model has no speeds: expected at least one"
    if n_k != n_q:
        yield (
            f"kinematics has {n_k} equation(s) for {n_q} coordinate(s): expected one per coordinate, "
            "so that they determine q' from u"
        )
    yield from _kinematics_problems(model)
    yield from _constraint_problems(model)
    yield from _contradictions(model)
    if model.dependent_speeds is not None:
        yield from _dependent_problems(model, model.dependent_speeds)


def _kinematics_problems(model: SystemDescription) -> Iterator[str]:
    rows: list[dict[Any, Any]] = []
    coordinates = frozenset(model.coordinates)
    speeds = frozenset((*model.all_speeds, *model.auxiliary_speeds))
    for k, expr in enumerate(model.kinematics):
        rates = derivatives(expr, coordinates, 1)
        fault = _kinematics_fault(expr, rates, speeds)
        if fault:
            yield f"kinematics[{k}] ({expr}) {fault}"
        else:
            rows.append({base_symbol(rate): entry for rate, entry in coefficients(expr, rates).items()})
    if len(rows) != len(model.kinematics) or len(rows) != len(model.coordinates):
        return
    missing = coordinates.difference(*rows)
    if missing:
        names = symbol_names(q for q in model.coordinates if q in missing)
        yield f"no kinematic equation contains the rate of {names}: expected q' of every coordinate"
    elif not is_regular(rows, model.coordinates):
        yield (
            f"the kinematics are singular in q': the coefficient matrix of the rates of "
            f"({symbol_names(model.coordinates)}) has no inverse at random states; expected {len(rows)} independent "
            "equations"
        )


def _kinematics_fault(expr: Any, rates: frozenset[Any], speeds: frozenset[Any]) -> str:
    expected = "expected an equation linear in q' and u"
    if not rates:
        return "contains no q': expected an equation for the rate of a coordinate"
    if is_affine(expr, rates | speeds):
        return ""
    if not is_affine(expr, rates):
        return f"is nonlinear in q': {expected}"
    if not is_affine(expr, speeds):
        return f"is nonlinear in u: {expected}"
    return f"has products of q' and u: {expected}"


def _constraint_problems(model: SystemDescription) -> Iterator[str]:
    for kind in CONSTRAINT_KINDS:
        for k, expr in enumerate(getattr(model, kind.field)):
            if fault := _FAULTS[kind.level](model, expr):
                yield f"{kind.field}[{k}] ({expr}) {fault}"


def _position_fault(model: SystemDescription, expr: Any) -> str:
    known = derivatives(expr, frozenset(model.coordinates), 0)
    return "" if known else "depends on no coordinate: expected an expression that contains q"


def _velocity_fault(model: SystemDescription, expr: Any) -> str:
    coordinates = frozenset(model.coordinates)
    if derivatives(expr, coordinates, 1) | derivatives(expr, frozenset(model.all_speeds), 0):
        return ""
    of_positions = bool(derivatives(expr, coordinates, 0))
    advice = "; constraints on positions belong to holonomic_constraints" if of_positions else ""
    return f"depends on no speed: expected u or q' in it{advice}"


def _acceleration_fault(model: SystemDescription, expr: Any) -> str:
    accelerations = derivatives(expr, frozenset(model.coordinates), 2)
    accelerations |= derivatives(expr, frozenset(model.all_speeds), 1)
    if accelerations and is_affine(expr, accelerations):
        return ""
    fault = "is nonlinear in u'" if accelerations else "depends on no u'"
    return f"{fault}: expected an equation linear in u'"


_FAULTS = {POSITION: _position_fault, VELOCITY: _velocity_fault, ACCELERATION: _acceleration_fault}
"""What is wrong with a constraint of each level."""


def _contradictions(model: SystemDescription) -> Iterator[str]:
    """Constraints of one kind that differ by a nonzero number. Equal constraints are legal: they are redundant."""
    for field in (kind.field for kind in CONSTRAINT_KINDS):
        seen: dict[Any, tuple[int, Any]] = {}
        for k, expr in enumerate(getattr(model, field)):
            offset, varying = _offset(expr)
            first, expected = seen.setdefault(varying, (k, offset))
            if expected != offset:
                yield (
                    f"{field}[{first}] and {field}[{k}] contradict each other: "
                    f"{varying} would be both {-expected} and {-offset}"
                )


def _offset(expr: Any) -> tuple[Any, Any]:
    """``(c, f)`` with ``expr`` proportional to ``f + c``; c is a number, f is normalized in scale and sign."""
    constant, varying = expr.as_coeff_Add()
    scale, varying = varying.primitive() if varying.is_Add else varying.as_coeff_Mul()
    if varying.could_extract_minus_sign():
        scale, varying = -scale, -varying
    return sympy.nsimplify(constant / scale) if scale else constant, varying


def _dependent_problems(model: SystemDescription, dependent: tuple[Any, ...]) -> Iterator[str]:
    unknown = symbol_names(u for u in dependent if u not in model.speeds)
    if unknown:
        known = symbol_names(model.speeds)
        yield f"dependent_speeds contains {unknown}: expected speeds of the model ({known})"
    n_d, n_c = len(dependent), len(model.constraints)
    if n_d > n_c or (n_c and not n_d):
        yield f"dependent_speeds has {n_d} speed(s) for {n_c} constraint(s): expected one per independent constraint"


def speed_change_problems(model: SystemDescription) -> Iterator[str]:
    """Problems of the new speeds ``w = Phi1(q, t) u + Phi2(q, t)`` and of their definitions.

    Source: Bajodah 2003, section 2.6, (45).
    """
    change = model.speed_change
    if change is None:
        return
    old, definitions = change.before.speeds, change.definitions
    if len(model.speeds) != len(old):
        yield f"speeds has {len(model.speeds)} new speed(s): expected {len(old)}, one for each of {symbol_names(old)}"
    elif definitions is not None and len(definitions) != len(old):
        yield f"definitions has {len(definitions)} entries for {len(old)} speeds: expected one for each speed"
    elif definitions is not None:
        yield from _definition_problems(model, definitions, old)


def _definition_problems(model: SystemDescription, definitions: tuple[Any, ...], old: tuple[Any, ...]) -> Iterator[str]:
    speeds = frozenset(old)
    wrong = {*model.speeds, *model.auxiliary_speeds, *model.former_speeds} - speeds
    clean = True
    for speed, expr in zip(model.speeds, definitions, strict=True):
        forbidden = sorted(symbol_name(atom) for atom in atoms((expr,)) if base_symbol(atom) in wrong)
        clean = clean and not forbidden and is_affine(expr, speeds)
        if forbidden:
            yield (
                f"the definition of {symbol_name(speed)} contains {', '.join(forbidden)}: expected no speeds other "
                f"than {symbol_names(old)}"
            )
        elif not is_affine(expr, speeds):
            yield (
                f"the definition of {symbol_name(speed)} ({expr}) is not linear in the speeds {symbol_names(old)}: "
                "expected Phi1(q, t) u + Phi2(q, t)"
            )
    if clean and not is_regular([coefficients(expr, speeds) for expr in definitions], old):
        yield (
            f"the definitions of {symbol_names(model.speeds)} cannot be solved for {symbol_names(old)}: their "
            f"coefficient matrix Phi1 has no inverse at random states; expected {len(old)} independent combinations"
        )
