"""The description of a model from its equations and its program."""

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
    LawLabel,
    ServoLabels,
)
from kanegen.derivation.control.control_constraints import ControlledMotion
from kanegen.derivation.control.servo import servo_equations
from kanegen.derivation.equations import Equations
from kanegen.derivation.momenta import Momenta
from kanegen.model.checks.symbols import spare_parameters
from kanegen.model.expressions import symbol_name
from kanegen.model.inputs import Input
from kanegen.model.records import FrozenMapping
from kanegen.program.builder import mass_function
from kanegen.program.functions.consistency import ENERGY, no_motion, why_not
from kanegen.program.functions.contacts import contact_table
from kanegen.program.functions.controls import path_controls
from kanegen.program.passes.count import operation_count
from kanegen.program.passes.lower import reads
from kanegen.program.records import Program


def describe(equations: Equations, program: Program, form: str) -> Description:
    """The description of a model, from its equations and its program."""
    model = equations.model
    functions = _functions(program)
    no_integrals = {name: why_not(equations, name) for name in (ENERGY, *equations.outputs)}
    no_motions = {name: no_motion(equations, name) for name in equations.outputs}
    return Description(
        name=model.name,
        form=form,
        coordinates=program.symbols.coordinates,
        speeds=program.symbols.speeds,
        parameters=program.symbols.parameters,
        spare_parameters=tuple(sorted(map(symbol_name, spare_parameters(model)))),
        input_slots=_inputs(equations, program.symbols.inputs),
        states=program.symbols.states,
        dependent=equations.partition.dependent if equations.has_partition else (),
        independent=equations.partition.independent if equations.has_partition else (),
        constraints=_constraints(equations),
        contacts=_contacts(equations),
        impulses=tuple(model.impulses),
        events=tuple(map(EventLabel.of, model.events)),
        modes=FrozenMapping((symbol_name(state), names) for state, names in model.modes.items()),
        servo=_servo(equations),
        control_constraints=_control_constraints(equations),
        path_controls=path_controls(equations) if "control_forces" in functions else (),
        mass=mass_function(model),
        functions=functions,
        deferred=program.deferred,
        unavailable=FrozenMapping(program.unavailable),
        outputs=FrozenMapping((name, quantity.shape) for name, quantity in equations.outputs.items()),
        no_integrals=FrozenMapping((name, reason) for name, reason in no_integrals.items() if reason),
        no_motions=FrozenMapping((name, reason) for name, reason in no_motions.items() if reason),
        cyclic_coordinates=Momenta(equations).cyclic_coordinates if form == "hamilton" else (),
    )


def _law(item: Input) -> LawLabel | None:
    if item.law is None:
        return None
    return LawLabel(str(item.law), tuple(item.limits), tuple(item.switches), item.sample_time, item.delay or 0.0)


def _inputs(equations: Equations, names: tuple[str, ...]) -> tuple[InputSlot, ...]:
    """The inputs of a model, with their names in the program."""
    inputs = equations.model.inputs
    slots = {item.symbol: k for k, item in enumerate(inputs)}
    rate_of = {slots[item.rate]: k for k, item in enumerate(inputs) if item.rate in slots}
    # The program of variations has further inputs behind those of the model.
    named = enumerate(zip(names, inputs, strict=False))
    return tuple(InputSlot(name, item.default, rate_of.get(k), _law(item)) for k, (name, item) in named)


def _functions(program: Program) -> FrozenMapping[str, FunctionEntry]:
    """The functions of a program that are called from outside."""
    read, functions = reads(program), (f for f in program.functions if not f.internal)
    entries = ((f.name, FunctionEntry(operation_count(f, program.constants), *read[f.name])) for f in functions)
    return FrozenMapping(entries)


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
    values = []
    for contact in equations.model.resolved_contacts:
        for value in contact.run_values():
            expression = str(value.expression)
            what = value.name if expression == value.name else f"{value.name} = {expression}"
            name = f"contact {contact.name!r} has {what}"
            values.append(replace(value, name=name, expression=expression))
    return ContactLabels(equations.model.contact_rows, tuple(values), contact_table(equations.model))


def _servo(equations: Equations) -> ServoLabels | None:
    servo = equations.model.servo
    if servo is None:
        return None
    rows = equations.once(servo_equations)
    slots = rows.controls.slots
    limits = servo.limits or ((-math.inf, math.inf),) * len(slots)
    return ServoLabels(slots, limits, rows.labels, orders=tuple(map(len, servo.theta)), free=servo.y is None)


def _control_constraints(equations: Equations) -> ControlConstraintLabels | None:
    motion = equations.once(ControlledMotion.of)
    if motion is None:
        return None
    levels = tuple(ControlLevel(level.label, level.held, level.decays) for level in motion.levels)
    return ControlConstraintLabels(motion.slots, levels)
