"""Functions for the Jacobians of the right-hand side, of the constraints' residuals and of the outputs.

If the model has stabilization gains, the Jacobian is that of the stabilized right-hand side; gains of zero give the
Jacobian without stabilization. See :mod:`kanegen.derivation.sensitivities` for the equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from kanegen.derivation import forms
from kanegen.derivation.equations import Quantity
from kanegen.derivation.sensitivities import Rows
from kanegen.graph import Node, substitute
from kanegen.program.builder import Fragment, Functions, flat, mass_function
from kanegen.program.catalogue import ARGUMENT_NAMES
from kanegen.program.functions.consistency import without
from kanegen.program.functions.feedback import no_laws
from kanegen.program.functions.right_sides import bordered_columns, reduced_columns


def _columns(f: Functions, argument: str) -> int:
    return len(f.sensitivities.inputs(argument))


# -- what the model must have -------------------------------------------------------------------------------------


def _nothing_to_vary(f: Functions, argument: str) -> str | None:
    return None if _columns(f, argument) else f"it has no {ARGUMENT_NAMES[argument]}"


def _undetermined(f: Functions) -> str | None:
    if f.equations.has_partition or (f.any_rank and f.n_c):
        return None
    return 'its constraints are redundant: use form="pseudoinverse" or "canonical"'


def _no_rates(f: Functions, argument: str) -> str | None:
    return _undetermined(f) or _nothing_to_vary(f, argument)


def _no_residuals(f: Functions, argument: str) -> str | None:
    return without("position", "velocity")(f) or _nothing_to_vary(f, argument)


def _no_outputs(f: Functions, argument: str) -> str | None:
    if not any(output.nodes for output in f.equations.outputs.values()):
        return "it has no outputs"
    return (_undetermined(f) if _outputs_accelerate(f) else None) or _nothing_to_vary(f, argument)


def _no_contacts(f: Functions, argument: str) -> str | None:
    if not f.equations.model.resolved_contacts:
        return "it has no contacts"
    return _undetermined(f) or _nothing_to_vary(f, argument)


def _outputs_accelerate(f: Functions) -> bool:
    """Return whether an output contains u'."""
    return any(not slope.is_zero for row in f.sensitivities.outputs_in_accelerations for slope in row)


def _no_laws(f: Functions, argument: str) -> str | None:
    return no_laws(f) or _nothing_to_vary(f, argument)


# -- the functions ------------------------------------------------------------------------------------------------


def _residuals(f: Functions, argument: str) -> Fragment:
    slopes = f.sensitivities.residuals(argument)
    return f.fragment().output(slopes.nodes, slopes.shape)


def _laws(f: Functions, argument: str) -> Fragment:
    slopes = f.sensitivities.laws(argument)
    return f.fragment().output(slopes.nodes, slopes.shape[:1] if argument == "t" else slopes.shape)


def _outputs(f: Functions, argument: str) -> Fragment:
    """Build the derivatives of the outputs, including those through u'."""
    slopes = f.sensitivities.outputs(argument)
    if not _outputs_accelerate(f):
        return f.fragment().output(slopes.nodes, slopes.shape)
    return _with_accelerations(f, slopes, f.sensitivities.outputs_in_accelerations, argument)


def _contacts(f: Functions, argument: str) -> Fragment:
    """Build the derivatives of the contact rows, including those through u', at given multipliers."""
    slopes = f.sensitivities.contacts(argument)
    return _with_accelerations(f, slopes, f.sensitivities.contacts_in_accelerations, argument)


def _with_accelerations(f: Functions, slopes: Quantity, through: Rows, argument: str) -> Fragment:
    """Build derivatives of values that also depend on u' (:func:`_chain_rule`)."""
    s, m, rates = f.fragment(), _columns(f, argument), f.function(f"jacobian_{argument}")
    udot = f.accelerations(s)
    changes = s.invoke(rates, "X", (f.n_q + f.n_u + f.n_s) * m)[f.n_q * m : (f.n_q + f.n_u) * m]
    nodes = _chain_rule(f, slopes, through, changes)
    return s.output(substitute(nodes, dict(zip(f.equations.system.udot, udot, strict=True))), slopes.shape)


