"""Stability of a bicycle
======================

Stability of the benchmark bicycle over its speed and its trail, by a sweep of linear models.

The model is that of ``whipple_bicycle`` with four coordinates: two knife-edge wheels that roll without slip, a rear
frame with rider, and a fork. The trail ``c`` is the distance by which the contact of the front wheel follows the point
where the steer axis meets the ground; the benchmark has 0.08 m. For each pair of trail and forward speed, the task of
the sweep linearizes the nonlinear equations in steady straight riding and returns the four eigenvalues of roll and
steer (1/s). The bicycle is stable where all real parts are negative. The weave is a pair of complex eigenvalues, the
capsize a real one.

The script compares the eigenvalues with those of the published linear equations, with the trail as a variable, and the
motions after a push with those of the linear equations.

Source: J. P. Meijaard, J. M. Papadopoulos, A. Ruina and A. L. Schwab, "Linearized dynamics equations for the balance
and steer of a bicycle: a benchmark and review", Proc. R. Soc. A 463 (2007) 1955-1982: equation (5.3), appendix A.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import cos, sin
from typing import Any

import numpy as np
import whipple_bicycle

import kanegen as kg

DEFAULTS = whipple_bicycle.DEFAULTS
SPEEDS = np.linspace(0.0, 10.0, 41)
TRAILS = np.linspace(-0.05, 0.15, 33)
SPEED = 5.0
"""Forward speed of the motions (m/s)."""

PUSH = 0.01
"""Roll rate at their start (rad/s)."""

END = 4.0
INITIAL: dict[str, Any] = whipple_bicycle.pushed(SPEED, PUSH)
CASES = {"trail 0.08 m": {}, "trail 0.12 m": {"trail": 0.12}}


def model() -> kg.Model:
    """The bicycle with the coordinates of its place, which animations show."""
    return whipple_bicycle.model()


def eigenvalues(solver: kg.Solver, member: Mapping[str, float]) -> dict[str, np.ndarray]:
    """The task of the sweep: the four eigenvalues of roll and steer at the speed of the member."""
    return {"eigenvalues": np.sort_complex(whipple_bicycle.lateral_eigenvalues(member["speed"], solver))}


def stability(speeds: Any, trails: Any, **options: Any) -> kg.results.Sweep:
    """The eigenvalues (n_c, n_v, 4) over trail and speed; ``options``: executor and store of the sweep."""
    design = kg.grid(c=trails, speed=speeds)
    return kg.sweep(whipple_bicycle.solver(tracked=False), design, eigenvalues, extra="speed", **options)


def published(speed: float, trail: float) -> np.ndarray:
    """The matrix A of ``x' = A x``, x = (phi, de, phi', de'), after appendix A of the paper."""
    M, C1, K = _published_matrices(speed, {**DEFAULTS, "c": trail})
    return np.vstack([np.eye(2, 4, 2), -np.linalg.solve(M, np.hstack([K, speed * C1]))])


