"""Periodic motions with their multipliers: the records, and what the multipliers say about stability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kanegen import display
from kanegen.arrays import Array
from kanegen.display import Table
from kanegen.errors import SolveError
from kanegen.solve.gradients.shooting import Nodes, Setting, System
from kanegen.solve.solution import Solution
from kanegen.solve.values import key_name, shown, shown_values, unknown
from kanegen.units import Units

NEUTRAL: Final = 1e-6
"""Magnitudes of multipliers within this distance of 1 count as 1: the derivatives have an error of this size where
multipliers are double."""

NEAR: Final = 0.1
"""A multiplier announces a bifurcation if its magnitude is within this distance of 1."""

_TRIVIAL: Final = 1e-4
"""Largest relative error with which the flow returns after a period."""

Multipliers = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class PeriodicMotion:
    """A periodic motion with its Floquet multipliers. ``orbit["theta"]`` is the start value of a variable.

    Attributes
    ----------
    period
        The period, s.
    t, q, u, s
        Time (s), coordinates (n_q,), speeds (n_u,) and states (n_s,) at the start.
    values
        The start by name, without the time.
    solution
        The motion over one period.
    multipliers
        The eigenvalues of ``monodromy``, by falling magnitude. That of the direction of the flow, which is 1 in an
        autonomous model, is among them; with a section, where it is 0, it is left out.
    transverse
        The multipliers that decide on stability, (n,): without that of the flow, and without those of directions that
        violate constraints.
    monodromy
        How changes of the start return after a period, (k, k), in the directions ``basis`` (n_y, k) of y = (q, u, s):
        ``dy = basis @ a``. Without constraints k = n_y, and the basis is the identity matrix. With constraints the
        directions are an orthonormal basis, in relative units, of those that satisfy them. With a section the monodromy
        is the derivative of the return map.
    forced
        Whether the model depends on time, or the period was given.
    section
        The name of the event of the return map, or None.
    residual
        By how much the motion misses its start, relative to the sizes of the components.
    iterations
        The number of corrections.
    units
        The units of the model, in which tables show the values.
    """

    period: float
    t: float
    q: Array
    u: Array
    s: Array
    values: Mapping[str, float]
    solution: Solution
    multipliers: Multipliers
    transverse: Multipliers
    monodromy: Array
    basis: Array
    forced: bool
    section: str | None
    residual: float
    iterations: int
    nodes: Nodes = field(repr=False)
    setting: Setting = field(repr=False)
    period_of: Any = field(default=None, repr=False)
    units: Units = field(default_factory=Units)

    def __getitem__(self, name: Any) -> float:
        key = key_name(name)
        if key not in self.values:
            raise SolveError(unknown(key, tuple(self.values), "coordinate, speed or state"))
        return self.values[key]

    @property
    def initial(self) -> dict[str, float]:
        """Coordinates, speeds and states at the start by name, for ``solver.with_initial``."""
        return dict(self.values)

    @property
    def stable(self) -> bool:
        """Whether all transverse multipliers are inside the unit circle, so that the motion attracts its neighbors."""
        return self.stability == "stable"

    @property
    def stability(self) -> str:
        """``"stable"``, ``"unstable"``, or ``"marginal"`` where the multipliers do not decide.

        Magnitudes within :data:`NEUTRAL` of 1 count as 1.
        """
        return stability_of(self.transverse)

    @property
    def critical(self) -> complex | None:
        """The transverse multiplier nearest to the unit circle, by the ratio of magnitudes; None if there is none."""
        return critical_of(self.transverse)

    @property
    def kind(self) -> str:
        """The bifurcation that the critical multiplier announces, if its magnitude is within :data:`NEAR` of 1.

        ``"fold"`` for a positive one (also where curves of periodic motions cross, or where they form a family, as in
        conservative models), ``"period doubling"`` for a negative one, ``"Neimark-Sacker"`` for a complex pair;
        otherwise ``"none"``.
        """
        return kind_of(self.critical)

    def overview(self) -> Table:
        """The start, the period, the multipliers and what they mean."""
        rows = [
            ("start", display.values(self.values, self.units)),
            ("period", f"{self.period:.10g} s{' (given)' if self.forced else ''}"),
            ("section", self.section or ""),
            ("multipliers", display.names(map(number_text, self.multipliers.tolist()))),
            ("stability", self.stability),
            ("critical multiplier announces", "" if self.kind == "none" else self.kind),
            ("residual", f"{self.residual:.2e}"),
        ]
        return display.facts("Periodic motion", rows)

    def _repr_html_(self) -> str:
        """What a notebook shows: the start, the period and the multipliers."""
        return self.overview().html()

    def __repr__(self) -> str:
        start = shown_values(tuple(self.values), list(self.values.values()))
        multipliers = shown([number_text(x) for x in self.multipliers.tolist()])
        parts = [f"period {self.period:.6g} s", start, f"multipliers {multipliers}", self.stability]
        return f"<PeriodicMotion: {'; '.join(part for part in parts if part)}>"


def number_text(x: complex) -> str:
    """A multiplier as text."""
    return f"{x.real:.6g}" if x.imag == 0.0 else f"{x.real:.6g}{x.imag:+.6g}j"


def stability_of(transverse: Multipliers) -> str:
    """The stability that transverse multipliers mean."""
    sizes = np.abs(transverse)
    if (sizes > 1.0 + NEUTRAL).any():
        return "unstable"
    return "stable" if (sizes < 1.0 - NEUTRAL).all() else "marginal"


def critical_of(transverse: Multipliers) -> complex | None:
    """The multiplier nearest to the unit circle, by the ratio of magnitudes."""
    if not transverse.size:
        return None
    with np.errstate(divide="ignore"):
        return complex(transverse[np.argmin(np.abs(np.log(np.abs(transverse))))])


def kind_of(critical: complex | None) -> str:
    """The bifurcation that a multiplier announces."""
    if critical is None or abs(abs(critical) - 1.0) > NEAR:
        return "none"
    if critical.imag != 0.0:
        return "Neimark-Sacker"
    return "fold" if critical.real > 0.0 else "period doubling"


@dataclass(frozen=True, eq=False)
class Floquet:
    """The ``monodromy`` (k, k) in tangent changes of the start, relative units, with its multipliers.

    The eigenvalue of the flow is known, and is split off: the others are then accurate where it is a multiple one.
    """

    monodromy: Array
    multipliers: Multipliers
    transverse: Multipliers

    @classmethod
    def of(cls, system: System, setting: Setting) -> Floquet:
        """The multipliers of a solution of the equations."""
        monodromy = np.eye(len(system.flow))
        for transition in system.transitions:
            monodromy = transition @ monodromy
        if not (setting.autonomous and _is_trivial(monodromy, system.flow, 0.0 if setting.section else 1.0)):
            every = sorted_by_size(np.linalg.eigvals(monodromy))
            return cls(monodromy, every, every)
        frame = np.linalg.qr(np.column_stack([system.flow, np.eye(len(system.flow))]))[0]
        across = frame[:, 1:]
        transverse = sorted_by_size(np.linalg.eigvals(across.T @ monodromy @ across))
        own = [] if setting.section is not None else [1.0]
        return cls(monodromy, sorted_by_size(np.append(transverse, own)), transverse)


def _is_trivial(monodromy: Array, flow: Array, multiplier: float) -> bool:
    """Whether the flow is an eigenvector, as in a model that does not depend on time."""
    size = float(np.linalg.norm(flow))
    return size > 0.0 and float(np.linalg.norm(monodromy @ flow - multiplier * flow)) <= _TRIVIAL * size


def sorted_by_size(values: Any) -> Multipliers:
    """The values by falling magnitude; of a pair that with the positive imaginary part first."""
    values = np.asarray(values, dtype=np.complex128)
    order = np.lexsort((-values.imag, -values.real, -np.abs(values).round(12)))
    return np.asarray(values[order])
