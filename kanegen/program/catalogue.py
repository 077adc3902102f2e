"""The catalogue: one entry for every function of a model that a user can request.

A new quantity of the equations needs a property of :class:`~kanegen.derivation.equations.Equations` and an entry here.
``functions=`` of :func:`kanegen.build`, the attributes of a solver, ``kanegen show`` and the messages about missing
functions all read this table. What builds a function, if it is not the property of its name, is in
``kanegen/program/recipes.py``: a model from the cache needs the catalogue only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from kanegen.forms import FORMS
from kanegen.model.inputs import MULTIPLIER

VARIATION: Final = "variation"
"""y', and its change along a direction of (y, r, p)."""

NUMBERS: Final = ":numbers"
"""The end of the name of the function of y' and of the numbers that its changes along all directions share."""

ALONG: Final = ":along"
"""The end of the name of the function of the change of y' along a direction, from these numbers."""

ADJOINT: Final = "adjoint"
"""The gradient of the weighted sum of y' with respect to (y, r, p)."""

RATES: Final = "rates"
"""y', then a running cost."""

RATE_SLOPES: Final = "rate_slopes"
"""The gradient of the weighted sum of y' and a running cost, in one function."""

SECOND_SLOPES: Final = "second_slopes"
"""The change of y' and a running cost along a direction of (y, r, t), then the gradient of its weighted sum."""

TERMS: Final = "terms"
"""Values of expressions, then their derivatives with respect to (y, r, forces, p, t)."""

EVENT_CHANGES: Final = "event_changes"
"""The changes of the guards of events, and of the states after each of them, along a direction of (y, r, p, t)."""

RESIDUAL_CHANGES: Final = "residual_changes"
"""The changes of the residuals of the constraints along a direction of (y, r, p)."""

CONTACT_CHANGES: Final = "contact_changes"
"""What the modes of contacts depend on (`CONTACT_GUARDS`), then its changes along a direction of (y, r, p, t)."""

CONTACT_GUARDS: Final = ("gap", "normal force", "load", "slip velocity", "stick margin", "creep margin")
"""The values of each contact in `CONTACT_CHANGES`.

The slip velocity is the component along the direction of slip, the stick margin the largest friction force less the
friction force, the creep margin the slip velocity less that of creep.
"""

JUMP_CHANGES: Final = "jump_changes"
"""The speeds after an impact or an impulse and the impulses of the contact rows; then the changes of these speeds."""

ROW_MODES: Final = ("holds", "slips", "along", "rebounds", "keeps", "softness")
"""The numbers that give the mode of a contact row to a program of variations.

``holds``: 1 if the row has its target, and in an impact the speed that follows; ``slips``: 1 if it exerts the slip
force, or the force of a compliant law. ``along``: the component of the unit vector of slip; of a normal row the sign of
its force. ``rebounds`` and ``keeps``: 1 if the speed after an impact is that before times minus the restitution, or
that before itself. ``softness``: by which a row that holds yields to its multiplier, 0 unless contacts depend on each
other.
"""

SWITCH_CHANGES: Final = "switch_changes"
"""The changes of the functions of time and parameters at which the rates switch, along a direction of p."""

REACTION: Final = "reaction:"
"""The beginning of the names of the functions of reactions."""

CHANGE_OF: Final = "change:"
"""The beginning of the names of functions of the changes of quantities and outputs along a direction of (y, r, p)."""

LAW_SLOPES: Final = "law_slopes"
"""The values of all feedback laws, then their derivatives with respect to (y, r, forces, p, t)."""

CONTACT_FORCES: Final = "contact_forces"
"""The name of the multipliers of the contact rows among the quantities along motions, (n_rows,), N."""

CLOSED: Final = ":laws"
"""The end of the names of functions whose inputs with a continuous feedback law have the values of the law."""

SERVO: Final = ":servo"
"""The end of the names of functions whose controls have the values that enforce the servo-constraints."""

BARE: Final = ":bare"
"""The end of the names of functions without stabilization, for runs whose gains are zero."""

