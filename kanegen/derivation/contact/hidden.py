"""Hidden inputs: values of the array ``r`` behind the user's inputs, which the runtime fills."""

from __future__ import annotations

from typing import Any

import sympy

from kanegen.model import Model, Multiplier
from kanegen.model.contact.records import contacts_of, first_rows
from kanegen.model.control.servo import free_names


def hidden_names(model: Model) -> tuple[str, ...]:
    """Names of the hidden inputs, in their order behind the inputs of the model.

    Multipliers of the contact rows, then the free vector of the servo-constraints.
    """
    rows = (f"multiplier of {name}" for contact in contacts_of(model) for name in contact.row_names)
    return (*rows, *free_names(model))


def hidden_symbols(model: Model) -> tuple[Any, ...]:
    """What displayed equations show for the hidden inputs: ``Multiplier`` symbols, and the names of free vectors."""
    return (*multiplier_symbols(model), *map(sympy.Symbol, free_names(model)))


def multiplier_symbols(model: Model) -> dict[Any, int]:
    """The symbol of each contact multiplier, with its index among the hidden inputs."""
    contacts = contacts_of(model)
    return {
        Multiplier(contact.name, k): first + k
        for contact, first in zip(contacts, first_rows(contacts), strict=True)
        for k in range(contact.n_rows)
    }
