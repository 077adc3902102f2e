"""Unit vectors along a surface, in which slip is measured."""

from __future__ import annotations

from typing import Any

import sympy

from kanegen.errors import ModelError, brief
from kanegen.geometry.choices import at_least
from kanegen.geometry.seats import unit


def components(vector: Any, frame: Any) -> tuple[Any, Any, Any]:
    """The components of a vector along the axes of a frame."""
    return tuple(vector.dot(axis) for axis in frame)


def combined(values: Any, frame: Any) -> Any:
    """The vector with these components along the axes of a frame."""
    x, y, z = values
    return x * frame.x + y * frame.y + z * frame.z


def fixed_tangents(normal: Any, frame: Any) -> tuple[Any, Any]:
    """Two orthonormal vectors normal to a unit vector that is fixed in a frame.

    An axis of the frame to which the normal is perpendicular is one of them, so that the expressions stay short.
    """
    values = [sympy.sympify(x) for x in components(normal, frame)]
    axes = list(frame)
    for k in (1, 0, 2):
        if values[k].is_zero:
            return axes[k].cross(normal), axes[k]
    return moving_tangents(values, frame)


def moving_tangents(normal: Any, frame: Any) -> tuple[Any, Any]:
    """Two orthonormal vectors normal to any unit vector, given by its components in a frame.

    They are regular at every normal, and jump where its last component changes its sign: no continuous choice exists on
    a sphere. The formula is that of T. Duff and others, Building an orthonormal basis, revisited, Journal of Computer
    Graphics Techniques 6 (1), 2017.
    """
    x, y, z = normal
    sign = 2 * at_least(z, 0) - 1
    a = -1 / (sign + z)
    b = x * y * a
    return combined((1 + sign * x**2 * a, sign * b, -sign * x), frame), combined((b, sign + y**2 * a, -y), frame)


def given_tangents(along: Any, what: str) -> tuple[Any, ...]:
    """One or two vectors that the user gave, of length 1."""
    items = tuple(along) if isinstance(along, list | tuple) else (along,)
    if len(items) not in (1, 2):
        raise ModelError(f"{what} has along={brief(along)}: expected one or two orthonormal vectors")
    found = tuple(unit(item, "along", what) for item in items)
    if len(found) == 2:
        product = sympy.trigsimp(found[0].dot(found[1]))
        if product.is_number and abs(product) > 1e-12:
            raise ModelError(
                f"{what} has along= with two vectors whose product is {product}: expected orthonormal ones"
            )
    return found
