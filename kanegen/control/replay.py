"""How far motions are from those of the adaptive integrator with the same inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.control.trajectory import Trajectory
from kanegen.solve import IntegrationError, Solver

_RTOL, _ATOL = 1e-10, 1e-12


def interval_errors(solver: Solver, motion: Trajectory, inputs: Any) -> Array:
    """The deviations at the end of each mesh interval, replayed from its own start, (N,).

    Each is the largest of a state, divided by the largest magnitude of that state along the motion; infinite where the
    integrator does not reach the end. ``inputs``: polynomials of all inputs, or None.
    """
    errors = np.empty(len(motion.mesh) - 1)
    for k, (t0, t1) in enumerate(zip(motion.mesh[:-1].tolist(), motion.mesh[1:].tolist(), strict=True)):
        ends = _replayed(solver, (t0, t1), motion.mesh_y[k], inputs, None)
        errors[k] = np.inf if ends is None else _deviation(motion, ends[-1], motion.mesh_y[k + 1])
    return errors


def span_error(solver: Solver, motion: Trajectory, inputs: Any) -> float:
    """The largest deviation at mesh points of a replay of the whole motion from its start, scaled in the same way."""
    found = _replayed(solver, (float(motion.mesh[0]), float(motion.mesh[-1])), motion.mesh_y[0], inputs, motion.mesh)
    return np.inf if found is None else _deviation(motion, found, motion.mesh_y)


def _deviation(motion: Trajectory, found: Array, y: Array) -> float:
    """The largest scaled difference of states (..., n); y can contain inputs behind them."""
    n = found.shape[-1]
    return float((np.abs(found - y[..., :n]) / motion.scale[:n]).max())


def _replayed(solver: Solver, span: tuple[float, float], y: Array, inputs: Any, t_eval: Array | None) -> Array | None:
    """The states of a run; None if it does not reach its end."""
    d = solver.description
    q, u, s, _ = np.split(y, np.cumsum([len(d.coordinates), len(d.speeds), len(d.states)]))
    states: Any = {"s0": s} if d.states else {}
    try:
        # Without a limit for the start, which satisfies constraints as accurately as the solver was asked to.
        options: Any = {"method": "dop853", "rtol": _RTOL, "atol": _ATOL, "t_eval": t_eval, "start_tolerance": None}
        run = solver.integrate(span, q, u, inputs, **options, **states)
    except IntegrationError:
        return None
    return np.hstack([run.q, run.u, run.s])
