"""Equilibria and steady motions of a solver, with their stability."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kanegen import display
from kanegen.arrays import Array
from kanegen.display import Table
from kanegen.errors import SolveError
from kanegen.solve.analysis.linearize import (
    Differentiable,
    Linearization,
)
from kanegen.solve.analysis.trim import Search, rest
from kanegen.solve.contacts import ContactState
from kanegen.solve.values import (
    names_in,
    short,
    shown,
    shown_values,
    unknown,
)
from kanegen.units import Units

NEUTRAL: Final = 1e-7
"""Real parts of eigenvalues below this fraction of the largest eigenvalue count as zero: half the digits of a double
eigenvalue are rounding errors."""


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A state in which a system remains, or a steady motion (:class:`SteadyMotion`).

    ``equilibrium["theta"]`` is a coordinate, a speed, a state or an input.

    Attributes
    ----------
    t, q, u, s, r
        Time (s), coordinates (n_q,), speeds (n_u,), states (n_s,) and inputs (n_r,).
    values
        All of them by name, without the time.
    contacts
        The contacts by name: modes, gaps and forces (:class:`kanegen.results.ContactState`).
    forces
        Multipliers of the contact rows (n_rows,).
    multipliers
        Multipliers of the constraints by label; empty if the model was built without ``"multipliers"``.
    residuals
        The residuals of all equations by name: accelerations and rates, constraints, contacts.
    evaluations
        The number of evaluations of the equations.
    undetermined
        Coordinates, speeds, states and inputs in which neighboring steady states differ: the state is not isolated,
        and it is the one nearest to the start.
    family
        The number of independent directions (of coordinates, speeds and states, whether ``fixed`` or not) in which
        there are neighboring steady states.
    linear
        The linear model about the state, None where contacts switch; ``reason`` tells which.
    units
        The units of the model, in which tables show the values.
    """

    t: float
    q: Array
    u: Array
    s: Array
    r: Array
    values: Mapping[str, float]
    contacts: Mapping[str, ContactState]
    forces: Array
    multipliers: Mapping[str, float]
    residuals: Mapping[str, float]
    evaluations: int
    undetermined: tuple[str, ...]
    family: int
    linear: Linearization | None
    reason: str = ""
    units: Units = field(default_factory=Units)

    def __getitem__(self, name: Any) -> float:
        key = names_in((name,), "the name of a value")[0]
        if key not in self.values:
            raise SolveError(unknown(key, tuple(self.values), "coordinate, speed, state or input"))
        return self.values[key]

    @property
    def initial(self) -> dict[str, float]:
        """Coordinates, speeds and states by name, for ``solver.with_initial``."""
        count = len(self.q) + len(self.u) + len(self.s)
        return dict(list(self.values.items())[:count])

    @property
    def isolated(self) -> bool:
        """Whether there is no other steady state in the neighborhood."""
        return not self.undetermined

    @property
    def eigenvalues(self) -> NDArray[np.complex128]:
        """Eigenvalues of the linear model in 1/s, by falling real part; none where contacts switch."""
        return np.empty(0, dtype=np.complex128) if self.linear is None else self.linear.eigenvalues

    @property
    def stability(self) -> str:
        """``"stable"``, ``"unstable"``, ``"marginal"`` or ``"undetermined"``, from the eigenvalues.

        The state is unstable if an eigenvalue has a positive real part (Lyapunov's indirect method). It is stable if
        all real parts are negative, except for as many eigenvalues zero as there are directions of neighboring steady
        states (``family``). Otherwise the linear model does not decide (``"marginal"``). Values up to :data:`NEUTRAL`
        times the largest magnitude count as zero. Without a linear model the stability is
        ``"undetermined"``.
        """
        if self.linear is None:
            return "undetermined"
        values = self.eigenvalues
        zero = NEUTRAL * np.abs(values).max(initial=0.0)
        if (values.real > zero).any():
            return "unstable"
        neutral = values[values.real >= -zero]
        return "stable" if (np.abs(neutral) <= zero).all() and len(neutral) <= self.family else "marginal"

    def overview(self) -> Table:
        """The state, its stability and its contacts."""
        rows = [
            ("state", display.values(self.values, self.units)),
            ("stability", self.stability),
            ("neighboring steady states", "none" if self.isolated else f"differ in {display.names(self.undetermined)}"),
            ("contacts", display.names(f"{name}: {state.mode}" for name, state in self.contacts.items())),
            ("largest residual", f"{max(map(abs, self.residuals.values()), default=0.0):.2e}"),
            ("linear model", f"none: {self.reason}" if self.linear is None else ""),
        ]
        return display.facts("Steady motion" if isinstance(self, SteadyMotion) else "Equilibrium", rows)

    def details(self) -> Iterator[Table]:
        """The multipliers of the constraints and the eigenvalues, as far as there are any."""
        if self.multipliers:
            multipliers = [(short(label), f"{value:.6g}") for label, value in self.multipliers.items()]
            yield Table.of("Multipliers", ("constraint", "multiplier"), multipliers, right=("multiplier",))
        if self.linear is not None and len(self.eigenvalues):
            yield self.linear.eigenvalue_table()

    def _repr_html_(self) -> str:
        """What a notebook shows: the state and its stability, multipliers and eigenvalues."""
        return display.page(self.overview(), *self.details())

    def __repr__(self) -> str:
        modes = ", ".join(f"{name} {state.mode}" for name, state in self.contacts.items())
        alone = "isolated" if self.isolated else f"not isolated: {shown(self.undetermined)} undetermined"
        parts = [shown_values(tuple(self.values), list(self.values.values())), modes, alone, self.stability]
        return f"<{type(self).__name__}: {'; '.join(part for part in parts if part)}>"


