"""Kane's equations compared with Lagrange, Gibbs and Appell, Hamilton, Gauss, and the balance of power.

Every function compares one principle at all states and returns what was compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.derivation import views
from kanegen.derivation.states import Numbers, State
from kanegen.graph import gradient
from kanegen.graph.ranks import is_regular, pivoted_columns, rank, unit_rows
from kanegen.model.expressions import symbol_name
from kanegen.verification.differences import lagrangian
from kanegen.verification.report import NotApplicableError, Worst
from kanegen.verification.subject import Motion, Subject, slopes, solve


def velocities(subject: Subject, worst: Worst) -> str:
    """Compare velocities with the rates of positions and orientations."""
    _require_bodies(subject)
    _require_rotations(subject)
    for what, velocity, rate in subject.kinematics.compared:
        for state in subject.states:
            worst.compare(what, state, *subject.read(state, velocity, rate))
    note = "velocities are rates of positions, angular velocities those of direction cosines"
    if subject.kinematics.embedded:
        names = ", ".join(subject.kinematics.embedded)
        note += f"; not compared: {names} (constraints are part of the velocity)"
    return note


def _require_bodies(subject: Subject) -> None:
    """Raise `NotApplicableError` for a Lagrangian without bodies."""
    if not subject.equations.bodies:
        raise NotApplicableError("the model has a Lagrangian and no bodies")


def _require_rotations(subject: Subject) -> None:
    """Raise `NotApplicableError` if orientations are rotations at some states only."""
    system, model = subject.equations.system, subject.equations.model
    for group in model.euler_parameters:
        squares = [system.lower(e) * system.lower(e) for e in group]
        if not system.vanish([system.rate(system.graph.sum(squares))]):
            names = ", ".join(map(symbol_name, group))
            raise NotApplicableError(
                f"the kinematical equations do not keep the norm of the Euler parameters {names}, so that orientations "
                f"are rotations only on the constraint manifold"
            )


def lagrange(subject: Subject, worst: Worst) -> str:
    """Lagrange's equations in quasi-velocities against ``Q u' + L``; a Lagrangian by its differences."""
    if subject.equations.bodies:
        _require_rotations(subject)
    if subject.equations.model.lagrangian is not None:
        return lagrangian(subject, worst)
    if subject.kinematics.embedded:
        names = ", ".join(subject.kinematics.embedded)
        raise NotApplicableError(f"the velocity of {names} contains constraints that its position does not")
    C_nodes, view = subject.equations.system.C, views.lagrange(subject.equations)
    determined = rank(subject.read(subject.states[0], C_nodes)[0])
    if determined < subject.n_u:
        raise NotApplicableError(
            f"the rates of the coordinates do not determine the speeds: C of q' = C u + D has the rank {determined}, "
            f"not {subject.n_u}"
        )
    for state in subject.states:
        C, momenta = subject.read(state, C_nodes, view.momenta)
        pi = C @ solve(C.T @ C, momenta)  # the least-norm solution of C^T pi = momenta
        forces = subject.evaluate(view.forces, state, **{views.PI: pi})
        worst.compare("Lagrange's left side", state, forces, _inertia(subject, state))
    return "C^T (d/dt K_q' - K_q) = Q u' + L for arbitrary u'"


def gibbs_appell(subject: Subject, worst: Worst) -> str:
    """``dS/du'`` against ``Q u' + L``."""
    _require_bodies(subject)
    forces = views.gibbs_appell(subject.equations)
    for state in subject.states:
        worst.compare("dS/du'", state, subject.evaluate(forces, state), _inertia(subject, state))
    return "dS/du' = Q u' + L for arbitrary u'"


def _inertia(subject: Subject, state: State) -> Numbers:
    """``Q u' + L`` at the arbitrary accelerations of the state."""
    e = subject.equations
    Q, L, udot = subject.read(state, e.Q, e.L, e.system.udot)
    return Q @ udot + L


def active_forces(subject: Subject, worst: Worst) -> str:
    """``P = F - L``, ``M = Q - dF/du'``, and F from partial velocities by forward mode, at arbitrary u'."""
    e, forces = subject.equations, views.active_forces(subject.equations)
    for state in subject.states:
        direct, F, P, L, Q, M, udot = subject.read(state, forces, e.F, e.P, e.L, e.Q, e.M, e.system.udot)
        added = (Q - M) @ udot
        worst.compare("F", state, F + added, direct)
        # P + L is compared with F rather than P with F - L, whose terms may cancel.
        worst.compare("P + L", state, P + L + added, direct, abs(P) + abs(L) + abs(added))
    law = ", M = Q - dF/du'" if e.model.is_accelerated else ""
    return f"F_r = sum v_r.R + w_r.M, P = F - L{law}"


def potential(subject: Subject, worst: Worst) -> str:
    """``F = -C^T dV/dq``, which must hold without loads other than gravity and those of a Lagrangian."""
    e, model = subject.equations, subject.equations.model
    if not model.has_potential:
        raise NotApplicableError("the model gives no potential energy")
    gradients = gradient(e.potential_energy.nodes, [e.graph.one], e.system.q)
    only_source = not model.loads and (model.gravity is not None or model.lagrangian is not None)
    if not only_source or subject.kinematics.embedded:
        worst.tolerance = None
    for state in subject.states:
        slope, C, F = subject.read(state, gradients, e.system.C, e.F)
        worst.compare("F", state, -(C.T @ slope), F)
    if only_source:
        return "F = -C^T dV/dq without loads other than " + ("gravity" if model.lagrangian is None else "those of L")
    return "F = -C^T dV/dq, reported only: loads may do work that V does not contain"


