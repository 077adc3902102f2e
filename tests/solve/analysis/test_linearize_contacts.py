"""Linear models of systems with closed contacts, against differences of the motion in contact and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from messages import raises
from state_models import SLIDING, worn_block
from tolerances import EVALUATION, SOLVE
from trim_models import CAR, car, puck_solver

import kanegen as kg

DIFFERENCES = 2e-6
"""Central differences of step 1e-5 of rates of order 100 with third derivatives of order 1e4: truncation 1e-6."""


def test_quarter_car_on_a_kelvin_voigt_tire() -> None:
    """A = [[0, I], [-M^-1 K, -M^-1 C]] with the stiffness and damping of the tire."""
    m1, m2, k1, c1, k2, c2, g = CAR.values()
    z2 = -(m1 + m2) * g / k2
    linear = car().linearize(0.0, [z2 - m1 * g / k1, z2], [0.0, 0.0])
    M = np.diag([m1, m2])
    K, C = (np.array([[a, -a], [-a, a + b]]) for a, b in ((k1, k2), (c1, c2)))
    A = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(M, K), -np.linalg.solve(M, C)]])
    np.testing.assert_allclose(linear.A, A, rtol=EVALUATION)
    np.testing.assert_allclose(linear.B[:, 0], [0, 0, 1 / m1, 0], rtol=EVALUATION)
    assert linear.steady


FLOOR = ("x", "y", "v", "w")
STATES = {
    # name: (independent coordinates and speeds, x, y, v, w, expected modes)
    "slips on the floor": (FLOOR, (0.4, 0.2, 0.7, -0.5), {"floor": "slip", "wall": "open", "brake": "slip"}),
    "slips at the wall": (FLOOR, (0.99, 0.4, 0.7, -0.5), {"floor": "slip", "wall": "slip", "brake": "slip"}),
    "sticks to the floor": (("x", "y"), (0.3, 0.2, 0.0, 0.3 / 7), {"floor": "stick", "wall": "open", "brake": "slip"}),
}


def state(solver: kg.Solver, values: dict[str, float], t: float) -> tuple[np.ndarray, np.ndarray]:
    """On the floor: z and its rate follow."""
    x, y, v, w = (values[name] for name in FLOOR)
    return np.array([x, y, np.sin(2 * x) / 5]), np.array([v, w, 2 * v * np.cos(2 * x) / 5])


@pytest.mark.parametrize("case", STATES)
def test_puck_in_contact_against_differences(case: str) -> None:
    """z' of neighbors in the same modes, with differences of what `contacts` returns."""
    free, given, modes = STATES[case]
    solver, t, wear = puck_solver(), 0.3, 0.2
    at = dict(zip(FLOOR, given, strict=True))

    def rates(change: dict[str, float]) -> np.ndarray:
        values = {**at, "wear": wear, "drive": 1.5} | {
            k: ({**at, "wear": wear, "drive": 1.5}[k] + x) for k, x in change.items()
        }
        q, u = state(solver, values, t)
        contacts = solver.contacts(t, q, u, [values["drive"]], [values["wear"]])
        found = {name: contact.mode for name, contact in contacts.states.items()}
        assert modes.items() <= found.items()
        full = dict(
            zip(("x", "y", "z", "v", "w", "h", "wear"), [*contacts.qdot, *contacts.udot, *contacts.sdot], strict=True)
        )
        forces = contacts["floor"].force
        return np.array([*(full[name] for name in (*free, "wear")), forces[0], forces[1] + values["wear"]])

    q, u = state(solver, at, t)
    coordinates, speeds = [x for x in free if x in "xyz"], [x for x in free if x in "vwh"]
    linear = solver.linearize(t, q, u, [1.5], [wear], coordinates=coordinates, speeds=speeds)
    assert linear.states == (*free, "wear")
    h = 1e-5
    slopes = np.array([(rates({x: h}) - rates({x: -h})) / (2 * h) for x in (*free, "wear", "drive")]).T
    n = len(free) + 1
    np.testing.assert_allclose(linear.A, slopes[:n, :n], atol=DIFFERENCES, rtol=DIFFERENCES)
    np.testing.assert_allclose(linear.B[:, 0], slopes[:n, n], atol=DIFFERENCES, rtol=DIFFERENCES)
    np.testing.assert_allclose(linear.C_outputs, slopes[n:, :n], atol=DIFFERENCES, rtol=DIFFERENCES)
    np.testing.assert_allclose(linear.D_outputs[:, 0], slopes[n:, n], atol=DIFFERENCES, rtol=DIFFERENCES)


