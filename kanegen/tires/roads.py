"""Roads: planes, or surfaces with a height."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.physics.vector import Point, ReferenceFrame

from kanegen.errors import ModelError, brief
from kanegen.graph.tables import Table


@dataclass(frozen=True)
class Road:
    """A surface ``z = height(x, y)`` in the axes of an inertial frame, from an origin; without height the plane."""

    frame: ReferenceFrame
    origin: Point
    height: Callable[..., Any] | None = None

    def surface(self, x: Any, y: Any) -> tuple[Any, Any, Any]:
        """The height (m) at a place, and its slopes along x and y."""
        if self.height is None:
            return sympy.Integer(0), sympy.Integer(0), sympy.Integer(0)
        at = sympy.symbols("x y", cls=sympy.Dummy, real=True)
        height = self._height(*at)
        place = dict(zip(at, (x, y), strict=True))
        return height.xreplace(place), height.diff(at[0]).xreplace(place), height.diff(at[1]).xreplace(place)

    def _height(self, x: Any, y: Any) -> Any:
        one = isinstance(self.height, Table) and len(self.height.knots) == 1
        height = self.height(x) if one else self.height(x, y)  # type: ignore[misc]
        return sympy.sympify(height)


def road(frame: ReferenceFrame, origin: Point, height: Callable[..., Any] | None = None) -> Road:
    """A road for `wheel`: the plane through a point that is normal to ``frame.z``, or a surface above it.

    Parameters
    ----------
    frame
        The inertial frame of the model, with z upward.
    origin
        A point that rests in it, from which x, y and the height count.
    height
        None: a plane. A `kg.Table` of one argument, x, or of two, x and y (m), or a function of x and y that returns a
        SymPy expression. It needs a continuous slope: ``"cubic"`` or ``"monotone"``, not ``"linear"``.
    """
    if not isinstance(frame, ReferenceFrame) or not isinstance(origin, Point):
        raise ModelError(f"the road has {brief(frame)} and {brief(origin)}: expected a ReferenceFrame and a Point")
    if height is not None and not callable(height):
        raise ModelError(f"the height of the road is {brief(height)}: expected a kg.Table or a function of x and y")
    if isinstance(height, Table) and height.kind == "linear":
        raise ModelError(f"the height of the road is the linear table {height.name!r}: its slope jumps; use 'monotone'")
    return Road(frame, origin, height)
