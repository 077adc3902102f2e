"""Kane's equations against Lagrange, Gibbs and Appell, Hamilton, and the balance of power."""

from __future__ import annotations

from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.derivation import views
from kanegen.graph import Node, gradient
from kanegen.graph.ranks import pivoted_columns, rank, unit_rows
from kanegen.verification.arithmetic import (
    NO_DIGITS,
    central_difference,
    dot,
    least_norm,
    product,
    rows,
    solve,
    transposed_product,
)
from kanegen.verification.report import Check
from kanegen.verification.states import State
from kanegen.verification.subject import Motion, Subject
from kanegen.verification.worst import Worst, not_applicable

EMBEDDED = "the velocity of {} contains constraints that its position does not"

RANK = "the rates of the coordinates do not determine the speeds: C of q' = C u + D has the rank {}, not {}"


def gibbs_appell(subject: Subject) -> Check:
    """``dS/du'`` against ``Q u' + L`` for arbitrary u'."""
    e = subject.equations
    worst = Worst("Gibbs-Appell", subject.arithmetic.tolerance)
    forces = views.gibbs_appell(e)
    for state in subject.states:
        worst.compare("dS/du'", state, subject.evaluate(forces, state), _inertia(subject, state))
    return worst.check("dS/du' = Q u' + L for arbitrary u'")


def lagrange(subject: Subject, embedded: tuple[str, ...]) -> Check:
    """Lagrange's equations in quasi-velocities against ``Q u' + L``; ``embedded`` names velocities that forbid it."""
    name = "Lagrange"
    if embedded:
        return not_applicable(name, EMBEDDED.format(", ".join(embedded)))
    e = subject.equations
    view = views.lagrange(e)
    worst = Worst(name, subject.arithmetic.tolerance)
    C_nodes = [c for row in e.system.C for c in row]
    determined = rank(rows(subject.evaluate(C_nodes, subject.states[0]), subject.n_u))
    if determined < subject.n_u:
        return not_applicable(name, RANK.format(determined, subject.n_u))
    for state in subject.states:
        C = rows(subject.evaluate(C_nodes, state), subject.n_u)
        pi = least_norm(C, subject.evaluate(view.momenta, state))
        forces = subject.evaluate(view.forces, state, **{views.PI: pi})
        worst.compare("Lagrange's left side", state, forces, _inertia(subject, state))
    return worst.check("C^T (d/dt K_q' - K_q) = Q u' + L for arbitrary u'")


def _inertia(subject: Subject, state: State) -> list[Any]:
    """``Q u' + L`` at the arbitrary accelerations of the state."""
    e, n = subject.equations, subject.n_u
    values = subject.evaluate([*e.Q.nodes, *e.L.nodes, *e.system.udot], state)
    Q, L, udot = rows(values[: n * n], n), values[n * n : n * n + n], values[n * n + n :]
    return [x + y for x, y in zip(product(Q, udot), L, strict=True)]


def active_forces(subject: Subject) -> Check:
    """``P = F - L`` and F from partial velocities by forward mode."""
    e = subject.equations
    worst = Worst("active forces", subject.arithmetic.tolerance)
    forces = views.active_forces(e)
    n = subject.n_u
    for state in subject.states:
        values = subject.evaluate([*forces, *e.F.nodes, *e.P.nodes, *e.L.nodes], state)
        direct, F, P, L = (values[k * n : (k + 1) * n] for k in range(4))
        worst.compare("F", state, F, direct)
        # P + L rather than P: its size must not hide in that of L.
        worst.compare("P + L", state, [x + y for x, y in zip(P, L, strict=True)], direct, [*map(_sum, P, L)])
    return worst.check("F_r = sum v_r.R + w_r.M, P = F - L")


def _sum(x: Any, y: Any) -> Any:
    return abs(x) + abs(y)


