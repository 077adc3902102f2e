"""Numbers that C and Python share: statuses, modes and laws of contacts, kinds of events, shapes of switches ...

This module is their only definition: ``kg_codes.h`` is generated from these tables, C code uses its ``KG_...`` names,
and Python code uses the members of the enumerations.
"""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """A number with a ``label`` for users and a ``comment`` for the C header; the base class of the tables."""

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
    """The status that an evaluation or an integration returns; its label is a ``message`` for users.

    Negative numbers are failures. The output of a failed evaluation must not be used; a failed integration keeps the
    last accepted state.
    """

    @property
    def message(self) -> str:
        return self.label

    OK = (0, "success")
    REPARTITIONED = (
        1,
        "success; the dependent speeds of the model are singular at this state, so others were chosen",
        "correct; the dependent speeds of the model are singular at this state, so others were chosen",
    )
    FINISHED = (2, "the end of the interval was reached", "the end of the interval is reached")
    RANK_DEFICIENT = (
        3,
        "success; the constraint rows are dependent at this state: u' is the least-squares solution of least change",
        "correct; the constraint rows are dependent at this state: u' is the least-squares solution of least change",
    )
    AT_EVENT = (4, "the run has stopped at an event", "the run has stopped at an event (kg_events.h)")
    AT_STOP = (
        5,
        "the run has stopped at a requested time",
        "the run has stopped at a time requested by the host (kg_hybrid.h)",
    )
    TERMINATED = (6, "a terminal event ended the run", "an event ended the run")
    REJECTED = (
        7,
        "the step is repeated with a smaller size",
        "a step was withdrawn; a shorter one is to follow (kg_stepper_cut)",
    )
    SINGULAR = (
        -1,
        "the matrix to be solved is singular to working precision: look for redundant constraints "
        '(form="pseudoinverse" solves them), speeds that move no mass or a negative mass, loads in u\' that cancel the '
        'inertia (if Q - dF/du\' is regular but not positive definite, form="nonminimal" solves it), a singular '
        "position, or a free vector y that depends on the controls and leaves them undetermined",
        "the matrix to be solved is singular to working precision",
    )
    INFEASIBLE = (
        -2,
        "no controls satisfy the servo-constraints at this state: the controls have no influence on them, or the "
        "servo-constraints contradict each other or the passive constraints; change targets, controls or state",
        "no controls satisfy the servo-constraints at this state",
    )
    OUTSIDE_TABLE = (
        -3,
        "the argument of a spline or of a Piecewise is beyond the interval in which it has values: say what is beyond, "
        'by extrapolate="constant" or "polynomial" of the table, or a last branch (value, True) of a Piecewise, or '
        "give points that reach further",
        "the argument of a table is beyond its ends; kg_outside_table (kg_model.h) says which",
    )
    STEP_COLLAPSED = (
        -10,
        "no step larger than the rounding error of t, or than min_step, satisfies the tolerances: the solution is "
        "singular or discontinuous at t, or the tolerances are smaller than the rounding errors of the right-hand side",
        "no step that changes t satisfies the tolerances",
    )
    TOO_MANY_STEPS = (
        -11,
        "max_steps steps were taken before the end: raise max_steps, loosen the tolerances or enlarge the step",
        "max_steps accepted steps were taken before the end",
    )
    NOT_FINITE = (
        -12,
        "the state, its derivative or the Jacobian is infinite or not a number: reduce the step, or check the "
        "model's expressions at the last state",
        "the state, its derivative or the Jacobian is infinite or not a number",
    )
    RHS_FAILED = (
        -13,
        "the right-hand side failed; its own status gives the reason. Look for redundant constraints "
        '(form="pseudoinverse" solves them), speeds that move no mass or a negative mass, or a singular position',
        "the right-hand side failed; its own status is in kg_stepper.rhs_status",
    )
    INTERRUPTED = (
        -14,
        "the run was interrupted; the results up to the last accepted step are valid",
        "the host stopped the run between two steps (never returned by a stepper)",
    )
    INVALID_ARGUMENT = (
        -15,
        "invalid argument: sizes, steps and tolerances must be positive (atol can be zero) and times finite",
        "a size, step, tolerance or time is invalid",
    )
    INCONSISTENT = (
        -16,
        "the constraints cannot be satisfied near this state: they contradict each other, or the step was too large",
        "the constraints cannot be satisfied at or near this state",
    )
    NO_MODE = (
        -17,
        "no forces or impulses satisfy the laws of all contacts: their gaps and the constraints contradict each "
        "other, or a friction law has no solution; give a contact a compliant law",
        "no combination of contact modes is consistent with the forces that result from it",
    )
    SEVERAL_MODES = (
        -18,
        "several combinations of contact modes are consistent, with different accelerations (Painleve's paradox):"
        " give the modes at the start, reduce the friction, give a contact a compliant law, or let "
        'kg.Coulomb(mu, paradox="impact") choose',
        "several combinations of contact modes are consistent, with different accelerations",
    )
    CHATTERING = (
        -19,
        "events follow each other without progress of the run: look for guards that remain zero, or give the "
        "switching a dead band",
        "events follow each other without progress of the run",
    )
    GAP_VIOLATED = (
        -20,
        "the gap of a rigid contact is negative: start from a state with a gap >= 0, or give the contact a law "
        "that allows penetration",
        "the gap of a rigid contact is negative at the start",
    )


