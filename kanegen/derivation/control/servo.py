"""Servo-constraints at acceleration level and the controls that enforce them (Bajodah 2003, chapter 7).

The generalized forces are affine in the controls, ``P = P0 + G tau``. The ranks of matrices at random consistent states
show whether the controls can enforce the constraints at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kanegen.arrays import Array
from kanegen.derivation.algebra import Factor, eliminate, factorize
from kanegen.derivation.constraints import Partition, Row, holonomic_row, nonholonomic_row
from kanegen.derivation.equations import Equations, Quantity
from kanegen.derivation.forms import Matrix, complete, difference, matrix_product, matrix_vector, tangent_matrix
from kanegen.derivation.geometry.system import System
from kanegen.errors import ModelError
from kanegen.graph import Graph, Newton, Node, Tangent, evaluate, reachable, substitute
from kanegen.graph.linear import Divisor, Rows, orthogonal, solve_linear
from kanegen.graph.ranks import RANK_TOLERANCE, null_space, rank, unit_rows
from kanegen.model.control import Servo

State = Mapping[str, Sequence[float]]

_NO_DIRECTION: Final = 1e-12
"""Components of unit vectors at random states that may be rounding errors of zero."""


# -- forces affine in the controls ---------------------------------------------------------------------------


@dataclass(frozen=True)
class AffineControls:
    """Forces ``P = P0 + G tau``: ``free`` is P0 (n_u,), ``columns`` are the columns of G (n_u, n_tau)."""

    slots: tuple[int, ...]
    names: tuple[str, ...]
    free: tuple[Node, ...]
    columns: tuple[tuple[Node, ...], ...]


def affine_controls(equations: Equations, slots: Sequence[int]) -> AffineControls:
    """P0 and G of the inputs ``slots`` (indices among the inputs of the model).

    Raises
    ------
    ModelError
        If inputs do not enter the forces, enter them nonlinearly, or occur elsewhere in the model; it names them.
    """
    system = equations.system
    tau = [system.r[k] for k in slots]
    names = tuple(equations.model.inputs[k].name for k in slots)
    P = equations.right_side
    columns = _slopes(system, P, tau)
    problems = _entries_elsewhere(equations, tau, names)
    for name, column in zip(names, columns, strict=True):
        if system.vanish_in_all_cases(column):
            problems.append(
                f"the control {name} does not enter the generalized forces: no load that contains it does work; put it "
                "into a load, or remove it from controls="
            )
        elif not system.are_constant(column, tau):
            problems.append(
                f"the control {name} enters the forces nonlinearly: expected forces affine in the controls; make "
                f"the nonlinear expression itself the control, and solve it for {name} afterwards"
            )
    if problems:
        raise ModelError(problems)
    free = equations.simplified(substitute(P, dict.fromkeys(tau, system.graph.zero)))
    return AffineControls(tuple(slots), names, free, tuple(equations.simplified(column) for column in columns))


def _slopes(system: System, nodes: Sequence[Node], tau: Sequence[Node]) -> list[tuple[Node, ...]]:
    """The derivatives of the nodes with respect to each control."""
    return [tuple(map(Tangent(system.graph, {node: system.graph.one}), nodes)) for node in tau]


def _entries_elsewhere(equations: Equations, tau: Sequence[Node], names: Sequence[str]) -> list[str]:
    """Messages about controls that occur outside the forces."""
    system, rows = equations.system, equations.constraints.rows
    masses = set(reachable(entry for row in equations.mass_matrix for entry in row))
    places = {
        "the kinematics": set(reachable(system.qdot)),
        "a velocity or the mass of a body": masses,
        "the factor of an acceleration in a load": set(reachable(equations.M.nodes)) - masses,
        "the constraints": set(reachable(x for row in rows for x in (*row.J, row.bias, *row.residuals))),
    }
    return [
        f"the control {name} enters {place}: expected controls that occur in the forces only"
        for place, present in places.items()
        for name, node in zip(names, tau, strict=True)
        if node in present
    ]


# -- the servo-constraints -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ServoEquations:
    """``J u' = bias``, the desired dynamics of the servo-constraints, and the controls that enforce it.

    ``J`` has the shape (n_psi, n_u). ``residuals`` are psi (n_psi,), then psi' of the holonomic constraints, with
    ``labels``. ``gains`` are pairs (Theta1, Theta2) or (Theta, 0). The free vector is ``y = Y tau + y0`` with y0 in
    ``free`` (n_tau,) and the columns of Y in ``feedback``, which is empty if y contains no control.
    """

    servo: Servo
    controls: AffineControls
    J: tuple[tuple[Node, ...], ...]
    bias: tuple[Node, ...]
    residuals: tuple[Node, ...]
    labels: tuple[str, ...]
    gains: tuple[tuple[Node, Node], ...]
    free: tuple[Node, ...]
    feedback: tuple[tuple[Node, ...], ...] = ()


def servo_equations(equations: Equations) -> ServoEquations:
    """The servo-constraints of the model at acceleration level, with their controls.

    Raises
    ------
    ModelError
        If there are none, or with all reasons why the controls cannot enforce them.
    """
    system, servo = equations.system, equations.model.servo
    if servo is None:
        raise ModelError(f"the model {equations.model.name!r} has no servo-constraints: give control=kg.Servo(...)")
    controls = affine_controls(equations, servo.slots(equations.model.inputs))
    rows: list[Row] = []
    for k, expression in enumerate(servo.constraints):
        rows.append((holonomic_row if servo.holonomic(k) else nonholonomic_row)(system, expression))
    gains = [tuple(system.lower(value) for value in theta) for theta in servo.theta]
    bias = [
        system.graph.sum([row.bias, *(g * x for g, x in zip(theta, reversed(row.residuals), strict=True))])
        for row, theta in zip(rows, gains, strict=True)
    ]
    moving = [row for row in rows if len(row.residuals) == 2]
    free, feedback = _free_vector(equations, servo, controls)
    law = ServoEquations(
        servo,
        controls,
        tuple(equations.simplified(row.J) for row in rows),
        equations.simplified(bias),
        equations.simplified([*(row.residuals[0] for row in rows), *(row.residuals[1] for row in moving)]),
        (*(row.label for row in rows), *(f"d/dt ({row.label})" for row in moving)),
        tuple((theta[0], theta[1] if len(theta) == 2 else system.graph.zero) for theta in gains),
        free,
        feedback,
    )
    problems = _problems(equations, servo, controls, law.J)
    if problems:
        raise ModelError(problems)
    return law


def _free_vector(
    equations: Equations, servo: Servo, controls: AffineControls
) -> tuple[tuple[Node, ...], tuple[tuple[Node, ...], ...]]:
    """y0 and the columns of Y from the user's expressions, or the free vector, which is an argument."""
    system, given = equations.system, servo.free_vector(len(controls.slots))
    if given is None:
        return system.free, ()
    y, tau = lowered(equations, given), [system.r[k] for k in controls.slots]
    columns = _slopes(system, y, tau)
    curved = [
        f"servo: y contains the control {name} nonlinearly: expected expressions affine in the controls, "
        "y = Y tau + y0, so that the controls follow from a linear system"
        for name, column in zip(controls.names, columns, strict=True)
        if not system.are_constant(column, tau)
    ]
    if curved:
        raise ModelError(curved)
    free = equations.simplified(substitute(y, dict.fromkeys(tau, system.graph.zero)))
    return free, () if system.vanish_in_all_cases(x for column in columns for x in column) else tuple(columns)


