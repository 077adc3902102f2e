"""What an integration method is apart from its coefficients: its name, and how it chooses its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from kanegen.codegen.methods.rosenbrock import Rosenbrock
from kanegen.codegen.methods.tableaux import Tableau


@dataclass(frozen=True)
class StepControl:
    """How an adaptive method chooses its steps.

    Source: E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, 2nd ed., section II.4.

    Parameters
    ----------
    order
        The error estimate is proportional to h^order.
    safety
        The next step is this fraction of the largest step that the error estimate allows.
    shrink, grow
        Smallest and largest quotient of consecutive steps.
    beta
        Exponent of the proportional part of the control; 0 means integral control only.
    """

    order: int
    safety: Fraction
    shrink: Fraction
    grow: Fraction
    beta: Fraction = Fraction(0)


@dataclass(frozen=True)
class Method:
    """An integration method.

    Parameters
    ----------
    name
        The name that users and C code use.
    title
        A description with the source.
    control
        How the method chooses its steps; None: all steps have the size that the user gives.
    load
        Makes the coefficients, which are checked as they are made. This takes milliseconds, so it is done on first
        use, when the C runtime is rendered.
    """

    name: str
    title: str
    control: StepControl | None
    load: Callable[[], Tableau | Rosenbrock]

    @property
    def is_adaptive(self) -> bool:
        """Whether the method chooses its steps."""
        return self.control is not None

    @property
    def is_implicit(self) -> bool:
        """Whether the method needs the Jacobian of the right-hand side."""
        return isinstance(self.coefficients, Rosenbrock)

    @cached_property
    def coefficients(self) -> Tableau | Rosenbrock:
        """The coefficients; made on first use."""
        return self.load()
