"""Rotations: matrices from angular velocities, and quaternions from matrices."""

from __future__ import annotations

import numpy as np

from kanegen.arrays import Array

GAUSS = 0.5 / np.sqrt(3.0)
"""Distance of the two Gauss points of an interval from its middle, relative to its length."""


def gauss_points(nodes: Array) -> Array:
    """The two Gauss points of each interval between ``nodes`` (m,), (m - 1, 2)."""
    h = np.diff(nodes)
    middle = (nodes[:-1] + nodes[1:]) / 2
    return np.asarray(middle[:, None] + h[:, None] * np.array([-GAUSS, GAUSS]))


def integrated(nodes: Array, rates: Array) -> Array:
    """Integrals from the first node to each node, (m, 3), of rates at the Gauss points, (m - 1, 2, 3)."""
    steps = np.diff(nodes)[:, None] * rates.mean(axis=1)
    return np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])


def rotated(nodes: Array, rates: Array, inertial: bool) -> Array:
    """Rotation matrices at the nodes, (m, 3, 3), from the angular velocities at the Gauss points, (m - 1, 2, 3).

    With ``inertial`` components R' = w~ R, else R' = R w~; R is 1 at the first node. The Magnus expansion of fourth
    order with two Gauss points (Blanes, Casas, Oteo and Ros 2009, equation (253)).
    """
    h = np.diff(nodes)[:, None]
    first, second = rates[:, 0], rates[:, 1]
    sign = 1.0 if inertial else -1.0
    angles = h * (first + second) / 2 - sign * np.sqrt(3.0) / 12 * h**2 * np.cross(first, second)
    steps = _matrices(angles)
    R = np.empty((nodes.size, 3, 3))
    R[0] = np.eye(3)
    for k, step in enumerate(steps):
        R[k + 1] = step @ R[k] if inertial else R[k] @ step
    return R


def _matrices(angles: Array) -> Array:
    """Rotation matrices (..., 3, 3) of rotation vectors (..., 3)."""
    from scipy.spatial.transform import Rotation  # costs 0.1 s

    return np.asarray(Rotation.from_rotvec(angles).as_matrix())


def quaternions(R: Array) -> Array:
    """Unit quaternions (x, y, z, w) of rotation matrices (n, 3, 3), with signs that make them continuous, (n, 4).

    The component that is largest is taken from the diagonal, the others from it (Shepperd 1978).
    """
    d = np.stack([R[:, 0, 0], R[:, 1, 1], R[:, 2, 2], np.trace(R, axis1=1, axis2=2)], axis=-1)
    pairs = np.empty((len(R), 4, 4))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        pairs[:, i, i] = 1.0 + 2.0 * R[:, i, i] - d[:, 3]
        pairs[:, i, j] = pairs[:, j, i] = R[:, i, j] + R[:, j, i]
        pairs[:, i, 3] = pairs[:, 3, i] = R[:, k, j] - R[:, j, k]
    pairs[:, 3, 3] = 1.0 + d[:, 3]
    best = np.argmax(d, axis=1)
    q = pairs[np.arange(len(R)), best]
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    flips = np.where(np.sum(q[1:] * q[:-1], axis=1) < 0.0, -1.0, 1.0)
    q[1:] *= np.cumprod(flips)[:, None]
    return np.asarray(q)


def from_axis(axis: Array) -> Array:
    """The rotation matrix by the shortest way whose third column is the direction ``axis`` (3,)."""
    x, y, z = axis / np.linalg.norm(axis)
    sine = np.hypot(x, y)
    # The way to the opposite direction is not unique: about the first axis.
    normal = np.array([-y, x, 0.0]) / sine if sine > 0.0 else np.array([1.0, 0.0, 0.0])
    return _matrices(normal * np.arctan2(sine, z))
