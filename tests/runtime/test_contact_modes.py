"""Contacts in C: forces in given modes, modes by complementarity, friction, Painleve, redundancy, guards."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from contact_rows import (
    BILATERAL,
    CLOSED,
    COMPLIANT,
    GUARDS,
    LATCH,
    LOAD,
    NO_MODE,
    OK,
    OPEN,
    PENETRATED,
    RHS,
    SETTLE,
    SEVERAL_MODES,
    SLIP,
    STABILIZED,
    STICK,
    Case,
    Contact,
    Result,
    Runtime,
    spd,
)
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy.optimize import nnls
from tolerances import CONTACT_CONDITIONS, CONTACT_SOLVE

seeds = some.integers(0, 2**32 - 1)
G = 9.81


def least_constraint(case: Case) -> np.ndarray:
    """u' of Gauss's principle with inequalities (Moreau): the dual is a nonnegative least-squares problem."""
    L = np.linalg.cholesky(case.M)
    b = case.free - case.section("target")
    A = (case.W @ L).T
    force, _ = nnls(A, -np.linalg.lstsq(A.T, b, rcond=None)[0], maxiter=1000)
    return np.asarray(case.a + case.M @ case.W.T @ force)


def check_conditions(case: Case, result: Result, *, starts: bool = True) -> None:
    """Signorini's and Coulomb's conditions of rigid contacts, from the forces alone."""
    w = case.free + case.D @ result.force - case.section("target")
    size = np.abs(case.free).max() + np.abs(case.rates).max() + 1.0
    tolerance = CONTACT_CONDITIONS * size
    row = 0
    for k, contact in enumerate(case.contacts):
        n = len(contact.rows)
        normal, acceleration = result.force[row], w[row]
        assert normal >= -tolerance
        assert acceleration >= -tolerance
        assert abs(normal * acceleration) <= tolerance * size
        if n > 1:
            mu = contact.friction[1]
            force, slip = result.force[row + 1 : row + n], w[row + 1 : row + n]
            assert np.linalg.norm(force) <= mu * normal + tolerance
            if result.modes[k] == SLIP:
                moving = slip if starts else case.rates[row + 1 : row + n]
                along = np.linalg.norm(moving)
                assert np.abs(force * along + mu * normal * moving).max() <= tolerance * size
            elif result.modes[k] == STICK:
                assert np.abs(slip).max() <= tolerance
        row += n
    assert result.udot == pytest.approx(case.a + case.M @ case.W.T @ result.force, abs=tolerance)


# --- normals -------------------------------------------------------------------------------------------------


def test_ball_on_the_floor(runtime: Runtime) -> None:
    ball = Case(np.array([[2.0]]), [-G], (Contact([1.0]),))
    resting = runtime(ball)
    assert (resting.status, resting.modes) == (OK, [CLOSED])
    assert resting.force == pytest.approx([2 * G], rel=CONTACT_SOLVE)
    assert resting.udot == pytest.approx([0.0], abs=CONTACT_SOLVE)
    assert runtime(ball.at(a=[G])).modes == [OPEN]
    assert runtime(ball.at(u=[0.1])).modes == [OPEN]
    assert runtime(ball.at(contacts=(Contact([1.0], gap=0.2),))).modes == [OPEN]


@settings(deadline=None, max_examples=150)
@given(seed=seeds, n=some.integers(1, 6), k=some.integers(1, 9))
def test_normals_obey_the_principle_of_least_constraint(runtime: Runtime, seed: int, n: int, k: int) -> None:
    # More rows than speeds, and repeated rows: redundant contacts.
    rng = np.random.default_rng(seed)
    rows = list(rng.normal(size=(k, n)))
    rows[-1] = rows[0] if k > 2 and seed % 2 else rows[-1]
    case = Case(spd(rng, n), rng.normal(size=n), tuple(Contact(row) for row in rows))
    result = runtime(case)
    assert result.status == OK
    assert result.udot == pytest.approx(least_constraint(case), abs=CONTACT_CONDITIONS)
    check_conditions(case, result)


def test_table_on_four_legs_shares_its_weight(runtime: Runtime) -> None:
    corners = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    Q = np.diag([3.0, 1.0, 1.0])
    legs = tuple(Contact([1.0, x, y]) for x, y in corners)
    level = runtime(Case(Q, [-G, 0.0, 0.0], legs))
    assert level.modes == [CLOSED] * 4
    assert level.force == pytest.approx([3 * G / 4] * 4, rel=CONTACT_SOLVE)
    # A torque that makes the smallest multipliers tensile at one leg: it carries nothing, the table stays at rest.
    tilted = runtime(Case(Q, [-G, 0.8 * 3 * G, 0.8 * 3 * G * 0.5], legs), SETTLE | RHS | GUARDS)
    assert tilted.status == OK
    assert tilted.force.min() >= 0.0
    assert tilted.udot == pytest.approx([0.0] * 3, abs=1e-8)
    assert (tilted.guards > 0.0).all()


def test_table_on_four_rough_legs_slides_and_turns(runtime: Runtime) -> None:
    # Normal forces are redundant and friction depends on them: the smallest ones are meant, not three legs of four.
    h, mu, legs = 0.3, 0.4, [(x, y) for x in (0.5, -0.5) for y in (0.5, -0.5)]
    rows = [([0, 0, 1, y, -x, 0], ([1, 0, 0, 0, -h, -y], [0, 1, 0, h, 0, x])) for x, y in legs]
    contacts = tuple(Contact(normal, tangents, mu=mu) for normal, tangents in rows)
    case = Case(np.diag([1, 1, 1, 1 / 3, 1 / 3, 1 / 2]), [0, 0, -G, 0, 0, 0], contacts, u=[1, 0, 0, 0, 0, 3])
    result = runtime(case)
    assert (result.status, result.modes) == (OK, [SLIP] * 4)
    assert result.udot[2:5] == pytest.approx([0.0] * 3, abs=CONTACT_CONDITIONS)
    normal = result.force[::3]
    slips = case.rates.reshape(4, 3)[:, 1:]
    friction = -mu * normal[:, None] * slips / np.linalg.norm(slips, axis=1)[:, None]
    assert result.force.reshape(4, 3)[:, 1:] == pytest.approx(friction, rel=CONTACT_SOLVE)
    # Least norm: orthogonal to the distribution of normal forces that, with its friction, accelerates no leg.
    response = np.kron(np.eye(4), [[1.0], [0.0], [0.0]])
    response[[1, 4, 7, 10], range(4)], response[[2, 5, 8, 11], range(4)] = (friction / normal[:, None]).T
    idle = np.linalg.svd((case.D @ response)[::3])[2][-1]
    assert normal @ idle == pytest.approx(0.0, abs=CONTACT_CONDITIONS)


@pytest.mark.parametrize(
    ("gap", "rate", "push", "mode"),
    [
        (-0.1, 0.0, -1.0, CLOSED),
        (-0.1, 0.0, 50.0, PENETRATED),
        (0.0, -0.3, -1.0, CLOSED),
        (0.0, 0.3, -1.0, OPEN),
        (0.1, -0.3, -1.0, OPEN),
    ],
)
def test_stabilized_contact_acts_where_penetrated_and_compressive(
    runtime: Runtime, gap: float, rate: float, push: float, mode: int
) -> None:
    target = -300.0 * rate - 100.0 * gap
    contact = Contact([1.0], law=STABILIZED, gap=gap, normal_rate=rate, target=(target,))
    case = Case(np.array([[2.0]]), [push], (contact,))
    result = runtime(case)
    assert result.modes == [mode]
    assert result.udot == pytest.approx([target if mode == CLOSED else push], rel=CONTACT_SOLVE)
    assert mode != CLOSED or result.force[0] == pytest.approx(2.0 * (target - push), rel=CONTACT_SOLVE)


@pytest.mark.parametrize(("load", "mode"), [(3.0, STICK), (-3.0, PENETRATED)])
def test_compliant_contact_pushes_only(runtime: Runtime, load: float, mode: int) -> None:
    contact = Contact([0.0, 1.0], ([1.0, 0.0],), law=COMPLIANT, gap=-0.1, load=load, mu=0.5)
    result = runtime(Case(np.diag([2.0, 2.0]), [0.1, -G], (contact,)))
    assert result.modes == [mode]
    assert result.udot == pytest.approx([0.0, -G + load / 2] if load > 0 else [0.1, -G], abs=CONTACT_SOLVE)


def test_latch_is_two_sided(runtime: Runtime) -> None:
    for push in (-2.0, 2.0):
        case = Case(np.eye(1), [push], (Contact([1.0], law=LATCH, closed=1),))
        result = runtime(case)
        assert (result.modes, result.force) == ([CLOSED], pytest.approx([-push], rel=CONTACT_SOLVE))
        assert runtime(case, modes=[OPEN]).udot == pytest.approx([push], rel=CONTACT_SOLVE)


# --- friction ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("directions", [1, 2])
def test_block_under_a_given_load(runtime: Runtime, directions: int) -> None:
    tangents = tuple(np.eye(directions))
    pull = np.array([2.0, 1.0])[:directions]
    for share in (0.9, 1.1):
        contact = Contact(None, tangents, law=LOAD, load=np.linalg.norm(pull) / 0.5 / share, mu=(0.5, 0.4))
        result = runtime(Case(np.eye(directions), pull, (contact,)))
        slips = share > 1.0
        assert result.modes == [SLIP if slips else STICK]
        kinetic = 0.4 / 0.5 / share
        assert result.udot == pytest.approx(pull * (1 - kinetic) if slips else 0 * pull, abs=CONTACT_CONDITIONS)


def test_friction_opposes_the_slip_velocity(runtime: Runtime) -> None:
    contact = Contact([0, 0, 1.0], ([1.0, 0, 0], [0, 1.0, 0]), mu=0.3)
    case = Case(np.eye(3), [0, 0, -G], (contact,), u=[-3.0, 4.0, 0.0])
    result = runtime(case)
    assert result.modes == [SLIP]
    assert result.udot == pytest.approx([0.3 * G * 0.6, -0.3 * G * 0.8, 0.0], rel=CONTACT_SOLVE, abs=CONTACT_SOLVE)


def random_frictional(rng: np.random.Generator, k: int, directions: int, coupling: float) -> Case:
    """k contacts at rest in a plane or along lines; mu is ``coupling`` times what may couple N to the friction."""
    n = k * (1 + directions) + 1
    rows = [rng.normal(size=(1 + directions, n)) for _ in range(k)]
    case = Case(spd(rng, n), 3 * rng.normal(size=n), tuple(Contact(w[0], tuple(w[1:])) for w in rows))
    sizes = np.linalg.eigvalsh(case.D)
    mu = coupling * sizes[0] / sizes[-1]
    return case.at(contacts=tuple(Contact(w[0], tuple(w[1:]), mu=mu) for w in rows))


@settings(deadline=None, max_examples=150)
@given(seed=seeds, k=some.integers(1, 3), directions=some.integers(1, 2))
def test_coulomb_at_rest(runtime: Runtime, seed: int, k: int, directions: int) -> None:
    case = random_frictional(np.random.default_rng(seed), k, directions, 0.5)
    result = runtime(case)
    assert result.status == OK
    check_conditions(case, result)


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_many_contacts_with_friction(runtime: Runtime, seed: int, directions: int) -> None:
    # Too many sets of modes to try them all, and pivoting alone fails for a third of such cases.
    case = random_frictional(np.random.default_rng(seed), 16, directions, 0.5)
    result = runtime(case)
    assert result.status == OK
    check_conditions(case, result)


def test_round_table_on_forty_legs(runtime: Runtime) -> None:
    legs = tuple(Contact([1.0, np.cos(x), np.sin(x)]) for x in np.linspace(0, 2 * np.pi, 40, endpoint=False))
    case = Case(np.eye(3), [-G, 5.0, 7.0], legs)
    result = runtime(case)
    assert result.udot == pytest.approx(least_constraint(case), abs=CONTACT_CONDITIONS)
    check_conditions(case, result)


@settings(deadline=None, max_examples=100)
@given(seed=seeds, k=some.integers(1, 3), directions=some.integers(1, 2))
def test_coulomb_while_slipping(runtime: Runtime, seed: int, k: int, directions: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_frictional(rng, k, directions, 0.5)
    rates = rng.normal(size=len(case.W))
    rates[:: 1 + directions] = 0.0
    case = case.at(u=np.linalg.lstsq(case.W, rates, rcond=None)[0])
    result = runtime(case)
    assert result.status == OK
    check_conditions(case, result, starts=False)


def mode_equations(case: Case, modes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Linear equations of the multipliers; per contact -1, 1: slips that way, 0: sticks, 2: open."""
    A, z = case.D.copy(), -case.free
    for k, mode in enumerate(modes):
        n, t = 2 * k, 2 * k + 1
        if mode == 2:
            A[[n, t]], z[[n, t]] = np.eye(len(A))[[n, t]], 0.0
        elif mode != 0:
            A[t], z[t] = np.eye(len(A))[t] + mode * case.contacts[k].friction[1] * np.eye(len(A))[n], 0.0
    return A, z


