"""Functions for the Jacobians of the right-hand side and of the constraints' residuals.

The Jacobian is that of the stabilised right-hand side where the model can be stabilised: with gains of zero it is the
bare one. See :mod:`kanegen.derive.sensitivities` for the equations.
"""

from __future__ import annotations

from typing import Final

from kanegen.derive import forms, sensitivities
from kanegen.derive.cholesky import factorise
from kanegen.derive.equations import PIVOT_LIMIT, Equations
from kanegen.derive.reactions import MULTIPLIERS
from kanegen.derive.sensitivities import ARGUMENTS
from kanegen.graph import Node, substitute
from kanegen.program.kernels import multipliers_work
from kanegen.program.quantities import quantity
from kanegen.program.records import Block, Call, Function, Invoke, Step, Store
from kanegen.program.registry import Functions, stores

RATES: Final = {f"jacobian_{name}": name for name in ARGUMENTS}
"""Functions for the derivatives of (q', u'), and what they are taken in."""

RESIDUALS: Final = {f"residuals_{name}": name for name in ("q", "u", "r")}
"""Functions for the derivatives of the residuals, and what they are taken in."""

FUNCTIONS: Final = (*RATES, *RESIDUALS)

WRITTEN_OUT: Final = 1500
"""Largest n_i^2 m for which the solve of n_i unknowns with m right sides is straight-line code."""

NAMES: Final = {"q": "coordinates", "u": "speeds", "r": "inputs", "p": "parameters", "t": "time"}


def exists(equations: Equations, name: str) -> bool:
    """Whether the function has any elements, and accelerations that a partition of the speeds determines."""
    argument = name.rpartition("_")[2]
    if name in RESIDUALS and not (equations.positions.nodes or equations.velocities.nodes):
        return False
    if name in RATES and not equations.has_partition:
        return False
    return bool(sensitivities.arguments(equations.system, argument))


def jacobian(f: Functions, name: str) -> Function:
    """The function of that name, one of :data:`RATES` and :data:`RESIDUALS`."""
    if name in RESIDUALS:
        found = f.equations.residual_slopes(RESIDUALS[name])
        summary = f"derivatives of the residuals in the {NAMES[RESIDUALS[name]]}"
        return f.once(name, lambda: Function(name, found.shape, (Block("", stores("out", found.nodes)),), {}, summary))
    return f.once(name, lambda: _of_rates(f, name, RATES[name]))


def _of_rates(f: Functions, name: str, argument: str) -> Function:
    """u' by the reduced equations with the factorisation shared by all columns."""
    otherwise = _general(f, f"{name}_general", argument).name if f.n_c else None
    columns = len(sensitivities.arguments(f.equations.system, argument))
    D1, D2 = _loaded(f, argument)
    rows, steps, arrays = _reduced(f, D1, D2, otherwise)
    block = Block(f"derivatives in the {NAMES[argument]}", _outputs(f, argument, rows))
    arrays = {"D": (f.n_u + f.n_c) * columns, **arrays}
    return _function(f, name, argument, (Invoke(_balance(f, argument), "D"), *steps, block), arrays)


def _loaded(f: Functions, argument: str) -> tuple[list[list[Node]], list[list[Node]]]:
    """The slopes of the momentum rows (n_u, m) and of the constraints (n_c, m) from the array ``D``."""
    rows = f.loaded("D", f.equations.balance_slopes(argument))
    return rows[: f.n_u], rows[f.n_u :]


def _reduced(
    f: Functions, D1: forms.Matrix, D2: forms.Matrix, otherwise: str | None
) -> tuple[list[list[Node]], tuple[Step, ...], dict[str, int]]:
    """du' (n_u, m), the steps that prepare it and their arrays."""
    e, graph, part = f.equations, f.graph, f.equations.partition
    inverse = sensitivities.dependent_inverse(e.system, e.constraints, part)
    rights, shifts = sensitivities.reduced_right_sides(graph, e.mass_matrix, part, inverse, D1, D2)
    lower, n, m = e.reduced(stabilised=False).lower, len(part.independent), len(rights)
    arrays: dict[str, int] = {}
    if n * n * m <= WRITTEN_OUT:
        factor = factorise(lower)
        solved = [factor.solve(right) for right in rights]
        steps = f.pivot_guard(PIVOT_LIMIT, otherwise, *factor.conditions)
    else:
        matrix = [Store("S", i * n + j, x) for i, row in enumerate(lower) for j, x in enumerate(row)]
        sides = [Store("X", i * m + k, right[i]) for k, right in enumerate(rights) for i in range(n)]
        block = Block("reduced mass matrix and right sides", (*matrix, *sides))
        steps = (*f.pivot_guard(PIVOT_LIMIT, otherwise), block, Call("cholesky_solve_many", (n, m, "S", "X")))
        arrays = {"S": n * n, "X": n * m}
        X = f.array("X", n * m)
        solved = [X[k::m] for k in range(m)]
    columns = [forms.complete(graph, part, shift, x) for shift, x in zip(shifts, solved, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)], steps, arrays


