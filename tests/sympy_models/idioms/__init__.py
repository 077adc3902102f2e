"""A corpus of idioms: small models, each one way in which sympy.physics.mechanics is used, gathered in one table."""

from idioms import (
    actuators,
    auxiliary,
    bodies,
    constraints,
    frames,
    inputs,
    joints,
    kinematics,
    loads,
    muscles,
    points,
    systems,
)
from idioms.table import IDIOMS, Idiom

THEMES = (
    points,
    frames,
    kinematics,
    constraints,
    loads,
    actuators,
    joints,
    systems,
    muscles,
    bodies,
    inputs,
    auxiliary,
)

__all__ = ["IDIOMS", "THEMES", "Idiom"]