def all_motions(case: Case) -> list[np.ndarray]:
    """Row accelerations of every consistent set of modes, along lines, by trying all."""
    found: list[np.ndarray] = []
    for modes in product((-1, 0, 1, 2), repeat=len(case.contacts)):
        force = np.linalg.solve(*mode_equations(case, modes))
        w = case.free + case.D @ force
        normal, tangent = force[::2], force[1::2]
        mu = np.array([c.friction[1] for c in case.contacts])
        good = (normal >= -1e-9) & (w[::2] >= -1e-9) & (np.abs(tangent) <= mu * normal + 1e-9)
        good &= np.array([mode not in (-1, 1) or mode * x >= 0 for mode, x in zip(modes, w[1::2], strict=True)])
        if good.all() and not any(np.allclose(w, other, atol=1e-6) for other in found):
            found.append(w)
    return found


@settings(deadline=None, max_examples=150)
@given(seed=seeds, k=some.integers(1, 2))
def test_as_many_solutions_as_there_are(runtime: Runtime, seed: int, k: int) -> None:
    case = random_frictional(np.random.default_rng(seed), k, 1, 40.0)
    motions = all_motions(case)
    result = runtime(case)
    assert result.status == {0: NO_MODE, 1: OK}.get(len(motions), SEVERAL_MODES)
    if result.status == OK:
        assert case.free + case.D @ result.force == pytest.approx(motions[0], rel=1e-7, abs=1e-7)


