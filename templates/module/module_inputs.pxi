# Inputs during a run: functions of the time, and of the state; only those that are Python code call Python.

from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.ref cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject *)


cdef enum InputKind:
    INPUT_CONSTANT
    INPUT_PIECEWISE
    INPUT_COMPILED  # a C function of the time
    INPUT_FEEDBACK  # a C function of the time and the state
    INPUT_PYTHON

ctypedef void (*kg_input_function)(double, double *, void *) noexcept nogil
ctypedef void (*kg_feedback_function)(double, const double *, const double *, double *, void *) noexcept nogil

cdef enum:
    STATUS_PYTHON = -100  # a Python input raised an exception, which Run.error holds
    STATUS_NO_MEMORY = -101


cdef struct Source:
    # What computes the inputs (n_r,), without Python; it belongs to one run.
    InputKind kind
    bint of_state  # the values depend on the state
    int order, pieces, piece
    const double *breakpoints
    const double *coefficients
    void *function  # kg_input_function or kg_feedback_function
    void *user_data
    void *caller  # Caller of inputs that are Python code
    void *run  # the Run that stores their exceptions


cdef struct Evaluation:
    # Data for y' = f(t, y) without Python; `work` and `r` belong to one run, the rest is only read.
    kg_evaluate evaluate
    int n_q, n_out
    int first_state  # the states of a model with states follow in y from this index on
    const double *p
    double *work
    double *r  # inputs, those of the point
    kg_point at
    Source source
    void *slopes  # Slopes (module_jacobian.pxi) for implicit methods
    kg_feedback *feedback  # of a closed loop (module_control.pxi), else NULL
    void **loops  # the ControlLoop of each of its laws


cdef void _piecewise(Source *s, double t, double *r) noexcept nogil:
    """Horner's rule on the piece that contains t; the first and the last piece extend to infinity."""
    cdef int i, k
    cdef double x, value
    while s.piece > 0 and t < s.breakpoints[s.piece]:
        s.piece -= 1
    while s.piece < s.pieces - 1 and t >= s.breakpoints[s.piece + 1]:
        s.piece += 1
    x = t - s.breakpoints[s.piece]
    for i in range(MODEL.n_r):
        value = 0.0
        for k in range(s.order):
            value = value * x + s.coefficients[(<size_t>k * s.pieces + s.piece) * MODEL.n_r + i]
        r[i] = value


cdef int _fill(Source *s, double t, const double *y, int first_state, double *r) noexcept nogil:
    """Write the inputs (n_r,) into r; constants are there already. ``y`` can be NULL for functions of the time."""
    if s.kind == INPUT_PIECEWISE:
        _piecewise(s, t, r)
    elif s.kind == INPUT_COMPILED:
        (<kg_input_function>s.function)(t, r, s.user_data)
    elif s.kind == INPUT_FEEDBACK:
        (<kg_feedback_function>s.function)(t, y, y + MODEL.n_q, r, s.user_data)
    elif s.kind == INPUT_PYTHON:
        if _call_python(s, t, y, first_state, r) < 0:
            return STATUS_PYTHON
    return KG_OK


cdef inline void _place(Evaluation *e, double t, const double *y) noexcept nogil:
    """Let the point read the time and the state."""
    e.at.t = t
    if e.at.q != y:  # stages are mostly at one place; pointers that were just written are late for the function
        e.at.q, e.at.u, e.at.s = y, y + e.n_q, y + e.first_state


cdef int _right_hand_side(void *context, double t, const double *y, double *dydt) noexcept nogil:
    cdef Evaluation *e = <Evaluation *>context
    cdef int status = _inputs_at(e, t, y)
    if status < 0:
        return status
    return e.evaluate(&e.at, e.p, e.work, dydt)


cdef int _with_constant_inputs(void *context, double t, const double *y, double *dydt) noexcept nogil:
    cdef Evaluation *e = <Evaluation *>context
    _place(e, t, y)
    return e.evaluate(&e.at, e.p, e.work, dydt)


cdef int _call_python(Source *s, double t, const double *y, int first_state, double *r) noexcept with gil:
    try:
        (<Caller>s.caller).call(t, y, first_state, r)
        return 0
    except BaseException as error:  # an exception cannot pass through C code; integrate() reports it
        (<Run>s.run).error = error
        return -1