VARIATIONS: Final = (
    VARIATION, EVENT_CHANGES, RESIDUAL_CHANGES, CONTACT_CHANGES, JUMP_CHANGES, SWITCH_CHANGES, LAW_SLOPES,
)  # fmt: skip
"""The functions of the sensitivities of motions; they are in programs of their own, with further arguments."""


class OfExpressions(str):
    """The name of a function of expressions in the symbols of a model; its text identifies them.

    ``kind``: `ADJOINT`, `RATES`, `RATE_SLOPES`, `SECOND_SLOPES` or `TERMS`. ``end``: `CLOSED`, `SERVO`, `BARE` or
    empty.
    """

    kind: str
    end: str
    expressions: tuple[Any, ...]

    @classmethod
    def of(cls, kind: str, end: str, expressions: Iterable[Any], identity: str) -> OfExpressions:
        """The name of a function of ``expressions``, which ``identity`` tells from others."""
        name = cls(f"{kind}{end}:{identity}")
        name.kind, name.end, name.expressions = kind, end, tuple(expressions)
        return name


def is_variation(name: str) -> bool:
    """Whether a function is in a program of variations."""
    own = next((name.removesuffix(end) for end in (CLOSED, SERVO, BARE) if name.endswith(end)), name)
    known = own in VARIATIONS or name.startswith(CHANGE_OF)
    return known or isinstance(name, OfExpressions)


MOMENTUM_FORMS: Final = tuple(form.name for form in FORMS.values() if form.momenta)

CONTROLLED_RATES: Final = "rhs_controlled"
"""The right-hand side under control constraints, which every run of a model with them evaluates."""

CONTROL_GAINS: Final = "control_gains"
"""The gains of control constraints with decaying errors."""


@dataclass(frozen=True)
class Entry:
    """One entry of the catalogue: a function, or a family of functions, that the user can request.

    ``name``, ``summary``: the name in ``functions=``, and one line for the reader of the generated code.
    ``prefix``: of a family, functions ``<prefix><name>`` by the names that the user chose, such as ``output:speed``;
    ``summary`` contains ``{}`` for the name.
    ``derives``: finding the reason why a model does not have the function derives equations, so this is done only if
    the user names the function.
    ``group``: a name for several functions in ``functions=``.
    ``default``: the function is compiled unless the user names others; ``companions`` are compiled with it.
    ``forms``: the forms of the equations that have the function and always compile it; empty: all forms have it.
    ``shape``: names of the sizes of the result; () for a number.
    ``unit``: the coherent SI unit of all values of the result; empty if it depends on the model.
    ``attribute``: a solver has an attribute of this name, a function of (t, q, u, r=None, out=None).
    ``on_request``: only the user calls the function; no method of the solver, such as integrate, evaluates it.
    ``every_run``: any integration can evaluate the function.
    """

    name: str
    summary: str
    prefix: str = ""
    group: str = ""
    default: bool = False
    forms: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()
    shape: tuple[str, ...] = ()
    unit: str = ""
    attribute: bool = False
    on_request: bool = False
    every_run: bool = False
    derives: bool = False


def _quantity(name: str, shape: str, summary: str, **more: Any) -> Entry:
    """Entry of a solver attribute."""
    return Entry(name, summary, **{"shape": tuple(shape.split()), "attribute": True, "on_request": True, **more})


def _servo(name: str, shape: str, summary: str, **more: Any) -> Entry:
    return Entry(name, summary, group="servo", shape=tuple(shape.split()), **more)


def _level(name: str, summary: str) -> Entry:
    """Entry of a function for consistent states."""
    return Entry(name, summary, group="consistency", derives=True)


def _jacobians() -> Iterator[Entry]:
    """The entries ``jacobian_<argument>``, ``residuals_<argument>``, ``outputs_<argument>`` ..."""
    for kind, (what, arguments) in JACOBIANS.items():
        for argument in arguments:
            text = f"derivatives of {what} with respect to the {ARGUMENT_NAMES[argument]}"
            requested = (
                kind in ("outputs", "contacts")
                or argument == "p"
                or (kind == "jacobian" and argument in ("r", MULTIPLIER))
            )
            yield Entry(f"{kind}_{argument}", text, group="jacobians", on_request=requested, derives=True)


