# C declarations that the module uses: the model, the integrators and some names of the NumPy API.
# (The .pxd of NumPy would add a second to the compile time.)

from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check, PyFloat_CheckExact
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
    ctypedef struct kg_point:
        double t
        const double *q
        const double *u
        const double *s
        const double *r
        const double *forces
        const double *free
    ctypedef int (*kg_evaluate)(const kg_point *, const double *, double *, double *) noexcept nogil
    ctypedef struct kg_function:
        const char *name
        int rows
        int cols
        int work
        kg_evaluate evaluate
    ctypedef struct kg_contact_info:
        const char *name
        int law
        int level
        int normal
        int tangent
        int directions
        int flags
    ctypedef struct kg_event_info:
        const char *name
        int direction
        int terminal
        int impulse
        int n_impose
        const int *impose
        int n_remove
        const int *remove
        int multipliers
    ctypedef struct kg_table_info:
        const char *label
        double lowest
        double highest
    ctypedef struct kg_model:
        int abi
        const char *name
        const char *digest
        int n_q
        int n_u
        int n_s
        int n_r
        int n_p
        int n_g
        int n_prepared
        const char *const *coordinates
        const char *const *speeds
        const char *const *states
        const char *const *inputs
        const char *const *parameters
        void (*prepare)(double *) noexcept nogil
        int n_functions
        const kg_function *functions
        int n_rows
        int n_free
        int n_contacts
        const kg_contact_info *contacts
        int n_events
        const kg_event_info *events
        int n_tables
        const kg_table_info *tables
        const int *angles
    const kg_model *kg_get_model()

    ctypedef struct kg_ode:
        int n
        int (*rhs)(void *, double, const double *, double *) noexcept nogil
        void *context
        int (*jacobian)(void *, double, const double *, const double *, double *, double *) noexcept nogil
    ctypedef struct kg_statistics:
        long long steps
        long long rejected
        long long evaluations
        long long repartitions
        double smallest_step
        double largest_step
        double last_step
        double largest_error
        long long jacobians
        long long factorizations
    ctypedef struct kg_stepper_options:
{% for name, option in options.items() %}
        {{ c_types[option.kind] | replace("kg_real", "double") }} {{ name }}
{% endfor %}
    ctypedef struct kg_stepper:
        kg_statistics statistics
        double t
        double t_old
        double h
        double *y
        double *dense
        int rhs_status
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
    ctypedef struct kg_clock:
        double sample_time
        double delay
        long long acting
    ctypedef struct kg_switches:
        pass
    ctypedef struct kg_instants:
        int n
        const double *times
        kg_switches *switches
    ctypedef struct kg_run:
        kg_stepper *stepper
        double *state
        void *host
        int (*store)(void *, double, const double *) noexcept nogil
        int (*store_dense)(void *) noexcept nogil
        int (*accept)(void *, int) noexcept nogil
        int (*renew)(void *) noexcept nogil
        int (*begin_phase)(void *) noexcept nogil
        kg_instants *instants
        int n_clocks
        kg_clock *clocks
        int (*sample)(void *, int, double, const double *) noexcept nogil
        int (*act)(void *, int, double) noexcept nogil
        const double *t_eval
        size_t n_eval
    int kg_module_run_begin(kg_run *, double, const double *, double)
    int kg_module_run_start(kg_run *, const kg_ode *, const kg_stepper_options *, const double *, double *)
    int kg_module_run_advance(kg_run *, int)
    int kg_module_dense_rows(int)
    void kg_module_dense_evaluate(int, int, const double *, double, double, double, double *)
    const char *kg_module_status_message(int)
    bint kg_module_all_finite(int, const double *)
    int kg_module_evaluate(const kg_function *, const kg_point *, const double *, double *, double *, int)
    int kg_module_residual_units(const kg_function *, int, int, const kg_point *, const double *, double *, double *,
                                 double *, double *)
    enum:
        KG_ROW_ARGUMENTS
    ctypedef struct kg_rows:
        const kg_function *function
        const double *p
        const double *t
        const double *q
        const double *u
        const double *r
        const double *s
        Py_ssize_t count, next_t, next_q, next_u, next_r, next_s
        int n_q, n_u, n_r, n_out, first_multiplier, first_free, first_state
        double *inputs
        double *work
        double *out
        Py_ssize_t done
        long long repartitioned
    int kg_module_open_row(const kg_rows *, Py_ssize_t)
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
