"""Checks of a model's kinematics and constraints."""

from __future__ import annotations

from typing import Any

import sympy

from kanegen.model.description import SystemDescription
from kanegen.model.expressions import atoms, base_symbol, derivative_order, symbol_names
from kanegen.model.linear import coefficients, is_affine, is_regular
from kanegen.model.normalize import CONSTRAINTS


def _derivatives(expr: Any, symbols: frozenset[Any], order: int) -> frozenset[Any]:
    """The derivatives of this order of ``symbols`` that occur in ``expr``.

    Read from what is there: making ``q.diff()`` for every coordinate costs more than all other checks.
    """
    return frozenset(
        atom for atom in atoms((expr,)) if base_symbol(atom) in symbols and derivative_order(atom) == order
    )


def equation_problems(model: SystemDescription) -> list[str]:
    """Problems of the numbers of equations, the kinematics, the constraints and the dependent speeds."""
    return [
        *_count_problems(model),
        *_kinematics_problems(model),
        *_constraint_problems(model),
        *_contradictions(model),
        *_dependent_problems(model),
    ]


def _count_problems(model: SystemDescription) -> list[str]:
    n_q, n_u, n_k = len(model.coordinates), len(model.speeds), len(model.kinematics)
    problems = []
    if n_u == 0:
        problems.append("the model has no speeds: expected at least one")
    if n_k != n_q:
        problems.append(
            f"kinematics has {n_k} equation(s) for {n_q} coordinate(s): expected one per coordinate, "
            "which together give q' in terms of u"
        )
    return problems


def _kinematics_problems(model: SystemDescription) -> list[str]:
    problems: list[str] = []
    rows: list[dict[Any, Any]] = []
    coordinates = frozenset(model.coordinates)
    speeds = frozenset((*model.all_speeds, *model.auxiliary_speeds))
    for k, expr in enumerate(model.kinematics):
        rates = _derivatives(expr, coordinates, 1)
        fault = _kinematics_fault(expr, rates, speeds)
        if fault:
            problems.append(f"kinematics[{k}] ({expr}) {fault}")
        rows.append({} if fault else coefficients(expr, rates))
    if problems or len(rows) != len(model.coordinates):
        return problems
    solved = {base_symbol(rate) for row in rows for rate in row}
    missing = [q for q in model.coordinates if q not in solved]
    if missing:
        return [f"no kinematic equation contains the rate of {symbol_names(missing)}: expected q' of every coordinate"]
    by_coordinate = [{base_symbol(rate): entry for rate, entry in row.items()} for row in rows]
    if not is_regular(by_coordinate, model.coordinates):
        return [
            f"the kinematics are singular in q': the matrix of coefficients of the rates of "
            f"({symbol_names(model.coordinates)}) has no inverse at random states; give "
            f"{len(rows)} independent equations"
        ]
    return []


def _kinematics_fault(expr: Any, rates: frozenset[Any], speeds: frozenset[Any]) -> str:
    expected = "expected an equation linear in q' and u"
    if not rates:
        return "contains no q': expected an equation for a rate of a coordinate"
    if is_affine(expr, rates | speeds):
        return ""
    if not is_affine(expr, rates):
        return f"is nonlinear in q': {expected}"
    if not is_affine(expr, speeds):
        return f"is nonlinear in u: {expected}"
    return f"has products of q' and u: {expected}"


def _constraint_problems(model: SystemDescription) -> list[str]:
    coordinates, speeds = frozenset(model.coordinates), frozenset(model.all_speeds)
    problems = []
    for field in ("holonomic_constraints", "implied_constraints"):
        for k, expr in enumerate(getattr(model, field)):
            if not _derivatives(expr, coordinates, 0):
                problems.append(f"{field}[{k}] ({expr}) depends on no coordinate: it restricts nothing, or cannot hold")
    for k, expr in enumerate(model.nonholonomic_constraints):
        if not _derivatives(expr, coordinates, 1) | _derivatives(expr, speeds, 0):
            of_positions = bool(_derivatives(expr, coordinates, 0))
            advice = "; one on positions belongs to holonomic_constraints" if of_positions else ""
            problems.append(
                f"nonholonomic_constraints[{k}] ({expr}) depends on no speed: expected u or q' in it{advice}"
            )
    for k, expr in enumerate(model.acceleration_constraints):
        accelerations = _derivatives(expr, coordinates, 2) | _derivatives(expr, speeds, 1)
        if accelerations and is_affine(expr, accelerations):
            continue
        fault = "is nonlinear in u'" if accelerations else "depends on no u'"
        problems.append(f"acceleration_constraints[{k}] ({expr}) {fault}: expected an equation linear in u'")
    return problems


def _contradictions(model: SystemDescription) -> list[str]:
    """Constraints of one kind that differ by a number. Equal ones are redundant, which is legal."""
    problems = []
    for field in CONSTRAINTS:
        seen: dict[Any, tuple[int, Any]] = {}
        for k, expr in enumerate(getattr(model, field)):
            offset, varying = _offset(expr)
            first, expected = seen.setdefault(varying, (k, offset))
            if expected != offset:
                problems.append(
                    f"{field}[{first}] and {field}[{k}] contradict each other: "
                    f"{varying} would be both {-expected} and {-offset}"
                )
    return problems


def _offset(expr: Any) -> tuple[Any, Any]:
    """``(c, f)`` with ``expr`` proportional to ``f + c``, c a number and f in a normal form of its own."""
    constant, varying = expr.as_coeff_Add()
    scale, varying = varying.primitive() if varying.is_Add else varying.as_coeff_Mul()
    if varying.could_extract_minus_sign():
        scale, varying = -scale, -varying
    return sympy.nsimplify(constant / scale) if scale else constant, varying


def _dependent_problems(model: SystemDescription) -> list[str]:
    if model.dependent_speeds is None:
        return []
    problems = []
    unknown_symbols = [u for u in model.dependent_speeds if u not in model.speeds]
    if unknown_symbols:
        problems.append(
            f"dependent_speeds contains {symbol_names(unknown_symbols)}: expected some of the speeds "
            f"({symbol_names(model.speeds)})"
        )
    n_d = len(model.dependent_speeds)
    n_c = len(model.constraints)
    if n_d > n_c or (n_c and not n_d):
        problems.append(
            f"dependent_speeds names {n_d} speed(s) for {n_c} constraint(s): expected one per independent constraint"
        )
    return problems
