"""Functions with CasADi's C interface, for optimal control."""

from kanegen.emission.casadi.project import casadi_files as casadi_files
from kanegen.emission.casadi.project import emit_casadi as emit_casadi
