"""Swing-up of a cart-pole
=======================

A cart that swings up a pole: an optimal motion by direct collocation, then nonlinear model predictive control.

The cart of mass ``m_c`` moves on a horizontal rail, with x to the right, and with the friction ``b x'``. The massless
pole of length ``l`` carries a point mass ``m_p`` at its tip; theta is its angle from the upward vertical, positive when
the tip is to the right. Gravity ``g`` acts downward, the force ``F`` on the cart is the control, and the horizontal
force ``D`` on the tip is a disturbance. u = (x', theta'), named ``v`` and ``w``; z = (x, theta, v, w).

The pole hangs at first. The swing-up within ``SWING`` = 2 s minimizes the integral of F^2 with ``|F| <= F_MAX`` and
``|x| <= X_MAX`` (the problem of Kelly 2017, "An introduction to trajectory optimization", section 6). It is transcribed
by Hermite-Simpson collocation (Hargraves and Paris 1987) and solved by IPOPT. The equations of motion with their exact
sparse first and second derivatives are compiled code: ``emit_casadi`` writes functions that ``casadi.external`` loads.

The pole is then swung up in a plant whose tip is 20 % heavier, whose friction is twice as large and that is pushed at
2.6 s. The plant is the compiled solver; the controller is a Python function that it calls every ``SAMPLE`` = 20 ms.
Each call solves one quadratic program: one iteration of sequential quadratic programming, with the Hessian of Gauss and
Newton, from the solution of the sample before, shifted by one interval (the real-time iteration of Diehl, Bock and
Schloeder 2005). The force acts one sample after the measurement; the controller predicts the state at that time.

The script needs CasADi (``pip install casadi``) and a C compiler. It compares the external function and its derivatives
with equations written by hand, the optimal motion with an integration by the solver and with the constancy of the
Hamiltonian of optimal control, and bounds the errors of the controlled motion.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from scipy.linalg import solve_continuous_are

import kanegen as kg
from kanegen.emission.casadi import emit_casadi

try:
    casadi: Any = import_module("casadi")
except ImportError:  # the model can be read without it
    casadi = None

DEFAULTS = {"m_c": 1.0, "m_p": 0.3, "l": 0.5, "g": 9.81, "b": 0.1}
PLANT = {"m_p": 0.36, "b": 0.2}
"""Parameters of the plant that the controller does not know."""
INITIAL: dict[str, Any] = {"t": 0.0, "q": (0.0, np.pi), "u": (0.0, 0.0), "r": (0.0, 0.0)}
F_MAX, X_MAX = 12.0, 1.0
SWING, INTERVALS = 2.0, 100
SAMPLE, HORIZON = 0.02, 40
"""Sample time (s) of the controller, and the number of samples that it looks ahead."""
PUSH = (2.6, 2.7, 2.0)
"""Begin and end (s) and size (N) of the push on the tip."""
END = 5.0
Q, R = np.diag([20.0, 20.0, 1.0, 1.0]), np.array([[0.05]])


def model() -> kg.Model:
    """The cart-pole with the force on the cart and the disturbance on the tip as inputs."""
    x, theta, v, w, F, D = me.dynamicsymbols("x theta v w F D")
    m_c, m_p, l, g, b = sm.symbols("m_c m_p l g b")
    time = me.dynamicsymbols._t

    N = me.ReferenceFrame("N")
    O = me.Point("O")
    O.set_vel(N, 0)
    cart = O.locatenew("cart", x * N.x)
    cart.set_vel(N, v * N.x)
    pole = me.ReferenceFrame("pole")
    pole.orient_axis(N, N.z, -theta)
    pole.set_ang_vel(N, -w * N.z)
    tip = cart.locatenew("tip", l * pole.y)

    return kg.Model(
        name="cart_pole_swing_up",
        frame=N,
        coordinates=(x, theta),
        speeds=(v, w),
        kinematics=(v - x.diff(time), w - theta.diff(time)),
        bodies=(me.Particle("cart", cart, m_c), me.Particle("tip", tip, m_p)),
        loads=((cart, (F - b * v) * N.x), (tip, D * N.x)),
        gravity=-g * N.y,
        inputs=(F, kg.Input(D, default=0.0)),
        parameters={symbol: DEFAULTS[str(symbol)] for symbol in (m_c, m_p, l, g, b)},
    )


@cache
def dynamics() -> Any:
    """The function (x, u, p) -> xdot of the model, compiled, with its derivatives."""
    with TemporaryDirectory() as folder:
        path, name = emit_casadi(model(), Path(folder)), "cart_pole_swing_up"
        subprocess.run(["make", "-s"], cwd=path, check=True)
        return casadi.external(f"{name}_dynamics", str(path / f"{name}_casadi.so"))  # in memory from here on


def rate(z: Any, F: Any) -> Any:
    """z' with the parameters of the model and without a disturbance, in CasADi."""
    return dynamics()(z, casadi.vertcat(F, 0.0), list(DEFAULTS.values()))


