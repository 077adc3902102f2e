"""Curves of a solution over time: which values a name stands for, their labels, and where they jump."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kanegen.arrays import Array
from kanegen.errors import SolveError, brief
from kanegen.program.catalogue import ATTRIBUTES, CATALOGUE
from kanegen.solve.solution.quantities import quantity_unit
from kanegen.solve.values import key_name, unknown
from kanegen.units import Unit, Units, derived, labeled

POINTS = 2000
"""Points of a curve; longer solutions keep all their times."""

LONGEST_LABEL = 40
"""Characters of a label; constraints of spatial systems can be pages long."""

AXES = "xyz"
"""Labels of the components of forces and torques."""


@dataclass(frozen=True, eq=False)
class Curve:
    """``values`` over the times ``t``, (n,) each, with NaN between the values before and after a jump.

    ``held``: a value lasts until the next time (sampled inputs and controls). ``unit``: that of display; the values
    are in the coherent SI unit.
    """

    label: str
    t: Array
    values: Array
    held: bool = False
    unit: Unit | None = None

    @property
    def unit_text(self) -> str:
        """The unit for a label; empty if there is none."""
        return "" if self.unit is None else self.unit.label

    def converted(self) -> Curve:
        """The curve with its values in the unit of display."""
        return self if self.unit is None else replace(self, values=self.unit.display(self.values))

    def displayed(self) -> Curve:
        """The curve in the unit of display, with the unit in its label."""
        return replace(self.converted(), label=labeled(self.label, self.unit_text))


@dataclass(frozen=True, eq=False)
class Panel:
    """Curves that are drawn together; ``title`` is the label of their axis."""

    title: str
    curves: tuple[Curve, ...]


class Curves:
    """The curves of a solution.

    Coordinates, speeds and states are evaluated between the stored times, if the solution has dense output.
    """

    def __init__(self, solution: Any) -> None:
        self.solution = solution
        self.units: Units = solution.units
        self.run = solution.run

    def panels(self, items: Sequence[Any]) -> list[Panel]:
        """A panel for each item: a name, a group, a quantity, or a sequence of them.

        Without items, a panel for each unit of each group.

        Raises `SolveError` for unknown names, and if there is nothing to draw.
        """
        if not items:
            groups = {group: make(self) for group, make in GROUPS.items()}
            found = [self._panel(group, part) for group, curves in groups.items() for part in self._by_unit(curves)]
            if not found:
                raise SolveError(f"the solution of {self.run.model!r} has no variables to plot")
            return found
        return [self._chosen(item) for item in items]

    def pair(self, x: Any, y: Any) -> tuple[Curve, Curve]:
        """The curves of two scalars, by name or symbol, at the same times.

        Raises `SolveError` for unknown names and for variables with several components.
        """
        across, up = (self._scalar(key_name(key)) for key in (x, y))
        if across.t.size != up.t.size:  # one of them is known at the stored times only
            across, up = (replace(c, t=self.solution.t, values=self._at_stored_times(c)) for c in (across, up))
        gaps = self._gaps(across) | self._gaps(up)
        return _with_gaps(across, gaps).displayed(), _with_gaps(up, gaps).displayed()

    def _by_unit(self, curves: Sequence[Curve]) -> list[list[Curve]]:
        parts: dict[str, list[Curve]] = {}
        for curve in curves:
            parts.setdefault(curve.unit_text, []).append(curve)
        return [*parts.values()]

    def _scalar(self, name: str) -> Curve:
        curves = self.named(name)
        if len(curves) != 1:
            raise SolveError(f"{name!r} has {len(curves)} components; expected the name of a scalar")
        return curves[0]

    def _at_stored_times(self, curve: Curve) -> Array:
        return curve.values if curve.t is self.solution.t else self.solution[curve.label]

    def _chosen(self, item: Any) -> Panel:
        names = [key_name(part) for part in item] if isinstance(item, (list, tuple)) else [key_name(item)]
        curves = [curve for name in names for curve in self.named(name)]
        if not curves:
            what = f"no {' and no '.join(names)}" if names else "nothing"
            raise SolveError(
                f"a panel is empty: the solution of {self.run.model!r} has {what} to plot for {brief(item)}"
            )
        return self._panel(names[0] if len(names) == 1 else "", curves)

    def _panel(self, title: str, curves: Sequence[Curve]) -> Panel:
        title = curves[0].label if len(curves) == 1 and "[" not in curves[0].label else title
        whole = [_with_gaps(curve, self._gaps(curve)) for curve in curves]
        units = {curve.unit_text for curve in curves}
        if len(units) == 1:  # a common unit is on the axis, others are in the legend
            return Panel(labeled(title, units.pop()), tuple(curve.converted() for curve in whole))
        return Panel(title, tuple(curve.displayed() for curve in whole))

    def named(self, name: str) -> list[Curve]:
        """The curves of a name, without gaps. Names of the model precede those of groups and quantities.

        Raises `SolveError` for unknown names.
        """
        if name in self._variables:
            return [self._of_state(name)]
        if name in self.run.inputs:
            return [self._of_input(name)]
        if name in self.outputs:
            return self._stored(name, self.solution.outputs[name], unit=self.units.get(name))
        if name in self.contacts:
            forces = self.solution.contacts.forces[:, self.contacts.index(name)]
            return [Curve(f"force of {name}", self.solution.t, forces, unit=self.units.get(name))]
        if name in self.reactions:
            return self._reaction(name)
        if name in ATTRIBUTES:
            unit = quantity_unit(self.solution, name)
            return self._stored(name, getattr(self.solution, name), self._components(name), unit)
        if name in GROUPS:
            return GROUPS[name](self)
        members = (*self._variables, *self.run.inputs, *self.outputs, *self.contacts, *self.reactions)
        what = "coordinate, speed, state, input, output, contact, reaction, group or quantity"
        raise SolveError(unknown(name, (*members, *GROUPS, *ATTRIBUTES), what))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs that can be evaluated."""
        if self.solution.reference is None:
            return ()
        d = self.solution.solver.description
        return tuple(name for name in self.solution.outputs if d.has(f"output:{name}"))

    @property
    def contacts(self) -> tuple[str, ...]:
        """Names of the contact rows."""
        contacts = self.solution.contacts
        return () if contacts is None else contacts.names

    @property
    def reactions(self) -> tuple[str, ...]:
        """Names of the reactions that can be evaluated."""
        return () if self.solution.reference is None else tuple(self.solution.reactions)

    @property
    def _variables(self) -> tuple[str, ...]:
        return (*self.run.coordinates, *self.run.speeds, *self.run.states)

    def _of_state(self, name: str) -> Curve:
        t, states = self._states
        return Curve(name, t, states[:, self._variables.index(name)], unit=self.units.get(name))

    def _of_input(self, name: str) -> Curve:
        return Curve(name, self.solution.t, self.solution[name], name in self.run.held, self.units.get(name))

    def _reaction(self, name: str) -> list[Curve]:
        parts = self.solution.reactions[name]._asdict().items()
        units = [derived("N"), derived("N m")] if self.units else [None, None]
        pairs = zip(parts, units, strict=True)
        return [x for (part, values), unit in pairs for x in self._stored(f"{name} {part}", values, [AXES], unit)]

    def _stored(
        self, name: str, values: Any, components: Sequence[Sequence[str]] = (), unit: Unit | None = None
    ) -> list[Curve]:
        """The components (n_t,) of an array (n_t, ...) at the stored times, with names of the components or indices."""
        if not isinstance(values, np.ndarray):
            raise SolveError(f"{name} is no array over time: name quantities of the solver")
        named = components if len(components) == values.ndim - 1 else [range(n) for n in values.shape[1:]]
        curves = []
        for place in np.ndindex(values.shape[1:]):
            parts = ", ".join(str(names[k]) for names, k in zip(named, place, strict=True))
            label = f"{name}[{_short(parts)}]" if place else name
            curves.append(Curve(label, self.solution.t, values[(slice(None), *place)], unit=unit))
        return curves

    def _components(self, quantity: str) -> list[Sequence[str]]:
        """Names of the components of a quantity of the catalogue; none if the shape has no names."""
        d = self.solution.solver.description
        names = {
            "n_q": d.coordinates,
            "n_u": d.speeds,
            "n_s": d.states,
            "n_c": d.constraints.rows,
            "n_d": d.dependent_names,
            "n_i": d.independent_names,
            "n_tau": d.input_names(d.servo.controls) if d.servo else (),
        }
        shape = CATALOGUE[quantity].shape
        return [names[symbol] for symbol in shape] if all(symbol in names for symbol in shape) else []

    # -- between the stored times ---------------------------------------------------------------------------

    def _gaps(self, curve: Curve) -> Any:
        """Where the value jumps, (n - 1,): at equal times, and between times that enclose a jump of the state."""
        gaps = (np.diff(curve.t) == 0.0) & (np.diff(curve.values) != 0.0)
        if not gaps.size:
            return gaps
        sign = -1.0 if curve.t[-1] < curve.t[0] else 1.0
        times, jumps = sign * curve.t, sign * np.array([event.t for event in self.solution.events if event.jumps])
        after = np.searchsorted(times, jumps)
        inside = (after > 0) & (after < times.size)
        after = after[inside][times[after[inside]] != jumps[inside]]
        gaps[after - 1] = True
        return gaps

    @cached_property
    def _states(self) -> tuple[Array, Array]:
        """Times (n,) and states (n, n_q + n_u + n_s): stored ones, those around jumps, and dense output."""
        x = self.solution
        stored = np.hstack((x.q, x.u, x.s.reshape(len(x.t), -1)))
        twice = set(x.t[:-1][np.diff(x.t) == 0.0].tolist())
        rows: list[tuple[Array, Array]] = []
        for event in x.events:
            if event.jumps and event.t not in twice and _within(event.t, x.t):
                sides = [(event.u_before, event.s_before), (event.u_after, event.s_after)]
                states = np.array([np.concatenate((event.q, u, s)) for u, s in sides])
                rows.append((np.full(2, event.t), states))
        rows.append((x.t, stored))
        between = _between(x.t) if x.dense is not None else np.empty(0)
        if between.size:
            rows.append((between, np.hstack(x(between))))
        times = np.concatenate([t for t, _ in rows])
        backwards = x.t.size > 1 and x.t[-1] < x.t[0]
        order = np.argsort(-times if backwards else times, kind="stable")
        return times[order], np.vstack([states for _, states in rows])[order]


