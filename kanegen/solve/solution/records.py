"""Records of a run: how it ended, its events, contacts, controls and dense output, and what was integrated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, NamedTuple

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.protocol import Evaluator
from kanegen.codes import Mode, Status
from kanegen.model.records import FrozenMapping
from kanegen.solve.solution.overview import event_table
from kanegen.solve.values import plain_value, shown

MODES = Mode.labels()
"""Modes of a contact, indexed by their numbers in C. ``"penetrated"``: the gap is violated, and no force acts."""


class Outcome(Enum):
    """How a run ended: ``value`` is a short name, ``code`` the status in C, ``advice`` says what to do."""

    FINISHED = ("finished", Status.FINISHED)
    TERMINAL_EVENT = ("terminal event", Status.TERMINATED)
    STEP_COLLAPSED = ("step collapsed", Status.STEP_COLLAPSED)
    TOO_MANY_STEPS = ("too many steps", Status.TOO_MANY_STEPS)
    NOT_FINITE = ("not finite", Status.NOT_FINITE)
    RIGHT_HAND_SIDE_FAILED = ("right-hand side failed", Status.RHS_FAILED)
    OUTSIDE_TABLE = ("outside a table", Status.OUTSIDE_TABLE)
    INCONSISTENT = ("constraints cannot be satisfied", Status.INCONSISTENT)
    NO_MODE = ("no consistent contact mode", Status.NO_MODE)
    SEVERAL_MODES = ("several consistent contact modes", Status.SEVERAL_MODES)
    CHATTERING = ("chattering", Status.CHATTERING)
    GAP_VIOLATED = ("gap violated", Status.GAP_VIOLATED)
    INTERRUPTED = ("interrupted", Status.INTERRUPTED)
    REFUSED = ("start refused", Status.INVALID_ARGUMENT)

    code: Status

    def __new__(cls, value: str, code: Status) -> Outcome:
        member = object.__new__(cls)
        member._value_ = value
        member.code = code
        return member

    @property
    def advice(self) -> str:
        """The message of the status in C."""
        return self.code.message

    @property
    def is_success(self) -> bool:
        """Whether the end of the span, or a terminal event, was reached."""
        return self in (Outcome.FINISHED, Outcome.TERMINAL_EVENT)

    @classmethod
    def from_code(cls, code: int) -> Outcome:
        """The outcome with this ``code``."""
        return _OUTCOMES[code]


_OUTCOMES: Final[dict[int, Outcome]] = {outcome.code: outcome for outcome in Outcome}


def conflict_message(module: Evaluator, conflict: Any) -> str:
    """The message if no forces satisfy the contact laws, from the ``Conflict`` of a compiled module."""
    names = [repr(module.CONTACTS[index]) for index in conflict.contacts]
    who = f"contact {names[0]}" if len(names) == 1 else f"contacts {', '.join(names)}" if names else "contacts"
    what, law = ("impulses", "the law of impact") if conflict.impact else ("forces", "the laws of contact")
    if conflict.friction:
        return (
            f"{who}: no modes are consistent with the {what} that follow from them, but without friction such modes "
            "exist (Painleve's paradox): reduce the friction, give a contact a compliant law, or continue with "
            'kg.Coulomb(mu, paradox="impact") or paradox="regularize"'
        )
    these = "this contact" if len(names) == 1 else "these contacts"
    return (
        f"{who}: no {what} satisfy {law}: {these} and the constraints contradict each other, because no {what} prevent "
        "all gaps from closing (a body is squeezed between obstacles, or a given motion drives it into one): open a "
        "gap, change the given motion, or give a contact a compliant law"
    )


class Statistics(NamedTuple):
    """Counts and step sizes of a run.

    ``steps`` and ``rejected`` count accepted and rejected steps, ``evaluations`` evaluations of the right-hand side,
    ``repartitions`` evaluations with other dependent speeds than the model's own. ``smallest_step`` (including the last
    step, shortened to the end of the span), ``largest_step`` and ``last_step`` are magnitudes in s. ``largest_error``
    is the largest local error estimate of an accepted step as a fraction of the tolerance, 0 for methods without an
    estimate. ``projections`` counts projections that changed the state, ``integrals_left`` projections that could not
    correct an integral of motion; ``integral_drift`` is the largest error of an integral before its correction,
    relative to its terms (see :class:`kanegen.Projection`). ``jacobians`` and ``factorizations`` are counts of the
    method for stiff equations.
    """

    steps: int
    rejected: int
    evaluations: int
    repartitions: int
    smallest_step: float
    largest_step: float
    last_step: float
    largest_error: float
    projections: int = 0
    jacobians: int = 0
    factorizations: int = 0
    integrals_left: int = 0
    integral_drift: float = 0.0


@dataclass(frozen=True, eq=False)
class EventRecord:
    """One event of a run.

    Attributes
    ----------
    t
        Time, s.
    name
        Name of the user's event or of the contact, or of a kink of a feedback law (``"F: highest value"``).
    kind
        ``"user"`` for the model's events; ``"switches"`` for a feedback law at a limit or another kink.
        For contacts: ``"impact"``, ``"closes"``, ``"opens"``; ``"rests"`` after
        infinitely many impacts in a finite time; ``"sticks"``, ``"slips"``, ``"reverses"`` (slips the other way);
        ``"penetrates"`` for a violated gap without force; ``"paradox"`` where friction has no solution with finite
        forces (:class:`kanegen.Coulomb`); ``"imposed"`` and ``"removed"`` for a latch.
    q
        Coordinates, (n_q,); they do not jump.
    u_before, u_after
        Speeds before and after, (n_u,); equal unless an impulse acted.
    s_before, s_after
        States before and after, (n_s,); equal unless the event reset one.
    impulse
        Impulses of all contact rows, (n_rows,), N s, in the order of ``names`` of :class:`ContactHistory`; zero
        without an impact.
    names
        Names of the speeds, then of the states, for the text of the record.
    """

    t: float
    name: str
    kind: str
    q: Array
    u_before: Array
    u_after: Array
    impulse: Array
    s_before: Array = field(default_factory=lambda: np.empty(0))
    s_after: Array = field(default_factory=lambda: np.empty(0))
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        before, after = (
            np.concatenate(pair) for pair in ((self.u_before, self.s_before), (self.u_after, self.s_after))
        )
        pairs = enumerate(zip(before.tolist(), after.tolist(), strict=True))
        names = self.names or tuple(map(str, range(before.size)))
        jumps = [f"{names[k]} {old:.6g} -> {new:.6g}" for k, (old, new) in pairs if old != new]
        return f"<Event {self.name!r}, {self.kind}, at t = {self.t:.9g} s{': ' if jumps else ''}{shown(jumps)}>"

    def _repr_html_(self) -> str:
        return event_table([self]).html()

    @property
    def jumps(self) -> bool:
        """Whether speeds or states jump."""
        same = np.array_equal(self.u_before, self.u_after) and np.array_equal(self.s_before, self.s_after)
        return not same


@dataclass(frozen=True, eq=False)
class Phase:
    """An interval of a run, from ``t_start`` to ``t_end`` (s), with constant ``modes`` (name of contact to mode)."""

    t_start: float
    t_end: float
    modes: Mapping[str, str]

    def __repr__(self) -> str:
        modes = shown([f"{name} {mode}" for name, mode in self.modes.items()])
        return f"<Phase: t = {self.t_start:.6g} .. {self.t_end:.6g} s: {modes}>"


@dataclass(frozen=True, eq=False)
class ContactHistory:
    """The contacts of a run.

    Attributes
    ----------
    phases
        Modes of all contacts over time, as a sequence of :class:`Phase`.
    forces
        Multipliers of the contact rows at the stored times, (n_t, n_rows), N: the normal force of each contact, then
        friction along its directions of slip.
    names
        Names of the contact rows, n_rows: ``"<contact>"`` for a normal force, ``"<contact> slip"`` for friction.
    """

    phases: tuple[Phase, ...]
    forces: Array
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<ContactHistory: {len(self.phases)} phases, {len(self.forces)} times; forces of {shown(self.names)}>"


@dataclass(frozen=True)
class Saturation:
    """An interval from ``t_start`` to ``t_end`` (s) in which ``control`` (a name) was at ``limit``, in its unit."""

    control: str
    t_start: float
    t_end: float
    limit: float

    @property
    def duration(self) -> float:
        """Length of the interval, s."""
        return abs(self.t_end - self.t_start)


@dataclass(frozen=True, eq=False)
class ControlHistory:
    """The controls of a closed-loop run.

    Attributes
    ----------
    values
        Controls (n_t, n_tau) that act from each stored time on; with control constraints also the rates of controls
        that are part of the state.
    names
        Names of the columns of ``values``, n_tau.
    errors
        Residuals at the stored times, (n_t, n_e), each in its unit: psi and psi' of servo-constraints; control
        constraints and those of their derivatives that contain known quantities only. None without constraints, and
        if the function of the residuals was not built.
    constraints
        Names of the columns of ``errors``.
    saturation
        Intervals in which a control was at a limit.
    warnings
        Sentences about the effects of the limits.
    """

    values: Array
    names: tuple[str, ...]
    errors: Array | Any  # Any in place of None: users know whether there are constraints
    constraints: tuple[str, ...]
    saturation: tuple[Saturation, ...] = ()
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        errors = f"; errors of {shown(self.constraints)}" if self.errors is not None else ""
        limits = f"; {len(self.saturation)} intervals at a limit" if self.saturation else ""
        return f"<ControlHistory: {shown(self.names)} at {len(self.values)} times{errors}{limits}>"


@dataclass(frozen=True, eq=False)
class Dense:
    """Dense output of a run: one polynomial per step.

    ``t_old`` (m,) and ``h`` (m,), the start and signed size of every step, and ``coefficients`` (m, k, n_y)
    in the nested form of Hairer, Norsett and Wanner (Solving Ordinary Differential Equations I, 1993, section
    II.6), in theta = (t - t_old) / h: ``c_0 + theta (c_1 + (1 - theta) (c_2 + theta (c_3 + ...)))``. At the end of a
    step the polynomial of the next step is evaluated, so that a jump gives the state after it.
    """

    t_old: Array
    h: Array
    coefficients: Array

    def __call__(self, times: Array) -> Array:
        """States (n_t, n_y) at ``times`` (n_t,), which must lie within the run."""
        direction = np.sign(self.h[0])
        steps = np.searchsorted(self.t_old * direction, times * direction, side="right") - 1
        steps = np.clip(steps, 0, self.t_old.size - 1)
        theta = ((times - self.t_old[steps]) / self.h[steps])[:, None]
        factors = (theta, 1.0 - theta)
        rows = self.coefficients.shape[1]
        states = self.coefficients[steps, rows - 1]
        for row in reversed(range(rows - 1)):
            states = states * factors[row % 2] + self.coefficients[steps, row]
        return np.asarray(states)

    def ending_at(self, t: float, state: Array) -> Dense:
        """The dense output with ``state`` (n_y,) from ``t`` on, for a jump at the end of a run."""
        if self.t_old.size and np.array_equal(self(np.array([t]))[0], state):
            return self
        constant = np.zeros((1, *self.coefficients.shape[1:]))
        constant[0, 0] = state
        size = self.h[-1:] if self.h.size else np.ones(1)
        return replace(
            self,
            t_old=np.append(self.t_old, t),
            h=np.append(self.h, np.copysign(1.0, size)),
            coefficients=np.concatenate([self.coefficients, constant]),
        )


@dataclass(frozen=True)
class RunRecord:
    """What was integrated, and how.

    Attributes
    ----------
    model, digest
        Name of the model, and the digest that identifies model and options of the build.
    coordinates, speeds, states, inputs
        The names of the columns of ``q``, ``u``, ``s`` and ``inputs`` of the solution.
    held
        The names of the inputs whose values were held between samples.
    parameters
        Values of the parameters by name; None for a missing value.
    options
        Arguments of :meth:`kanegen.Solver.integrate`: ``t_span``, ``method``, ``rtol`` and so on, without the inputs.
    """

    model: str
    digest: str
    coordinates: tuple[str, ...]
    speeds: tuple[str, ...]
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    held: tuple[str, ...]
    parameters: Mapping[str, float | Any]  # Any in place of None: users know which values they gave
    options: Mapping[str, Any]

    @classmethod
    def of(cls, solver: Any, held: tuple[str, ...], options: Mapping[str, Any]) -> RunRecord:
        """The record of a run of a solver with these arguments, without options that are None."""
        d = solver.description
        given = {name: plain_value(value) for name, value in options.items() if value is not None}
        return cls(
            model=d.name,
            digest=solver.extension.digest,
            coordinates=d.coordinates,
            speeds=d.speeds,
            states=d.states,
            inputs=d.inputs,
            held=held,
            parameters=solver.parameters,
            options=FrozenMapping(given),
        )
