"""Contacts with friction whose forces rigid bodies do not determine: they stick as long as some distribution holds."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from contact_rows import GUARDS, LOAD, OK, RHS, SETTLE, STICK, Case, Contact, Result, runtime_of_session
from scipy.optimize import linprog
from tolerances import CONTACT_CONDITIONS, CONTACT_SOLVE

import kanegen as kg

TIME = me.dynamicsymbols._t
MASS, RADIUS, GRAVITY = 2.0, 0.3, 9.81
WEIGHT, INERTIA = MASS * GRAVITY, MASS * RADIUS**2 / 2

# The smallest margin is found to 2e-11 of the forces for every contact, and HiGHS satisfies constraints to 1e-9.
MARGIN = 1e-8


@cache
def groove() -> kg.Solver:
    """A disc between a plane that rises to the right (angle a) and one that rises to the left (angle b).

    Loads: its weight, a torque ``constant + rate t`` and a horizontal force.
    """
    x, y, turn, v, w, spin = me.dynamicsymbols("x y turn v w spin")
    a, b, mu, rate, constant, push = sm.symbols("a b mu rate constant push")
    N = me.ReferenceFrame("N")
    B = N.orientnew("B", "Axis", (turn, N.z))
    B.set_ang_vel(N, spin * N.z)
    O = me.Point("O")
    O.set_vel(N, 0)
    C = O.locatenew("C", x * N.x + y * N.y)
    C.set_vel(N, v * N.x + w * N.y)
    contacts = []
    for name, (n_x, n_y) in (("right", (-sm.sin(a), sm.cos(a))), ("left", (sm.sin(b), sm.cos(b)))):
        gap, slip = n_x * x + n_y * y - RADIUS, n_y * v - n_x * w + RADIUS * spin
        contacts.append(kg.Unilateral(gap, friction=kg.Coulomb(mu, mu), slip=slip, name=name))
    model = kg.Model(
        name="groove",
        frame=N,
        coordinates=(x, y, turn),
        speeds=(v, w, spin),
        kinematics=(x.diff(TIME) - v, y.diff(TIME) - w, turn.diff(TIME) - spin),
        bodies=(me.RigidBody("disc", C, B, sm.Float(MASS), (me.inertia(N, 0, 0, sm.Float(INERTIA)), C)),),
        loads=((C, -WEIGHT * N.y + push * N.x), (B, (constant + rate * TIME) * N.z)),
        contacts=contacts,
        parameters={rate: 0.0, constant: 0.0, push: 0.0},
    )
    return kg.build(model)


def at_rest(a: float, b: float) -> np.ndarray:
    """Where the disc touches both planes."""
    rows = np.array([[-np.sin(a), np.cos(a)], [np.sin(b), np.cos(b)]])
    return np.array([*np.linalg.solve(rows, [RADIUS, RADIUS]), 0.0])


def disc_rows(a: float, b: float) -> np.ndarray:
    """Normal and tangent of the right contact, then of the left one, over (v, w, spin)."""
    normals = [(-np.sin(a), np.cos(a)), (np.sin(b), np.cos(b))]
    return np.array([row for x, y in normals for row in ([x, y, 0.0], [y, -x, RADIUS])])


def largest_torque(a: float, b: float, mu: float) -> float:
    """The torque up to which forces exist that keep the disc at rest: a linear program."""
    W = disc_rows(a, b)
    limits = np.array([[-mu, s, 0, 0, 0] for s in (1, -1)] + [[0, 0, -mu, s, 0] for s in (1, -1)])
    balance = np.c_[W.T, [0.0, 0.0, 1.0]]
    found = linprog(
        [0, 0, 0, 0, -1], A_ub=limits, b_ub=np.zeros(4), A_eq=balance, b_eq=[0, WEIGHT, 0], bounds=[(None, None)] * 5
    )
    assert found.status == 0
    return float(found.x[4])


ANGLES = [(np.pi / 4, np.pi / 4), (np.pi / 6, np.pi / 6), (1.2, 1.2), (0.5, 0.9), (0.15, 0.7)]


@pytest.mark.parametrize("mu", [0.05, 0.2, 0.5])
@pytest.mark.parametrize(("a", "b"), ANGLES)
def test_disc_rests_in_a_groove(a: float, b: float, mu: float) -> None:
    q = at_rest(a, b)
    run = groove().with_parameters(a=a, b=b, mu=mu).integrate((0.0, 1.0), q, np.zeros(3))
    assert run.events == ()
    assert [dict(phase.modes) for phase in run.contacts.phases] == [{"right": "stick", "left": "stick"}]
    assert run.q[-1] == pytest.approx(q, abs=1e-9)
    for normal, friction, normal2, friction2 in run.contacts.forces:
        assert abs(friction) <= mu * normal * (1.0 + CONTACT_SOLVE)
        assert abs(friction2) <= mu * normal2 * (1.0 + CONTACT_SOLVE)
    balance = disc_rows(a, b).T @ run.contacts.forces[0]
    assert balance == pytest.approx([0.0, WEIGHT, 0.0], abs=CONTACT_CONDITIONS * WEIGHT)


@pytest.mark.parametrize(("a", "b", "mu"), [(*ANGLES[0], 0.05), (*ANGLES[1], 0.3), (*ANGLES[3], 0.2)])
def test_a_growing_torque_makes_it_slip_where_no_forces_hold_it(a: float, b: float, mu: float) -> None:
    limit = largest_torque(a, b, mu)
    if a == b:
        assert limit == pytest.approx(mu * RADIUS * WEIGHT / (np.cos(a) * (1.0 + mu**2)), rel=MARGIN)
    disc = groove().with_parameters(a=a, b=b, mu=mu, rate=1.0)
    run = disc.integrate((0.0, limit + 0.5), at_rest(a, b), np.zeros(3))
    assert [event.kind for event in run.events] == ["slips", "slips"]
    assert [event.t for event in run.events] == pytest.approx([limit, limit], rel=MARGIN)
    # Both normal forces and so the friction stay what they are at the limit: I spin' = t - limit.
    assert run.u[-1] == pytest.approx([0.0, 0.0, 0.5**2 / (2.0 * INERTIA)], abs=1e-6)


def test_a_torque_beyond_the_limit_spins_it_at_once() -> None:
    a, mu = np.pi / 4, 0.2
    limit = largest_torque(a, a, mu)
    for torque, modes in ((0.999 * limit, "stick"), (1.001 * limit, "slip"), (-1.001 * limit, "slip")):
        state = groove().with_parameters(a=a, b=a, mu=mu, constant=torque).contacts(0.0, at_rest(a, a), np.zeros(3))
        assert [item.mode for item in state.states.values()] == [modes, modes]
        excess = np.sign(torque) * max(abs(torque) - limit, 0.0)
        assert state.udot == pytest.approx([0.0, 0.0, excess / INERTIA], abs=1e-7)


def test_a_push_over_the_edge_lifts_it_off_the_other_plane() -> None:
    """As in a groove that is tilted by more than the inclination of a plane: it rolls up the right plane."""
    a, mu = 0.5, 0.6
    push = 1.5 * WEIGHT * np.tan(a)
    disc = groove().with_parameters(a=a, b=a, mu=mu, push=push)
    state = disc.contacts(0.0, at_rest(a, a), np.zeros(3))
    assert (state["right"].mode, state["left"].mode) == ("stick", "open")
    along = (push * np.cos(a) - WEIGHT * np.sin(a)) / (1.5 * MASS)
    assert state.udot == pytest.approx([along * np.cos(a), along * np.sin(a), -along / RADIUS], rel=CONTACT_CONDITIONS)


# --- any bodies on any feet --------------------------------------------------------------------------------------


def largest_margin(case: Case, directions: int) -> float:
    """The largest value of the smallest `mu N - |F_t|` over all forces of rest, in the units of the rows.

    A linear program with the cone of friction cut by planes: exact along a line, slightly too large in a plane.
    """
    n, m = case.n_u, len(case.contacts)
    width = 1 + directions
    units = np.sqrt(np.diag(case.D))
    headings = [(1.0,), (-1.0,)] if directions == 1 else [(np.cos(s), np.sin(s)) for s in np.arange(64) * np.pi / 32]
    limits = []
    for k, contact in enumerate(case.contacts):
        for heading in headings:
            row = np.zeros(width * m + 1)
            row[width * k] = -contact.friction[0]
            row[width * k + 1 : width * (k + 1)] = heading
            row[-1] = 1.0 / units[width * k + 1]
            limits.append(row)
    found = linprog(
        np.append(np.zeros(width * m), -1.0),
        A_ub=np.array(limits),
        b_ub=np.zeros(len(limits)),
        A_eq=np.c_[case.W.T, np.zeros(n)],
        b_eq=-case.Q @ np.asarray(case.a, float),
        bounds=[(None, None)] * (width * m + 1),
    )
    return float(found.x[-1]) if found.status == 0 else -np.inf


def smallest_guard(case: Case, result: Result, directions: int) -> float:
    return float((result.guards[:, 2] * np.sqrt(np.diag(case.D))[1 :: 1 + directions]).min())


def box(rng: np.random.Generator, directions: int) -> Case:
    """A box on two to five feet anywhere under it, pushed and turned: in a plane, or in space."""
    mu, contacts = rng.uniform(0.2, 0.6), []
    for _ in range(rng.integers(2, 6)):
        x, y = rng.uniform(-1.0, 1.0, 2)
        if directions == 1:
            contacts.append(Contact([0, 1, x], ([1, 0, 0.5],), mu=mu))
        else:
            contacts.append(Contact([0, 0, 1, y, -x, 0], ([1, 0, 0, 0, -0.1, -y], [0, 1, 0, 0.1, 0, x]), mu=mu))
    if directions == 1:
        Q, load = np.diag([2.0, 2.0, 0.5]), [rng.uniform(-8, 8), -WEIGHT, rng.uniform(-6, 6)]
    else:
        Q = np.diag([2.0, 2.0, 2.0, 0.4, 0.5, 0.6])
        load = [*rng.uniform(-4, 4, 2), -WEIGHT, *rng.uniform(-2, 2, 3)]
    return Case(Q, np.linalg.solve(Q, load), tuple(contacts))


@pytest.mark.parametrize(("directions", "examples"), [(1, 100), (2, 24)])
def test_feet_stick_if_and_only_if_some_forces_hold_them(directions: int, examples: int) -> None:
    runtime, held = runtime_of_session(), 0
    for seed in range(examples):
        case = box(np.random.default_rng(seed), directions)
        margin = largest_margin(case, directions)
        scale = np.sqrt(MASS) * GRAVITY  # forces in the units of the rows
        slack = MARGIN if directions == 1 else 0.005  # what the planes leave of the cone
        if abs(margin) < 2.0 * slack * scale:
            continue
        result = runtime(case, SETTLE | RHS | GUARDS)
        resting = result.status == OK and np.abs(result.udot).max() < CONTACT_CONDITIONS * GRAVITY
        sticks = result.modes == [STICK] * len(case.contacts)
        assert (resting and sticks) == (margin > 0.0), seed
        if margin > 0.0 and directions * len(case.contacts) + len(case.contacts) > case.n_u:
            held += 1
            assert smallest_guard(case, result, directions) == pytest.approx(margin, abs=slack * scale)
            check_friction(case, result, directions)
    assert held > examples // 10


def check_friction(case: Case, result: Result, directions: int) -> None:
    """The forces that are reported obey the law, and keep the box at rest."""
    forces = result.force.reshape(-1, 1 + directions)
    mu = case.contacts[0].friction[0]
    assert (np.linalg.norm(forces[:, 1:], axis=1) <= mu * forces[:, 0] + CONTACT_CONDITIONS * WEIGHT).all()
    assert case.W.T @ result.force == pytest.approx(
        -case.Q @ np.asarray(case.a, float), abs=CONTACT_CONDITIONS * WEIGHT
    )


def test_nothing_squeezes_a_disc_between_parallel_walls() -> None:
    """Walls could press as hard as friction needs, but nothing asks them to; a disc that is stuck stays so."""
    walls = (Contact([1, 0, 0], ([0, 1, RADIUS],), mu=0.5), Contact([-1, 0, 0], ([0, 1, -RADIUS],), mu=0.5))
    case = Case(np.diag([MASS, MASS, INERTIA]), [0.0, -GRAVITY, 0.0], walls)
    falling = runtime_of_session()(case)
    assert falling.status == OK
    assert falling.udot == pytest.approx([0.0, -GRAVITY, 0.0], abs=CONTACT_SOLVE)
    stuck = runtime_of_session()(case, modes=[STICK, STICK], direction=[[1, 0], [1, 0]])
    assert (stuck.status, stuck.modes) == (OK, [STICK, STICK])
    assert stuck.udot == pytest.approx([0.0] * 3, abs=CONTACT_CONDITIONS)


def test_given_loads_take_part() -> None:
    """Two brakes on one slider: what one cannot hold the other does."""
    brakes = tuple(Contact(None, ([1.0],), law=LOAD, mu=mu, load=10.0) for mu in (0.1, 0.5))
    for push, modes in ((5.9, [STICK, STICK]), (6.1, None)):
        result = runtime_of_session()(Case(np.array([[1.0]]), [push], brakes), SETTLE | RHS | GUARDS)
        assert result.status == OK
        assert result.udot == pytest.approx([max(push - 6.0, 0.0)], abs=CONTACT_CONDITIONS)
        assert modes is None or result.modes == modes
