"""Methods against the drift of constraints: Baumgarte's stabilization, and projection onto the constraint manifold."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kanegen.errors import ModelError, brief
from kanegen.model.records import settle


@dataclass(frozen=True, eq=False, init=False)
class Baumgarte:
    """Gains with which drifting constraints decay: ``phi'' - G1 phi' - G2 phi = 0`` and ``psi' - G psi = 0``.

    ``Baumgarte(alpha, beta)`` means ``G1 = -2 alpha``, ``G2 = -beta**2`` for holonomic rows and
    ``G = -alpha`` for velocity-level rows (alpha, beta in 1/s, both positive; ``beta = alpha`` is critically
    damped). ``Baumgarte(G1=, G2=, G=)`` takes the gains themselves. Each is a number, or a square matrix
    with one row per constraint of its kind.

    In a run backward in time the gains change their direction with it, so that violations decay toward its end:
    ``phi'' + G1 phi' - G2 phi = 0`` and ``psi' + G psi = 0``. ``integrate`` and ``integrate_many`` do that by
    themselves. ``backward=True`` does it for functions of a single state, which do not know the direction:
    ``solver.rhs``, ``solver.ode`` in an integrator of SciPy, and emitted functions.

    Raises
    ------
    ModelError
        For gains with which violations of constraints would not decay: all eigenvalues of ``[[0, I], [G2, G1]]``
        and of ``G`` must have negative real parts. :meth:`gains` checks the sizes of matrices, because they depend on
        the number of constraints.
    """

    alpha: Any = None
    beta: Any = None
    G1: Any = None
    G2: Any = None
    G: Any = None
    backward: bool = False

    def __init__(
        self,
        alpha: Any = None,
        beta: Any = None,
        *,
        G1: Any = None,
        G2: Any = None,
        G: Any = None,
        backward: bool = False,
    ) -> None:
        problems: list[str] = []
        if not isinstance(backward, bool):
            problems.append(f"Baumgarte got backward={brief(backward)}: expected True or False")
        given = {"alpha": alpha, "beta": beta, "G1": G1, "G2": G2, "G": G}
        gains = {name: _gain(value, name, problems) for name, value in given.items()}
        if (alpha is not None or beta is not None) and (G1 is not None or G2 is not None or G is not None):
            problems.append("Baumgarte got alpha or beta together with G1, G2 or G: give one kind of gains")
        elif alpha is None and beta is not None:
            problems.append("Baumgarte got beta without alpha, so the decay would not be damped: give alpha as well")
        elif (G1 is None) != (G2 is None):
            present, absent = ("G2", "G1") if G1 is None else ("G1", "G2")
            problems.append(f"Baumgarte got {present} without {absent}: give both")
        elif all(value is None for value in given.values()):
            problems.append("Baumgarte got no gains: give alpha and beta, or G1, G2 and G")
        object.__setattr__(self, "backward", backward)
        if not problems and alpha is not None:
            gains["G"] = -gains["alpha"]
            if beta is not None:
                gains["G1"], gains["G2"] = -2.0 * gains["alpha"], -_square(gains["beta"])
        for name, value in gains.items():
            if value is not None:
                gains[name] = np.asarray(value)
                gains[name].setflags(write=False)
        settle(self, gains, problems or _decay_problems(gains["G1"], gains["G2"], gains["G"]))

    @classmethod
    def for_period(cls, period: float) -> Baumgarte:
        """The automatic choice: critically damped, ``alpha = beta = 4 pi / period``, twice as fast as the motion.

        ``period`` is that of the fastest oscillation to be resolved, in s. The gains depend on the motion, not on the
        step: larger gains would amplify the error of every step (docs/stabilization.md).

        Raises
        ------
        ModelError
            For a period that is not positive and finite.
        """
        if not _positive(period):
            raise ModelError(f"Baumgarte.for_period got the period {period!r}: expected a positive number of seconds")
        rate = 4.0 * math.pi / period
        return cls(rate, rate)

    def toward(self, backward: bool) -> Baumgarte:
        """The same decay in runs of this direction of time."""
        if backward == self.backward:
            return self
        twin = copy(self)
        object.__setattr__(twin, "backward", backward)
        return twin

    def gains(self, n_h: int, n_v: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """``G1`` (n_h, n_h), ``G2`` (n_h, n_h) and ``G`` (n_v, n_v) for n_h holonomic and n_v velocity rows.

        With ``backward`` G1 and G have the opposite sign. G2 does not change, because phi'' does not.
        Raises ``ModelError`` when a gain that these rows need was not given or has another size.
        """
        problems: list[str] = []
        G1 = _matrix(self.G1, "G1", n_h, "holonomic", problems)
        G2 = _matrix(self.G2, "G2", n_h, "holonomic", problems)
        G = _matrix(self.G, "G", n_v, "velocity-level", problems)
        problems = problems or _decay_problems(G1, G2, G)
        if problems:
            raise ModelError(problems)
        return (-G1, G2, -G) if self.backward else (G1, G2, G)

    def flatten(self, n_h: int, n_v: int) -> NDArray[np.float64]:
        """G1, G2 and G row by row in one array of 2 n_h**2 + n_v**2: the order of the compiled code."""
        return np.concatenate([matrix.ravel() for matrix in self.gains(n_h, n_v)])


def _gain(value: Any, name: str, problems: list[str]) -> Any:
    """The value as a read-only float array of no or two dimensions, or None."""
    if value is None:
        return None
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        problems.append(f"{name} is {brief(value)}: expected a number or a square matrix of numbers")
        return None
    if array.ndim not in (0, 2) or len(set(array.shape)) > 1:
        problems.append(f"{name} has the shape {array.shape}: expected a number or a square matrix")
    elif not np.all(np.isfinite(array)):
        problems.append(f"{name} contains a value that is not finite: {array.tolist()}")
    return array


def _square(value: Any) -> Any:
    return value @ value if value.ndim == 2 else value * value


def _matrix(value: Any, name: str, size: int, kind: str, problems: list[str]) -> Any:
    if size == 0:
        return np.zeros((0, 0))
    if value is None:
        wanted = "alpha and beta, or G1 and G2" if kind == "holonomic" else "alpha, or G"
        problems.append(f"the model has {size} {kind} constraint(s), but {name} is missing: give {wanted}")
        return np.zeros((size, size))
    if value.ndim == 0:
        return np.eye(size) * value
    if value.shape != (size, size):
        problems.append(
            f"{name} has the shape {value.shape}, but the model has {size} {kind} constraint(s): "
            f"expected a number or the shape ({size}, {size})"
        )
    return value


def _decay_problems(G1: Any, G2: Any, G: Any) -> list[str]:
    """Gains, of those that are not None, with which violations of constraints would not decay."""
    problems: list[str] = []
    if G1 is not None and G2 is not None:
        sizes = {value.shape[0] for value in (G1, G2) if value.ndim == 2}
        if len(sizes) > 1:
            return [f"G1 has the shape {G1.shape} and G2 {G2.shape}: expected the same size"]
        eye = np.eye(sizes.pop() if sizes else 1)
        g1, g2 = (value if value.ndim == 2 else eye * value for value in (G1, G2))
        advice = "make alpha and beta positive (G1 and G2 negative: G1 = -2 alpha, G2 = -beta**2)"
        problems += _unstable(np.block([[0.0 * eye, eye], [g2, g1]]), "phi'' - G1 phi' - G2 phi = 0", advice)
    if G is not None:
        problems += _unstable(np.atleast_2d(G), "psi' - G psi = 0", "make alpha positive (G negative: G = -alpha)")
    return problems


def _unstable(matrix: Any, law: str, advice: str) -> list[str]:
    worst = complex(max(np.linalg.eigvals(matrix), key=lambda value: value.real, default=-1.0))
    if worst.real < 0.0:
        return []
    brief = f"{worst.real:.6g}" + (f"{worst.imag:+.6g}j" if worst.imag else "")
    return [f"the stabilization {law} does not decay: eigenvalue {brief} has no negative real part; {advice}"]


@dataclass(frozen=True)
class Projection:
    """After steps of a run, positions and then speeds are corrected by the smallest change in the mass metric.

    The integrated equations have no stabilizing terms, so that no gains affect energy and momenta. Source:
    Hairer, Lubich and Wanner, Geometric Numerical Integration (2006), sections IV.4 and VII.1.

    Parameters
    ----------
    every
        Steps from one projection to the next; the last state of a run is always projected.
    tolerance
        A state is corrected only if a residual exceeds ``tolerance`` times the terms of its row: half of the entries
        times the coordinates (positions; an angle counts as at least 1) or speeds (velocities), so that units do not
        matter. With the forms ``"pseudoinverse"`` and ``"canonical"``, whose constraint rows can become dependent
        during a run, it is corrected only if the correction exceeds ``tolerance``, relative in the same way. For an
        integral, the limit is ``tolerance`` times its value or the sum of ``|I_u u|``, whichever is larger.
    integrals
        Integrals of motion that keep their value at the start: ``"energy"`` and names of outputs of the model, such as
        an angular momentum, in the order of their precedence. The speeds are corrected for them after the constraints;
        see docs/stabilization.md. kanegen does not check that a quantity is conserved before it enforces this.

    Raises
    ------
    ModelError
        If ``every`` or ``tolerance`` is not positive, or ``integrals`` contains something else than distinct names.
    """

    every: int = 1
    tolerance: float = 1e-13
    integrals: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        problems = []
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            problems.append(f"Projection got every={brief(self.every)}: expected a positive whole number of steps")
        if not _positive(self.tolerance):
            problems.append(f"Projection got tolerance={brief(self.tolerance)}: expected a positive number")
        given = (self.integrals,) if isinstance(self.integrals, str) else self.integrals
        names = tuple(given) if isinstance(given, list | tuple | set | frozenset) else (None,)
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            problems.append(
                f"Projection got integrals={brief(self.integrals)}: expected 'energy' and names of outputs, each once"
            )
        settle(self, {"integrals": names}, problems)


def _positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.0 < value < math.inf


def require_stabilization(value: Any) -> None:
    """Raise ``ModelError`` for anything but ``None``, :class:`Baumgarte` and :class:`Projection`."""
    if value is not None and not isinstance(value, (Baumgarte, Projection)):
        raise ModelError(
            f"stabilization is {brief(value)}; expected kg.Baumgarte(alpha, beta), kg.Projection() or None"
        )
