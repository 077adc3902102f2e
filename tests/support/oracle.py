"""An independent reference for every quantity kanegen derives.

Nothing here touches ``kanegen.graph``, ``kanegen.derive`` or symbolic differentiation: the user's SymPy
expressions are evaluated by mpmath at 80 digits and every derivative is a central difference along the
motion, exact to more than 20 digits. Bodies are treated one by one with Newton's and Euler's equations in
inertial components, constraints are differentiated along the motion, and the accelerations come from the
multiplier system ``[[M, -J^T], [J, 0]] [u', lambda] = [P, b]``, where M = Q - dF/du'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import mpmath
import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from oracle_instant import INNER_STEP, OUTER_STEP, Instant, derivative
from oracle_numerics import (
    Array,
    array,
    breadth_first,
    cross,
    exact,
    has_second,
    identity,
    nearest,
    solve,
    units,
)
from sympy.physics.biomechanics.curve import CharacteristicCurveFunction

DIGITS = 80


@dataclass(frozen=True)
class Reference:
    """The quantities of DESIGN's notation at one state, as float64 arrays; F and P are those at u' = 0."""

    qdot: Array
    udot: Array
    sdot: Array
    Q: Array
    M: Array
    L: Array
    F: Array
    P: Array
    N: Array
    J: Array
    b: Array
    multipliers: Array
    constraint_force: Array
    momentum: Array
    kinetic_energy: float
    potential_energy: float | None
    position_residuals: Array
    velocity_residuals: Array
    outputs: Mapping[str, Array]

    def partitioned(self, dependent: Sequence[int]) -> dict[str, Array]:
        """A, B, A1, A2, T, V for the given dependent speeds (their indices, in order)."""
        n_u = len(self.udot)
        dependent = list(dependent)
        independent = [r for r in range(n_u) if r not in dependent]
        J_D = self.J[:, dependent]
        A = np.linalg.solve(J_D, -self.J[:, independent])
        B = np.linalg.solve(J_D, self.b)
        A1 = np.zeros((len(dependent), n_u))
        A1[:, independent], A1[:, dependent] = -A, np.eye(len(dependent))
        A2 = np.zeros((len(independent), n_u))
        A2[:, independent], A2[:, dependent] = np.eye(len(independent)), A.T
        T, V = np.vstack([A1, A2 @ self.Q]), np.concatenate([B, A2 @ self.P])
        return {"A": A, "B": B, "A1": A1, "A2": A2, "T": T, "V": V}


class Oracle:
    """Evaluates a ``kg.Model``; ``gains`` are Baumgarte's (G1, G2, G) over the rows of J."""

    def __init__(self, model: Any) -> None:
        self.model = model
        time = me.dynamicsymbols._t
        q, u = model.coordinates, model.speeds
        r = [item.symbol for item in model.inputs]
        derivatives = [
            *(s.diff(time, 2) for s in (*q, *r)),
            *(s.diff(time) for s in (*q, *u, *r)),
        ]
        # Auxiliary speeds are zero. Symbols that are constant have no derivative to replace.
        arguments = [*(d for d in derivatives if d != 0), *q, *u, *r, *model.states, *model.parameters, time]
        self._dummies = {symbol: sm.Dummy(f"a{k}") for k, symbol in enumerate(arguments)}
        self._zero = {s: 0 for w in model.auxiliary_speeds for s in (w.diff(time), w)}
        self._leaves: dict[Any, tuple[Callable[..., Any], bool]] = {}
        self._rates: dict[str, Callable[..., Any]] = {}
        self._paths = breadth_first(model.frame, lambda frame: frame._dcm_dict)

    def __call__(
        self,
        t: float,
        q: Sequence[float],
        u: Sequence[float],
        p: Sequence[float] | None = None,
        r: Sequence[float] = (),
        gains: tuple[Any, Any, Any] | None = None,
        s: Sequence[float] = (),
    ) -> Reference:
        """Evaluate everything at a state; ``p`` defaults to the model's values, ``s`` are the additional states."""
        values = self.model.parameters.values() if p is None else p
        with mpmath.workdps(DIGITS):
            state = Instant(self, exact(t), array(q), array(u), array(values), array([*r, *s]))
            return _Evaluation(self, state, gains).reference()

    def value(self, expression: Any, state: Instant, udot: Array | None = None) -> Any:
        """The value of a scalar expression of t, q, q', q'', u, u', p, r, s."""
        return self.values((expression,), state, udot)[0]

    def values(self, expressions: tuple[Any, ...], state: Instant, udot: Array | None = None) -> Array:
        """The values of scalar expressions."""
        if expressions not in self._leaves:
            self._leaves[expressions] = self._leaf(expressions), any(map(has_second, expressions))
        leaf, needs_second = self._leaves[expressions]
        return array(leaf(*state.arguments(udot, needs_second)))

    def _leaf(self, expressions: tuple[Any, ...]) -> Callable[..., Any]:
        """The expressions as a function of the arguments in the order of ``_dummies``."""
        given = [sm.sympify(expression) for expression in expressions]
        # mpmath has no characteristic curves of muscles; doit() writes them with exponentials.
        explicit = [x.doit() if x.has(CharacteristicCurveFunction) else x for x in given]
        reduced = [x.xreplace(self._zero).xreplace(self._dummies) for x in explicit]
        if all(x.is_Rational for x in reduced):
            constants = [exact(x.p) / x.q for x in reduced]
            return lambda *_: constants
        return sm.lambdify(list(self._dummies.values()), reduced, modules="mpmath", cse=True)

    def rate_values(self, which: str) -> Callable[..., Any]:
        """The rates (or accelerations) of all inputs as a function of r, p, t; unknown ones are zero."""
        if which not in self._rates:
            model = self.model
            inputs = [item.symbol for item in model.inputs]
            known = [*inputs, *model.states, *model.parameters, me.dynamicsymbols._t]
            # Nothing that is differentiated along the motion depends on the states.
            rates = [*(getattr(item, which) or 0 for item in model.inputs), *(0 for _ in model.states)]
            self._rates[which] = sm.lambdify(known, rates, modules="mpmath")
        return self._rates[which]

    def matrix(self, entries: Any, state: Instant, udot: Array | None = None) -> Array:
        return self.values(tuple(entries), state, udot).reshape(entries.shape)

    def rotation(self, frame: Any, state: Instant) -> Array:
        """Direction cosines: components in ``frame`` to inertial components."""
        if frame == self.model.frame:
            return identity(mpmath.mpf(1))
        if frame not in state.rotations:
            parent = self._paths[frame]
            state.rotations[frame] = self.rotation(parent, state) @ self.matrix(parent._dcm_dict[frame], state)
        return state.rotations[frame]

    def vector(self, vector: Any, state: Instant, udot: Array | None = None) -> Array:
        """Inertial components of a SymPy vector, with u' = 0 unless ``udot`` is given."""
        total = array([0, 0, 0])
        for components, frame in getattr(vector, "args", ()):
            total = total + self.rotation(frame, state) @ self.matrix(components, state, udot)[:, 0]
        return total

    def angular_velocity(self, frame: Any, state: Instant) -> Array:
        return self.vector(frame.ang_vel_in(self.model.frame), state)

    def velocity(self, point: Any, state: Instant) -> Array:
        """Set by the user, or from the nearest point that has a velocity by differentiating positions."""
        inertial = self.model.frame
        source = nearest(point, lambda other: inertial in other._vel_dict)
        velocity = self.vector(source._vel_dict[inertial], state)
        if source is point:
            return velocity
        for components, frame in point.pos_from(source).args:
            rate = derivative(lambda s, c=components: self.matrix(c, s)[:, 0], state, None, INNER_STEP)
            rotation = self.rotation(frame, state)
            offset = rotation @ self.matrix(components, state)[:, 0]
            velocity = velocity + rotation @ rate + cross(self.angular_velocity(frame, state), offset)
        return velocity


