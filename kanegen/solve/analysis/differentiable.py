"""Jacobians and linear models: methods of a solver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kanegen.arrays import Array
from kanegen.codegen.description import Description
from kanegen.errors import SolveError
from kanegen.solve.analysis.linearize import Evaluate, Jacobian, Linearization, jacobian, linearize
from kanegen.solve.functions import Functions
from kanegen.solve.run.integrate import violations


class Differentiable:
    """The methods of :class:`~kanegen.Solver` for Jacobians and linear models.

    They need ``functions=("rhs", "residuals", "jacobians")`` of ``kg.build``, or more.
    """

    description: Description
    rhs: Callable[..., tuple[Array, Array]]
    residuals: Callable[..., tuple[Array, Array]]
    _functions: Functions

    def jacobian(self, t: float, q: Any, u: Any, r: Any = None) -> Jacobian:
        """Derivatives of (q', u') with the stabilization of the solver, by implicit differentiation, in C.

        Returns
        -------
        Jacobian
            Arrays (n_q + n_u, n) in ``q``, ``u``, the inputs ``r`` (rates of inputs are inputs of their own) and the
            parameters ``p`` in the order of ``description.parameters``. Off the constraint manifold they are those of
            ``rhs`` there. The slope of a root is taken as 0 where the root is 0 (docs/linearization.md).

        Raises
        ------
        SolveError
            Where ``rhs`` raises it, where a derivative is not finite, and when the Jacobians were not built.
        """
        return jacobian(self._at(t, q, u, r), self.description)

    def linearize(
        self,
        t: float,
        q: Any,
        u: Any,
        r: Any = None,
        *,
        coordinates: Sequence[Any] | None = None,
        speeds: Sequence[Any] | None = None,
        tolerance: float = 1e-8,
    ) -> Linearization:
        """The linear model in a minimal state about an equilibrium or a steady motion.

        Parameters
        ----------
        coordinates, speeds
            Names (or symbols) of the independent coordinates and speeds; None: those the constraints determine
            the others from best.
        tolerance
            How far the state may violate a constraint: its residual over the largest coordinate (positions) or speed
            (velocities), which counts as 1 at least.

        Raises
        ------
        SolveError
            When the state violates the constraints, naming each with its residual; when the named elements are not
            independent; when the Jacobians were not built.
        """
        position, velocity = self.residuals(t, q, u, r)
        violated = violations(self.description, position, velocity, q, u, tolerance)
        if violated:
            raise SolveError(
                f"the model {self.description.name!r} cannot be linearized at t = {t!r} s, the state violates "
                f"{len(violated)} constraint(s):\n  - " + "\n  - ".join(violated) + "\nsolve them first: "
                "q, u = solver.make_consistent(t, q, u), with fixed= for values to keep; or allow more by tolerance="
            )
        return linearize(self._at(t, q, u, r), self.description, self.rhs(t, q, u, r), coordinates, speeds)

    def _at(self, t: float, q: Any, u: Any, r: Any) -> Evaluate:
        def evaluate(name: str) -> Array:
            value: Array = self._functions.get(name).value(t, q, u, r)
            return value

        return evaluate
