"""Servo-constraints at acceleration level and the controls that act on them (Bajodah 2003, chapter 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kanegen.derivation.algebra.cholesky import Factor, factorize
from kanegen.derivation.constraints.constraints import Partition, Row, holonomic_row, nonholonomic_row
from kanegen.derivation.control.affine import AffineControls, affine_controls
from kanegen.derivation.control.servo_checks import servo_problems
from kanegen.derivation.equations import Equations
from kanegen.derivation.forms import complete, matrix_vector
from kanegen.errors import ModelError
from kanegen.graph import Graph, Node, Tangent, substitute
from kanegen.model.control import Servo


@dataclass(frozen=True)
class ServoEquations:
    """``J u' = bias``: the desired dynamics of the servo-constraints, and the controls that shall enforce it.

    ``J`` (n_s, n_u); ``residuals`` psi (n_s,), then psi' of the holonomic ones, with ``labels``; ``gains`` pairs
    (Theta1, Theta2), or (Theta, 0); the free vector is ``y = Y tau + y0``: ``free`` y0 (n_tau,), ``feedback`` the
    columns of Y, none where y does not contain controls.
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


@dataclass(frozen=True)
class Compliance:
    """``M = A2^T (A2 Q A2^T)^-1 A2``: from generalized forces to the accelerations that the constraints admit."""

    graph: Graph
    partition: Partition
    factor: Factor

    def times(self, force: Sequence[Node]) -> tuple[Node, ...]:
        """M times a vector (n_u,)."""
        part = self.partition
        zeros = [self.graph.zero] * len(part.dependent)
        return complete(self.graph, part, zeros, self.factor.solve(self.reduced(force)))

    def reduced(self, force: Sequence[Node]) -> list[Node]:
        """A2 times a vector (n_u,): what is left of a force along the independent speeds, (n_i,)."""
        part = self.partition
        return [
            self.graph.sum([force[i], *(part.A[k][j] * force[d] for k, d in enumerate(part.dependent))])
            for j, i in enumerate(part.independent)
        ]


def servo_equations(equations: Equations) -> ServoEquations:
    """The servo-constraints of the model, which has some.

    Raises
    ------
    ModelError
        With every reason for which the controls cannot enforce them.
    """
    system, servo = equations.system, equations.model.servo
    if servo is None:
        raise ModelError(f"the model {equations.model.name!r} has no servo-constraints: give control=kg.Servo(...)")
    controls = affine_controls(equations, servo.slots(equations.model.inputs))
    rows = [_row(equations, servo, k) for k in range(len(servo.constraints))]
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
    problems = servo_problems(equations, servo, controls, law.J)
    if problems:
        raise ModelError(problems)
    return law


def _row(equations: Equations, servo: Servo, k: int) -> Row:
    derive = holonomic_row if servo.holonomic(k) else nonholonomic_row
    return derive(equations.system, servo.constraints[k])


def _free_vector(
    equations: Equations, servo: Servo, controls: AffineControls
) -> tuple[tuple[Node, ...], tuple[tuple[Node, ...], ...]]:
    """y0 and the columns of Y from the user's expressions, or the hidden inputs that hold y."""
    system, given = equations.system, servo.free_vector(len(controls.slots))
    if given is None:
        return system.free, ()
    y, tau = lowered(equations, given), [system.r[k] for k in controls.slots]
    columns = [tuple(Tangent(system.graph, {node: system.graph.one})(x) for x in y) for node in tau]
    curved = [
        f"servo: y contains the control {name} nonlinearly: expected expressions affine in the controls, "
        "y = Y tau + y0, so that the controls follow from a linear system"
        for name, column in zip(controls.names, columns, strict=True)
        if not system.vanish(Tangent(system.graph, {node: system.graph.one})(x) for node in tau for x in column)
    ]
    if curved:
        raise ModelError(curved)
    free = equations.simplified(substitute(y, dict.fromkeys(tau, system.graph.zero)))
    return free, () if system.vanish(x for column in columns for x in column) else tuple(columns)


def compliance(equations: Equations) -> Compliance:
    """M of the passive constraints alone, for models whose constraints are independent."""
    lower = equations.reduced(stabilized=False).lower
    try:
        factor = factorize(lower)
    except ZeroDivisionError as error:
        raise equations.massless(equations.partition.independent[error.args[0]]) from error
    return Compliance(equations.graph, equations.partition, factor)


@dataclass(frozen=True)
class ServoSystem:
    """``S tau = z`` as nodes: ``S`` (n_s, n_tau), ``z`` (n_s,), ``responses`` the rows of ``J_s M`` (n_s, n_u)."""

    S: tuple[tuple[Node, ...], ...]
    z: tuple[Node, ...]
    responses: tuple[tuple[Node, ...], ...]


def servo_system(equations: Equations, inverse: Compliance) -> ServoSystem:
    """S and z without the accelerations themselves: M is symmetric, so n_s solves give both.

    With the stabilization of the passive constraints, so that the law holds for the accelerations of ``rhs``.
    """
    graph, law, part = equations.graph, equations.once(servo_equations), equations.partition
    enforced = complete(graph, part, part.B_stabilized, [graph.zero] * len(part.independent))
    rest = [
        p - x for p, x in zip(law.controls.free, matrix_vector(graph, equations.mass_matrix, enforced), strict=True)
    ]
    responses = tuple(equations.simplified(inverse.times(row)) for row in law.J)
    S = tuple(equations.simplified(matrix_vector(graph, law.controls.columns, y)) for y in responses)
    z = equations.simplified(
        [
            b - x - y
            for b, x, y in zip(
                law.bias,
                matrix_vector(graph, law.J, enforced),
                matrix_vector(graph, responses, rest),
                strict=True,
            )
        ]
    )
    return ServoSystem(S, z, responses)


def lowered(equations: Equations, expressions: Sequence[Any]) -> tuple[Node, ...]:
    """Nodes of expressions of the servo law."""
    return equations.simplified([equations.system.lower(expression) for expression in expressions])