class Mode(Code):
    """The mode of a contact at a state."""

    OPEN = (0, "open")
    PENETRATED = (1, "penetrated", "the gap is violated; there is no force because it would be tensile")
    CLOSED = (2, "closed", "a normal force without friction")
    STICK = (3, "stick")
    SLIP = (4, "slip")


CONTACT_GUARDS = 4
"""Guards of a contact: of its gap or normal force, of its gap, of its friction, of its start to slip."""

REGULARIZED = 8
"""Flag beside the mode of a rigid contact that is compliant until it opens, in the records of phases."""


class ContactLaw(Code):
    """How the forces of a closed contact are determined. The label is the kind of the contact in a model."""

    STABILIZED = (0, "stabilized", "its rows have the acceleration `target` while the gap is violated")
    COMPLIANT = (1, "compliant", "the force is `load` while the gap is violated and the force compressive")
    RESTITUTION = (2, "restitution", "rigid: impacts, then separation or rest")
    BILATERAL = (3, "bilateral", "always closed, in both directions: friction in a joint")
    LATCH = (4, "latch", "open, or closed in both directions; events switch it")
    LOAD = (5, "load", "no normal row: friction under the normal force `load`")


class Paradox(Code):
    """What happens where a friction law has no stable solution with finite forces: ``Coulomb(paradox=...)``."""

    ERROR = (0, "error", "the run stops")
    IMPACT = (1, "impact", "an impact without collision; where several solutions exist, the stable one of least force")
    REGULARIZE = (2, "regularize", "the contact is compliant from then on until it opens")


class EventKind(Code):
    """What happened at an event of a run. The index of the record is that of the user's event or of the contact."""

    USER = (0, "user", "an event of the model")
    OPENS = (1, "opens", "this and the following kinds belong to a contact")
    CLOSES = (2, "closes")
    IMPACT = (3, "impact")
    STICKS = (4, "sticks")
    SLIPS = (5, "slips")
    REVERSES = (6, "reverses", "slips in the opposite direction")
    PENETRATES = (7, "penetrates", "the gap remains violated, without a force")
    IMPOSED = (8, "imposed")
    REMOVED = (9, "removed")
    RESTS = (10, "rests", "infinitely many impacts accumulate (Zeno)")
    PARADOX = (11, "paradox", "friction has no solution with finite forces: an impulse or a compliant law follows")


class SwitchShape(Code):
    """How a function of time that switches something depends on it (kg_switches.h)."""

    AFFINE = (0, "affine")
    PIECES = (1, "pieces", "affine between the instants of the switches before it")
    CURVED = (2, "curved")


def status_message(number: int) -> str:
    """The message of a status that compiled code returned, by its number."""
    return next(code.message for code in Status if code == number)