def _members(names: Callable[[Curves], Iterable[str]]) -> Callable[[Curves], list[Curve]]:
    """The group of these names."""
    return lambda curves: [curve for name in names(curves) for curve in curves.named(name)]


def _controls(curves: Curves) -> tuple[str, ...]:
    control = curves.solution.control
    return () if control is None else tuple(control.names)


def _multipliers(curves: Curves) -> tuple[str, ...]:
    """The multipliers of the constraints, if there are any and their function was built."""
    if curves.solution.reference is None:
        return ()
    d = curves.solution.solver.description
    return ("multipliers",) if d.has("multipliers") and d.constraints.rows else ()


GROUPS: Mapping[str, Callable[[Curves], list[Curve]]] = {
    "coordinates": _members(lambda curves: curves.run.coordinates),
    "speeds": _members(lambda curves: curves.run.speeds),
    "states": _members(lambda curves: curves.run.states),
    "controls": _members(_controls),
    "inputs": _members(lambda curves: [name for name in curves.run.inputs if name not in _controls(curves)]),
    "outputs": _members(lambda curves: curves.outputs),
    "contact forces": _members(lambda curves: curves.contacts),
    "multipliers": _members(_multipliers),
    "reactions": _members(lambda curves: curves.reactions),
}
"""What ``solution.plot()`` draws, by the names of the panels."""


def _between(t: Array) -> Array:
    """Times between the stored ones, so that there are at least `POINTS` in all."""
    steps = np.diff(t)
    moving = np.flatnonzero(steps)
    parts = min(50, math.ceil(POINTS / max(1, moving.size)))
    share = np.arange(1, parts) / parts
    times: Array = (t[moving, None] + steps[moving, None] * share).ravel()
    return times


def _within(time: float, t: Array) -> bool:
    return t.size > 0 and min(t[0], t[-1]) <= time <= max(t[0], t[-1])


def _with_gaps(curve: Curve, gaps: Any) -> Curve:
    places = np.flatnonzero(gaps) + 1
    return replace(curve, t=np.insert(curve.t, places, curve.t[places]), values=np.insert(curve.values, places, np.nan))


def _short(label: str) -> str:
    """A label without arguments (t), and without its middle if it is long."""
    label = label.replace("(t)", "")
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 13]} ... {label[-8:]}"
