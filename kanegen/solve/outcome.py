"""The outcome of an integration, and its cost."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from kanegen.backends.protocol import Evaluator
from kanegen.codes import Status


class Outcome(Enum):
    """How a run ended. ``value`` names it, ``code`` is its number in C, ``advice`` says what to do."""

    FINISHED = ("finished", Status.FINISHED, "nothing: the end of the span was reached")
    TERMINAL_EVENT = ("terminal event", Status.TERMINATED, "nothing: an event of the model ended the run")
    STEP_COLLAPSED = (
        "step collapsed",
        Status.STEP_COLLAPSED,
        "look at the last state: the motion is singular or discontinuous there; else loosen rtol and atol",
    )
    TOO_MANY_STEPS = ("too many steps", Status.TOO_MANY_STEPS, "raise max_steps, loosen rtol and atol, or enlarge step")
    NOT_FINITE = (
        "not finite",
        Status.NOT_FINITE,
        "reduce the step, or check the model's expressions at the last state",
    )
    RIGHT_HAND_SIDE_FAILED = (
        "right-hand side failed",
        Status.RHS_FAILED,
        "look for redundant constraints (form='pseudoinverse' solves them), speeds that move no mass or a negative "
        "one, or a singular position at the last state",
    )
    INCONSISTENT = (
        "constraints cannot be satisfied",
        Status.INCONSISTENT,
        "reduce the step or the tolerances, or look for constraints that contradict each other at the last state",
    )
    NO_MODE = (
        "no consistent contact mode",
        Status.NO_MODE,
        "look at the contacts that the message names: no forces, or impulses, satisfy their laws at the last state; "
        "remove the contradiction, or let one of them yield with a compliant law",
    )
    SEVERAL_MODES = (
        "several consistent contact modes",
        Status.SEVERAL_MODES,
        "reduce mu, or give the contacts compliant laws: rigid bodies with large friction have no unique motion at the "
        "last state (Painleve); at the start modes= chooses one",
    )
    CHATTERING = (
        "chattering",
        Status.CHATTERING,
        "look at the events before the last state: modes change without time passing; give the contact a compliant "
        "law or another restitution, or the event a guard that its action does not trip again",
    )
    GAP_VIOLATED = (
        "gap violated",
        Status.GAP_VIOLATED,
        "start with gap >= 0, or give the contact a law that acts on violated gaps, any but kg.Restitution",
    )
    INTERRUPTED = ("interrupted", Status.INTERRUPTED, "the solution up to its last time is valid: go on from there")

    code: int
    advice: str

    def __new__(cls, value: str, code: int, advice: str) -> Outcome:
        member = object.__new__(cls)
        member._value_ = value
        member.code = code
        member.advice = advice
        return member

    @classmethod
    def from_code(cls, code: int) -> Outcome:
        """The outcome with this ``code``."""
        return _BY_CODE[code]


_BY_CODE = {outcome.code: outcome for outcome in Outcome}


def conflict_message(module: Evaluator, conflict: Any) -> str:
    """Why no forces satisfy the laws of contacts, from the ``Conflict`` of a compiled module."""
    names = [repr(module.CONTACTS[index]) for index in conflict.contacts]
    who = f"contact {names[0]}" if len(names) == 1 else f"contacts {', '.join(names)}" if names else "contacts"
    what, law = ("impulses", "the law of impact") if conflict.impact else ("forces", "the laws of contact")
    if conflict.friction:
        return (
            f"{who}: no modes are consistent with the {what} that follow from them, although without friction some "
            "would be (Painleve's paradox): reduce the friction, or make a contact compliant by its law"
        )
    these = "this contact" if len(names) == 1 else "these contacts"
    return (
        f"{who}: no {what} satisfy {law}: {these} and the constraints contradict each other here, since no {what} keep "
        "all gaps from closing (a body is squeezed between obstacles, or a given motion drives it into one): open a "
        "gap, change the given motion, or make a contact compliant by its law"
    )


class Statistics(NamedTuple):
    """Counts and step sizes of a run.

    ``steps`` and ``rejected`` count accepted and rejected steps, ``evaluations`` those of the right-hand side,
    ``repartitions`` those among them with other dependent speeds than the model's own. ``smallest_step`` (the last
    one, which ends at the end of the span, included), ``largest_step`` and ``last_step`` are magnitudes in s.
    ``largest_error`` is the largest local error estimate of an accepted step as a fraction of the tolerance, 0 for
    methods without an estimate. ``projections`` counts those that moved the state, ``integrals_left`` those that could
    not correct an integral of motion; ``integral_drift`` is the largest error of an integral before its correction,
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