cdef class Caller:
    """Calls a Python function of (t), (t, q, u) or (t, q, u, s).

    The function gets copies of the state. An array is used again if the function has kept no reference to it.
    """

    cdef object function, q, u, s
    cdef int n_arguments

    def __cinit__(self, function, n_arguments):
        self.function, self.n_arguments = function, n_arguments
        self.q, self.u, self.s = _new_vector(MODEL.n_q), _new_vector(MODEL.n_u), _new_vector(N_S)

    cdef int call(self, double t, const double *y, int first_state, double *r) except -1:
        """Write the values (n_r,) into r."""
        if self.n_arguments == 1:
            values = self.function(t)
        else:
            if _is_in_use(<PyObject *>self.q, MODEL.n_q):
                self.q = _new_vector(MODEL.n_q)
            if _is_in_use(<PyObject *>self.u, MODEL.n_u):
                self.u = _new_vector(MODEL.n_u)
            memcpy(_data(self.q), y, MODEL.n_q * sizeof(double))
            memcpy(_data(self.u), y + MODEL.n_q, MODEL.n_u * sizeof(double))
            if self.n_arguments == 3:
                values = self.function(t, self.q, self.u)
            else:
                if _is_in_use(<PyObject *>self.s, N_S):
                    self.s = _new_vector(N_S)
                memcpy(_data(self.s), y + first_state, N_S * sizeof(double))
                values = self.function(t, self.q, self.u, self.s)
        if not _copy_values(values, MODEL.n_r, r):
            self.convert(t, values, r)
        return 0

    cdef int convert(self, double t, object values, double *r) except -1:
        """Write values of other types into r. Raises SolveError that names what is wrong with them."""
        what = f"r({', '.join([repr(t), 'q', 'u', 's'][:self.n_arguments])})"
        array = _as_array(values, what)
        if len(INPUTS) == 1 and array.ndim == 0:
            array = array.reshape(1)
        array = _as_vector(array, INPUTS, what)
        _check_finite(array, INPUTS, what)
        memcpy(r, _data(array), MODEL.n_r * sizeof(double))
        return 0


cdef inline bint _is_in_use(PyObject *array, npy_intp n) noexcept:
    """Whether somebody else refers to the array, or has changed its size."""
    return Py_REFCNT(array) != 1 or not _is_vector(<object>array, n)


cdef bint _copy_values(object values, Py_ssize_t n, double *r) noexcept:
    """Copy n finite numbers from a float64 array, a list or tuple of floats, or a float; False for anything else."""
    cdef Py_ssize_t i
    cdef PyObject *item
    cdef bint is_list = PyList_CheckExact(values)
    if _is_vector(values, n):
        memcpy(r, _data(values), n * sizeof(double))
    elif n == 1 and PyFloat_Check(values):  # also numpy.float64
        r[0] = PyFloat_AS_DOUBLE(values)
    elif (is_list and PyList_GET_SIZE(values) == n) or (PyTuple_CheckExact(values) and PyTuple_GET_SIZE(values) == n):
        for i in range(n):
            item = PyList_GET_ITEM(values, i) if is_list else PyTuple_GET_ITEM(values, i)
            if not PyFloat_Check(<object>item):
                return False
            r[i] = PyFloat_AS_DOUBLE(<object>item)
    else:
        return False
    return _is_finite(r, <int>n)


cdef object _of_time(object inputs, str what):
    """The inputs; raise SolveError if they depend on the state, which ``what`` does not have."""
    _require_inputs(inputs)
    if (<Inputs>inputs).of_state:
        raise SolveError(f"the inputs depend on the state (q, u), which {what} does not have: give functions of the time")
    return inputs


INPUT_SIGNATURES = {
    "void(double,double*,void*)": INPUT_COMPILED,
    "void(double,double*,double*,double*,void*)": INPUT_FEEDBACK,
}


