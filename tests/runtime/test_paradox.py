"""Painleve's paradox in C: which solution is chosen among several, and the impacts without collision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from contact_rows import (
    NO_MODE,
    OK,
    OPEN,
    PARADOX,
    RHS,
    SETTLE,
    SEVERAL_MODES,
    SLIP,
    STICK,
    Case,
    Contact,
    Result,
    Runtime,
    spd,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as some
from scipy.integrate import solve_ivp
from scipy_calls import Crossing
from tolerances import CONTACT_CONDITIONS, CONTACT_SOLVE

from kanegen.codes import Paradox

seeds = some.integers(0, 2**32 - 1)
G = 9.81


def rod(
    angle: float, mu: float, slip: float, spin: float = 0.0, e: float = 0.0, paradox: Paradox = Paradox.IMPACT
) -> Case:
    """A uniform rod (mass 1, half-length 1) whose lower tip slides on a rough floor: u = (x', y', angle')."""
    c, s = np.cos(angle), np.sin(angle)
    contact = Contact([0, 1, -c], ([1, 0, s],), mu=mu, bias=(spin**2 * s, spin**2 * c), restitution=e, paradox=paradox)
    u = [slip - s * spin, c * spin, spin]
    return Case(np.diag([1.0, 1.0, 1.0 / 3.0]), [0.0, -G, 0.0], (contact,), u=u)


def darboux_keller(case: Case, e: float) -> np.ndarray:
    """Impulses of one contact with one direction of slip, from the dynamics in the normal impulse P, by SciPy.

    Slip, then stick until the normal velocity returns to zero, then restitution until the normal force has returned e^2
    of the energy absorbed (Stronge).
    """
    D, mu, start = case.D, case.contacts[0].friction[1], case.rates
    heading = np.sign(start[1])

    def slope(_: float, y: np.ndarray) -> np.ndarray:
        """Derivatives of the two velocities, the work of the normal force, and the impulses."""
        rates = np.array([1.0, -mu * heading])
        return np.array([*(D @ rates), y[0], *rates])

    stops = Crossing(lambda _, y: y[1] * heading)
    slip = solve_ivp(slope, (0.0, 1e3), [*start, 0.0, 0.0, 0.0], events=stops, rtol=1e-12, atol=1e-14).y[:, -1]
    stick = np.array([1.0, -D[0, 1] / D[1, 1]])
    assert abs(stick[1]) <= mu  # friction can hold the contact from here on
    response = float((D @ stick)[0])
    compressed = -slip[0] / response
    absorbed = -(slip[2] + slip[0] * compressed / 2)
    returned = np.sqrt(2.0 * e**2 * absorbed / response)
    return np.asarray(slip[3:] + (compressed + returned) * stick)


def energy(case: Case, u: np.ndarray) -> float:
    return float(u @ case.Q @ u) / 2


@pytest.mark.parametrize("mu", [1.2, 1.5, 2.0])
@pytest.mark.parametrize("spin", [0.5, 8.0])
def test_painleves_rod_detaches_or_is_struck(runtime: Runtime, mu: float, spin: float) -> None:
    """``A = 1 + 3 c^2 + 3 mu d s c`` is negative only for mu > 4/3; there b > 0 detaches and b < 0 stops the slip."""
    outcomes = set()
    for angle in np.linspace(0.2, 1.5, 40):
        c, s = np.cos(angle), np.sin(angle)
        A, b = 1 + 3 * c**2 - 3 * mu * s * c, spin**2 * s - G
        case = rod(angle, mu, -1.0, spin)
        result = runtime(case, SETTLE | PARADOX)
        assert result.status == OK
        if A > 0:
            assert result.modes == [SLIP if b < 0 else OPEN]
        elif b > 0:
            assert result.modes == [OPEN]
            assert not result.force.any()
        else:
            assert result.modes == [STICK]
            assert result.u == pytest.approx(case.speeds + case.M @ case.W.T @ result.force, abs=CONTACT_SOLVE)
            np.testing.assert_allclose(case.at(u=result.u).rates, 0.0, atol=CONTACT_SOLVE)
        if A <= 0:
            outcomes.add(result.modes[0])
    assert outcomes == (set() if mu < 4 / 3 else {OPEN if spin > 1.0 else STICK})


@pytest.mark.parametrize(("spin", "status"), [(0.5, NO_MODE), (8.0, SEVERAL_MODES)])
def test_without_a_choice_a_paradox_is_an_error(runtime: Runtime, spin: float, status: int) -> None:
    case = rod(np.arctan(2.0), 2.0, -1.0, spin, paradox=Paradox.ERROR)
    assert runtime(case, SETTLE | PARADOX).status == status


@pytest.mark.parametrize("e", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("angle", [0.9, 1.1, 1.2])
def test_impulses_are_those_of_darboux_and_keller(runtime: Runtime, angle: float, e: float) -> None:
    case = rod(angle, 2.0, -1.5, e=e)
    result = runtime(case, SETTLE | PARADOX)
    assert result.status == OK
    np.testing.assert_allclose(result.force, darboux_keller(case, e), rtol=CONTACT_CONDITIONS)
    assert energy(case, result.u) < energy(case, case.speeds)
    assert result.modes == [OPEN if e else STICK]


def paradoxical(seed: int, n: int, k: int, directions: int) -> Case:
    """Random contacts that slip so that friction presses them, under loads that close them: A is often negative."""
    rng = np.random.default_rng(seed)
    Q, W = spd(rng, n), rng.normal(size=(k, n))
    T = [[row + rng.normal(size=n) for _ in range(directions)] for row in W]
    M = np.linalg.inv(Q)
    slips = [[np.sign(t @ M @ row) * rng.uniform(0.1, 2.0) for t in own] for row, own in zip(W, T, strict=True)]
    rows = np.concatenate([W, *T])
    u = np.linalg.lstsq(rows, np.concatenate([np.zeros(k), *slips]), rcond=None)[0]
    contacts = [
        Contact(row, tuple(own), mu=rng.uniform(1.0, 6.0), paradox=Paradox.IMPACT)
        for row, own in zip(W, T, strict=True)
    ]
    return Case(Q, -M @ W.sum(axis=0) * rng.uniform(0.5, 5.0), tuple(contacts), u=u)


def resolved(runtime: Runtime, case: Case) -> Result:
    """The impact without collision of a case without finite forces."""
    contacts = tuple(replace(contact, paradox=Paradox.ERROR) for contact in case.contacts)
    assume(runtime(case.at(contacts=contacts), SETTLE).status == NO_MODE)
    return runtime(case, SETTLE | PARADOX)


@settings(deadline=None, max_examples=40)
@given(seed=seeds, n=some.integers(2, 5))
def test_one_contact_stops(runtime: Runtime, seed: int, n: int) -> None:
    case = paradoxical(seed, n, 1, 1)
    result = resolved(runtime, case)
    assert result.status == OK
    np.testing.assert_allclose(case.at(u=result.u).rates, 0.0, atol=CONTACT_CONDITIONS)
    np.testing.assert_allclose(result.force, darboux_keller(case, 0.0), rtol=CONTACT_CONDITIONS)
    assert energy(case, result.u) < energy(case, case.speeds)
    assert runtime(case.at(u=result.u), SETTLE | RHS, modes=result.modes, direction=result.direction).status == OK


@settings(deadline=None, max_examples=100)
@given(seed=seeds, k=some.integers(1, 3), directions=some.integers(1, 2))
def test_several_contacts_satisfy_the_law_of_impact(runtime: Runtime, seed: int, k: int, directions: int) -> None:
    case = paradoxical(seed, k * (1 + directions) + 1, k, directions)
    result = resolved(runtime, case)
    assert result.status == OK or directions == 2  # in a plane slip in another direction may not be found
    assume(result.status == OK)
    rows = case.at(u=result.u).rates.reshape(k, 1 + directions)
    impulses = result.force.reshape(k, 1 + directions)
    small = CONTACT_CONDITIONS * (1 + np.abs(impulses).max())
    for contact, (v, *slip), (P, *friction) in zip(case.contacts, rows, impulses, strict=True):
        mu, size = contact.friction[1], np.linalg.norm(slip)
        assert min(v, P) >= -small
        assert abs(v * P) <= small
        assert np.linalg.norm(friction) <= mu * P + small
        if size > small:  # slip goes on against the largest friction
            np.testing.assert_allclose(friction, -mu * P * np.array(slip) / size, atol=1e-6 * (1 + P))
    assert energy(case, result.u) < energy(case, case.speeds)
    assert np.abs(result.u - case.speeds).max() > 1e-3 * np.abs(case.rates).max()
