"""The particles of a flexible body have the integrals of its modes over the mass."""

from __future__ import annotations

import numpy as np
import pytest
import sympy.physics.mechanics as me
from hypothesis import given
from hypothesis import strategies as st

import kanegen as kg
from kanegen.flexible.fields import LEVI_CIVITA, Fields
from kanegen.flexible.inertia import gram, lumped


@given(size=st.integers(1, 9), rank=st.integers(1, 9), first=st.integers(1, 9), seed=st.integers(0, 10**6))
def test_particles_have_the_integrals_of_the_body(size: int, rank: int, first: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    B = random.normal(size=(size, rank)) * random.choice((1.0, 1e-4, 1e3), size=(size, 1))
    B[0] += 3.0
    G = B @ B.T
    found = lumped(G, min(first, size))
    values = np.vstack([np.ones(found.offsets.shape[1]), found.center[:, None] + found.offsets])
    assert len(values.T) == min(size, rank)
    scale = np.sqrt(np.diag(G))
    np.testing.assert_allclose(found.mass * values @ values.T, G, atol=1e-11 * np.outer(scale, scale).max(), rtol=1e-9)
    np.testing.assert_allclose(found.offsets.sum(axis=1), 0.0, atol=1e-12 * np.abs(found.offsets).max(initial=1.0))


def test_products_are_those_of_vectors() -> None:
    a, b = np.array([1.0, -2.0, 0.5]), np.array([0.3, 4.0, -1.0])
    np.testing.assert_allclose(np.einsum("cij,i,j->c", LEVI_CIVITA, a, b), np.cross(a, b))


def test_a_piece_that_turns_is_a_cloud_of_particles() -> None:
    """A rigid piece at a node against the particles of which it consists."""
    random = np.random.default_rng(4)
    spots = random.normal(size=(6, 3))
    spots -= spots.mean(axis=0)
    masses = np.full(6, 0.5)
    node, mode, turn = random.normal(size=(3, 3))
    inertia = sum(m * (s @ s * np.eye(3) - np.outer(s, s)) for m, s in zip(masses, spots, strict=True))
    piece = Fields.of(node[None], mode[None, None], turn[None, None], ())
    found = gram(piece, np.array([3.0]), inertia[None])
    displaced = mode + np.cross(turn, spots)
    cloud = Fields.of(node + spots, displaced[None], np.zeros((1, 6, 3)), ())
    assert piece.terms == cloud.terms
    np.testing.assert_allclose(found, gram(cloud, masses, np.zeros((6, 3, 3))), atol=1e-14)


def test_a_consistent_mass_matrix_of_elements_is_exact() -> None:
    """Linear elements of a rod: moments and modes against integrals of polynomials."""
    length, mass, n = 2.0, 3.0, 5
    x, h = np.linspace(0.0, length, n), length / (n - 1)
    M = np.zeros((n, n))
    for k in range(n - 1):
        M[k : k + 2, k : k + 2] += mass / length * h / 6.0 * np.array([[2.0, 1.0], [1.0, 2.0]])
    nodes, modes = np.zeros((n, 3)), np.zeros((1, n, 3))
    nodes[:, 0], modes[0, :, 1] = x, 3.0 * x - 1.0
    G = gram(Fields.of(nodes, modes, np.zeros((1, n, 3)), ()), M, np.zeros((n, 3, 3)))
    terms = [term for term in Fields.of(nodes, modes, np.zeros((1, n, 3)), ()).terms if term not in ((1, ()), (2, ()))]
    assert terms == [(0, ()), (1, (0,))]
    moments = mass * np.array([1.0, length / 2.0, length**2 / 3.0])
    exact = [
        [moments[0], moments[1], 3.0 * moments[1] - moments[0]],
        [moments[1], moments[2], 3.0 * moments[2] - moments[1]],
        [
            3.0 * moments[1] - moments[0],
            3.0 * moments[2] - moments[1],
            9.0 * moments[2] - 6.0 * moments[1] + moments[0],
        ],
    ]
    kept = [0, 1, 4]
    np.testing.assert_allclose(G[np.ix_(kept, kept)], exact, rtol=1e-13)


def test_integrals_in_place_of_masses_give_the_same_body() -> None:
    random = np.random.default_rng(8)
    nodes, modes, masses = random.normal(size=(7, 3)), random.normal(size=(2, 7, 3)), random.uniform(0.1, 1.0, 7)
    functions = np.vstack([np.ones(7), nodes.T, modes[0].T, modes[1].T])
    frame, origin = me.ReferenceFrame("A"), me.Point("P")
    options = {"nodes": nodes, "modes": modes, "stiffness": np.ones(2)}
    by_masses = kg.FlexibleBody("body", frame, origin, masses=masses, **options)
    by_integrals = kg.FlexibleBody("body", frame, origin, integrals=functions * masses @ functions.T, **options)
    mine, other = (dict(sorted(map(_named, body.parameters.items()))) for body in (by_masses, by_integrals))
    assert mine.keys() == other.keys()
    np.testing.assert_allclose([*mine.values()], [*other.values()], atol=1e-12)
    assert by_masses.data.mass == pytest.approx(masses.sum())


def _named(item: tuple[object, float]) -> tuple[str, float]:
    return str(item[0]), item[1]
