"""Models with loads that depend on accelerations, and the residuals of SymPy's own equations for them.

SymPy leaves u' of the loads in ``KanesMethod.forcing``, so that ``mass_matrix u' = forcing`` is no solution for u': the
reference is the residual ``Fr + Fr*`` as a function of u'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from sympy.physics.mechanics import dynamicsymbols, msubs

import kanegen as kg

TIME = dynamicsymbols._t
t = sm.Symbol("t")


@dataclass(frozen=True, eq=False)
class Accelerated:
    """A model, SymPy's equations ``Fr + Fr* = 0`` with the derivatives of its constraints, and a start."""

    method: me.KanesMethod
    parameters: dict[Any, float]
    q: tuple[float, ...]
    u: tuple[float, ...]
    symbols: Chain

    @property
    def model(self) -> kg.Model:
        return kg.Model.from_kane(self.method, parameters=self.parameters)

    @property
    def states(self) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Random states around the start."""
        rng = np.random.default_rng(11)
        return [
            (rng.uniform(0, 2), self.q + rng.uniform(-0.3, 0.3, len(self.q)), self.u + rng.uniform(-1, 1, len(self.u)))
            for _ in range(10)
        ]

    def udot(self, time: float, q: Any, u: Any) -> np.ndarray:
        """u' (n_u,) at which SymPy's residuals vanish; they are affine in u', so values at unit accelerations tell."""
        n = len(self.u)
        zero = self._residual(time, q, u, np.zeros(n))
        slopes = np.array([self._residual(time, q, u, unit) - zero for unit in np.eye(n)]).T
        return np.asarray(np.linalg.solve(slopes, -zero))

    @property
    def _residual(self) -> Callable[..., np.ndarray]:
        return _residual_of(self)


@cache
def _residual_of(system: Accelerated) -> Callable[..., np.ndarray]:
    method = system.method
    q, u = list(method.q), list(method.u)
    udot, rates = [x.diff(TIME) for x in u], method.kindiffdict()
    second = {x.diff(TIME): rate.diff(TIME) for x, rate in rates.items()}
    fr, frstar = method.kanes_equations()
    rows = [*(fr + frstar)]
    rows += [*(method._k_dnh * sm.Matrix(udot) + method._f_dnh)] if method._udep else []
    rows = [msubs(msubs(row, second), rates) for row in rows]
    dummies = {x: sm.Dummy() for x in (*udot, *u, *q)}
    plain = [msubs(row, dummies).subs(system.parameters).subs(TIME, t) for row in rows]
    function = sm.lambdify([t, [dummies[x] for x in q], [dummies[x] for x in u], [dummies[x] for x in udot]], plain)
    return lambda *state: np.array(function(*state), dtype=float)


@dataclass(frozen=True)
class Chain:
    """The symbols of three point masses on a planar chain of rods, the joint angles being the coordinates."""

    q: Any
    u: Any
    N: Any
    frames: Any
    points: Any
    m: Any
    length: Any
    g: Any
    b: Any

    @classmethod
    def new(cls) -> Chain:
        q, u = dynamicsymbols("q1:4"), dynamicsymbols("u1:4")
        m, length, g, b = sm.symbols("m l g b", positive=True)
        N, O = me.ReferenceFrame("N"), me.Point("O")
        O.set_vel(N, 0)
        frames, points = [N], [O]
        for k, (angle, speed) in enumerate(zip(q, u, strict=True), start=1):
            frame = frames[-1].orientnew(f"A{k}", "Axis", [angle, N.z])
            frame.set_ang_vel(frames[-1], speed * N.z)
            point = points[-1].locatenew(f"P{k}", length * frame.x)
            point.v2pt_theory(points[-1], N, frame)
            frames.append(frame)
            points.append(point)
        return cls(q, u, N, frames, points, m, length, g, b)


def _inerter(c: Chain) -> list[Any]:
    """Between the first and the last rod: symmetric."""
    torque = c.b * (c.u[1].diff() + c.u[2].diff()) * c.N.z
    return [(c.frames[1], torque), (c.frames[3], -torque)]


def _added_mass(c: Chain) -> list[Any]:
    """Of the last point, in all directions: symmetric, depends on positions."""
    return [(c.points[3], -c.b * c.points[3].acc(c.N))]


def _squared(c: Chain) -> list[Any]:
    """With a factor that depends on a speed: symmetric."""
    return [(c.points[1], -c.b * (1 + c.u[0] ** 2) * c.q[0].diff(TIME, 2) * c.frames[1].y)]


def _follower(c: Chain) -> list[Any]:
    """A force on the first body that follows the acceleration of the second joint: unsymmetric."""
    return [(c.points[1], (-c.b * c.u[1].diff() + c.u[0] * c.u[2]) * c.frames[1].y)]


