"""Derivatives of the derivation against differences: constraint rows, their bias, momenta and energies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

from kanegen.derivation.constraints.constraints import ACCELERATION, POSITION, Row
from kanegen.graph import Node, evaluate, numpy_context
from kanegen.verification.arithmetic import DOUBLE, NO_DIGITS, STEP, central_difference, dot, product, rows
from kanegen.verification.report import Check
from kanegen.verification.states import State
from kanegen.verification.subject import Subject
from kanegen.verification.worst import Worst, not_applicable

COMPLEX_STEP = 1e-30


def jacobian(subject: Subject) -> Check:
    """J against complex-step derivatives of phi along ``q' = C u + D`` and of psi in u (Squire and Trapp 1998)."""
    name = "J by complex step"
    constraints = subject.equations.constraints.rows
    levels = [row for row in constraints if row.kind != ACCELERATION]
    if not levels:
        return not_applicable(name, "no constraints at position or velocity level")
    if not subject.arithmetic.exact:
        return not_applicable(name, "functions of the user may not take complex arguments")
    worst = Worst(name, DOUBLE)
    for state in subject.states:
        for row in levels:
            expected = [complex(x).real for x in evaluate(row.J, state.values())]
            worst.compare(f"row {row.label}", state, _complex_row(subject, row, state), expected)
    return worst.check("rows of J against differences of the residuals")


def _complex_row(subject: Subject, row: Row, state: State) -> list[float]:
    """One row of J: the change of the residual with each speed."""
    system, context = subject.equations.system, numpy_context()
    values = {name: [complex(x) for x in array] for name, array in state.values().items()}
    C = evaluate([c for line in system.C for c in line], state.values()) if row.kind == POSITION else []
    array = "q" if row.kind == POSITION else "u"
    result = []
    for r in range(subject.n_u):
        direction = C[r :: subject.n_u] if row.kind == POSITION else [float(k == r) for k in range(subject.n_u)]
        moved = {**values, array: _moved(values[array], direction, 1j * COMPLEX_STEP)}
        (residual,) = evaluate([row.residuals[0]], moved, context)
        result.append(float(np.imag(residual)) / COMPLEX_STEP)
    return result


def bias(subject: Subject) -> Check:
    """``J u' - b`` against second differences of phi and first ones of psi along a motion with arbitrary u'."""
    name = "b by differences"
    e = subject.equations
    levels = [row for row in e.constraints.rows if row.kind != ACCELERATION]
    if not levels:
        return not_applicable(name, "no constraints at position or velocity level")
    if not subject.arithmetic.exact:
        return not_applicable(name, NO_DIGITS)
    worst = Worst(name, subject.arithmetic.tolerance)
    residuals = [row.residuals[0] for row in levels]
    for state in subject.states:
        before, now, after = (subject.evaluate(residuals, state, **path) for path in motion_path(subject, state))
        h = mpmath.mpf(STEP)
        for k, row in enumerate(levels):
            *J, b = subject.evaluate([*row.J, row.bias], state)
            terms = [x * y for x, y in zip(J, subject.values(state)["udot"], strict=True)]
            difference = (after[k] - before[k]) / (2 * h)
            if row.kind == POSITION:
                difference = (after[k] - 2 * now[k] + before[k]) / h**2
            size = sum(map(abs, terms)) + abs(b)
            worst.compare(f"row {row.label}", state, [sum(terms) - b], [difference], [size])
    return worst.check("J u' - b against differences of phi and psi along a motion, for arbitrary u'")


def motion_path(subject: Subject, state: State, **given: Sequence[Any]) -> list[dict[str, Sequence[Any]]]:
    """t, q, u and r at -h, 0 and h of a motion through the state; correct to order h^2.

    ``given``: inputs ``r`` and accelerations ``udot`` in place of those of the state.
    """
    system = subject.equations.system
    values, h = subject.values(state, **given), mpmath.mpf(STEP)
    qdot = subject.evaluate(system.qdot, state)
    rates = _input_rates(subject, state)

    def along(s: Any) -> dict[str, Sequence[Any]]:
        return {
            "t": [values["t"][0] + s],
            "q": _moved(values["q"], qdot, s),
            "u": _moved(values["u"], values["udot"], s),
            "r": _moved(values["r"], rates, s),
        }

    def second(nodes: Sequence[Node]) -> list[Any]:
        return central_difference(lambda s: subject.evaluate(nodes, state, **along(s)))

    q_second = second(system.qdot)
    known = {k: node for k, node in enumerate(system.input_rates) if node is not None}
    r_second = [mpmath.mpf(0)] * len(rates)
    for k, value in zip(known, second(list(known.values())), strict=True):
        r_second[k] = value
    path = []
    for s in (-h, mpmath.mpf(0), h):
        place = along(s)
        bent = {"q": _moved(place["q"], q_second, s * s / 2), "r": _moved(place["r"], r_second, s * s / 2)}
        path.append({**place, **bent})
    return path


def _input_rates(subject: Subject, state: State) -> list[Any]:
    """Rates of the inputs; those without one do not appear where they would be needed. Hidden ones stay zero."""
    system = subject.equations.system
    nodes = (*system.input_rates, *(None for _ in system.hidden))
    return [mpmath.mpf(0) if node is None else subject.evaluate([node], state)[0] for node in nodes]


def _moved(x: Sequence[Any], direction: Sequence[Any], s: Any) -> list[Any]:
    return [a + s * d for a, d in zip(x, direction, strict=True)]


def momenta(subject: Subject) -> Check:
    """``Q u + N`` = momentum = dK/du by differences, ``K = 1/2 u.Q u + N.u + K(u = 0)``, energy = K + V."""
    e, n = subject.equations, subject.n_u
    worst = Worst("momenta and energies", subject.arithmetic.tolerance)
    energies = [*e.potential_energy.nodes, *e.energy.nodes] if subject.has_potential else []
    nodes = [*e.Q.nodes, *e.N.nodes, *e.momentum.nodes, *e.kinetic_energy.nodes, *energies]
    for state in subject.states:
        values = subject.evaluate(nodes, state)
        Q, N, momentum = rows(values[: n * n], n), values[n * n : n * n + n], values[n * n + n : n * n + 2 * n]
        kinetic, *others = values[n * n + 2 * n :]
        u = subject.values(state)["u"]
        Qu = product(Q, u)
        worst.compare("Q u + N", state, [x + y for x, y in zip(Qu, N, strict=True)], momentum)
        (rest,) = subject.evaluate(e.kinetic_energy.nodes, state, u=[mpmath.mpf(0)] * n)
        worst.compare("K", state, [dot(u, Qu) / 2 + dot(N, u) + rest], [kinetic])
        worst.compare("dK/du", state, _slopes(subject, state), momentum)
        if others:
            worst.compare("K + V", state, [kinetic + others[0]], [others[1]], [kinetic + abs(others[0])])
    return worst.check("momentum = Q u + N = dK/du, K quadratic in u" + (", energy = K + V" if energies else ""))


def _slopes(subject: Subject, state: State) -> list[Any]:
    """dK/du: K is quadratic in u, so that differences over any step are exact."""
    values = subject.values(state)["u"]
    result = []
    for r in range(subject.n_u):
        ends = []
        for sign in (1, -1):
            moved = list(values)
            moved[r] = moved[r] + sign
            ends.append(subject.evaluate(subject.equations.kinetic_energy.nodes, state, u=moved)[0])
        result.append((ends[0] - ends[1]) / 2)
    return result
