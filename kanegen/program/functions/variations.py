"""Products of the derivatives of the right-hand side with vectors: along one direction, and the gradient of a sum.

The direction of a variation changes y = (q, u, s), the inputs r, the contact forces and the parameters p together.
Where the right-hand side is straight-line code, its operations are differentiated one by one; elsewhere the
accelerations and multipliers follow from the implicit function theorem (:mod:`kanegen.derivation.sensitivities`), with
one right side.

A program of such functions has further arguments: the directions of y, of the inputs and of the contact forces, or the
weights of y', follow the inputs in ``r``, and the direction of p follows the gains, so that what depends on parameters
only is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Final

from kanegen.derivation.contacts import guards
from kanegen.derivation.control.feedback import feedback_laws
from kanegen.derivation.forces.reactions import MULTIPLIERS
from kanegen.errors import BuildError
from kanegen.graph import Node, Tangent, gradient, reachable, substitute
from kanegen.graph.jumps import jumping
from kanegen.graph.switches import switches
from kanegen.program.builder import Fragment, Functions, Make, contain_accelerations
from kanegen.program.catalogue import (
    ADJOINT,
    CHANGE_OF,
    CLOSED,
    EVENT_CHANGES,
    RATES,
    RESIDUAL_CHANGES,
    SWITCH_CHANGES,
    TERMS,
    VARIATION,
    OfExpressions,
)
from kanegen.program.functions.contacts import reset_rows
from kanegen.program.functions.right_sides import RIGHT_SIDES, bordered_columns, bordered_solutions
from kanegen.program.records import Call, Invoke, Symbols

_SUMMARIES: Final = {
    VARIATION: "y' = (q', u', s'), then its change along a direction of (y, r, forces, p)",
    EVENT_CHANGES: "changes of the guards of events, then of the states after each event, along a direction",
    RATES: "y' = (q', u', s')",
    SWITCH_CHANGES: "changes of the functions of time at which the rates switch",
    RESIDUAL_CHANGES: "changes of the residuals of the constraints along a direction",
    ADJOINT: "gradient of the weighted sum of y' = (q', u', s') with respect to (y, r, forces, p)",
}


def variational_symbols(symbols: Symbols) -> Symbols:
    """The symbols of a program of variations: those of the model, with the further arguments."""
    varied = (*symbols.coordinates, *symbols.speeds, *symbols.states, *symbols.inputs, *symbols.multipliers)
    inputs = (*symbols.inputs, *(f"change of {name}" for name in (*varied, "t")))
    gains = (*symbols.gains, *(f"change of {name}" for name in symbols.parameters))
    return replace(symbols, inputs=inputs, gains=gains)


def add_variation(f: Functions, name: str) -> None:
    """Add a function of a program of variations, by its name. Raises `BuildError`."""
    if isinstance(name, OfExpressions):
        _add_of_expressions(f, name)
        return
    kind, closed = name.removesuffix(CLOSED), name.endswith(CLOSED)
    builder = _Variations(f, closed)
    if kind.startswith(CHANGE_OF):
        quantity = kind.removeprefix(CHANGE_OF)
        f.add(name, builder.change_of(quantity), f"change of {quantity} along a direction")
        return
    if kind in builder.changes:
        f.add(name, builder.along(f.fragment(), builder.changes[kind]()), _SUMMARIES[kind])
        return
    _require_steady(builder)
    builder.add(name, _SUMMARIES[kind], builder.variation, builder.general_variation)


def _add_of_expressions(f: Functions, name: OfExpressions) -> None:
    builder = _Variations(f, name.closed)
    values = builder.bound([f.equations.system.lower(x) for x in name.expressions])
    if name.kind == TERMS:
        f.add(name, builder.terms(values), "values, then their derivatives with respect to (y, r, forces, p, t)")
        return
    _require_steady(builder)
    fast, general = {
        ADJOINT: (builder.adjoint, builder.general_adjoint),
        RATES: (builder.rates, builder.general_rates),
    }[name.kind]
    builder.add(name, _SUMMARIES[name.kind], partial(fast, running=values), partial(general, running=values))


def _require_steady(builder: _Variations) -> None:
    """Raise `BuildError` if the right-hand side jumps at states that are no events of the model."""
    e = builder.f.equations
    if jumping(builder.parts_of_rates, ("q", "u", "s"), e.system.states):
        raise BuildError(
            f"the right-hand side of model {e.model.name!r} jumps where a condition on the state changes, as that of a "
            "sign, of Heaviside or of Piecewise: motions have no derivatives there, because no event is located; use a "
            "continuous law such as Max, Min, Abs or tanh"
        )


class _Variations:
    """What builds the functions of variations. ``closed``: with the feedback laws of inputs."""

    def __init__(self, f: Functions, closed: bool) -> None:
        self.f, self.system = f, f.equations.system
        self.y = (*self.system.q, *self.system.u, *self.system.s)
        graph, n_r, n_g = f.graph, len(self.system.r), len(f.equations.gain_names)
        self.change_of_y = [graph.input("r", n_r + i) for i in range(len(self.y))]
        loads = (*self.system.r, *self.system.multipliers)
        self.change_of_loads = [graph.input("r", n_r + len(self.y) + i) for i in range(len(loads))]
        self.change_of_t = graph.input("r", n_r + len(self.y) + len(loads))
        self.change_of_p = [graph.input("g", n_g + i) for i in range(len(self.system.p))]
        self.laws: Mapping[Node, Node] = {}
        if closed:
            places = f.equations.model.inputs_with_law
            self.laws = dict(zip((self.system.r[k] for k in places), f.equations.once(feedback_laws), strict=True))

    def add(self, name: str, summary: str, fast: Make, general: Make) -> None:
        """Add a function of straight-line code, or where there is none, or a pivot is too small, of general code.

        General code evaluates the right-hand side of the program, whose inputs do not have the values of laws: under
        laws there is none. Raises `BuildError`.
        """
        straight = self.is_straight
        if self.laws and not straight:
            raise BuildError(
                f"form={self.f.form!r} solves for the accelerations with pivots, and motions under feedback laws have "
                'no derivatives in such forms: build with form="range_space" or "articulated"'
            )
        fallback = general if straight and self.f.n_c and not self.laws else None
        title = f"{summary}, from the bordered system"
        self.f.add(name, self.f.guarded(name, title, fast if straight else general, fallback), summary)

    @cached_property
    def parts_of_rates(self) -> list[Node]:
        """The values from which the rates follow."""
        e = self.f.equations
        return self.bound((*e.qdot.nodes, *e.right_side, *e.J.nodes, *e.b_stabilized.nodes, *e.sdot.nodes))

    @cached_property
    def is_straight(self) -> bool:
        """Whether the right-hand side is straight-line code in the form of the program."""
        s = self.f.fragment()
        self._udot(s)
        return not any(isinstance(step, Call | Invoke) for step in s.steps)

    @property
    def directions(self) -> dict[Node, Node]:
        """The change of each argument."""
        changes = (*self.change_of_y, *self.change_of_loads, *self.change_of_p)
        return dict(zip(self._arguments, changes, strict=True))

    @property
    def changes(self) -> dict[str, Callable[[], Sequence[Node]]]:
        """Values whose changes are functions of their own."""
        return {
            EVENT_CHANGES: self._event_values,
            RESIDUAL_CHANGES: self._residuals,
            SWITCH_CHANGES: self._switch_arguments,
        }

    def _event_values(self) -> Sequence[Node]:
        return (*guards(self.system), *(node for row in reset_rows(self.system) for node in row))

    def _switch_arguments(self) -> Sequence[Node]:
        found = switches(self.parts_of_rates, self.system.t)
        return [switch.argument for switch in found] or [self.f.graph.zero]

    def _residuals(self) -> Sequence[Node]:
        return (*self.f.equations.positions.nodes, *self.f.equations.velocities.nodes)

    def along(self, s: Fragment, values: Sequence[Node], shape: tuple[int, ...] | None = None) -> Fragment:
        """Differentiate values along the direction, which changes the time, too."""
        tangent = Tangent(self.f.graph, {**self.directions, self.system.t: self.change_of_t})
        return s.output([tangent(value) for value in self.bound(values)], shape)

    def change_of(self, name: str) -> Fragment:
        """Differentiate a quantity of the equations or an output. Raises `BuildError`."""
        e, s = self.f.equations, self.f.fragment()
        quantity = e.outputs[name] if name in e.outputs else getattr(e, name, None)
        if quantity is None:
            raise BuildError(f"there are no derivatives of {name} along motions")
        nodes = quantity.nodes
        if contain_accelerations(nodes):
            if not self.is_straight:
                raise BuildError(f"{name} depends on accelerations, which form={self.f.form!r} computes with pivots")
            nodes = substitute(nodes, dict(zip(self.system.udot, self._udot(s), strict=True)))
        if any(x.op == "input" and x.payload[0] == MULTIPLIERS for x in reachable(nodes)):
            raise BuildError(f"{name} depends on the multipliers of constraints, which have no derivatives here")
        return self.along(s, nodes, quantity.shape)

    # -- straight-line code --------------------------------------------------------------------------------------

    def variation(self, s: Fragment) -> Fragment:
        """Differentiate the operations of the right-hand side along the direction."""
        rates = self._rates(self._udot(s))
        tangent = Tangent(self.f.graph, self.directions)
        return s.output([*rates, *(tangent(rate) for rate in rates)], (2, len(rates)), "y', then its change")

    def adjoint(self, s: Fragment, running: Sequence[Node] = ()) -> Fragment:
        """Accumulate the gradient through the operations of the right-hand side, and of ``running`` costs."""
        slopes = gradient(self._rates(self._udot(s), running), self._weights(running), self._arguments)
        return s.output(slopes, title="gradient with respect to y, r, forces and p")

    def rates(self, s: Fragment, running: Sequence[Node] = ()) -> Fragment:
        """Compute y', and running costs."""
        return s.output(self._rates(self._udot(s), running))

    def _weights(self, running: Sequence[Node]) -> list[Node]:
        """The weights of y', and of running costs: the value after those of y'."""
        after = self.f.graph.input("r", len(self.system.r) + len(self.y))
        return [*self.change_of_y, *[after] * len(running)]

    def terms(self, values: Sequence[Node]) -> Fragment:
        """Compute values, and the rows of their derivatives."""
        s, values = self.f.fragment(), self.bound(values)
        if contain_accelerations(values):
            values = substitute(values, dict(zip(self.system.udot, self._udot(s), strict=True)))
        inputs = (*self._arguments, self.system.t)
        rows = [gradient([value], [self.f.graph.one], inputs) for value in values]
        return s.output([*values, *(x for row in rows for x in row)])

    def _udot(self, s: Fragment) -> Sequence[Node]:
        return RIGHT_SIDES[self.f.form](self.f, s, self.f.stabilizable)

    def _rates(self, udot: Sequence[Node], running: Sequence[Node] = ()) -> list[Node]:
        """y' and running costs with the accelerations ``udot``, and with the laws."""
        e = self.f.equations
        held = dict(zip(e.system.udot, udot, strict=True))
        return self.bound((*e.qdot.nodes, *udot, *substitute([*e.sdot.nodes, *running], held)))

    @property
    def _arguments(self) -> tuple[Node, ...]:
        return (*self.y, *self.system.r, *self.system.multipliers, *self.system.p)

    # -- by the implicit function theorem ------------------------------------------------------------------------

    def general_variation(self, s: Fragment) -> Fragment:
        """Solve the bordered system for the change of the accelerations."""
        held = self._held(s)
        tangent = Tangent(self.f.graph, self.directions)
        changes = substitute([tangent(x) for x in self.bound(self.f.sensitivities.unbalance)], held)
        (column,) = bordered_columns(self.f, s, [-x for x in changes], 1)
        rates = self._rates(self.system.udot)
        seeds = {**self.directions, **dict(zip(self.system.udot, column, strict=True))}
        along = Tangent(self.f.graph, seeds)
        nodes = substitute([*rates, *(along(rate) for rate in rates)], held)
        return s.output(nodes, (2, len(rates)), "y', then its change")

    def general_rates(self, s: Fragment, running: Sequence[Node] = ()) -> Fragment:
        """Compute y', and running costs, from the accelerations of the right-hand side."""
        return s.output(self._rates(self.f.accelerations(s), running))

    def general_adjoint(self, s: Fragment, running: Sequence[Node] = ()) -> Fragment:
        """Solve the transposed bordered system for the weights of the equations of motion."""
        f, graph = self.f, self.f.graph
        if f.n_c and f.any_rank:
            raise BuildError(
                f"form={f.form!r} accepts redundant constraints, whose multipliers have no unique derivatives: "
                'gradients need form="auto", or forward sensitivities'
            )
        held, weights = self._held(s), self._weights(running)
        rates = self._rates(self.system.udot, running)
        sides = substitute([*gradient(rates, weights, self.system.udot), *[graph.zero] * f.n_c], held)
        (solved,) = bordered_solutions(f, s, sides, 1, transposed=not f.equations.is_symmetric)
        of_residuals = [*(-x for x in solved[: f.n_u]), *solved[f.n_u :]]
        residuals = self.bound(f.sensitivities.unbalance)
        slopes = gradient([*rates, *residuals], [*weights, *of_residuals], self._arguments)
        return s.output(substitute(slopes, held), title="gradient with respect to y, r, forces and p")

    def bound(self, nodes: Sequence[Node]) -> list[Node]:
        """Nodes with the laws in place of their inputs."""
        return substitute(self.system.settled(nodes), self.laws)

    def _held(self, s: Fragment) -> dict[Node, Node]:
        """Compute u' and the multipliers of the constraints."""
        held = dict(zip(self.system.udot, self.f.accelerations(s), strict=True))
        self.f.multipliers(s, held)
        return held
