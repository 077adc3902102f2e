"""Derivatives of outputs along a motion, at all stored times in one compiled call for each direction."""

from __future__ import annotations

from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.program.catalogue import CHANGE_OF, CLOSED
from kanegen.solve.gradients.directions import Kind, unit_columns


def changes_of(solution: Any, name: str) -> Array:
    """The derivatives (n_t, ..., n_z) of an output or a quantity of a solution with sensitivities.

    These are the values of ``solution.sensitivities.of(name)``.
    """
    sensitivities = solution.sensitivities
    source = sensitivities._known_source
    code, directions, d = source.code, source.directions, source.code.functions.description
    name = CHANGE_OF + name + CLOSED * code.is_closed
    part = code.functions.extension.more((name,))
    of_r = unit_columns(directions, Kind.INPUT, len(d.inputs))
    of_p = unit_columns(directions, Kind.PARAMETER, len(d.parameters))
    n_t, n_p = len(solution.t), len(d.parameters)
    loads, inputs = np.zeros((n_t, code.n_loads)), solution.inputs
    columns = []
    for k in range(len(directions)):
        loads[:, : len(d.inputs)] = of_r[:, k]
        prepared = part.module.Prepared(code.functions.parameters, np.append(code.given[n_p:], of_p[:, k]))
        r = np.hstack([inputs, sensitivities.matrix[:, :, k], loads, np.zeros((n_t, 1))])
        states = solution.s if d.states else None
        columns.append(part.module.Function(name, prepared).value(solution.t, solution.q, solution.u, r, states))
    return np.stack(columns, axis=-1)