def _published_matrices(v: float, p: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M, C1 and ``g K0 + v^2 K2``; names as in the paper, ``L`` stands for the steer axis."""
    w, c, rR, rF, mR, mB, mH, mF = (p[name] for name in ("w", "c", "rR", "rF", "mR", "mB", "mH", "mF"))
    xB, zB, xH, zH = (p[name] for name in ("xB", "zB", "xH", "zH"))
    tilt, turn = sin(p["lambda"]), cos(p["lambda"])
    mT, mA = mR + mB + mH + mF, mH + mF
    xT, zT = (xB * mB + xH * mH + w * mF) / mT, (-rR * mR + zB * mB + zH * mH - rF * mF) / mT
    xA, zA = (xH * mH + w * mF) / mA, (zH * mH - rF * mF) / mA
    ITxx = p["IRxx"] + p["IBxx"] + p["IHxx"] + p["IFxx"] + mR * rR**2 + mB * zB**2 + mH * zH**2 + mF * rF**2
    ITxz = p["IBxz"] + p["IHxz"] - mB * xB * zB - mH * xH * zH + mF * w * rF
    ITzz = p["IRxx"] + p["IBzz"] + p["IHzz"] + p["IFxx"] + mB * xB**2 + mH * xH**2 + mF * w**2
    IAxx = p["IHxx"] + p["IFxx"] + mH * (zH - zA) ** 2 + mF * (rF + zA) ** 2
    IAxz = p["IHxz"] - mH * (xH - xA) * (zH - zA) + mF * (w - xA) * (rF + zA)
    IAzz = p["IHzz"] + p["IFxx"] + mH * (xH - xA) ** 2 + mF * (w - xA) ** 2
    uA = (xA - w - c) * turn - zA * tilt
    IALL = mA * uA**2 + IAxx * tilt**2 + 2.0 * IAxz * tilt * turn + IAzz * turn**2
    IALx = -mA * uA * zA + IAxx * tilt + IAxz * turn
    IALz = mA * uA * xA + IAxz * tilt + IAzz * turn
    mu, SF = c / w * turn, p["IFyy"] / rF
    ST, SA = p["IRyy"] / rR + SF, mA * uA + mu * mT * xT
    coupling = IALx + mu * ITxz
    gyroscopic = mu * ST + SF * turn
    M = np.array([[ITxx, coupling], [coupling, IALL + 2.0 * mu * IALz + mu**2 * ITzz]])
    C1 = np.array(
        [
            [0.0, gyroscopic + ITxz / w * turn - mu * mT * zT],
            [-gyroscopic, IALz / w * turn + mu * (SA + ITzz / w * turn)],
        ]
    )
    K0 = np.array([[mT * zT, -SA], [-SA, -SA * tilt]])
    K2 = np.array([[0.0, (ST - mT * zT) / w * turn], [0.0, (SA + SF * tilt) / w * turn]])
    return M, C1, p["g"] * K0 + v**2 * K2


def largest_difference(result: kg.results.Sweep) -> float:
    """The largest distance of a published eigenvalue from the nearest one of the sweep, relative to the largest."""
    differences = []
    for c, v, values in zip(result.design["c"], result.design["speed"], result["eigenvalues"], strict=True):
        expected = np.linalg.eigvals(published(v, c)).astype(complex)
        distance = whipple_bicycle.largest_difference(values, tuple(expected))
        differences.append(distance / np.abs(expected).max())
    return float(max(differences))


def simulate(trail: float = DEFAULTS["c"]) -> tuple[kg.Solver, kg.Solution]:
    """Some seconds after a sideways push at `SPEED`."""
    bicycle = whipple_bicycle.solver().with_parameters(c=trail)
    return bicycle, bicycle.integrate((0.0, END), INITIAL["q"], INITIAL["u"], rtol=1e-10, atol=1e-12)


def checks(bicycle: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    from scipy.linalg import expm

    result = stability(SPEEDS[::8], TRAILS[::8])
    yield "members that failed", float(len(result.failures)), 0.0
    yield "eigenvalues against the published equations, relative", largest_difference(result), 1e-12
    trail = bicycle.parameters["c"]
    linear = np.array([expm(published(SPEED, trail) * t) @ [0.0, 0.0, PUSH, 0.0] for t in solution.t])
    moved = np.stack([solution[name] for name in ("phi", "de", "u_phi", "u_de")], axis=1)
    # The next terms of the motion are of third order in angles of PUSH * 1 s.
    yield "motion against the linear one, relative", np.abs(moved - linear).max() / np.abs(linear).max(), 1e-3
    drift = np.ptp(solution.energy) / solution.energy[0]
    yield "energy drift, relative", drift, 1e-9


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    chart, *motions = figure.subplots(1 + len(runs), 1, height_ratios=(3, *[1] * len(runs)))
    result = stability(SPEEDS, TRAILS)
    rates = np.real(result.on_grid("eigenvalues")).max(axis=2)
    colors = chart.contourf(SPEEDS, TRAILS, rates, np.linspace(0.0, 4.0, 17), cmap="OrRd", extend="max")
    chart.contourf(SPEEDS, TRAILS, rates, [-np.inf, 0.0], colors=["tab:green"])
    figure.colorbar(colors, ax=chart, label="largest real part (1/s)", ticks=np.arange(5.0))
    chart.text(5.6, 0.105, "stable")
    chart.text(2.0, 0.105, "weave unstable", ha="center")
    chart.text(8.0, 0.03, "capsize unstable", ha="center")
    chart.plot([0.0, 10.0], [DEFAULTS["c"]] * 2, ":", color="black", linewidth=1.0)
    chart.set(xlabel="forward speed (m/s)", ylabel="trail (m)", title="steady straight riding; dotted: benchmark")
    for axis, (name, (bicycle, solution)) in zip(motions, runs.items(), strict=True):
        chart.plot(SPEED, bicycle.parameters["c"], "o", color="black", markersize=5)
        solution.plot(["phi", "de"], ax=axis)
        axis.set(ylabel="angle (rad)", title=f"{name}, pushed at {SPEED:g} m/s")


if __name__ == "__main__":
    from _report import script

    script(__doc__, simulate, checks, plot, CASES)
