"""The recipes of the catalogue: what builds each function, and why a model may not have it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from kanegen.derivation.equations import Equations
from kanegen.program.builder import Functions, FunctionSpec, Maker, Reason
from kanegen.program.catalogue import CATALOGUE, JACOBIANS
from kanegen.program.functions import consistency, controls, feedback, jacobians, momentum_form, quantities, servo
from kanegen.program.functions.momentum_form import momenta_quantity
from kanegen.program.functions.quantities import part_of, plain


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


def _made(make: Maker, requires: Reason = lambda f: None) -> dict[str, Any]:
    return {"make": make, "requires": requires}


_LACKING: Final[Mapping[str, Reason]] = {
    "M": _not_accelerated,
    "kinetic_energy": _unsplit,
    "potential_energy": _no_potential,
    "energy": _no_potential,
    "linear_momentum": _no_bodies,
    "old_speeds": _no_speed_change,
    "new_speeds": _no_speed_change,
}
"""Properties of the equations that not every model has, and the reason."""

_MADE: Final[Mapping[str, Mapping[str, Any]]] = {
    "state_rates": _made(quantities.state_rates, _no_states),
    "T": _made(quantities.T, _no_partition),
    "V": _made(quantities.V, _no_partition),
    "b": _made(plain("b_stabilized")),
    "A": _made(part_of("A"), _nothing_free),
    "B": _made(part_of("B_stabilized"), _no_partition),
    "A1": _made(part_of("A1"), _no_partition),
    "A2": _made(part_of("A2"), _no_partition),
    "constraint_force": _made(quantities.constraint_force),
    "multipliers": _made(quantities.multipliers),
    "rank": _made(quantities.rank, lambda f: f.equations.asymmetry),
    "acceleration_parts": _made(
        quantities.acceleration_parts, lambda f: f.equations.asymmetry or f.equations.unsteady_factors(inputs=True)
    ),
    "residuals": _made(consistency.residuals, consistency.without("position", "velocity")),
    "displacements": _made(consistency.displacements, consistency.without("position")),
    "position_level": _made(consistency.position_level, consistency.without("position")),
    "velocity_level": _made(consistency.velocity_level, consistency.without("velocity")),
    "outputs": {"members": quantities.outputs},
    "reactions": {"members": quantities.reactions},
    "integrals": {"members": consistency.integrals},
    "output_motions": {"members": consistency.output_motions},
    "control": _made(servo.control, servo.no_servo),
    "servo_matrix": _made(servo.system_part("servo_matrix"), servo.no_servo),
    "servo_right_side": _made(servo.system_part("servo_right_side"), servo.no_servo),
    "servo_residuals": _made(servo.residuals, servo.no_servo),
    "servo_gains": _made(servo.gains, servo.no_servo),
    "feasibility": _made(servo.feasibility, servo.no_servo),
    "laws": _made(feedback.laws, feedback.no_laws),
    "law_limits": _made(feedback.law_limits, feedback.no_limits),
    "unlimited_laws": _made(feedback.unlimited_laws, feedback.no_limits),
    "control_forces": _made(controls.control_forces, controls.no_path_controls),
    "kinematics": _made(controls.kinematics, controls.no_path_controls),
    "underactuation": _made(controls.underactuation, controls.fully_actuated),
    "Dm": _made(momenta_quantity("Dm")),
    "e": _made(momenta_quantity("e")),
    "reduced_momentum": _made(momentum_form.reduced_momentum, momentum_form.no_reduced_momentum),
    "hamiltonian": _made(momenta_quantity("hamiltonian"), _no_hamiltonian),
    "jacobi_integral": _made(momenta_quantity("jacobi_integral"), _no_hamiltonian),
    **{
        f"{kind}_{argument}": _made(partial(make, argument=argument), partial(requires, argument=argument))
        for kind, (make, requires) in jacobians.KINDS.items()
        for argument in JACOBIANS[kind][1]
    },
}
"""What builds the functions that are not the property of their name."""


def _recipe(name: str) -> Mapping[str, Any]:
    """The recipe of a function; none for the right-hand sides, which every program contains."""
    if name in _MADE or not hasattr(Equations, name):
        return _MADE.get(name, {})
    return _made(plain(name), _LACKING.get(name, lambda f: None))


SPECS: Final[Mapping[str, FunctionSpec]] = MappingProxyType(
    {name: FunctionSpec(**vars(entry), **_recipe(name)) for name, entry in CATALOGUE.items()}
)
"""The catalogue with the recipes."""


def reason_against(f: Functions, spec: FunctionSpec, form: str) -> str | None:
    """Return the reason why the model does not have this function in this form, or None."""
    if not spec.forms or form in spec.forms:
        return spec.requires(f)
    of_model = None if spec.derives else spec.requires(f)
    forms = " or ".join(f"form={name!r}" for name in spec.forms)
    return of_model or f"it was built in {form} form; build with {forms}"
