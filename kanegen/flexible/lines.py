"""Vibrations of uniform bars in one direction: bending, stretching, twisting.

The strains are sums of Legendre polynomials, from which rotations and displacements follow by integration (one element
of high order). The stiffness matrix is then diagonal, shear does not lock, and frequencies converge exponentially with
the number of polynomials.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.polynomial import legendre

from kanegen.arrays import Array

SUPPORTS: Final = ("cantilever", "pinned", "clamped", "free")
"""How the ends are held in the frame: the start is fixed; both ends stay on the axis; both are fixed; none."""

FURTHER: Final = 22
"""Polynomials beyond the number of modes, with which the frequencies are those of the beam to rounding."""


@dataclass(frozen=True, eq=False)
class Series:
    """Functions of the position on a bar of this ``length`` as Legendre series, one row of coefficients for each."""

    length: float
    rows: Array

    def __call__(self, x: Array) -> Array:
        """Values (n, len(x)) at positions from the start, m."""
        return np.atleast_2d(legendre.legval(2.0 * np.asarray(x) / self.length - 1.0, self.rows.T))

    def integral(self, start: float = 0.0) -> Series:
        """The integrals from a position ``start``, m."""
        z = 2.0 * start / self.length - 1.0
        integrals = legendre.legint(self.rows, lbnd=z, scl=self.length / 2.0, axis=1)
        return Series(self.length, np.asarray(integrals, dtype=np.float64))

    def combined(self, weights: Array) -> Series:
        """Sums of the functions: one for each row of ``weights``."""
        return Series(self.length, weights @ self.rows)

    def plus(self, other: Series) -> Series:
        """The sums with the functions of ``other``, row by row."""
        width = max(self.rows.shape[1], other.rows.shape[1])
        mine, others = (np.pad(x.rows, ((0, 0), (0, width - x.rows.shape[1]))) for x in (self, other))
        return Series(self.length, mine + others)

    def times(self, i: int, other: Series, j: int) -> Series:
        """The product of function i and function j of ``other``."""
        return Series(self.length, legendre.legmul(self.rows[i], other.rows[j])[None])


@dataclass(frozen=True, eq=False)
class Shapes:
    """Shapes of a bar in one direction.

    ``displacement``, its derivative ``slope``, the rotation ``turn`` of the cross section (zero for bars that only
    stretch), and ``strain``, the derivative of the turn (of the displacement, for stretching and twisting).
    """

    displacement: Series
    slope: Series
    turn: Series
    strain: Series

    def combined(self, weights: Array) -> Shapes:
        parts = (self.displacement, self.slope, self.turn, self.strain)
        return Shapes(*(part.combined(weights) for part in parts))

    def moved(self, offsets: Array, turns: Array) -> Shapes:
        """The shapes with rigid motions: displacement (n,) of the start, m, and rotation (n,), rad."""
        length = self.displacement.length
        rotation = Series(length, turns[:, None])
        start = Series(length, offsets[:, None])
        return replace(
            self,
            displacement=self.displacement.plus(start).plus(rotation.integral()),
            slope=self.slope.plus(rotation),
            turn=self.turn.plus(rotation),
        )


@dataclass(frozen=True)
class Bar:
    """Mass per length (kg/m) and moment of inertia per length (kg m) of a bar, and its stiffness against each strain.

    ``shear`` is the stiffness against shear, N, of a Timoshenko beam; None for the theory of Euler and Bernoulli.
    ``bends`` is false for stretching and twisting, where ``mass`` is conjugate to the displacement (to the angle).
    """

    length: float
    mass: float
    inertia: float
    stiffness: float
    shear: float | None = None
    bends: bool = True


def vibrations(bar: Bar, supports: str, modes: int, polynomials: bool) -> tuple[Shapes, Array]:
    """Shapes with the largest displacement 1, and their stiffness (modes,), in ascending order of frequency.

    ``polynomials``: shapes that span polynomials, of strains up to the degree ``modes - 1``, in place of eigenmodes.
    """
    strains = 1 if bar.shear is None else 2
    raw = _held(bar, _strained(bar, modes if polynomials else strains * (modes + FURTHER)), supports)
    free = _free_weights(raw, bar, supports)
    M = free @ _mass(bar, raw, raw) @ free.T
    V = np.linalg.eigh(M)[1]  # the stiffness matrix is the unit matrix
    weights = V.T[::-1][:modes] @ free
    shapes = raw.combined(weights)
    x = np.linspace(0.0, bar.length, 401)
    values = shapes.displacement(x)
    peaks = values[np.arange(len(values)), np.argmax(np.abs(values) * (1.0 + 1e-6 * x / bar.length), axis=1)]
    return shapes.combined(np.diag(1.0 / peaks)), 1.0 / peaks**2


def _strained(bar: Bar, count: int) -> Shapes:
    """Shapes of unit stiffness with one strain each; the start does not move."""
    shears = 0 if bar.shear is None else count // 2
    strains = [_legendre(bar.length, bar.stiffness, count - shears)]
    if shears:
        strains.append(_legendre(bar.length, bar.shear or 0.0, shears))
    width = count - shears
    first = np.pad(strains[0], ((0, shears), (0, 0)))
    if not bar.bends:
        strain = Series(bar.length, first)
        return Shapes(strain.integral(), strain, Series(bar.length, np.zeros((count, 1))), strain)
    strain = Series(bar.length, first)
    turn = strain.integral()
    slope = turn
    if shears:
        slope = turn.plus(Series(bar.length, np.vstack([np.zeros((width, shears)), strains[1]])))
    return Shapes(slope.integral(), slope, turn, strain)


def _legendre(length: float, stiffness: float, count: int) -> Array:
    """Legendre polynomials whose squares have the integral 1 over the bar, times the stiffness."""
    return np.diag(np.sqrt((2.0 * np.arange(count) + 1.0) / (length * stiffness)))


def _held(bar: Bar, shapes: Shapes, supports: str) -> Shapes:
    """The shapes with the rigid motions that the supports need."""
    n = len(shapes.displacement.rows)
    none = np.zeros(n)
    if supports == "pinned" and bar.bends:
        end = shapes.displacement(np.array([bar.length]))[:, 0]
        return shapes.moved(none, -end / bar.length)
    if supports != "free":
        return shapes
    rigid = _rigid(bar)
    weights = np.linalg.solve(_mass(bar, rigid, rigid), _mass(bar, rigid, shapes))
    if not bar.bends:
        return replace(shapes, displacement=shapes.displacement.plus(Series(bar.length, np.asarray(-weights.T))))
    return shapes.moved(-weights[0], -weights[1])


def _rigid(bar: Bar) -> Shapes:
    """Translation and, for bending, rotation about the start."""
    flat = Series(bar.length, np.zeros((2 if bar.bends else 1, 1)))
    zero = Shapes(flat, flat, flat, flat)
    if bar.bends:
        return zero.moved(*np.eye(2))
    return replace(zero, displacement=Series(bar.length, np.ones((1, 1))))


def _free_weights(shapes: Shapes, bar: Bar, supports: str) -> Array:
    """Orthonormal combinations of the shapes that satisfy the conditions at the end."""
    n = len(shapes.displacement.rows)
    if supports != "clamped":
        return np.eye(n)
    end = np.array([bar.length])
    rows = [shapes.displacement(end)[:, 0], *([shapes.turn(end)[:, 0]] if bar.bends else [])]
    conditions = np.array([row / np.linalg.norm(row) for row in rows])
    return np.asarray(np.linalg.svd(conditions)[2][len(conditions) :])


def _mass(bar: Bar, a: Shapes, b: Shapes) -> Array:
    """The mass matrix of shapes a with shapes b."""
    x, weights = gauss(bar.length, max(s.displacement.rows.shape[1] for s in (a, b)))
    bending = bar.inertia * (a.turn(x) * weights) @ b.turn(x).T
    return np.asarray(bar.mass * (a.displacement(x) * weights) @ b.displacement(x).T + bending)


def gauss(length: float, count: int) -> tuple[Array, Array]:
    """Positions (count,) and weights (count,), m, that integrate polynomials up to the degree 2 count - 1."""
    z, weights = legendre.leggauss(count)
    return (z + 1.0) * length / 2.0, weights * length / 2.0
