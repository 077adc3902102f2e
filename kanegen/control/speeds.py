"""Speeds of a guess whose coordinates are given: those of the kinematical equations."""

from __future__ import annotations

import numpy as np

from kanegen.arrays import Array
from kanegen.control.code import PointCode
from kanegen.control.layout import Layout
from kanegen.control.points import STAGE
from kanegen.control.program import NonlinearProgram
from kanegen.control.transcription import transcribe
from kanegen.control.variables import Variables


def with_speeds(layout: Layout, code: PointCode, variables: Variables) -> Variables:
    """The variables with the speeds for which q' are the slopes of the coordinates, by least squares."""
    model = layout.statement.model
    n_q, n_u = len(model.coordinates), len(model.speeds)
    transcription = transcribe(layout, code)
    program = NonlinearProgram(transcription, code, np.ones(layout.n_x), np.ones(transcription.n_g))
    x, places = variables.start.copy(), layout.all_y[:, n_q : n_q + n_u]
    duration = float(np.append(x, layout.known)[layout.duration])

    def rates() -> Array:
        return program.values(x, STAGE, "rates")[:, :n_q] / duration

    x[places] = 0.0
    rest = rates()
    columns = []
    for j in range(n_u):
        x[places[:, j]] = 1.0
        columns.append(rates() - rest)
        x[places[:, j]] = 0.0
    slopes = np.gradient(variables.start[layout.all_y[:, :n_q]], layout.tau_of_y * duration, axis=0)
    wanted = np.array([np.interp(layout.tau, layout.tau_of_y, column) for column in slopes.T]).T - rest
    u = np.einsum("mij,mj->mi", np.linalg.pinv(np.stack(columns, axis=-1)), wanted)
    moments = layout.moments
    for j in range(n_u):
        x[places[:, j]] = np.interp(layout.tau_of_y, layout.tau, u[:, j])
        x[moments.y[moments.own, n_q + j]] = np.interp(moments.tau[moments.own], layout.tau, u[:, j])
    return variables._replace(start=np.clip(x, variables.low, variables.high))
