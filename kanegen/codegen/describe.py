"""The description of a solver from the equations and the program it was generated from."""

from __future__ import annotations

import math
from typing import Any

from kanegen.codegen.description import Description
from kanegen.derivation import Equations
from kanegen.derivation.momenta import Momenta
from kanegen.model.checks.symbols import spare_parameters
from kanegen.model.contact.laws import Value
from kanegen.model.contact.records import contacts_of
from kanegen.model.control.servo import servo_of
from kanegen.model.expressions import symbol_name
from kanegen.program.functions.control.plant import path_controls
from kanegen.program.functions.integrals import ENERGY, why_not
from kanegen.program.passes.count import operation_count
from kanegen.program.passes.reads import reads
from kanegen.program.records import Program


def describe(equations: Equations, program: Program, form: str) -> Description:
    """What a :class:`~kanegen.solve.Solver` must know beyond the compiled functions."""
    model, constraints = equations.model, equations.constraints
    motion = equations.controlled_motion
    needs = reads(program)
    table = [function for function in program.functions if not function.internal]
    return Description(
        name=model.name,
        form=form,
        coordinates=program.symbols.coordinates,
        speeds=program.symbols.speeds,
        inputs=program.symbols.inputs,
        parameters=program.symbols.parameters,
        input_defaults=tuple(item.default for item in model.inputs),
        input_rate_of=_rate_links(equations),
        dependent=equations.partition.dependent if equations.has_partition else (),
        independent=equations.partition.independent if equations.has_partition else (),
        constraints=tuple(row.label for row in constraints.rows),
        positions=tuple(item.label for item in constraints.positions),
        velocities=tuple(f"d/dt ({row.label})" for row in constraints.holonomic)
        + tuple(row.label for row in constraints.nonholonomic),
        n_holonomic=len(constraints.holonomic),
        n_nonholonomic=len(constraints.nonholonomic),
        potential_energy=model.potential_energy is not None or model.gravity is not None,
        outputs=tuple((name, quantity.shape) for name, quantity in equations.outputs.items()),
        operations=tuple((f.name, operation_count(f, program.constants)) for f in table),
        functions=tuple(f.name for f in table),
        cyclic_coordinates=Momenta(equations).cyclic_coordinates if form == "hamilton" else (),
        contact_rows=tuple(name for contact in contacts_of(model) for name in contact.row_names),
        contact_values=tuple(
            _contact_value(contact.name, value) for contact in contacts_of(model) for value in contact.run_values()
        ),
        impulses=tuple(model.impulses),
        events=tuple(map(repr, model.events)),
        no_integrals=_no_integrals(equations),
        fallible_constants=tuple((name, read.fallible) for name, read in needs.items() if read.fallible),
        reads=tuple((name, read.parameters, read.inputs) for name, read in needs.items()),
        unavailable=program.unavailable,
        spare_parameters=tuple(sorted(map(symbol_name, spare_parameters(model)))),
        joined=motion.slots if motion else (),
        control_levels=tuple((level.label, level.held, level.decays) for level in motion.levels) if motion else (),
        path_controls=path_controls(equations) if "control_forces" in {f.name for f in table} else (),
        **_servo(equations),
    )


def _servo(equations: Equations) -> dict[str, Any]:
    """What describes the servo-constraints, if there are some."""
    servo = servo_of(equations.model)
    if servo is None:
        return {}
    found = equations.servo
    return {
        "controls": found.controls.slots,
        "servo_constraints": found.labels,
        "servo_levels": tuple(map(len, servo.theta)),
        "servo_free": servo.y is None,
        "control_limits": tuple(tuple(x if math.isfinite(x) else None for x in pair) for pair in servo.limits or ()),
    }


def _no_integrals(equations: Equations) -> tuple[tuple[str, str], ...]:
    """The energy and outputs that a projection cannot keep, with the reason."""
    reasons = {name: why_not(equations, name) for name in (ENERGY, *equations.outputs)}
    return tuple((name, reason) for name, reason in reasons.items() if reason)


def _rate_links(equations: Equations) -> tuple[int | None, ...]:
    """For each input the index of the input whose time derivative it is."""
    inputs = equations.model.inputs
    slots = {item.symbol: k for k, item in enumerate(inputs)}
    links: dict[int, int] = {}
    for k, item in enumerate(inputs):
        if item.rate in slots:
            links[slots[item.rate]] = k
    return tuple(links.get(k) for k in range(len(inputs)))


def _contact_value(contact: str, value: Value) -> tuple[str, float | None, float | None, bool]:
    """The entry of :attr:`~kanegen.solve.Description.contact_values`: label and interval."""
    least, greatest = (x if math.isfinite(x) else None for x in (value.least, value.greatest))
    expression = str(value.expression)
    what = value.name if expression == value.name else f"{value.name} = {expression}"
    return f"contact {contact!r} has {what}", least, greatest, value.strict
