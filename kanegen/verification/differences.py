"""Derivatives compared with differences: rows and bias of constraints, momenta, energies, Jacobians, servo-constraints.

Every function compares at all states and returns what was compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy
from sympy.physics.vector import dynamicsymbols

from kanegen.derivation import views
from kanegen.derivation.constraints import Row
from kanegen.derivation.control.servo import ServoEquations, servo_equations
from kanegen.derivation.states import Numbers, State, kept_positions, numbers
from kanegen.errors import SolveError
from kanegen.graph import Node, evaluate, gradient, numpy_context
from kanegen.model.expressions import atoms
from kanegen.model.inputs import FORCES, MULTIPLIER
from kanegen.model.records import ACCELERATION, POSITION
from kanegen.verification.compiled import Compiled
from kanegen.verification.report import NotApplicableError, Worst
from kanegen.verification.subject import STEP, Motion, Subject, kkt, slopes

COMPLEX_STEP = 1e-30
JACOBIAN_STATES = 3
"""Differences in 50 digits cost two evaluations of the right-hand side per argument: a few states are enough."""


def jacobian(subject: Subject, worst: Worst) -> str:
    """J against complex-step derivatives of phi along ``q' = C u + D`` and of psi in u (Squire and Trapp 1998)."""
    rows = _differentiated(subject)
    if not subject.exact:
        raise NotApplicableError("functions of the user may not take complex arguments")
    for state in subject.states:
        for row in rows:
            worst.compare(f"row {row.label}", state, _complex_row(subject, row, state), evaluate(row.J, state.values()))
    return "rows of J against differences of the residuals"


def _differentiated(subject: Subject) -> list[Row]:
    """The constraints at position or velocity level, whose rows of J and b are derivatives."""
    rows = [row for row in subject.equations.constraints.rows if row.kind != ACCELERATION]
    if not rows:
        raise NotApplicableError("no constraints at position or velocity level")
    return rows


def _complex_row(subject: Subject, row: Row, state: State) -> list[float]:
    """One row of J: the derivatives of the residual with respect to the speeds."""
    values = {name: np.array(array, dtype=complex) for name, array in state.values().items()}
    array, directions = "u", np.eye(subject.n_u)
    if row.kind == POSITION:
        C = [evaluate(line, state.values()) for line in subject.equations.system.C]
        array, directions = "q", np.array(C).T
    result = []
    for direction in directions:
        moved = {**values, array: values[array] + 1j * COMPLEX_STEP * direction}
        (residual,) = evaluate(row.residuals[:1], {name: list(x) for name, x in moved.items()}, numpy_context())
        result.append(float(np.imag(residual)) / COMPLEX_STEP)
    return result


def bias(subject: Subject, worst: Worst) -> str:
    """``J u' - b`` against second differences of phi and first ones of psi along a motion with arbitrary u'."""
    rows = _differentiated(subject)
    subject.require_digits()
    for state in subject.states:
        _, first, second = _along_motion(subject, [row.residuals[0] for row in rows], state)
        J, b = subject.read(state, [row.J for row in rows], [row.bias for row in rows])
        terms = J * subject.values(state)["udot"]
        sizes = abs(terms).sum(axis=1) + abs(b)
        for k, row in enumerate(rows):
            difference = second[k] if row.kind == POSITION else first[k]
            worst.compare(f"row {row.label}", state, [terms[k].sum() - b[k]], [difference], [sizes[k]])
    return "J u' - b against differences of phi and psi along a motion, for arbitrary u'"


