"""Rotations from angular velocities and quaternions from rotations, against SciPy and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from kanegen.view.rotations import from_axis, gauss_points, integrated, quaternions, rotated

numbers = st.floats(-3.0, 3.0)
triples = st.tuples(numbers, numbers, numbers)
ROUNDING = 1e-13
"""Of entries of rotation matrices, after some dozen operations."""


@given(st.lists(triples, min_size=2, max_size=8))
@settings(max_examples=60, deadline=None)
def test_quaternions_give_their_matrices_back_and_do_not_jump(turns: list[tuple[float, float, float]]) -> None:
    matrices = Rotation.from_rotvec(np.array(turns)).as_matrix()
    found = quaternions(matrices)
    assert Rotation.from_quat(found).as_matrix() == pytest.approx(matrices, abs=ROUNDING)
    assert (np.sum(found[1:] * found[:-1], axis=1) >= 0.0).all()


@given(triples.filter(lambda x: np.linalg.norm(x) > 1e-3))
@settings(max_examples=60, deadline=None)
def test_a_shape_is_turned_to_its_axis(axis: tuple[float, float, float]) -> None:
    R = from_axis(np.array(axis))
    assert R[:, 2] == pytest.approx(np.array(axis) / np.linalg.norm(axis), abs=1e-9)
    assert pytest.approx(np.eye(3), abs=1e-9) == R @ R.T
    assert np.linalg.det(R) == pytest.approx(1.0)


def angles(t: np.ndarray) -> Rotation:
    return Rotation.from_euler("ZXZ", np.stack([np.sin(t), 0.5 + 0.3 * t, t**2], axis=-1))


def angular_velocity(t: np.ndarray, inertial: bool) -> np.ndarray:
    """That of `angles` by differences of sixth order, whose error is far below that of the integration."""
    h = 1e-3
    weights = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    rate = sum(w * (angles(t + k * h).as_matrix() - angles(t - k * h).as_matrix()) for k, w in weights.items()) / h
    R = angles(t).as_matrix()
    tilde = rate @ R.transpose(0, 2, 1) if inertial else R.transpose(0, 2, 1) @ rate
    return np.stack([tilde[:, 2, 1], tilde[:, 0, 2], tilde[:, 1, 0]], axis=-1)


@pytest.mark.parametrize("inertial", [True, False])
def test_rotations_converge_with_order_four(inertial: bool) -> None:
    errors = []
    for n in (20, 40):
        nodes = np.linspace(0.0, 2.0, n + 1)
        rates = angular_velocity(gauss_points(nodes).ravel(), inertial).reshape(-1, 2, 3)
        start, expected = angles(nodes[:1]).as_matrix()[0], angles(nodes).as_matrix()
        R = rotated(nodes, rates, inertial)
        errors.append(np.abs((R @ start if inertial else start @ R) - expected).max())
    assert errors[1] < 1e-5
    assert errors[0] / errors[1] > 2**3.5  # order 4; 2^4 in the limit


def test_integrals_are_exact_for_cubic_polynomials() -> None:
    nodes = np.array([0.0, 0.3, 1.0, 1.1])
    t = gauss_points(nodes)
    rates = np.stack([4 * t**3, 3 * t**2, np.ones_like(t)], axis=-1)
    assert integrated(nodes, rates) == pytest.approx(np.stack([nodes**4, nodes**3, nodes], axis=-1), abs=ROUNDING)
