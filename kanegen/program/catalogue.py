"""The catalogue: one entry for every function of a model that a user can request.

A new quantity of the equations needs a property of :class:`~kanegen.derivation.equations.Equations` and an entry here.
``functions=`` of :func:`kanegen.build`, the attributes of a solver, ``kanegen show`` and the messages about missing
functions all read this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from kanegen.forms import FORMS
from kanegen.program.builder import Functions, FunctionSpec, Maker, Members, Reason
from kanegen.program.functions import consistency, controls, feedback, momentum_form, quantities, servo
from kanegen.program.functions.consistency import (
    displacements,
    integrals,
    output_motions,
    position_level,
    residuals,
    velocity_level,
)
from kanegen.program.functions.jacobians import jacobian_specs
from kanegen.program.functions.momentum_form import momenta_quantity
from kanegen.program.functions.quantities import T, V, multipliers, part_of, plain

MOMENTUM_FORMS: Final = tuple(form.name for form in FORMS.values() if form.momenta)


def _unsplit(f: Functions) -> str | None:
    advice = "Give potential_energy= or bodies= to kanegen.Model (a Lagrangian does not tell K from V)"
    return f"its kinetic energy is unknown. {advice}" if f.equations.model.is_unsplit else None


def _no_potential(f: Functions) -> str | None:
    advice = "Give potential_energy= or gravity= to kanegen.Model (loads are never interpreted as weights)"
    reason = None if f.equations.model.has_potential else f"it has no potential energy. {advice}"
    return _unsplit(f) or reason


def _no_hamiltonian(f: Functions) -> str | None:
    return None if f.equations.model.is_unsplit else _no_potential(f)


def _no_bodies(f: Functions) -> str | None:
    return None if f.equations.bodies else "it has a Lagrangian without bodies. Give bodies= to kanegen.Model"


def _no_partition(f: Functions) -> str | None:
    if f.equations.has_partition:
        return None
    return (
        "its constraints are redundant, so that no choice of dependent speeds solves them; rhs, constraint_force, "
        "multipliers and rank are available"
    )


def _nothing_free(f: Functions) -> str | None:
    reason = _no_partition(f)
    return reason or (None if f.equations.partition.independent else "the constraints determine all its speeds")


def _not_accelerated(f: Functions) -> str | None:
    return None if f.equations.model.is_accelerated else "no load depends on accelerations, so that M is Q"


def _no_speed_change(f: Functions) -> str | None:
    return None if f.equations.model.speed_change is not None else "it was not created by Model.with_speeds"


def _no_states(f: Functions) -> str | None:
    return None if f.n_s else "it has no states (states= of kanegen.Model)"


def _quantity(
    name: str, shape: str, summary: str, make: Maker | None = None, requires: Reason = lambda f: None, **more: Any
) -> FunctionSpec:
    """Entry of a solver attribute; without ``make`` it evaluates the property ``name`` of the equations."""
    more = {"shape": tuple(shape.split()), "attribute": True, "on_request": True, **more}
    return FunctionSpec(name, summary, make or plain(name), requires=requires, **more)


def _servo(name: str, shape: str, summary: str, make: Maker, **more: Any) -> FunctionSpec:
    return FunctionSpec(name, summary, make, requires=servo.no_servo, group="servo", shape=tuple(shape.split()), **more)


def _level(make: Maker, summary: str, *levels: str) -> FunctionSpec:
    """Entry of a function for consistent states; the model must have constraints at one of ``levels``."""
    requires = consistency.without(*levels)
    return FunctionSpec(make.__name__, summary, make, requires=requires, group="consistency", derives=True)


def _plant(make: Maker, summary: str, requires: Reason = controls.no_path_controls) -> FunctionSpec:
    return FunctionSpec(make.__name__, summary, make, requires=requires, derives=True)


def _members(members: Members, prefix: str, summary: str, **more: Any) -> FunctionSpec:
    """Entry of a family of functions with names that the user chose; ``{}`` in the summary is the name."""
    return FunctionSpec(members.__name__, summary, members=members, prefix=prefix, **more)


def _of_form(name: str, shape: str, summary: str, *forms: str, **more: Any) -> FunctionSpec:
    """Entry of a quantity of the momenta that is always compiled with these forms."""
    more = {"make": momenta_quantity(name), "requires": _no_hamiltonian, **more}
    return _quantity(name, shape, summary, forms=forms, **more)


_TESTED: Final = ("servo_gains",)
"""Functions that the solver evaluates to check new parameters."""

_DEFAULT: Final = (
    FunctionSpec("rhs", "q' and u', then s' of a model with states", on_request=True),
    _quantity("state_rates", "n_s", "rates s' of the states", quantities.state_rates, _no_states, on_request=False),
    _quantity("T", "n_u n_u", "T of T u' = V: rows of the constraints, then momentum rows", T, _no_partition),
    _quantity("V", "n_u", "V of T u' = V, with stabilization gains", V, _no_partition),
    _quantity("Q", "n_u n_u", "kinetic-energy matrix", group="consistency"),
    _quantity("M", "n_u n_u", "matrix of the accelerations, Q - dF/du'", requires=_not_accelerated),
    _quantity("P", "n_u", "generalized active forces minus inertia forces at u' = 0"),
    _quantity("J", "n_c n_u", "constraint rows at acceleration level"),
    _quantity("b", "n_c", "right sides of J u' = b, with stabilization gains", plain("b_stabilized")),
    _quantity("A", "n_d n_i", "A of u_D' = A u_I' + B", part_of("A"), _nothing_free),
    _quantity("B", "n_d", "B of u_D' = A u_I' + B, with stabilization gains", part_of("B_stabilized"), _no_partition),
    _quantity("constraint_force", "n_u", "generalized constraint forces", quantities.constraint_force, group="forces"),
    _quantity(
        "multipliers", "n_c", "multipliers of the constraint rows, Q u' = P + J^T lambda", multipliers, group="forces"
    ),
    _quantity("kinetic_energy", "", "kinetic energy", group="energies", unit="J", requires=_unsplit),
    _quantity("potential_energy", "", "potential energy", group="energies", unit="J", requires=_no_potential),
    _quantity("energy", "", "kinetic and potential energy", group="energies", unit="J", requires=_no_potential),
    _quantity("momentum", "n_u", "generalized momenta Q u + N"),
    _level(residuals, "residuals of the constraints: phi and invariants, then phi' and psi", "position", "velocity"),
    _level(displacements, "S of dq = S w: columns of C in q' = C u + D, then gradients of the invariants", "position"),
    _level(position_level, "[phi_q S, phi] of the constraints at position level, invariants last", "position"),
    _level(velocity_level, "[psi_u, psi] of the constraints at velocity level, phi' first", "velocity"),
    _members(quantities.outputs, "output:", "output {}", on_request=True),
    _members(quantities.reactions, "reaction:", "reaction {}: force, torque", on_request=True),
    _quantity("old_speeds", "n_u", "generalized speeds before the change of speeds", requires=_no_speed_change),
    _quantity(
        "new_speeds", "n_u", "generalized speeds from those before the change (argument u)", requires=_no_speed_change
    ),
    _servo("control", "n_tau", "controls tau that enforce the servo-constraints", servo.control, companions=_TESTED),
    _servo("servo_matrix", "n_psi n_tau", "S of S tau = z", servo.system_part("servo_matrix")),
    _servo("servo_right_side", "n_psi", "z of S tau = z", servo.system_part("servo_right_side")),
    _servo("servo_residuals", "", "psi of the servo-constraints, then psi' of the holonomic ones", servo.residuals),
    _servo(
        "servo_gains",
        "n_psi 2",
        "Theta1, Theta2 of holonomic servo-constraints, Theta, 0 of nonholonomic ones",
        servo.gains,
    ),
    _servo(
        "feasibility",
        "4",
        "rank of the equations of the controls, residual, smallest singular value, 1 if a solution exists",
        servo.feasibility,
    ),
    FunctionSpec("laws", "inputs with a feedback law", feedback.laws, requires=feedback.no_laws, every_run=True),
    FunctionSpec("law_limits", "limits of the feedback laws", feedback.law_limits, requires=feedback.no_limits),
    FunctionSpec(
        "unlimited_laws",
        "inputs with a feedback law, without dead bands and saturation",
        feedback.unlimited_laws,
        requires=feedback.no_limits,
    ),
    _plant(controls.control_forces, "generalized forces of unit controls, a row for each"),
    _plant(controls.kinematics, "[C D c] of q' = C u + D and q'' = C u' + c"),
)

_ON_REQUEST: Final = (
    _quantity("A1", "n_d n_u", "A1 = [-A I]", part_of("A1"), _no_partition),
    _quantity("A2", "n_i n_u", "A2 = [I A^T]", part_of("A2"), _no_partition),
    _quantity("N", "n_u", "momenta at u = 0"),
    _quantity("L", "n_u", "inertia forces at u' = 0"),
    _quantity("qdot", "n_q", "rates q' of the coordinates", attribute=False),
    _quantity("F", "n_u", "generalized active forces"),
    _quantity("linear_momentum", "3", "sum m v of all bodies, in the inertial frame", unit="N s", requires=_no_bodies),
    _quantity("Dm", "n_u n_u", "matrix of the velocity form Q u' + Dm u = e, Q' = Dm + Dm^T", momenta_quantity("Dm")),
    _quantity("e", "n_u", "right side of the velocity form Q u' + Dm u = e", momenta_quantity("e")),
    FunctionSpec(
        "rank",
        "number of independent constraint rows",
        quantities.rank,
        requires=lambda f: f.equations.asymmetry,
        on_request=True,
    ),
    _quantity(
        "acceleration_parts",
        "4 n_u",
        "u' and w' = (Q^1/2 u)': constraint-enforcing part, momentum-balance part, for each",
        quantities.acceleration_parts,
        lambda f: f.equations.asymmetry or f.equations.unsteady_factors(inputs=True),
        attribute=False,
    ),
    _members(integrals, "integral:", "[I_u | I] of the integral {}", every_run=True),
    _members(output_motions, "motion:", "[y_q S, y, y', y'' at u' = 0] of the output y = {}"),
    _plant(
        controls.underactuation,
        "[R c] of R u' = c: equations of motion in the directions without control forces",
        controls.fully_actuated,
    ),
    *jacobian_specs(),
)

_REDUCED: Final = {"make": momentum_form.reduced_momentum, "requires": momentum_form.no_reduced_momentum}
_OF_FORMS: Final = (
    FunctionSpec("speeds_from_momentum", "speeds u of the momenta", forms=MOMENTUM_FORMS, every_run=True),
    FunctionSpec("momentum_rhs", "q' and mom' of the momenta", forms=MOMENTUM_FORMS, every_run=True),
    _of_form("reduced_momentum", "n_i", "momenta A2 (Q u + N)", "momentum", **_REDUCED, on_request=False, derives=True),
    _of_form("hamiltonian", "", "H = K2 - K0 + V", "hamilton", unit="J"),
    _of_form("jacobi_integral", "", "h = sum q' K_q' - K + V", "hamilton", unit="J"),
)

CATALOGUE: Final[Mapping[str, FunctionSpec]] = MappingProxyType(
    {spec.name: spec for spec in (*(replace(spec, default=True) for spec in _DEFAULT), *_ON_REQUEST, *_OF_FORMS)}
)
"""Every function by name, in the order of the generated code."""

DEFAULT_FUNCTIONS: Final = tuple(spec.name for spec in _DEFAULT)
"""The functions that :func:`kanegen.build` compiles by default."""

EXTRA_FUNCTIONS: Final = tuple(spec.name for spec in _ON_REQUEST)
"""The functions that are compiled on request only."""

ATTRIBUTES: Final = tuple(spec.name for spec in CATALOGUE.values() if spec.attribute)
"""Functions of (t, q, u, r=None, out=None) that are attributes of a solver."""


def group(name: str) -> tuple[str, ...]:
    """Return the functions of a group, or the one function of this name; () for an unknown name."""
    return tuple(spec.name for spec in CATALOGUE.values() if name in (spec.group, spec.name))


def spec_of(function: str) -> FunctionSpec | None:
    """Return the entry of a compiled function, also of a member such as ``output:speed``; None if it has no entry."""
    prefix, colon, _ = function.partition(":")
    if colon:
        return next((spec for spec in CATALOGUE.values() if spec.prefix == prefix + colon), None)
    return CATALOGUE.get("rhs" if function == "rhs_stabilized" else function)


def reason_against(f: Functions, spec: FunctionSpec, form: str) -> str | None:
    """Return the reason why the model does not have this function in this form, or None."""
    if not spec.forms or form in spec.forms:
        return spec.requires(f)
    of_model = None if spec.derives else spec.requires(f)
    forms = " or ".join(f"form={name!r}" for name in spec.forms)
    return of_model or f"it was built in {form} form; build with {forms}"
