"""Checks of the shapes of a model: bodies, frames and points that it has, and sizes in its parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy
from sympy.physics.mechanics import Particle, Point, ReferenceFrame, RigidBody

from kanegen.model.description import SystemDescription
from kanegen.model.expressions import atoms, known_value, symbol_names
from kanegen.model.geometry import breadth_first
from kanegen.shapes import Shape, entry


def shape_problems(model: SystemDescription) -> Iterator[str]:
    """Problems of ``shapes``, each with the key."""
    names = [body.name for body in model.bodies]
    for key, shapes in model.shapes.items():
        where = entry("shapes", key)
        yield from (f"{where}: {problem}" for problem in _key_problems(model, key, names))
        for shape in shapes:
            yield from (f"{where}: {type(shape).__name__}: {problem}" for problem in _problems(model, shape))


def _key_problems(model: SystemDescription, key: Any, names: list[str]) -> Iterator[str]:
    if isinstance(key, str):
        if names.count(key) != 1:
            found = "there is no body of this name" if key not in names else "several bodies have this name"
            yield f"{found}: expected one of {', '.join(names) or 'no bodies'}, a frame or a point of the model"
    elif isinstance(key, Particle | RigidBody):
        if key not in model.bodies:
            yield f"body {key.name} is not part of the model: expected one of {', '.join(names) or 'no bodies'}"
    elif isinstance(key, ReferenceFrame):
        if key not in model.geometry.parents and key not in model.geometry.rate_parents:
            known = ", ".join(frame.name for frame in model.geometry.parents)
            yield (
                f"frame {key} is not connected to the inertial frame {model.frame}: expected one of {known}, or orient "
                f"it, such as {key}.orient_axis({model.frame}, ...)"
            )
    elif isinstance(key, Point):
        yield from _point_problems(model, key)
    else:
        yield f"found a {type(key).__name__}: expected a body or its name, a frame or a point"


def _problems(model: SystemDescription, shape: Shape) -> Iterator[str]:
    for point in shape.points:
        yield from _point_problems(model, point)
    unknown = atoms(sympy.sympify(x) for x in shape.expressions()) - set(model.parameters)
    if unknown:
        known = symbol_names(model.parameters) or "none"
        yield (
            f"{symbol_names(sorted(unknown, key=str))} in its sizes is no parameter of the model: expected numbers, or "
            f"expressions of {known}"
        )
    for length in map(sympy.sympify, shape.lengths):
        value = known_value(length, model.known_parameters)
        if value is not None and not value > 0.0:
            yield f"the length {length} = {value:g} is not positive"


def _point_problems(model: SystemDescription, point: Any) -> Iterator[str]:
    """A problem of a point that no position connects with a point of the model."""
    connected = breadth_first(point, lambda node: node._pos_dict)
    at_rest = (node for node in connected if node._vel_dict.get(model.frame) == 0)
    if not any(node in model.geometry.routes for node in connected) and next(at_rest, None) is None:
        known = ", ".join(dict.fromkeys(map(str, model.geometry.routes)))
        yield (
            f"point {point} is not connected to the points of the model by positions: expected one of "
            f"{known or 'none'}, or set its position, such as {point}.set_pos(...)"
        )
