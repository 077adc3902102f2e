"""The control law of a model: servo-constraints, or constraints that contain the controls."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import sympy

from kanegen.errors import brief
from kanegen.model import normalize
from kanegen.model.expressions import symbol_name
from kanegen.model.inputs import Input
from kanegen.model.records import settle

RESOLUTIONS: Final = ("moore_penrose", "ideal", "weighted")
"""The choices among all controls that enforce the servo-constraints."""


@dataclass(frozen=True, eq=False)
class Servo:
    """Servo-constraints and the controls that enforce them (Bajodah 2003, chapter 7).

    With the forces affine in the controls tau, the desired dynamics of all constraints is a linear system
    ``S tau = z``, S (n_psi, n_tau), which compiled code solves at every state for ``solver.control``.

    Parameters
    ----------
    constraints
        Expressions or equations psi (n_psi) that are zero on the desired motion: expressions of q, t, parameters and
        inputs (holonomic), or also of speeds or q' (nonholonomic). They do not contain controls.
    theta
        Desired dynamics, one entry for each constraint: a pair ``(Theta1, Theta2)`` for a holonomic one,
        ``psi'' = Theta1 psi' + Theta2 psi``; a number Theta for a nonholonomic one, ``psi' = Theta psi``. Negative
        numbers, or expressions of parameters with negative values; Theta2 in 1/s**2, the others in 1/s.
    controls
        The inputs tau (n_tau) that are solved for, symbols of the model's inputs. None: all inputs. Controls must enter
        the forces affinely and occur nowhere else.
    resolution
        ``"moore_penrose"``: ``tau = S^+ z + (I - S^+ S) y``, the controls nearest to y. ``"weighted"``: the controls
        that minimize ``(tau - y)^T W (tau - y)``. ``"ideal"``: the controls that act like the constraint forces of
        passive constraints, so that the accelerations satisfy Gauss' principle.
    weight
        W of ``"weighted"``: n_tau positive numbers or expressions (its diagonal), or a symmetric positive definite
        matrix (n_tau, n_tau).
    y
        The free vector (n_tau): numbers or expressions of t, q, u, parameters and inputs, one for each control or one
        for all. Except with ``"ideal"``, y can be affine in the controls, ``y = Y tau + y0``; the equation for tau is
        then solved with this y. None: given at run time, ``solver.control(t, q, u, y=...)``, with the default zero.
    damping
        Positive number or expression of parameters, in the unit of S: singular values of S below it are treated as if
        they were this large (damped least squares), so that controls remain finite where the servo-constraints cannot
        be satisfied. None: such states raise an error. Not with ``"ideal"``.
    limits
        Largest magnitude of each control, or ``(lowest, highest)``, numbers in the order of the controls. None means no
        limit: a cable that can only pull has ``(0, None)``. Used by ``solver.integrate(..., control=True)``.

    Raises
    ------
    ModelError
        With all problems that do not depend on the model; `Model` reports the others.
    """

    constraints: tuple[Any, ...]
    theta: tuple[tuple[Any, ...], ...] = ()
    controls: tuple[Any, ...] | None = None
    resolution: str = "moore_penrose"
    weight: tuple[tuple[Any, ...], ...] | None = None
    y: tuple[Any, ...] | None = None
    damping: Any = None
    limits: tuple[tuple[float, float], ...] | None = None

    def __init__(
        self,
        constraints: Any,
        theta: Any = None,
        controls: Any = None,
        resolution: str = "moore_penrose",
        weight: Any = None,
        y: Any = None,
        damping: Any = None,
        limits: Any = None,
    ) -> None:
        problems: list[str] = []
        psi = normalize.scalars(constraints, "constraints", problems)
        if not psi and not problems:
            problems.append("constraints is empty: expected at least one expression")
        fields = {
            "constraints": psi,
            "theta": _dynamics(theta, len(psi), problems),
            "controls": None if controls is None else _symbols(controls, problems),
            "resolution": _resolution(resolution, weight, damping, problems),
            "weight": None if weight is None else _weight(weight, problems),
            "y": None if y is None else normalize.scalars(y, "y", problems),
            "damping": None if damping is None else normalize.scalar(damping, "damping", problems),
            "limits": None if limits is None else control_limits(limits, problems),
        }
        settle(self, fields, problems, "Servo: ")

    def holonomic(self, k: int) -> bool:
        """Whether constraint k is one on positions, whose desired dynamics is of second order."""
        return len(self.theta[k]) == 2

    @property
    def is_ideal(self) -> bool:
        """Whether the controls act like constraint forces."""
        return self.resolution == "ideal"

    def slots(self, inputs: Sequence[Any]) -> tuple[int, ...]:
        """Indices of the controls among the inputs of the model, in the order of tau."""
        symbols = [item.symbol for item in inputs]
        if self.controls is None:
            return tuple(range(len(symbols)))
        return tuple(symbols.index(symbol) for symbol in self.controls if symbol in symbols)

    def free_vector(self, n_tau: int) -> tuple[Any, ...] | None:
        """y with n_tau entries; None if y is given at run time."""
        if self.y is None:
            return None
        return self.y * n_tau if len(self.y) == 1 else self.y

    def places(self) -> Iterator[tuple[str, str, tuple[Any, ...], int]]:
        """Kind, place, expressions and number of differentiations of all parts of the servo-constraints."""
        for k, (psi, theta) in enumerate(zip(self.constraints, self.theta, strict=True)):
            level, order = ("position", 2) if self.holonomic(k) else ("velocity", 1)
            yield f"servo {level}", f"servo constraints[{k}]", (psi,), order
            yield "servo gain", f"servo theta[{k}]", theta, 0
        if self.damping is not None:
            yield "servo gain", "servo damping", (self.damping,), 0
        if self.weight is not None:
            yield "servo law", "servo weight", tuple(x for row in self.weight for x in row), 0
        if self.y is not None:
            yield "servo law", "servo y", self.y, 0


def _dynamics(theta: Any, n: int, problems: list[str]) -> tuple[tuple[Any, ...], ...]:
    """One pair (Theta1, Theta2) or one-element tuple (Theta,) for each of n constraints."""
    if theta is None:
        problems.append(
            "theta is missing: give the desired dynamics of each constraint, (Theta1, Theta2) for "
            "psi'' = Theta1 psi' + Theta2 psi if it is holonomic, Theta for psi' = Theta psi if it is nonholonomic"
        )
        return ()
    entries = normalize.listed(theta)
    if n == 1 and len(entries) == 2 and not any(map(normalize.is_sequence, entries)):
        entries = (entries,)  # a single pair need not be in a list
    if len(entries) != n:
        problems.append(f"theta has {len(entries)} entry(s) for {n} constraint(s): expected one for each constraint")
        return ()
    problems.extend(
        f"theta[{k}] is {entry!r}: expected a number, or a pair (Theta1, Theta2)"
        for k, entry in enumerate(entries)
        if len(normalize.listed(entry)) not in (1, 2)
    )
    return tuple(_coefficients(entry, k, problems) for k, entry in enumerate(entries))


def _coefficients(entry: Any, k: int, problems: list[str]) -> tuple[Any, ...]:
    """The coefficients of constraint k, highest derivative first."""
    return tuple(normalize.scalar(value, f"theta[{k}]", problems) for value in normalize.listed(entry))


def _resolution(resolution: Any, weight: Any, damping: Any, problems: list[str]) -> str:
    if not isinstance(resolution, str) or resolution not in RESOLUTIONS:
        problems.append(f"resolution is {brief(resolution)}: expected one of {', '.join(RESOLUTIONS)}")
        return RESOLUTIONS[0]
    if (weight is not None) != (resolution == "weighted"):
        found = "has no weight" if weight is None else "has a weight"
        problems.append(
            f'resolution {brief(resolution)} {found}: weight= belongs to resolution="weighted" and no other'
        )
    if damping is not None and resolution == "ideal":
        problems.append(
            "damping was given with ideal controls, which exist exactly or not at all: leave it out, or use "
            'resolution="moore_penrose"'
        )
    return str(resolution)


def _weight(weight: Any, problems: list[str]) -> tuple[tuple[Any, ...], ...]:
    """The rows of W; a list of numbers is its diagonal."""
    is_table = isinstance(weight, sympy.MatrixBase) and min(weight.shape) > 1
    rows = weight.tolist() if is_table else normalize.listed(weight)
    if not any(map(normalize.is_sequence, rows)):
        rows = [[entry if i == j else 0 for j in range(len(rows))] for i, entry in enumerate(rows)]
    W = tuple(tuple(normalize.scalar(x, "weight", problems) for x in normalize.listed(row)) for row in rows)
    if any(len(row) != len(W) for row in W):
        problems.append(f"weight has rows of {[len(row) for row in W]} entries: expected a square matrix")
    elif any(W[i][j] != W[j][i] for i in range(len(W)) for j in range(i)):
        problems.append("weight is not symmetric: expected a symmetric positive definite matrix")
    elif all(x.is_number for row in W for x in row) and not sympy.Matrix(W).is_positive_definite:
        problems.append("weight is not positive definite: expected positive eigenvalues, such as a positive diagonal")
    return W


def control_limits(limits: Any, problems: list[str]) -> tuple[tuple[float, float], ...]:
    """Pairs (lowest, highest) of the limits that the user gave."""
    pairs = []
    for k, item in enumerate(normalize.listed(limits)):
        low, high = _limit(item)
        if not low < high:
            problems.append(
                f"limits[{k}] is {brief(item)}: expected the largest magnitude, a pair (lowest, highest), or None"
            )
        pairs.append((low, high))
    return tuple(pairs)


def _limit(item: Any) -> tuple[float, float]:
    """The pair (lowest, highest) of one limit; (nan, nan) for an invalid one."""
    try:
        low, high = item if normalize.is_sequence(item) else (None, None) if item is None else (-item, item)
        return -math.inf if low is None else float(low), math.inf if high is None else float(high)
    except (TypeError, ValueError, OverflowError):
        return math.nan, math.nan


@dataclass(frozen=True, eq=False)
class ControlConstraints:
    """Servo-constraints ``phi(q, u, tau, t) = 0`` that differential equations of the controls tau enforce.

    Each constraint is differentiated until it contains w, the derivatives of the controls that are not part of the
    state: tau', or tau'' for a control with a rate and an acceleration. The rows ``AA w = BB`` of all constraints give

        w = AA^+ BB + (I - AA^+ AA) y.

    The state of ``solver.integrate(..., control=True)`` is (q, u, tau), and tau' where w is tau''.

    Parameters
    ----------
    constraints
        Expressions or equations phi of t, q, q', u, u', the controls, other inputs and parameters. The equations of
        motion replace u' by functions of the controls. Without constraints, ``w = y``.
    controls
        The inputs tau that become part of the state. None: all inputs except rates of other inputs. A control in the
        kinematics, a velocity or a passive constraint needs symbols for its derivatives:
        ``kg.Input(tau, rate=tau1)`` if accelerations contain tau', and also ``acceleration=tau2`` if they contain
        tau''; the highest derivative is then w.
    theta
        Stabilization, or None. A number or expression of parameters for all constraints, or one entry for each:
        None, Theta for ``phi' = Theta phi``, or ``(Theta1, ..., Thetak)`` for
        ``phi^(k) = Theta1 phi^(k-1) + ... + Thetak phi`` for a constraint that is differentiated k times. In 1/s,
        1/s**2, ...
    y
        The free vector, the part of w that the constraints do not determine: a number or expression for all, or one for
        each control, of t, q, q', u, the controls, other inputs and parameters; None: zero. With ``y = -tau``, controls
        that no constraint needs decay.

    Raises
    ------
    ModelError
        With all problems that do not depend on the model; `Model` reports the others.
    """

    constraints: tuple[Any, ...]
    controls: tuple[Any, ...] | None
    theta: tuple[tuple[Any, ...], ...]
    y: tuple[Any, ...]

    def __init__(self, constraints: Any = (), controls: Any = None, theta: Any = None, y: Any = None) -> None:
        problems: list[str] = []
        phi = normalize.scalars(constraints, "constraints", problems)
        fields = {
            "constraints": phi,
            "controls": None if controls is None else _controls(controls, problems),
            "theta": _theta(theta, len(phi), problems),
            "y": (sympy.S.Zero,) if y is None else normalize.scalars(y, "y", problems),
        }
        settle(self, fields, problems, "ControlConstraints: ")

    def inputs(self, inputs: Sequence[Input]) -> tuple[Input, ...]:
        """The controls among the inputs of a model, in the order of tau."""
        by_symbol = {item.symbol: item for item in inputs}
        if self.controls is not None:
            return tuple(by_symbol[symbol] for symbol in self.controls if symbol in by_symbol)
        derivatives = {item.rate for item in inputs} | {item.acceleration for item in inputs}
        return tuple(item for item in inputs if item.symbol not in derivatives)

    def free_part(self, n_tau: int) -> tuple[Any, ...]:
        """y with n_tau entries."""
        return self.y * n_tau if len(self.y) == 1 else self.y

    def places(self) -> Iterator[tuple[str, str, tuple[Any, ...], int]]:
        """Kind, place, expressions and differentiations; the derivation determines how often to differentiate phi."""
        for k, (phi, theta) in enumerate(zip(self.constraints, self.theta, strict=True)):
            yield "control constraint", f"ControlConstraints constraints[{k}]", (phi,), 0
            yield "servo gain", f"ControlConstraints theta[{k}]", theta, 0
        yield "servo law", "ControlConstraints y", self.y, 0


def _symbols(value: Any, problems: list[str]) -> tuple[Any, ...]:
    """The symbols of the controls."""
    given = normalize.sequence(value, "controls", problems)
    wrong = [item for item in given if not isinstance(item, sympy.Expr)]
    problems.extend(f"controls contains {brief(item)}: expected inputs of the model" for item in wrong)
    return tuple(item for item in given if isinstance(item, sympy.Expr))


def _controls(value: Any, problems: list[str]) -> tuple[Any, ...]:
    listed = (value,) if isinstance(value, Input) else normalize.sequence(value, "controls", problems)
    symbols = _symbols([item.symbol if isinstance(item, Input) else item for item in listed], problems)
    twice = sorted({symbol_name(x) for x in symbols if symbols.count(x) > 1})
    problems.extend(f"controls contains {name} twice: list each control once" for name in twice)
    return symbols


def _theta(value: Any, n: int, problems: list[str]) -> tuple[tuple[Any, ...], ...]:
    """The coefficients of each of n constraints, highest derivative first; () without stabilization."""
    if value is None:
        return ((),) * n
    entries = tuple(value) if normalize.is_sequence(value) else (value,) * n
    if len(entries) != n:
        problems.append(f"theta has {len(entries)} entries for {n} constraint(s): expected one for each constraint")
        return ((),) * n
    theta = tuple(() if entry is None else _coefficients(entry, k, problems) for k, entry in enumerate(entries))
    for k, coefficients in enumerate(theta):
        if any(x.is_number and not (x.is_real and x.is_finite) for x in coefficients):
            problems.append(f"theta[{k}] is ({', '.join(map(str, coefficients))}): expected finite real numbers")
            continue
        largest = largest_exponent(coefficients) if all(x.is_number for x in coefficients) else -math.inf
        if not largest < 0.0:
            problems.append(
                f"theta[{k}] is ({', '.join(map(str, coefficients))}), for which errors of the constraint do not decay "
                f"(exponent {largest:.3g} 1/s): expected coefficients whose characteristic roots have negative real "
                "parts"
            )
    return theta


def largest_exponent(coefficients: Sequence[Any]) -> float:
    """Largest real part (1/s) of the roots of ``s^k = Theta1 s^(k-1) + ... + Thetak``; errors decay if it is < 0."""
    try:
        roots = np.roots([1.0, *(-float(x) for x in coefficients)])
    except (OverflowError, np.linalg.LinAlgError):  # larger than the largest floating-point number
        return math.inf
    return float(roots.real.max(initial=-math.inf))