def test_sticking_is_kept_between_the_coefficients(runtime: Runtime) -> None:
    contact = Contact(None, ([1.0],), law=LOAD, load=1.0, mu=(0.5, 0.3))
    case = Case(np.eye(1), [0.4], (contact,))
    assert runtime(case).modes == [STICK]
    assert runtime(case, modes=[STICK], direction=[1, 0]).modes == [STICK]


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("lean", [0.3, -0.3])
def test_joint_friction_counts_the_magnitude_of_a_two_sided_normal(runtime: Runtime, sign: float, lean: float) -> None:
    # A slider in a guide: its normal force may have either sign, and the mass couples it to the motion along the guide.
    Q = np.array([[2.0, lean], [lean, 1.0]])
    contact = Contact([0.0, 1.0], ([1.0, 0.0],), law=BILATERAL, mu=0.2)
    case = Case(Q, np.linalg.solve(Q, [5.0, sign * 4.0]), (contact,), u=[1.0, 0.0])
    result = runtime(case)
    assert result.modes == [SLIP]
    normal, tangential = result.force
    assert result.udot[1] == pytest.approx(0.0, abs=CONTACT_SOLVE)
    assert tangential == pytest.approx(-0.2 * abs(normal), rel=CONTACT_SOLVE)
    assert Q @ result.udot == pytest.approx([5.0 + tangential, sign * 4.0 + normal], rel=CONTACT_SOLVE)


