"""What a report is about: a model, and a motion if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kanegen.derivation import Equations, derive
from kanegen.errors import SolveError
from kanegen.model import Model
from kanegen.model.expressions import symbol_name
from kanegen.pipeline import build
from kanegen.solve import Solution, Solver


@dataclass(frozen=True, eq=False)
class Reported:
    """A model, its motion or the ``reason`` why there is none, and whether the checks of `kanegen.verify` are run.

    ``built_with``: the back end where no solver of a motion is known; see :attr:`backend`.
    """

    model: Model
    motion: Solution | None
    reason: str
    verify: bool
    built_with: str = "cython"

    @cached_property
    def equations(self) -> Equations:
        """The equations of motion."""
        return derive(self.model)

    @property
    def solution(self) -> Solution:
        """The motion. Raises `SolveError` with the reason if there is none."""
        if self.motion is None:
            raise SolveError(self.reason)
        return self.motion

    @property
    def has_solver(self) -> bool:
        """Whether the motion knows its solver; one that was loaded from a file may not."""
        return self.motion is not None and self.motion.reference is not None

    @cached_property
    def solver(self) -> Solver:
        """The solver of the motion, or else one with the defaults of `kanegen.build` and the same parameters."""
        if self.motion is not None and self.has_solver:
            solver: Solver = self.motion.solver
            return solver
        known = {symbol_name(symbol): value for symbol, value in self.parameters.items() if value is not None}
        return build(self.model, backend=self.built_with).with_parameters(known)

    @property
    def backend(self) -> str:
        """The back end of the solver: that of the motion, if it is known."""
        return self.motion.solver.extension.backend if self.motion is not None and self.has_solver else self.built_with

    @property
    def parameters(self) -> Mapping[Any, float | None]:
        """The values in the motion, or those of the model, by symbol."""
        run = None if self.motion is None else self.motion.run
        known = {} if run is None else run.parameters
        return {symbol: known.get(symbol_name(symbol), value) for symbol, value in self.model.parameters.items()}

    @property
    def start(self) -> Mapping[str, Any] | None:
        """The first state of the motion, ``{"t":, "q":, "u":, "s":, "r":}``; None without a motion."""
        motion = self.motion
        if motion is None or not motion.t.size:
            return None
        s = motion.s[0] if self.model.states else None
        r = motion.inputs[0] if self.model.inputs else None
        return {"t": float(motion.t[0]), "q": motion.q[0], "u": motion.u[0], "s": s, "r": r}
