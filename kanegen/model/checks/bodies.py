"""Checks of a model's bodies, their weights, and the reactions on sets of bodies."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import sympy
from sympy.physics.mechanics import RigidBody

from kanegen.model.description import SystemDescription
from kanegen.model.expressions import atoms, dyadic_frames, dyadic_matrix, known_value, vector_expressions
from kanegen.model.geometry import breadth_first
from kanegen.model.reactions import Reaction

#: An eigenvalue of an inertia is negative if it is below ``-NEGATIVE`` times the largest entry.
NEGATIVE = 1e-10

ROUNDED = 1e-3
"""The relative error of moments of inertia as data sheets print them."""


def body_problems(model: SystemDescription) -> Iterator[str]:
    """Problems of the masses and inertias whose values are known."""
    values = model.known_parameters
    if not model.bodies and model.lagrangian is None:
        yield "the model has no bodies: expected at least one, or a lagrangian"
    for k, body in enumerate(model.bodies):
        if any(body is other for other in model.bodies[:k]):
            yield f"body {body.name} is listed twice in bodies: list it once"
            continue
        mass = None if body.mass is None else known_value(sympy.sympify(body.mass), values)
        if body.mass is None:
            yield f"body {body.name} has no mass: expected a number (0 is legal) or a symbol"
        elif mass is not None and not mass >= 0.0:
            symbol = "" if body.mass.is_number else f" = {body.mass}"
            yield f"body {body.name} has the mass {mass:g}{symbol}: expected a number >= 0"
        if isinstance(body, RigidBody):
            yield from _inertia_problems(body, values)
    if model.gravity is not None:
        yield from _weight_problems(model)


def _inertia_problems(body: Any, values: Mapping[Any, float]) -> Iterator[str]:
    dyadic, about = body.inertia
    where = f"the inertia of body {body.name} about {about}"
    blocks, symmetric = dyadic_matrix(dyadic), True
    for frame, block in blocks.items():
        for i, j in ((0, 1), (0, 2), (1, 2)):
            if block[i][j] != block[j][i] and sympy.expand(block[i][j] - block[j][i]) != 0:
                symmetric, axes = False, f"{'xyz'[i]}{'xyz'[j]}"
                yield (
                    f"{where} is not symmetric: its {axes} and {axes[::-1]} components in {frame} are "
                    f"{block[i][j]} and {block[j][i]}"
                )
    moments = _principal_moments(body, values) if symmetric else None
    if moments is not None and not moments[0] >= -NEGATIVE * np.abs(moments).max():
        yield (
            f"{where} has the negative eigenvalue {moments[0]:.6g}: expected principal moments of inertia >= 0; "
            "check its components and parameter values"
        )


def _principal_moments(body: Any, values: Mapping[Any, float]) -> Any:
    """The principal moments of inertia (3,), ascending, nan if they are not finite; None if they are not known."""
    dyadic, _ = body.inertia
    blocks = dyadic_matrix(dyadic)
    if len(blocks) != 1 or len(dyadic_frames(dyadic)) != 1:
        return None
    (block,) = blocks.values()
    known = [known_value(entry, values) for row in block for entry in row]
    if any(entry is None for entry in known):
        return None
    matrix = np.array(known, dtype=float).reshape(3, 3)
    return np.linalg.eigvalsh(matrix) if np.all(np.isfinite(matrix)) else np.full(3, math.nan)


def body_warnings(model: SystemDescription) -> Iterator[str]:
    """What is legal, but probably a mistake: bodies of one name, and inertias that no body can have.

    The moments of a body satisfy I1 + I2 >= I3. A single moment that is not zero is the customary way to write planar
    bodies and rotors.
    """
    for name, count in Counter(str(body.name) for body in model.bodies).items():
        if count > 1:
            yield f"{count} bodies are named {name!r}: pictures and reports cannot tell them apart; rename one of them"
    for body in model.bodies:
        moments = _principal_moments(body, model.known_parameters) if isinstance(body, RigidBody) else None
        if moments is None or moments[1] <= NEGATIVE * moments[2]:
            continue
        if moments[0] + moments[1] < (1.0 - ROUNDED) * moments[2]:
            yield (
                f"no body has the inertia of body {body.name}: its principal moments are "
                f"{', '.join(f'{moment:.6g}' for moment in moments)}, and the largest is larger than the sum of the "
                "others; check its components"
            )


def _weight_problems(model: SystemDescription) -> Iterator[str]:
    """Loads that are weights, which ``gravity`` would add a second time."""
    weights = {body.masscenter: body for body in model.bodies if body.mass is not None}
    for location, vector in model.loads:
        body = weights.get(location)
        if body is None or _variables(vector) - _variables(body.mass * model.gravity):
            continue
        if _is_zero(vector - body.mass * model.gravity):
            yield (
                f"the load on {location} is the weight of body {body.name}, which gravity= already adds: remove the "
                "load, or keep it and give potential_energy= instead of gravity="
            )


def _variables(vector: Any) -> frozenset[Any]:
    """The functions of time in a vector. A load that has others than the weight need not be expanded."""
    return frozenset(x for x in atoms(vector_expressions(vector)) if not x.is_Symbol)


def _is_zero(vector: Any) -> bool:
    """Whether all components of a vector expand to zero."""
    return all(sympy.expand(x) == 0 for x in vector_expressions(vector))


def reaction_problems(model: SystemDescription) -> Iterator[str]:
    """Problems of the bodies, points, loads and constraints that the reactions of a model name."""
    for name, reaction in model.reactions.items():
        for problem in (*_members_problems(model, reaction), *_place_problems(model, reaction)):
            yield f"reactions[{name!r}]: {problem}"


def _members_problems(model: SystemDescription, reaction: Reaction) -> Iterator[str]:
    names = [body.name for body in model.bodies]
    for body in reaction.bodies:
        name = body if isinstance(body, str) else body.name
        if name not in names or not (isinstance(body, str) or body in model.bodies):
            yield f"body {name!r} is not part of the model: expected bodies among {', '.join(names)}"
        elif isinstance(body, str) and names.count(name) > 1:
            yield f"{names.count(name)} bodies are named {name!r}: give the body instead of its name"


def _place_problems(model: SystemDescription, reaction: Reaction) -> Iterator[str]:
    """Problems of the point, the loads and the rows of J that a reaction names."""
    for k in reaction.members(model.bodies):
        body = model.bodies[k]
        points = breadth_first(body.masscenter, lambda point: point._pos_dict)
        if reaction.point not in points:
            yield (
                f"point {reaction.point} is not part of the model: no position connects it with the mass center of "
                f"body {body.name}; set its position with set_pos, or give one of the points "
                f"{', '.join(sorted(map(str, points)))}"
            )
    places = [place for place, _ in (*model.loads, *model.contact_loads)]
    unknown = [str(place) for place in reaction.loads or () if place not in places]
    if unknown:
        known = ", ".join(dict.fromkeys(map(str, places))) or "nothing"
        yield f"loads contains {', '.join(unknown)}, on which no load acts: the loads of the model act on {known}"
    wrong = [str(row) for row in reaction.multipliers if not 0 <= row < len(model.constraints)]
    if wrong:
        known = ", ".join(f"{row} ({expression})" for row, expression in enumerate(model.constraints)) or "none"
        yield f"multipliers contains the rows {', '.join(wrong)}, which J does not have: its rows are {known}"
