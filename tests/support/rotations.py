"""One turning body: all sequences of three angles, about axes of the body or of space, in any components as speeds.

The reference is SymPy's own angular velocity, ``w = W q'``, solved by NumPy, and Euler's equations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

import kanegen as kg

TIME = me.dynamicsymbols._t
SEQUENCES = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX", "XYX", "XZX", "YXY", "YZY", "ZXZ", "ZYZ")
INERTIA = np.diag([1.0, 2.0, 2.5])
REGULAR = 1e3
"""Largest condition number of W at which states count as regular."""


@dataclass(frozen=True)
class Rotation:
    """A rotation about three axes; ``order``: that of the kinematical equations."""

    sequence: str
    kind: str
    inertial: bool
    order: Sequence[int] = (0, 1, 2)

    def __str__(self) -> str:
        return f"{self.sequence} {self.kind} {'inertial' if self.inertial else 'body'}"

    @cached_property
    def symbols(self) -> tuple[Any, Any]:
        return tuple(me.dynamicsymbols("a b c")), tuple(me.dynamicsymbols("u:3"))

    @cached_property
    def frames(self) -> tuple[Any, Any]:
        N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
        getattr(B, f"orient_{self.kind}_fixed")(N, self.symbols[0], self.sequence)
        return N, B

    @cached_property
    def components(self) -> list[Any]:
        """The angular velocity as SymPy gives it."""
        N, B = self.frames
        return [B.ang_vel_in(N).dot(axis) for axis in (N if self.inertial else B)]

    def model(self, **options: Any) -> kg.Model:
        (q, u), (N, B) = self.symbols, self.frames
        O = me.Point("O")
        O.set_vel(N, 0)
        body = me.RigidBody("body", O, B, 1, (me.inertia(B, *np.diag(INERTIA)), O))
        kinematics = [u[k] - self.components[k] for k in self.order]
        settings = {"name": "turning", "frame": N, "coordinates": q, "speeds": u, "kinematics": kinematics}
        return kg.Model(**settings, bodies=[body], **options)

    @cached_property
    def _functions(self) -> tuple[Any, Any, Any]:
        q = self.symbols[0]
        W = sm.Matrix(self.components).jacobian([x.diff(TIME) for x in q])
        N, B = self.frames
        slopes = [W.diff(x) for x in q]
        return tuple(sm.lambdify([q], item, "numpy") for item in (W, slopes, N.dcm(B)))

    def W(self, q: Any) -> np.ndarray:
        return np.array(self._functions[0](q))

    def is_regular(self, q: Any) -> bool:
        return bool(np.linalg.cond(self.W(q)) < REGULAR)

    def rates(self, q: Any, u: Any) -> np.ndarray:
        """q' and u'; complex numbers are allowed."""
        R = np.array(self._functions[2](q)) if self.inertial else np.eye(3)
        w = R.T @ u
        return np.concatenate([np.linalg.solve(self.W(q), u), R @ np.linalg.solve(INERTIA, np.cross(INERTIA @ w, w))])

    def slopes(self, q: Any, u: Any) -> np.ndarray:
        """The derivatives of `rates` in q, (6, 3): those of q' from SymPy's derivatives of W, those of u' by complex
        steps."""
        W, qdot = self.W(q), self.rates(q, u)[:3]
        of_q = np.column_stack([-np.linalg.solve(W, np.array(slope) @ qdot) for slope in self._functions[1](q)])
        steps = 1e-30j * np.eye(3)
        of_u = np.column_stack([self.rates(np.array(q) + h, u)[3:].imag / 1e-30 for h in steps])
        return np.vstack([of_q, of_u])

    def mass_matrix(self, q: Any) -> np.ndarray:
        R = np.array(self._functions[2](q)) if self.inertial else np.eye(3)
        return np.asarray(R @ INERTIA @ R.T)

    def states(self, count: int, seed: int = 0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """``count`` regular states: angles 0, right, straight or random, in a random order of all combinations."""
        rng = np.random.default_rng(seed)
        angles = [0.0, np.pi / 2, -np.pi / 2, np.pi, *rng.uniform(-3.0, 3.0, 1)]
        places = [np.array(q) for q in product(angles, repeat=3) if self.is_regular(q)]
        for k in rng.permutation(len(places))[:count]:
            yield places[k], rng.choice([0.0, 1.0]) * rng.uniform(-1.0, 1.0, 3)


def rotations() -> list[Rotation]:
    """All 48, with the equations in a random order each."""
    rng = np.random.default_rng(29)
    choices = product(SEQUENCES, ("body", "space"), (False, True))
    return [Rotation(*choice, tuple(int(k) for k in rng.permutation(3))) for choice in choices]
