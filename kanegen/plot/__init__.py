"""Plots (matplotlib, ``pip install 'kanegen[plot]'``); each function draws in given axes or a new figure."""

from kanegen.plot.drift import drift as drift
from kanegen.plot.modes import modes as modes
from kanegen.plot.orbits import orbit as orbit
from kanegen.plot.orbits import orbit_curve as orbit_curve
from kanegen.plot.phase import phase as phase
from kanegen.plot.strobe import strobe as strobe
from kanegen.plot.work_precision import work_precision as work_precision
