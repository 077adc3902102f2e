"""Spin-up of a flexible beam
==========================

A slender beam on a hub that starts to rotate: the example of Kane, Ryan and Banerjee (1987), "Dynamics of a cantilever
beam attached to a moving base", Journal of Guidance, Control, and Dynamics 10(2).

The beam (`L` = 10 m, EI = 1.4e4 N m^2, 1.2 kg/m) is clamped in the hub. The hub turns by the angle psi in a plane
without gravity, with the angular velocity psi' = omega (t/T - sin(2 pi t/T)/(2 pi)) until t = `T` = 15 s, and
`omega` = 6 rad/s from then on. The beam lags behind by 0.57 m and then vibrates about the straight line.

q = (q_beam_1, ...) are the deflections of the tip, m, by the first modes of the beam at rest, u = q'. Rotation stiffens
the beam, because points approach the hub as it bends. Linear displacements miss this, and diverge as soon as the hub
turns faster than the first frequency of the beam, 3.8 rad/s.

With terms of third order, the deflection of the tip is compared with that of a geometrically exact beam (Reissner 1972;
Simo and Vu-Quoc 1987), with finite elements of third order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

LENGTH, AREA, SECOND_MOMENT = 10.0, 4e-4, 2e-7
YOUNGS_MODULUS, DENSITY = 7e10, 3000.0
SPIN_UP, SPEED = 15.0, 6.0  # s, rad/s
TIMES = np.linspace(0.0, 20.0, 201)
STEPS = (0.0125, 0.01)
"""Of the integration of the exact beam, s."""

CASES = {
    "3 modes, third order": {"modes": 3},
    "5 modes, second order": {"modes": 5, "third_order": False},
}


def model(modes: int = 3, third_order: bool = True) -> kg.Model:
    """The beam on its hub; the output ``tip`` is the position of its end in the frame of the hub, m."""
    t = me.dynamicsymbols._t
    omega, T = sm.symbols("omega T")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    start = omega / T * (t**2 / 2 + (T / 2 / sm.pi) ** 2 * (sm.cos(2 * sm.pi * t / T) - 1))
    psi = sm.Piecewise((start, t < T), (omega * t - omega * T / 2, True))
    hub = N.orientnew("hub", "Axis", (psi, N.z))
    beam = kg.beam(
        "beam",
        hub,
        O,
        length=LENGTH,
        area=AREA,
        second_moment=SECOND_MOMENT,
        density=DENSITY,
        youngs_modulus=YOUNGS_MODULUS,
        modes=modes,
        third_order=third_order,
    )
    return kg.Model(
        name="flexible_spinup",
        frame=N,
        coordinates=beam.coordinates,
        speeds=beam.speeds,
        kinematics=(),
        bodies=(beam,),
        outputs={"tip": (beam.point("end").pos_from(O), hub), "root stress": beam.stress(0.0, y=0.01)},
        parameters={omega: SPEED, T: SPIN_UP},
        initial={"t": 0.0, **dict.fromkeys((*beam.coordinates, *beam.speeds), 0.0)},
    )


def simulate(**options: Any) -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model(**options))
    return solver, solver.integrate(TIMES[-1], rtol=1e-8, atol=1e-10, method="dop853", t_eval=TIMES)


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    exact = exact_deflections()
    deflections, largest = solution.outputs["tip"][:, 1], np.abs(exact).max()
    bound = 1e-3 if len(solution.q.T) == 3 else 1e-2
    yield "deflection of the tip against an exact beam, relative", np.abs(deflections - exact).max() / largest, bound
    yield "largest deflection of the exact beam less 0.574 m", largest - 0.574, 5e-4
    first = 1.8751040687119611**2 * np.sqrt(YOUNGS_MODULUS * SECOND_MOMENT / (DENSITY * AREA)) / LENGTH**2
    poles = np.abs(np.linalg.eigvals(_stiffness(solver)))
    yield "first frequency at rest, relative", np.sqrt(poles.min()) / first - 1.0, 1e-12


def _stiffness(solver: kg.Solver) -> np.ndarray:
    """``Q^-1 K`` of the straight beam at rest, (n, n), by differences of the forces."""
    n = len(solver.description.speeds)
    forces = np.array([solver.P(0.0, row, np.zeros(n)) for row in np.eye(n)])
    return np.linalg.solve(solver.Q(0.0, np.zeros(n), np.zeros(n)), -forces.T)


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    axes = figure.subplots()
    for name, (_, solution) in runs.items():
        axes.plot(solution.t, solution.outputs["tip"][:, 1], label=name)
    axes.plot(TIMES, exact_deflections(), "k:", label="exact beam")
    axes.set(xlabel="t (s)", ylabel="deflection of the tip (m)")
    axes.legend()


# -- the exact beam --------------------------------------------------------------------------------------------


@cache
def exact_deflections() -> np.ndarray:
    """Deflections of the tip at ``TIMES`` by finite elements, extrapolated from two steps of the integration."""
    (coarse, fine), steps = zip(*((ExactBeam().integrate(TIMES, h), h) for h in STEPS), strict=True)
    return np.asarray(fine + (fine - coarse) / ((steps[0] / steps[1]) ** 2 - 1))


class ExactBeam:
    """Four elements of third order for position and rotation (x, y, theta) of a beam that hardly shears."""

    def __init__(self, elements: int = 4, order: int = 3) -> None:
        self.n = elements * order + 1
        self.N, self.D, weights = self._interpolation(elements, order, order)  # one point less: no locking
        masses, _, mass_weights = self._interpolation(elements, order, order + 1)
        self.stiffness = np.outer((YOUNGS_MODULUS * AREA, 1e9, YOUNGS_MODULUS * SECOND_MOMENT), weights)
        M = DENSITY * AREA * masses.T @ (mass_weights[:, None] * masses)
        self.M = np.kron(np.diag([1.0, 1.0, 0.0]), M)

    def _interpolation(self, elements: int, order: int, points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values and slopes of the shape functions at Gauss points, and the weights of these."""
        z, w = np.polynomial.legendre.leggauss(points)
        half = LENGTH / elements / 2
        powers = np.linalg.inv(np.vander(np.linspace(-1.0, 1.0, order + 1), increasing=True))
        values = np.vander(z, order + 1, increasing=True) @ powers
        slopes = np.array([[k * x ** max(k - 1, 0) for k in range(order + 1)] for x in z]) @ powers / half
        N, D = np.zeros((2, elements * points, self.n))
        for e in range(elements):
            place = np.ix_(range(e * points, (e + 1) * points), range(e * order, (e + 1) * order + 1))
            N[place], D[place] = values, slopes
        return N, D, np.tile(w * half, elements)

    def forces(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Elastic forces and their derivatives."""
        N, D, none = self.N, self.D, np.zeros_like(self.D)
        x, y, theta = q.reshape(3, -1)
        c, s = np.cos(N @ theta), np.sin(N @ theta)
        stretch, shear = c * (D @ x) + s * (D @ y), -s * (D @ x) + c * (D @ y)
        strains = np.array([stretch - 1.0, shear, D @ theta])
        normal, across, _ = stresses = self.stiffness * strains
        rows = [
            np.hstack([c[:, None] * D, s[:, None] * D, shear[:, None] * N]),
            np.hstack([-s[:, None] * D, c[:, None] * D, -stretch[:, None] * N]),
            np.hstack([none, none, D]),
        ]
        force = np.sum([B.T @ stress for B, stress in zip(rows, stresses, strict=True)], axis=0)
        K = np.sum([B.T @ (k[:, None] * B) for B, k in zip(rows, self.stiffness, strict=True)], axis=0)
        moving, turning = np.hstack([D, none, none]), np.hstack([none, none, N])
        across_moving = np.hstack([none, D, none])
        G = moving.T @ ((-s * normal - c * across)[:, None] * turning)
        G += across_moving.T @ ((c * normal - s * across)[:, None] * turning)
        return force, K + G + G.T + turning.T @ ((-stretch * normal - shear * across)[:, None] * turning)

    def integrate(self, times: np.ndarray, step: float) -> np.ndarray:
        """Deflections of the tip from the line of the hub, by the generalized-alpha method."""
        radius = 0.9
        am, af = (2 * radius - 1) / (radius + 1), radius / (radius + 1)
        gamma, beta = 0.5 - am + af, (1 - am + af) ** 2 / 4
        n, steps = self.n, round(float(times[-1]) / step)
        q = np.concatenate([np.linspace(0.0, LENGTH, n), np.zeros(2 * n)])
        v, a, known = np.zeros(3 * n), np.zeros(3 * n), self.forces(q)[0]
        held = [0, n, 2 * n]
        free = np.setdiff1d(np.arange(3 * n), held)
        found = [0.0]
        for k in range(1, steps + 1):
            before, start, pushed = a.copy(), q + step * v + step**2 / 2 * a, v + step * a
            target = start.copy()
            target[held] = 0.0, 0.0, hub_angle(k * step)
            new = known
            for _ in range(12):
                a = before + (target - start) / (beta * step**2)
                new, K = self.forces(target)
                residual = self.M @ ((1 - am) * a + am * before) + (1 - af) * new + af * known
                S = (1 - am) / (beta * step**2) * self.M + (1 - af) * K
                change = np.linalg.solve(S[np.ix_(free, free)], -residual[free])
                target[free] += change
                if np.abs(change).max() < 1e-10:
                    break
            a = before + (target - start) / (beta * step**2)
            q, v, known = target, pushed + gamma * step * (a - before), new
            c, s = np.cos(hub_angle(k * step)), np.sin(hub_angle(k * step))
            found.append(float(c * q[2 * n - 1] - s * q[n - 1]))
        return np.asarray(np.interp(times, step * np.arange(steps + 1), found))


def hub_angle(t: float) -> float:
    """The angle of the hub, rad."""
    if t >= SPIN_UP:
        return SPEED * t - SPEED * SPIN_UP / 2
    return float(0.4 * (t**2 / 2 + (7.5 / np.pi) ** 2 * (np.cos(np.pi * t / 7.5) - 1)))


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot, CASES)