def defect(h: float) -> Any:
    """The Hermite-Simpson defect (z_k, z_k+1, F_k, F_k+1) -> (4,) of one interval; F is linear in the interval."""
    z0, z1, F0, F1 = (casadi.MX.sym(name, n) for name, n in (("z0", 4), ("z1", 4), ("F0", 1), ("F1", 1)))
    f0, f1 = rate(z0, F0), rate(z1, F1)
    middle = rate((z0 + z1) / 2 + h / 8 * (f0 - f1), (F0 + F1) / 2)
    return casadi.Function("defect", [z0, z1, F0, F1], [z1 - z0 - h / 6 * (f0 + 4 * middle + f1)])


class Plan(NamedTuple):
    """An optimal motion: times (n,), states (n, 4), forces (n,), costates (n - 1, 4) in the intervals, and the cost.

    ``iterations``, ``seconds``: those of IPOPT.
    """

    t: np.ndarray
    z: np.ndarray
    F: np.ndarray
    costate: np.ndarray
    cost: float
    iterations: int
    seconds: float

    def at(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """z (m, 4) and F (m,) at times; upright and at rest after the end."""
        z = np.array([np.interp(t, self.t, column, right=0.0) for column in self.z.T]).T
        return z, np.interp(t, self.t, self.F, right=0.0)


@cache
def plan() -> Plan:
    """The swing-up of least effort."""
    n, h = INTERVALS, SWING / INTERVALS
    z, F = casadi.MX.sym("z", 4, n + 1), casadi.MX.sym("F", n + 1)
    each = defect(h).map(n)
    g = each(z[:, :-1], z[:, 1:], F[:-1].T, F[1:].T)
    cost = h * (casadi.sumsqr(F) - (F[0] ** 2 + F[n] ** 2) / 2)
    problem = {"x": casadi.veccat(z, F), "f": cost, "g": casadi.vec(g)}
    solve = casadi.nlpsol("plan", "ipopt", problem, {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False})
    start, end = np.array([0.0, np.pi, 0.0, 0.0]), np.zeros(4)
    guess = np.outer(np.linspace(1.0, 0.0, n + 1), start)
    bound = np.tile([X_MAX, np.inf, np.inf, np.inf], (n + 1, 1))
    low, high = -bound, bound.copy()
    low[0] = high[0] = start
    low[n] = high[n] = end
    limits = np.full(n + 1, F_MAX)
    began = time.perf_counter()
    found = solve(
        x0=np.concatenate([guess.ravel(), np.zeros(n + 1)]),
        lbx=np.concatenate([low.ravel(), -limits]),
        ubx=np.concatenate([high.ravel(), limits]),
        lbg=0.0,
        ubg=0.0,
    )
    seconds, status = time.perf_counter() - began, solve.stats()
    if not status["success"]:
        raise RuntimeError(f"IPOPT: {status['return_status']}")
    values = found["x"].full()[:, 0]
    times, states = np.linspace(0.0, SWING, n + 1), values[: 4 * n + 4].reshape(n + 1, 4)
    costate = -found["lam_g"].full().reshape(n, 4)
    return Plan(times, states, values[4 * n + 4 :], costate, float(found["f"]), status["iter_count"], seconds)


class Controller:
    """Nonlinear model predictive control by one quadratic program for each sample.

    ``seconds``: the processor time that each call took. ``S`` (4, 4): the weight of the state at the horizon.
    """

    def __init__(self, S: np.ndarray) -> None:
        n = HORIZON
        z, F = casadi.MX.sym("z", 4, n + 1), casadi.MX.sym("F", n + 1)
        unknowns, defects = casadi.veccat(z, F), defect(SAMPLE).map(n)
        g = casadi.vec(defects(z[:, :-1], z[:, 1:], F[:-1].T, F[1:].T))
        self.linearized = casadi.Function("linearized", [unknowns], [g, casadi.jacobian(g, unknowns)])
        self.H = casadi.diagcat(*[SAMPLE * Q] * n, S, *[SAMPLE * R] * (n + 1))
        options = {"print_iter": False, "print_header": False, "max_iter": 20, "error_on_fail": False}
        shape = {"h": self.H.sparsity(), "a": self.linearized.sparsity_out(1)}
        self.program = casadi.conic("program", "qrqp", shape, options)
        start, force = casadi.MX.sym("start", 4), casadi.MX.sym("force")
        self.predict = casadi.Function("predict", [start, force], [runge_kutta(start, force, SAMPLE)])
        self.high = np.concatenate([np.tile([X_MAX, np.inf, np.inf, np.inf], n + 1), np.full(n + 1, F_MAX)])
        self.solution = self._reference(0.0)
        self.seconds: list[float] = []
        self.force = 0.0

    def __call__(self, t: float, q: np.ndarray, u: np.ndarray) -> float:
        """The force that acts from t + SAMPLE on, for the state measured at t."""
        began = time.thread_time()
        state = self.predict([*q, *u], self.force).full()[:, 0]
        self._improve(state, self._reference(t))
        self.force = float(self.solution[4 * HORIZON + 4])
        self._shift()
        self.seconds.append(time.thread_time() - began)
        return self.force

    def _reference(self, t: float) -> np.ndarray:
        """States and forces of the plan in the horizon, which begins one sample after t."""
        z, F = plan().at(t + SAMPLE * np.arange(1.0, HORIZON + 2.0))
        return np.concatenate([z.ravel(), F])

    def _improve(self, state: np.ndarray, reference: np.ndarray) -> None:
        """One step of Gauss and Newton, with the state at the begin of the horizon."""
        defects, A = self.linearized(self.solution)
        low, high = -self.high - self.solution, self.high - self.solution
        low[:4] = high[:4] = state - self.solution[:4]
        gradient = casadi.mtimes(self.H, self.solution - reference)
        step = self.program(h=self.H, g=gradient, a=A, lbx=low, ubx=high, lba=-defects, uba=-defects)
        self.solution = self.solution + step["x"].full()[:, 0]

    def _shift(self) -> None:
        """Move the solution by one interval; the last state and force are repeated."""
        z, F = self.solution[: 4 * HORIZON + 4].reshape(-1, 4), self.solution[4 * HORIZON + 4 :]
        self.solution = np.concatenate([z[1:].ravel(), z[-1], F[1:], F[-1:]])


def runge_kutta(z: Any, F: Any, h: float) -> Any:
    """z after a step of the method of Kutta (1901)."""
    k1 = rate(z, F)
    k2 = rate(z + h / 2 * k1, F)
    k3 = rate(z + h / 2 * k2, F)
    return z + h / 6 * (k1 + 2 * k2 + 2 * k3 + rate(z + h * k3, F))


def simulate() -> tuple[kg.Solver, kg.Solution]:
    solver = kg.build(model(), functions="all")
    linear = solver.linearize(0.0, np.zeros(2), np.zeros(2), {"F": 0.0})
    controller = Controller(solve_continuous_are(linear.A, linear.B[:, :1], Q, R))
    controller(0.0, *map(np.array, (INITIAL["q"], INITIAL["u"])))  # the first program takes longest: before the start
    controller.seconds.clear()
    begin, end, size = PUSH

    def inputs(t: float, q: np.ndarray, u: np.ndarray) -> tuple[float, float]:
        acts = t + SAMPLE
        return controller(t, q, u), size * (begin < acts + SAMPLE / 2 < end)

    plant = solver.with_parameters(PLANT)
    solution = plant.integrate(
        (0.0, END),
        *(INITIAL["q"], INITIAL["u"], inputs),
        sample_time=SAMPLE,
        delay=SAMPLE,
        rtol=1e-9,
        atol=1e-10,
    )
    best, times = plan(), 1e3 * np.array(controller.seconds)
    print(f"plan: {best.cost:.2f} N^2 s, {best.iterations} iterations of IPOPT in {best.seconds:.2f} s")
    print(f"control: {times.size} samples, processor time {np.median(times):.1f} ms, {times.max():.1f} ms at most")
    print(f"swing-up: {settled(solution):.2f} s until the pole stays within 0.1 rad before the push")
    return plant, solution


def settled(solution: kg.Solution) -> float:
    """The time after which |theta| <= 0.1 rad until the push begins."""
    times = np.linspace(0.0, PUSH[0], 2601)
    far = np.abs(solution(times)[0][:, 1]) > 0.1
    return float(times[np.flatnonzero(far)[-1]])


def by_hand(z: Any, F: Any) -> np.ndarray:
    """z' for z = (x, theta, x', theta'), written by hand; also for complex numbers."""
    p, (_, theta, v, w) = DEFAULTS, z
    c, s = np.cos(theta), np.sin(theta)
    a = (F - p["b"] * v + p["m_p"] * s * (p["l"] * w**2 - p["g"] * c)) / (p["m_c"] + p["m_p"] * s**2)
    return np.array([v, w, a, (p["g"] * s - c * a) / p["l"]])


def slopes(z: np.ndarray, F: float) -> np.ndarray:
    """Derivatives (4, 5) of z' with respect to z and F, by complex steps: exact to rounding (Squire and Trapp 1998)."""
    steps = 1e-30j * np.eye(5)
    return np.array([np.imag(by_hand(z + step[:4], F + step[4])) / 1e-30 for step in steps]).T


def checks(solver: kg.Solver, solution: kg.Solution) -> Iterator[tuple[str, float, float]]:
    best, p, function = plan(), list(DEFAULTS.values()), dynamics()
    states = list(zip(best.z, best.F, strict=True))
    errors = [rate(z, F).full()[:, 0] - by_hand(z, F) for z, F in states]
    yield "z' of the external function against the equations by hand", np.abs(errors).max(), 1e-11
    blocks = [function.jacobian()(z, [F, 0.0], p, 0.0)[:2] for z, F in states]
    jacobians = [np.hstack([A.full(), B.full()[:, :1]]) for A, B in blocks]
    errors = [J - slopes(z, F) for J, (z, F) in zip(jacobians, states, strict=True)]
    yield "its Jacobian against complex steps", np.abs(errors).max(), 1e-10

    run = solver.with_parameters({name: DEFAULTS[name] for name in PLANT}).integrate(
        (0.0, SWING),
        *(INITIAL["q"], INITIAL["u"], {"F": (best.t, best.F)}),
        rtol=1e-10,
        atol=1e-12,
        t_eval=best.t,
    )
    yield "the plan against the solver", np.abs(np.hstack([run.q, run.u]) - best.z).max(), 5e-3
    rates, h = np.array([by_hand(z, F) for z, F in states]), SWING / INTERVALS
    middle = (best.z[1:] + best.z[:-1]) / 2 - h / 8 * np.diff(rates, axis=0)
    force = (best.F[1:] + best.F[:-1]) / 2
    rates = np.array([by_hand(z, F) for z, F in zip(middle, force, strict=True)])
    hamiltonian = np.sum(best.costate * rates, axis=1) + force**2
    yield "change of the Hamiltonian along the plan, relative", np.ptp(hamiltonian) / F_MAX**2, 3e-2

    yield "largest force over its limit", np.abs(solution["F"]).max() / F_MAX - 1.0, 1e-9
    yield "largest |x| (m)", np.abs(solution["x"]).max(), X_MAX
    yield "time until the pole stays upright (s)", settled(solution), 2.0
    yield "largest |theta| after the push (rad)", np.abs(solution["theta"][solution.t > PUSH[0]]).max(), 0.5
    yield "error at the end", np.abs([*solution.q[-1], *solution.u[-1]]).max(), 0.1


def plot(figure: Any, runs: Mapping[str, tuple[kg.Solver, kg.Solution]]) -> None:
    ((_, solution),) = runs.values()
    best = plan()
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    axes = solution.plot("x", "theta", "F", ax=left)
    for axis, values in zip(axes, (best.z[:, 0], best.z[:, 1], best.F), strict=True):
        axis.plot(best.t, values, "k--", linewidth=1.0, label="plan")
        axis.axvspan(*PUSH[:2], color="tab:red", alpha=0.25, linewidth=0.0)
    axes[0].legend(loc="upper right")
    side = kg.plot.strobe(solution, _cart_and_tip, times=np.linspace(0.0, 1.6, 17), ax=right)
    side.set_title("0 to 1.6 s")


def _cart_and_tip(x: Any, theta: Any) -> list[tuple[Any, Any]]:
    return [(x, 0.0 * x), (x + DEFAULTS["l"] * np.sin(theta), DEFAULTS["l"] * np.cos(theta))]


if __name__ == "__main__":
    from _report import script

    if casadi is None:
        raise SystemExit("this example needs CasADi: pip install casadi")
    script(__doc__, simulate, checks, plot)
