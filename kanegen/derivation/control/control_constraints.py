"""Constraints with controls, differentiated until the derivatives of the controls appear (Bajodah 2003, chapter 8).

The state is extended by ``z``: the controls tau, and tau' if the model contains tau''. The highest derivatives of the
controls are the unknowns ``w`` of ``AA w = BB``. The accelerations are closed-form functions of q, u, z, t and, if
velocities depend on the controls, of w.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from kanegen.derivation import forms
from kanegen.derivation.equations import Equations
from kanegen.errors import BuildError, ModelError
from kanegen.graph import Node, Tangent, gradient, reachable, substitute
from kanegen.graph.cases import jump_with
from kanegen.model.control import ControlConstraints
from kanegen.model.inputs import Input

UNKNOWN: Final = "w"
"""Input array of the graph: the highest derivatives of the controls."""

MOST_DERIVATIVES: Final = 4
"""The tip of an elastic arm needs four derivatives; with more, expressions become large and inaccurate."""


@dataclass(frozen=True)
class Level:
    """A constraint, or its derivative of the given ``order``, that contains no w.

    ``held``: whether the controls in z can satisfy it; ``decays``: whether theta makes its error decay.
    """

    label: str
    order: int
    residual: Node
    held: bool
    decays: bool


class ControlledMotion:
    """The motion of (q, u, z) under control constraints: q', u' and z', with w as an input of the graph."""

    def __init__(self, equations: Equations, record: ControlConstraints) -> None:
        self.equations = equations
        self.record = record
        model, system = equations.model, equations.system
        self._positions = {item.symbol: k for k, item in enumerate(model.inputs)}
        self.controls = record.inputs(model.inputs)
        self.unknowns = tuple(system.graph.input(UNKNOWN, k) for k in range(len(self.controls)))
        values = [item for item in self.controls if item.acceleration is not None]
        symbols = (*(item.symbol for item in self.controls), *(item.rate for item in values))
        self.slots = tuple(self._positions[symbol] for symbol in symbols)
        self._highest = {
            system.r[self._positions[symbol]]: w
            for symbol, w in zip(map(_highest, self.controls), self.unknowns, strict=True)
            if symbol is not None
        }

    @classmethod
    def of(cls, equations: Equations) -> ControlledMotion | None:
        """The motion under the control constraints of the model, if it has any."""
        record = equations.model.control_constraints
        return None if record is None else cls(equations, record)

    # -- the motion -----------------------------------------------------------------------------------------

    @cached_property
    def state(self) -> tuple[Node, ...]:
        """z: the controls, then the rates of those whose second derivative is w."""
        return tuple(self.equations.system.r[slot] for slot in self.slots)

    @cached_property
    def state_rates(self) -> tuple[Node, ...]:
        """z'."""
        pairs = list(zip(self.controls, self.unknowns, strict=True))
        r, slots = self.equations.system.r, self._positions
        first = [w if item.acceleration is None else r[slots[item.rate]] for item, w in pairs]
        return (*first, *(w for item, w in pairs if item.acceleration is not None))

    @cached_property
    def qdot(self) -> tuple[Node, ...]:
        return self._with_unknowns(self.equations.system.qdot)

    @cached_property
    def udot(self) -> tuple[Node, ...]:
        return self._with_unknowns(self._accelerations.udot)

    @cached_property
    def conditions(self) -> tuple[Node, ...]:
        """The conditions under which the accelerations exist."""
        return self._with_unknowns(self._accelerations.conditions)

    @cached_property
    def _accelerations(self) -> forms.Accelerations:
        """u' in closed form; without dependent speeds, which restrict the regular states, if M is symmetric."""
        e = self.equations
        if not e.has_partition:
            raise BuildError(
                f"the passive constraints of model {e.model.name!r} are redundant, but its control constraints need "
                "independent ones, because straight-line code computes the accelerations: remove the redundant ones"
            )
        rows, b = [row.J for row in e.constraints.rows], e.b_stabilized if e.gain_names else e.b
        if not e.is_symmetric:
            return e.accelerations(stabilized=bool(e.gain_names))
        try:
            return forms.range_space_accelerations(e.graph, e.left_side, e.right_side, rows, b.nodes)
        except ZeroDivisionError:  # a speed moves no mass
            if not rows:
                return e.accelerations(stabilized=False)
            return forms.augmented_accelerations(e.graph, e.left_side, e.right_side, rows, b.nodes)

    def _with_unknowns(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        return self.equations.simplified(substitute(nodes, self._highest))

    def _lowered(self, expressions: Sequence[Any]) -> tuple[Node, ...]:
        """Nodes of the user's expressions, in which u' are the solved accelerations."""
        system = self.equations.system
        plain = substitute([system.lower(x) for x in expressions], dict(zip(system.udot, self.udot, strict=True)))
        return self._with_unknowns(plain)

    # -- time derivatives -----------------------------------------------------------------------------------

    @cached_property
    def _moving(self) -> Mapping[Node, Node]:
        system = self.equations.system
        moving = zip((*system.q, *system.u, *self.state), (*self.qdot, *self.udot, *self.state_rates), strict=True)
        return {**system.moving, **dict(moving)}

    @cached_property
    def _rate(self) -> Tangent:
        return Tangent(self.equations.graph, self._moving)

    def rate(self, node: Node, label: str) -> Node:
        """d/dt along the motion; ModelError if the rate of an input is needed but not given."""
        names = [item.name for item in self.equations.model.inputs]
        for leaf in reachable([node]):
            if leaf.op == "input" and leaf.payload[0] == "r" and leaf not in self._moving:
                slot = leaf.payload[1]
                if slot >= len(names):
                    raise ModelError(f"the control constraint {label} contains a contact force, which has no rate")
                raise ModelError(
                    f"input {names[slot]} is differentiated, which needs its rate, because of the control constraint "
                    f"{label}: give kg.Input({names[slot]}, rate=...)"
                )
        return self.equations.simplified([self._rate(node)])[0]

    # -- the constraints ------------------------------------------------------------------------------------

    @cached_property
    def _rows(self) -> tuple[tuple[tuple[Level, ...], tuple[Node, ...], Node], ...]:
        return tuple(map(self._row, self.record.constraints, self.gains))

    @property
    def levels(self) -> tuple[Level, ...]:
        """Each constraint followed by those of its derivatives that contain no w."""
        return tuple(level for levels, _, _ in self._rows for level in levels)

    @property
    def matrix(self) -> tuple[tuple[Node, ...], ...]:
        """AA, (n_c, n_tau)."""
        return tuple(row for _, row, _ in self._rows)

    @property
    def right_side(self) -> tuple[Node, ...]:
        """BB, (n_c,), with the stabilization by theta."""
        return tuple(right for _, _, right in self._rows)

    @cached_property
    def gains(self) -> tuple[tuple[Node, ...], ...]:
        """Theta1, ..., Thetak of each constraint; () if theta was not given for it."""
        return tuple(tuple(map(self.equations.system.lower, theta)) for theta in self.record.theta)

    @cached_property
    def free_part(self) -> tuple[Node, ...]:
        """The free vector y, (n_tau,)."""
        nodes = self._lowered(self.record.free_part(len(self.controls)))
        if any(leaf in self.unknowns for leaf in reachable(nodes)):
            raise ModelError(
                "y of ControlConstraints contains a highest derivative of a control, which depends on y: remove it"
            )
        return nodes

    def slopes(self, residual: Node) -> tuple[Node, ...]:
        """Derivatives of the residual with respect to z."""
        return self.equations.simplified(gradient([residual], [self.equations.graph.one], self.state))

    def _row(self, expression: Any, gains: tuple[Node, ...]) -> tuple[tuple[Level, ...], tuple[Node, ...], Node]:
        """The levels of one constraint, its row of AA and its entry of BB."""
        system, label = self.equations.system, str(expression)
        (node,) = self._lowered([expression])
        levels: list[Level] = []
        while True:
            coefficients = self.equations.simplified(gradient([node], [system.graph.one], self.unknowns))
            if not self._vanish(coefficients):
                break
            if len(levels) == MOST_DERIVATIVES:
                names = ", ".join(item.name for item in self.controls)
                raise ModelError(
                    f"the controls {names} enter neither the control constraint {label} nor its first "
                    f"{MOST_DERIVATIVES - 1} derivatives: name other controls, or remove the constraint"
                )
            held = not self._vanish(self.slopes(node))
            levels.append(Level(_derivative(label, len(levels)), len(levels), node, held, bool(gains)))
            node = self.rate(node, label)
        slopes = (x for c in coefficients for x in gradient([c], [system.graph.one], self.unknowns))
        if not self._vanish(slopes) or jump_with(coefficients, self.unknowns):
            raise ModelError(
                f"the control constraint {label} is not linear in the highest derivatives of the controls: "
                "differentiate it, or solve it for them"
            )
        return tuple(levels), coefficients, self._right(node, levels, gains, label)

    def _vanish(self, nodes: Iterable[Node]) -> bool:
        """Whether all nodes are identically zero, whatever the gains of a stabilization are."""
        graph, nodes = self.equations.graph, list(nodes)
        free = [x for x in reachable(nodes) if x.op == "input" and x.payload[0] in ("g", UNKNOWN)]
        return self.equations.system.vanish_in_all_cases(substitute(nodes, dict.fromkeys(free, graph.one)))

    def _right(self, node: Node, levels: Sequence[Level], gains: tuple[Node, ...], label: str) -> Node:
        graph = self.equations.graph
        if gains and len(gains) != len(levels):
            raise ModelError(
                f"theta of the control constraint {label} has {len(gains)} coefficient(s): expected {len(levels)}, "
                "the number of differentiations after which it determines its controls"
            )
        (rest,) = substitute([node], dict.fromkeys(self.unknowns, graph.zero))
        decay = [gain * level.residual for gain, level in zip(gains, reversed(levels), strict=False)]
        return self.equations.simplified([graph.sum([-rest, *decay])])[0]


def _highest(item: Input) -> Any:
    """The symbol of the highest derivative of a control, an element of w; None if the model does not contain it."""
    return item.rate if item.acceleration is None else item.acceleration


def _derivative(label: str, order: int) -> str:
    power = order if order > 1 else ""
    return f"d{power}/dt{power} ({label})" if order else label
