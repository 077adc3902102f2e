"""The quantities of solvers and solutions, declared for type checkers and editors.

At run time both classes are empty: a `Solver` has a compiled function for each entry of the catalogue, and a `Solution`
evaluates it along the motion. ``KANEGEN_UPDATE_GOLDENS=1 pytest tests/package/test_types.py`` writes anew what follows
from the catalogue (kanegen/program/catalogue.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from kanegen.arrays import Array

Numbers: TypeAlias = Sequence[float] | Mapping[Any, float] | None
"""One state as a list, a tuple, or a mapping from names or symbols; None: that of ``initial``."""


class SolverQuantities:
    """The quantities of a `Solver` as functions of a state, or of N states."""

    if TYPE_CHECKING:

        def rhs(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> tuple[Array, ...]:
            """Rates (q', u') of a state, (n_q,) and (n_u,), and s' (n_s,) with states."""

        def ode(self, t: float, y: Any, r: Any = None) -> Array:
            """y' for y = (q, u, s), for scipy.integrate.solve_ivp."""

        def speeds_from_momentum(self, t: Any, q: Any, mom: Any, r: Any = None, s: Any = None) -> Array:
            """Speeds (n_u,) from the momenta of the momentum forms."""

        def momentum_rhs(self, t: Any, q: Any, mom: Any, r: Any = None, s: Any = None) -> tuple[Array, ...]:
            """Rates (q', mom') of the momentum forms, and s' (n_s,) with states."""

        # From the catalogue:

        def state_rates(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Array:
            """Rates s' of the states, (n_s,); (N, ...) at N states."""

        def T(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None) -> Array:
            """T of T u' = V: rows of the constraints, then momentum rows, (n_u, n_u); (N, ...) at N states."""

        def V(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None) -> Array:
            """V of T u' = V, with stabilization gains, (n_u,); (N, ...) at N states."""

        def Q(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None) -> Array:
            """Kinetic-energy matrix, (n_u, n_u); (N, ...) at N states."""

        def M(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None) -> Array:
            """Matrix of the accelerations, Q - dF/du', (n_u, n_u); (N, ...) at N states."""

        def P(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None) -> Array:
            """Generalized active forces minus inertia forces at u' = 0, (n_u,); (N, ...) at N states."""

        def J(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None) -> Array:
            """Constraint rows at acceleration level, (n_c, n_u); (N, ...) at N states."""

        def b(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None) -> Array:
            """Right sides of J u' = b, with stabilization gains, (n_c,); (N, ...) at N states."""

        def A(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None) -> Array:
            """A of u_D' = A u_I' + B, (n_d, n_i); (N, ...) at N states."""

        def B(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None) -> Array:
            """B of u_D' = A u_I' + B, with stabilization gains, (n_d,); (N, ...) at N states."""

        def constraint_force(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Array:
            """Generalized constraint forces, (n_u,); (N, ...) at N states."""

        def multipliers(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Array:
            """Multipliers of the constraint rows, Q u' = P + J^T lambda, (n_c,); (N, ...) at N states."""

        @overload
        def kinetic_energy(
            self, t: float, q: Numbers, u: Numbers, r: Any = None, s: Any = None, *, forces: Any = None
        ) -> float: ...
        @overload
        def kinetic_energy(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Any: ...
        def kinetic_energy(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Any:
            """Kinetic energy in J, a float; (N,) at N states."""

        @overload
        def potential_energy(
            self, t: float, q: Numbers, u: Numbers, r: Any = None, s: Any = None, *, forces: Any = None
        ) -> float: ...
        @overload
        def potential_energy(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Any: ...
        def potential_energy(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Any:
            """Potential energy in J, a float; (N,) at N states."""

        @overload
        def energy(
            self, t: float, q: Numbers, u: Numbers, r: Any = None, s: Any = None, *, forces: Any = None
        ) -> float: ...
        @overload
        def energy(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Any: ...
        def energy(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Any:
            """Kinetic and potential energy in J, a float; (N,) at N states."""

        def momentum(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Array:
            """Generalized momenta Q u + N, (n_u,); (N, ...) at N states."""

        def old_speeds(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Array:
            """Generalized speeds before the change of speeds, (n_u,); (N, ...) at N states."""

        def new_speeds(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Array:
            """Generalized speeds from those before the change (argument u), (n_u,); (N, ...) at N states."""

        def A1(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Array:
            """A1 = [-A I], (n_d, n_u); (N, ...) at N states."""

        def A2(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Array:
            """A2 = [I A^T], (n_i, n_u); (N, ...) at N states."""

        def N(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None) -> Array:
            """Momenta at u = 0, (n_u,); (N, ...) at N states."""

        def L(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None) -> Array:
            """Inertia forces at u' = 0, (n_u,); (N, ...) at N states."""

        def F(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None) -> Array:
            """Generalized active forces, (n_u,); (N, ...) at N states."""

        def linear_momentum(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Array:
            """Sum m v of all bodies, in the inertial frame in N s, (3,); (N, ...) at N states."""

        def Dm(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Array:
            """Matrix of the velocity form Q u' + Dm u = e, Q' = Dm + Dm^T, (n_u, n_u); (N, ...) at N states."""

        def e(self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None) -> Array:
            """Right side of the velocity form Q u' + Dm u = e, (n_u,); (N, ...) at N states."""

        def reduced_momentum(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Array:
            """Momenta A2 (Q u + N), (n_i,); (N, ...) at N states."""

        @overload
        def hamiltonian(
            self, t: float, q: Numbers, u: Numbers, r: Any = None, s: Any = None, *, forces: Any = None
        ) -> float: ...
        @overload
        def hamiltonian(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Any: ...
        def hamiltonian(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Any:
            """H = K2 - K0 + V in J, a float; (N,) at N states."""

        @overload
        def jacobi_integral(
            self, t: float, q: Numbers, u: Numbers, r: Any = None, s: Any = None, *, forces: Any = None
        ) -> float: ...
        @overload
        def jacobi_integral(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Any: ...
        def jacobi_integral(
            self, t: Any, q: Any, u: Any, r: Any = None, s: Any = None, out: Any = None, forces: Any = None
        ) -> Any:
            """H = sum q' K_q' - K + V in J, a float; (N,) at N states."""


class SolutionQuantities:
    """The quantities of a `Solution` at its stored times."""

    if TYPE_CHECKING:

        @property
        def rhs(self) -> tuple[Array, ...]:
            """Rates (q', u'), (n_t, n_q) and (n_t, n_u), with all forces; s' (n_t, n_s) with states."""

        @property
        def residuals(self) -> tuple[Array, Array]:
            """Residuals of the constraints at position and velocity level, (n_t, n_position) and (n_t, n_velocity)."""

        @property
        def rank(self) -> Any:
            """The number of independent constraints, integers (n_t,)."""

        @property
        def acceleration_parts(self) -> Any:
            """The parts of the accelerations, a :class:`kanegen.results.AccelerationParts` of arrays (n_t, n_u)."""

        # From the catalogue:

        @property
        def state_rates(self) -> Array:
            """Rates s' of the states, (n_t, n_s)."""

        @property
        def T(self) -> Array:
            """T of T u' = V: rows of the constraints, then momentum rows, (n_t, n_u, n_u)."""

        @property
        def V(self) -> Array:
            """V of T u' = V, with stabilization gains, (n_t, n_u)."""

        @property
        def Q(self) -> Array:
            """Kinetic-energy matrix, (n_t, n_u, n_u)."""

        @property
        def M(self) -> Array:
            """Matrix of the accelerations, Q - dF/du', (n_t, n_u, n_u)."""

        @property
        def P(self) -> Array:
            """Generalized active forces minus inertia forces at u' = 0, (n_t, n_u)."""

        @property
        def J(self) -> Array:
            """Constraint rows at acceleration level, (n_t, n_c, n_u)."""

        @property
        def b(self) -> Array:
            """Right sides of J u' = b, with stabilization gains, (n_t, n_c)."""

        @property
        def A(self) -> Array:
            """A of u_D' = A u_I' + B, (n_t, n_d, n_i)."""

        @property
        def B(self) -> Array:
            """B of u_D' = A u_I' + B, with stabilization gains, (n_t, n_d)."""

        @property
        def constraint_force(self) -> Array:
            """Generalized constraint forces, (n_t, n_u)."""

        @property
        def multipliers(self) -> Array:
            """Multipliers of the constraint rows, Q u' = P + J^T lambda, (n_t, n_c)."""

        @property
        def kinetic_energy(self) -> Array:
            """Kinetic energy in J, (n_t,)."""

        @property
        def potential_energy(self) -> Array:
            """Potential energy in J, (n_t,)."""

        @property
        def energy(self) -> Array:
            """Kinetic and potential energy in J, (n_t,)."""

        @property
        def momentum(self) -> Array:
            """Generalized momenta Q u + N, (n_t, n_u)."""

        @property
        def old_speeds(self) -> Array:
            """Generalized speeds before the change of speeds, (n_t, n_u)."""

        @property
        def new_speeds(self) -> Array:
            """Generalized speeds from those before the change (argument u), (n_t, n_u)."""

        @property
        def A1(self) -> Array:
            """A1 = [-A I], (n_t, n_d, n_u)."""

        @property
        def A2(self) -> Array:
            """A2 = [I A^T], (n_t, n_i, n_u)."""

        @property
        def N(self) -> Array:
            """Momenta at u = 0, (n_t, n_u)."""

        @property
        def L(self) -> Array:
            """Inertia forces at u' = 0, (n_t, n_u)."""

        @property
        def F(self) -> Array:
            """Generalized active forces, (n_t, n_u)."""

        @property
        def linear_momentum(self) -> Array:
            """Sum m v of all bodies, in the inertial frame in N s, (n_t, 3)."""

        @property
        def Dm(self) -> Array:
            """Matrix of the velocity form Q u' + Dm u = e, Q' = Dm + Dm^T, (n_t, n_u, n_u)."""

        @property
        def e(self) -> Array:
            """Right side of the velocity form Q u' + Dm u = e, (n_t, n_u)."""

        @property
        def reduced_momentum(self) -> Array:
            """Momenta A2 (Q u + N), (n_t, n_i)."""

        @property
        def hamiltonian(self) -> Array:
            """H = K2 - K0 + V in J, (n_t,)."""

        @property
        def jacobi_integral(self) -> Array:
            """H = sum q' K_q' - K + V in J, (n_t,)."""