def lowered(equations: Equations, expressions: Sequence[Any]) -> tuple[Node, ...]:
    """Nodes of expressions of the servo law."""
    return equations.simplified([equations.system.lower(expression) for expression in expressions])


# -- the controls --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compliance:
    """``M = A2^T (A2 Q A2^T)^-1 A2`` maps generalized forces to accelerations that satisfy the constraints."""

    graph: Graph
    partition: Partition
    factor: Factor

    def times(self, force: Sequence[Node]) -> tuple[Node, ...]:
        """M times a vector (n_u,)."""
        zeros = [self.graph.zero] * len(self.partition.dependent)
        return complete(self.graph, self.partition, zeros, self.factor.solve(self.reduced(force)))

    def reduced(self, force: Sequence[Node]) -> list[Node]:
        """A2 times a vector (n_u,): the generalized forces conjugate to the independent speeds, (n_i,)."""
        part = self.partition
        return [
            self.graph.sum([force[i], *(part.A[k][j] * force[d] for k, d in enumerate(part.dependent))])
            for j, i in enumerate(part.independent)
        ]


def compliance(equations: Equations) -> Compliance:
    """M of the passive constraints, which must be independent."""
    try:
        factor = factorize(equations.reduced(stabilized=False).lower)
    except ZeroDivisionError as error:
        raise equations.massless(equations.partition.independent[error.args[0]]) from error
    return Compliance(equations.graph, equations.partition, factor)


