"""Two free bodies whose surfaces touch, and numbers of what their contacts contain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from numpy.typing import NDArray

from kanegen.graph import Graph, Lowering, evaluate
from kanegen.graph.interpret import PYTHON

Array = NDArray[np.float64]
N, O = me.ReferenceFrame("N"), me.Point("O")
A, B = me.ReferenceFrame("A"), me.ReferenceFrame("B")
Q = [*me.dynamicsymbols("q1:13")]
RATES = [x.diff() for x in Q]
A.orient_body_fixed(N, Q[3:6], "XYZ")
B.orient_body_fixed(N, Q[9:12], "XYZ")
P = O.locatenew("P", sum((x * axis for x, axis in zip(Q[:3], N, strict=True)), me.Vector(0)))
S = O.locatenew("S", sum((x * axis for x, axis in zip(Q[6:9], N, strict=True)), me.Vector(0)))
"""The bodies A at P and B at S."""


def rotation(angles: Array) -> Array:
    """The axes of a body as columns, for rotations about its x, y and z axes in this order."""
    (a, b, c), (sa, sb, sc) = np.cos(angles), np.sin(angles)
    x = np.array([[1, 0, 0], [0, a, -sa], [0, sa, a]])
    y = np.array([[b, 0, sb], [0, 1, 0], [-sb, 0, b]])
    z = np.array([[c, -sc, 0], [sc, c, 0], [0, 0, 1]])
    return np.asarray(x @ y @ z)


class Pose:
    """Positions and axes of both bodies at coordinates (12,)."""

    def __init__(self, q: Array) -> None:
        self.place, self.axes = (q[:3], q[6:9]), (rotation(q[3:6]), rotation(q[9:12]))

    def to(self, body: int, point: Array) -> Array:
        """Components along the axes of a body of a point in space, or of several (..., 3)."""
        return np.asarray((point - self.place[body]) @ self.axes[body])

    def out(self, body: int, point: Array) -> Array:
        """The point in space of components along the axes of a body."""
        return np.asarray(self.place[body] + point @ self.axes[body].T)


def velocity(body: int, point: Array, q: Array, rates: Array, h: float = 1e-5) -> Array:
    """The velocity of the point of a body that is at ``point``, by central differences along the motion."""
    fixed = Pose(q).to(body, point)
    ahead, behind = (Pose(q + sign * h * rates).out(body, fixed) for sign in (1, -1))
    return (ahead - behind) / (2 * h)


class Touching:
    """Numbers of the contact of a surface of A with one of B: gap, normal, closest point, and slip with tangents.

    ``more``: symbols besides the coordinates, such as those of a foot.
    """

    def __init__(self, found: Any, more: Sequence[Any] = ()) -> None:
        where = found.first.position(O) + found.arm
        vectors = [found.normal, where, *found.tangents]
        rows = [[v.dot(axis) for axis in N] for v in vectors]
        self._values = Numbers([found.gap, *found.slip(), *(x for row in rows for x in row)], more)

    def __call__(self, q: Array, rates: Array | None = None, *more: float) -> tuple[float, Array, Array, Array, Array]:
        """Gap, slip (2,), normal, closest point and tangents (2, 3)."""
        values = self._values(q, np.zeros(12) if rates is None else rates, *more)
        vectors = values[3:].reshape(-1, 3)
        return float(values[0]), values[1:3], vectors[0], vectors[1], vectors[2:]


class Numbers:
    """The values of expressions at coordinates, their rates, and ``more`` symbols."""

    def __init__(self, expressions: Sequence[Any], more: Sequence[Any] = ()) -> None:
        graph = Graph()
        known = {x: graph.input("q", k) for k, x in enumerate(Q)} | {
            x: graph.input("u", k) for k, x in enumerate(RATES)
        }
        lowering = Lowering(graph, known | {x: graph.input("p", k) for k, x in enumerate(more)})
        self._nodes = [lowering.lower(sm.sympify(x)) for x in expressions]

    def __call__(self, q: Array, rates: Array, *more: float) -> Array:
        """The values."""
        return np.array(evaluate(self._nodes, {"q": q.tolist(), "u": rates.tolist(), "p": list(more)}, PYTHON), float)


def states(generator: np.random.Generator, count: int) -> Iterator[Array]:
    """Coordinates at random, and with angles at which axes are parallel or at right angles."""
    special = np.array([0.0, np.pi / 2, -np.pi / 2, np.pi])
    for k in range(count):
        q = generator.uniform(-1.0, 1.0, 12) * np.array([3, 3, 3, 3, 3, 3, 0.3, 0.3, 0.3, 3, 3, 3])
        if k % 2:
            angles = np.array([3, 4, 5, 9, 10, 11])
            q[angles] = generator.choice(special, 6)
        yield q
