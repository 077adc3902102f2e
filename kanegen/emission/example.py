"""What the example program of a standalone project does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kanegen.codegen.description import Description
from kanegen.emission.laws import AT_EVERY_STEP, CONTROL, Law, LawGroup, context_of_laws, laws_of
from kanegen.errors import SolveError
from kanegen.forms import FORMS
from kanegen.model import Baumgarte, Projection
from kanegen.solve.values import gain_values, initial_time, integral_function


class Control(NamedTuple):
    """One value of the function ``control``: its slot among the inputs, its limits (infinite: none)."""

    slot: int
    name: str
    low: float
    high: float


class Stabilized(NamedTuple):
    """The stabilization of the example program: gains (n_g,), or a projection after ``every`` steps (0: none).

    ``integrals``: functions of the integrals of motion that the projection keeps; ``any_rank``: constraints can become
    dependent during a run.
    """

    gains: tuple[float, ...] = ()
    every: int = 0
    tolerance: float = 0.0
    integrals: tuple[str, ...] = ()
    any_rank: bool = False


UNSTABILIZED: Final = Stabilized()


class Example(NamedTuple):
    """What the example program of a project does.

    Parameters
    ----------
    controls
        The values of the function ``control``, in order; the example samples and holds them as in a real-time loop.
    control_states
        Names and slots of the inputs that are part of the state of ``rhs_controlled``.
    path_controls
        Names and slots of the inputs that inverse dynamics solves for.
    states
        Names of the additional states of the model.
    mass
        The function of the matrix of the accelerations.
    start_time
        The time at which the example starts, s.
    laws
        The values of the function ``laws``, in order; the example evaluates them continuously or at their samples.
    stabilization
        Against the drift of constraints.
    units
        Names of variables, parameters and outputs with their coherent SI units, those that are known.
    """

    controls: Sequence[Control] = ()
    control_states: Sequence[tuple[str, int]] = ()
    path_controls: Sequence[tuple[str, int]] = ()
    states: Sequence[str] = ()
    mass: str = "Q"
    start_time: float = 0.0
    laws: Sequence[Law] = ()
    stabilization: Stabilized = UNSTABILIZED
    units: Sequence[tuple[str, str]] = ()

    @classmethod
    def of(
        cls,
        description: Description,
        known: Mapping[str, float],
        stabilization: Baumgarte | Projection | None,
        units: Sequence[tuple[str, str]],
    ) -> Example:
        """The example of a model. ``known``: values by name.

        Raises `SolveError` if the model has nothing to stabilize, or not in its form.
        """
        constraints = description.control_constraints
        control_states = () if constraints is None else constraints.states
        return cls(
            controls=_sampled_controls(description),
            control_states=[(description.inputs[slot], slot) for slot in control_states],
            path_controls=[(description.inputs[slot], slot) for slot in description.path_controls],
            states=description.states,
            mass=description.mass,
            start_time=initial_time(description, known) or 0.0,
            laws=laws_of(description),
            stabilization=stabilized_by(description, stabilization),
            units=units,
        )

    def context(self) -> dict[str, Any]:
        """What the templates read."""
        laws = context_of_laws(self.laws)
        return self._asdict() | laws | self._of_example(laws)

    def _of_example(self, laws: Mapping[str, Any]) -> dict[str, Any]:
        """The laws of the example: those of the model, and the controls, which are sampled at every step."""
        if not self.controls:
            return {"example_laws": laws["law_groups"], "example_clocks": laws["law_clocks"]}
        slots, _, low, high = zip(*self.controls, strict=True)
        control = LawGroup(CONTROL, len(laws["law_clocks"]), slots, tuple(range(len(slots))), low, high)
        return {
            "example_laws": [*laws["law_groups"], control],
            "example_clocks": [*laws["law_clocks"], AT_EVERY_STEP],
        }


PLAIN: Final = Example()


def stabilized_by(description: Description, stabilization: Baumgarte | Projection | None) -> Stabilized:
    """The stabilization of emitted code.

    Raises `SolveError` for a model that has nothing to stabilize, and for a form whose state contains momenta.
    """
    gains = gain_values(stabilization, description)
    form = FORMS[description.form]
    if not isinstance(stabilization, Projection):
        return Stabilized(gains=tuple(gains.tolist()) if stabilization is not None else ())
    if form.momenta:
        raise SolveError(f"the projection of {description.name!r} does not apply to form={form.name!r}")
    integrals = tuple(map(integral_function, stabilization.integrals))
    return Stabilized((), stabilization.every, stabilization.tolerance, integrals, form.any_rank)


def _sampled_controls(description: Description) -> list[Control]:
    """The controls of the servo-constraints; empty if the function ``control`` was not compiled."""
    servo = description.servo
    if servo is None or "control" not in description.functions:
        return []
    limits = zip(servo.controls, servo.limits, strict=True)
    return [Control(slot, description.inputs[slot], *pair) for slot, pair in limits]
