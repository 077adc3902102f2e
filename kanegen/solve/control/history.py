"""What a :class:`~kanegen.Solution` tells of the controls of a closed loop."""

from __future__ import annotations

from dataclasses import dataclass

from kanegen.arrays import Array
from kanegen.solve.control.saturation import Saturation


@dataclass(frozen=True, eq=False)
class ControlHistory:
    """The controls of a run in which the control law of the model gives them.

    Attributes
    ----------
    values
        Controls (n_t, n_tau) that act from each stored time on. Of control constraints with their rates, where these
        are part of the state.
    names
        Their names, n_tau.
    errors
        What the constraints leave at the stored times, (n_t, n_e), each in its unit: psi and psi' of servo-constraints,
        control constraints and those of their derivatives that hold no unknown ones. None where the function that gives
        them was not built, and without constraints.
    constraints
        Names of the columns of ``errors``.
    saturation
        Intervals in which a control was at a limit.
    warnings
        Sentences on what the limits prevented.
    """

    values: Array
    names: tuple[str, ...]
    errors: Array | None
    constraints: tuple[str, ...]
    saturation: tuple[Saturation, ...] = ()
    warnings: tuple[str, ...] = ()