def potential(subject: Subject, embedded: tuple[str, ...]) -> Check:
    """``F = -C^T dV/dq``, which must hold where gravity is the only load."""
    name = "potential energy"
    if not subject.has_potential:
        return not_applicable(name, "the model gives no potential energy")
    e = subject.equations
    system, graph = e.system, e.graph
    (V,) = e.potential_energy.nodes
    only_gravity = not e.model.loads and e.model.gravity is not None
    slopes = gradient([V], [graph.one], system.q)
    worst = Worst(name, subject.arithmetic.tolerance if only_gravity and not embedded else None)
    for state in subject.states:
        values = subject.evaluate([*slopes, *(c for row in system.C for c in row), *e.F.nodes], state)
        n_q, n = len(system.q), subject.n_u
        C, F = rows(values[n_q : n_q + n_q * n], n), values[n_q + n_q * n :]
        worst.compare("F", state, [-x for x in transposed_product(C, values[:n_q], n)], F)
    if only_gravity:
        return worst.check("F = -C^T dV/dq, all of it by gravity")
    return worst.check("F = -C^T dV/dq, reported only: loads may do work that V does not hold")


def hamilton(subject: Subject) -> Check:
    """``q' = H_p``, ``p' = -H_q + Q_nc + J^T lambda`` against the motion, H differentiated by differences."""
    name = "Hamilton"
    e = subject.equations
    if not views.speeds_are_rates(e):
        return not_applicable(name, "the speeds are not the rates of the coordinates, u = q'")
    if not subject.arithmetic.exact:
        return not_applicable(name, NO_DIGITS)
    view = views.hamilton(e, e.potential_energy.nodes[0] if subject.has_potential else None)
    momentum_rates = [e.system.full_rate(node) for node in e.momentum.nodes]
    worst = Worst(name, subject.arithmetic.tolerance)
    for state, motion in zip(subject.states, subject.motions, strict=True):
        try:
            velocity, slope = _hamiltonian_slopes(subject, view, state)
        except ZeroDivisionError:
            return not_applicable(name, "the kinetic-energy matrix Q is singular")
        worst.compare("q' = H_p", state, velocity, state.u)
        forces = subject.evaluate(view.forces, state)
        terms = list(zip(slope, forces, motion.constraint_force, strict=True))
        sizes = [abs(h) + abs(f) + abs(c) + x for (h, f, c), x in zip(terms, motion.inertia_sizes, strict=True)]
        expected = subject.evaluate(momentum_rates, state, udot=motion.udot)
        worst.compare("p'", state, [-h + f + c for h, f, c in terms], expected, sizes)
    return worst.check("q' = H_p, p' = -H_q + Q_nc + J^T lambda, H by differences")


def _hamiltonian_slopes(subject: Subject, view: views.Hamilton, state: State) -> tuple[list[Any], list[Any]]:
    """H_p and H_q by central differences of H(q, p, t)."""
    momenta = subject.evaluate(subject.equations.momentum.nodes, state)
    q = subject.values(state)["q"]

    def hamiltonian(q: list[Any], p: list[Any]) -> Any:
        n = subject.n_u
        values = subject.evaluate([x for row in view.Q for x in row] + [*view.N, view.R, view.V], state, q=q)
        Q, N, (R, V) = rows(values[: n * n], n), values[n * n : n * n + n], values[-2:]
        relative = [x - y for x, y in zip(p, N, strict=True)]
        return dot(relative, solve(Q, relative)) / 2 - R + V

    def slope(k: int, along_q: bool) -> Any:
        def moved(step: Any) -> list[Any]:
            arrays = [list(q), list(momenta)]
            arrays[0 if along_q else 1][k] += step
            return [hamiltonian(*arrays)]

        return central_difference(moved)[0]

    return [slope(k, False) for k in range(len(q))], [slope(k, True) for k in range(len(q))]


