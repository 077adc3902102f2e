# C declarations that the module uses: the model, the integrators and some names of the NumPy API.
# (The .pxd of NumPy would add a second to the compile time.)

from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.pycapsule cimport (
    PyCapsule_CheckExact, PyCapsule_GetContext, PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_New,
    PyCapsule_SetContext,
)
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

cdef extern from "numpy/arrayobject.h" nogil:
    ctypedef Py_ssize_t npy_intp
    ctypedef struct PyArrayObject:
        pass
    enum:
        NPY_DOUBLE
        NPY_UBYTE
    int _import_array() except -1
    bint PyArray_CheckExact(object)
    int PyArray_TYPE(PyArrayObject *)
    int PyArray_NDIM(PyArrayObject *)
    npy_intp PyArray_DIM(PyArrayObject *, int)
    npy_intp PyArray_STRIDE(PyArrayObject *, int)
    bint PyArray_ISCARRAY_RO(PyArrayObject *)
    bint PyArray_ISFARRAY_RO(PyArrayObject *)
    npy_intp PyArray_SIZE(PyArrayObject *)
    bint PyArray_ISWRITEABLE(PyArrayObject *)
    void *PyArray_DATA(PyArrayObject *)
    object PyArray_SimpleNew(int, npy_intp *, int)

cdef extern from "module_steppers.h" nogil:
    enum:
        KG_ABI
        KG_OK
        KG_REPARTITIONED
        KG_SINGULAR
        KG_OUTSIDE_TABLE
        KG_FINISHED
        KG_NOT_FINITE
        KG_RHS_FAILED
        KG_INTERRUPTED
        KG_INVALID_ARGUMENT
        KG_SLIP
        KG_METHODS
        KG_RECORD_KINDS
        KG_LAW_RESTITUTION
        KG_LAW_LATCH
        KG_LAW_LOAD
{{ structs(("kg_point",)) }}
    ctypedef int (*kg_evaluate)(const kg_point *, const double *, double *, double *) noexcept nogil
{{ structs((
    "kg_function", "kg_contact_info", "kg_event_info", "kg_table_info", "kg_model", "kg_ode", "kg_statistics",
    "kg_stepper_options", "kg_stepper", "kg_clock", "kg_switches", "kg_instants", "kg_run", "kg_rows",
    "kg_law", "kg_feedback",
), known=("kg_point",)) }}
    const kg_model *kg_get_model()

    double kg_stepper_time_difference(const kg_stepper *) noexcept nogil
    double kg_stepper_difference(const kg_stepper *, int, double) noexcept nogil
    const char *kg_module_method_name(int)
    bint kg_module_method_is_implicit(int)
    bint kg_module_method_is_adaptive(int)
    size_t kg_module_switches_work(const kg_model *)
    int kg_module_switches_open(kg_switches *, const kg_model *, const double *, double *)
    const char *kg_module_record_name(int)
    size_t kg_module_work(int, int)
    double KG_SAME_INSTANT
    int kg_module_run_begin(kg_run *, double, const double *, double)
    int kg_module_run_start(kg_run *, const kg_ode *, const kg_stepper_options *, const double *, double *)
    int kg_module_run_advance(kg_run *, int)
    void kg_feedback_start(const kg_feedback *)
    int kg_feedback_inputs(const kg_feedback *, const kg_point *)
    int kg_feedback_sample(const kg_feedback *, int, const kg_point *)
    void kg_feedback_act(const kg_feedback *, int)
    int kg_module_dense_rows(int)
    void kg_module_dense_evaluate(int, int, const double *, double, double, double, double *)
    const char *kg_module_status_message(int)
    bint kg_module_all_finite(int, const double *)
    int kg_module_evaluate(const kg_function *, const kg_point *, const double *, double *, double *, int)
    int kg_module_residual_units(const kg_function *, int, int, const kg_point *, const double *, double *, double *,
                                 double *, double *)
    enum:
        KG_ROW_ARGUMENTS
    int kg_module_open_row(const kg_rows *, Py_ssize_t, kg_point *)
    int kg_module_advance_rows(kg_rows *, int)

cdef extern from *:
    """
    #include <time.h>
    static double kg_module_seconds(void) {
      struct timespec now;
      timespec_get(&now, TIME_UTC);
      return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    }
    """
    double kg_module_seconds() nogil
