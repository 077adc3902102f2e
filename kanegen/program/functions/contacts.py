"""Functions of contacts, events and impulses, for every model that has them.

``contacts`` evaluates all contact rows at zero multipliers, so that the system the runtime solves in a mode contains
only the closed rows. Its last sections are those of ``gaps``, which needs no accelerations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kanegen.codes import ContactLaw
from kanegen.derivation import forms
from kanegen.derivation.contacts import ContactRows, guards
from kanegen.derivation.equations import Equations
from kanegen.derivation.forces.generalized import impulse_rows, require_places
from kanegen.derivation.geometry.system import System
from kanegen.derivation.sensitivities import contact_rows as rows_of_contacts
from kanegen.errors import BuildError
from kanegen.graph import Node, substitute
from kanegen.model.contacts import is_multiplier
from kanegen.model.description import SystemDescription
from kanegen.model.expressions import atoms
from kanegen.program.builder import Fragment, Functions, Make, flat, mass_function
from kanegen.program.functions.right_sides import bordered_columns, reduced_columns
from kanegen.program.records import ContactEntry, EventEntry

SUMMARIES: Final = {
    "contacts": "q', u' without contact forces, responses du'/dlambda (rows, n_u), D = W M W^T (rows, rows), row "
    "accelerations without contact forces, then the gaps",
    "gaps": "value, rate, target acceleration of the contact rows; load, mu_s, mu_k, restitution of the contacts, "
    "creep",
    "contact_values": "values of the contact laws that depend on parameters, time or state",
    "events": "guards of the events",
    "impulses": "generalized impulses of the named impulses",
    "resets": "states after each event, a row for each",
}

Columns = Sequence[Sequence[Node]]

_IMPACTING: Final = frozenset({ContactLaw.RESTITUTION.label, ContactLaw.LATCH.label})
"""Laws of contacts that cause impacts."""

_STRUCK: Final = frozenset({ContactLaw.STABILIZED.label, ContactLaw.BILATERAL.label})
"""Further laws of contacts that have impulses where others, or the impulses of the model, act."""


def contact_table(model: SystemDescription) -> tuple[ContactEntry, ...]:
    """Return the contacts of a model in the form that the runtime reads."""
    return tuple(
        ContactEntry(
            name=contact.name,
            law=contact.kind,
            level=contact.level,
            normal=-1 if contact.gap is None else contact.first_row,
            tangent=contact.first_row + (contact.gap is not None) if contact.slip else -1,
            directions=len(contact.slip),
            closed=contact.closed,
            paradox=contact.paradox,
            creeps=contact.friction is not None and contact.friction.creep is not None,
        )
        for contact in model.resolved_contacts
    )


def event_table(model: SystemDescription) -> tuple[EventEntry, ...]:
    """Return the events of a model in the form that the runtime reads, latches and impulses as indices.

    The kinks of feedback laws follow the events of the user; nothing but a new step happens there.
    """
    contacts = [contact.name for contact in model.resolved_contacts]
    impulses = list(model.impulses)
    switches = (EventEntry(name, 0, False, -1, (), (), False) for name in model.switches)
    events = (
        EventEntry(
            name=event.name,
            direction=event.direction,
            terminal=event.terminal,
            impulse=-1 if event.impulse is None else impulses.index(event.impulse),
            impose=tuple(map(contacts.index, event.impose)),
            remove=tuple(map(contacts.index, event.remove)),
            multipliers=any(map(is_multiplier, atoms((event.guard,)))),
        )
        for event in model.events
    )
    return (*events, *switches)


def needed_by_events(model: SystemDescription) -> tuple[str, ...]:
    """Return the functions that runs with contacts and events also need (kg_impulse.h, kg_hybrid.h).

    Impulses of events need the mass matrix and the constraints, states need their rates.
    """
    needed = mass_function(model), "J", "velocity_level"
    impulses = needed if any(event.impulse is not None for event in model.events) else ()
    switching = model.resolved_contacts or model.events or model.switches
    rates = ("state_rates",) if model.states and switching else ()
    return (*impulses, *rates)


def require_speeds(model: SystemDescription, form: str) -> None:
    """Raise BuildError for a momentum form if the model has parts that read the speeds: contacts, feedback laws ..."""
    kinds = {"contacts": model.resolved_contacts, "events": model.events, "impulses": model.impulses}
    kinds["inputs with laws"] = tuple(model.inputs[k].name for k in model.inputs_with_law)
    present = [kind for kind, items in kinds.items() if items]
    if present:
        raise BuildError(
            f"model {model.name!r} has {' and '.join(present)}, which form={form!r} does not support: its state "
            'contains momenta in place of speeds; use form="auto"'
        )


def add_contacts(f: Functions) -> None:
    """Add the functions of the model's contacts, events and impulses.

    Raises ModelError for a gap that does not depend on the motion and for a guard that is zero everywhere, and
    DerivationError for a contact whose force does not act at its contact point.
    """
    e, model = f.equations, f.equations.model
    _require_impacts(e)
    if model.resolved_contacts:
        contact_rows = e.once(rows_of_contacts)
        require_places(e.system, contact_rows)
        _add(f, "gaps", gap_nodes(contact_rows))
        f.add("contacts", _contacts(f, contact_rows), SUMMARIES["contacts"])
        values = [value for contact in model.resolved_contacts for value in contact.run_values()]
        if values:
            _add(f, "contact_values", e.simplified([e.system.lower(value.expression) for value in values]))
    if model.events or model.switches:
        _add(f, "events", e.simplified(guards(e.system)))
    if any(event.reset for event in model.events):
        f.add("resets", f.fragment().rows([e.simplified(row) for row in reset_rows(e.system)]), SUMMARIES["resets"])
    if model.impulses:
        rows = [e.simplified(row) for row in impulse_rows(e.system)]
        f.add("impulses", f.fragment().rows(rows), SUMMARIES["impulses"])


def _require_impacts(e: Equations) -> None:
    """Require an M with which the runtime can solve for contact forces and jumps of the speeds, by name."""
    model = e.model
    if model.resolved_contacts and e.asymmetry:
        raise BuildError(
            f"model {model.name!r} has contacts, whose forces follow from a symmetric matrix, but {e.asymmetry}: "
            "remove the contacts, or give the loads equal mutual factors"
        )
    reason = e.unsteady_factors(inputs=False) if model.impulses or model.resolved_contacts else None
    if reason:
        raise BuildError(
            f"the speeds of model {model.name!r} can jump, at impulses or impacts, but {reason}: the jump would depend "
            "on how the speeds change during it; expected factors of t, q, parameters and inputs"
        )
    _require_linear_rows(e)


def _require_linear_rows(e: Equations) -> None:
    """Require velocity constraints that are linear in the speeds where contacts have impulses, by name."""
    kinds = _IMPACTING | (_STRUCK if e.model.impulses else frozenset())
    struck = [contact.name for contact in e.model.resolved_contacts if contact.kind in kinds]
    for row in e.constraints.nonholonomic if struck else ():
        if not e.system.are_constant(row.J, e.system.u):
            raise BuildError(
                f"contact {struck[0]!r} of model {e.model.name!r} can have an impact, in which the constraint "
                f"{row.label}, nonlinear in the speeds, would not be satisfied: give the contact a compliant law, such "
                "as kg.KelvinVoigt"
            )


def reset_rows(system: System) -> list[list[Node]]:
    """Return the states after each event (n_events, n_s); those of kinks of feedback laws change nothing."""
    resets = (event.reset for event in system.model.events)
    of_events = [[system.lower(reset.get(symbol, symbol)) for symbol in system.model.states] for reset in resets]
    return [*of_events, *(list(system.s) for _ in system.model.switches)]


def _add(f: Functions, name: str, nodes: Sequence[Node]) -> None:
    f.add(name, f.fragment().output(nodes), SUMMARIES[name])


def gap_nodes(contact_rows: ContactRows) -> list[Node]:
    """Return the entries of ``gaps``, section by section."""
    of_rows = [getattr(row, name) for name in ("value", "rate", "target") for row in contact_rows.rows]
    names = ("load", "mu_s", "mu_k", "restitution", "creep")
    return of_rows + [getattr(values, name) for name in names for values in contact_rows.values]


def _contacts(f: Functions, contact_rows: ContactRows) -> Fragment:
    """Build ``contacts``, with a fallback for states in which the model's own partition is singular."""

    def made(columns: Callable[[Functions, Fragment, ContactRows], Columns]) -> Make:
        return lambda s: _sections(f, s, contact_rows, columns(f, s, contact_rows))

    fast, general = (_any_rank, None) if f.any_rank else (_reduced, _general if f.n_c else None)
    return f.guarded("contacts", SUMMARIES["contacts"], made(fast), None if general is None else made(general))


