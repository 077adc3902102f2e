"""Models whose speeds jump or whose contacts change their modes, small enough to differentiate by differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from numpy.typing import NDArray
from support.sensitivity_models import differences

import kanegen as kg

Array = NDArray[np.float64]
TIME = me.dynamicsymbols._t
g, e, mu, m, k, c, a = sm.symbols("g e mu m k c a", positive=True)
PARAMETERS: Mapping[Any, float] = {e: 0.7, mu: 0.3}


def particle(name: str, axes: str = "xz", force: Sequence[Any] = (), **more: Any) -> kg.Model:
    """A particle with the coordinates ``axes`` and their rates v_x ... as speeds, in gravity along -z.

    ``uses``: the symbols among `PARAMETERS` that the arguments contain.
    """
    q, u = (me.dynamicsymbols([f"{n}{axis}" for axis in axes]) for n in ("", "v_"))
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    along = [{"x": N.x, "y": N.y, "z": N.z}[axis] for axis in axes]
    P = O.locatenew("P", sum((x * n for x, n in zip(q, along, strict=True)), me.Vector(0)))
    P.set_vel(N, sum((v * n for v, n in zip(u, along, strict=True)), me.Vector(0)))
    loads = [(P, sum((f * n for f, n in zip(force, along, strict=True)), me.Vector(0)))] if force else []
    arguments: dict[str, Any] = {
        "name": name,
        "frame": N,
        "coordinates": q,
        "speeds": u,
        "kinematics": [x.diff(TIME) - v for x, v in zip(q, u, strict=True)],
        "bodies": [me.Particle("P", P, m)],
        "loads": loads,
        "gravity": -g * N.z,
    }
    own = {p: PARAMETERS[p] for p in more.pop("uses", ())}
    return kg.Model(**{**arguments, **more, "parameters": {m: 1.2, g: 9.81, **own, **more.get("parameters", {})}})


def end_state(solution: kg.Solution) -> Array:
    """The last state (n_y,)."""
    return np.concatenate(solution.last[1:])


def difference_quotients(
    solver: kg.Solver, t1: float, start: Mapping[str, float], names: Iterable[str], step: float = 1e-4, **options: Any
) -> Array:
    """The derivatives (n_y, k) of the state at ``t1`` by differences of order 6 of accurate runs."""
    d = solver.description

    def end(name: str, change: float) -> Array:
        moved, values = solver, dict(start)
        if name in d.parameters:
            moved = solver.with_parameters({name: solver.parameters[name] * (1.0 + change)})
        else:
            values[name] += change
        q, u, s = ({x: values[x] for x in part if x in values} for part in (d.coordinates, d.speeds, d.states))
        return end_state(
            moved.integrate((0.0, t1), q, u, s0=s or None, rtol=1e-12, atol=1e-13, method="dop853", **options)
        )

    columns = []
    for name in names:
        size = solver.parameters[name] if name in d.parameters else 1.0
        columns.append(differences(lambda x, name=name: end(name, x), step) / size)
    return np.column_stack(columns)


def sensitivities_at(
    solver: kg.Solver, t1: float, start: Mapping[str, float], names: Sequence[str], **options: Any
) -> tuple[kg.Solution, Array]:
    """A run with sensitivities, and their matrix at the end."""
    d = solver.description
    q, u, s = ({x: start[x] for x in part if x in start} for part in (d.coordinates, d.speeds, d.states))
    settings = {"rtol": 1e-11, "atol": 1e-12, "method": "dop853", **options}
    solution = solver.integrate((0.0, t1), q, u, s0=s or None, sensitivities=names, **settings)
    return solution, solution.sensitivities.matrix[-1]