@dataclass(frozen=True)
class ServoSystem:
    """``S tau = z`` as nodes, S (n_psi, n_tau), z (n_psi,); ``responses``: the rows of ``J_s M`` (n_psi, n_u)."""

    S: tuple[tuple[Node, ...], ...]
    z: tuple[Node, ...]
    responses: tuple[tuple[Node, ...], ...]


def servo_system(equations: Equations, inverse: Compliance) -> ServoSystem:
    """S and z from n_psi solves, because M is symmetric; the accelerations themselves are not computed.

    The stabilization of the passive constraints is included, so that the law holds for the accelerations of ``rhs``.
    """
    graph, law, part = equations.graph, equations.once(servo_equations), equations.partition
    enforced = complete(graph, part, part.B_stabilized, [graph.zero] * len(part.independent))
    rest = difference(law.controls.free, matrix_vector(graph, equations.left_side, enforced))
    responses = tuple(equations.simplified(inverse.times(row)) for row in law.J)
    S = tuple(equations.simplified(matrix_vector(graph, law.controls.columns, y)) for y in responses)
    passive, free = matrix_vector(graph, law.J, enforced), matrix_vector(graph, responses, rest)
    return ServoSystem(S, equations.simplified(difference(difference(law.bias, passive), free)), responses)


# -- whether the controls can enforce the constraints --------------------------------------------------------


def _problems(equations: Equations, servo: Servo, controls: AffineControls, J: Matrix) -> list[str]:
    """Messages about servo-constraints that cannot be enforced and about controls without effect."""
    states = [_Directions(equations, J, controls, state) for state in _consistent_states(equations)]
    # Without a consistent state at which something can move, the ranks are unknown before run time.
    states = [state for state in states if state.n_i]
    if not states:
        return []
    unreachable = [*_fixed(servo, states), *_unreached(servo, controls.names, states)]
    return unreachable or [*_too_many(servo, controls.names, states), *_idle(controls.names, states)]


def _consistent_states(equations: Equations) -> list[State]:
    """Random states moved onto the constraint manifold by Gauss-Newton iteration, if it converges.

    Parameters have the model's values, because random lengths may admit no consistent position.
    """
    known = list(equations.model.parameters.values())
    system = equations.system
    solvers = (Newton(equations.positions.nodes, system.q), Newton(equations.velocities.nodes, system.u))
    consistent = []
    for state in system.states:
        parameters = [guess if value is None else value for guess, value in zip(state["p"], known, strict=True)]
        moved: State | None = {**state, "p": parameters}
        for solver in solvers:
            moved = None if moved is None else solver.solve(moved)
        if moved is not None:
            consistent.append(moved)
    return consistent