def _sections(f: Functions, s: Fragment, contact_rows: ContactRows, columns: Columns) -> Fragment:
    """Store the sections; ``columns``: the accelerations without contact forces, then the response to each row."""
    graph, rows = f.graph, contact_rows.rows
    a, responses = columns[0], columns[1:]
    lower = [forms.matrix_vector(graph, [row.W for row in rows[: i + 1]], x) for i, x in enumerate(responses)]
    D = [lower[max(i, j)][min(i, j)] for i in range(len(rows)) for j in range(len(rows))]
    free = [graph.sum([*(w * x for w, x in zip(row.W, a, strict=True)), row.remainder]) for row in rows]
    nodes = [*f.equations.qdot.nodes, *a, *flat(responses), *D, *free, *gap_nodes(contact_rows)]
    return s.output(nodes, title="contact rows")


def _free_force(f: Functions) -> list[Node]:
    """Return P without contact forces."""
    system = f.equations.system
    return substitute(f.equations.right_side, dict.fromkeys((*system.multipliers, *system.free), f.graph.zero))


def _reduced(f: Functions, s: Fragment, contact_rows: ContactRows) -> Columns:
    e, part = f.equations, f.equations.partition
    zeros = [f.graph.zero] * len(part.dependent)
    sides = [(_free_force(f), part.B_stabilized if f.stabilizable else part.B)]
    sides += [(list(row.W), tuple(zeros)) for row in contact_rows.rows]
    rights = [e.simplified(forms.reduced(f.graph, e.left_side, P, part, B).right) for P, B in sides]
    return reduced_columns(f, s, rights, [B for _, B in sides])