cdef class Inputs:
    """The inputs of a run; made by `constant`, `table`, `piecewise`, `compiled` or `python`."""

    cdef InputKind kind
    cdef int n_arguments  # of a Python function
    cdef void *function
    cdef void *user_data
    cdef object source, breakpoints, coefficients

    @staticmethod
    def constant(values):
        """The same values (n_r,) at all times."""
        cdef Inputs inputs = Inputs.__new__(Inputs)
        inputs.kind = INPUT_CONSTANT
        inputs.source = _as_vector(values, INPUTS, "r").copy()
        _check_finite(inputs.source, INPUTS, "r")
        return inputs

    @staticmethod
    def table(times, values):
        """Linear interpolation: ``times`` (n,) increasing, ``values`` (n, n_r), n >= 2."""
        x, y = _as_array(times, "times of the input table"), _as_array(values, "values of the input table")
        if x.ndim != 1 or x.size < 2 or y.shape != (x.size, len(INPUTS)):
            raise SolveError(
                f"the input table has times {x.shape} and values {y.shape}; expected (n,) and (n, {len(INPUTS)}) "
                f"with n >= 2: {', '.join(INPUTS)}"
            )
        _check_table(x, y)
        slopes = numpy.diff(y, axis=0) / numpy.diff(x)[:, None]
        return Inputs.piecewise(x, numpy.stack([slopes, y[:-1]]))

    @staticmethod
    def piecewise(breakpoints, coefficients):
        """Polynomials in t - breakpoints[j]: ``breakpoints`` (n + 1,), ``coefficients`` (k, n, n_r), highest power
        first: ``x`` and ``c`` of scipy.interpolate.PPoly and CubicSpline."""
        cdef Inputs inputs = Inputs.__new__(Inputs)
        x, c = _as_array(breakpoints, "breakpoints"), _as_array(coefficients, "coefficients")
        if x.ndim != 1 or c.ndim != 3 or c.shape[0] < 1 or c.shape[1:] != (x.size - 1, len(INPUTS)) or x.size < 2:
            raise SolveError(
                f"the input polynomials have breakpoints {x.shape} and coefficients {c.shape}; expected (n + 1,) and "
                f"(k, n, {len(INPUTS)}): {', '.join(INPUTS)}"
            )
        _check_table(x, c)
        inputs.kind = INPUT_PIECEWISE
        inputs.breakpoints, inputs.coefficients = x.copy(), c.copy()
        return inputs

    @staticmethod
    def compiled(source):
        """A C function ``void (double t, double *r, void *user_data)``, or one of the state, ``void (double t, const
        double *q, const double *u, double *r, void *user_data)``, where the states of the model follow u in memory.

        ``source`` is a PyCapsule named with this signature, with or without const, whose context is ``user_data``, or a
        scipy.LowLevelCallable.
        """
        cdef Inputs inputs = Inputs.__new__(Inputs)
        cdef const char *name
        # LowLevelCallable is a tuple that holds its capsule first and forbids indexing.
        capsule = (<tuple>source)[0] if isinstance(source, tuple) and len(<tuple>source) else source
        if not PyCapsule_CheckExact(capsule):
            raise SolveError(f"a compiled input is a {type(source).__name__}; expected a LowLevelCallable or a PyCapsule")
        name = PyCapsule_GetName(capsule)
        signature = "" if name == NULL else (<bytes>name).decode("utf-8", "replace")
        kind = INPUT_SIGNATURES.get("".join(signature.replace("const", " ").split()))
        if kind is None:
            raise SolveError(
                f"a compiled input has the signature {signature!r}; expected 'void (double, double *, void *)' (t, r, "
                "user_data) or 'void (double, const double *, const double *, double *, void *)' (t, q, u, r, user_data)"
            )
        inputs.kind = kind
        inputs.function = PyCapsule_GetPointer(capsule, name)
        inputs.user_data = PyCapsule_GetContext(capsule)
        inputs.source = source
        return inputs

    @staticmethod
    def python(source, n_arguments=1):
        """A callable r(t), r(t, q, u) or r(t, q, u, s), for 1, 3 or 4 arguments, with values (n_r,).

        Slow, because every evaluation calls Python. An exception ends the run.
        """
        cdef Inputs inputs = Inputs.__new__(Inputs)
        if not callable(source):
            raise SolveError(f"r is a {type(source).__name__}; expected something to call as r(t) or r(t, q, u)")
        inputs.n_arguments = <int>_whole(n_arguments, "n_arguments", 1, 4)
        if inputs.n_arguments == 2:
            raise SolveError("n_arguments is 2; expected 1 for r(t), 3 for r(t, q, u) or 4 for r(t, q, u, s)")
        inputs.kind = INPUT_PYTHON
        inputs.source = source
        return inputs

    @property
    def of_state(self):
        """Whether the values depend on the state."""
        return self.kind == INPUT_FEEDBACK or (self.kind == INPUT_PYTHON and self.n_arguments > 1)

    cdef object check_range(self, double t0, double t1):
        """Raise SolveError for a run outside the interval of the table."""
        if self.kind == INPUT_PIECEWISE:
            first, last = float(self.breakpoints[0]), float(self.breakpoints[-1])
            if min(t0, t1) < first or max(t0, t1) > last:
                raise SolveError(f"the inputs are given for t from {first!r} to {last!r}; the run needs {t0!r} to {t1!r}")

    cdef object fill(self, Source *source, Run run, double *r):
        """Make this the source of inputs of a run, and write constants into r; returns what must be kept alive."""
        memset(source, 0, sizeof(Source))
        source.kind, source.function, source.user_data = self.kind, self.function, self.user_data
        source.of_state, source.run = self.of_state, <void *>run
        if self.kind == INPUT_CONSTANT:
            memcpy(r, _data(self.source), MODEL.n_r * sizeof(double))
        elif self.kind == INPUT_PIECEWISE:
            source.order, source.pieces = self.coefficients.shape[0], self.coefficients.shape[1]
            source.breakpoints, source.coefficients = _data(self.breakpoints), _data(self.coefficients)
        elif self.kind == INPUT_PYTHON:
            caller = Caller(self.source, self.n_arguments)
            source.caller = <void *>caller
            return caller
        return self


cdef object _check_table(object times, object values):
    if not (numpy.isfinite(times).all() and numpy.isfinite(values).all()):
        raise SolveError("the input table holds NaN or infinity; every entry must be finite")
    if not (numpy.diff(times) > 0.0).all():
        raise SolveError("the times of the input table are not strictly increasing")
