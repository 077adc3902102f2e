"""The description of a solver from the equations and the program it was generated from."""

from __future__ import annotations

import math
from dataclasses import replace

from kanegen.codegen.description import (
    ConstraintLabels,
    ContactLabels,
    ControlConstraintLabels,
    ControlLevel,
    Description,
    EventLabel,
    FunctionEntry,
    InputSlot,
    ServoLabels,
)
from kanegen.derivation import Equations
from kanegen.derivation.control.control_constraints import ControlledMotion
from kanegen.derivation.control.servo import servo_equations
from kanegen.derivation.momenta import Momenta
from kanegen.model.checks.symbols import spare_parameters
from kanegen.model.contact.laws import Value
from kanegen.model.expressions import symbol_name
from kanegen.model.records import FrozenMapping
from kanegen.program.functions.consistency import ENERGY, why_not
from kanegen.program.functions.controls import path_controls
from kanegen.program.passes.count import operation_count
from kanegen.program.passes.lower import reads
from kanegen.program.records import Program

NO_LIMITS = (-math.inf, math.inf)


def describe(equations: Equations, program: Program, form: str) -> Description:
    """What a :class:`~kanegen.solve.Solver` must know beyond the compiled functions."""
    model = equations.model
    functions = _functions(program)
    return Description(
        name=model.name,
        form=form,
        coordinates=program.symbols.coordinates,
        speeds=program.symbols.speeds,
        parameters=program.symbols.parameters,
        spare_parameters=tuple(sorted(map(symbol_name, spare_parameters(model)))),
        input_slots=_inputs(equations, program.symbols.inputs),
        dependent=equations.partition.dependent if equations.has_partition else (),
        independent=equations.partition.independent if equations.has_partition else (),
        constraints=_constraints(equations),
        contacts=_contacts(equations),
        impulses=tuple(model.impulses),
        events=tuple(map(EventLabel.of, model.events)),
        servo=_servo(equations),
        control_constraints=_control_constraints(equations),
        path_controls=path_controls(equations) if "control_forces" in functions else (),
        functions=functions,
        unavailable=FrozenMapping(program.unavailable),
        outputs=FrozenMapping((name, quantity.shape) for name, quantity in equations.outputs.items()),
        no_integrals=_no_integrals(equations),
        cyclic_coordinates=Momenta(equations).cyclic_coordinates if form == "hamilton" else (),
    )


def _functions(program: Program) -> FrozenMapping[str, FunctionEntry]:
    read = reads(program)
    return FrozenMapping(
        (f.name, FunctionEntry(operation_count(f, program.constants), *read[f.name]))
        for f in program.functions
        if not f.internal
    )


def _inputs(equations: Equations, names: tuple[str, ...]) -> tuple[InputSlot, ...]:
    inputs = equations.model.inputs
    slots = {item.symbol: k for k, item in enumerate(inputs)}
    rate_of = {slots[item.rate]: k for k, item in enumerate(inputs) if item.rate in slots}
    return tuple(
        InputSlot(name, item.default, rate_of.get(k)) for k, (name, item) in enumerate(zip(names, inputs, strict=True))
    )


def _constraints(equations: Equations) -> ConstraintLabels:
    constraints = equations.constraints
    rates = tuple(f"d/dt ({row.label})" for row in constraints.holonomic)
    return ConstraintLabels(
        rows=tuple(row.label for row in constraints.rows),
        positions=tuple(item.label for item in constraints.positions),
        velocities=(*rates, *(row.label for row in constraints.nonholonomic)),
        n_holonomic=len(constraints.holonomic),
        n_nonholonomic=len(constraints.nonholonomic),
    )


def _contacts(equations: Equations) -> ContactLabels:
    model = equations.model
    return ContactLabels(
        rows=model.contact_rows,
        values=tuple(
            _labeled(contact.name, value) for contact in model.resolved_contacts for value in contact.run_values()
        ),
    )


def _labeled(contact: str, value: Value) -> Value:
    expression = str(value.expression)
    what = value.name if expression == value.name else f"{value.name} = {expression}"
    return replace(value, name=f"contact {contact!r} has {what}", expression=expression)


def _servo(equations: Equations) -> ServoLabels | None:
    servo = equations.model.servo
    if servo is None:
        return None
    rows = equations.once(servo_equations)
    slots = rows.controls.slots
    return ServoLabels(
        controls=slots,
        limits=servo.limits or (NO_LIMITS,) * len(slots),
        residuals=rows.labels,
        orders=tuple(map(len, servo.theta)),
        free=servo.y is None,
    )


def _control_constraints(equations: Equations) -> ControlConstraintLabels | None:
    motion = equations.once(ControlledMotion.of)
    if motion is None:
        return None
    levels = tuple(ControlLevel(level.label, level.held, level.decays) for level in motion.levels)
    return ControlConstraintLabels(motion.slots, levels)


def _no_integrals(equations: Equations) -> FrozenMapping[str, str]:
    """Why a projection cannot keep the energy or an output."""
    reasons = {name: why_not(equations, name) for name in (ENERGY, *equations.outputs)}
    return FrozenMapping((name, reason) for name, reason in reasons.items() if reason)