ARGUMENT_NAMES: Final = {
    "q": "coordinates", "u": "speeds", "s": "states", "r": "inputs", "p": "parameters", "t": "time",
    MULTIPLIER: "contact multipliers",
}  # fmt: skip
"""The arguments in which Jacobians are taken."""

_CONTACTS = "acceleration, value, rate, target of the contact rows, then load, mu_k of the contacts,"

JACOBIANS: Final = {
    "jacobian": ("q' and u'", ("q", "u", "s", "r", "p", "t", MULTIPLIER)),
    "residuals": ("the residuals", ("q", "u", "r")),
    "outputs": ("the outputs", ("q", "u", "s", "r", MULTIPLIER)),
    "laws": ("the feedback laws", ("q", "u", "s", "r", "p", "t")),
    "contacts": (_CONTACTS, ("q", "u", "s", "r", "t", MULTIPLIER)),
}
"""Kinds of Jacobians: what is differentiated, and in which arguments."""


_DEFAULT: Final = (
    Entry("rhs", "q' and u', then s' of a model with states", on_request=True),
    _quantity("state_rates", "n_s", "rates s' of the states", on_request=False),
    _quantity("T", "n_u n_u", "T of T u' = V: rows of the constraints, then momentum rows"),
    _quantity("V", "n_u", "V of T u' = V, with stabilization gains"),
    _quantity("Q", "n_u n_u", "kinetic-energy matrix", group="consistency"),
    _quantity("M", "n_u n_u", "matrix of the accelerations, Q - dF/du'"),
    _quantity("P", "n_u", "generalized active forces minus inertia forces at u' = 0"),
    _quantity("J", "n_c n_u", "constraint rows at acceleration level"),
    _quantity("b", "n_c", "right sides of J u' = b, with stabilization gains"),
    _quantity("A", "n_d n_i", "A of u_D' = A u_I' + B"),
    _quantity("B", "n_d", "B of u_D' = A u_I' + B, with stabilization gains"),
    _quantity("constraint_force", "n_u", "generalized constraint forces", group="forces"),
    _quantity("multipliers", "n_c", "multipliers of the constraint rows, Q u' = P + J^T lambda", group="forces"),
    _quantity("kinetic_energy", "", "kinetic energy", group="energies", unit="J"),
    _quantity("potential_energy", "", "potential energy", group="energies", unit="J"),
    _quantity("energy", "", "kinetic and potential energy", group="energies", unit="J"),
    _quantity("momentum", "n_u", "generalized momenta Q u + N"),
    _level("residuals", "residuals of the constraints: phi and invariants, then phi' and psi"),
    _level("displacements", "S of dq = S w: columns of C in q' = C u + D, then gradients of the invariants"),
    _level("position_level", "[phi_q S, phi] of the constraints at position level, invariants last"),
    _level("velocity_level", "[psi_u, psi] of the constraints at velocity level, phi' first"),
    Entry("outputs", "output {}", prefix="output:", on_request=True),
    Entry("reactions", "reaction {}: force, torque", prefix=REACTION, on_request=True),
    _quantity("old_speeds", "n_u", "generalized speeds before the change of speeds"),
    _quantity("new_speeds", "n_u", "generalized speeds from those before the change (argument u)"),
    _servo("control", "n_tau", "controls tau that enforce the servo-constraints", companions=("servo_gains",)),
    _servo("servo_matrix", "n_psi n_tau", "S of S tau = z"),
    _servo("servo_right_side", "n_psi", "z of S tau = z"),
    _servo("servo_residuals", "", "psi of the servo-constraints, then psi' of the holonomic ones"),
    _servo("servo_gains", "n_psi 2", "Theta1, Theta2 of holonomic servo-constraints, Theta, 0 of nonholonomic ones"),
    _servo(
        "feasibility",
        "4",
        "rank of the equations of the controls, residual, smallest singular value, 1 if a solution exists",
    ),
    Entry("laws", "inputs with a feedback law", every_run=True),
    Entry("law_limits", "limits of the feedback laws"),
    Entry("unlimited_laws", "inputs with a feedback law, without dead bands and saturation"),
    Entry("control_forces", "generalized forces of unit controls, a row for each", derives=True),
    Entry("kinematics", "[C D c] of q' = C u + D and q'' = C u' + c", derives=True),
)

