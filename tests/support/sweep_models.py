"""The model of the tests of sweeps."""

from __future__ import annotations

from systems import initial, solver_for

import kanegen as kg


def pendulum() -> kg.Solver:
    """Three links on a cart, with the start of the example."""
    start, solver = initial("n_link_pendulum", n=3), solver_for("n_link_pendulum", n=3)
    names = (*solver.description.coordinates, *solver.description.speeds)
    return solver.with_initial(dict(zip(names, (*start["q"], *start["u"]), strict=True)))