def _general(f: Functions, s: Fragment, contact_rows: ContactRows) -> Columns:
    """Solve the constraints and the momentum rows together, without a choice of dependent speeds."""
    e, rows = f.equations, contact_rows.rows
    right = [x for i, p in enumerate(_free_force(f)) for x in (p, *(row.W[i] for row in rows))]
    b = (e.b_stabilized if f.stabilizable else e.b).nodes
    right += [x for entry in b for x in (entry, *(f.graph.zero for _ in rows))]
    return bordered_columns(f, s, right, 1 + len(rows))


def _any_rank(f: Functions, s: Fragment, contact_rows: ContactRows) -> Columns:
    """Solve by generalized inverses, for constraints of any rank; one call of the kernel for each right side."""
    e = f.equations
    e.require_full_mass()
    b = (e.b_stabilized if f.stabilizable else e.b).nodes
    zeros = (f.graph.zero,) * f.n_c
    columns = []
    for k, (P, right) in enumerate([(_free_force(f), b), *((row.W, zeros) for row in contact_rows.rows)]):
        # The kernel overwrites its matrices with factors, so every call evaluates them again.
        names = {"P": f"P{k}", "b": f"b{k}", "udot": f"a{k}"}
        J, title = f.function("J"), f"right side {k}"
        solved = s.call("udwadia_kalaba", f.n_u, f.n_c, title=title, names=names, Q=f.mass, J=J, P=P, b=right)
        columns.append(solved["udot"])
    return columns