class _Directions:
    """Servo rows ``c`` (n_psi, n_i) and controls ``g`` (n_i, n_tau) in the null space of the passive constraints.

    Speeds are measured by the square roots of their masses, so that rows have one unit, and ``S`` (n_psi, n_tau) has
    columns of length one. ``fixed``, ``unreached`` (n_psi,) and ``idle`` (n_tau,) tell which of them are rounding.
    """

    def __init__(self, equations: Equations, J: Matrix, controls: AffineControls, state: State) -> None:
        passive = _values(equations, [row.J for row in equations.constraints.rows], state)
        M = _values(equations, equations.left_side, state)
        servo, columns = _values(equations, J, state), _values(equations, controls.columns, state)
        self.n_i = 0
        if not all(np.isfinite(matrix).all() for matrix in (passive, M, servo, columns)):
            return
        masses = np.abs(np.diag(M))
        unit = 1.0 / np.sqrt(np.where(masses > 0.0, masses, 1.0))
        servo, columns = servo * unit, columns * unit
        free = null_space(unit_rows(passive * unit))
        self.n_i = free.shape[1]
        self.moves = np.linalg.norm(servo, axis=1) > 0.0
        self.c, self.g = servo @ free, free.T @ columns.T
        accelerations = _solved(free.T @ (unit[:, None] * M * unit) @ free, self.g)
        S, terms = self.c @ accelerations, np.abs(self.c) @ np.abs(accelerations)
        self.S = unit_rows(S.T).T
        self.fixed = _are_rounding(self.c, servo, free)
        self.unreached = np.atleast_1d(np.all(np.abs(S) <= RANK_TOLERANCE * terms, axis=1))
        self.idle = _are_rounding(self.g.T, columns, free)


def _are_rounding(products: Array, rows: Array, directions: Array) -> NDArray[np.bool_]:
    """Which rows of ``products = rows @ directions`` are zero but for the errors of the unit vectors ``directions``."""
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    limits = np.maximum(RANK_TOLERANCE * (np.abs(rows) @ np.abs(directions)), _NO_DIRECTION * sizes)
    return np.asarray((np.abs(products) <= limits).all(axis=1))


def _solved(M: Array, forces: Array) -> Array:
    """The accelerations of forces (n, k), of least norm where M (n, n) is singular."""
    sizes = np.abs(np.diag(M))
    unit = 1.0 / np.sqrt(np.where(sizes > 0.0, sizes, 1.0))
    accelerations = np.linalg.lstsq(unit[:, None] * M * unit, unit[:, None] * forces, rcond=None)[0]
    return np.asarray(unit[:, None] * accelerations)


def _values(equations: Equations, rows: Sequence[Sequence[Node]], state: State) -> Array:
    values = evaluate([node for row in rows for node in row], state)
    return np.array(values, dtype=np.float64).reshape(len(rows), len(equations.system.u))


def _fixed(servo: Servo, states: Sequence[_Directions]) -> list[str]:
    """Messages about servo-constraints whose rates the passive constraints alone determine."""
    problems = []
    for k, psi in enumerate(servo.constraints):
        if all(state.fixed[k] for state in states):
            bound = any(state.moves[k] for state in states)
            reason = "is fixed by the passive constraints, which repeat or contradict it" if bound else "has no speed"
            problems.append(f"the servo-constraint {psi} {reason}: no control can change it; remove it")
    return problems


def _unreached(servo: Servo, names: Sequence[str], states: Sequence[_Directions]) -> list[str]:
    problems = []
    for k, psi in enumerate(servo.constraints):
        if all(state.unreached[k] for state in states) and not all(state.fixed[k] for state in states):
            order = "second" if servo.holonomic(k) else "first"
            problems.append(
                f"the servo-constraint {psi} cannot be enforced: its {order} time derivative does not contain the "
                f"controls {', '.join(names)}; take an expression that they act on directly, or other controls"
            )
    return problems


def _too_many(servo: Servo, names: Sequence[str], states: Sequence[_Directions]) -> list[str]:
    n_psi, n_i = len(servo.constraints), max(state.n_i for state in states)
    listed = ", ".join(map(str, servo.constraints))
    if n_psi > n_i:
        return [
            f"{n_psi} servo-constraints ({listed}) on a motion with {n_i} degree(s) of freedom of its speeds: "
            f"at most {n_i} can be enforced; remove some"
        ]
    if all(rank(state.c) < n_psi for state in states):
        return [f"the servo-constraints {listed} depend on each other: they repeat or contradict each other; drop some"]
    if all(rank(state.S) < n_psi for state in states):
        return [
            f"the servo-constraints {listed} cannot be enforced together by the controls "
            f"{', '.join(names)}: S of S tau = z has dependent rows; add controls or drop constraints"
        ]
    return []


