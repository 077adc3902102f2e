"""Products of the derivatives of the right-hand side with vectors: along one direction, and the gradient of a sum.

The direction of a variation changes y = (q, u, s), the inputs r, the contact forces and the parameters p together.
Where the right-hand side is straight-line code, its operations are differentiated one by one; elsewhere the
accelerations and multipliers follow from the implicit function theorem (:mod:`kanegen.derivation.sensitivities`), with
one right side.

With contacts, the equations of their modes give the accelerations (:mod:`kanegen.program.functions.modes`).

A program of such functions has further arguments: the directions of y, of the inputs and of the contact forces, or the
weights of y', follow the inputs in ``r``; the modes of the contacts and the direction of p follow the gains, so that
what depends on them only is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Final

from kanegen.derivation.contacts import guards
from kanegen.derivation.control.feedback import feedback_laws
from kanegen.derivation.equations import SQUARE_LIMIT
from kanegen.derivation.forces.reactions import MULTIPLIERS
from kanegen.errors import BuildError
from kanegen.graph import Node, Tangent, gradient, reachable, substitute
from kanegen.graph.jumps import jumping
from kanegen.graph.separate import separated
from kanegen.graph.switches import switches
from kanegen.model.description import SystemDescription
from kanegen.program.builder import Fragment, Functions, Make, contain_accelerations
from kanegen.program.catalogue import (
    ADJOINT,
    ALONG,
    BARE,
    CHANGE_OF,
    CLOSED,
    CONTACT_CHANGES,
    CONTACT_FORCES,
    EVENT_CHANGES,
    JUMP_CHANGES,
    LAW_SLOPES,
    NUMBERS,
    RATE_SLOPES,
    RATES,
    REACTION,
    RESIDUAL_CHANGES,
    SECOND_SLOPES,
    SERVO,
    SWITCH_CHANGES,
    TERMS,
    VARIATION,
    OfExpressions,
)
from kanegen.program.functions.contacts import reset_rows
from kanegen.program.functions.modes import LinearEquations, ModeEquations, mode_names
from kanegen.program.functions.motions import Bordered, Eliminated, Motion
from kanegen.program.functions.right_sides import RIGHT_SIDES
from kanegen.program.records import Block, Call, Invoke, Store, Symbols

_SUMMARIES: Final = {
    VARIATION: "y' = (q', u', s'), then its change along a direction of (y, r, forces, p)",
    EVENT_CHANGES: "changes of the guards of events, then of the states after each event, along a direction",
    RATES: "y' = (q', u', s')",
    CONTACT_CHANGES: "what the modes of contacts depend on, then its changes along a direction",
    JUMP_CHANGES: "speeds after a jump and impulses of the contact rows, then the changes of these speeds",
    SWITCH_CHANGES: "changes of the functions of time at which the rates switch",
    LAW_SLOPES: "values of the feedback laws, then their derivatives with respect to (y, r, forces, p, t)",
    RESIDUAL_CHANGES: "changes of the residuals of the constraints and of the contact rows along a direction",
    ADJOINT: "gradient of the weighted sum of y' = (q', u', s') with respect to (y, r, forces, p)",
    RATE_SLOPES: "gradient of the weighted sum of y' = (q', u', s') with respect to (y, r, forces, p)",
    SECOND_SLOPES: "change of y' along a direction of (y, r, t), then the gradient of its weighted sum",
}


def variational_symbols(symbols: Symbols, model: SystemDescription, names: Sequence[str]) -> Symbols:
    """The symbols of a program of variations: those of the model, with the further arguments of the functions."""
    y = (*symbols.coordinates, *symbols.speeds, *symbols.states)
    varied = (*y, *symbols.inputs, *symbols.multipliers)
    inputs = (*symbols.inputs, *(f"change of {name}" for name in (*varied, "t")))
    if any(isinstance(name, OfExpressions) and name.kind == SECOND_SLOPES for name in names):
        inputs = (*inputs, *(f"direction of {name}" for name in (*y, *symbols.inputs, "t")))
    gains = (*symbols.gains, *mode_names(model), *(f"change of {name}" for name in symbols.parameters))
    return replace(symbols, inputs=inputs, gains=gains)


def add_variation(f: Functions, name: str) -> None:
    """Add a function of a program of variations, by its name. Raises `BuildError`."""
    if isinstance(name, OfExpressions):
        _add_of_expressions(f, name)
        return
    end = next((end for end in (CLOSED, SERVO, BARE) if name.endswith(end)), "")
    kind, builder = name.removesuffix(end), _Variations(f, end)
    if kind.startswith(CHANGE_OF):
        quantity = kind.removeprefix(CHANGE_OF)
        f.add(name, builder.change_of(quantity), f"change of {quantity} along a direction")
        return
    if kind == LAW_SLOPES:
        f.add(name, builder.terms(f.equations.once(feedback_laws)), _SUMMARIES[kind])
        return
    if kind in builder.in_modes:
        f.add(name, builder.in_modes[kind](f.fragment()), _SUMMARIES[kind])
        return
    if kind in builder.changes:
        values = builder.changes[kind]()
        differentiate = builder.solved_along if builder.need_solution(values) else builder.along
        f.add(name, differentiate(f.fragment(), values, (len(values),)), _SUMMARIES[kind])
        return
    _require_steady(builder)
    builder.add(name, _SUMMARIES[kind], builder.variation, builder.general_variation)
    if builder.is_straight:
        builder.add_linear(name)


def _add_of_expressions(f: Functions, name: OfExpressions) -> None:
    builder = _Variations(f, name.end)
    values = builder.bound([f.equations.system.lower(x) for x in name.expressions])
    if name.kind == TERMS:
        f.add(name, builder.terms(values), "values, then their derivatives with respect to (y, r, forces, p, t)")
        return
    _require_steady(builder)
    if name.kind == RATES:
        fast, general = partial(builder.rates, running=values), partial(builder.general_rates, running=values)
        builder.add(name, _SUMMARIES[name.kind], fast, general)
    elif name.kind == RATE_SLOPES:
        fast, general = partial(builder.adjoint, running=values), partial(builder.general_adjoint, running=values)
        builder.add(name, _SUMMARIES[name.kind], fast, general)
    elif name.kind == SECOND_SLOPES:
        f.add(name, builder.second_slopes(f.fragment(), values), _SUMMARIES[name.kind])
    else:
        builder.add_adjoint(name, values)


def _require_steady(builder: _Variations) -> None:
    """Raise `BuildError` if the right-hand side jumps at states that are no events of the model."""
    e, graph = builder.f.equations, builder.f.graph
    held = [x for x, rate in zip(e.system.s, e.sdot.nodes, strict=True) if rate is graph.zero]  # only events change it
    if jumping(builder.parts_of_rates, ("q", "u", "s"), e.system.states, held):
        raise BuildError(
            f"the right-hand side of model {e.model.name!r} jumps where a condition on the state changes, as that of a "
            "sign, of Heaviside or of Piecewise: motions have no derivatives there, because no event is located; use a "
            "continuous law such as Max, Min, Abs or tanh"
        )


class _Variations:
    """What builds the functions of variations.

    ``end``: `CLOSED` with the continuous feedback laws of inputs, `SERVO` with the controls of the servo-constraints,
    `BARE` without the gains of the stabilization.
    """

    def __init__(self, f: Functions, end: str) -> None:
        self.f, self.system = f, f.equations.system
        self.y = (*self.system.q, *self.system.u, *self.system.s)
        graph, n_r = f.graph, len(self.system.r)
        n_g = len(f.equations.gain_names) + len(mode_names(f.equations.model))
        self.change_of_y = [graph.input("r", n_r + i) for i in range(len(self.y))]
        loads = (*self.system.r, *self.system.multipliers)
        self.change_of_loads = [graph.input("r", n_r + len(self.y) + i) for i in range(len(loads))]
        self.change_of_t = graph.input("r", n_r + len(self.y) + len(loads))
        self.change_of_p = [graph.input("g", n_g + i) for i in range(len(self.system.p))]
        self.laws: Mapping[Node, Node] = {}
        n_gains = len(f.equations.gain_names) if end == BARE else 0
        self.zeros = {graph.input("g", i): graph.zero for i in range(n_gains)}
        self.tau = tuple(self.system.r[k] for k in f.servo.controls.slots) if end == SERVO else ()
        if end == CLOSED:
            model = f.equations.model
            laws = zip(model.inputs_with_law, f.equations.once(feedback_laws), strict=True)
            self.laws = {self.system.r[k]: law for k, law in laws if model.inputs[k].sample_time is None}

    def add(self, name: str, summary: str, fast: Make, general: Make) -> None:
        """Add a function of straight-line code, or where there is none, or a pivot is too small, of general code.

        Raises `BuildError`.
        """
        straight = self.is_straight
        self._require_known_laws()
        fallback = general if straight and self.f.n_c else None
        title = f"{summary}, from the bordered system"
        self.f.add(name, self.f.guarded(name, title, fast if straight else general, fallback), summary)

    def _require_known_laws(self) -> None:
        if self.laws and self.f.any_rank and not self.system.multipliers:
            raise BuildError(
                f"form={self.f.form!r} accepts redundant constraints, and motions under feedback laws have no "
                'derivatives in such forms: build with form="auto"'
            )

    def add_linear(self, name: str) -> None:
        """Add the variation ``name`` in two functions: numbers at a state, and from them the change along a direction.

        Several directions at a state share the numbers.
        """
        s = self.f.fragment()
        rates, changes = self._variation(s)
        directions = (*self.change_of_y, *self.change_of_loads, self.change_of_t, *self.change_of_p)
        self._add_linear(name, s, rates, changes, directions)

    def add_adjoint(self, name: str, running: Sequence[Node]) -> None:
        """Add the gradient ``name``: numbers at a state, and from them the gradient for weights; else general code.

        Raises `BuildError`.
        """
        self._require_known_laws()
        if self.is_straight:
            s = self.f.fragment()
            slopes = self._adjoint(s, running)
            rates = self._rates(self.accelerations(s), running)
            self._add_linear(name, s, rates, slopes, self._weights(running))
        if self.f.n_c or not self.is_straight:
            self.f.add(name, self.general_adjoint(self.f.fragment(), running), _SUMMARIES[ADJOINT])

    def _add_linear(
        self, name: str, s: Fragment, rates: Sequence[Node], values: Sequence[Node], arguments: Sequence[Node]
    ) -> None:
        """Add ``values`` that are linear in ``arguments`` as two functions; the first one has the ``rates``, too."""
        numbers, linear = separated(values, arguments, partial(self.f.graph.input, "numbers"))
        known, along = [*rates, *numbers], self.f.fragment()
        # What is computed first is stored first: else it would wait on the stack.
        order = sorted(range(len(known)), key=lambda k: known[k].index)
        s.output(known).steps[-1] = Block("", tuple(Store("out", k, known[k]) for k in order))
        self.f.add(f"{name}{NUMBERS}", s, "the rates, then the numbers of a linear function")
        along.array("numbers", len(numbers))
        self.f.add(
            f"{name}{ALONG}",
            along.output(linear),
            "the linear function of the numbers and of a direction or of weights",
            internal=True,
        )

    @cached_property
    def parts_of_rates(self) -> list[Node]:
        """The values from which the rates follow."""
        e = self.f.equations
        return self.bound((*e.qdot.nodes, *e.right_side, *e.J.nodes, *e.b_stabilized.nodes, *e.sdot.nodes))

    @cached_property
    def is_straight(self) -> bool:
        """Whether the right-hand side is straight-line code in the form of the program."""
        if self.system.multipliers or self.tau:
            return False
        s = self.f.fragment()
        self.accelerations(s)
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

    @property
    def in_modes(self) -> dict[str, Make]:
        """Functions of the modes of the contacts."""
        return {CONTACT_CHANGES: self._contact_changes, JUMP_CHANGES: self._jump_changes}

    def _event_values(self) -> Sequence[Node]:
        return (*guards(self.system), *(node for row in reset_rows(self.system) for node in row))

    def _switch_arguments(self) -> Sequence[Node]:
        found = switches(self.parts_of_rates, self.system.t)
        return [switch.argument for switch in found] or [self.f.graph.zero]

    def _residuals(self) -> Sequence[Node]:
        """The residuals of the constraints, then the values and the rates of the contact rows."""
        e, rows = self.f.equations, self._modes.rows
        return (*e.positions.nodes, *e.velocities.nodes, *(r.value for r in rows), *(r.rate for r in rows))

    def along(self, s: Fragment, values: Sequence[Node], shape: tuple[int, ...] | None = None) -> Fragment:
        """Differentiate values along the direction, which changes the time, too."""
        tangent = Tangent(self.f.graph, self._with_time)
        return s.output([tangent(value) for value in self.bound(values)], shape)

    @property
    def _with_time(self) -> dict[Node, Node]:
        """The change of each argument and of the time."""
        return {**self.directions, self.system.t: self.change_of_t}

    def change_of(self, name: str) -> Fragment:
        """Differentiate a quantity of the equations, an output or a reaction. Raises `BuildError`."""
        e, s = self.f.equations, self.f.fragment()
        if name == CONTACT_FORCES and self.system.multipliers:
            return self.solved_along(s, self.system.multipliers, (len(self.system.multipliers),))
        if name == MULTIPLIERS and self.f.n_c:
            multipliers = self._solvable_motion.unknowns[self.f.n_u : self.f.n_u + self.f.n_c]
            return self.solved_along(s, multipliers, (len(multipliers),))
        members = e.reactions if name.startswith(REACTION) else e.outputs
        quantity = members.get(name.removeprefix(REACTION)) or getattr(e, name, None)
        if quantity is None:
            raise BuildError(f"there are no derivatives of {name} along motions")
        nodes = quantity.nodes
        if self.need_solution(nodes):
            return self.solved_along(s, nodes, quantity.shape)
        if contain_accelerations(nodes):
            nodes = substitute(nodes, dict(zip(self.system.udot, self.accelerations(s), strict=True)))
        return self.along(s, nodes, quantity.shape)

    def need_solution(self, nodes: Sequence[Node]) -> bool:
        """Whether values depend on forces of constraints or contacts, or on u' where it is not straight-line code."""
        found = reachable(nodes)
        forces = any(x.op == "input" and x.payload[0] == MULTIPLIERS for x in found)
        forces = forces or not {*self.system.multipliers, *self.tau}.isdisjoint(found)
        return forces or (contain_accelerations(nodes) and not self.is_straight)

    @property
    def _solvable_motion(self) -> LinearEquations:
        """The equations of the accelerations and multipliers. Raises `BuildError` where multipliers are not unique."""
        if self.f.any_rank and self.f.n_c:
            raise BuildError(
                f"form={self.f.form!r} accepts redundant constraints, whose forces have no unique derivatives: build "
                'with form="auto"'
            )
        return self._modes.motion

    def solved_along(self, s: Fragment, nodes: Sequence[Node], shape: tuple[int, ...]) -> Fragment:
        """Differentiate functions of the accelerations and multipliers along the direction."""
        motion = self._solvable_motion
        held = motion.values(s)
        along = Tangent(self.f.graph, {**self._with_time, **motion.change(s, held, self._with_time)})
        return s.output(substitute([along(x) for x in self.bound(nodes)], held), shape)

    # -- straight-line code --------------------------------------------------------------------------------------

    @cached_property
    def _eliminated(self) -> Motion | None:
        """What solves for the accelerations in straight-line code, if their derivatives follow from this solution.

        It takes half the operations that the derivatives of the code of the right-hand side take, in which the
        factorization is differentiated. The code of `articulated` has no factorization, and its derivatives are of
        order n.
        """
        e = self.f.equations
        if not (e.is_symmetric and e.has_partition) or self.f.form == "articulated":
            return None
        return Eliminated(self) if len(e.partition.independent) <= SQUARE_LIMIT else None

    def variation(self, s: Fragment) -> Fragment:
        """Differentiate the right-hand side along the direction."""
        return _paired(s, *self._variation(s))

    def _variation(self, s: Fragment) -> tuple[list[Node], list[Node]]:
        """y' and its change."""
        if self._eliminated is not None:
            return self._solved_variation(s, self._eliminated)
        rates = self._rates(self.accelerations(s))
        tangent = Tangent(self.f.graph, self.directions)
        return rates, [tangent(rate) for rate in rates]

    def _adjoint(self, s: Fragment, running: Sequence[Node]) -> list[Node]:
        """The gradient of the weighted right-hand side and ``running`` costs."""
        if self._eliminated is not None:
            return self._solved_adjoint(s, self._eliminated, running)
        return gradient(self._rates(self.accelerations(s), running), self._weights(running), self._arguments)

    def adjoint(self, s: Fragment, running: Sequence[Node] = ()) -> Fragment:
        """Compute the gradient of the weighted right-hand side and ``running`` costs."""
        return s.output(self._adjoint(s, running))

    def rates(self, s: Fragment, running: Sequence[Node] = ()) -> Fragment:
        """Compute y', and running costs."""
        return s.output(self._rates(self.accelerations(s), running))

    def _weights(self, running: Sequence[Node]) -> list[Node]:
        """The weights of y', and of running costs: the value after those of y'."""
        after = self.f.graph.input("r", len(self.system.r) + len(self.y))
        return [*self.change_of_y, *[after] * len(running)]

    def terms(self, values: Sequence[Node]) -> Fragment:
        """Compute values, and the rows of their derivatives."""
        s, values = self.f.fragment(), self.bound(values)
        if self.need_solution(values):
            return self._solved_terms(s, values)
        if contain_accelerations(values):
            values = substitute(values, dict(zip(self.system.udot, self.accelerations(s), strict=True)))
        inputs = (*self._arguments, self.system.t)
        rows = [gradient([value], [self.f.graph.one], inputs) for value in values]
        return s.output([*values, *(x for row in rows for x in row)])

    def accelerations(self, s: Fragment) -> Sequence[Node]:
        """The accelerations as straight-line code, without the values of laws."""
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

    @cached_property
    def _motion(self) -> Motion:
        """What solves for the accelerations and multipliers where they are not straight-line code.

        The right-hand side of the program has no contact forces, and inputs without the values of laws.
        """
        own = self.system.multipliers or self.tau or (self.laws and not self.f.any_rank)
        return self._modes.motion if own else Bordered(self)

    @cached_property
    def _modes(self) -> ModeEquations:
        return ModeEquations(self.f, self.bound, self.tau)

    def general_variation(self, s: Fragment) -> Fragment:
        """Solve linear equations for the change of the accelerations."""
        return _paired(s, *self._solved_variation(s, self._motion))

    def _solved_variation(self, s: Fragment, motion: Motion) -> tuple[list[Node], list[Node]]:
        held = motion.values(s)
        rates = self._rates(self.system.udot)
        along = Tangent(self.f.graph, {**self.directions, **motion.change(s, held, self.directions)})
        nodes = substitute([*rates, *(along(rate) for rate in rates)], held)
        return nodes[: len(rates)], nodes[len(rates) :]

    def general_rates(self, s: Fragment, running: Sequence[Node] = ()) -> Fragment:
        """Compute y', and running costs, from the accelerations."""
        held = self._motion.values(s, multipliers=False)
        return s.output(substitute(self._rates(self.system.udot, running), held))

    def general_adjoint(self, s: Fragment, running: Sequence[Node]) -> Fragment:
        """Solve the transposed equations for the weights of the equations of motion."""
        slopes = self._solved_adjoint(s, self._motion, running)
        return s.output(slopes, title="gradient with respect to y, r, forces and p")

    def _solved_adjoint(self, s: Fragment, motion: Motion, running: Sequence[Node]) -> list[Node]:
        held, weights, graph = motion.values(s), self._weights(running), self.f.graph
        rates = self._rates(self.system.udot, running)
        sides = substitute(gradient(rates, weights, motion.unknowns), held)
        of_residuals = [-x for x in motion.pulled(s, held, sides)]
        slopes = gradient([*rates, *motion.exact], [*weights, *of_residuals], self._arguments)
        zeros = dict.fromkeys((*self.system.multipliers, *self.tau), graph.zero)
        kept = [zeros.get(x, slope) for x, slope in zip(self._arguments, slopes, strict=True)]
        return substitute(kept, held)

    def second_slopes(self, s: Fragment, running: Sequence[Node]) -> Fragment:
        """Compute the change of y' and of ``running`` costs along the direction of (y, r, t), and its gradient.

        With F(X) = 0 for the accelerations and multipliers X, and their change Y, which solves F_X Y + F_v = 0, this
        is the gradient of a function of X and Y under two conditions; the weights of these solve F_X^T w = ...
        """
        motion, graph = self._solvable_motion, self.f.graph
        held, weights = motion.values(s), self._weights(running)
        changed = {x: graph.input("change of X", k) for k, x in enumerate(motion.unknowns)}
        along = Tangent(graph, {**self._second_direction, **changed})
        rates = self._rates(self.system.udot, running)
        of_rates, of_residuals = [along(x) for x in rates], [along(x) for x in motion.exact]
        solved = motion.change(s, held, self._second_direction)
        held |= {changed[x]: solved[x] for x in motion.unknowns}
        of_changes = substitute(gradient(of_rates, weights, tuple(changed.values())), held)
        first = [-x for x in motion.pulled(s, held, of_changes, "weights of the change of F")]
        of_unknowns = substitute(gradient([*of_rates, *of_residuals], [*weights, *first], motion.unknowns), held)
        second = [-x for x in motion.pulled(s, held, of_unknowns)]
        nodes, sides = [*of_rates, *of_residuals, *motion.exact], [*weights, *first, *second]
        slopes = gradient(nodes, sides, self._arguments)
        zeros = dict.fromkeys((*self.system.multipliers, *self.tau), graph.zero)
        kept = [zeros.get(x, slope) for x, slope in zip(self._arguments, slopes, strict=True)]
        return s.output(substitute([*of_rates, *kept], held))

    @property
    def _second_direction(self) -> dict[Node, Node]:
        """The direction that follows the other arguments, of y, of the inputs and of the time."""
        arguments = (*self.y, *self.system.r, self.system.t)
        n = len(self.system.r) + len(self._arguments) - len(self.system.p) + 1
        return {x: self.f.graph.input("r", n + k) for k, x in enumerate(arguments)}

    def _solved_terms(self, s: Fragment, values: Sequence[Node]) -> Fragment:
        """Compute values of accelerations and multipliers, and the rows of their derivatives."""
        motion, one = self._solvable_motion, [self.f.graph.one]
        held = motion.values(s)
        distinct = list(dict.fromkeys(values))
        sides = [substitute(gradient([value], one, motion.unknowns), held) for value in distinct]
        pulled = motion.all_pulled(s, held, sides)
        inputs = (*self._arguments, self.system.t)
        rows = {
            value: gradient([value, *motion.exact], [*one, *(-x for x in weights)], inputs)
            for value, weights in zip(distinct, pulled, strict=True)
        }
        zeros = dict.fromkeys((*self.system.multipliers, *self.tau), self.f.graph.zero)
        slopes = [zeros.get(x, slope) for value in values for x, slope in zip(inputs, rows[value], strict=True)]
        return s.output(substitute([*values, *slopes], held))

    def _contact_changes(self, s: Fragment) -> Fragment:
        """Values that the modes of the contacts depend on, and their changes."""
        held, values = self._motion.values(s), self.bound(self._modes.guards())
        along = Tangent(self.f.graph, {**self._with_time, **self._motion.change(s, held, self._with_time)})
        nodes = substitute([*values, *(along(value) for value in values)], held)
        return s.output(nodes, (2, len(values)))

    def _jump_changes(self, s: Fragment) -> Fragment:
        """Speeds after a jump, impulses of the contact rows, and the changes of these speeds."""
        jump = self._modes.jump
        held = jump.values(s)
        changes = jump.change(s, held, self._with_time)
        after, impulses = self.system.udot, self.system.multipliers
        return s.output([held[x] for x in (*after, *impulses)] + [changes[x] for x in after])

    def bound(self, nodes: Sequence[Node]) -> list[Node]:
        """Nodes with the laws in place of their inputs, and without gains that are zero."""
        return substitute(self.system.settled(nodes), {**self.laws, **self.zeros})


def _paired(s: Fragment, rates: Sequence[Node], changes: Sequence[Node]) -> Fragment:
    return s.output([*rates, *changes], (2, len(rates)), "y', then its change")