def added_speeds(subject: Subject) -> Check:
    """Constraint forces by speeds added for the motion that the constraints forbid (thesis 2.6)."""
    name = "added speeds"
    e = subject.equations
    n_c = len(e.constraints.rows)
    if not n_c:
        return not_applicable(name, "no constraints")
    worst = Worst(name, subject.arithmetic.tolerance)
    residual = [x - y for x, y in zip(views.gibbs_appell(e), views.active_forces(e), strict=True)]
    for state, motion in zip(subject.states, subject.motions, strict=True):
        forces = subject.evaluate(residual, state, udot=motion.udot)
        J = [motion.J[k] for k in motion.rows]
        _, order = pivoted_columns(unit_rows(J))
        dependent = order[: len(J)]  # speeds for which the constraint rows can be solved well
        square = [[row[j] for j in dependent] for row in J]
        # u_D = A u_I + J_D^-1 y: the equation of the added speed y_k gives the load that keeps it zero.
        multipliers = solve([list(column) for column in zip(*square, strict=True)], [forces[j] for j in dependent])
        worst.compare("lambda", state, motion.multipliers, multipliers, motion.multiplier_sizes)
        force = transposed_product(J, multipliers, subject.n_u)
        worst.compare("Fc", state, motion.constraint_force, force, motion.inertia_sizes)
    return worst.check("multipliers from the equations of speeds added along the constraints = lambda")


def power_balance(subject: Subject) -> Check:
    """``dK/dt`` along the motion against the power of all forces."""
    e = subject.equations
    worst = Worst("power balance", subject.arithmetic.tolerance)
    view, forces = views.power(e), views.active_forces(e)
    nodes: list[Node] = [view.kinetic_rate, view.prescribed, *forces]
    for state, motion in zip(subject.states, subject.motions, strict=True):
        rate, prescribed, *F = subject.evaluate(nodes, state, udot=motion.udot)
        terms = [x * (f + c) for x, f, c in zip(subject.values(state)["u"], F, motion.constraint_force, strict=True)]
        # Without forces every term vanishes: what counts then is the power of the inertia forces that cancel.
        inertia = dot([abs(x) for x in state.u], motion.inertia_sizes)
        size = sum(map(abs, terms)) + abs(prescribed) + inertia
        worst.compare("dK/dt", state, [rate], [dot(terms, [1] * len(terms)) + prescribed], [size])
    return worst.check("dK/dt = u.(F + Fc) + sum m v_t.a + w_t.H'")


def gauss(subject: Subject) -> Check:
    """Gauss' principle: a numeric minimization of the constraint in the null space of J, against u'."""
    name = "Gauss"
    worst = Worst(name, 1e-8)
    for state, motion in zip(subject.states, subject.motions, strict=True):
        least = _least_constraint(motion)
        if least is None:
            return not_applicable(name, "the kinetic-energy matrix Q is not positive definite")
        worst.compare("u'", state, list(least), motion.udot, motion.sizes)
    return worst.check("u' = argmin (u'-a)^T Q (u'-a) over J u' = b, a = Q^-1 P, by least squares in double precision")


def _least_constraint(motion: Motion) -> Array | None:
    """The minimizer in double precision, in speeds scaled to unit inertia."""
    Q, P = np.array(motion.Q, dtype=np.float64), np.array(motion.P, dtype=np.float64)
    b = np.array([motion.b[k] for k in motion.rows], dtype=np.float64)
    if np.any(np.diag(Q) <= 0.0):
        return None
    scale = 1.0 / np.sqrt(np.diag(Q))
    try:
        factor = np.linalg.cholesky(scale[:, None] * Q * scale)
    except np.linalg.LinAlgError:
        return None
    target = np.linalg.solve(factor, scale * P)
    if not len(b):
        return np.asarray(scale * np.linalg.lstsq(factor.T, target, rcond=None)[0])
    J = np.array([motion.J[k] for k in motion.rows], dtype=np.float64) * scale
    particular = np.linalg.lstsq(J, b, rcond=None)[0]
    _, singular, right = np.linalg.svd(J)
    free = right[len(singular) :].T
    weights = np.linalg.lstsq(factor.T @ free, target - factor.T @ particular, rcond=None)[0]
    return np.asarray(scale * (particular + free @ weights))
