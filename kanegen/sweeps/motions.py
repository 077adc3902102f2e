"""The task of a sweep without a function of the user: the motions of its members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.solve import Solver
from kanegen.solve.values import Variables
from kanegen.sweeps.tasks import Computed, Member, Piece, Values, failure


@dataclass(frozen=True)
class Motions:
    """The motions from ``t_span``; ``options`` are arguments of :meth:`kanegen.Solver.integrate`."""

    t_span: Any
    options: Mapping[str, Any]
    reserved: ClassVar[tuple[str, ...]] = ("t", "q", "u", "s", "outcome", "t_end", "n_steps", "n_evaluations")

    _DIMENSIONS: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "q": ("t", "coordinate"),
        "u": ("t", "speed"),
        "s": ("t", "state"),
    }

    @property
    def settings(self) -> Any:
        """See `Task`."""
        return self.t_span, dict(self.options)

    def run(self, solver: Solver, piece: Piece) -> Computed:
        """See `Task`."""
        errors: dict[int, str] = {}
        rows: list[Values] = []
        for place, member in enumerate(piece.members(solver.description)):
            try:
                rows.append(self._motion(solver, member))
            except SolveError as error:
                errors[place] = failure(error)
        places = [place for place in range(len(rows) + len(errors)) if place not in errors]
        groups = [(np.array(places), {key: np.stack([row[key] for row in rows]) for key in rows[0]})] if rows else []
        return Computed(groups, errors)

    def _motion(self, solver: Solver, member: Member) -> Values:
        options = dict(self.options)
        d = solver.description
        starts: dict[str, Any] = {}
        for (name, given), variables in zip(
            {"q0": member.q0, "u0": member.u0, "s0": member.s0}.items(), Variables.of(d), strict=True
        ):
            starts[name] = {**variables.read(options.pop(name, None)), **given}
        r = {**(options.pop("r", None) or {}), **member.r} or None
        varied = solver.with_parameters({k: v for k, v in member.items() if k in d.parameters})
        x = varied.integrate(self.t_span, **starts, r=r, dense_output=False, **options)
        last = slice(None) if options.get("t_eval") is not None else slice(-1, None)
        return {
            "q": x.q[last],
            "u": x.u[last],
            "s": x.s[last],
            "outcome": np.array(float(x.status.code)),
            "t_end": np.array(x.t[-1]),
            "n_steps": np.array(float(x.statistics.steps)),
            "n_evaluations": np.array(float(x.statistics.evaluations)),
        }

    def dimensions(self, name: str, ndim: int) -> tuple[str, ...]:
        """See `Task`."""
        return self._DIMENSIONS.get(name, ())

    def labels(self, description: Description) -> Mapping[str, NDArray[Any]]:
        """See `Task`."""
        d = description
        named = {"coordinate": d.coordinates, "speed": d.speeds, "state": d.states}
        times = self.options.get("t_eval")
        end = self.t_span if np.ndim(self.t_span) == 0 else self.t_span[-1]
        labels: dict[str, NDArray[Any]] = {"t": np.array([end] if times is None else times, dtype=np.float64)}
        return labels | {key: np.array(names, dtype=object) for key, names in named.items() if names}
