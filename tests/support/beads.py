"""A line of beads: as many speeds as wanted, one nonholonomic constraint, a mass that may be zero."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

TIME = me.dynamicsymbols._t


def beads(n: int, mass: Any = 1) -> kg.Model:
    """Beads on a line joined by springs, the speeds of the first two tied by ``u0 = (1 + x2) u1``; the first's mass."""
    x, u = me.dynamicsymbols(f"x0:{n}"), me.dynamicsymbols(f"u0:{n}")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points = [O.locatenew(f"P{k}", xk * N.x) for k, xk in enumerate(x)]
    masses = [mass, *(sm.Rational(k + 2, 2) for k in range(1, n))]
    return kg.Model(
        name=f"beads{n}",
        frame=N,
        coordinates=x,
        speeds=u,
        kinematics=[uk - xk.diff(TIME) for uk, xk in zip(u, x, strict=True)],
        bodies=[me.Particle(f"b{k}", point, m) for k, (point, m) in enumerate(zip(points, masses, strict=True))],
        potential_energy=sum((a - b) ** 2 for a, b in pairwise(x)),
        loads=[(a, 2 * (b.pos_from(a) & N.x) * N.x) for a, b in pairwise(points)]
        + [(b, -2 * (b.pos_from(a) & N.x) * N.x) for a, b in pairwise(points)],
        nonholonomic_constraints=(u[0] - (1 + x[2]) * u[1],),
    )