def _general(f: Functions, name: str, argument: str) -> Function:
    """u' and the multipliers together by LU with row pivoting: whatever speeds the constraints determine."""
    n_u, n = f.n_u, f.n_u + f.n_c
    m = len(sensitivities.arguments(f.equations.system, argument))
    Q, J = f.loaded("Q", f.equations.Q), f.loaded("J", f.equations.J)
    zero = f.graph.zero
    rows = [[*Q[i], *(-row[i] for row in J)] for i in range(n_u)] + [[*row, *[zero] * f.n_c] for row in J]
    D = [x for part in _loaded(f, argument) for row in part for x in row]
    X = f.array("X", n * m)
    steps = (
        Invoke(_balance(f, argument), "D"),
        Invoke(quantity(f, "Q"), "Q"),
        Invoke(quantity(f, "J"), "J"),
        Block("[Q -J^T; J 0]", (*stores("K", [x for row in rows for x in row]), *stores("X", [-x for x in D]))),
        Call("lu_solve_many", (n, m, "K", "X")),
        Block("", _outputs(f, argument, [X[i * m : (i + 1) * m] for i in range(n_u)])),
    )
    arrays = {"D": n * m, "Q": n_u * n_u, "J": f.n_c * n_u, "K": n * n, "X": n * m}
    return f.add(_function(f, name, argument, steps, arrays, internal=True))


def _outputs(f: Functions, argument: str, rows: forms.Matrix) -> tuple[Store, ...]:
    """The derivatives of q', then of u'."""
    return stores("out", [*f.equations.rate_slopes(argument).nodes, *(x for row in rows for x in row)])


def _function(
    f: Functions, name: str, argument: str, steps: tuple[Step, ...], arrays: dict[str, int], internal: bool = False
) -> Function:
    m = len(sensitivities.arguments(f.equations.system, argument))
    shape = (f.n_q + f.n_u,) if argument == "t" else (f.n_q + f.n_u, m)
    summary = f"derivatives of q' and u' in the {NAMES[argument]}"
    if internal:
        summary += ", constraints and momentum together"
    return Function(name, shape, steps, arrays, summary, internal)


def _balance(f: Functions, argument: str) -> Function:
    """Slopes of ``Q u' - P - J^T lambda`` and ``J u' - b`` at the accelerations and multipliers of the state."""
    name = f"balance_{argument}"

    def make() -> Function:
        found = f.equations.balance_slopes(argument)
        accelerations, udot = f.accelerations()
        steps: tuple[Step, ...] = (accelerations,)
        arrays = {"a": f.n_q + f.n_u}
        replaced = dict(zip(f.equations.system.udot, udot, strict=True))
        if f.n_c:
            steps += _multipliers(f, replaced)
            arrays |= _multiplier_arrays(f)
        block = Block("slopes", stores("out", substitute(found.nodes, replaced)))
        summary = f"derivatives of Q u' - P - J^T lambda and J u' - b in the {NAMES[argument]}, u' and lambda fixed"
        return Function(name, found.shape, (*steps, block), arrays, summary, internal=True)

    return f.once(name, make)


def _multipliers(f: Functions, replaced: dict[Node, Node]) -> tuple[Step, ...]:
    force = substitute(f.equations.constraint_force.nodes, replaced)
    block = Block("constraint forces and J", (*stores("force", force), *stores("J", f.equations.J.nodes)))
    return block, Call("multipliers", (f.n_u, f.n_c, "J", "force", "scratch", MULTIPLIERS))


def _multiplier_arrays(f: Functions) -> dict[str, int]:
    n_u, n_c = f.n_u, f.n_c
    return {"force": n_u, "J": n_c * n_u, "scratch": multipliers_work(n_u, n_c), MULTIPLIERS: n_c}
