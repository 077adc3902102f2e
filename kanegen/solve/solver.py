"""A compiled model with values of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from kanegen import display
from kanegen.arrays import Array
from kanegen.backends.protocol import Build
from kanegen.codegen.description import Description
from kanegen.codegen.sources import Sources
from kanegen.codes import Status
from kanegen.errors import SolveError
from kanegen.graph.ranks import independent_rows
from kanegen.model import Baumgarte, Projection
from kanegen.model.description import SystemDescription
from kanegen.model.records import FrozenMapping
from kanegen.program.catalogue import ATTRIBUTES, CATALOGUE
from kanegen.solve.analysis.continuation import Continuable
from kanegen.solve.consistent import (
    completed,
    fixed_names,
    inputs_of_constraints,
    make_consistent,
    require_decay,
)
from kanegen.solve.contacts import Contacting
from kanegen.solve.evaluation import Quantity, describe_quantities
from kanegen.solve.feedback.limits import require_limits
from kanegen.solve.functions import CompiledFunctions
from kanegen.solve.gradients.periodic import Periodic
from kanegen.solve.many.ensembles import Ensembles
from kanegen.solve.run.momentum import functions_of_momenta
from kanegen.solve.servo import Controlled, servo_attributes
from kanegen.solve.values import (
    Variables,
    by_array,
    by_name,
    flag,
    gain_values,
    initial_values,
    number,
    one_state,
    parameter_values,
    short,
    with_keywords,
    without_surplus,
)

Names = tuple[str, ...]


class Solver(Contacting, Controlled, Continuable, Periodic, Ensembles):
    """A compiled model with values of its parameters; immutable. Solvers with other values share the compiled code.

    Every quantity is a function of ``(t, q, u, r=None, s=None, out=None, forces=None)``: ``t`` in s, ``q`` (n_q,),
    ``u`` (n_u,), inputs ``r`` (n_r,), optional when all inputs have defaults, states ``s`` (n_s,), needed by the
    quantities of a model with states that depend on them, ``forces`` of contacts (n_rows,), see ``rhs``. Arguments with
    a row for each of N states, ``t`` (N,), ``q`` (N, n_q), ``u`` (N, n_u), ``r`` (N, n_r), ``s`` (N, n_s), give results
    (N, ...), computed in one compiled loop that releases the interpreter lock; an argument without rows applies to all
    states. ``q``, ``u``, ``r`` and ``s`` can also be mappings from names or symbols to numbers or arrays (N,). What
    ``q``, ``u`` and ``s`` leave open, all for None, is taken from :attr:`initial`, missing inputs from their defaults;
    other missing values are an error. Results are new arrays unless ``out`` is given. All functions raise `SolveError`
    for arguments of the wrong shape or type, for NaN or infinity in an argument, for results that are not finite (for
    example after a division by zero; the message names the entry, the row and the state), for quantities that were not
    built, and for parameters without a value. After an error the contents of ``out`` are undefined.

    Threads can share a solver; integrations release the interpreter lock and run in parallel. A pickle holds the
    sources, parameters and stabilization; unpickling takes the compiled code from the cache or builds it again.

    Attributes
    ----------
    rhs
        ``(q', u')``, arrays (n_q,), (n_u,), with the stabilization of the solver; ``out=(qdot, udot)``. For a model
        with states ``(q', u', s')``, the last one (n_s,). All quantities treat contacts as open, unless ``forces``
        (n_rows,) are given, the multipliers of the contact rows (:meth:`contacts`). They can also follow the inputs in
        ``r``, in one array.
    momentum_rhs, speeds_from_momentum
        Functions of (t, q, mom, r=None, s=None) in the momentum forms: ``(q', mom')``, then s', and u (n_u,).
    ode
        ``ode(t, y, r=None) -> y'`` with ``y = (q, u)``, or ``(q, u, s)`` for a model with states, for
        `scipy.integrate.solve_ivp`. A y' that is not finite raises `SolveError`, which ends the run, even in a trial
        step outside the domain of an expression: use a smaller ``max_step`` there, or :meth:`integrate`, which shortens
        its step itself. (With NaN at the start SciPy's RK45 would never return, and its LSODA would report success.)
    description, extension, parameters, stabilization, initial
        The arguments of the constructor; ``parameters`` maps names to values, with None for a missing value, and
        ``initial`` names to values at the start of a motion: of coordinates, speeds, states and the time ``t``.
    model
        The model from which the solver was built, for animations; None after unpickling.

    The quantities follow with their shapes; energies are in J. The rows of T and V are the constraints, in the order
    of the dependent speeds, followed by the momentum balances, in the order of the independent speeds. The rows of J
    and b are in the order of ``description.constraints.rows``. ``A1 A2^T = 0``, ``P = F - L``.

    """

    model: SystemDescription | None
    if not TYPE_CHECKING:  # declared in SolverQuantities
        rhs = Quantity("rhs", "Rates (q', u') of a state, (n_q,) and (n_u,), and s' (n_s,) with states.")
        ode = Quantity("ode", "y' for y = (q, u, s), for `scipy.integrate.solve_ivp`.", "t y r")
        speeds_from_momentum = Quantity(
            "speeds_from_momentum", "Speeds (n_u,) from the momenta of the momentum forms.", "t q mom r s"
        )
        momentum_rhs = Quantity(
            "momentum_rhs", "Rates (q', mom') of the momentum forms, and s' (n_s,) with states.", "t q mom r s"
        )

    def __init__(
        self,
        extension: Build,
        description: Description,
        parameters: Mapping[Any, float | None] | None = None,
        stabilization: Baumgarte | Projection | None = None,
        initial: Mapping[Any, float] | None = None,
        model: SystemDescription | None = None,
    ) -> None:
        values = parameter_values(parameters or {}, description)
        gains = gain_values(stabilization, description)
        vector = np.array([np.nan if value is None else value for value in values.values()], dtype=np.float64)
        start = FrozenMapping(initial_values(initial or {}, description))
        functions = CompiledFunctions(extension, description, vector, gains, start)
        require_decay(functions)
        require_limits(functions)
        rhs_name = "rhs_stabilized" if gains.any() else "rhs"
        self.__dict__.update(
            extension=extension,
            description=description,
            parameters=FrozenMapping(values),
            stabilization=stabilization,
            initial=start,
            model=model,
            rhs=functions.call(rhs_name, "pair"),
            ode=functions.call(rhs_name, "ode"),
            _functions=functions,
            _rhs_name=rhs_name,
            _residuals=functions.call("residuals"),
            **functions_of_momenta(functions, rhs_name),
            **servo_attributes(functions),
        )

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"a Solver is immutable, {name} cannot be set: with_parameters, with_initial and with_stabilization return "
            "a new Solver"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a Solver is immutable, {name} cannot be deleted")

    # -- other values ---------------------------------------------------------------------------------------

    def with_parameters(
        self, values: Mapping[Any, float] | None = None, /, *, strict: bool = True, **named: float
    ) -> Solver:
        """Return a solver with other values of some parameters, by symbol, name or keyword; it shares the extension.

        Values for symbols of the user's frames, points and bodies that occur in no equation are ignored. With
        ``strict=False`` values for all names that the model does not have are ignored, with one `ModelWarning` that
        lists them, so that several models can share a dictionary.

        Raises `SolveError` for unknown names (with similar names), names that are given twice, and values that are not
        finite numbers.
        """
        known = (*self.description.parameters, *self.description.spare_parameters)
        if not flag(strict, "strict"):
            values, named = without_surplus(self.description, {} if values is None else values, named)
        given = by_name({} if values is None else values, known, "parameter")
        given = with_keywords(given, by_name(named, known, "parameter"))
        numbers = {name: number(value, f"parameter {name}") for name, value in given.items()}
        needed = {name: value for name, value in numbers.items() if name in self.parameters}
        merged = {**self.parameters, **needed}
        return Solver(self.extension, self.description, merged, self.stabilization, self.initial, self.model)

    def with_initial(self, values: Mapping[Any, float] | None = None, /, **named: float) -> Solver:
        """Return a solver with another start of the motion; it shares the extension.

        ``values`` are numbers for coordinates, speeds, states and the time ``t``, by symbol, name or keyword, as many
        as are known; they replace all of :attr:`initial`. ``integrate`` completes them by the constraints.

        Raises `SolveError` for unknown names (with similar names), names that are given twice, and values that are not
        finite numbers.
        """
        given = with_keywords(initial_values({} if values is None else values, self.description), named)
        return Solver(self.extension, self.description, self.parameters, self.stabilization, given, self.model)

    def with_stabilization(self, stabilization: Baumgarte | Projection | None) -> Solver:
        """Return a solver with another stabilization, or none; it shares the extension.

        Raises `SolveError` for a model without constraints to stabilize, `ModelError` for gains of the wrong size.
        """
        return Solver(self.extension, self.description, self.parameters, stabilization, self.initial, self.model)

    # -- at one state ---------------------------------------------------------------------------------------

    def make_consistent(
        self, t: float, q: Any, u: Any, r: Any = None, s: Any = None, *, fixed: Any = (), tolerance: float = 1e-13
    ) -> tuple[Array, Array]:
        """Correct a state so that it satisfies the constraints at ``t``; returns ``(q, u)``, (n_q,) and (n_u,).

        A damped Newton method corrects the positions; each correction is the smallest one in the metric of the kinetic
        energy, and the guess can be rough. Constraints do not depend on the states ``s``. Then the speeds get the
        smallest change in that metric, by weighted least squares, repeated for constraints that are nonlinear in u.
        Speeds that move no mass get small weights.

        Parameters
        ----------
        q, u
            The guess, (n_q,) and (n_u,), or mappings from names or symbols to values; others are those of ``initial``.
            If coordinates (or speeds) are missing there too, the constraints must determine them, and the known
            coordinates (or speeds) do not change.
        fixed
            Names (or symbols) of coordinates and speeds that must not change.
        tolerance
            A residual counts as zero below its change when coordinates and speeds change by this fraction of the
            largest of them, so that units do not matter.

        Raises
        ------
        SolveError
            If constraints cannot be satisfied; the message names them, and the fixed values that prevent it.
        """
        of_q, of_u, of_s = Variables.of(self.description)
        s = of_s.array({**self.initial, **of_s.read(s)}) if isinstance(s, Mapping) else s
        if not (by_array(q) and by_array(u)):
            known = {**self.initial, **of_q.read(q), **of_u.read(u)}
            if not known.keys() >= {*of_q.names, *of_u.names}:
                kept = fixed_names(fixed, (*of_q.names, *of_u.names))
                inputs = inputs_of_constraints(self._functions, t, r) if isinstance(r, Mapping) else r
                return completed(self._functions, t, known, kept, inputs, 0.0, s)
            q, u = of_q.array(known), of_u.array(known)
        one_state(t, q, u, r, s)
        return make_consistent(self._functions, t, q, u, r, fixed, tolerance, s)

    def partition(self, t: float, q: Any, u: Any, r: Any = None, s: Any = None) -> tuple[Names, Names]:
        """Names of the dependent and independent speeds with which ``rhs`` is solved at this state.

        These are the model's own, ``description.dependent``, unless the constraints are nearly singular in them at this
        state: then compiled code and this method choose others by complete pivoting. The method needs ``J``.
        """
        q, u, s = self._state(q, u, s)
        one_state(t, q, u, r, s)
        function, description = self._functions.new(self._rhs_name), self.description
        function.pair(t, q, u, self._functions.with_laws([self._rhs_name], t, q, u, r, s), s)
        if not function.repartitioned:
            return description.dependent_names, description.independent_names
        from kanegen.program.kernels import linear

        J = self.J(t, q, u, r, s)
        n_c, n_u = J.shape
        order = [0] * n_u
        if linear.partition(n_u, n_c, J.ravel().tolist(), order) != Status.OK:
            raise SolveError(f"the constraints are redundant at t = {t!r} s: no choice of dependent speeds solves them")
        names = [description.speeds[i] for i in order]
        return tuple(names[:n_c]), tuple(names[n_c:])

    def redundant_constraints(self, t: float, q: Any, u: Any, r: Any = None, s: Any = None) -> Names:
        """Labels of the constraints that depend on the preceding ones at this state; needs ``J``."""
        q, u, s = self._state(q, u, s)
        one_state(t, q, u, r, s)
        kept = independent_rows(self.J(t, q, u, r, s))
        return tuple(label for i, label in enumerate(self.description.constraints.rows) if i not in kept)

    # -- properties -----------------------------------------------------------------------------------------

    @property
    def sources(self) -> Sources:
        """The generated files."""
        return self.extension.sources

    @property
    def cyclic_coordinates(self) -> Names:
        """Names of the coordinates whose momenta change under nonconservative forces only (``form="hamilton"``)."""
        return self.description.cyclic_coordinates

    @property
    def operation_count(self) -> int:
        """Operations of one call of ``rhs``, with its linear solve; ``description.functions`` has the other counts."""
        return self.description.functions[self._rhs_name].operations

    def _repr_html_(self) -> str:
        """What a notebook shows: variables, parameters, and the compiled functions with their operation counts."""
        d = self.description
        functions = (f"{name} ({entry.operations})" for name, entry in d.functions.items())
        rows = [
            *((what, display.names(getattr(d, what))) for what in ("coordinates", "speeds", "states", "inputs")),
            ("dependent speeds", display.names(d.dependent_names)),
            *((f"constraint {k}", label) for k, label in enumerate(map(short, d.constraints.rows), start=1)),
            ("contact rows", display.names(d.contacts.rows)),
            ("events", display.names(event.name for event in d.events)),
            *((what, display.names(getattr(d, what))) for what in ("outputs", "reactions")),
            ("parameters", display.values(self.parameters, self.units)),
            ("start", display.values(self.initial, self.units)),
            ("stabilization", "" if self.stabilization is None else str(self.stabilization)),
            ("functions (operations)", display.names(functions)),
            ("compiled on first use", display.names(d.deferred)),
        ]
        return display.facts(f"Solver {d.name} ({d.form} form)", rows).html()

    def __repr__(self) -> str:
        d = self.description
        missing = [name for name, value in self.parameters.items() if value is None]
        without = f", no value of {', '.join(missing)}" if missing else ""
        return (
            f"<Solver {d.name!r} ({d.form}): {len(d.coordinates)} coordinates, {len(d.speeds)} speeds, "
            f"{len(d.constraints.rows)} constraints, {len(d.inputs)} inputs, "
            f"{f'{len(d.states)} states, ' if d.states else ''}{len(d.parameters)} parameters{without}>"
        )

    def __reduce__(self) -> tuple[Callable[..., Solver], tuple[Any, ...]]:
        return (Solver, (self.extension, self.description, self.parameters, self.stabilization, self.initial))


def _quantities() -> str:
    """The lines about the quantities of the catalogue in the docstring of `Solver`."""
    specs = [CATALOGUE[name] for name in ATTRIBUTES]
    shapes = [f"({', '.join(spec.shape)})" if len(spec.shape) != 1 else f"({spec.shape[0]},)" for spec in specs]
    return "".join(f"    {x.name} {shape}\n        {x.summary}.\n" for x, shape in zip(specs, shapes, strict=True))


describe_quantities(Solver)
Solver.__doc__ = f"{(Solver.__doc__ or '').rstrip()}\n\n{_quantities()}"
