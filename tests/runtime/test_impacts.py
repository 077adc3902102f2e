"""Impacts in C: restitution, several contacts at once, impulsive friction, imposed constraints, redundancy."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import mpmath
import numpy as np
import pytest
from ccompile import (
    SANITIZERS,
    Compiler,
    compile_source,
    host_source,
    run_program,
    with_each_c_sanitizer,
    with_each_compiler,
)
from contact_rows import (
    BILATERAL,
    CLOSED,
    COMPLIANT,
    IMPACT,
    LATCH,
    LOAD,
    OK,
    OPEN,
    RHS,
    SETTLE,
    SLIP,
    STABILIZED,
    STICK,
    Case,
    Contact,
    Runtime,
    spd,
)
from hypothesis import given, settings
from hypothesis import strategies as some
from tolerances import CONTACT_CONDITIONS, CONTACT_SOLVE, ENERGY_OF_IMPACT

seeds = some.integers(0, 2**32 - 1)
G = 9.81


def energy(case: Case, u: np.ndarray) -> float:
    return float(u @ case.Q @ u) / 2


@settings(deadline=None, max_examples=50)
@given(seed=seeds, n=some.integers(1, 5), e=some.floats(0.0, 1.0))
def test_energy_lost_in_one_impact(runtime: Runtime, seed: int, n: int, e: float) -> None:
    rng = np.random.default_rng(seed)
    row = rng.normal(size=n)
    case = Case(spd(rng, n), np.zeros(n), (Contact(row, restitution=e),))
    u = rng.normal(size=n)
    u -= case.M @ row * (row @ u + rng.uniform(0.5, 2.0)) / case.D[0, 0]
    case = case.at(u=u)
    v = float(row @ u)
    result = runtime(case, IMPACT)
    lost = energy(case, u) - energy(case, result.u)
    assert lost == pytest.approx((1 - e**2) * v**2 / (2 * case.D[0, 0]), rel=ENERGY_OF_IMPACT, abs=ENERGY_OF_IMPACT)
    assert row @ result.u == pytest.approx(-e * v, rel=CONTACT_SOLVE, abs=CONTACT_SOLVE)
    assert result.force == pytest.approx([-(1 + e) * v / case.D[0, 0]], rel=CONTACT_SOLVE)
    assert result.modes == [OPEN if e * abs(v) > 1e-9 else CLOSED]


def exact_impact(case: Case) -> np.ndarray:
    """Speeds after the impact from 40 digits: every set of contacts that may have impulses."""
    with mpmath.workdps(40):
        W, u = mpmath.matrix(case.W.tolist()), mpmath.matrix(case.speeds.tolist())
        response = mpmath.inverse(mpmath.matrix(case.Q.tolist())) * W.T
        D, rates, n = W * response, W * u, len(case.contacts)
        b = [v + c.restitution * min(v, mpmath.mpf(0)) for v, c in zip(rates, case.contacts, strict=True)]
        for active in (active for size in range(n + 1) for active in combinations(range(n), size)):
            impulse = mpmath.zeros(n, 1)
            if active:
                part = mpmath.matrix([[D[i, j] for j in active] for i in active])
                solved = mpmath.lu_solve(part, mpmath.matrix([-b[i] for i in active]))
                for i, value in zip(active, solved, strict=True):
                    impulse[i] = value
            w = [b[i] + (D[i, :] * impulse)[0] for i in range(n)]
            if all(x >= 0 for x in impulse) and all(x >= -(mpmath.mpf(10) ** -30) for x in w):
                return np.array([float(x) for x in u + response * impulse])
    raise AssertionError("no solution: D is positive definite, so there is one")


@settings(deadline=None, max_examples=40)
@given(seed=seeds, k=some.integers(1, 4))
def test_simultaneous_impacts(runtime: Runtime, seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    n = k + 1
    e = rng.uniform(0, 1, size=k)
    contacts = tuple(Contact(row, restitution=x) for row, x in zip(rng.normal(size=(k, n)), e, strict=True))
    case = Case(spd(rng, n), np.zeros(n), contacts, u=rng.normal(size=n))
    result = runtime(case, IMPACT)
    assert result.status == OK
    assert result.u == pytest.approx(exact_impact(case), abs=CONTACT_CONDITIONS)


@settings(deadline=None, max_examples=60)
@given(seed=seeds, n=some.integers(1, 4), k=some.integers(1, 7), e=some.floats(0.0, 1.0))
def test_energy_does_not_grow_without_friction(runtime: Runtime, seed: int, n: int, k: int, e: float) -> None:
    # More contacts than speeds: redundant ones; the speeds are those of 0 <= v+ + e v- all the same.
    rng = np.random.default_rng(seed)
    u = rng.normal(size=n)
    rows = rng.normal(size=(k, n))
    rows *= -np.sign(rows @ u)[:, None]
    case = Case(spd(rng, n), np.zeros(n), tuple(Contact(row, restitution=e) for row in rows), u=u)
    result = runtime(case, IMPACT)
    assert result.status == OK
    assert energy(case, result.u) <= energy(case, u) * (1 + CONTACT_SOLVE)
    gained = rows @ result.u + e * (rows @ u)
    assert gained.min() >= -CONTACT_CONDITIONS
    assert result.force.min() >= -CONTACT_CONDITIONS
    assert np.abs(gained * result.force).max() <= CONTACT_CONDITIONS * (1 + result.force.max())


@pytest.mark.parametrize(("e", "after"), [(1.0, (-1 / 3, 2 / 3, 2 / 3)), (0.0, (1 / 3, 1 / 3, 1 / 3))])
def test_cradle_of_three_balls(runtime: Runtime, e: float, after: tuple[float, ...]) -> None:
    # All contacts strike at the same instant: Moreau's law gives (-1, 2, 2)/3, not the (0, 0, 1) of impacts in turn.
    contacts = (Contact([-1.0, 1.0, 0.0], restitution=e), Contact([0.0, -1.0, 1.0], restitution=e))
    case = Case(np.eye(3), np.zeros(3), contacts, u=[1.0, 0.0, 0.0])
    assert runtime(case, IMPACT).u == pytest.approx(after, rel=CONTACT_SOLVE)


def test_falling_table_strikes_with_four_legs(runtime: Runtime) -> None:
    legs = tuple(Contact([1.0, x, y], restitution=0.5) for x in (1, -1) for y in (1, -1))
    result = runtime(Case(np.diag([3.0, 1.0, 1.0]), np.zeros(3), legs, u=[-2.0, 0.0, 0.0]), IMPACT)
    assert result.u == pytest.approx([1.0, 0.0, 0.0], abs=CONTACT_SOLVE)
    assert result.force == pytest.approx([3.0 * 3.0 / 4] * 4, rel=CONTACT_SOLVE)
    assert result.modes == [OPEN] * 4


def test_resting_contacts_take_part(runtime: Runtime) -> None:
    # A ball falls on a plate that rests on the floor: the plate stays, the floor takes the impulse.
    contacts = (Contact([1.0, 0.0], restitution=0.9), Contact([-1.0, 1.0], restitution=0.5))
    case = Case(np.diag([4.0, 1.0]), [-G, -G], contacts, u=[0.0, -2.0])
    result = runtime(case, IMPACT | SETTLE, modes=[CLOSED, OPEN], direction=np.zeros((2, 2)))
    assert result.u == pytest.approx([0.0, 1.0], abs=CONTACT_SOLVE)
    assert result.force == pytest.approx([3.0, 3.0], rel=CONTACT_SOLVE)
    assert result.modes == [CLOSED, OPEN]


@pytest.mark.parametrize("pull", [0.2, 0.9])
@pytest.mark.parametrize("directions", [1, 2])
def test_impulsive_friction_sticks_or_slips(runtime: Runtime, pull: float, directions: int) -> None:
    mu, fall = 0.4, 2.0
    slip = mu * fall * pull / 0.5 * np.array([0.6, 0.8] if directions == 2 else [1.0])
    rows = np.eye(3)[: directions + 1]
    contact = Contact(rows[0], tuple(rows[1:]), mu=mu)
    u = np.zeros(3)
    u[0], u[1 : 1 + directions] = -fall, slip
    result = runtime(Case(np.eye(3), np.zeros(3), (contact,), u=u), IMPACT)
    left = max(0.0, 1 - 0.5 / pull)
    assert result.u[1 : 1 + directions] == pytest.approx(slip * left, abs=CONTACT_SOLVE)
    assert result.modes == [SLIP if left else STICK]


@settings(deadline=None, max_examples=60)
@given(seed=seeds, k=some.integers(1, 3))
def test_impulses_obey_coulomb(runtime: Runtime, seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    n = 3 * k + 1
    rows = [rng.normal(size=(3, n)) for _ in range(k)]
    case = Case(spd(rng, n), np.zeros(n), tuple(Contact(w[0], tuple(w[1:]), restitution=0.5) for w in rows))
    sizes = np.linalg.eigvalsh(case.D)
    mu = 0.5 * sizes[0] / sizes[-1]
    contacts = tuple(Contact(w[0], tuple(w[1:]), restitution=0.5, mu=mu) for w in rows)
    before = rng.normal(size=3 * k)
    before[::3] = -np.abs(before[::3])
    case = case.at(contacts=contacts, u=np.linalg.lstsq(case.W, before, rcond=None)[0])
    result = runtime(case, IMPACT)
    assert result.status == OK
    after = case.W @ result.u
    for i in range(0, 3 * k, 3):
        normal, friction, slip = result.force[i], result.force[i + 1 : i + 3], after[i + 1 : i + 3]
        assert normal >= -CONTACT_CONDITIONS
        assert after[i] + 0.5 * before[i] >= -CONTACT_CONDITIONS
        assert abs(normal * (after[i] + 0.5 * before[i])) <= CONTACT_CONDITIONS
        assert np.linalg.norm(friction) <= mu * normal + CONTACT_CONDITIONS
        assert np.abs(friction * np.linalg.norm(slip) + mu * normal * slip).max() <= CONTACT_CONDITIONS


def test_imposed_latch_stops_the_motion(runtime: Runtime) -> None:
    Q = np.array([[2.0, 0.3], [0.3, 1.0]])
    latch = Contact([1.0, 1.0], law=LATCH, closed=1)
    result = runtime(Case(Q, [0.0, 0.0], (latch,), u=[1.0, 2.0]), IMPACT | SETTLE)
    row = np.array([1.0, 1.0])
    M = np.linalg.inv(Q)
    expected = np.array([1.0, 2.0]) - M @ row * 3.0 / (row @ M @ row)
    assert result.u == pytest.approx(expected, rel=CONTACT_SOLVE)
    assert result.modes == [CLOSED]


def test_blow_on_a_resting_contact_does_not_rebound(runtime: Runtime) -> None:
    case = Case(np.eye(1), [-G], (Contact([1.0], restitution=0.9),), u=[-3.0])
    result = runtime(case, IMPACT | SETTLE, modes=[CLOSED], direction=[0, 0], before=[0.0])
    assert (result.u[0], result.modes) == (pytest.approx(0.0, abs=CONTACT_SOLVE), [CLOSED])
    # A contact that was approached before the blow rebounds with that speed only.
    struck = runtime(case.at(u=[-5.0]), IMPACT, before=[-2.0])
    assert struck.u == pytest.approx([1.8], rel=CONTACT_SOLVE)


def test_finite_forces_have_no_impulse(runtime: Runtime) -> None:
    contacts = (
        Contact([1.0, 0.0], law=COMPLIANT, gap=-0.1, load=5.0),
        Contact(None, ([1.0, 1.0],), law=LOAD, load=3.0, mu=0.5),
        Contact([0.0, 1.0], restitution=0.0),
    )
    case = Case(np.eye(2), [0.0, 0.0], contacts, u=[-1.0, -1.0])
    result = runtime(case, IMPACT | SETTLE, modes=[CLOSED, STICK, OPEN], direction=[[0, 0], [1, 0], [0, 0]])
    assert result.u == pytest.approx([-1.0, 0.0], abs=CONTACT_SOLVE)
    assert result.modes[1] == SLIP


def test_stabilized_contact_keeps_its_rate_in_an_impact_elsewhere(runtime: Runtime) -> None:
    contacts = (
        Contact([1.0, 0.0], law=STABILIZED, gap=-0.1, target=(10.0,)),
        Contact([-1.0, 1.0], restitution=0.5),
    )
    case = Case(np.eye(2), [0.0, 0.0], contacts, u=[-0.2, -1.0])
    result = runtime(case, IMPACT, modes=[CLOSED, OPEN], direction=np.zeros((2, 2)))
    assert result.u == pytest.approx([-0.2, -0.2 + 0.5 * 0.8], rel=CONTACT_SOLVE)


def test_guide_with_friction_takes_part(runtime: Runtime) -> None:
    # A slider in a guide is struck obliquely: the guide's impulse brakes it, whichever side it leans on.
    for side in (-1.0, 1.0):
        contact = Contact([0.0, 1.0], ([1.0, 0.0],), law=BILATERAL, mu=0.25)
        case = Case(np.eye(2), [0.0, 0.0], (contact,), u=[2.0, side])
        assert runtime(case, IMPACT).u == pytest.approx([1.75, 0.0], abs=CONTACT_SOLVE)


def test_plastic_impacts_on_request(runtime: Runtime) -> None:
    case = Case(np.eye(1), [-G], (Contact([1.0], restitution=0.8),), u=[-1e-3])
    result = runtime(case, IMPACT | SETTLE | RHS, plastic=True)
    assert (result.u[0], result.modes) == (pytest.approx(0.0, abs=CONTACT_SOLVE), [CLOSED])
    assert result.udot == pytest.approx([0.0], abs=CONTACT_SOLVE)


# --- compilers -----------------------------------------------------------------------------------------------


@with_each_compiler
def test_strict_compilers_accept_the_contact_headers(compiler: Compiler, tmp_path: Path) -> None:
    compile_source(compiler, '#include "kg_impact.h"\nint main(void) { return 0; }\n', tmp_path / "contacts")


@with_each_c_sanitizer
def test_contacts_under_sanitizers(compiler: Compiler, tmp_path: Path) -> None:
    assert run_program(compiler, host_source("contact_rows_sanitized.c"), tmp_path, *SANITIZERS).startswith("0 ")
