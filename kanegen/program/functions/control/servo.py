"""Functions of servo-constraints: the controls that enforce them, S and z, residuals, feasibility.

Bajodah (2003), chapter 7: ``tau = S^+ z + (I - S^+ S) y`` (481), ``S^+ = S^T / |S|^2`` for one row (492), ideal
controls from ``A2 G tau = A2 (Q u'* - P0)`` (484). The common case is straight-line code; where a divisor is small, the
function of the same name with the ending ``_general`` takes over and decides by singular values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from kanegen.derivation.algebra.cholesky import Factor, factorize
from kanegen.derivation.control.servo import Compliance, compliance, lowered
from kanegen.derivation.equations import Equations
from kanegen.graph import Node
from kanegen.program.functions.control.servo_change import least_change
from kanegen.program.functions.control.servo_systems import (
    ROW_LIMIT,
    Linear,
    Rows,
    ServoLinear,
    Solved,
    by_kernels,
    in_metric,
    metric_of,
    product,
    scaled_rows,
    stored_rows,
    straight_line,
    without_free,
)
from kanegen.program.kernels.control import control_work
from kanegen.program.kernels.servo import control_feasibility_work
from kanegen.program.records import Block, Call, Function, Guard, Step
from kanegen.program.registry import Functions, Made, all_hold, stores

Matrix: TypeAlias = tuple[tuple[Node, ...], ...]

WRITTEN_OUT: Final = 4
"""Most servo-constraints (and degrees of freedom, for ideal controls) whose solve is written out."""

GRAM_LIMIT: Final = 1e-6
"""Pivots of ``S S^T`` below this fraction of their diagonal go to the singular values: the square of the condition
costs six digits at most."""

SUMMARIES: Final = {
    "control": "controls tau that enforce the servo-constraints",
    "servo_matrix": "S of S tau = z",
    "servo_right_side": "z of S tau = z",
    "servo_residuals": "psi of the servo-constraints, then psi' of the holonomic ones",
    "servo_gains": "Theta1, Theta2 of holonomic servo-constraints, Theta, 0 of nonholonomic ones",
    "feasibility": "rank of the equations of the controls, residual, smallest singular value, 1 for a solution",
}


def exists(equations: Equations) -> bool:
    return equations.model.servo is not None


def _control(f: Functions) -> Made:
    tau = _shape_of_tau(f)
    inverse = _written_out(f)
    if inverse is None or f.servo.feedback:
        return _finished(_general(f), tau)
    try:
        fast = _fast(f, straight_line(f, inverse), inverse)
    except ZeroDivisionError:  # rows that depend on each other everywhere
        fast = None
    if fast is None:
        return _finished(_general(f), tau)
    return _guarded(f, "control", fast, _general(f), tau)


def _shape_of_tau(f: Functions) -> tuple[int, ...]:
    return (len(f.servo.controls.slots),)


def _written_out(f: Functions) -> Compliance | None:
    """M by straight-line code, where the constraints are independent."""
    return compliance(f.equations) if f.equations.has_partition else None


def _finished(solved: Solved, shape: tuple[int, ...]) -> Made:
    return (*solved.steps, Block("controls", stores("out", solved.tau))), shape, solved.arrays


def _guarded(f: Functions, name: str, fast: Solved, general: Solved, shape: tuple[int, ...]) -> Made:
    """The fast way where its conditions hold, else the function ``<name>_general``."""
    condition = all_hold(f.graph, fast.conditions)
    if condition is None:
        return _finished(fast, shape)
    steps, _, arrays = _finished(general, shape)
    other = f.once(
        f"{name}_general",
        lambda: Function(f"{name}_general", shape, steps, arrays, f"{SUMMARIES[name]}, by kernels", internal=True),
    )
    steps, _, arrays = _finished(fast, shape)
    return (Guard(condition, other.name), *steps), shape, arrays


# -- straight-line code -------------------------------------------------------------------------------------------


def _fast(f: Functions, linear: ServoLinear, inverse: Compliance) -> Solved | None:
    """The controls by straight-line code; None where the systems are too large for it."""
    servo, n_s = f.servo.servo, len(linear.system.right)
    if n_s > WRITTEN_OUT or (servo.damping is not None and n_s > 1):
        return None
    if servo.is_ideal:
        return _fast_ideal(f, linear, inverse)
    metric = metric_of(f)
    y, system = f.servo.free, in_metric(linear.system, metric)
    unique = n_s == len(y) and servo.damping is None
    right = linear.system.right if unique else without_free(f, linear.system)
    damping = None if servo.damping is None else lowered(f.equations, [servo.damping])[0]
    change, conditions = _least_norm(f, system.rows, right, damping)
    moved = change if metric is None else metric.colored(change)
    tau = tuple(moved) if unique else tuple(a + b for a, b in zip(y, moved, strict=True))
    held = () if metric is None else metric.conditions
    present = () if damping is not None else _not_zero(f, linear.system)
    return Solved((), {}, (*linear.conditions, *held, *present, *conditions), tau)


def _least_norm(
    f: Functions, rows: Rows, right: Sequence[Node], damping: Node | None = None
) -> tuple[list[Node], tuple[Node, ...]]:
    """The smallest x with ``rows x = right`` (n_s,), by the normal equations of the second kind; their conditions."""
    graph = f.graph
    columns = list(zip(*rows, strict=True))
    if len(rows) == len(columns) == 1 and damping is None:
        return [right[0] / rows[0][0]], ()
    gram = [[product(graph, a, b) for b in rows[: i + 1]] for i, a in enumerate(rows)]
    if len(gram) == 1:
        size = gram[0][0] if damping is None else graph.apply("max", gram[0][0], damping * damping)
        factor = right[0] / size
        return [factor * column[0] for column in columns], ()
    factors = factorize(gram)
    x = factors.solve(right)
    return [product(graph, column, x) for column in columns], _regular(f, gram, factors)


def _not_zero(f: Functions, system: Linear) -> tuple[Node, ...]:
    """That no row of S is rounding of the terms it is a sum of, or fixed by the passive constraints."""
    limit = f.graph.const(ROW_LIMIT**2)
    squares = (product(f.graph, row, row) for row in system.rows)
    found = (f.graph.apply("lt", limit * x, y) for x, y in zip(system.sizes, squares, strict=True))
    return tuple(condition for condition in (*found, *system.movable) if condition.op != "const")


def _regular(f: Functions, gram: Rows, factors: Factor) -> tuple[Node, ...]:
    """That no pivot is too small a part of its diagonal entry."""
    graph = f.graph
    tests = (graph.const(GRAM_LIMIT) * gram[k][k] * r for k, r in factors.reciprocals.items())
    return (*factors.conditions, *(graph.apply("lt", x, graph.one) for x in tests if x.op != "const"))


def _fast_ideal(f: Functions, linear: ServoLinear, inverse: Compliance) -> Solved | None:
    """``A2 G tau = A2 J_s^T mu`` with ``(J_s M J_s^T) mu = z``: the controls take the place of multipliers."""
    e, graph, found = f.equations, f.graph, f.servo
    n_i, n_tau = len(e.partition.independent), len(found.controls.slots)
    if max(n_i, n_tau) > WRITTEN_OUT:
        return None
    gram = [row[: i + 1] for i, row in enumerate(linear.gram)]
    factors = factorize(gram)
    mu = factors.solve(linear.system.right)
    force = [product(graph, column, mu) for column in zip(*found.J, strict=True)]
    columns = [e.simplified(inverse.reduced(column)) for column in found.controls.columns]
    rows = tuple(zip(*columns, strict=True))
    tau, conditions = _solved_ideal(f, rows, columns, inverse.reduced(force))
    free = (condition for condition in linear.system.movable if condition.op != "const")
    return Solved((), {}, (*linear.conditions, *free, *_regular(f, gram, factors), *conditions), tau)


def _solved_ideal(
    f: Functions, rows: Rows, columns: Rows, right: Sequence[Node]
) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """tau with ``rows tau = right`` where that is consistent, whatever the shape of the rows; its conditions."""
    graph, y = f.graph, f.servo.free
    if len(rows) < len(columns):
        rest = [z - product(graph, row, y) for z, row in zip(right, rows, strict=True)]
        change, conditions = _least_norm(f, rows, rest)
        return tuple(a + b for a, b in zip(y, change, strict=True)), conditions
    gram = [[product(graph, a, b) for b in columns[: i + 1]] for i, a in enumerate(columns)]
    factors = factorize(gram)
    tau = tuple(factors.solve([product(graph, column, right) for column in columns]))
    conditions = _regular(f, gram, factors)
    if len(rows) == len(columns):
        return tau, conditions
    return tau, (*conditions, *_consistent(f, rows, right, tau))


def _consistent(f: Functions, rows: Rows, right: Sequence[Node], tau: Sequence[Node]) -> tuple[Node, ...]:
    """That what the controls cannot supply is rounding."""
    graph = f.graph
    conditions = []
    for row, z in zip(rows, right, strict=True):
        terms = [a * x for a, x in zip(row, tau, strict=True) if not a.is_zero]
        left = graph.apply("abs", graph.sum(terms) - z)
        size = graph.sum([graph.apply("abs", z), *(graph.apply("abs", x) for x in terms)])
        if not left.is_zero:
            conditions.append(graph.apply("le", left, graph.const(ROW_LIMIT) * size))
    return tuple(conditions)


# -- kernels ------------------------------------------------------------------------------------------------------


def _general(f: Functions) -> Solved:
    """The controls by singular values, which also tell where there are none."""
    return _general_ideal(f) if f.servo.servo.is_ideal else least_change(f)


def _general_ideal(f: Functions) -> Solved:
    """``M G tau = M J_s^T mu``, the same equations without a choice of independent speeds."""
    y = f.servo.free
    steps, arrays, rows, right = _ideal_system(f, "control_solve")
    m, n = len(rows), len(y)
    arrays |= {"A": m * n, "z": m, "y": n, "solving": control_work(m, n), "tau": n}
    block = Block("M G tau = M J_s^T mu", (*stored_rows("A", rows), *stores("z", right), *stores("y", y)))
    call = Call("control_solve", (m, n, "A", "z", "y", "solving", "tau"))
    return Solved((*steps, block, call), arrays, (), tuple(f.array("tau", n)))


def _ideal_system(f: Functions, kernel: str) -> tuple[list[Step], dict[str, int], Matrix, tuple[Node, ...]]:
    """Steps that find the multipliers mu of the servo-constraints by a kernel, then M G (n_u, n_tau) and M J_s^T mu."""
    linear = by_kernels(f, controls=True)
    n = len(linear.system.right)
    arrays = dict(linear.arrays) | {"N": n * n, "rest": n, "multipliers": n}
    rows = _movable_rows(f, linear)
    block = Block("J_s M J_s^T mu = z", (*stored_rows("N", rows), *stores("rest", linear.system.right)))
    steps = [*linear.steps, block]
    if kernel == "control_solve":
        arrays |= {"zero": n, "finding": control_work(n, n)}
        steps += [
            Block("", stores("zero", [f.graph.zero] * n)),
            Call(kernel, (n, n, "N", "rest", "zero", "finding", "multipliers")),
        ]
    else:
        arrays |= {"finding": control_feasibility_work(n, n), "found": 3}
        steps.append(Call(kernel, (n, n, "N", "rest", "finding", "multipliers", "found")))
    mu = f.array("multipliers", n)
    right = tuple(product(f.graph, mu, column) for column in zip(*linear.responses, strict=True))
    return steps, arrays, tuple(zip(*linear.driven, strict=True)), right


def _movable_rows(f: Functions, linear: ServoLinear) -> Rows:
    """J_s M J_s^T without what the passive constraints fix."""
    graph, movable = f.graph, linear.system.movable
    if not movable:
        return linear.gram
    return [
        [graph.select(graph.apply("and", a, b), x, graph.zero) for x, b in zip(row, movable, strict=True)]
        for row, a in zip(linear.gram, movable, strict=True)
    ]


# -- what else is asked --------------------------------------------------------------------------------------------


def _feasibility(f: Functions) -> Made:
    """Rank, residual, smallest singular value and the answer: of S, its rows scaled, or of M G for ideal controls."""
    graph, n = f.graph, len(f.servo.free)
    steps: list[Step]
    if f.servo.servo.is_ideal:
        steps, arrays, rows, right = _ideal_system(f, "control_feasibility")
        scaled = Linear(rows, right, ())
        possible = f.array("found", 3)[2]
    else:
        linear = by_kernels(f)
        steps, arrays, rows, right = list(linear.steps), dict(linear.arrays), linear.system.rows, linear.system.right
        scaled, possible = scaled_rows(f, linear.system), graph.one
    m = len(rows)
    arrays |= {"A": m * n, "z": m, "solving": control_feasibility_work(m, n), "tau": n, "verdict": 3}
    steps += [
        Block("equations of the controls", (*stored_rows("A", scaled.rows), *stores("z", scaled.right))),
        Call("control_feasibility", (m, n, "A", "z", "solving", "tau", "verdict")),
    ]
    tau, (rank, smallest, feasible) = f.array("tau", n), f.array("verdict", 3)
    missing = [graph.apply("abs", z - product(graph, row, tau)) for row, z in zip(rows, right, strict=True)]
    residual = missing[0]
    for x in missing[1:]:
        residual = graph.apply("max", residual, x)
    steps.append(Block("", stores("out", [rank, residual, smallest, feasible * possible])))
    return tuple(steps), (4,), arrays


def _part(name: str, chosen: Callable[[Linear], Sequence[Node]]) -> Callable[[Functions], Made]:
    """The maker of S or z."""

    def make(f: Functions) -> Made:
        servo = f.servo
        shape = (len(servo.J), len(servo.free)) if name == "servo_matrix" else (len(servo.J),)
        general, inverse = by_kernels(f), _written_out(f)
        slow = Solved(general.steps, dict(general.arrays), (), tuple(chosen(general.system)))
        if inverse is None:
            return _finished(slow, shape)
        fast = straight_line(f, inverse)
        return _guarded(f, name, Solved((), {}, fast.conditions, tuple(chosen(fast.system))), slow, shape)

    return make


def _residuals(f: Functions) -> Made:
    nodes = f.servo.residuals
    return (Block("", stores("out", nodes)),), (len(nodes),), {}


def _gains(f: Functions) -> Made:
    gains = f.servo.gains
    return (Block("", stored_rows("out", gains)),), (len(gains), 2), {}


MAKERS: Final[dict[str, Callable[[Functions], Made]]] = {
    "control": _control,
    "servo_matrix": _part("servo_matrix", lambda system: [x for row in system.rows for x in row]),
    "servo_right_side": _part("servo_right_side", lambda system: system.right),
    "servo_residuals": _residuals,
    "servo_gains": _gains,
    "feasibility": _feasibility,
}