def hamilton(subject: Subject, worst: Worst) -> str:
    """``q' = H_p``, ``p' = -H_q + Q_nc + J^T lambda`` for the motion, with differences of H as derivatives."""
    e = subject.equations
    if not views.speeds_are_rates(e):
        raise NotApplicableError("the speeds are not the rates of the coordinates, u = q'")
    subject.require_digits()
    view = views.hamilton(e, e.potential_energy.nodes[0] if e.model.has_potential else None)
    momentum_rates = [e.system.full_rate(node) for node in e.momentum.nodes]
    for state, motion in subject.motions:
        if not is_regular(motion.Q.astype(np.float64)):
            raise NotApplicableError("the kinetic-energy matrix Q is singular")
        slope, velocity = _hamiltonian_slopes(subject, view, state)
        worst.compare("q' = H_p", state, velocity, state.u)
        forces = subject.evaluate(view.forces, state, udot=motion.udot)
        sizes = abs(slope) + abs(forces) + abs(motion.constraint_force) + motion.inertia_sizes
        expected = subject.evaluate(momentum_rates, state, udot=motion.udot)
        worst.compare("p'", state, -slope + forces + motion.constraint_force, expected, sizes)
    return "q' = H_p, p' = -H_q + Q_nc + J^T lambda, H by differences"


def _hamiltonian_slopes(subject: Subject, view: views.Hamilton, state: State) -> tuple[Numbers, Numbers]:
    """H_q and H_p by central differences of H(q, p, t)."""
    n = subject.n_u

    def hamiltonian(x: Numbers) -> Any:
        Q, N, (R, V) = subject.read(state, view.Q, view.N, (view.R, view.V), q=x[:n])
        relative = x[n:] - N
        return relative @ solve(Q, relative) / 2 - R + V

    (momenta,) = subject.read(state, subject.equations.momentum)
    derivatives = slopes(hamiltonian, np.append(subject.values(state)["q"], momenta))
    return derivatives[:n], derivatives[n:]


def added_speeds(subject: Subject, worst: Worst) -> str:
    """Constraint forces from speeds added for the motions that the constraints prevent (Bajodah 2003, section 2.6)."""
    e = subject.equations
    if not e.constraints.rows:
        raise NotApplicableError("no constraints")
    _require_bodies(subject)
    residual = [x - y for x, y in zip(views.gibbs_appell(e), views.active_forces(e), strict=True)]
    for state, motion in subject.motions:
        J, forces = motion.J, subject.evaluate(residual, state, udot=motion.udot)
        dependent = pivoted_columns(unit_rows(J))[1][: len(J)]  # speeds for which the rows can be solved well
        # u_D = A u_I + J_D^-1 y: the equation of the added speed y_k gives the load that keeps it zero.
        multipliers = solve(J[:, dependent].T, forces[dependent])
        # Constraints of coordinates without mass hold no force: their multipliers are zero beside forces of other rows.
        sizes = motion.multiplier_sizes + motion.inertia_sizes.sum() / abs(J).max(axis=1)
        worst.compare("lambda", state, motion.multipliers, multipliers, sizes)
        worst.compare("Fc", state, motion.constraint_force, J.T @ multipliers, motion.inertia_sizes)
    return "multipliers from the equations of speeds added along the constraints = lambda"


def power_balance(subject: Subject, worst: Worst) -> str:
    """``dK/dt`` along the motion against the power of all forces."""
    view, forces = views.power_balance(subject.equations), views.active_forces(subject.equations)
    nodes = (view.kinetic_rate, view.prescribed)
    for state, motion in subject.motions:
        (rate, prescribed), F = subject.read(state, nodes, forces, udot=motion.udot)
        powers = subject.values(state)["u"] * (F + motion.constraint_force)
        # Without forces every term vanishes; the scale is then the power of the inertia forces, which cancel.
        size = abs(powers).sum() + abs(prescribed) + abs(state.u) @ motion.inertia_sizes
        worst.compare("dK/dt", state, [rate], [powers.sum() + prescribed], [size])
    if subject.equations.bodies:
        return "dK/dt = u.(F + Fc) + sum m v_t.a + w_t.H'"
    return "dK/dt = u.(F + Fc) + d/dt (2 K - q'.K_q') + D.(d/dt K_q' - K_q) - K_t"


def gauss(subject: Subject, worst: Worst) -> str:
    """Gauss' principle: compare u' with a numerical minimizer of the constraint in the null space of J."""
    for state, motion in subject.motions:
        try:
            least = _least_constraint(motion)
        except np.linalg.LinAlgError:
            raise NotApplicableError("the kinetic-energy matrix Q is not positive definite") from None
        worst.compare("u'", state, least, motion.udot, motion.sizes)
    return "u' = argmin (u'-a)^T Q (u'-a) over J u' = b, a = Q^-1 P, by least squares in double precision"


def _least_constraint(motion: Motion) -> Array:
    """The minimizer in double precision, in speeds scaled to unit inertia. Raises `numpy.linalg.LinAlgError`."""
    Q, P, J, b = (array.astype(np.float64) for array in (motion.Q, motion.force, motion.J, motion.b))
    if np.any(np.diag(Q) <= 0.0):
        raise np.linalg.LinAlgError
    scale = 1.0 / np.sqrt(np.diag(Q))
    factor = np.linalg.cholesky(scale[:, None] * Q * scale)
    target, J = np.linalg.solve(factor, scale * P), J * scale
    if not len(b):
        return np.asarray(scale * np.linalg.lstsq(factor.T, target, rcond=None)[0])
    particular = np.linalg.lstsq(J, b, rcond=None)[0]
    _, singular, right = np.linalg.svd(J)
    free = right[len(singular) :].T
    weights = np.linalg.lstsq(factor.T @ free, target - factor.T @ particular, rcond=None)[0]
    return np.asarray(scale * (particular + free @ weights))
