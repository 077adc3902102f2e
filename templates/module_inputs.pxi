# Inputs r(t) during a run; only inputs that are Python code call Python.

cdef enum InputKind:
    INPUT_CONSTANT
    INPUT_PIECEWISE
    INPUT_COMPILED
    INPUT_PYTHON

ctypedef void (*kg_input_function)(double, double *, void *) noexcept nogil

cdef enum:
    STATUS_PYTHON = -100  # a Python input raised an exception, which Run.error holds
    STATUS_NO_MEMORY = -101


cdef struct Evaluation:
    # Data for y' = f(t, y) without Python; `work` and `r` belong to one run, the rest is only read.
    kg_evaluate evaluate
    int n_q, n_r, n_out
    int first_state  # the states of a model with states follow in y from this index on
    const double *p
    double *work
    double *r
    InputKind kind
    int order, pieces, piece
    const double *breakpoints
    const double *coefficients
    kg_input_function function
    void *user_data
    void *run  # the Run that stores an exception
    void *slopes  # Slopes (module_jacobian.pxi) for implicit methods
    void *control  # ControlLoop (module_control.pxi) of a closed loop


cdef void _piecewise(Evaluation *e, double t) noexcept nogil:
    """Horner's rule on the piece that contains t; the first and the last piece extend to infinity."""
    cdef int i, k
    cdef double x, value
    while e.piece > 0 and t < e.breakpoints[e.piece]:
        e.piece -= 1
    while e.piece < e.pieces - 1 and t >= e.breakpoints[e.piece + 1]:
        e.piece += 1
    x = t - e.breakpoints[e.piece]
    for i in range(e.n_r):
        value = 0.0
        for k in range(e.order):
            value = value * x + e.coefficients[(<size_t>k * e.pieces + e.piece) * e.n_r + i]
        e.r[i] = value


cdef int _fill_inputs(Evaluation *e, double t) noexcept nogil:
    """Write the inputs at t into e.r."""
    if e.kind == INPUT_PIECEWISE:
        _piecewise(e, t)
    elif e.kind == INPUT_COMPILED:
        e.function(t, e.r, e.user_data)
    elif e.kind == INPUT_PYTHON:
        if _python_inputs(e, t) < 0:
            return STATUS_PYTHON
    return KG_OK


cdef int _right_hand_side(void *context, double t, const double *y, double *dydt) noexcept nogil:
    cdef Evaluation *e = <Evaluation *>context
    cdef int status = _inputs_at(e, t, y)
    if status < 0:
        return status
    return e.evaluate(t, y, y + e.n_q, e.r, e.p, e.work, dydt)


cdef int _with_constant_inputs(void *context, double t, const double *y, double *dydt) noexcept nogil:
    cdef Evaluation *e = <Evaluation *>context
    return e.evaluate(t, y, y + e.n_q, e.r, e.p, e.work, dydt)


cdef int _python_inputs(Evaluation *e, double t) noexcept with gil:
    run = <Run>e.run
    try:
        values = _as_vector(run.inputs.source(t), INPUTS, f"r({t!r})")
        _check_finite(values, INPUTS, f"r({t!r})")
        memcpy(e.r, _data(values), e.n_r * sizeof(double))
        return 0
    except BaseException as error:  # an exception cannot pass through C code; integrate() reports it
        run.error = error
        return -1


cdef class Inputs:
    """The inputs r(t) of a run; made by `constant`, `table`, `piecewise`, `compiled` or `python`."""

    cdef InputKind kind
    cdef kg_input_function function
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
        """A C function ``void (double t, double *r, void *user_data)``: a PyCapsule named with this signature whose
        context is ``user_data``, or a scipy.LowLevelCallable."""
        cdef Inputs inputs = Inputs.__new__(Inputs)
        cdef const char *name
        # LowLevelCallable is a tuple that holds its capsule first and forbids indexing.
        capsule = (<tuple>source)[0] if isinstance(source, tuple) and len(<tuple>source) else source
        if not PyCapsule_CheckExact(capsule):
            raise SolveError(f"a compiled input is a {type(source).__name__}; expected a LowLevelCallable or a PyCapsule")
        name = PyCapsule_GetName(capsule)
        signature = "" if name == NULL else (<bytes>name).decode("utf-8", "replace")
        if "".join(signature.split()) != "void(double,double*,void*)":
            raise SolveError(
                f"a compiled input has the signature {signature!r}; expected 'void (double, double *, void *)'"
            )
        inputs.kind = INPUT_COMPILED
        inputs.function = <kg_input_function>PyCapsule_GetPointer(capsule, name)
        inputs.user_data = PyCapsule_GetContext(capsule)
        inputs.source = source
        return inputs

    @staticmethod
    def python(source):
        """A callable r(t) -> (n_r,); slow, because every evaluation calls Python. An exception ends the run."""
        cdef Inputs inputs = Inputs.__new__(Inputs)
        if not callable(source):
            raise SolveError(f"r is a {type(source).__name__}; expected something to call as r(t)")
        inputs.kind = INPUT_PYTHON
        inputs.source = source
        return inputs

    cdef object check_range(self, double t0, double t1):
        """Raise SolveError for a run outside the interval of the table."""
        if self.kind == INPUT_PIECEWISE:
            first, last = float(self.breakpoints[0]), float(self.breakpoints[-1])
            if min(t0, t1) < first or max(t0, t1) > last:
                raise SolveError(f"the inputs are given for t from {first!r} to {last!r}; the run needs {t0!r} to {t1!r}")

    cdef void fill(self, Evaluation *e):
        e.kind = self.kind
        e.function, e.user_data = self.function, self.user_data
        if self.kind == INPUT_CONSTANT:
            memcpy(e.r, _data(self.source), e.n_r * sizeof(double))
        elif self.kind == INPUT_PIECEWISE:
            e.order, e.pieces, e.piece = self.coefficients.shape[0], self.coefficients.shape[1], 0
            e.breakpoints, e.coefficients = _data(self.breakpoints), _data(self.coefficients)


cdef object _check_table(object times, object values):
    if not (numpy.isfinite(times).all() and numpy.isfinite(values).all()):
        raise SolveError("the input table holds NaN or infinity; every entry must be finite")
    if not (numpy.diff(times) > 0.0).all():
        raise SolveError("the times of the input table are not strictly increasing")
