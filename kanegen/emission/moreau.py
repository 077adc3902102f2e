"""Steps of models with contacts: what the time stepping of kg_moreau.h needs, costs, and cannot do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kanegen.codegen.description import Description
from kanegen.codes import ContactLaw, Paradox
from kanegen.emission.interface import Evaluation, Interface
from kanegen.emission.methods import MOREAU_JEAN, STEP_METHODS
from kanegen.program.records import ContactEntry

STATE_RATES: Final = "state_rates"

_TWO_SIDED: Final = (ContactLaw.BILATERAL.label, ContactLaw.LATCH.label)
_GIVEN: Final = (ContactLaw.COMPLIANT.label, ContactLaw.LOAD.label)
_RIGID: Final = ContactLaw.RESTITUTION.label


def moreau_problems(description: Description) -> list[str]:
    """What time stepping cannot do of a model, in its names; empty if it can do everything."""
    contacts = description.contacts.table
    problems = [] if contacts else [f"{MOREAU_JEAN} is for models with contacts, and it has none"]
    if description.events:
        names = ", ".join(event.name for event in description.events)
        problems.append(f"it has the events {names}, whose instants no step of fixed size locates")
    creeping = [contact.name for contact in contacts if contact.creeps]
    if creeping:
        problems.append(
            f"the friction of {', '.join(creeping)} has a creep velocity, which stands for sticking; time stepping has "
            "sticking itself: leave out creep="
        )
    compliant = [contact.name for contact in contacts if contact.paradox == Paradox.REGULARIZE]
    if compliant:
        problems.append(
            f"{', '.join(compliant)} has paradox={Paradox.REGULARIZE.label!r}, which makes a rigid contact compliant "
            f"in some states only: give paradox={Paradox.IMPACT.label!r}, or a compliant law"
        )
    return problems


@dataclass(frozen=True)
class TimeStepping:
    """The contacts of a step: ``iterations`` of each solution for their impulses, and functions of the model by name.

    ``rows``: labels of the contact rows.
    """

    contacts: tuple[ContactEntry, ...]
    rows: tuple[str, ...]
    iterations: int
    n_q: int
    n_u: int
    n_s: int
    functions: dict[str, Evaluation]

    @classmethod
    def of(cls, iterations: int, ui: Interface, description: Description) -> TimeStepping:
        """The contacts of a model; its functions have those of the method."""
        wanted = (*STEP_METHODS[MOREAU_JEAN].functions, STATE_RATES)
        functions = {name: found for name in wanted if (found := ui.evaluation(name)) is not None}
        sizes = len(ui.coordinates), len(ui.speeds), len(ui.states)
        labels = description.contacts
        return cls(labels.table, labels.rows, iterations, *sizes, functions)

    @property
    def memory(self) -> int:
        """KG_MOREAU_WORK of kg_moreau.h."""
        k, m = len(self.rows), len(self.contacts)
        return 3 * self.n_q + 4 * self.n_u + 2 * self.n_s + k * (self.n_u + k + 14) + 17 * m

    @property
    def evaluations(self) -> int:
        """Operations of the functions of the model in a step: each is evaluated twice."""
        return 2 * sum(function.operations for function in self.functions.values())

    @property
    def operations(self) -> int:
        """Operations of a step."""
        return self.evaluations + self.own_operations

    @property
    def own_operations(self) -> int:
        """Operations of kg_moreau_step() without those of the functions."""
        n, q, u, s = len(self.rows), self.n_q, self.n_u, self.n_s
        normals = sum(contact.normal >= 0 for contact in self.contacts)
        rows = n + 2 + sum(_row_operations(contact, n) for contact in self.contacts)
        start = len(self.contacts) + normals + n * (2 * n + 5) + 3
        sweep = sum(_sweep_operations(contact, n) for contact in self.contacts)
        limit = n * (2 * n + 10) + 5
        respond = n * (1 + 2 * u)
        solution = 4 * u + rows + start + self.iterations * sweep + limit + 2 * u * normals + respond
        kept = sum(_correction_operations(contact, n) for contact in self.contacts)
        correction = n * (2 * n + 7) + self.iterations * kept
        ends = 7 + 5 * q + 3 * s + (1 + normals + n) + 3 * s + (1 + respond) + 3 * q + 3 * u
        return 2 * solution + correction + ends

    @property
    def cost(self) -> str:
        """A sentence on the operations of a step."""
        calls = ", ".join(f"{name} ({function.operations})" for name, function in self.functions.items())
        return (
            f"two evaluations each of {calls}, and {self.own_operations} operations for two solutions of the contact "
            f"problem, with {len(self.rows)} rows and {self.iterations} iterations each"
        )


def _row_operations(contact: ContactEntry, n: int) -> int:
    """Operations that set up the rows of a contact (kg_moreau_rows)."""
    slip = 6 * contact.directions + (22 if contact.directions == 2 else 0)
    if contact.normal < 0:
        return slip + 3
    if contact.law == _RIGID:
        return slip + 2 * n + 15
    stabilized = contact.law == ContactLaw.STABILIZED.label
    return slip + 2 * n + (5 if stabilized else 9 if contact.law in _GIVEN else 6)


def _sweep_operations(contact: ContactEntry, n: int) -> int:
    """Operations of one iteration for a contact (kg_moreau_sweep)."""
    normal = 0 if contact.normal < 0 else 2 * n + 5 + (contact.law not in _TWO_SIDED)
    return normal + (0, 2 * n + 9, 4 * n + 29)[contact.directions]


def _correction_operations(contact: ContactEntry, n: int) -> int:
    """Operations of one iteration for the penetration of a contact (kg_moreau_correct)."""
    two_sided = contact.law in _TWO_SIDED
    kept = contact.normal >= 0 and contact.level == 2 and (two_sided or contact.law == _RIGID)
    return (2 * n + 3 + (not two_sided)) if kept else 0
