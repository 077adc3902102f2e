"""The model of a system: the arguments of the user, normalized and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import sympy
from sympy.physics.vector import dynamicsymbols

from kanegen import display
from kanegen.errors import ModelError, warn_user
from kanegen.model import normalize
from kanegen.model.adapters import kane_arguments, lagrange_arguments, system_arguments, with_parts
from kanegen.model.checks.bodies import body_problems, body_warnings, reaction_problems
from kanegen.model.checks.contacts import contact_problems
from kanegen.model.checks.control import control_constraint_problems, servo_problems
from kanegen.model.checks.equations import equation_problems, speed_change_problems
from kanegen.model.checks.feedback import feedback_problems
from kanegen.model.checks.lagrangian import lagrangian_contradictions, lagrangian_problems
from kanegen.model.checks.shapes import shape_problems
from kanegen.model.checks.symbols import surplus_message, surplus_parameters, symbol_problems, value_problems
from kanegen.model.checks.units import unit_problems, units_of
from kanegen.model.checks.velocities import motion_problems
from kanegen.model.description import CONSTRAINT_KINDS, ControlLaw, SpeedChange, SystemDescription, described
from kanegen.model.expressions import atoms, natural_key, symbol_name
from kanegen.model.geometry import euler_parameter_groups
from kanegen.model.places import Place, survey
from kanegen.model.reactions import Reaction, normalized_reactions
from kanegen.model.records import FrozenMapping
from kanegen.units import Units

_CHECKS: Final = (
    speed_change_problems,
    equation_problems,
    body_problems,
    lagrangian_problems,
    reaction_problems,
    servo_problems,
    control_constraint_problems,
    feedback_problems,
    shape_problems,
)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Model(SystemDescription):
    """A constrained mechanical system, checked and in the form the derivation reads.

    Parameters
    ----------
    name
        Name of the system; any string, used in comments and file names (made safe there).
    frame
        The inertial :class:`~sympy.physics.vector.frame.ReferenceFrame`.
    coordinates, speeds
        Dynamic symbols q (n_q) and u (n_u), in the order of all arrays.
    kinematics
        n_q expressions or equations that are zero, affine in q' and u with a regular coefficient matrix of q'; or a
        mapping from q' to its expression in u.
    bodies
        Objects of :class:`~sympy.physics.mechanics.particle.Particle` and
        :class:`~sympy.physics.mechanics.rigidbody.RigidBody`, and :class:`kanegen.FlexibleBody`, which adds its modal
        coordinates, speeds and loads to those given (docs/flexible.md). The velocities of the mass centers in
        ``frame`` must be set or follow from positions. Masses and inertias can depend on t, parameters and inputs with
        rates, and then obey ``F* = -(m v)'``, as in ``KanesMethod``; measured in the frame of the body, the inertia
        must not depend on the coordinates.
    loads
        Pairs ``(point, force)``, ``(frame, torque)`` or ``(body, force at the mass center)``, SymPy
        ``Force`` and ``Torque``. They can depend on t, q, q', u, states, inputs and parameters, and affinely on u' and
        q'' (inerters, added mass, reflected inertias).
    holonomic_constraints, nonholonomic_constraints, acceleration_constraints
        Expressions or equations in (q, t), in (q, q', u, t), and in (q, u, u', t), the last linear in u'.
    implied_constraints
        Expressions or equations in (q, t) whose rates follow from ``nonholonomic_constraints``. They add no row to J.
        Residuals, ``make_consistent``, ``Projection`` and linear models use them; among the stabilization methods,
        only ``Projection`` removes their drift.
    dependent_speeds
        Speeds for which the constraints are solved; ``None`` leaves the choice to the solver.
    inputs
        :class:`Input` objects or bare symbols.
    states
        Additional states s with their own equations of first order, (n_s,): a mapping from a dynamic symbol to its
        rate, such as ``{a: (e - a)/tau}`` for the activation of a muscle. The rates can depend on t, q, q', u, u', s,
        inputs, parameters and the :func:`Multiplier` symbols of contacts; loads, outputs, guards, laws of controls and
        the potential energy can depend on the states.
    parameters
        Values of the constant symbols, by symbol or name; the others can be given at run time.
    initial
        The start of a motion: numbers for coordinates, speeds, states and the time ``t``, by symbol or name, as many as
        are known. ``integrate``, ``kanegen run`` and the form of the example program of ``emit`` use them; like
        values of parameters they are no part of the compiled code.
    strict
        False: values of parameters that do not occur in the model are ignored, with one ``ModelWarning`` that names
        them, so that several models can share a dictionary. True: they are errors.
    potential_energy
        Potential energy of the loads, J, without that of flexible bodies, which is added. By default the sum of the
        bodies' ``potential_energy`` attributes, if any is set. Without ``potential_energy`` and ``gravity`` there is no
        energy function.
    gravity
        Uniform gravitational acceleration, a Vector, m/s**2. The weight of every body is added to the loads, and the
        potential of the weights to ``potential_energy``.
    lagrangian
        ``L(q, q', t)``, J, quadratic in q'; None for Kane's method. The equations are then those of Lagrange,
        ``C^T (d/dt dL/dq' - dL/dq) = F + J^T lambda`` with ``q' = C u + D``, and ``loads`` are those that L does not
        contain. Without ``bodies``, ``potential_energy`` tells K from V in ``L = K - V``; with bodies, L must be
        their kinetic energy less the potential energy, which follows and need not be given.
    outputs
        Named expressions of t, q, q', u, u', states, their rates, inputs and parameters: scalars, lists, matrices,
        ``(vector, frame)``.
    auxiliary_speeds
        Speeds that are always zero and bring reactions into evidence (Kane and Levinson 1985, section 4.9).
    reactions
        Named :class:`Reaction` records: force and torque that the rest of the system exerts on a set of bodies.
    contacts
        :class:`Unilateral`, :class:`Friction` and :class:`Latch` records in the order of the contact rows. An
        expression is the gap of a rigid contact.
    events
        :class:`Event` records.
    impulses
        Named impulses for events and ``solver.impulse``: lists of ``(point, impulse)``, N s, and
        ``(frame, angular impulse)``, N m s.
    modes
        :class:`kanegen.Modes`: named modes, between which events switch (docs/modes.md).
    control
        The control law, None for none. :class:`Servo`: servo-constraints, and the inputs that enforce them.
        :class:`ControlConstraints`: constraints in which the controls appear, which make controls part of the state.
    shapes
        How animations draw the model (docs/animation.md): a mapping from bodies, by object or name, frames and points
        to one or more shapes of :mod:`kanegen.shapes`, or to None for a body that is not drawn. Bodies without an entry
        are drawn in shapes that follow from their points and inertia. The compiled code does not depend on it.
    units
        Units of coordinates, speeds, states, inputs, parameters and outputs, by symbol or name (docs/units.md): texts
        that pint can read, such as ``"kg m^2"``. All values remain in coherent SI units (m, rad, rad/s, N); ``"deg"``
        and ``"km/h"`` only say in which unit plots and tables show them. The units of all equations are compared, and
        units that were not given follow where the equations determine them (:attr:`all_units`). The compiled code does
        not depend on them.
    check_kinematics
        Whether to compare the velocity and angular velocity of every body with the rates of its position and
        orientation, if these are known, at random states that satisfy the constraints.

    Attributes
    ----------
    euler_parameters
        Groups of four coordinates that an orientation uses as Euler parameters: the sum of their squares is one at
        every state, even if ``holonomic_constraints`` does not contain this equation.

    Raises
    ------
    ModelError
        With every problem of the description in ``problems``.

    Warns
    -----
    ModelWarning
        If no state is found at which velocities can be compared, and for parameters that do not occur in the model, if
        not ``strict``.
    """

    def __init__(
        self,
        *,
        name: str,
        frame: Any,
        coordinates: Any,
        speeds: Any,
        kinematics: Any,
        bodies: Any = (),
        loads: Any = (),
        holonomic_constraints: Any = (),
        nonholonomic_constraints: Any = (),
        acceleration_constraints: Any = (),
        implied_constraints: Any = (),
        dependent_speeds: Any = None,
        inputs: Any = (),
        states: Mapping[Any, Any] | None = None,
        parameters: Mapping[Any, Any] | None = None,
        initial: Mapping[Any, Any] | None = None,
        strict: bool = True,
        potential_energy: Any = None,
        gravity: Any = None,
        lagrangian: Any = None,
        outputs: Mapping[str, Any] | None = None,
        auxiliary_speeds: Any = (),
        reactions: Mapping[str, Reaction] | None = None,
        contacts: Any = (),
        events: Any = (),
        impulses: Mapping[str, Any] | None = None,
        modes: Any = (),
        control: ControlLaw | None = None,
        shapes: Mapping[Any, Any] | None = None,
        units: Mapping[Any, str] | None = None,
        check_kinematics: bool = True,
    ) -> None:
        given = with_parts(locals())  # the arguments by name
        problems: list[str] = []
        _require_flags(given, ("strict", "check_kinematics"))
        self._complete(described(given, problems), given["parameters"], problems, strict=strict)
        self._require_agreement(check_kinematics)

    def _require_agreement(self, check_kinematics: bool) -> None:
        """Raise ``ModelError`` if velocities contradict positions, or the bodies the Lagrangian; warn of odd bodies."""
        contradictions = motion_problems(self) if check_kinematics else []
        contradictions += lagrangian_contradictions(self)
        if contradictions:
            raise ModelError(contradictions)
        for warning in self._warnings():
            warn_user(warning)

    def _warnings(self) -> Iterable[str]:
        """What is legal, but probably a mistake."""
        return body_warnings(self)

    def _complete(
        self,
        description: SystemDescription,
        parameters: Mapping[Any, Any] | None,
        problems: list[str],
        *,
        strict: bool = True,
    ) -> None:
        """Adopt a description, collect the parameters and check everything.

        Raises ``ModelError`` with the given ``problems`` and all others.
        """
        normalize.expect(strict, bool, "strict", "True or False", problems)
        walk = survey(description)
        problems.extend(walk.problems)
        if unreal := value_problems(walk.places):
            raise ModelError((*problems, *unreal))
        symbols = _parameter_symbols(description, walk.places)
        values, unknown_symbols = normalize.parameter_values(parameters, symbols, problems)
        matrices = [item.expressions for item in walk.places if item.kind == "orientation" and len(item.atoms) > 3]
        complete = description.changed(
            parameters=FrozenMapping(values),
            geometry=walk.geometry,
            euler_parameters=euler_parameter_groups(description.coordinates, matrices),
        )
        surplus = () if strict else surplus_parameters(complete, unknown_symbols)
        unknown_symbols = tuple(symbol for symbol in unknown_symbols if symbol not in surplus)
        problems += symbol_problems(complete, walk.places, unknown_symbols)
        problems += contact_problems(complete, walk.places)
        problems += unit_problems(complete, walk.places)
        for find in _CHECKS:
            problems += find(complete)
        if problems:
            raise ModelError(tuple(dict.fromkeys(problems)))
        if surplus:
            names = map(symbol_name, surplus), map(symbol_name, complete.parameters)
            warn_user(surplus_message(*names, description.name))
        super().__init__(**complete.field_values())

    @classmethod
    def from_kane(cls, kanes_method: Any, *, configuration_constraints: str | None = None, **options: Any) -> Model:
        """The model of a :class:`~sympy.physics.mechanics.kane.KanesMethod`, with the order of ``km.q`` and ``km.u``.

        ``kanes_equations`` need not have been called. Auxiliary speeds become ``auxiliary_speeds``, whose equations are
        outputs; dynamic symbols that are neither coordinates nor speeds become inputs.

        Parameters
        ----------
        configuration_constraints
            KanesMethod's equations contain only the velocity constraints. None: configuration constraints whose rates
            follow from these become ``implied_constraints``; others are an error, or, without velocity constraints,
            are enforced with a ``ModelWarning``. ``"enforce"``: others become ``holonomic_constraints``. ``"ignore"``:
            others are left out.
        options
            Arguments of :class:`Model`, which take precedence over what is read.

        Raises
        ------
        ModelError
            If the argument is not a ``KanesMethod``, and with every problem of the model.
        """
        return cls(**kane_arguments(kanes_method, configuration_constraints, **options))

    @classmethod
    def from_system(cls, system: Any, *, configuration_constraints: str | None = None, **options: Any) -> Model:
        """The model of a :class:`~sympy.physics.mechanics.system.System`: its joints, loads, actuators and constraints.

        Holonomic constraints are enforced. If the user set ``velocity_constraints``, these are enforced instead, and
        ``configuration_constraints`` determines the treatment of the holonomic ones, as for :meth:`from_kane`.
        ``options`` are arguments of :class:`Model` and take precedence over what is read.

        Raises
        ------
        ModelError
            If the argument is not a ``System``, and with every problem of the model.
        """
        return cls(**system_arguments(system, configuration_constraints, **options))

    @classmethod
    def from_lagrange(cls, lagranges_method: Any, **options: Any) -> Model:
        """The model of a :class:`~sympy.physics.mechanics.lagrange.LagrangesMethod`, with the order of ``lm.q``.

        ``form_lagranges_equations`` need not have been called. The speeds are ``u = q'``, named ``theta_dot`` for the
        coordinate ``theta``; ``speeds=`` gives other symbols, with ``kinematics=`` other speeds. The multipliers are
        the last unknowns of ``lm.mass_matrix``; those in ``lm.eom`` have the opposite sign. Without bodies, L does not
        tell kinetic from potential energy: give ``potential_energy=`` or ``bodies=`` if energies are needed.

        Parameters
        ----------
        options
            Arguments of :class:`Model`, which take precedence over what is read.

        Raises
        ------
        ModelError
            If the argument is not a ``LagrangesMethod``, and with every problem of the model; among them bodies
            whose kinetic energy is not that of the Lagrangian.
        """
        return cls(**lagrange_arguments(lagranges_method, **options))

    def with_speeds(
        self,
        speeds: Any,
        definitions: Any,
        *,
        dependent_speeds: Any = None,
        parameters: Mapping[Any, Any] | None = None,
    ) -> Model:
        """The same system in other speeds ``w = Phi1(q, t) u + Phi2(q, t)`` (Bajodah 2003, (45)).

        All other expressions remain written in the old speeds, which outputs can also contain;
        ``Q_w = Phi1^-T Q Phi1^-1``. A changed model can be changed again. ``initial`` loses the values of the old
        speeds; :meth:`kanegen.Solver.with_initial` gives those of the new ones.

        Parameters
        ----------
        speeds
            The new dynamic symbols w, as many as there are speeds, in the order of the new arrays.
        definitions
            Their expressions in the speeds of this model, t, q, inputs and parameters: a list in the order of
            ``speeds``, equations ``Eq(w, expression)``, or a mapping from w to its expression.
        dependent_speeds
            Of the new speeds; None leaves the choice to the solver, not those of this model.
        parameters
            Values of constants that only the definitions contain.

        Raises
        ------
        ModelError
            For definitions that are not affine in u, or cannot be solved for it.
        """
        problems: list[str] = []
        new = normalize.time_functions(speeds, "speeds", problems)
        change = SpeedChange(self, normalize.speed_definitions(new, definitions, problems))
        dependent = normalize.dependent_speeds(dependent_speeds, "dependent_speeds", problems)
        description = self._in_speeds(new, change, dependent)
        return self._completed(description, parameters, problems)

    def with_orthogonal_speeds(self, speeds: Any = None, *, dependent_speeds: Any = None) -> Model:
        """The same system in speeds that make the kinetic-energy matrix diagonal.

        Gram-Schmidt orthogonalization of the partial velocities in the order of the speeds, in the metric of the
        masses: with ``Q = L D L^T`` (L unit lower triangular), ``w = L^T u`` has ``Q_w = D`` (Bajodah 2003,
        section 2.6). L is formed when the model is derived, as nodes, not as SymPy expressions.

        Parameters
        ----------
        speeds
            The new dynamic symbols w; None: ``w_u1`` for ``u1`` and so on.
        dependent_speeds
            Of the new speeds; None leaves the choice to the solver, not those of this model.

        Raises
        ------
        ModelError
            For new speeds that cannot replace the old ones. ``derive`` and ``build`` raise ``DerivationError``
            where Q is singular, naming the speed that moves no mass.
        """
        problems: list[str] = []
        if speeds is None:
            speeds = [dynamicsymbols(f"w_{symbol_name(speed)}") for speed in self.speeds]
        new = normalize.time_functions(speeds, "speeds", problems)
        dependent = normalize.dependent_speeds(dependent_speeds, "dependent_speeds", problems)
        description = self._in_speeds(new, SpeedChange(self, None), dependent)
        return self._completed(description, None, problems)

    def _in_speeds(
        self, speeds: tuple[Any, ...], change: SpeedChange, dependent: tuple[Any, ...] | None
    ) -> SystemDescription:
        """The description in other speeds; ``initial`` keeps no values of the former ones."""
        initial = FrozenMapping((key, value) for key, value in self.initial.items() if key not in self.speeds)
        return self.changed(speeds=speeds, speed_change=change, dependent_speeds=dependent, initial=initial)

    def with_reactions(
        self, reactions: Mapping[str, Reaction], *, parameters: Mapping[Any, Any] | None = None
    ) -> Model:
        """The same system with these reactions in addition to its own.

        ``parameters`` are values of constants that only the positions of their points contain. Raises ``ModelError``
        for bodies, points, loads and constraints that are not part of the model.
        """
        problems: list[str] = []
        merged = {**self.reactions, **normalized_reactions(reactions, "reactions", problems)}
        return self._completed(self.changed(reactions=FrozenMapping(merged)), parameters, problems)

    def _completed(
        self, description: SystemDescription, parameters: Mapping[Any, Any] | None, problems: list[str]
    ) -> Model:
        """The model of a changed description, with further parameters; no longer that of a file."""
        model = object.__new__(Model)
        model._complete(description, {**self.parameters, **(parameters or {})}, problems)
        return model

    @cached_property
    def all_units(self) -> Units:
        """The units of names: those of ``units``, and coherent ones that follow from them; empty if none were given."""
        return units_of(self, survey(self).places if self.units else ())

    def overview(self) -> display.Table:
        """Variables, bodies, constraints and what else the model has, without values."""
        constraints = [(f"{kind.name} constraint", x) for kind in CONSTRAINT_KINDS for x in getattr(self, kind.field)]
        rows = [
            *((what, _formulas(getattr(self, what))) for what in ("coordinates", "speeds")),
            *(("kinematics", _formula(x, " = 0")) for x in self.kinematics),
            *(("state", _formula(sympy.Derivative(x, dynamicsymbols._t), " = ", y)) for x, y in self.states.items()),
            ("inputs", _formulas(item.symbol for item in self.inputs)),
            ("bodies", display.names(str(body.name) for body in self.bodies)),
            *((what, _formula(x, " = 0")) for what, x in constraints),
            ("contacts", display.names(contact.name for contact in self.resolved_contacts)),
            ("events", display.names(event.name for event in self.events)),
            ("outputs", display.names(self.outputs)),
            ("reactions", display.names(self.reactions)),
            ("control", type(self.control).__name__ if self.control else ""),
        ]
        return display.facts(f"Model {self.name}", rows)

    def _repr_html_(self) -> str:
        """What a notebook shows: the overview, and the values of parameters and start."""
        table = self.overview()
        values = {"parameters": self.parameters, "start": self.initial}
        texts = {what: display.values(_by_name(known), self.all_units) for what, known in values.items()}
        return replace(table, rows=(*table.rows, *((what, text) for what, text in texts.items() if text))).html()

    def __repr__(self) -> str:
        return (
            f"<Model {self.name!r}: {len(self.coordinates)} coordinates, {len(self.speeds)} speeds, "
            f"{len(self.bodies)} bodies, {len(self.constraints)} constraints, {len(self.inputs)} inputs, "
            f"{f'{len(self.states)} states, ' if self.states else ''}{len(self.parameters)} parameters>"
        )


LARGEST_FORMULA: Final = 60
"""Operations of the largest formula that a notebook shows."""


def _formula(left: Any, sign: str, right: Any = None) -> str:
    """An equation, or a sentence for one that is too long."""
    operations = sum(int(x.count_ops()) for x in (left, right) if x is not None)
    if operations > LARGEST_FORMULA:
        return f"an equation with {operations} operations"
    return display.Latex(f"{display.latex(left)}{sign}{'' if right is None else display.latex(right)}")


def _formulas(symbols: Iterable[Any]) -> str:
    shown = [display.latex(symbol) for symbol in symbols]
    if len(shown) > display.MOST_NAMES:
        shown = [*shown[: display.MOST_NAMES], rf"\ldots \text{{ ({len(shown)} in all)}}"]
    return display.Latex(", ".join(shown)) if shown else ""


def _by_name(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {symbol_name(symbol): value for symbol, value in values.items()}


def _parameter_symbols(description: SystemDescription, places: Sequence[Place]) -> tuple[Any, ...]:
    """The constant symbols, in natural order of their names."""
    rates = [rate for item in description.inputs for rate in (item.rate, item.acceleration) if rate is not None]
    symbols = atoms(rates).union(*(place.atoms for place in places)) - {item.symbol for item in description.inputs}
    constants = (symbol for symbol in symbols if isinstance(symbol, sympy.Symbol))
    return tuple(sorted(constants, key=lambda symbol: natural_key(symbol_name(symbol))))


def _require_flags(given: Mapping[str, Any], flags: Sequence[str]) -> None:
    """Raise ``ModelError`` for arguments that are neither True nor False."""
    problems: list[str] = []
    for flag in flags:
        normalize.expect(given[flag], bool, flag, "True or False", problems)
    if problems:
        raise ModelError(problems)
