"""Changes of speeds: the same motion, quantities transformed, a diagonal kinetic-energy matrix on request."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from messages import raises
from systems import NAMES, SYSTEMS, example, initial, model_of, states
from tolerances import EVALUATION, FINE_INTEGRATION, SOLVE

import kanegen as kg
from kanegen.derivation import Equations, fingerprint, lower_model
from kanegen.derivation.inertia.mass_matrix import mass_matrix
from kanegen.graph import Node, evaluate

t = me.dynamicsymbols._t
every_system = pytest.mark.parametrize(("name", "options"), SYSTEMS, ids=NAMES)


def combinations(model: kg.Model) -> tuple[list[Any], list[Any]]:
    """New speeds that mix all speeds with coefficients of q, and contain t."""
    n, q = len(model.speeds), model.coordinates[0]
    coefficients = sm.Matrix(n, n, lambda i, j: sm.Rational(2 + i - 3 * j, 7) if i != j else 2 + sm.sin(q + i) / 2)
    drift = sm.Matrix([sm.cos(t + q + i) for i in range(n)])
    return me.dynamicsymbols(f"w_:{n}"), list(coefficients * sm.Matrix(model.speeds) + drift)


@cache
def changed(name: str, kind: str, **options: Any) -> Equations:
    """The equations of an example in other speeds: combinations, orthogonal ones, or one after the other."""
    model = model_of(name, **options)
    if kind != "orthogonal":
        model = model.with_speeds(*combinations(model))
    if kind != "combined":
        model = model.with_orthogonal_speeds()
    return kg.derive(model)


class At:
    """Values of nodes at one state in the former speeds u; ``Psi``: u = Psi w + s."""

    def __init__(self, equations: Equations, t: float, q: Any, u: Any) -> None:
        self.system = equations.system
        self.fixed = {"t": [t], "q": list(q), "p": list(equations.model.parameters.values())}
        self._former = [equations.system.former[speed] for speed in original(equations.model).speeds]
        n = len(u)
        at_rest, *columns = (self.of(self._former, w) for w in (np.zeros(n), *np.eye(n)))
        self.Psi = (np.array(columns) - at_rest).T
        self.w = np.linalg.solve(self.Psi, u - at_rest)

    def of(self, nodes: Any, w: Any = None, udot: Any = ()) -> np.ndarray:
        return np.array(
            evaluate(list(nodes), {**self.fixed, "u": list(self.w if w is None else w), "udot": list(udot)})
        )

    def quantity(self, quantity: Any, **inputs: Any) -> np.ndarray:
        return self.of(quantity.nodes, **inputs).reshape(quantity.shape)

    def former_rates(self, udot: np.ndarray) -> np.ndarray:
        """u' from w'."""
        return self.of([self.system.full_rate(node) for node in self._former], udot=udot)


def accelerations(equations: Equations, at: At) -> np.ndarray:
    """w' from the multiplier system: no choice of dependent speeds, so that every state will do."""
    Q, P, J, b = (at.quantity(item) for item in (equations.Q, equations.P, equations.J, equations.b))
    J = J.reshape(len(b), len(P))
    matrix = np.block([[Q, -J.T], [J, np.zeros((len(b), len(b)))]])
    return np.linalg.solve(matrix, np.concatenate([P, b]))[: len(P)]


def original(model: kg.Model) -> kg.Model:
    while model.speed_change is not None:
        model = model.speed_change.before
    return model


def assert_close(actual: Any, expected: Any, tolerance: float, name: str = "") -> None:
    scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance * scale, err_msg=name)


@every_system
@pytest.mark.parametrize("kind", ["combined", "orthogonal", "both"])
def test_the_motion_is_the_same(name: str, options: dict[str, Any], kind: str) -> None:
    """Accelerations, residuals and energy against the independent oracle of the unchanged model."""
    equations = changed(name, kind, **options)
    for state in states(name, **options):
        at = At(equations, state.t, state.q, state.u)
        assert_close(at.quantity(equations.qdot), state.reference.qdot, SOLVE, "q'")
        assert_close(at.former_rates(accelerations(equations, at)), state.reference.udot, SOLVE, "u'")
        assert_close(at.quantity(equations.kinetic_energy), state.reference.kinetic_energy, SOLVE, "kinetic energy")
        residuals = at.quantity(equations.velocities)
        assert_close(residuals, state.reference.velocity_residuals, SOLVE, "velocity residuals")


