"""Random particles whose coordinates are angles and lengths of any size, with rows and masses of any size.

The reference is a bordered solve in 60 digits, of matrices from SymPy's derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg
from kanegen.errors import BuildError
from kanegen.forms import FORMS

TIME = me.dynamicsymbols._t
MODELS, STATES = 60, 5
SHARE = (0, 3, 12)
"""Models that are tested in every run; rows of the last two were replaced by their rates, as in 4 others of 60."""

DIGITS, REGULAR, EXACT = 60, 1e5, 1e-13
"""Digits of the reference, condition number of regular states, and error of u' relative to it."""


def power(rng: np.random.Generator, low: int, high: int) -> sm.Rational:
    return sm.Rational(10) ** int(rng.integers(low, high + 1))


@dataclass(frozen=True)
class Particles:
    """Two to four particles, on curves in the plane or in space, with loads, rows of both kinds and their units."""

    seed: int

    @cached_property
    def parts(self) -> dict[str, Any]:
        rng = np.random.default_rng(self.seed)
        n = int(rng.integers(2, 5))
        q, u = me.dynamicsymbols(f"q:{n}"), me.dynamicsymbols(f"u:{n}")
        length, second, mass = power(rng, -9, 6), power(rng, -6, 3), power(rng, -9, 6)
        units = [length if rng.random() < 0.6 else sm.Integer(1) for _ in q]
        x = [a / unit for a, unit in zip(q, units, strict=True)]
        w = [a * second / unit for a, unit in zip(u, units, strict=True)]

        def curve() -> Any:
            i, j = rng.integers(0, n, 2)
            forms = (x[i], sm.sin(x[i]), x[i] * x[j], sm.cos(x[i]), x[i] ** 2 / 3, sm.sin(x[i] - x[j]))
            return forms[int(rng.integers(0, len(forms)))]

        places, masses, forces = [], [], []
        for k in range(n):
            shape = [x[k] * (1 + sm.Rational(k + 1, 7)) + curve(), curve(), curve() if rng.random() < 0.3 else 0]
            places.append(length * sm.Matrix(shape))
            masses.append(mass * power(rng, -1, 1))
            own = w[int(rng.integers(0, n))]
            force = [1 + 2 * own / 3 + 5 * own**2 / 7 + curve(), curve() - sm.sin(TIME / second), 0]
            forces.append(masses[-1] * length / second**2 * sm.Matrix(force))
        positions, speeds = [], []
        for k in range(int(rng.integers(0, n))):
            factor, other = power(rng, -12, 12), (k + 1) % n
            if rng.random() < 0.6:
                positions.append(factor * (x[k] - curve() / 2 - 3 * x[other] / 4 + curve() * x[k] / 5))
            else:
                curved = w[k] * w[-1] / 9 if rng.random() < 0.4 else 0
                row = w[k] * (1 + x[other] ** 2) - w[other] * sm.cos(x[k]) + curved + sm.sin(TIME / second) / 3
                speeds.append(factor * row)
        return {
            **{"q": q, "u": u, "units": units, "second": second, "places": places, "masses": masses},
            **{"forces": forces, "positions": positions, "speeds": speeds, "rng": rng},
        }

    def model(self) -> kg.Model:
        p = self.parts
        N, O = me.ReferenceFrame("N"), me.Point("O")
        O.set_vel(N, 0)
        points = [
            O.locatenew(f"P{k}", sum((c * axis for c, axis in zip(place.evalf(), N, strict=True)), me.Vector(0)))
            for k, place in enumerate(p["places"])
        ]
        loads = [
            (point, sum((c * axis for c, axis in zip(force.evalf(), N, strict=True)), me.Vector(0)))
            for point, force in zip(points, p["forces"], strict=True)
        ]
        return kg.Model(
            name="sized",
            frame=N,
            coordinates=p["q"],
            speeds=p["u"],
            kinematics=[a.diff(TIME) - b for a, b in zip(p["q"], p["u"], strict=True)],
            bodies=[me.Particle(f"B{k}", *item) for k, item in enumerate(zip(points, p["masses"], strict=True))],
            loads=loads,
            holonomic_constraints=[row.evalf() for row in p["positions"]],
            nonholonomic_constraints=[row.evalf() for row in p["speeds"]],
        )

    @cached_property
    def system(self) -> Callable[..., Any]:
        """M, P, J and b as functions of t, q and u."""
        p = self.parts
        q, u = p["q"], p["u"]
        rates = {a.diff(TIME): b for a, b in zip(q, u, strict=True)}
        M, P = sm.zeros(len(q)), sm.zeros(len(q), 1)
        for place, mass, force in zip(p["places"], p["masses"], p["forces"], strict=True):
            V = place.jacobian(q)
            M, P = M + mass * V.T * V, P + V.T * (force - mass * V.diff(TIME).xreplace(rates) * sm.Matrix(u))
        rows = [row.diff(TIME).xreplace(rates) for row in p["positions"]] + p["speeds"]
        J = sm.Matrix(len(rows), len(u), lambda i, j: rows[i].diff(u[j]))
        held = {a.diff(TIME): 0 for a in u}
        b = sm.Matrix(len(rows), 1, lambda i, _: -rows[i].diff(TIME).xreplace(held).xreplace(rates))
        K = M.row_join(-J.T).col_join(J.row_join(sm.zeros(len(rows)))) if rows else M
        return sm.lambdify([TIME, *q, *u], [K, P.col_join(b) if rows else P], "mpmath", cse=True)

    def states(self) -> Iterator[tuple[float, list[float], list[float], np.ndarray, np.ndarray, float]]:
        """Regular states with zeros, right angles and equal coordinates; u', its units, and the condition number."""
        p, n = self.parts, len(self.parts["q"])
        rng, found = p["rng"], 0
        units = np.array(p["units"], dtype=float)
        for _ in range(30):
            t = float(p["second"]) * rng.uniform(0.0, 2.0)
            q = units * rng.choice([0.0, 0.7, np.pi / 2, *rng.uniform(-1.5, 1.5, 2)], n)
            u = units / float(p["second"]) * rng.choice([0.0, 0.3, *rng.uniform(-1.0, 1.0, 2)], n)
            with mpmath.workdps(DIGITS):
                K, right = self.system(*map(mpmath.mpf, (t, *q, *u)))
                sizes = [mpmath.sqrt(abs(K[i, i])) for i in range(n)]
                if not all(sizes):
                    continue
                scales = [*sizes, *(mpmath.norm([K[i, j] / sizes[j] for j in range(n)]) for i in range(n, K.rows))]
                if not all(scales):
                    continue
                scaled = [[K[i, j] / scales[i] / scales[j] for j in range(K.rows)] for i in range(K.rows)]
                condition = np.linalg.cond(np.array(scaled, dtype=float))
                if condition < REGULAR and found < STATES:
                    found += 1
                    udot = mpmath.lu_solve(K, right)[:n]
                    size = np.array([float(s) for s in sizes])
                    yield t, q.tolist(), u.tolist(), np.array(udot, dtype=float).ravel(), size, condition


def assert_forms_agree(seed: int) -> None:
    particles = Particles(seed)
    model, states = particles.model(), list(particles.states())
    for form in FORMS:
        try:
            solver = kg.build(model, form=form, backend="interpreted", functions=("rhs",))
        except BuildError:
            continue  # the form does not admit the model
        for t, q, u, expected, sizes, condition in states:
            error = np.abs((solver.rhs(t, q, u)[1] - expected) * sizes).max()
            assert error <= EXACT * condition * np.abs(expected * sizes).max(), (form, t, q, u)


@pytest.mark.parametrize("seed", SHARE)
def test_random_units(seed: int) -> None:
    assert_forms_agree(seed)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [seed for seed in range(MODELS) if seed not in SHARE])
def test_random_units_in_the_campaign(seed: int) -> None:
    assert_forms_agree(seed)