def _unsteady(c: Chain) -> list[Any]:
    """Unsymmetric, with factors that depend on time, positions and speeds."""
    force = sm.Piecewise((-c.b * c.u[2].diff(), c.q[0] > 0), (c.b * c.u[1].diff() * c.u[0], True))
    return [*_follower(c), (c.points[2], sm.sin(TIME) * force * c.N.x)]


def _none(c: Chain) -> list[Any]:
    return []


LOADS = {
    "inerter": _inerter,
    "added mass": _added_mass,
    "squared": _squared,
    "follower": _follower,
    "unsteady": _unsteady,
}
SYMMETRIC = ("inerter", "added mass", "squared")
CONSTRAINTS = (None, "holonomic", "nonholonomic")


@cache
def chain(kind: str, constraint: str | None = None) -> Accelerated:
    """The chain with loads of one of the kinds in :data:`LOADS`, or ``"none"``.

    ``constraint``: ``"holonomic"`` holds the last mass on a line, ``"nonholonomic"`` lets it move along its rod only.
    """
    c = Chain.new()
    bodies = [me.Particle(f"body{k}", point, k * c.m) for k, point in enumerate(c.points[1:], start=1)]
    loads = [(point, k * c.m * c.g * c.N.x) for k, point in enumerate(c.points[1:], start=1)]
    options: dict[str, Any] = {}
    if constraint is not None:
        tip = c.points[3]
        motion = tip.vel(c.N).dot(c.N.y if constraint == "holonomic" else c.frames[3].y)
        options = {"u_dependent": [c.u[2]], "velocity_constraints": [motion]}
    if constraint == "holonomic":
        options["configuration_constraints"] = [tip.pos_from(c.points[0]).dot(c.N.y) - c.length / 2]
        options["q_dependent"] = [c.q[2]]
    q, u = (x[:2] if name in options else x for x, name in ((c.q, "q_dependent"), (c.u, "u_dependent")))
    kinematics = [x.diff() - v for x, v in zip(c.q, c.u, strict=True)]
    method = me.KanesMethod(c.N, q, u, kinematics, **options)
    method.kanes_equations(bodies, [*loads, *LOADS.get(kind, _none)(c)])
    parameters = {c.m: 1.1, c.length: 0.8, c.g: 9.81} | ({c.b: 0.2} if kind in LOADS else {})
    return Accelerated(method, parameters, (0.3, 0.4, -0.5), (0.2, -0.4, 0.7), c)


@cache
def chain_solver(kind: str, constraint: str | None, form: str, *functions: str, backend: str = "cython") -> kg.Solver:
    """The solver with the named functions; without names, with all."""
    return kg.build(chain(kind, constraint).model, form=form, functions=functions or "all", backend=backend)


@dataclass(frozen=True)
class Line:
    """The symbols of n masses on a line, masses 1, 2, ... kg, with the factor ``b`` of loads in u'."""

    x: Any
    u: Any
    m: Any
    b: Any
    N: Any
    points: Any


def line(n: int, loads: Callable[[Line], Any], b: float = 0.5, **options: Any) -> kg.Model:
    """Masses on a line with ``loads`` of the symbols; options of ``Model`` can be functions of the symbols."""
    x, u = dynamicsymbols(f"x1:{n + 1}"), dynamicsymbols(f"u1:{n + 1}")
    m, factor, N, O = sm.symbols(f"m1:{n + 1}", positive=True), sm.Symbol("b"), me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points = [O.locatenew(f"P{k}", place * N.x) for k, place in enumerate(x, start=1)]
    for point, speed in zip(points, u, strict=True):
        point.set_vel(N, speed * N.x)
    of = Line(x, u, m, factor, N, points)
    return kg.Model(
        name="line",
        frame=N,
        coordinates=x,
        speeds=u,
        kinematics=[place.diff(TIME) - speed for place, speed in zip(x, u, strict=True)],
        bodies=[me.Particle(f"body{k}", point, mass) for k, (point, mass) in enumerate(zip(points, m, strict=True))],
        loads=loads(of),
        parameters={**{mass: 1.0 + k for k, mass in enumerate(m)}, factor: b},
        **{name: value(of) if callable(value) else value for name, value in options.items()},
    )


def inerter(of: Line) -> list[Any]:
    """Between the first two masses: M = [[m1 + b, -b], [-b, m2 + b]]."""
    force = of.b * (of.u[1].diff(TIME) - of.u[0].diff(TIME)) * of.N.x
    return [(of.points[0], force), (of.points[1], -force)]


def follower(of: Line) -> list[Any]:
    """On the first mass only: M = [[m1, b], [0, m2]]."""
    return [(of.points[0], -of.b * of.u[1].diff(TIME) * of.N.x)]
