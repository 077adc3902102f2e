"""Accelerations by elimination of the velocities of bodies: growth with the number of bodies, order, limits."""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from systems import model_of
from tolerances import EVALUATION, SOLVE

import kanegen as kg
from kanegen.derivation.inertia.articulated import body_weights
from kanegen.derivation.inertia.elimination import Pivot, eliminated
from kanegen.derivation.inertia.recursion import velocity_recursion
from kanegen.graph import Graph, Tangent, count_operations, evaluate

TIME = me.dynamicsymbols._t


def state(equations: kg.Equations, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    system = equations.system
    values = {name: rng.uniform(0.2, 1.0, len(getattr(system, name))) for name in ("q", "u", "p")}
    return {"t": [0.3], **{name: list(value) for name, value in values.items()}}


def operations(model: kg.Model) -> int:
    solution = kg.derive(model).articulated_accelerations(stabilized=False)
    return count_operations([*solution.udot, *solution.conditions])


@pytest.mark.parametrize("name", ["n_link_pendulum", "spatial_chain"])
def test_operations_grow_with_the_number_of_bodies(name: str) -> None:
    small, large = (operations(model_of(name, n=n)) for n in (20, 40))
    assert log2(large / small) < 1.15


def branched(levels: int) -> kg.Model:
    """A binary tree of planar rods, each turned relative to the one before, on a free body in body-fixed speeds."""
    x, y, angle = me.dynamicsymbols("x y angle")
    v, w, turn = me.dynamicsymbols("v w turn")
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    B.orient_axis(N, N.z, angle)
    B.set_ang_vel(N, turn * N.z)
    O.set_vel(N, 0)
    center = O.locatenew("center", x * N.x + y * N.y)
    center.set_vel(N, v * B.x + w * B.y)
    hub = me.RigidBody("hub", center, B, 2, (me.inertia(B, 0, 0, 1), center))
    q, u, bodies = [x, y, angle], [v, w, turn], [hub]
    velocity = center.vel(N).to_matrix(N)
    kinematics = [x.diff(TIME) - velocity[0], y.diff(TIME) - velocity[1], angle.diff(TIME) - turn]
    tips = [(B, center)]
    for _ in range(levels):
        ends = [(frame, point, side) for frame, point in tips for side in (-1, 1)]
        tips = [_rod(q, u, kinematics, bodies, *end) for end in ends]
    return kg.Model(
        name=f"tree_{levels}", frame=N, coordinates=q, speeds=u, kinematics=kinematics, bodies=bodies, gravity=-9 * N.y
    )


def _rod(q: list[Any], u: list[Any], rows: list[Any], bodies: list[Any], frame: Any, point: Any, side: int) -> Any:
    k = len(bodies)
    angle, rate = me.dynamicsymbols(f"a{k} w{k}")
    rod = me.ReferenceFrame(f"R{k}")
    rod.orient_axis(frame, frame.z, angle)
    rod.set_ang_vel(frame, rate * frame.z)
    root = point.locatenew(f"root{k}", side * sm.Rational(1, 3) * frame.y)
    middle = root.locatenew(f"middle{k}", rod.x / 2)
    q.append(angle)
    u.append(rate)
    rows.append(angle.diff(TIME) - rate)
    bodies.append(me.RigidBody(f"rod{k}", middle, rod, 1, (me.inertia(rod, 0, 0, sm.Rational(1, 12)), middle)))
    return rod, root.locatenew(f"tip{k}", rod.x)


def test_trees_grow_with_the_number_of_bodies_and_agree_with_the_reduced_form() -> None:
    equations = kg.derive(branched(3))
    reduced = equations.accelerations(stabilized=False).udot
    solution = equations.articulated_accelerations(stabilized=False)
    values = state(equations, 1)
    expected = evaluate(reduced, values)
    assert np.allclose(evaluate(solution.udot, values), expected, rtol=0, atol=SOLVE * np.abs(expected).max())
    assert all(evaluate(solution.conditions, values))
    assert log2(operations(branched(5)) / operations(branched(4))) < 1.15


def test_recursion_gives_the_partial_velocities() -> None:
    """Products of the coefficients along the recursion are the derivatives of every velocity component."""
    equations = kg.derive(model_of("spatial_chain", n=3))
    system = equations.system
    components = [x for pair in body_weights(system, equations.bodies) for x in pair]
    terms = velocity_recursion(components, system.u, system.partials).terms
    slopes = {u: {u: system.graph.one} for u in system.u}
    for node, sums in terms.items():
        for operand, factor in sums.items():
            for u, slope in slopes[operand].items():
                slopes.setdefault(node, {})[u] = slopes.get(node, {}).get(u, system.graph.zero) + factor * slope
    values = state(equations, 2)
    for node in components:
        found = [slopes.get(node, {}).get(u, system.graph.zero) for u in system.u]
        expected = [partial(node) for partial in system.partials]
        assert np.allclose(evaluate(found, values), evaluate(expected, values), rtol=0, atol=EVALUATION)


def test_order_of_elimination_does_not_depend_on_addresses() -> None:
    first, second = (kg.derive(branched(3)) for _ in range(2))
    nodes = [equations.articulated_accelerations(stabilized=False).udot for equations in (first, second)]
    assert [x.index for x in nodes[0]] == [x.index for x in nodes[1]]
    assert len(first.graph) == len(second.graph)


@pytest.mark.parametrize("sign", [1, -1])
def test_rotated_pairs_share_their_products(sign: int) -> None:
    """Components after a rotation, one of them reversed, and a product in them that is a velocity of its own."""
    graph = Graph()
    a, b = speeds = [graph.input("u", k) for k in range(2)]
    c, s = (graph.apply(name, graph.input("q", 0)) for name in ("cos", "sin"))
    velocities = [c * a + s * b, sign * (c * b - s * a), s * a, a]
    D = np.array([[3.0, 0.5, 0.2, 0.0], [0.5, 2.0, 0.0, 0.1], [0.2, 0.0, 1.0, 0.0], [0.0, 0.1, 0.0, 1.5]])
    pairs = {(x, y): graph.const(D[i, j]) for i, x in enumerate(velocities) for j, y in enumerate(velocities) if i <= j}
    recursion = velocity_recursion(velocities, speeds, [Tangent(graph, {u: graph.one}) for u in speeds])
    assert set(recursion.turned) == set(velocities[:2])
    factor = eliminated(graph, recursion, pairs, speeds)
    rates = factor.backward(factor.forward({x: graph.const(k + 1) for k, x in enumerate(velocities)}))
    values = {"q": [0.7], "u": [0.0, 0.0]}
    found = evaluate([rates[u] for u in speeds], values)
    C, S = np.cos(0.7), np.sin(0.7)
    G = np.array([[C, S], [-sign * S, sign * C], [S, 0.0], [1.0, 0.0]])
    assert np.allclose(found, np.linalg.solve(G.T @ D @ G, G.T @ [1, 2, 3, 4]), rtol=EVALUATION)


@pytest.mark.parametrize("signs", [(1, 1, 1, 1), (1, -1, 1, 1), (1, -1, 1, -1)])
def test_pairs_rotated_by_one_angle_share_their_products(signs: tuple[int, ...]) -> None:
    """Two vectors in a turned frame, all components coupled: 11 operations for their block of four, not 24."""
    graph = Graph()
    a, b, d, e = speeds = [graph.input("u", k) for k in range(4)]
    c, s = (graph.apply(name, graph.input("q", 0)) for name in ("cos", "sin"))
    plain = (c * a + s * b, c * b - s * a, c * d + s * e, c * e - s * d)
    velocities = [sign * x for sign, x in zip(signs, plain, strict=True)]
    recursion = velocity_recursion(velocities, speeds, [Tangent(graph, {u: graph.one}) for u in speeds])
    assert {frozenset(turn.members) for turn in recursion.turned.values()} == {
        frozenset(velocities[:2]),
        frozenset(velocities[2:]),
    }
    pairs = {
        (x, y): graph.input("D", 4 * i + j) for i, x in enumerate(velocities) for j, y in enumerate(velocities[: i + 1])
    }
    factor = eliminated(graph, recursion, pairs, speeds)
    entries = [x for step in factor.steps if isinstance(step, Pivot) for x in (step.reciprocal, *step.row.values())]
    # Two symmetric blocks of 10 operations and one of 11, 4 divisions, 3 + 2 + 1 quotients, 2 (6 + 3 + 1) for updates;
    # signs are parts of sums. The first row of 3 entries and the sine and cosine are among them.
    assert count_operations(entries) - 2 <= 10 + 10 + 11 + 4 + 6 + 20
    rates = factor.backward(factor.forward({x: graph.const(k + 1) for k, x in enumerate(velocities)}))
    root = np.random.default_rng(3).normal(size=(4, 4))
    D = root @ root.T + np.eye(4)
    found = evaluate([rates[u] for u in speeds], {"q": [0.7], "u": [0.0] * 4, "D": list(D.ravel())})
    C, S = np.cos(0.7), np.sin(0.7)
    turn = np.array([[C, S], [-S, C]])
    G = np.diag(signs) @ np.block([[turn, np.zeros((2, 2))], [np.zeros((2, 2)), turn]])
    assert np.allclose(found, np.linalg.solve(G.T @ D @ G, G.T @ [1, 2, 3, 4]), rtol=SOLVE)


# -- what is refused ------------------------------------------------------------------------------------------


def slider(
    body: Callable[[me.Point, Any, Any], Any], velocity: Callable[[Any], Any] = lambda u: u, **fields: Any
) -> Any:
    """Two sliders on a line; ``body`` makes the second body of its point, its mass and the name."""
    x, y, u, v = me.dynamicsymbols("x y u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    first = O.locatenew("first", x * N.x)
    second = me.Point("second")
    second.set_vel(N, (u + velocity(v)) * N.x)
    m = sm.Symbol("m")
    loads = fields.pop("loads", lambda point, v, N: [])(second, v, N)
    return kg.Model(
        name="sliders",
        frame=N,
        coordinates=[x, y],
        speeds=[u, v],
        kinematics=[x.diff(TIME) - u, y.diff(TIME) - v],
        bodies=[me.Particle("A", first, 1), *body(second, m, N)],
        parameters=fields.pop("parameters", {m: 2.0}),
        loads=loads,
        **fields,
    )


def particle(point: me.Point, m: Any, N: Any) -> list[Any]:
    return [me.Particle("B", point, m)]


def test_loads_in_accelerations_are_refused() -> None:
    model = slider(particle, loads=lambda point, v, N: [(point, -v.diff(TIME) * N.x)])
    with raises(kg.BuildError, "articulated", "second", "accelerations"):
        kg.derive(model).articulated_accelerations(stabilized=False)


def test_lagrangians_without_bodies_are_refused() -> None:
    q, u = me.dynamicsymbols("q u")
    model = kg.Model(
        name="spring",
        frame=me.ReferenceFrame("N"),
        coordinates=[q],
        speeds=[u],
        kinematics=[q.diff(TIME) - u],
        bodies=[],
        lagrangian=q.diff(TIME) ** 2 - q**2,
    )
    with raises(kg.BuildError, "articulated", "spring", "bodies"):
        kg.derive(model).articulated_accelerations(stabilized=False)


def test_velocities_that_are_not_sums_of_multiples_are_refused() -> None:
    model = slider(particle, lambda v: ((v + 1) ** 2 - v**2 - 1) / 2, check_kinematics=False)
    with raises(kg.BuildError, "articulated", "sliders", "velocity"):
        kg.derive(model).articulated_accelerations(stabilized=False)
    assert kg.derive(model).udot.nodes


def test_speed_without_mass_is_named() -> None:
    with raises(kg.BuildError, "v", "mass"):
        kg.derive(slider(lambda point, m, N: [], parameters={})).articulated_accelerations(stabilized=False)


def test_mass_of_zero_is_found_at_run_time() -> None:
    solver = kg.build(slider(particle), form="articulated", functions=["rhs"], backend="interpreted")
    _, udot = solver.rhs(0.0, [0.0, 0.0], [1.0, 2.0])
    assert np.allclose(udot, 0.0)
    with raises(kg.SolveError, "singular", "mass"):
        solver.with_parameters(m=0.0).rhs(0.0, [0.0, 0.0], [1.0, 2.0])