def _chain_rule(f: Functions, slopes: Quantity, through: Rows, changes: Sequence[Node]) -> list[Node]:
    """Return the derivatives of values that also depend on u', row-major.

    ``slopes`` (n, m): derivatives at given accelerations; ``through`` (n, n_u): derivatives with respect to u';
    ``changes`` (n_u, m): derivatives of u', row-major.
    """
    m, nodes = slopes.shape[1], []
    for i, row in enumerate(through):
        for k in range(m):
            terms = [slope * changes[r * m + k] for r, slope in enumerate(row) if not slope.is_zero]
            nodes.append(f.graph.sum([slopes.nodes[i * m + k], *terms]))
    return nodes


def _rates(f: Functions, argument: str) -> Fragment:
    """Build the derivatives of q' and u'; all columns share one factorization of the reduced or bordered matrix."""
    fast, general = _reduced, _general if f.n_c or f.equations.model.is_accelerated else None
    if (f.any_rank and f.n_c) or not f.equations.is_symmetric:
        fast, general = _general, None
    return f.guarded(
        f"jacobian_{argument}",
        f"derivatives of q' and u' with respect to the {ARGUMENT_NAMES[argument]}, from the bordered system",
        partial(fast, f, argument),
        None if general is None else partial(general, f, argument),
    )


def _reduced(f: Functions, argument: str, s: Fragment) -> Fragment:
    D1, D2 = _loaded(f, s, argument)
    columns = reduced_columns(f, s, *f.sensitivities.reduced(D1, D2))
    title = f"derivatives with respect to the {ARGUMENT_NAMES[argument]}"
    return _finished(f, s, argument, list(zip(*columns, strict=True)), title)


def _general(f: Functions, argument: str, s: Fragment) -> Fragment:
    """Solve for the derivatives of u' and of the multipliers together, without a choice of dependent speeds."""
    right = [-x for part in _loaded(f, s, argument) for row in part for x in row]
    columns = bordered_columns(f, s, right, _columns(f, argument))
    return _finished(f, s, argument, list(zip(*columns, strict=True)))


def _finished(f: Functions, s: Fragment, argument: str, rows: forms.Matrix, title: str = "") -> Fragment:
    """Store the derivatives of q', then those of u', ``rows`` (n_u, m), and those of s'."""
    count, changes = f.n_q + f.n_u + f.n_s, flat(rows)
    shape = (count,) if argument == "t" else (count, _columns(f, argument))
    own = f.sensitivities.state_rates(argument)
    of_states = _chain_rule(f, own, f.sensitivities.state_rates_in_accelerations, changes) if f.n_s else []
    nodes = [*f.sensitivities.rates(argument).nodes, *changes, *f.accelerated(s, of_states)]
    return s.output(nodes, shape, title)


def _loaded(f: Functions, s: Fragment, argument: str) -> tuple[forms.Matrix, forms.Matrix]:
    """Return the derivatives of the momentum rows (n_u, m) and of the constraints (n_c, m), from the array ``D``."""
    balance = f.sensitivities.balance(argument)
    mass, name = mass_function(f.equations.model), ARGUMENT_NAMES[argument]
    summary = f"derivatives of {mass} u' - P - J^T lambda and J u' - b in the {name} at fixed u' and lambda"
    s.invoke(f.internal(f"balance_{argument}", summary, lambda: _balance(f, balance)), "D", len(balance.nodes))
    rows = f.loaded("D", balance)
    return rows[: f.n_u], rows[f.n_u :]


def _balance(f: Functions, slopes: Quantity) -> Fragment:
    """Build the derivatives of ``M u' - P - J^T lambda`` and ``J u' - b`` at the solved u' and multipliers."""
    s = f.fragment()
    held = dict(zip(f.equations.system.udot, f.accelerations(s), strict=True))
    f.multipliers(s, held)
    return s.output(substitute(slopes.nodes, held), slopes.shape, "derivatives")


KINDS: Final = {
    "jacobian": (_rates, _no_rates),
    "residuals": (_residuals, _no_residuals),
    "outputs": (_outputs, _no_outputs),
    "laws": (_laws, _no_laws),
    "contacts": (_contacts, _no_contacts),
}
"""What builds the Jacobians of each kind in one argument, and the reason why a model does not have them."""
