"""Servo-constraints at one state: controls, their feasibility, residuals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from kanegen.arrays import Array
from kanegen.backends.points import Point
from kanegen.codegen.description import Description, ServoLabels
from kanegen.errors import SolveError
from kanegen.program.catalogue import group
from kanegen.solve.evaluation import Evaluation
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.values import by_name, input_array, numbers, one_state, require_none

SERVO_FUNCTIONS: Final = tuple(name for name in group("servo") if name != "servo_gains")


@dataclass(frozen=True)
class Feasibility:
    """Whether controls satisfy the servo-constraints at a state.

    Attributes
    ----------
    kind
        ``"unique"``; ``"family"``: infinitely many solutions, from which ``y`` selects one; ``"none"``.
    dimension
        Dimension of the family, n_tau - rank(S); 0 for a unique solution. Without a solution, the dimension of the null
        space of S: controls that have no effect.
    residual
        Largest ``|S tau - z|`` of the best controls, in the unit of psi'' (psi' for nonholonomic constraints); a
        rounding error if a solution exists. For ideal controls, ``|M G tau - M J_s^T mu|``, an acceleration.
    smallest_singular_value
        Smallest singular value of S, with every row divided by the magnitude of its terms; without unit, at most
        sqrt(n_psi), and 0 if S does not have full rank. The smaller it is, the larger are the controls. For ideal
        controls, the smallest singular value of M G.
    """

    kind: str
    dimension: int
    residual: float
    smallest_singular_value: float


class Underactuation(NamedTuple):
    """``matrix u' = right_side`` for all controls: (n_f, n_u) and (n_f,)."""

    matrix: Array
    right_side: Array


class Controlled(Evaluation):
    """The methods of :class:`~kanegen.Solver` for servo-constraints (``control=kg.Servo(...)`` of ``kg.Model``)."""

    _servo: dict[str, Callable[..., Any]]
    _servo_defaults: Array
    _servo_missing: tuple[str, ...]

    def control(self, t: float, q: Any, u: Any, y: Any = None, r: Any = None, s: Any = None) -> Array:
        """The controls tau (n_tau,) that enforce the servo-constraints at this state.

        Parameters
        ----------
        y
            Free vector (n_tau,) of ``tau = S^+ z + (I - S^+ S) y``, or a number for all; None: zero. Not accepted if
            ``Servo(y=...)`` fixes it.
        r
            Inputs (n_r,); the entries of the controls are not read. None: the defaults; controls need no default.
        s
            States (n_s,) of a model with states.

        Returns
        -------
        numpy.ndarray
            Controls in the order of ``description.servo.controls``, their indices among the inputs.

        Raises
        ------
        SolveError
            If no controls satisfy the servo-constraints: z is not in the range of S, or S is singular, with singular
            values below 1e-9 relative to its terms (``Servo(damping=...)`` gives bounded controls there); if y
            contains the controls and does not determine them; for arguments of the wrong shape.
        """
        return np.asarray(self._servo_point(t, q, u, r, s, y).evaluate(self._servo["control"]))

    def servo_system(self, t: float, q: Any, u: Any, r: Any = None, s: Any = None) -> tuple[Array, Array]:
        """``(S, z)``, (n_psi, n_tau) and (n_psi,), of the equations ``S tau = z`` for the controls."""
        at = self._servo_point(t, q, u, r, s)
        return at.evaluate(self._servo["servo_matrix"]), at.evaluate(self._servo["servo_right_side"])

    def servo_residuals(self, t: float, q: Any, u: Any, r: Any = None, s: Any = None) -> tuple[Array, Array]:
        """psi (n_psi,) of the servo-constraints, and psi' of the holonomic ones; both vanish on the desired motion."""
        values = self._servo_point(t, q, u, r, s).evaluate(self._servo["servo_residuals"])
        n_psi = len(self.description.servo.orders) if self.description.servo else 0
        return values[..., :n_psi], values[..., n_psi:]

    def feasibility(self, t: float, q: Any, u: Any, r: Any = None, s: Any = None) -> Feasibility:
        """Whether the servo-constraints at this state are satisfied by unique controls, a family, or none."""
        q, u, s = self._state(q, u, s)
        one_state(t, q, u, r, s)
        rank, residual, smallest, possible = self._servo_point(t, q, u, r, s).evaluate(self._servo["feasibility"])
        dimension = len(_controls(self.description)) - int(rank)
        kind = "none" if not possible else "family" if dimension else "unique"
        return Feasibility(kind, dimension, float(residual), float(smallest))

    def underactuation(self, t: float, q: Any, u: Any, r: Any = None, s: Any = None) -> Underactuation:
        """The equations of motion that contain no controls, ``R u' = c`` (n_f rows).

        They are the second-order nonholonomic constraints of a system with fewer independent controls than degrees of
        freedom (Bajodah 2003, section 1.3): ``N^T A2 (Q u' - P0) = 0`` with ``N^T A2 G = 0``. While the controls
        enforce servo-constraints, these equations are the internal dynamics. The controls are those of the
        servo-constraints; in a model without servo-constraints, all inputs that occur only in the forces, affinely.
        The method needs ``functions="underactuation"``.

        Raises
        ------
        SolveError
            Also if the controls act on every degree of freedom, so that no such equations exist.
        """
        rows = self._value("underactuation", *self._servo_point(t, q, u, r, s)[:5])
        return Underactuation(rows[..., :-1].copy(), rows[..., -1].copy())

    def _servo_point(self, t: Any, q: Any, u: Any, r: Any, s: Any, y: Any = None) -> Point:
        """The arguments with all inputs and the free vector y; missing inputs follow laws, are the defaults or zero."""
        d = self.description
        if d.laws and (r is None or isinstance(r, Mapping)):
            unread = dict.fromkeys(d.input_names(_controls(d)), 0.0)
            r = self._functions.with_laws((), t, q, u, unread | by_name(r or {}, d.inputs, "input"), s)
        if isinstance(r, Mapping):
            known = dict.fromkeys(self._servo_missing, np.nan)
            defaults = [known.get(name, x) for name, x in zip(d.inputs, self._servo_defaults, strict=True)]
            r = input_array(d, r, np.array(defaults))
        if r is None and self._servo_missing:
            raise SolveError(
                f"the inputs {', '.join(self._servo_missing)} of {d.name!r} have no default and are not controls: pass "
                f"r= ({len(d.inputs)} values: {', '.join(d.inputs)}; the entries of the controls are not read)"
            )
        if y is not None and (d.servo is None or not d.servo.free):
            reason = "it has no servo-constraints" if d.servo is None else "kg.Servo(y=...) of the model fixes it"
            raise SolveError(f"y cannot be given to the model {d.name!r}: {reason}")
        free = None if y is None else numbers(y, "y", d.free_controls)
        return Point(t, q, u, self._servo_defaults if r is None else r, s, None, free)


def servo_attributes(functions: CompiledFunctions) -> dict[str, Any]:
    """The attributes of `Controlled`: compiled functions by name, and default inputs.

    Raises `SolveError` for gains that are not stable with the parameters of the solver.
    """
    d = functions.description
    defaults = [0.0 if k in _controls(d) else slot.default for k, slot in enumerate(d.input_slots)]
    if d.servo is not None and functions.problem("servo_gains") is None:
        _require_stability(d.name, d.servo, functions.of_parameters("servo_gains"))
    return {
        "_servo": {name: functions.call(name) for name in SERVO_FUNCTIONS},
        "_servo_defaults": np.array([x or 0.0 for x in defaults]),
        "_servo_missing": tuple(name for name, x in zip(d.inputs, defaults, strict=True) if x is None),
    }


def _controls(description: Description) -> tuple[int, ...]:
    return () if description.servo is None else description.servo.controls


def _require_stability(name: str, servo: ServoLabels, gains: Array) -> None:
    names = {2: ("Theta1", "Theta2"), 1: ("Theta",)}
    problems = [
        f"{gain} = {value:g} of the servo-constraint {label}"
        for label, order, row in zip(servo.residuals, servo.orders, gains, strict=False)
        for gain, value in zip(names[order], row, strict=False)
        if not value < 0.0
    ]
    require_none(
        problems,
        f"the servo-constraints of {name!r} are not stable with these parameters: ",
        "; expected negative numbers, because otherwise the servo-errors grow",
    )
