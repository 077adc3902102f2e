"""Checks of a model's bodies and of their weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy
from sympy.physics.mechanics import RigidBody

from kanegen.model.description import SystemDescription
from kanegen.model.expressions import dyadic_frames, dyadic_matrix, known_value, vector_terms

#: Eigenvalues of an inertia above minus this part of the largest entry count as zero.
NEGATIVE = 1e-10


def body_problems(model: SystemDescription) -> list[str]:
    """Problems of the masses and inertias, as far as numbers are known."""
    values = model.known_parameters
    problems = [] if model.bodies else ["the model has no bodies: expected at least one"]
    for k, body in enumerate(model.bodies):
        if any(body is other for other in model.bodies[:k]):
            problems.append(f"body {body.name} is listed twice: each body counts once")
            continue
        problems.extend(_mass_problems(body, values))
        if isinstance(body, RigidBody):
            problems.extend(_inertia_problems(body, values))
    problems.extend(_weight_problems(model))
    return problems


def _mass_problems(body: Any, values: Mapping[Any, float]) -> list[str]:
    if body.mass is None:
        return [f"body {body.name} has no mass: give a number (0 is legal) or a symbol"]
    mass = known_value(sympy.sympify(body.mass), values)
    if mass is None or mass >= 0.0:
        return []
    given = "" if body.mass.is_number else f" = {body.mass}"
    return [f"body {body.name} has the mass {mass:g}{given}: expected a number that is not negative"]


def _inertia_problems(body: Any, values: Mapping[Any, float]) -> list[str]:
    dyadic, about = body.inertia
    where = f"the inertia of body {body.name} about {about}"
    problems = []
    blocks = dyadic_matrix(dyadic)
    for frame, block in blocks.items():
        for i, j in ((0, 1), (0, 2), (1, 2)):
            if block[i][j] != block[j][i] and sympy.expand(block[i][j] - block[j][i]) != 0:
                axes = f"{'xyz'[i]}{'xyz'[j]}"
                problems.append(
                    f"{where} is not symmetric: its {axes} and {axes[::-1]} components in {frame} are "
                    f"{block[i][j]} and {block[j][i]}"
                )
    if problems or len(blocks) != 1 or len(dyadic_frames(dyadic)) != 1:
        return problems
    (block,) = blocks.values()
    numbers = [[known_value(entry, values) for entry in row] for row in block]
    known = [[entry for entry in row if entry is not None] for row in numbers]
    if sum(map(len, known)) == 9:
        smallest = _smallest_eigenvalue(known)
        scale = max(abs(entry) for row in known for entry in row)
        if not smallest >= -NEGATIVE * scale:
            problems.append(
                f"{where} has the negative eigenvalue {smallest:.6g}: expected principal moments of inertia "
                "that are not negative; check its components and parameter values"
            )
    return problems


def _smallest_eigenvalue(matrix: list[list[float]]) -> float:
    if not any(matrix[i][j] for i in range(3) for j in range(3) if i != j):
        return min(matrix[i][i] for i in range(3))
    return float(np.linalg.eigvalsh(np.array(matrix))[0]) if np.all(np.isfinite(matrix)) else math.nan


def _weight_problems(model: SystemDescription) -> list[str]:
    """Weights given both by ``gravity`` and by a load would count twice."""
    if model.gravity is None:
        return []
    weights = {body.masscenter: body for body in model.bodies if body.mass is not None}
    problems = []
    for location, vector in model.loads:
        body = weights.get(location)
        if body is not None and _same(vector, body.mass * model.gravity):
            problems.append(
                f"the load on {location} is the weight of body {body.name}, which gravity already adds: give "
                "it once. Drop the load, or keep it and give potential_energy instead of gravity"
            )
    return problems


def _same(vector: Any, other: Any) -> bool:
    """Whether two vectors are written with equal components in the same frames."""
    left, right = ({frame: part for part, frame in vector_terms(item)} for item in (vector, other))
    return set(left) == set(right) and all(
        sympy.expand(x - y) == 0 for frame, part in left.items() for x, y in zip(part, right[frame], strict=True)
    )