def _along_motion(
    subject: Subject, nodes: Sequence[Node], state: State, **given: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """Values of nodes and their first and second time derivatives by differences along a motion through the state.

    ``given`` holds inputs ``r`` and accelerations ``udot`` that replace those of the state.
    """
    before, now, after = (subject.evaluate(nodes, state, **place) for place in _motion_path(subject, state, **given))
    return now, (after - before) / (2 * STEP), (after - 2 * now + before) / STEP**2


def _motion_path(subject: Subject, state: State, **given: Numbers) -> list[dict[str, Numbers]]:
    """t, q, u, s and r at -h, 0 and h of a motion through the state; correct to order h^2, the states to order h.

    Inputs without a rate stay constant, because no differentiated node contains them.
    """
    system, values = subject.equations.system, subject.values(state, **given)
    known = {k: node for k, node in enumerate(system.input_rates) if node is not None}

    def input_changes(rates: Numbers) -> Numbers:
        changes = 0 * values["r"]
        changes[list(known)] = rates
        return changes

    rates = {"t": np.ones(1), "q": subject.evaluate(system.qdot, state), "u": values["udot"]}
    rates |= {"s": subject.evaluate(system.sdot, state, **given)}
    rates |= {"r": input_changes(subject.evaluate([*known.values()], state))}

    def along(s: Any) -> dict[str, Numbers]:
        return {name: values[name] + s * rate for name, rate in rates.items()}

    def second(nodes: Sequence[Node]) -> Numbers:
        before, after = (subject.evaluate(nodes, state, **along(s)) for s in (-STEP, STEP))
        return numbers((after - before) / (2 * STEP))

    bends = {"q": second(system.qdot), "r": input_changes(second([*known.values()]))}
    path = [(s, along(s)) for s in (-STEP, 0 * STEP, STEP)]
    return [place | {name: place[name] + bend * s**2 / 2 for name, bend in bends.items()} for s, place in path]


def energy_rate(subject: Subject, worst: Worst) -> str:
    """The rate of the energy by differences along the motion against the power of forces and states."""
    e = subject.equations
    if not e.system.s:
        raise NotApplicableError("the model has no states")
    if not e.model.has_potential:
        raise NotApplicableError("the model gives no potential energy")
    subject.require_digits()
    view, forces = views.power_balance(e), views.active_forces(e)
    symbols = (e.system.t, *e.system.q, *e.system.s)
    slopes_of_V = gradient(e.potential_energy.nodes, [e.graph.one], symbols)
    for state, motion in subject.motions:
        F, slope, qdot, sdot, (prescribed,) = subject.read(
            state, forces, slopes_of_V, e.qdot, e.sdot, [view.prescribed], udot=motion.udot
        )
        _, rate, _ = _along_motion(subject, e.energy.nodes, state, udot=motion.udot)
        powers = subject.values(state)["u"] * (F + motion.constraint_force)
        stored = slope * np.concatenate([np.ones(1), qdot, sdot])
        size = abs(powers).sum() + abs(stored).sum() + abs(prescribed) + abs(state.u) @ motion.inertia_sizes
        worst.compare("d(K + V)/dt", state, rate, [powers.sum() + prescribed + stored.sum()], [size])
    return "d(K + V)/dt by differences = u.(F + Fc) + V_q.q' + V_s.s' + V_t + power on prescribed motion"


def state_rates(subject: Subject, worst: Worst) -> str:
    """s' against the expressions of the user, evaluated by SymPy at the accelerations of the motion."""
    e, model = subject.equations, subject.equations.model
    if not e.system.s:
        raise NotApplicableError("the model has no states")
    subject.require_digits()
    symbols = sorted(atoms(model.states.values()), key=str)
    nodes = [e.system.lower(symbol) for symbol in symbols]
    time = dynamicsymbols._t
    function = sympy.lambdify([time, symbols], list(model.states.values()), "mpmath", dummify=True, cse=True)
    for state, motion in subject.motions:
        values, sdot = subject.read(state, nodes, e.sdot, udot=motion.udot)
        expected = numbers(function(subject.context.number(state.t), values.tolist()))
        worst.compare("s'", state, sdot, expected, abs(expected) + abs(values).max(initial=0))
    return "s' = the rates given to the model, evaluated by SymPy in 50 digits"


def momenta(subject: Subject, worst: Worst) -> str:
    """``Q u + N`` = momentum = dK/du by differences, ``K = 1/2 u.Q u + N.u + K(u = 0)``, energy = K + V."""
    e, potential = subject.equations, subject.equations.model.has_potential
    K_nodes = e.simplified([e.inertia.energy()])
    for state in subject.states:

        def kinetic_energy(u: Numbers, state: State = state) -> Any:
            return subject.evaluate(K_nodes, state, u=u)[0]

        Q, N, momentum, (kinetic,) = subject.read(state, e.Q, e.N, e.momentum, K_nodes)
        u = subject.values(state)["u"]
        worst.compare("Q u + N", state, Q @ u + N, momentum)
        worst.compare("K", state, [u @ Q @ u / 2 + N @ u + kinetic_energy(0 * u)], [kinetic])
        # K is quadratic in u, so that differences over any step are exact.
        worst.compare("dK/du", state, slopes(kinetic_energy, u, step=1), momentum)
        if potential:
            V, energy = subject.read(state, e.potential_energy, e.energy)
            worst.compare("K + V", state, [kinetic + V], [energy], [kinetic + abs(V)])
    return "momentum = Q u + N = dK/du, K quadratic in u" + (", energy = K + V" if potential else "")


def lagrangian(subject: Subject, worst: Worst) -> str:
    """``C^T (d/dt dL/dq' - dL/dq)`` by differences of L along a motion, against ``Q u' + L`` less the forces of V."""
    e, system = subject.equations, subject.equations.system
    subject.require_digits()
    L, (_, conservative) = views.lagrangian(e), views.applied_forces(e)

    def slopes_of(place: Mapping[str, Numbers], array: str, state: State) -> Numbers:
        return slopes(lambda x: subject.evaluate([L], state, **{**place, array: x})[0], place[array])

    for state in subject.states:
        path = _motion_path(subject, state)
        places = [place | {views.RATES: subject.evaluate(system.qdot, state, **place)} for place in path]
        before, _, after = (slopes_of(place, views.RATES, state) for place in places)
        forces = (after - before) / (2 * STEP) - slopes_of(places[1], "q", state)
        Q, inertia, udot, C, F = subject.read(state, e.Q, e.L, system.udot, system.C, conservative)
        sizes = abs(Q) @ abs(udot) + abs(inertia) + abs(F) + abs(C.T) @ abs(forces)
        worst.compare("Lagrange's left side", state, C.T @ forces, Q @ udot + inertia - F, sizes)
    return "C^T (d/dt L_q' - L_q) by differences of L = Q u' + L less the forces of V, for arbitrary u'"


def rate_jacobians(subject: Subject, worst: Worst) -> str:
    """``jacobian_q``, ``_u``, ``_s``, ``_r``, ``_p``, ``_t`` and ``_lambda`` against differences of (q', u', s')."""
    compiled = Compiled(subject.solver, stabilized=True)
    names = [name for name in compiled.names if name.startswith("jacobian_")]
    if not names:
        raise NotApplicableError("none is compiled")
    subject.require_digits()
    for name in names:
        pairs: list[tuple[State, Numbers, Numbers]] = []
        for state in subject.states[:JACOBIAN_STATES]:
            try:
                expected = _rate_slopes(subject, state, name.removeprefix("jacobian_"))
            except SolveError:
                continue  # the motion is undefined at this state
            try:
                actual = numbers(compiled(name, state))
            except SolveError as error:
                worst.add(str(error), state)
                continue
            if name == "jacobian_q":
                actual, expected = (_along_invariants(subject, state, slopes) for slopes in (actual, expected))
            pairs.append((state, actual, expected))
        # All derivatives can vanish at a special state.
        size = max((abs(expected).max(initial=0.0) for _, _, expected in pairs), default=0.0)
        for state, actual, expected in pairs:
            worst.compare(name, state, actual, expected, [size] * len(expected))
    return f"{', '.join(names)} against differences in 50 digits"


def _along_invariants(subject: Subject, state: State, rows: Numbers) -> Numbers:
    """The derivatives in q, row-major, along the directions that keep the invariants and the norms of Euler parameters.

    Equal expressions may differ where four numbers are no Euler parameters, so that other derivatives mean nothing.
    """
    system = subject.equations.system
    kept = kept_positions(subject.equations)
    if not kept or not len(rows):
        return rows
    G = np.array([evaluate(gradient([node], [system.graph.one], system.q), state.values()) for node in kept])
    rows = rows.reshape(-1, len(system.q))
    return numbers((rows - rows @ np.linalg.pinv(G) @ G).ravel())


def _rate_slopes(subject: Subject, state: State, array: str) -> Numbers:
    """Derivatives of (q', u', s') in the elements of an argument, row-major.

    Raises `SolveError` if there is no motion.
    """
    values, array = subject.values(state), FORCES if array == MULTIPLIER else array
    stabilized = any(function.name == "rhs_stabilized" for function in subject.program.functions)

    def rates(x: Numbers) -> Numbers:
        return subject.interpret("rhs_stabilized" if stabilized else "rhs", values | {array: x})

    return slopes(rates, values[array]).T.ravel()


def servo_constraints(subject: Subject, worst: Worst) -> str:
    """``psi'' = Theta1 psi' + Theta2 psi`` and ``psi' = Theta psi`` along the motion under the controls."""
    servo = subject.equations.model.servo
    if servo is None:
        raise NotApplicableError("the model has none")
    if servo.damping is not None:
        raise NotApplicableError("damped controls violate them near singular states")
    subject.require_digits()
    law = subject.equations.once(servo_equations)
    for state, motion in subject.motions:
        try:
            r, udot = _controlled(subject, law, state, motion)
        except SolveError:
            continue  # there are no controls at this state
        psi, first, second = _along_motion(subject, law.residuals[: len(law.J)], state, r=r, udot=udot)
        J, gains = subject.read(state, law.J, law.gains)
        for k in range(len(law.J)):
            terms = [first[k], -gains[k, 0] * psi[k]]
            if servo.holonomic(k):
                terms = [second[k], -gains[k, 0] * first[k], -gains[k, 1] * psi[k]]
            size = abs(J[k] * udot).sum() + sum(map(abs, terms))
            worst.compare(f"servo-constraint {k}", state, [sum(terms)], [0], [size])
    return "psi'' = Theta1 psi' + Theta2 psi, psi' = Theta psi by differences along the motion under tau"


def _controlled(subject: Subject, law: ServoEquations, state: State, motion: Motion) -> tuple[Numbers, Numbers]:
    """Inputs with the controls, and u' under them, at y = 0. Raises `SolveError` if there are no controls."""
    values = subject.values(state)
    r = values["r"].copy()
    r[list(law.controls.slots)] = subject.interpret("control", values | {"g": 0 * values["g"]})
    P = subject.evaluate(subject.equations.P.nodes, state, r=r)
    return r, kkt(motion.M, motion.J, P, motion.b)[0]
