"""Weights among the loads of a model: they show where down is, and are not drawn, as those of ``gravity`` are not.

Only pictures use what is found here: energies need ``gravity`` or a potential energy of the user.
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy.physics.vector import Vector

from kanegen.model.description import SystemDescription
from kanegen.model.expressions import atoms, vector_expressions, vector_frames
from kanegen.model.geometry import is_ground

Load = tuple[Any, Any]


def weights(model: SystemDescription) -> tuple[Any, tuple[Load, ...]]:
    """The acceleration of gravity, a SymPy vector or None, and the loads that are weights.

    Weights are loads at mass centers that divided by the mass give the same constant vector for all bodies that have
    one, as those of ``System.apply_uniform_gravity``. A single force counts if its mass is a symbol that cancels.
    """
    if model.gravity is not None:
        return model.gravity, ()
    bodies = {body.masscenter: body for body in model.bodies if not is_ground(body, model.frame)}
    groups: dict[tuple[Any, ...], list[Load]] = {}
    symbolic: set[tuple[Any, ...]] = set()
    for place, vector in model.loads:
        per_mass = _per_mass(model, bodies[place], vector) if place in bodies else None
        if per_mass is not None:
            groups.setdefault(per_mass, []).append((place, vector))
            if atoms([sympy.sympify(bodies[place].mass)]):
                symbolic.add(per_mass)
    found = [key for key, loads in groups.items() if len(loads) > 1 or key in symbolic]
    if not found:
        return None, ()
    key = max(found, key=lambda key: len(groups[key]))
    return sum((x * axis for x, axis in zip(key, model.frame, strict=True)), Vector(0)), tuple(groups[key])


def _per_mass(model: SystemDescription, body: Any, vector: Any) -> tuple[Any, ...] | None:
    """The components of a force over the mass of a body, if these are constants without the mass, not all zero."""
    mass = sympy.sympify(body.mass)
    if vector == 0 or mass.is_zero or vector_frames(vector) != (model.frame,):
        return None
    if not atoms([mass, *vector_expressions(vector)]) <= set(model.parameters):
        return None
    components = tuple(sympy.cancel(x / mass) for x in vector.to_matrix(model.frame))
    return None if atoms(components) & atoms([mass]) or not any(components) else components