@every_system
@pytest.mark.parametrize("kind", ["combined", "orthogonal"])
def test_transformed_quantities(name: str, options: dict[str, Any], kind: str) -> None:
    """``Q_w = Psi^T Q Psi``, ``F_w = Psi^T F``, ``J_w = J Psi`` with ``Psi = Phi1^-1``."""
    equations = changed(name, kind, **options)
    for state in states(name, **options):
        at, expected = At(equations, state.t, state.q, state.u), state.reference
        assert_close(at.quantity(equations.Q), at.Psi.T @ expected.Q @ at.Psi, SOLVE, "Q")
        assert_close(at.quantity(equations.F), at.Psi.T @ expected.F, SOLVE, "F")
        assert_close(at.quantity(equations.momentum), at.Psi.T @ expected.momentum, SOLVE, "momentum")
        assert_close(at.quantity(equations.J), expected.J @ at.Psi, SOLVE, "J")


@every_system
def test_orthogonal_speeds_diagonalize(name: str, options: dict[str, Any]) -> None:
    """The matrix of the new partial velocities, summed over the bodies, is D; D is stored as diagonal."""
    equations = changed(name, "orthogonal", **options)
    n = len(equations.model.speeds)
    Q: tuple[tuple[Node, ...], ...] = equations.mass_matrix
    assert all(Q[i][j].is_zero for i in range(n) for j in range(n) if i != j)
    direct = [x for row in mass_matrix(equations.system, equations.bodies) for x in row]
    for state in states(name, **options):
        at = At(equations, state.t, state.q, state.u)
        assert_close(at.of(direct).reshape(n, n), at.quantity(equations.Q), EVALUATION)


def test_old_and_new_speeds_are_inverse() -> None:
    equations = changed("slider_crank", "combined")
    for state in states("slider_crank"):
        at = At(equations, state.t, state.q, state.u)
        assert_close(at.quantity(equations.new_speeds, w=state.u), at.w, EVALUATION)
        assert_close(at.quantity(equations.old_speeds), state.u, EVALUATION)


def test_new_speeds_display_the_definitions() -> None:
    model = model_of("n_link_pendulum", n=3)
    speeds, definitions = combinations(model)
    displayed = kg.derive(model.with_speeds(speeds, definitions)).new_speeds.to_sympy()
    assert all(sm.simplify(a - b) == 0 for a, b in zip(displayed, definitions, strict=True))


# -- compiled ------------------------------------------------------------------------------------------------


def test_integration_in_orthogonal_speeds() -> None:
    """The slider-crank with its outputs, which stay written in the old speeds."""
    model = example("slider_crank").model()
    plain, diagonal = kg.build(model), kg.build(model.with_orthogonal_speeds())
    start = initial("slider_crank")
    q, u = np.array(start["q"]), np.array(start["u"])
    w = diagonal.new_speeds(0.0, q, u)
    assert_close(diagonal.old_speeds(0.0, q, w), u, EVALUATION)
    assert_close(diagonal.energy(0.0, q, w), plain.energy(0.0, q, u), EVALUATION)
    for name, value in plain.outputs(0.0, q, u).items():
        assert_close(diagonal.output(name, 0.0, q, w), value, SOLVE, name)
    ends = [
        solver.integrate((0.0, 1.0), q, speeds, rtol=1e-10, atol=1e-12).q[-1]
        for solver, speeds in ((plain, u), (diagonal, w))
    ]
    assert_close(*ends, FINE_INTEGRATION)


def test_dependent_speeds_are_named_among_the_new() -> None:
    model = model_of("elliptic_wire")
    speeds, definitions = combinations(model)
    named = model.with_speeds(speeds, dict(zip(speeds, definitions, strict=True)), dependent_speeds=speeds[:1])
    assert model.with_speeds(speeds, definitions).dependent_speeds is None
    assert kg.derive(named).partition.dependent == (0,)


