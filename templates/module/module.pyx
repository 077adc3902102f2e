# cython: language_level=3, binding=False, boundscheck=False, cdivision=True
# cython: auto_pickle=False, initializedcheck=False, embedsignature=True, embedsignature.format=clinic
# distutils: define_macros=NPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION
"""A compiled mechanical model: evaluation and integration.

This file does not depend on the model, which describes itself (kg_model.h). NAME, DIGEST, COORDINATES, SPEEDS, STATES,
INPUTS, PARAMETERS, N_GAINS and FUNCTIONS (name to shape) describe the compiled model.
"""

from collections.abc import Mapping as _Mapping
from operator import index as _index

import numpy

include "module_declarations.pxi"

_import_array()


class SolveError(RuntimeError):
    """A state or an argument for which the equations cannot be evaluated or integrated."""


{% if has.is_shared %}
# The kernel is a library of its own; kanegen writes the address of its description here before it runs this code.
cdef const kg_model *MODEL = <const kg_model *><size_t>globals()["MODEL_ADDRESS"]
{% else %}
cdef const kg_model *MODEL = kg_get_model()
{% endif %}
cdef int N_S = MODEL.n_s

if MODEL.abi != KG_ABI:
    raise ImportError(
        f"the compiled model uses version {MODEL.abi} of kg_model.h, but this module reads version {KG_ABI}; generate "
        "the model again with the installed version of kanegen"
    )


cdef tuple _names(const char *const *names, int count):
    return tuple([names[i].decode() for i in range(count)])


cdef int _length(const kg_function *function) noexcept:
    """The number of values of a function."""
    return max(function.cols, 1) * (1 if function.rows < 0 else function.rows)


cdef tuple _shape(const kg_function *function):
    if function.cols > 0:
        return (function.rows, function.cols)
    return () if function.rows < 0 else (function.rows,)


NAME = MODEL.name.decode()
DIGEST = MODEL.digest.decode()
COORDINATES = _names(MODEL.coordinates, MODEL.n_q)
SPEEDS = _names(MODEL.speeds, MODEL.n_u)
INPUTS = _names(MODEL.inputs, MODEL.n_r)
STATES = _names(MODEL.states, N_S)
FORCES = tuple([f"force of contact row {i}" for i in range(MODEL.n_rows)])
FREE = tuple([f"entry {i} of the free vector" for i in range(MODEL.n_free)])
cdef object ZEROS = numpy.zeros(max(N_S, MODEL.n_r, MODEL.n_rows, MODEL.n_free, 1))  # what is read where an argument is left out
PARAMETERS = _names(MODEL.parameters, MODEL.n_p)
N_GAINS = MODEL.n_g
{% if not has.is_shared %}
MODEL_ADDRESS = <size_t>MODEL  # for other compiled code of the same model
{% endif %}
FUNCTIONS = {
    MODEL.functions[i].name.decode(): _shape(&MODEL.functions[i]) for i in range(MODEL.n_functions)
}
TABLES = tuple([
    (MODEL.tables[i].label.decode(), MODEL.tables[i].lowest, MODEL.tables[i].highest) for i in range(MODEL.n_tables)
])  # table, least and largest argument, in the order of the function `tables`
MASS = "M" if "M" in FUNCTIONS else "Q"  # the matrix of the accelerations

include "module_arguments.pxi"
include "module_inputs.pxi"
include "module_control.pxi"
{% if has.inverse %}
include "module_assembly.pxi"
include "module_inverse.pxi"
{% endif %}
include "module_function.pxi"
include "module_rows.pxi"
{% if has.is_shared %}
include "module_batch.pxi"
{% endif %}
include "module_refusals.pxi"
{% if has.implicit_methods %}
include "module_jacobian.pxi"
{% endif %}
include "module_consistent.pxi"
{% if has.impulses or has.events %}
include "module_impulse.pxi"
{% endif %}
{% if has.events %}
include "module_contacts.pxi"
{% endif %}
include "module_run.pxi"
include "module_integrate.pxi"
include "module_switches.pxi"
{% if has.events %}
include "module_hybrid.pxi"
{% endif %}