@pytest.mark.parametrize(
    ("speed", "pull", "mode"), [(0.5, 0.2, SLIP), (0.05, 0.2, STICK), (0.05, 0.8, SLIP), (-0.05, 0.8, SLIP)]
)
def test_creeping(runtime: Runtime, speed: float, pull: float, mode: int) -> None:
    # Thesis, 5.8: below the tolerance the block creeps to rest, u' = -a u, if friction can do that.
    rate = 2.0
    contact = Contact(None, ([1.0],), law=LOAD, load=1.0, mu=0.5, creep=0.1, target=(-rate * speed,))
    result = runtime(Case(np.eye(1), [pull], (contact,), u=[speed]))
    assert result.modes == [mode]
    expected = -rate * speed if mode == STICK else pull - 0.5 * np.sign(speed)
    assert result.udot == pytest.approx([expected], rel=CONTACT_SOLVE)


# --- Painleve ------------------------------------------------------------------------------------------------


def rod(angle: float, mu: float, spin: float, slip: float = 1.0, lift: float = 0.0) -> Case:
    """A uniform rod (mass 1, half-length 1) whose lower tip slides on a rough floor: u = (x', y', angle')."""
    c, s = np.cos(angle), np.sin(angle)
    # Tip: center - (cos, sin); its acceleration has w0 = spin^2 (cos, sin).
    contact = Contact([0, 1, -c], ([1, 0, s],), mu=mu, bias=(spin**2 * s, spin**2 * c))
    u = [slip - s * spin, c * spin, spin]
    return Case(np.diag([1.0, 1.0, 1.0 / 3.0]), [0.0, lift - G, 0.0], (contact,), u=u)


