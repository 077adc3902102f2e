"""The feedback laws of inputs as nodes."""

from __future__ import annotations

from kanegen.derivation.equations import Equations
from kanegen.graph import Node


def feedback_laws(equations: Equations) -> tuple[Node, ...]:
    """The values of the inputs with a law, with dead bands and saturation, in the order of the inputs."""
    system, inputs = equations.system, equations.model.inputs
    values = [system.lower(inputs[k].value) for k in equations.model.inputs_with_law]
    return tuple(equations.simplified(values))


def unlimited_laws(equations: Equations) -> tuple[Node, ...]:
    """The values of all laws without dead bands and saturation, in the order of the inputs."""
    system, inputs = equations.system, equations.model.inputs
    return tuple(equations.simplified([system.lower(inputs[k].law) for k in equations.model.inputs_with_law]))


def limits_of_laws(equations: Equations) -> tuple[Node, ...]:
    """The limits of all laws (:attr:`.Input.limits`), in the order of the inputs."""
    limits = (limit for item in equations.model.inputs for limit in item.limits.values())
    return tuple(equations.simplified([equations.system.lower(limit) for limit in limits]))
