"""The inertia of a flexible body as that of a few point masses.

The kinetic energy, the momenta and the weight of a body whose position is ``r = sum_a f_a(x) c_a(t)``, with scalar
functions ``f_a`` and vectors ``c_a``, depend on the functions only by the integrals ``G_ab`` of ``f_a f_b`` over the
mass, where ``f_0 = 1``: mass, first and second moments, and the invariants of the modes (Shabana 2020, section 5.2).
A set of particles that has these integrals is therefore exactly equivalent to the body. For every matrix G of rank k
there are k particles of equal mass: with ``G = L L^T`` and an orthogonal matrix U whose first row is constant, these
are the columns of ``L U``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from kanegen.arrays import Array
from kanegen.flexible.fields import Fields

DEPENDENT: Final = 1e-12
"""Part of the square of a function that may remain if the functions before it are taken out of it."""

NEGATIVE: Final = 1e-10
"""Largest negative eigenvalue, relative to the largest one, of a matrix that counts as positive semidefinite."""


@dataclass(frozen=True, eq=False)
class Lumps:
    """Particles of equal ``mass`` (kg) at ``center + offsets[:, k]``, each a value for every function.

    ``offsets`` is (n_f, k), ``center`` (n_f,); the sum of the offsets is zero.
    """

    mass: float
    center: Array
    offsets: Array


def gram(fields: Fields, masses: Array, inertias: Array) -> Array:
    """``G`` (1 + n_f, 1 + n_f) of the function 1 and of the fields.

    ``masses`` are those of the nodes (n,), or a mass matrix (n, n); ``inertias`` (n, 3, 3) those of small rigid pieces
    at the nodes.
    """
    values = np.vstack([np.ones(fields.values.shape[1]), fields.values])
    slopes = np.concatenate([np.zeros((1, values.shape[1], 3)), fields.slopes])
    weighted = values * masses if masses.ndim == 1 else values @ masses
    # The second moments of a piece, from its moments of inertia.
    second = np.trace(inertias, axis1=1, axis2=2)[:, None, None] / 2 * np.eye(3) - inertias
    G = weighted @ values.T + np.einsum("anc,ncd,bnd->ab", slopes, second, slopes, optimize=True)
    return np.asarray((G + G.T) / 2)


def chosen(fields: Fields, integrals: Array) -> Array:
    """``G`` of linear fields from the integrals of 1, x, y, z, and the components of each mode, (4 + 3 m, 4 + 3 m)."""
    rows = [0, *(4 + 3 * monomial[0] + c if monomial else 1 + c for c, monomial in fields.terms)]
    return np.asarray(integrals[np.ix_(rows, rows)])


def lumped(G: Array, first: int) -> Lumps:
    """The particles with the integrals ``G``, whose mass ``G[0, 0]`` is positive.

    The functions before ``first`` (1 and those that are linear in the modal coordinates) are eliminated in their order,
    so that bodies with equal numbers of modes have zeros at the same places; then those of which most remains.
    """
    L, pivots = _factor(G, first)
    k, mass = len(pivots), float(G[0, 0])
    size = np.sqrt(np.diag(G) / mass)
    center = L[:, 0] / np.sqrt(mass)
    offsets = L[:, 1:] @ _constant_first(k)[1:] * np.sqrt(k / mass)
    rest = np.setdiff1d(np.arange(len(G)), pivots)
    offsets[rest] = _without_noise(offsets[rest], size[rest, None])
    return Lumps(mass / k, _without_noise(center, size)[1:], offsets[1:])


def _factor(G: Array, first: int) -> tuple[Array, list[int]]:
    """L with ``G = L L^T``, (n, rank), by Cholesky's method, and the functions (rank,) in the order of elimination."""
    scale = np.sqrt(np.maximum(np.diag(G), 0.0))
    scale[scale == 0.0] = 1.0
    rest = G / scale / scale[:, None]
    columns, pivots = list[Array](), list[int]()
    ordered = iter(range(first))
    while True:
        pivot = next((a for a in ordered if rest[a, a] > DEPENDENT), int(np.argmax(np.diag(rest))))
        if rest[pivot, pivot] <= DEPENDENT:
            return np.asarray(np.stack(columns, axis=1) * scale[:, None]), pivots
        column = rest[:, pivot] / np.sqrt(rest[pivot, pivot])
        column[pivots] = 0.0
        pivots.append(pivot)
        columns.append(column)
        rest = rest - np.outer(column, column)
        rest[pivot] = rest[:, pivot] = 0.0


def _constant_first(k: int) -> Array:
    """The orthogonal matrix of Helmert: its first row is constant, row j > 0 is zero behind entry j."""
    U = np.zeros((k, k))
    U[0] = 1.0 / np.sqrt(k)
    for j in range(1, k):
        U[j, :j] = 1.0 / np.sqrt(j * (j + 1))
        U[j, j] = -np.sqrt(j / (j + 1))
    return U


def _without_noise(values: Array, size: Array) -> Array:
    """Values without those that are rounding errors of a function of this size."""
    return np.where(np.abs(values) < 1e-13 * size, 0.0, values)
