"""The record a user describes a system with, and the derivation starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy

from kanegen.errors import ModelError
from kanegen.model import normalize
from kanegen.model.checks.problems import model_problems
from kanegen.model.checks.velocities import motion_problems
from kanegen.model.contact import normalize as contact_records
from kanegen.model.contact.events import Event
from kanegen.model.contact.records import Friction, Latch, Unilateral
from kanegen.model.control.law import ControlLaw, normalized_control
from kanegen.model.expressions import atoms, natural_key, symbol_name
from kanegen.model.geometry.euler_parameters import euler_parameter_groups
from kanegen.model.geometry.routes import Geometry
from kanegen.model.inputs import Input, input_symbols, resolved_inputs
from kanegen.model.places import survey
from kanegen.model.reactions import Reaction, normalized_reactions
from kanegen.model.records import FrozenMapping, Output
from kanegen.model.speeds import SpeedChange, default_names, definitions_of


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Model:
    """A constrained mechanical system, checked and in the form the derivation reads.

    Parameters
    ----------
    name
        Name of the system; any string, used in comments and file names (made safe there).
    frame
        The inertial ``ReferenceFrame``.
    coordinates, speeds
        Dynamic symbols q (n_q) and u (n_u), in the order of every array.
    kinematics
        n_q expressions or equations that are zero, affine in q' and u with a regular matrix of q'; or a
        mapping from q' to its expression in u.
    bodies
        ``Particle`` and ``RigidBody`` objects. The mass centers' velocities in ``frame`` must be set or
        follow from positions. Masses and inertias may depend on t, parameters and inputs with rates, and then
        obey ``F* = -(m v)'``, as in ``KanesMethod``; the inertia must not change with the coordinates as seen
        from the body's frame.
    loads
        Pairs ``(point, force)``, ``(frame, torque)`` or ``(body, force at the mass center)``, SymPy
        ``Force`` and ``Torque``. They may depend on t, q, q', u, inputs and parameters.
    holonomic_constraints, nonholonomic_constraints, acceleration_constraints
        Expressions or equations in (q, t), in (q, q', u, t), and in (q, u, u', t), the last linear in u'.
    implied_constraints
        Expressions or equations in (q, t) whose rates follow from ``nonholonomic_constraints``. They are known
        relations between positions and add no row to J: residuals, ``make_consistent``, ``Projection`` and linear
        models use them. Of stabilization methods only ``Projection`` removes their drift.
    dependent_speeds
        Speeds the constraints shall be solved for; ``None`` leaves the choice to the solver.
    inputs
        :class:`Input` objects or bare symbols.
    parameters
        Values of the constant symbols, by symbol or name; those not given may follow at run time.
    potential_energy
        Potential energy of the loads, J. By default the sum of the bodies' ``potential_energy`` attributes,
        if any is set. Without it or ``gravity`` there is no energy function.
    gravity
        Uniform gravitational acceleration, a Vector, m/s**2: adds the weight of every body to the loads, and
        its potential to ``potential_energy``.
    outputs
        Named expressions of t, q, q', u, u', inputs and parameters: scalars, lists, matrices,
        ``(vector, frame)``.
    auxiliary_speeds
        Speeds that are always zero and bring reactions into evidence (Kane and Levinson 1985, section 4.9).
    reactions
        Named :class:`Reaction` records: force and torque that the rest exerts on a set of bodies.
    contacts
        :class:`Unilateral` (or bare gaps, then rigid), :class:`Friction` and :class:`Latch` records in any order, which
        is that of the contact rows.
    events
        :class:`Event` records.
    impulses
        Named impulses for events and ``solver.impulse``: lists of ``(point, impulse)``, N s, and
        ``(frame, angular impulse)``, N m s.
    control
        The control law, None for none. :class:`Servo`: servo-constraints, and the inputs that enforce them.
        :class:`ControlConstraints`: constraints in which the controls appear, which make controls part of the state.
    check_kinematics
        Compare the velocity and angular velocity of every body with the rates of its position and orientation, where
        these are known, at random states that satisfy the constraints. False: do not.

    Attributes
    ----------
    euler_parameters
        Groups of four coordinates that an orientation uses as Euler parameters: their squares add up to one at every
        state, whether or not ``holonomic_constraints`` says so.

    Raises
    ------
    ModelError
        With every problem of the description in ``problems``.

    Warns
    -----
    ModelWarning
        Where no state was found at which velocities could be compared.
    """

    name: str
    frame: Any
    coordinates: tuple[Any, ...]
    speeds: tuple[Any, ...]
    kinematics: tuple[Any, ...]
    bodies: tuple[Any, ...]
    loads: tuple[tuple[Any, Any], ...]
    holonomic_constraints: tuple[Any, ...]
    nonholonomic_constraints: tuple[Any, ...]
    acceleration_constraints: tuple[Any, ...]
    implied_constraints: tuple[Any, ...]
    dependent_speeds: tuple[Any, ...] | None
    inputs: tuple[Input, ...]
    parameters: Mapping[Any, float | None]
    potential_energy: Any
    gravity: Any
    outputs: Mapping[str, Output]
    auxiliary_speeds: tuple[Any, ...]
    reactions: Mapping[str, Reaction]
    contacts: tuple[Unilateral | Friction | Latch, ...]
    events: tuple[Event, ...]
    impulses: Mapping[str, tuple[tuple[Any, Any], ...]]
    control: ControlLaw | None
    speed_change: SpeedChange | None
    geometry: Geometry
    euler_parameters: tuple[tuple[Any, Any, Any, Any], ...]

    def __init__(
        self,
        *,
        name: str,
        frame: Any,
        coordinates: Any,
        speeds: Any,
        kinematics: Any,
        bodies: Any,
        loads: Any = (),
        holonomic_constraints: Any = (),
        nonholonomic_constraints: Any = (),
        acceleration_constraints: Any = (),
        implied_constraints: Any = (),
        dependent_speeds: Any = None,
        inputs: Any = (),
        parameters: Mapping[Any, Any] | None = None,
        potential_energy: Any = None,
        gravity: Any = None,
        outputs: Mapping[str, Any] | None = None,
        auxiliary_speeds: Any = (),
        reactions: Mapping[str, Reaction] | None = None,
        contacts: Any = (),
        events: Any = (),
        impulses: Mapping[str, Any] | None = None,
        control: ControlLaw | None = None,
        check_kinematics: bool = True,
    ) -> None:
        problems: list[str] = []
        self._set(
            name=normalize.name(name, problems),
            frame=normalize.frame(frame),
            coordinates=normalize.time_functions(coordinates, "coordinates", problems),
            speeds=normalize.time_functions(speeds, "speeds", problems),
            kinematics=normalize.kinematics(kinematics, problems),
            bodies=normalize.bodies(bodies, problems),
            loads=normalize.loads(loads, problems),
            dependent_speeds=normalize.dependent_speeds(dependent_speeds, problems),
            inputs=resolved_inputs(normalize.sequence(inputs, "inputs", problems), problems),
            gravity=normalize.vector_or_none(gravity, "gravity", problems),
            outputs=FrozenMapping(normalize.outputs(outputs, problems)),
            auxiliary_speeds=normalize.time_functions(auxiliary_speeds, "auxiliary_speeds", problems),
            reactions=FrozenMapping(normalized_reactions(reactions, problems)),
            contacts=contact_records.contacts(contacts, problems),
            events=contact_records.events(events, problems),
            impulses=FrozenMapping(contact_records.impulses(impulses, problems)),
            control=normalized_control(control, problems),
            speed_change=None,
        )
        self._set(
            holonomic_constraints=normalize.scalars(holonomic_constraints, "holonomic_constraints", problems),
            nonholonomic_constraints=normalize.scalars(nonholonomic_constraints, "nonholonomic_constraints", problems),
            acceleration_constraints=normalize.scalars(acceleration_constraints, "acceleration_constraints", problems),
            implied_constraints=normalize.scalars(implied_constraints, "implied_constraints", problems),
            potential_energy=normalize.potential_energy(
                potential_energy, self.bodies, self.gravity is not None, problems
            ),
        )
        self._complete(parameters, problems)
        contradictions = motion_problems(self) if check_kinematics else []
        if contradictions:
            raise ModelError(contradictions)

    def _complete(self, parameters: Mapping[Any, Any] | None, problems: list[str]) -> None:
        """Find the parameters and check everything; raise ``ModelError`` with all problems."""
        found = survey(self)
        problems.extend(found.problems)
        symbols = _parameter_symbols(self, found.places)
        values, unknown_symbols = normalize.parameter_values(parameters, symbols, problems)
        matrices = [item.expressions for item in found.places if item.kind == "orientation" and len(item.atoms) > 3]
        groups = euler_parameter_groups(self.coordinates, matrices)
        self._set(parameters=FrozenMapping(values), geometry=found.geometry, euler_parameters=groups)
        problems.extend(model_problems(self, found.places, unknown_symbols))
        if problems:
            raise ModelError(tuple(dict.fromkeys(problems)))

    def _set(self, **fields: Any) -> None:
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    @classmethod
    def from_kane(cls, kanes_method: Any, *, configuration_constraints: str | None = None, **options: Any) -> Model:
        """The model of a ``sympy.physics.mechanics.KanesMethod``; orders are ``km.q`` and ``km.u``.

        Its equations may or may not have been formed. Auxiliary speeds become ``auxiliary_speeds``, whose equations are
        outputs; dynamic symbols that are neither coordinates nor speeds become inputs.

        Parameters
        ----------
        configuration_constraints
            KanesMethod's equations contain the velocity constraints only. None: configuration constraints whose rates
            follow from them become ``implied_constraints``, others are refused, and without velocity constraints they
            are enforced with a ``ModelWarning``. ``"enforce"`` makes those that do not follow constraints of their own,
            ``"ignore"`` leaves all of them out.
        options
            Those of :class:`Model`, which win over what is read.

        Raises
        ------
        ModelError
            For anything that is no ``KanesMethod``, and with every problem of the model.
        """
        from kanegen.model.adapters.from_sympy import kane_description

        return cls(**kane_description(kanes_method, configuration_constraints, **options))

    @classmethod
    def from_system(cls, system: Any, *, configuration_constraints: str | None = None, **options: Any) -> Model:
        """The model of a ``sympy.physics.mechanics.System``: its joints, loads, actuators and constraints.

        Holonomic constraints are enforced. Where the user set ``velocity_constraints``, these hold, and
        ``configuration_constraints`` says what becomes of the holonomic ones, as for :meth:`from_kane`. ``options`` are
        those of :class:`Model` and win over what is read.

        Raises
        ------
        ModelError
            For anything that is no ``System``, and with every problem of the model.
        """
        from kanegen.model.adapters.from_sympy import system_description

        return cls(**system_description(system, configuration_constraints, **options))

    def with_speeds(
        self,
        speeds: Any,
        definitions: Any,
        *,
        dependent_speeds: Any = None,
        parameters: Mapping[Any, Any] | None = None,
    ) -> Model:
        """The same system in other speeds ``w = Phi1(q, t) u + Phi2(q, t)`` (Bajodah 2003, (45)).

        Everything else stays written in the old speeds, which may also stand in outputs;
        ``Q_w = Phi1^-T Q Phi1^-1``. A changed model can be changed again.

        Parameters
        ----------
        speeds
            The new dynamic symbols w, as many as there are speeds, in the order of the new arrays.
        definitions
            Their expressions in the speeds of this model, t, q, inputs and parameters: a list in the order of
            ``speeds``, equations ``Eq(w, expression)``, or a mapping from w to its expression.
        dependent_speeds
            Of the new speeds; None leaves the choice to the solver, whatever this model names.
        parameters
            Values of constants that only the definitions contain.

        Raises
        ------
        ModelError
            For definitions that are not affine in u, or cannot be solved for it.
        """
        problems: list[str] = []
        new = normalize.time_functions(speeds, "speeds", problems)
        change = SpeedChange(self, definitions_of(new, definitions, problems))
        dependent = normalize.dependent_speeds(dependent_speeds, problems)
        fields = {"speeds": new, "speed_change": change, "dependent_speeds": dependent}
        return self._changed(fields, {**self.parameters, **(parameters or {})}, problems)

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
            Of the new speeds; None leaves the choice to the solver, whatever this model names.

        Raises
        ------
        ModelError
            For new speeds that cannot stand for the old ones. ``derive`` and ``build`` raise ``DerivationError``
            where Q is singular, naming the speed that moves no mass.
        """
        problems: list[str] = []
        new = default_names(self.speeds) if speeds is None else normalize.time_functions(speeds, "speeds", problems)
        dependent = normalize.dependent_speeds(dependent_speeds, problems)
        fields = {"speeds": new, "speed_change": SpeedChange(self, None), "dependent_speeds": dependent}
        return self._changed(fields, self.parameters, problems)

    def with_reactions(
        self, reactions: Mapping[str, Reaction], *, parameters: Mapping[Any, Any] | None = None
    ) -> Model:
        """The same system with these reactions besides those it has.

        ``parameters`` are values of constants that only the positions of their points contain. Raises ``ModelError``
        for bodies, points, loads and constraints that are not part of the model.
        """
        problems: list[str] = []
        merged = {**self.reactions, **normalized_reactions(reactions, problems)}
        fields = {"reactions": FrozenMapping(merged)}
        return self._changed(fields, {**self.parameters, **(parameters or {})}, problems)

    def _changed(self, fields: Mapping[str, Any], parameters: Mapping[Any, Any], problems: list[str]) -> Model:
        model = object.__new__(type(self))
        model._set(**{**vars(self), **fields})
        model._complete(parameters, problems)
        return model

    def __repr__(self) -> str:
        constraints = (
            len(self.holonomic_constraints) + len(self.nonholonomic_constraints) + len(self.acceleration_constraints)
        )
        return (
            f"<Model {self.name!r}: {len(self.coordinates)} coordinates, {len(self.speeds)} speeds, "
            f"{len(self.bodies)} bodies, {constraints} constraints, {len(self.inputs)} inputs, "
            f"{len(self.parameters)} parameters>"
        )


def _parameter_symbols(model: Model, places: Any) -> tuple[Any, ...]:
    """The constant symbols of the model, in natural order of their names."""
    inputs = input_symbols(model.inputs)
    found = {atom for item in places for atom in item.atoms if isinstance(atom, sympy.Symbol)} - inputs
    for item in model.inputs:
        for rate in (item.rate, item.acceleration):
            if rate is not None:
                found |= {atom for atom in atoms((rate,)) if isinstance(atom, sympy.Symbol)} - inputs
    return tuple(sorted(found, key=lambda symbol: natural_key(symbol_name(symbol))))
