"""The search for a periodic motion: a damped Newton method for the equations of shooting."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.solve.gradients.orbits import Floquet, PeriodicMotion
from kanegen.solve.gradients.shooting import Nodes, Setting, Shooting, System

_STEPS: Final = 60
_HALVINGS: Final = 10
_LARGEST: Final = 3.0
"""The period may change by the inverse of this fraction in a correction; a component by its own size."""
_COLLAPSED: Final = 1e-3
"""A motion whose extent or period is below this fraction of that of the guess has shrunk to an equilibrium."""
_TRUSTED: Final = 0.2
"""Singular values below this fraction of the residual are left out."""
_ENOUGH: Final = 0.3
"""A correction that leaves a larger fraction of the residual is compared with that of all directions."""
_WORSE: Final = 2.0
"""Largest factor by which a correction may increase the residual."""
_NEGLIGIBLE: Final = 1e-6
"""Components below this fraction of the largest one of their kind do not count with their own size."""
_POLISHED: Final = 0.1
"""A further correction counts if it reduces the residual to this fraction."""


def search(shooting: Shooting, nodes: Nodes, tolerance: float) -> tuple[System, int]:
    """The solution of the equations near the nodes, and the number of corrections. Raises `SolveError`."""
    system, first, count = shooting.system(shooting.consistent(nodes)), nodes.period, 0
    while system.error > tolerance:
        found = _damped(shooting, system) if count < _STEPS else None
        if found is None:
            raise SolveError(_failure(shooting, system, count, tolerance))
        system, count = found, count + 1
        if shooting.setting.is_period_unknown and system.nodes.period < _COLLAPSED * first:
            raise SolveError(
                f"the search for a periodic motion of {_name(shooting)} ended at an equilibrium: the period shrank to "
                f"{system.nodes.period:.3g} s; give a guess farther from the equilibrium"
            )
    return polished(shooting, system), count


def polished(shooting: Shooting, system: System) -> System:
    """The system, corrected until this does not improve it."""
    while system.error > 0.0:
        try:
            step = system.correction(trusted=_TRUSTED * system.error)
            better = shooting.system(shooting.moved(system.nodes, step))
        except SolveError:
            return system
        if better.error > _POLISHED * system.error:
            return better if better.error < system.error else system
        system = better
    return system


def _damped(shooting: Shooting, system: System) -> System | None:
    """The system after a correction that reduces the residual; None if there is none.

    Far from a solution, what the equations say in directions of small singular values is not trusted: where motions
    form a family, the direction of the family is among them.
    """
    limits = _TRUSTED * system.error, 0.0
    found = _reduced(shooting, system, limits[0])
    if found is not None and found.error < _ENOUGH * system.error:
        return found
    others = [found, _reduced(shooting, system, limits[1])]
    return min((other for other in others if other is not None), key=lambda other: other.error, default=None)


def _reduced(shooting: Shooting, system: System, trusted: float) -> System | None:
    """The system after a part of the correction, so that the next one is shorter; None if there is no such part.

    This is the natural monotonicity test (P. Deuflhard, Newton Methods for Nonlinear Problems, Springer 2004, section
    3.3), with the matrix of this system for both corrections.
    """
    dx = system.correction(trusted=trusted)
    n_nodes, size = shooting.setting.segments * shooting.n_y, float(np.linalg.norm(dx))
    changes = np.abs(dx[:n_nodes]).max(initial=0.0), _LARGEST * np.abs(dx[n_nodes:]).max(initial=0.0)
    length = 1.0 / max(1.0, *changes)
    for _ in range(_HALVINGS):
        try:
            new = shooting.system(shooting.moved(system.nodes, length * dx))
        except SolveError:
            new = None
        if new is not None and new.error <= _WORSE * system.error:
            left = system.correction(trusted=trusted, residual=new.residual)
            if float(np.linalg.norm(left)) < (1.0 - 0.5 * length) * size:
                return new
        length /= 2.0
    return None


def _name(shooting: Shooting) -> str:
    return repr(shooting.solver.description.name)


def _failure(shooting: Shooting, system: System, count: int, tolerance: float) -> str:
    """The message with the residual, and advice."""
    d, scale = shooting.solver.description, shooting.setting.scale
    gaps = [
        np.abs(system.nodes.y[(k + 1) % len(system.segments)] / scale - segment.end)
        for k, segment in enumerate(system.segments)
    ]
    gaps[-1] = np.abs((system.nodes.y[0] + shooting.setting.advance) / scale - system.segments[-1].end)
    worst = np.max(gaps, axis=0)
    names = (*d.coordinates, *d.speeds, *d.states)
    shown = ", ".join(
        f"{names[k]} by {worst[k] * scale[k]:.3g}" for k in np.argsort(-worst)[:3] if worst[k] > tolerance
    )
    segments = shooting.setting.segments
    return (
        f"no periodic motion of {d.name!r} was found near the guess: after {count} corrections the motion misses its "
        f"start by {system.error:.3g} of the size of the components (tolerance {tolerance:.3g}; {shown}), with the "
        f"period {system.duration:.6g} s; give a guess nearer to the motion (for a stable one, a Solution that has "
        f"approached it), more segments= (now {segments}) if the motion is unstable, or smaller rtol and atol"
    )


def record(shooting: Shooting, system: System, count: int, period_of: Any = None) -> PeriodicMotion:
    """The periodic motion that solves the equations."""
    setting, d, y = shooting.setting, shooting.solver.description, system.nodes.y[0]
    floquet, tangent = Floquet.of(system, setting), system.manifolds[0].tangent
    basis, monodromy = tangent * setting.scale[:, None], floquet.monodromy
    if tangent.shape[1] == len(y):  # neither constraints nor closed contacts
        basis, monodromy = np.eye(len(y)), monodromy * setting.scale[:, None] / setting.scale
    q, u, s = np.split(y, [shooting.n_q, shooting.n_q + shooting.n_u])
    names = (*d.coordinates, *d.speeds, *d.states)
    return PeriodicMotion(
        period=system.duration,
        t=setting.t0,
        **{"q": q, "u": u, "s": s},
        values=dict(zip(names, y.tolist(), strict=True)),
        solution=shooting.motion(setting.t0, setting.t0 + system.duration, y),
        multipliers=floquet.multipliers,
        transverse=floquet.transverse,
        monodromy=monodromy,
        basis=basis,
        forced=setting.forced,
        section=setting.section,
        residual=system.error,
        iterations=count,
        nodes=system.nodes,
        setting=setting,
        period_of=period_of,
        units=shooting.solver.units,
    )


def sizes_of(d: Description, states: Array) -> Array:
    """The sizes of the components (n_y,) in some states (n, n_y); of small ones the largest of their kind, or 1."""
    sizes: Array = np.abs(states).max(axis=0)
    counts = np.cumsum([len(d.coordinates), len(d.speeds)])
    for part in np.split(sizes, counts):
        largest = float(part.max(initial=0.0))
        part[part <= _NEGLIGIBLE * largest] = largest or 1.0
    return sizes


def extent(states: Array, scale: Array) -> float:
    """How far states (n, n_y) are apart, relative to the sizes of the components."""
    return float((np.ptp(states, axis=0) / scale).max(initial=0.0))


def require_motion(shooting: Shooting, system: System, orbit: PeriodicMotion, guess: float) -> None:
    """Raise `SolveError` if an autonomous motion has shrunk to an equilibrium; ``guess``: the extent of the guess."""
    setting: Setting = shooting.setting
    if not setting.autonomous or setting.advance.any():
        return
    states = np.hstack([orbit.solution.q, orbit.solution.u, orbit.solution.s])
    if extent(states, setting.scale) <= _COLLAPSED * guess:
        where = ", ".join(f"{name} = {value:.6g}" for name, value in list(orbit.values.items())[:6])
        raise SolveError(
            f"the search for a periodic motion of {_name(shooting)} ended at an equilibrium, {where}: give a guess "
            "farther from it, or hold a start value by fixed="
        )
