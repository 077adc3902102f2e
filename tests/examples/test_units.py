"""The units of every example follow from the unit of its first coordinate, and agree in all its equations."""

from __future__ import annotations

import pytest
from checkout import EXAMPLES
from messages import raises
from systems import model_of

from kanegen import ModelError
from kanegen.model.checks.units import unit_problems, units_of
from kanegen.model.description import SystemDescription
from kanegen.model.places import survey
from kanegen.units import Units, coherent, exponents

HIDDEN = "rheonomic_particle"
"""An example whose equations contain numbers with units, ``3 sin(2 t)/10``."""

TIRES = "two_track_vehicle"
"""An example with tires, whose coefficients from a file are such numbers, too."""

NAMES = sorted({path.stem for path in EXAMPLES.glob("[!_]*.py")} - {HIDDEN, TIRES})
FREE = {"dc_motor_arm": ("R",), "simplest_walker": ("g", "l")}
"""Parameters of these names that are something else, or only have ratios in the equations."""

KNOWN = {"g": "m/s^2", "m": "kg", "l": "m", "R": "m", "F": "N", "I_D": "kg m^2", "K1": "N/m"}


def with_unit(name: str, base: str) -> SystemDescription:
    """The description of an example in which only the first coordinate has a unit."""
    model = model_of(name)
    unit = coherent(exponents(**{base: 1}) if base else {})
    return model.changed(units=Units({model.coordinates[0].func.__name__: unit}))


@pytest.mark.parametrize("name", NAMES)
def test_units_of_examples_agree(name: str) -> None:
    places = survey(model_of(name)).places
    fits = [base for base in ("", "m") if not unit_problems(with_unit(name, base), places)]
    assert len(fits) == 1
    units = units_of(with_unit(name, fits[0]), places)
    own = {parameter.name for parameter in model_of(name).parameters}
    for parameter, unit in KNOWN.items():
        if parameter in own and parameter not in FREE.get(name, ()):
            assert units[parameter].text == unit


def test_numbers_with_units_are_named() -> None:
    model = with_unit(HIDDEN, "m")
    problems = unit_problems(model, survey(model).places)
    with raises(ModelError, "sin", "2*t", "s"):
        raise ModelError(problems)