@dataclass(frozen=True, eq=False, repr=False)
class SteadyMotion(Equilibrium):
    """A motion with constant independent speeds, in which the ``cyclic`` coordinates change at constant rates.

    The ``speeds`` are the independent ones that are constant. The linear model is that without cyclic coordinates.
    """

    cyclic: tuple[str, ...] = ()
    speeds: tuple[str, ...] = ()


class Trimmable(Differentiable):
    """The methods of :class:`~kanegen.Solver` for equilibria and steady motions."""

    def equilibrium(
        self,
        q0: Any = None,
        *,
        t: float | None = None,
        s0: Any = None,
        r: Any = None,
        fixed: str | Iterable[Any] = (),
        free_inputs: str | Iterable[Any] = (),
        tolerance: float = 1e-10,
    ) -> Equilibrium:
        """The equilibrium near ``q0``: q' = 0, u' = 0, s' = 0, with all constraints and contact laws satisfied.

        Newton's method, damped, finds it to rounding with the Jacobians of the model (central differences if they were
        not built); where it fails, a trust-region method for least squares comes first. Rigid contacts satisfy
        ``0 <= gap, 0 <= force, gap * force = 0``, friction at rest lies within its cone, and compliant contacts have
        the forces of their laws.

        Parameters
        ----------
        q0, s0
            Where the search begins: (n_q,) and (n_s,), or mappings from names or symbols to values; others are those of
            ``initial``, and constraints determine missing coordinates.
        t
            The time (s); default: that of ``initial``, or 0.
        r
            Inputs as for :meth:`integrate`, of which the values at ``t`` are taken.
        fixed
            Names (or symbols) of coordinates and states that keep the value of the start.
        free_inputs
            Names (or symbols) of inputs that are unknowns, for example forces that hold the ``fixed`` coordinates. The
            search begins at their value in ``r`` or their default, or at zero.
        tolerance
            Largest residual of an equation, relative to its change when every unknown changes by its own size.

        Returns
        -------
        Equilibrium
            If equilibria are not isolated (sticking friction, nonholonomic constraints, coordinates on which nothing
            depends), the one whose coordinates are nearest to ``q0``; ``undetermined`` names what can change.

        Raises
        ------
        SolveError
            If no equilibrium is found, with the equations that are violated most; if the equations depend on time; for
            unknown names and missing values.
        """
        options: dict[str, Any] = {"fixed": fixed, "free_inputs": free_inputs, "tolerance": tolerance}
        return Equilibrium(**Search(self).record(*rest(self, q0, t=t, s0=s0, r=r, **options)))

    def steady_motion(
        self,
        q0: Any = None,
        u0: Any = None,
        *,
        t: float | None = None,
        s0: Any = None,
        r: Any = None,
        fixed: str | Iterable[Any] = (),
        free_inputs: str | Iterable[Any] = (),
        cyclic: Sequence[Any] | None = None,
        speeds: Sequence[Any] | None = None,
        tolerance: float = 1e-10,
    ) -> SteadyMotion:
        """The steady motion near a state: constant independent speeds and states, and constant coordinates.

        Coordinates on which no rate depends (position along a road, heading, the angle of a wheel) are *cyclic*: they
        may change, and are left out. All arguments that are not described here are those of :meth:`equilibrium`.

        Parameters
        ----------
        q0, u0, s0
            Where the search begins; the constraints need not be satisfied exactly.
        fixed
            Names of coordinates, speeds and states that keep their value; steady motions usually are families, from
            which fixed values select one. Otherwise the one nearest to the coordinates of the start is returned.
        cyclic
            Names (or symbols) of the cyclic coordinates; None: found from the linear model at the start.
        speeds
            Names (or symbols) of the independent speeds that are constant; None: those of the model, or, if they do not
            determine the others at the start, chosen by pivoting.

        Raises
        ------
        SolveError
            As :meth:`equilibrium`, if ``cyclic`` is None and the model has no linear model at the start, and if the
            motion changes with the coordinates named in ``cyclic``.
        """
        return SteadyMotion(**Search(self).motion(t, (q0, u0, s0), r, fixed, free_inputs, cyclic, speeds, tolerance))
