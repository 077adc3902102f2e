"""Computes the tables and figures of docs/stabilization.md: drift with and without stabilization.

Run from anywhere: ``python docs/make_stabilization.py`` prints the tables in Markdown and writes docs/plots/*.png.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from make_pictures import save
from matplotlib.figure import Figure

import kanegen as kg

HERE = Path(__file__).resolve().parent
START = ((1.0, 0.0), (0.0, 0.0))
KINDS: dict[str, kg.Baumgarte | kg.Projection | None] = {
    "none": None,
    "Baumgarte": kg.Baumgarte(alpha=10, beta=10),
    "projection": kg.Projection(),
    "with energy": kg.Projection(integrals="energy"),
}
COLORS = {"none": "tab:red", "Baumgarte": "tab:blue", "projection": "tab:green", "with energy": "tab:orange"}
COLORS["minimal"] = "black"
METHODS: dict[str, dict[str, Any]] = {
    "Kutta-Merson, 0.01 s": {"method": "kutta_merson", "step": 0.01},
    "Kutta-Merson, 0.001 s": {"method": "kutta_merson", "step": 0.001},
    "dopri5, default tolerances": {"method": "dopri5"},
    "dop853, default tolerances": {"method": "dop853"},
}
GRAVITY = 9.81
REPEATS = 15


@dataclass(frozen=True)
class Drift:
    """Largest violations of position (m) and speed (m/s) and largest energy error (J) of one run, its time in s."""

    position: float
    velocity: float
    energy: float
    seconds: float


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, HERE.parent / f"build_examples/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pendulum() -> kg.Solver:
    return kg.build(example("varying_pendulum").model(), stabilization=KINDS["with energy"])


def minimal() -> kg.Solver:
    """The same particle with the constraint solved for y: (326)."""
    x, u = me.dynamicsymbols("x u1")
    N = me.ReferenceFrame("N")
    origin = me.Point("O")
    origin.set_vel(N, 0)
    point = origin.locatenew("P", x * N.x + (1 - x**2) * N.y)
    return kg.build(
        kg.Model(
            name="varying_pendulum_minimal",
            frame=N,
            coordinates=(x,),
            speeds=(u,),
            kinematics=(u - x.diff(me.dynamicsymbols._t),),
            bodies=(me.Particle("particle", point, sm.Integer(1)),),
            gravity=GRAVITY * N.y,
        )
    )


def position_violation(solution: kg.Solution) -> np.ndarray:
    x, y = solution.q.T
    return y + x**2 - 1.0


def velocity_violation(solution: kg.Solution) -> np.ndarray:
    (x, _), (u1, u2) = solution.q.T, solution.u.T
    return u2 + 2.0 * x * u1


def energy_error(solution: kg.Solution) -> np.ndarray:
    energy = (solution.u**2).sum(axis=1) / 2.0 + GRAVITY * (1.0 - solution.q[:, 1])
    return energy - energy[0]


def drifts(solvers: Mapping[str, kg.Solver], end: float, options: Mapping[str, Any]) -> dict[str, Drift]:
    """One run of each kind; the times are the best of interleaved runs, storing all steps and dense output."""
    best = dict.fromkeys(solvers, np.inf)
    found = {}
    for _ in range(REPEATS):
        for kind, solver in solvers.items():
            started = time.thread_time()
            solution = solver.integrate((0.0, end), *START, **options)
            best[kind] = min(best[kind], time.thread_time() - started)
            found[kind] = solution
    return {
        kind: Drift(
            float(np.abs(position_violation(solution)).max()),
            float(np.abs(velocity_violation(solution)).max()),
            float(np.abs(energy_error(solution)).max()),
            best[kind],
        )
        for kind, solution in found.items()
    }


def print_table(title: str, results: Mapping[str, Mapping[str, Drift]]) -> None:
    print(f"\n{title}\n")
    print("| method | stabilization | phi (m) | phi' (m/s) | energy (J) | time (ms) | relative time |")
    print("|---|---|---|---|---|---|---|")
    for method, kinds in results.items():
        for kind, d in kinds.items():
            share = d.seconds / kinds["none"].seconds
            numbers = f"{d.position:.1e} | {d.velocity:.1e} | {d.energy:.1e} | {1e3 * d.seconds:.1f} | {share:.2f}"
            print(f"| {method} | {kind} | {numbers} |")


def print_integrals() -> None:
    """The spherical pendulum: energy and momentum kept, against Hamilton's equations."""
    module = example("spherical_pendulum")
    names = ("energy", "angular_momentum")
    solver = kg.build(module.model(), stabilization=kg.Projection(integrals=names))
    times = np.linspace(0.0, 200.0, 401)
    exact = module.hamilton(times)[:, :2]
    start = (module.INITIAL["q"], module.INITIAL["u"])
    print("\nSpherical pendulum, 200 s\n")
    print("| method | kept | energy (J) | momentum (J s) | motion (rad) | time (ms) | relative time |")
    print("|---|---|---|---|---|---|---|")
    for method, options in {"rk4, 0.01 s": {"method": "rk4", "step": 0.01}, **METHODS}.items():
        solvers = {}
        for kept in ((), names[:1], names):
            solvers[kept] = solver.with_stabilization(kg.Projection(integrals=kept) if kept else None)
        best = dict.fromkeys(solvers, np.inf)
        for _ in range(REPEATS):
            for kept, kind in solvers.items():
                started = time.thread_time()
                kind.integrate((0.0, 200.0), *start, **options)
                best[kept] = min(best[kept], time.thread_time() - started)
        for kept, kind in solvers.items():
            error = np.abs(kind.integrate((0.0, 200.0), *start, t_eval=times, **options).q - exact).max()
            run = kind.integrate((0.0, 200.0), *start, **options)
            found = [kind.outputs(0.0, q, u) for q, u in zip(run.q, run.u, strict=True)]
            drift = [np.ptp([value[name] for value in found]) for name in ("jacobi_integral", "angular_momentum")]
            label = " and ".join(kept).replace("_", " ") or "none"
            numbers = f"{drift[0]:.1e} | {drift[1]:.1e} | {error:.1e} | {1e3 * best[kept]:.1f}"
            print(f"| {method} | {label} | {numbers} | {best[kept] / best[()]:.2f} |")