@pytest.mark.parametrize("mu", [1.2, 1.5, 2.0])
@pytest.mark.parametrize("spin", [0.5, 8.0])
def test_painleve_rod(runtime: Runtime, mu: float, spin: float) -> None:
    # The tip's normal acceleration is A N + b, A = 1 + 3 c^2 +- 3 mu s c for slip to the right (left) and
    # b = spin^2 s - g: A < 0, which needs mu > 4/3, has no solution for b < 0 and two for b > 0 (Genot and
    # Brogliato 1999).
    paradoxes = 0
    for angle in np.linspace(0.2, 1.5, 40):
        c, s = np.cos(angle), np.sin(angle)
        b = spin**2 * s - G
        for direction in (1.0, -1.0):
            A = 1 + 3 * c**2 + direction * 3 * mu * s * c
            result = runtime(rod(angle, mu, spin, slip=direction))
            if A > 0:
                assert result.status == OK
                assert result.modes == [SLIP if b < 0 else OPEN]
                assert result.force[0] == pytest.approx(max(-b / A, 0.0), rel=1e-9, abs=1e-9)
            else:
                assert (result.status, result.culprit) == (NO_MODE if b < 0 else SEVERAL_MODES, 0)
                paradoxes += 1
    assert (paradoxes > 0) == (mu > 4 / 3)


def test_present_mode_settles_an_ambiguity_that_the_user_decides(runtime: Runtime) -> None:
    case = rod(1.0, 2.0, 8.0, slip=-1.0)
    assert runtime(case).status == SEVERAL_MODES
    assert runtime(case, modes=[OPEN], prefer=True).modes == [OPEN]
    sliding = runtime(case, modes=[SLIP], direction=[-1, 0], prefer=True)
    assert sliding.modes == [SLIP]
    assert sliding.force[0] > 0.0
