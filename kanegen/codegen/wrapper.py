"""The source of the Python extension module apart from the kernel: the same for all models with the same features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kanegen.codegen.environment import render
from kanegen.codegen.methods.table import METHODS


@dataclass(frozen=True)
class Features:
    """What the module does besides evaluating functions and integrating smooth motion.

    ``events``: runs with contacts and events. ``solver``: what :class:`kanegen.Solver` calls besides: speeds after
    impulses, inverse dynamics. ``methods``: the integration methods. A module with all features serves every model.
    """

    events: bool = True
    solver: bool = True
    methods: tuple[str, ...] = tuple(METHODS)

    @property
    def implicit_methods(self) -> bool:
        """Whether one of the methods needs the Jacobian of the right-hand side."""
        return any(METHODS[name].is_implicit for name in self.methods)


EVERYTHING: Final = Features()

FILES: Final = (
    "module.pyx",
    "module_declarations.pxi",
    "module_arguments.pxi",
    "module_function.pxi",
    "module_refusals.pxi",
    "module_inputs.pxi",
    "module_control.pxi",
    "module_consistent.pxi",
    "module_run.pxi",
    "module_integrate.pxi",
    "module_steppers.c",
    "module_steppers.h",
    "module_runtime.c",
    "module_runtime.h",
)
"""The files of every module."""

FURTHER_FILES: Final = {
    "module_jacobian.pxi": ("implicit_methods",),
    "module_inverse.pxi": ("solver",),
    "module_impulse.pxi": ("solver", "events"),
    "module_contacts.pxi": ("events",),
    "module_hybrid.pxi": ("events",),
}
"""Files of modules that have one of the features named."""


def wrapper_files(features: Features = EVERYTHING) -> dict[str, str]:
    """The files of a module with these features, name to text."""
    further = [name for name, needed in FURTHER_FILES.items() if any(getattr(features, one) for one in needed)]
    return {name: render(name, has=features) for name in (*FILES, *further)}