_ON_REQUEST: Final = (
    _quantity("A1", "n_d n_u", "A1 = [-A I]"),
    _quantity("A2", "n_i n_u", "A2 = [I A^T]"),
    _quantity("N", "n_u", "momenta at u = 0"),
    _quantity("L", "n_u", "inertia forces at u' = 0"),
    _quantity("qdot", "n_q", "rates q' of the coordinates", attribute=False),
    _quantity("F", "n_u", "generalized active forces"),
    _quantity("linear_momentum", "3", "sum m v of all bodies, in the inertial frame", unit="N s"),
    _quantity("Dm", "n_u n_u", "matrix of the velocity form Q u' + Dm u = e, Q' = Dm + Dm^T"),
    _quantity("e", "n_u", "right side of the velocity form Q u' + Dm u = e"),
    Entry("rank", "number of independent constraint rows", on_request=True),
    _quantity(
        "acceleration_parts",
        "4 n_u",
        "u' and w' = (Q^1/2 u)': constraint-enforcing part, momentum-balance part, for each",
        attribute=False,
    ),
    Entry("integrals", "[I_u | I] of the integral {}", prefix="integral:", every_run=True),
    Entry("output_motions", "[y_q S, y, y', y'' at u' = 0] of the output y = {}", prefix="motion:"),
    Entry(
        "underactuation",
        "[R c] of R u' = c: equations of motion in the directions without control forces",
        derives=True,
    ),
    *_jacobians(),
)

_OF_FORMS: Final = (
    Entry("speeds_from_momentum", "speeds u of the momenta", forms=MOMENTUM_FORMS, every_run=True),
    Entry("momentum_rhs", "q' and mom' of the momenta", forms=MOMENTUM_FORMS, every_run=True),
    _quantity("reduced_momentum", "n_i", "momenta A2 (Q u + N)", forms=("momentum",), on_request=False, derives=True),
    _quantity("hamiltonian", "", "H = K2 - K0 + V", forms=("hamilton",), unit="J"),
    _quantity("jacobi_integral", "", "h = sum q' K_q' - K + V", forms=("hamilton",), unit="J"),
)

CATALOGUE: Final[Mapping[str, Entry]] = MappingProxyType(
    {entry.name: entry for entry in (*(replace(e, default=True) for e in _DEFAULT), *_ON_REQUEST, *_OF_FORMS)}
)
"""Every function by name, in the order of the generated code."""

DEFAULT_FUNCTIONS: Final = tuple(entry.name for entry in _DEFAULT)
"""The functions that :func:`kanegen.build` compiles by default."""

EXTRA_FUNCTIONS: Final = tuple(entry.name for entry in _ON_REQUEST)
"""The functions that are compiled on request only."""

ATTRIBUTES: Final = tuple(entry.name for entry in CATALOGUE.values() if entry.attribute)
"""Functions of (t, q, u, r=None, out=None) that are attributes of a solver."""


def group(name: str) -> tuple[str, ...]:
    """Return the functions of a group, or the one function of this name; () for an unknown name."""
    return tuple(entry.name for entry in CATALOGUE.values() if name in (entry.group, entry.name))


def spec_of(function: str) -> Entry | None:
    """Return the entry of a compiled function, also of a member such as ``output:speed``; None if it has no entry."""
    prefix, colon, _ = function.partition(":")
    if colon:
        return next((entry for entry in CATALOGUE.values() if entry.prefix == prefix + colon), None)
    return CATALOGUE.get("rhs" if function == "rhs_stabilized" else function)
