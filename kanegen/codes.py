"""Numbers that the C runtime and Python share: statuses, contact modes, contact laws and kinds of events.

Each is written here and nowhere else. ``kg_codes.h`` is rendered from these tables, C code uses its ``KG_...`` names,
and Python code uses the members of the enumerations.
"""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """A number with a ``label`` for users and a ``comment`` for the C header."""

    label: str
    comment: str

    def __new__(cls, number: int, label: str, comment: str = "") -> Code:
        member = int.__new__(cls, number)
        member._value_ = number
        member.label = label
        member.comment = comment
        return member

    @classmethod
    def labels(cls) -> tuple[str, ...]:
        """The labels of all members, in the order of their numbers from 0."""
        return tuple(code.label for code in sorted(cls))


class Status(Code):
    """What an evaluation or an integration returns: a number, and a ``message`` for users in place of a label.

    Negative: it failed. After an evaluation that failed, the output must not be used. An integration that failed keeps
    the last accepted state.
    """

    @property
    def message(self) -> str:
        return self.label

    OK = (0, "success")
    REPARTITIONED = (
        1,
        "success with other dependent speeds than the model's own, which are singular here",
        "correct, but the dependent speeds of the model are singular here: others were used",
    )
    FINISHED = (2, "the end of the interval was reached", "the end of the interval is reached")
    RANK_DEFICIENT = (
        3,
        "success with constraints that depend on each other here: the best-fitting u' of least change was taken",
        "correct, but constraints depend on each other here: the best-fitting u' of least change",
    )
    AT_EVENT = (4, "the run stands at an event", "the run stands at an event (kg_events.h)")
    AT_STOP = (
        5,
        "the run stands at a time at which it was to stop",
        "the run stands at a time the host asked for (kg_hybrid.h)",
    )
    TERMINATED = (6, "a terminal event ended the run", "an event ended the run")
    SINGULAR = (
        -1,
        "the matrix to be solved is singular to working precision: look for redundant constraints "
        '(form="pseudoinverse" solves them), speeds that move no mass or a negative one, a singular position, or a '
        "free vector y that depends on the controls and leaves them undetermined",
        "the matrix to be solved is singular to working precision",
    )
    INFEASIBLE = (
        -2,
        "no controls satisfy the servo-constraints here: the controls do not enter them (any more), or the servo-"
        "constraints contradict each other or the passive constraints; change targets, controls or state",
        "no controls satisfy the servo-constraints here",
    )
    STEP_COLLAPSED = (
        -10,
        "no step larger than the rounding of t satisfies the tolerances: the solution is singular or discontinuous "
        "here, or the tolerances are too small for the rounding of the right-hand side",
        "no step that changes t satisfies the tolerances",
    )
    TOO_MANY_STEPS = (
        -11,
        "max_steps steps were taken before the end: raise max_steps, loosen the tolerances or enlarge the step",
        "max_steps accepted steps were taken before the end",
    )
    NOT_FINITE = (
        -12,
        "the state, its derivative or the Jacobian is infinite or not a number: reduce the step, or check the model's "
        "expressions at the last state",
        "the state, its derivative or the Jacobian is infinite or not a number",
    )
    RHS_FAILED = (
        -13,
        "the right-hand side failed, for the reason that its own status gives: look for redundant constraints "
        '(form="pseudoinverse" solves them), speeds that move no mass or a negative one, or a singular position',
        "the right-hand side failed; its own status is in kg_stepper.rhs_status",
    )
    INTERRUPTED = (
        -14,
        "interrupted: the results up to the last accepted step are valid",
        "stopped by the host between two steps (never returned by a stepper)",
    )
    INVALID_ARGUMENT = (
        -15,
        "invalid argument: sizes, steps and tolerances must be positive (atol may be zero) and times finite",
        "a size, step, tolerance or time cannot be used",
    )
    INCONSISTENT = (
        -16,
        "the constraints cannot be satisfied near this state: they contradict each other here, or the step was too "
        "large",
        "the constraints cannot be satisfied at, or near, this state",
    )
    NO_MODE = (
        -17,
        "no forces or impulses satisfy the laws of all contacts: their gaps and the constraints contradict each other,"
        " or a law of friction has no solution; let a contact yield with a compliant law",
        "no modes of the contacts agree with the forces they lead to",
    )
    SEVERAL_MODES = (
        -18,
        "several modes of the contacts agree with the forces they lead to, with different accelerations (Painleve): "
        "name those at the start, reduce the friction, or let the contact yield with a compliant law",
        "several do, with different accelerations",
    )
    CHATTERING = (
        -19,
        "events follow each other ever faster or without end: look for guards that hang at zero, or give the switching"
        " a dead band",
        "events follow each other without end",
    )
    GAP_VIOLATED = (
        -20,
        "the gap of a rigid contact is negative: start from a state that satisfies it, or give the contact a law that "
        "allows penetration",
        "a rigid contact starts penetrated",
    )


class Mode(Code):
    """The mode of a contact at a state."""

    OPEN = (0, "open")
    PENETRATED = (1, "penetrated", "the gap is violated, but the force would be tensile: there is none")
    CLOSED = (2, "closed", "a normal force without friction")
    STICK = (3, "stick")
    SLIP = (4, "slip")


class ContactLaw(Code):
    """What holds a contact while it is closed. The label is the kind of the contact in a model."""

    STABILIZED = (0, "stabilized", "its rows accelerate as `target` says while the gap is violated")
    COMPLIANT = (1, "compliant", "the force is `load` while the gap is violated and the force compressive")
    RESTITUTION = (2, "restitution", "rigid: impacts, then separation or rest")
    BILATERAL = (3, "bilateral", "always closed, in both directions: friction in a joint")
    LATCH = (4, "latch", "open, or closed in both directions, as events say")
    LOAD = (5, "load", "no normal row: friction under the normal force `load`")


class EventKind(Code):
    """What happened at an event of a run, to the user's event or the contact with the index of the record."""

    USER = (0, "user", "an event of the model")
    OPENS = (1, "opens", "this and the following: a contact")
    CLOSES = (2, "closes")
    IMPACT = (3, "impact")
    STICKS = (4, "sticks")
    SLIPS = (5, "slips")
    REVERSES = (6, "reverses", "slips in the opposite direction")
    PENETRATES = (7, "penetrates", "the gap stays violated, without a force")
    IMPOSED = (8, "imposed")
    REMOVED = (9, "removed")
    RESTS = (10, "rests", "infinitely many impacts accumulate (Zeno)")
