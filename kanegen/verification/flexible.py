"""Flexible bodies: the kinetic energy of their particles compared with that of their mode shapes."""

from __future__ import annotations

import numpy as np

from kanegen.derivation.states import Numbers, State, numbers
from kanegen.flexible.body import FlexibleBody, Lump
from kanegen.verification.report import NotApplicableError, Worst
from kanegen.verification.subject import Subject


def flexible_bodies(subject: Subject, worst: Worst) -> str:
    """The kinetic energy of each flexible body from the integrals of its modes, at its mean velocity.

    With equal energies as functions of coordinates and speeds, Lagrange's equations are those of the mode shapes.
    """
    model = subject.equations.model
    bodies = dict.fromkeys(body.owner for body in model.bodies if isinstance(body, Lump))
    if not bodies:
        raise NotApplicableError("the model has no flexible bodies")
    for body in bodies:
        changed = [str(x) for x, value in body.parameters.items() if model.parameters.get(x, value) != value]
        if changed:
            raise NotApplicableError(f"the parameters of {body.name} have other values: {', '.join(changed[:3])}")
        for state in subject.states:
            worst.compare(f"kinetic energy of {body.name}", state, *_energies(subject, body, state))
    return "kinetic energy of particles = that of the integrals of mode shapes over the mass"


def _energies(subject: Subject, body: FlexibleBody, state: State) -> tuple[Numbers, Numbers]:
    """The energy of the particles and that of the modes, J."""
    system, model = subject.equations.system, subject.equations.model
    motions = [system.points.motion(lump.masscenter) for lump in body.particles]
    v = [system.frames.express({motion.frame: motion.velocity}, body.frame) for motion in motions]
    places = [model.coordinates.index(q) for q in body.coordinates]
    rates, omega = [system.qdot[k] for k in places], system.frames.omega(body.frame, body.frame)
    velocities, eta_dot, w = subject.read(state, v, rates, omega)
    V = _field_velocities(body, subject.values(state)["q"][places], eta_dot, w)
    G = numbers(body.data.integrals.tolist())
    V = np.vstack([velocities.mean(axis=0) - G[0, 1:] @ V / G[0, 0], V])
    particles = G[0, 0] / len(velocities) * (velocities**2).sum() / 2
    return numbers([particles]), numbers([((G @ V) * V).sum() / 2])


def _field_velocities(body: FlexibleBody, eta: Numbers, eta_dot: Numbers, omega: Numbers) -> Numbers:
    """The rates (n_f, 3) of the vectors by which the functions of the body are multiplied, in its axes."""
    rows = []
    for c, monomial in body.data.fields.terms:
        axis = np.eye(3, dtype=object)[c]
        factors = [eta[m] for m in monomial]
        rate = sum(eta_dot[m] * np.prod(factors[:k] + factors[k + 1 :]) for k, m in enumerate(monomial))
        rows.append(rate * axis + np.prod(factors) * np.cross(omega, axis))
    return np.array(rows, dtype=object)