def draw_figures(solvers: Mapping[str, kg.Solver]) -> Figure:
    """Figures 16 to 20 and 22, with the projection beside them."""
    figure = Figure(figsize=(9.5, 7.5), layout="constrained")
    times = np.linspace(0.0, 500.0, 1001)
    rows = (("none", 0.01, " (16, 18)"), ("none", 0.001, " (17, 19)"), ("Baumgarte", 0.001, " (20, 22)"))
    runs = {}
    for kind, step, number in (*rows, ("projection", 0.001, ""), ("with energy", 0.001, "")):
        run = solvers[kind].integrate((0.0, 500.0), *START, method="kutta_merson", step=step, t_eval=times)
        runs[f"{kind}, step {step:g} s{number}"] = run
    kg.plot.drift(runs, ax=figure)
    return figure


def draw_hour(solvers: Mapping[str, kg.Solver], exact: kg.Solver) -> Figure:
    """Figure 21: y at the end of one hour with the step 0.1 s."""
    figure = Figure(figsize=(9.5, 5.5), layout="constrained")
    panels = figure.subplots(2, 1)
    times = np.linspace(3590.0, 3600.0, 2001)
    coarse = {"method": "kutta_merson", "step": 0.1}
    runs = {kind: s.integrate((0.0, 3600.0), *START, t_eval=times, **coarse) for kind, s in solvers.items()}
    minimal_run = exact.integrate((0.0, 3600.0), (1.0,), (0.0,), t_eval=times, **coarse)
    y = {"minimal": 1.0 - minimal_run["x"] ** 2} | {kind: run["y"] for kind, run in runs.items()}
    for kind, values in y.items():
        print(f"  {kind}: y between {values.min():.4f} and {values.max():.4f}")
    for ax in panels:
        for kind, run in runs.items():
            run.plot("y", ax=ax, label=kind)
            ax.get_lines()[-1].set_color(COLORS[kind])
        ax.plot(times, y["minimal"], label="minimal", color=COLORS["minimal"], linestyle=":")
    panels[0].set(title="y after one hour, step 0.1 s (figure 21)", xlim=(3590.0, 3600.0))
    panels[1].set(ylim=(-0.25, 1.1), ylabel="y, enlarged", xlim=(3590.0, 3600.0))
    panels[0].legend(ncols=5, fontsize="small")
    panels[1].get_legend().remove()
    return figure


def draw_cost(results: Mapping[str, Mapping[str, Drift]]) -> Figure:
    """Violation and energy error after 500 s over the time they cost."""
    figure = Figure(figsize=(9.5, 4.0), layout="constrained")
    axes = figure.subplots(1, 2)
    for marker, (method, kinds) in zip("osd^", results.items(), strict=True):
        for kind, drift in kinds.items():
            for ax, value in zip(axes, (max(drift.position, drift.velocity), drift.energy), strict=True):
                label = f"{kind}: {method}" if ax is axes[1] else None
                ax.loglog(1e3 * drift.seconds, value, marker, color=COLORS[kind], label=label)
    axes[0].set(xlabel="time of 500 s (ms)", ylabel="largest violation (m, m/s)")
    axes[1].set(xlabel="time of 500 s (ms)", ylabel="largest energy error (J)")
    figure.legend(loc="outside right upper", fontsize="x-small")
    return figure


def main() -> None:
    solver = pendulum()
    solvers = {kind: solver.with_stabilization(stabilization) for kind, stabilization in KINDS.items()}
    results = {name: drifts(solvers, 500.0, options) for name, options in METHODS.items()}
    print_table("After 500 s", results)
    hour = {"Kutta-Merson, 0.1 s": {"method": "kutta_merson", "step": 0.1}, **METHODS}
    del hour["Kutta-Merson, 0.001 s"]
    print_table("After one hour", {name: drifts(solvers, 3600.0, options) for name, options in hour.items()})
    print_integrals()
    plots = HERE / "plots"
    plots.mkdir(exist_ok=True)
    print("\nAfter one hour, step 0.1 s")
    save(draw_hour(solvers, minimal()), plots / "stabilization_hour.png")
    save(draw_figures(solvers), plots / "stabilization_drift.png")
    save(draw_cost(results), plots / "stabilization_cost.png")


if __name__ == "__main__":
    main()