def test_latched_suspension_is_one_body_on_the_tire() -> None:
    """(m1 + m2) z'' + c2 z' + k2 z = push."""
    m1, m2, _, _, k2, c2, g = CAR.values()
    z2 = -(m1 + m2) * g / k2
    linear = car("lock").linearize(0.0, [z2 - 0.1, z2], [0.0, 0.0], coordinates=["z2"], speeds=["v2"])
    np.testing.assert_allclose(linear.A, [[0, 1], [-k2 / (m1 + m2), -c2 / (m1 + m2)]], rtol=SOLVE)
    np.testing.assert_allclose(linear.B[:, 0], [0, 1 / (m1 + m2)], rtol=SOLVE)


def test_forces_in_the_rates_of_states_change_with_the_contact() -> None:
    """h' = wear N |v|, with N = m g: the block stays on the floor."""
    block, speed = kg.build(worn_block(), functions="all"), 2.0
    linear = block.linearize(0.0, [0.0, 0.0], [speed, 0.0], s=[0.0, 0.0])
    assert linear.states == ("x", "v", "h", "z")
    expected = np.zeros((4, 4))
    expected[0, 1], expected[2, 1] = 1.0, SLIDING["wear"] * SLIDING["m"] * SLIDING["g"]
    np.testing.assert_allclose(linear.A, expected, atol=EVALUATION)


@pytest.mark.parametrize(
    ("q", "u", "names"),
    [
        ([0.0, 0.0], [0.0, 0.0], ("tire", "gap", "0")),
        ([0.0, -1e-3], [0.0, 0.0], ()),
        ([0.0, 1e-3], [0.0, 0.0], ()),
        ([0.0, -1e-3], [0.0, 1e-3 * CAR["k2"] / CAR["c2"]], ("tire", "force")),
    ],
)
def test_touching_and_released_tires_have_no_linear_model(
    q: list[float], u: list[float], names: tuple[str, ...]
) -> None:
    if not names:
        assert car().linearize(0.0, q, u).states == ("z1", "z2", "v1", "v2")
        return
    with raises(kg.SolveError, "quarter_car", *names):
        car().linearize(0.0, q, u)


def test_switching_contacts_are_named() -> None:
    """A block that strikes the floor, and a puck at the limit of friction.

    A block that slips at 5 nm/s, where nothing moves faster, slips: no speed is small by itself.
    """
    block = kg.build(worn_block(), functions="all")
    assert block.contacts(0.0, [0.0, 0.0], [5e-9, 0.0], s=[0.0, 0.0])["floor"].mode == "slip"
    block.linearize(0.0, [0.0, 0.0], [5e-9, 0.0], s=[0.0, 0.0])
    with raises(kg.SolveError, "worn block", "floor", "impact", "-0.1"):
        block.linearize(0.0, [0.0, 0.0], [1.0, -0.1], s=[0.0, 0.0])
    puck, t, wear = puck_solver(), 0.3, [0.2]
    q, u = state(puck, dict(zip(FLOOR, STATES["sticks to the floor"][1], strict=True)), t)
    sticks, slips = 1.5, 50.0
    while slips - sticks > 1e-14 * slips:
        middle = (sticks + slips) / 2
        held = puck.contacts(t, q, u, [middle], wear)["floor"].mode == "stick"
        sticks, slips = (middle, slips) if held else (sticks, middle)
    with raises(kg.SolveError, "puck", "floor", "stick", "friction"):
        puck.linearize(t, q, u, [sticks], wear)
