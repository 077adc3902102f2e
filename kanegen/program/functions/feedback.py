"""Functions of the feedback laws of inputs."""

from __future__ import annotations

from kanegen.derivation.control.feedback import feedback_laws, limits_of_laws
from kanegen.derivation.control.feedback import unlimited_laws as laws_without_limits
from kanegen.model.description import SystemDescription
from kanegen.program.builder import Fragment, Functions


def needed_by_laws(model: SystemDescription) -> tuple[str, ...]:
    """Return the functions of feedback laws that every solver has: for runs, and to find equilibria from afar."""
    limited = any(item.limits for item in model.inputs)
    return (*(("laws",) if model.inputs_with_law else ()), *(("law_limits", "unlimited_laws") if limited else ()))


def no_laws(f: Functions) -> str | None:
    """Return the reason why the model has no feedback laws, or None."""
    return None if f.equations.model.inputs_with_law else "no input has a law. Give kg.Input(..., law=...)"


def no_limits(f: Functions) -> str | None:
    """Return the reason why the model has no limits of laws, or None."""
    if any(item.limits for item in f.equations.model.inputs):
        return None
    return no_laws(f) or "no law has a saturation or a dead band"


def laws(f: Functions) -> Fragment:
    """Build the values of the inputs with a law."""
    return f.fragment().output(f.equations.once(feedback_laws))


def law_limits(f: Functions) -> Fragment:
    """Build the limits of the laws."""
    return f.fragment().output(f.equations.once(limits_of_laws))


def unlimited_laws(f: Functions) -> Fragment:
    """Build the values of the inputs with a law, without dead bands and saturation."""
    return f.fragment().output(f.equations.once(laws_without_limits))