def test_the_user_s_model_is_not_touched() -> None:
    """The unchanged model has the same digest after its change was derived; changes have digests of their own."""
    model = example("rolling_disk").model()
    before = fingerprint(lower_model(model))
    others = [model.with_speeds(*combinations(model)), model.with_orthogonal_speeds()]
    digests = {fingerprint(lower_model(other)) for other in others}
    assert before not in digests
    assert len(digests) == 2
    assert fingerprint(lower_model(model)) == before


# -- inputs and bad input --------------------------------------------------------------------------------------

q1, q2, u1, u2, w1, w2, r = me.dynamicsymbols("q1 q2 u1 u2 w1 w2 r")


def particle(mass: float = 2.0, **changes: Any) -> kg.Model:
    """A particle in the plane, drawn by a spring and driven by an input."""
    N = me.ReferenceFrame("N")
    O, P = me.Point("O"), me.Point("P")
    O.set_vel(N, 0)
    P.set_pos(O, q1 * N.x + q2 * N.y)
    arguments = {
        "name": "particle",
        "frame": N,
        "coordinates": [q1, q2],
        "speeds": [u1, u2],
        "kinematics": [q1.diff(t) - u1, q2.diff(t) - u2],
        "bodies": [me.Particle("bob", P, mass)],
        "loads": [(P, (r - 3 * q1) * N.x)],
        "inputs": [r],
    }
    return kg.Model(**(arguments | changes))


def test_definitions_with_inputs_need_their_rates() -> None:
    with raises(kg.ModelError, "input", "r", "definitions[0]"):
        particle().with_speeds([w1, w2], [u1 + r, u2])
    rate = sm.Symbol("v")
    model = particle(inputs=[kg.Input(r, rate=rate)], parameters=None).with_speeds([w1, w2], [u1 + r, u2])
    acceleration = kg.derive(model).udot.to_sympy()[0]
    assert sm.simplify(acceleration - (rate + (r - 3 * q1) / 2)) == 0


def test_definitions_may_bring_parameters() -> None:
    k = sm.Symbol("k")
    model = particle().with_speeds([w1, w2], [sm.Eq(w2, u2), sm.Eq(w1, k * u1)], parameters={k: 4.0})
    assert dict(model.parameters) == {k: 4.0}
    assert kg.derive(model).Q.to_sympy() == sm.diag(2 / k**2, 2)


@pytest.mark.parametrize(
    ("speeds", "definitions", "names"),
    [
        ([w1], [u1], ("1", "2", "u1", "u2")),
        ([w1, w2], [u1], ("definitions", "1", "2")),
        ([w1, w2], [u1, u2**2], ("w2", "u2(t)**2", "linear", "u1", "u2")),
        ([w1, w2], [u1 + u2, 2 * u1 + 2 * u2], ("u1", "u2", "Phi1")),
        ([w1, w2], [u1, u2 + w1], ("w2", "w1", "u1", "u2")),
        ([w1, w2], [u1, u2 + q1.diff(t)], ("definitions[1]", "q1'")),
        ([w1, w2], {w1: u1}, ("new speeds",)),
        ([w1, u2], [u1, u2], ("u2", "speeds", "former speeds")),
        ([w1, q1], [u1, u2], ("q1",)),
        ([w1, w2], [u1, u2 + me.dynamicsymbols("s")], ("s", "input")),
    ],
)
def test_what_definitions_cannot_be(speeds: Any, definitions: Any, names: tuple[str, ...]) -> None:
    with raises(kg.ModelError, *names):
        particle().with_speeds(speeds, definitions)


def test_a_massless_speed_has_no_orthogonal_one() -> None:
    model = particle(mass=0)
    with raises(kg.DerivationError, "u1", "mass"):
        kg.derive(model.with_orthogonal_speeds())


def test_only_a_changed_model_has_old_speeds() -> None:
    with raises(kg.DerivationError, "'particle'", "with_speeds"):
        _ = kg.derive(particle()).old_speeds