class _Evaluation:
    """All quantities at one state."""

    def __init__(self, oracle: Oracle, state: Instant, gains: tuple[Any, Any, Any] | None) -> None:
        self.oracle, self.state, self.gains = oracle, state, gains
        self.model = oracle.model
        self.n_u = len(state.u)

    def reference(self) -> Reference:
        Q, L, N, remainder = self._inertia()
        F = self._active_forces(array([0] * self.n_u))
        M = Q
        if self._is_accelerated():
            M = Q - np.array([self._active_forces(unit) - F for unit in units(self.n_u)], dtype=object).T
        J, b, position, velocity = self._constraints()
        udot, multipliers = _solve_kkt(M, F - L, J, b)
        values = {
            "qdot": self.state.qdot,
            "udot": udot,
            "sdot": [self.oracle.value(rate, self.state, udot) for rate in self.model.states.values()],
            "Q": Q,
            "M": M,
            "L": L,
            "F": F,
            "P": F - L,
            "N": N,
            "J": J,
            "b": b,
            "multipliers": multipliers,
            "constraint_force": J.T @ multipliers,
            "momentum": Q @ self.state.u + N,
            "position_residuals": position,
            "velocity_residuals": velocity,
        }
        arrays = {name: np.array(value, dtype=float) for name, value in values.items()}
        kinetic = self.state.u @ (Q @ self.state.u) / 2 + N @ self.state.u + remainder
        potential = self._potential_energy()
        reference = Reference(
            **arrays,
            kinetic_energy=float(kinetic),
            potential_energy=None if potential is None else float(potential),
            outputs=self._outputs(udot),
        )
        assert all(np.all(np.isfinite(getattr(reference, f.name))) for f in fields(reference) if f.name in arrays)
        return reference

    def _affine(self, function: Callable[[Instant], Array]) -> tuple[list[Array], Array]:
        """Coefficients of the speeds, and remainder, of a function affine in them."""
        zero = array([0] * self.n_u)
        remainder = function(self.state.with_speeds(zero))
        partials = [function(self.state.with_speeds(unit)) - remainder for unit in units(self.n_u)]
        return partials, remainder

    def _along(self, function: Callable[[Instant], Any], udot: Array | None = None) -> Any:
        return derivative(function, self.state, udot, OUTER_STEP)

    def _inertia(self) -> tuple[Array, Array, Array, Any]:
        n = self.n_u
        Q, L, N = np.full((n, n), mpmath.mpf(0)), array([0] * n), array([0] * n)
        remainder = mpmath.mpf(0)
        for body in self.model.bodies:
            mass = self.oracle.value(body.mass, self.state)
            point = body.point if isinstance(body, me.Particle) else body.masscenter
            velocity = self._function(self.oracle.velocity, point)
            terms = [(velocity, identity(mass), mass * self._along(velocity))]
            if isinstance(body, me.RigidBody):
                inertia = self._inertia_matrix(body)
                angular = self._function(self.oracle.angular_velocity, body.frame)
                omega = angular(self.state)
                euler = inertia @ self._along(angular) + cross(omega, inertia @ omega)
                terms.append((angular, inertia, euler))
            for function, weight, force in terms:
                partials, rest = self._affine(function)
                Q = Q + np.array([[v @ weight @ w for w in partials] for v in partials], dtype=object)
                L = L + np.array([v @ force for v in partials], dtype=object)
                N = N + np.array([v @ weight @ rest for v in partials], dtype=object)
                remainder += rest @ weight @ rest / 2
        return Q, L, N, remainder

    def _function(self, method: Callable[[Any, Instant], Array], thing: Any) -> Callable[[Instant], Array]:
        return lambda state: method(thing, state)

    def _inertia_matrix(self, body: Any) -> Array:
        total = identity(0)
        for coefficient, first, second in getattr(body.central_inertia, "args", ()):
            vectors = [self.oracle.vector(unit, self.state) for unit in (first, second)]
            total = total + self.oracle.value(coefficient, self.state) * np.outer(*vectors)
        return total

    def _is_accelerated(self) -> bool:
        """Whether a load contains u' or q''."""
        entries = [entry for _, load in self.model.loads for components, _ in load.args for entry in components]
        rates = {rate for entry in entries for rate in entry.atoms(sm.Derivative)}
        return any(rate.expr in self.model.speeds or rate.derivative_count == 2 for rate in rates)

    def _active_forces(self, udot: Array) -> Array:
        F = array([0] * self.n_u)
        loads = [(place, self.oracle.vector(vector, self.state, udot)) for place, vector in self.model.loads]
        if self.model.gravity is not None:
            gravity = self.oracle.vector(self.model.gravity, self.state)
            for body in self.model.bodies:
                point = body.point if isinstance(body, me.Particle) else body.masscenter
                loads.append((point, self.oracle.value(body.mass, self.state) * gravity))
        for place, vector in loads:
            method = self.oracle.velocity if isinstance(place, me.Point) else self.oracle.angular_velocity
            partials, _ = self._affine(self._function(method, place))
            F = F + np.array([v @ vector for v in partials], dtype=object)
        return F

    def _constraints(self) -> tuple[Array, Array, Array, Array]:
        """J, b (with the gains), and the residuals of position and of velocity."""
        model, value = self.model, self.oracle.value
        rows: list[Array] = []
        b: list[Any] = []
        position = [value(phi, self.state) for phi in model.holonomic_constraints]
        rates, kept = [], []
        for phi in model.holonomic_constraints:
            rate = self._rate_of(phi)
            rates.append(rate(self.state))
            row, _ = self._affine(rate)
            kept.append(max(map(abs, row)) > mpmath.mpf(10) ** -12)
            if kept[-1]:
                rows.append(array(row))
                b.append(-self._along(rate))
        velocity = [value(psi, self.state) for psi in model.nonholonomic_constraints]
        for psi in model.nonholonomic_constraints:
            offset = self._along(self._scalar(psi))
            rows.append(array([self._along(self._scalar(psi), unit) - offset for unit in units(self.n_u)]))
            b.append(-offset)
        for row in model.acceleration_constraints:
            zero = array([0] * self.n_u)
            offset = value(row, self.state, zero)
            rows.append(array([value(row, self.state, unit) - offset for unit in units(self.n_u)]))
            b.append(-offset)
        J = np.array(rows, dtype=object).reshape(len(rows), self.n_u)
        stable = array(b) + self._stabilization(position, rates, kept, velocity, len(b))
        # Invariants, which bind no speed, come last among the positions.
        order = sorted(range(len(position)), key=lambda k: not kept[k])
        holonomic_rates = [rate for rate, keep in zip(rates, kept, strict=True) if keep]
        return J, stable, array(position[k] for k in order), array(holonomic_rates + velocity)

    def _stabilization(
        self, position: list[Any], rates: list[Any], kept: list[bool], velocity: list[Any], n_c: int
    ) -> Array:
        correction = array([0] * n_c)
        if self.gains is None:
            return correction
        G1, G2, G = (np.array(gain, dtype=object) for gain in self.gains)
        n_h = sum(kept)
        if n_h:
            phi = array([x for x, keep in zip(position, kept, strict=True) if keep])
            rate = array([x for x, keep in zip(rates, kept, strict=True) if keep])
            correction[:n_h] = G1 @ rate + G2 @ phi
        if velocity:
            correction[n_h : n_h + len(velocity)] = G @ array(velocity)
        return correction

    def _scalar(self, expression: Any) -> Callable[[Instant], Any]:
        return lambda state: self.oracle.value(expression, state)

    def _rate_of(self, phi: Any) -> Callable[[Instant], Any]:
        return lambda state: derivative(self._scalar(phi), state, None, INNER_STEP)

    def _potential_energy(self) -> Any:
        model = self.model
        if model.potential_energy is None and model.gravity is None:
            return None
        energy = self.oracle.value(model.potential_energy or 0, self.state)
        if model.gravity is None:
            return energy
        gravity = self.oracle.vector(model.gravity, self.state)
        for body in model.bodies:
            point = body.point if isinstance(body, me.Particle) else body.masscenter
            origin = nearest(point, lambda other: other._vel_dict.get(model.frame) == 0)
            place = self.oracle.vector(point.pos_from(origin), self.state)
            energy -= self.oracle.value(body.mass, self.state) * (gravity @ place)
        return energy

    def _outputs(self, udot: Array) -> dict[str, Array]:
        values = {}
        for name, output in self.model.outputs.items():
            entries = [float(self.oracle.value(entry, self.state, udot)) for entry in output.expressions]
            values[name] = np.array(entries).reshape(output.shape)
        return values


def _solve_kkt(M: Array, P: Array, J: Array, b: Array) -> tuple[Array, Array]:
    n_u, n_c = len(P), len(b)
    system = np.full((n_u + n_c, n_u + n_c), mpmath.mpf(0))
    system[:n_u, :n_u], system[:n_u, n_u:], system[n_u:, :n_u] = M, -J.T, J
    solution = solve(system, np.concatenate([P, b]))
    return solution[:n_u], solution[n_u:]
