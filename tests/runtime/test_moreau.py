"""The time-stepping scheme for rigid contacts: one step against references, its invariants, and its convergence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from contact_models import Sledge
from contact_rows import BILATERAL, COMPLIANT, LOAD, RESTITUTION, STABILIZED, Case, Contact, spd
from hypothesis import assume, given, settings
from hypothesis import strategies as some
from moreau_host import FrozenStepper, Stepper
from scipy.optimize import nnls
from systems import example
from tolerances import CONTACT_CONDITIONS, CONTACT_SOLVE

import kanegen as kg
from kanegen.codes import Status

H = 1e-2
MANY = 3000
"""Sweeps after which the iteration has converged for the problems below."""
seeds = some.integers(0, 2**32 - 1)


@pytest.fixture(scope="session")
def step(tmp_path_factory: pytest.TempPathFactory) -> FrozenStepper:
    return FrozenStepper(tmp_path_factory.mktemp("moreau"))


@pytest.fixture(scope="session")
def stepper(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Stepper]:
    """The stepper of a model."""
    return lambda model, *more, **options: Stepper(model, tmp_path_factory.mktemp(model.name), *more, **options)


# --- one step ------------------------------------------------------------------------------------------------


def touching(rng: np.random.Generator, k: int, directions: int, mu: float, e: float = 0.0, rest: bool = False) -> Case:
    """k contacts that touch, in more speeds than rows; at rest, or with speeds of the size 1."""
    n = k * (1 + directions) + 1
    rows = [rng.normal(size=(1 + directions, n)) for _ in range(k)]
    contacts = tuple(Contact(w[0], tuple(w[1:]), mu=mu, restitution=e) for w in rows)
    return Case(spd(rng, n), 50 * rng.normal(size=n), contacts, np.zeros(n) if rest else rng.normal(size=n))


def unforced(case: Case) -> np.ndarray:
    """Velocities of the rows at the end of the step without impulses."""
    return np.asarray(case.rates + H * case.free)


@settings(max_examples=60)
@given(seed=seeds, n=some.integers(1, 5), k=some.integers(1, 7))
def test_normals_have_the_impulses_of_least_squares(step: FrozenStepper, seed: int, n: int, k: int) -> None:
    # Moreau's principle: the speeds are the nearest admissible ones. More rows than speeds are redundant.
    rng = np.random.default_rng(seed)
    rows = list(rng.normal(size=(k, n)))
    rows[-1] = rows[0]
    case = Case(spd(rng, n), 50 * rng.normal(size=n), tuple(map(Contact, rows)))
    b, L = unforced(case), np.linalg.cholesky(case.M)
    A = (case.W @ L).T
    feasible = np.linalg.lstsq(A.T, b, rcond=None)[0]
    force, _ = nnls(A, -feasible, maxiter=1000)
    u, impulses = step(case, sweeps=MANY)
    assert (impulses >= 0.0).all()
    expected = H * np.asarray(case.a) + case.M @ case.W.T @ force
    assert np.abs(A.T @ feasible - b).max() > 1e-9 or u == pytest.approx(expected, abs=1e-6)


def solutions(case: Case) -> Iterator[np.ndarray]:
    """All impulses of contacts with friction along lines: every combination of open, stick, slip in both directions."""
    b, D, k = unforced(case), case.D, len(case.contacts)
    for modes in product(("open", "stick", 1, -1), repeat=k):
        A, right = np.zeros_like(D), np.zeros(2 * k)
        for m, mode in enumerate(modes):
            n, t = 2 * m, 2 * m + 1
            A[n, n] = A[t, t] = 1.0
            if mode != "open":
                A[n], right[n] = D[n], -b[n]
            if mode == "stick":
                A[t], right[t] = D[t], -b[t]
            elif mode != "open":
                A[t, n] = case.contacts[m].friction[1] * mode
        impulses = np.linalg.solve(A, right)
        after = b + D @ impulses
        if all(map(_admissible, modes, impulses.reshape(-1, 2), after.reshape(-1, 2), case.contacts)):
            yield impulses


def _admissible(mode: Any, impulse: np.ndarray, after: np.ndarray, contact: Contact) -> bool:
    small = 1e-12
    friction = abs(impulse[1]) <= contact.friction[1] * impulse[0] + small
    slip = mode in ("open", "stick") or after[1] * mode >= -small
    return impulse[0] >= -small and after[0] >= -small and friction and slip


@settings(max_examples=60)
@given(seed=seeds, k=some.integers(1, 3), mu=some.floats(0.0, 0.3), rest=some.booleans())
def test_friction_along_lines_is_one_of_all_solutions(
    step: FrozenStepper, seed: int, k: int, mu: float, rest: bool
) -> None:
    case = touching(np.random.default_rng(seed), k, 1, mu, rest=rest)
    found = list(solutions(case))
    assume(len(found) == 1)  # beyond a bound of mu there may be several or none
    _, impulses = step(case, sweeps=MANY)
    assert impulses == pytest.approx(found[0], abs=1e-7 * max(1.0, np.abs(found[0]).max()))


@settings(max_examples=60)
@given(
    seed=seeds,
    k=some.integers(1, 3),
    mu=some.just(0.0) | some.floats(1e-100, 0.2),  # the squares of smaller forces have few digits or none
    rest=some.booleans(),
)
def test_friction_in_planes_obeys_coulomb(step: FrozenStepper, seed: int, k: int, mu: float, rest: bool) -> None:
    case = touching(np.random.default_rng(seed), k, 2, mu, rest=rest)
    _, impulses = step(case, sweeps=MANY)
    after, scale = unforced(case) + case.D @ impulses, 1.0 + np.abs(impulses).max()
    for impulse, v in zip(impulses.reshape(-1, 3), after.reshape(-1, 3), strict=True):
        friction, slip = impulse[1:], v[1:]
        assert v[0] >= -CONTACT_CONDITIONS * scale
        assert abs(impulse[0] * v[0]) <= CONTACT_CONDITIONS * scale
        assert np.linalg.norm(friction) <= mu * impulse[0] * (1.0 + CONTACT_SOLVE)
        aligned = friction * np.linalg.norm(slip) + mu * impulse[0] * slip
        assert np.abs(aligned).max() <= 1e-6 * scale


def test_static_friction_holds_more_than_kinetic_friction(step: FrozenStepper) -> None:
    for pull, expected in ((4.9, 0.0), (5.1, H * (5.1 - 3.0))):
        contact = Contact([0.0, 1.0], ([1.0, 0.0],), mu=(0.5, 0.3))
        u, _ = step(Case(np.eye(2), [pull, -10.0], (contact,)))
        assert u == pytest.approx([expected, 0.0], abs=CONTACT_SOLVE)


@pytest.mark.parametrize(("speed", "e"), [(-2.0, 0.6), (-2.0, 0.0), (0.0, 0.6), (-0.05, 0.6)])
def test_restitution_acts_on_speeds_that_one_step_does_not_explain(step: FrozenStepper, speed: float, e: float) -> None:
    u, _ = step(Case(2 * np.eye(1), [-10.0], (Contact([1.0], restitution=e),), [speed]))
    assert u == pytest.approx([-e * speed if speed < -10.0 * H else 0.0], abs=CONTACT_SOLVE)


def test_laws_of_other_contacts(step: FrozenStepper) -> None:
    push = np.array([-10.0])
    stabilized = Contact([1.0], law=STABILIZED, gap=-0.1, target=(3.0,))
    assert step(Case(np.eye(1), push, (stabilized,)))[0] == pytest.approx([3.0 * H], rel=CONTACT_SOLVE)
    # A force in excess of the target would have to pull: there is none.
    assert step(Case(np.eye(1), -push, (stabilized,)))[0] == pytest.approx([10.0 * H], rel=CONTACT_SOLVE)
    compliant = Contact([1.0], law=COMPLIANT, gap=-0.1, load=4.0)
    assert step(Case(2 * np.eye(1), push, (compliant,)))[0] == pytest.approx([-8.0 * H], rel=CONTACT_SOLVE)
    loaded = Contact(None, ([1.0],), law=LOAD, load=4.0, mu=0.5)
    assert step(Case(np.eye(1), push, (loaded,)))[0] == pytest.approx([-8.0 * H], rel=CONTACT_SOLVE)
    guided = Contact([0.0, 1.0], ([1.0, 0.0],), law=BILATERAL, mu=0.5)
    u, impulses = step(Case(np.eye(2), [7.0, 10.0], (guided,)))
    assert u == pytest.approx([2.0 * H, 0.0], abs=CONTACT_SOLVE)
    assert impulses == pytest.approx([-10.0 * H, -5.0 * H], rel=CONTACT_SOLVE)


@settings(max_examples=200)
@given(
    seed=seeds,
    k=some.integers(1, 4),
    directions=some.integers(0, 2),
    mu=some.floats(0.0, 2.0),
    sweeps=some.integers(1, 20),
)
def test_impulses_add_no_energy_and_stay_in_the_cone(
    step: FrozenStepper, seed: int, k: int, directions: int, mu: float, sweeps: int
) -> None:
    # For any restitution of each contact, any friction, however few the sweeps, and any impulses to start with.
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 6)
    laws = rng.choice([RESTITUTION, RESTITUTION, LOAD, BILATERAL], k)
    contacts = []
    for law in laws if directions else [RESTITUTION] * k:
        tangents = tuple(rng.normal(size=(directions, n)))
        normal = None if law == LOAD else rng.normal(size=n)
        gap, load = rng.choice([0.0, -0.01, 0.1]), rng.uniform(0.0, 1e3)
        contacts.append(Contact(normal, tangents, int(law), mu, gap=gap, load=load, restitution=rng.uniform(0.0, 1.0)))
    case = Case(spd(rng, n), np.zeros(n), tuple(contacts), rng.normal(size=n))
    u, impulses = step(case, sweeps=sweeps, impulses=rng.normal(size=len(case.W)))
    before, after = (x @ case.Q @ x / 2 for x in (case.speeds, u))
    assert after <= before * (1.0 + 1e-12)
    assert u == pytest.approx(case.speeds + case.M @ case.W.T @ impulses, abs=1e-12)
    row = 0
    for contact in contacts:
        rows = len(contact.rows)
        force = H * contact.load if contact.normal is None else abs(impulses[row])
        friction = impulses[row + rows - directions : row + rows]
        assert np.linalg.norm(friction) <= mu * force * (1.0 + 1e-12)
        assert contact.law != RESTITUTION or impulses[row] >= 0.0
        row += rows


@pytest.mark.parametrize("directions", [0, 1, 2])
def test_residual_falls_with_the_sweeps(step: FrozenStepper, directions: int) -> None:
    rng = np.random.default_rng(directions)
    cases = [touching(rng, 6, directions, 0.15, rest=True) for _ in range(20)]

    def residual(case: Case, sweeps: int) -> float:
        _, impulses = step(case, sweeps=sweeps)
        after = unforced(case) + case.D @ impulses
        normal, v = impulses[:: 1 + directions], after[:: 1 + directions]
        return float(np.abs(np.minimum(normal, v)).max())

    medians = [float(np.median([residual(case, n) for case in cases])) for n in (1, 2, 4, 8, 16)]
    assert all(later < 0.2 * earlier for earlier, later in pairwise(medians))


def test_impulses_of_the_last_step_are_the_start(step: FrozenStepper) -> None:
    # With the solution as the start, one sweep keeps it; it may belong to another step size.
    case = touching(np.random.default_rng(3), 4, 0, 0.0, rest=True)
    u, solution = step(case, sweeps=MANY)
    near, _ = step(case, sweeps=1, impulses=7.0 * solution)
    far, _ = step(case, sweeps=1)
    assert np.abs(near - u).max() < 1e-7 < np.abs(far - u).max()


def test_rows_that_cannot_move_have_no_impulse(step: FrozenStepper) -> None:
    # Its mass matrix is singular to the contact: nothing moves along the second row.
    rows = (Contact([1.0, 0.0]), Contact([0.0, 0.0], ([0.0, 0.0], [0.0, 0.0]), mu=0.5))
    u, impulses = step(Case(np.eye(2), [-10.0, 1.0], rows))
    assert u == pytest.approx([0.0, H], abs=CONTACT_SOLVE)
    assert impulses == pytest.approx([10.0 * H, 0.0, 0.0, 0.0], rel=CONTACT_SOLVE)


@pytest.mark.parametrize("h", [0.0, -1e-3, np.nan, np.inf])
def test_a_step_that_is_not_positive_changes_nothing(step: FrozenStepper, h: float) -> None:
    case = touching(np.random.default_rng(1), 2, 1, 0.2)
    u, impulses = step(case, h, impulses=[1.0, 2.0, 3.0, 4.0], status=Status.INVALID_ARGUMENT)
    assert (u == case.speeds).all()
    assert impulses.tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_state_that_is_not_finite_is_refused(step: FrozenStepper, bad: float) -> None:
    case = touching(np.random.default_rng(1), 2, 1, 0.2).at(a=[bad, 0.0, 0.0, 0.0, 0.0])
    u, impulses = step(case, impulses=[1.0, 2.0, 3.0, 4.0], status=Status.NOT_FINITE)
    assert (u == case.speeds).all()
    assert impulses.tolist() == [1.0, 2.0, 3.0, 4.0]


# --- convergence ---------------------------------------------------------------------------------------------


def errors(run: Stepper, solver: kg.Solver, span: float, q: Any, u: Any, steps: tuple[float, ...]) -> list[float]:
    """Mean errors of the positions against the run with located events."""
    found = []
    for h in steps:
        motion = run(span, h, q, u)
        assert motion.status == 0
        exact = solver.integrate((0.0, span), q, u, rtol=1e-9, atol=1e-11, t_eval=motion.t)
        found.append(float(np.abs(motion.q - exact.q).mean()))
    return found


@pytest.mark.parametrize(
    ("name", "options", "span"),
    [("bouncing_ball", {}, 5.0), ("stick_slip_blocks", {"mu_s": 1.2}, 5.0), ("rolling_disk", {"friction": 0.3}, 2.0)],
)
def test_converges_to_located_events(
    stepper: Callable[..., Stepper], name: str, options: dict[str, Any], span: float
) -> None:
    module = example(name)
    model = module.model(**options)
    start = getattr(module, "INITIAL_SLIPPING", module.INITIAL)
    found = errors(stepper(model), kg.build(model), span, start["q"], start["u"], (1e-2, 1e-3, 1e-4))
    assert found[0] < 0.05
    assert all(later < 0.25 * earlier for earlier, later in pairwise(found))


def test_second_order_while_modes_do_not_change(stepper: Callable[..., Stepper]) -> None:
    module = example("rolling_disk")
    model, start = module.model(friction=1.5), module.INITIAL
    tilt, rate = start["q"][0], start["u"][0]
    radius = module.DEFAULTS["R"]
    q, u = (*start["q"], radius * np.sin(tilt)), (*start["u"], radius * np.cos(tilt) * rate)
    found = errors(stepper(model), kg.build(model), 1.0, q, u, (4e-3, 2e-3, 1e-3))
    assert np.log2(np.divide(found[:-1], found[1:])) == pytest.approx([2.0, 2.0], abs=0.1)


def sledge_contacts(sledge: Sledge, mu: float) -> dict[str, Any]:
    """The contacts of the sledge that need no events, with the laws that are not rigid or have no gap."""
    gaps, slips = sledge.gaps, sledge.slips
    height = sledge.q[1]
    return {
        "stop": kg.Unilateral(gaps["stop"], kg.Stabilized(damping=30, stiffness=100), name="stop"),
        "spring": kg.Unilateral(gaps["spring"], kg.KelvinVoigt(50, 3), name="spring"),
        "ratchet": kg.Unilateral(gaps["ratchet"], kg.Stabilized(damping=9), name="ratchet"),
        "brake": kg.Friction(slips["brake"], kg.Coulomb(0.5), 2 + height**2, "brake"),
        "guide": kg.Friction(slips["guide"], kg.Coulomb(mu), kg.Bilateral(gaps["guide"]), "guide"),
        "hook": kg.Latch("hook", gaps["guide"], closed=True),
    }


@pytest.mark.parametrize("names", [("stop", "spring", "ratchet", "brake"), ("guide",), ("hook",)])
def test_other_laws_and_constraints_converge(stepper: Callable[..., Stepper], names: tuple[str, ...]) -> None:
    # With a rheonomic constraint; x, theta and their rates satisfy it and the guide.
    sledge = Sledge()
    y, phi, y_rate, swing = 0.3, 0.8, -0.1, 0.1
    x, x_rate = y * phi / 4, (y_rate * phi + y * swing) / 4 + 1 / 3
    theta = y**2 / 3 / x
    turn = (2 * y * y_rate / 3 - x_rate * theta) / x
    c, s = np.cos(theta), np.sin(theta)
    u = [c * x_rate + s * y_rate, -s * x_rate + c * y_rate, turn, swing]
    known, values = sledge_contacts(sledge, mu=0.02), dict(sledge.description["parameters"])
    model = sledge.model(
        name="_".join(("sledge", *names)),
        contacts=[known[name] for name in names],
        inputs=(),
        events=[],
        impulses={},
        outputs={},
        parameters=values | ({"omega": 0.1} if "ratchet" in names else {}),
    )
    found = errors(stepper(model), kg.build(model), 0.5, [x, y, theta, phi], u, (1e-2, 1e-3, 1e-4))
    assert found[0] < 0.02
    assert found[1] < 0.3 * found[0]
    assert found[2] < 0.3 * found[1]


def test_biped_strikes_the_ground_with_flat_feet(stepper: Callable[..., Stepper]) -> None:
    # Heel and toe of light feet, strongly coupled: impacts, sliding and sticking of four contacts.
    module = example("biped")
    solver = module.build()
    q, u = module.start(solver, 0)
    motion = stepper(module.model())(0.5, 1e-4, q, u, sweeps=20, states=[0.0])
    assert motion.status == 0
    exact = solver.integrate((0.0, 0.5), q, u, s0=[0.0], rtol=1e-7, atol=1e-9, t_eval=motion.t)
    assert np.abs(motion.q - exact.q).max() < 2e-3
    assert min(module.sole_heights(state).min() for state in motion.q[::20]) > -1e-4


def test_penetration_vanishes_and_does_not_grow(stepper: Callable[..., Stepper]) -> None:
    module = example("bouncing_ball")
    run, h, g = stepper(module.model()), 1e-3, module.DEFAULTS["g"]
    # Started 5 cm below the floor: removed at a fixed rate without any speed.
    inside = run(1.0, h, [-0.05], [0.0])
    assert np.abs(inside.u).max() < 1e-12
    assert np.abs(inside.q[:20, 0] + 0.05 * 0.8 ** np.arange(1, 21)).max() < 1e-12
    # A long rest: within the distance that one step of free fall explains.
    resting = run(20.0, h, [0.02], [0.0])
    assert np.abs(resting.q[-10000:]).max() <= 0.5 * g * h * h
    weight = module.DEFAULTS["m"] * g
    assert resting.forces[-10000:] == pytest.approx(np.full((10000, 1), weight), rel=1e-9)


def test_float(stepper: Callable[..., Stepper]) -> None:
    flags = ("-DKG_FLOAT", "-Wdouble-promotion")
    model = example("stick_slip_blocks").model()
    single, double = stepper(model, flags, np.float32), stepper(model)
    q, u = ([0.0, 0.0],) * 2
    assert np.abs(single(2.0, 1e-3, q, u).q - double(2.0, 1e-3, q, u).q).max() < 2e-3