def _idle(names: Sequence[str], states: Sequence[_Directions]) -> list[str]:
    """Messages about controls whose whole force the passive constraints balance."""
    return [
        f"the control {name} moves nothing: the passive constraints balance its whole force; remove it from controls="
        for j, name in enumerate(names)
        if all(state.idle[j] for state in states)
    ]


# -- underactuation ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Underactuation:
    """``R u' = c`` for all controls; ``equations`` is [R c], (n_f, n_u + 1), valid where no divisor is zero.

    If the motion has more degrees of freedom than independent controls, the controls do no work in some directions N:
    ``N^T A2 G = 0``. The equations of motion in these directions, ``N^T A2 (M u' - P0) = 0``, contain no controls. They
    are constraints on the accelerations that are not integrable in general (Bajodah 2003, section 1.3).
    """

    equations: Quantity
    divisors: tuple[Divisor, ...]


def plant_controls(equations: Equations) -> AffineControls:
    """The controls of the servo-constraints, or else all inputs that occur affinely in the forces and nowhere else."""
    model = equations.model
    if model.servo is not None:
        return equations.once(servo_equations).controls
    slots = [k for k in range(len(model.inputs)) if _is_control(equations, k)]
    return affine_controls(equations, slots)


def _is_control(equations: Equations, slot: int) -> bool:
    try:
        return bool(affine_controls(equations, (slot,)).slots)
    except ModelError:
        return False


def underactuation(equations: Equations) -> Underactuation:
    """The equations of motion that contain no control; no rows if the controls act on every degree of freedom."""
    graph, part = equations.graph, equations.solved_partition
    controls = plant_controls(equations)
    A2 = tangent_matrix(graph, part, len(equations.system.u))
    columns = [equations.simplified(matrix_vector(graph, A2, column)) for column in controls.columns]
    complement, divisors = _complement(equations, columns, len(part.independent))
    directions = [equations.simplified(row) for row in matrix_product(graph, complement, A2)] if complement else []
    nodes: list[Node] = []
    columns_of_M = list(zip(*equations.left_side, strict=True))
    for row in directions:
        force = graph.dot(row, controls.free)
        nodes += equations.simplified([*matrix_vector(graph, columns_of_M, row), force])
    shape = (len(directions), len(equations.system.u) + 1)
    return Underactuation(Quantity("underactuation", tuple(nodes), shape, equations.names), divisors)


def _complement(equations: Equations, columns: Sequence[Sequence[Node]], n: int) -> tuple[Rows, tuple[Divisor, ...]]:
    """Rows (n - rank, n) orthogonal to all columns (n,), and what they were divided by.

    A single row is made of the minors of the columns, which all vanish only where the columns depend on each other.
    Several rows are solved for the entries whose block is regular at random states.
    """
    graph, samples, kept = equations.graph, equations.system.samples, list(columns)
    while True:
        try:
            chosen = list(eliminate(kept, [()] * len(kept), samples, range(n))[2])
            break
        except ZeroDivisionError as error:
            del kept[error.args[0]]  # this control acts in directions of the others
    free = [i for i in range(n) if i not in chosen]
    solution = solve_linear(
        [[row[j] for j in chosen] for row in kept], [[row[i] for i in free] for row in kept], samples
    )
    if len(free) == 1 and any(divisor.value.op != "const" for divisor in solution.divisors):
        minors = equations.simplified(orthogonal(kept))
        return [list(minors)], (Divisor(graph.dot(minors, minors), squared=True),)
    places = {column: k for k, column in enumerate(chosen)}
    complement = [
        [-solution.rows[places[j]][k] if j in places else graph.one if j == i else graph.zero for j in range(n)]
        for k, i in enumerate(free)
    ]
    return complement, solution.divisors
