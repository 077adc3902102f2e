# Closed loops: a compiled law computes the controls, continuously or at samples, or the controls are part of the state
# (control constraints).

cdef struct ControlLoop:
    const kg_function *law  # NULL: the controls follow (q, u) in the state
    int n
    const int *slots  # of r
    const double *low
    const double *high
    double *tau
    double *work
    bint held  # tau holds the values of the last sample


cdef int _inputs_at(Evaluation *e, double t, const double *y) noexcept nogil:
    """Write the inputs at t into e.r, then the states of y, then the controls for the state y."""
    if e.kind != INPUT_CONSTANT and _fill_inputs(e, t) < 0:
        return STATUS_PYTHON
    if N_S:
        memcpy(e.r + FIRST_STATE, y + e.first_state, N_S * sizeof(double))
    return KG_OK if e.control == NULL else _control(e, t, y)


cdef int _control(Evaluation *e, double t, const double *y) noexcept nogil:
    cdef ControlLoop *c = <ControlLoop *>e.control
    cdef int k, status
    if c.law == NULL:
        for k in range(c.n):
            e.r[c.slots[k]] = y[MODEL.n_q + MODEL.n_u + k]
        return KG_OK
    if not c.held:
        status = _evaluate_law(e, t, y)
        if status < 0:
            return status
    for k in range(c.n):
        e.r[c.slots[k]] = c.tau[k]
    return KG_OK


cdef int _evaluate_law(Evaluation *e, double t, const double *y) noexcept nogil:
    """Write the controls of the law, clipped to their limits, into tau."""
    cdef ControlLoop *c = <ControlLoop *>e.control
    cdef int status = c.law.evaluate(t, y, y + MODEL.n_q, e.r, e.p, c.work, c.tau)
    cdef int k
    if status >= 0:
        for k in range(c.n):
            c.tau[k] = min(max(c.tau[k], c.low[k]), c.high[k])
    return status


cdef class Control:
    """The source of the controls of a run.

    ``law``: name of the compiled function of the controls; None: they are part of the state after (q, u), with the
    initial values ``start``. ``slots``: their indices in r. ``low``, ``high``: limits (n,). ``sample_time``: interval
    (s) between evaluations of the law; 0: continuous. ``hidden``: values of the hidden inputs (n_hidden,).
    """

    cdef ControlLoop loop
    cdef double sample_time
    cdef readonly object start
    cdef object arrays, hidden

    def __cinit__(self, str law, slots, low, high, double sample_time=0.0, start=(), hidden=None):
        cdef ControlLoop *c = &self.loop
        places = numpy.ascontiguousarray(slots, dtype=numpy.intc)
        c.law = NULL if law is None else _find(law)
        c.n = places.size
        lowest, highest, tau = numpy.array(low, dtype=float), numpy.array(high, dtype=float), numpy.zeros(c.n)
        work = numpy.zeros((0 if c.law == NULL else c.law.work) + 1)
        self.arrays = (places, lowest, highest, tau, work)
        c.slots = <int *>PyArray_DATA(<PyArrayObject *>places)
        c.low, c.high, c.tau, c.work = _data(lowest), _data(highest), _data(tau), _data(work)
        c.held = sample_time > 0.0
        self.sample_time = sample_time
        self.start = numpy.array(start, dtype=float)
        self.hidden = numpy.zeros(len(HIDDEN)) if hidden is None else _as_vector(hidden, HIDDEN, "hidden inputs").copy()

    cdef void attach(self, Evaluation *e):
        """Make this the source of the controls of an evaluation; only one run or call at a time can use it."""
        e.control = &self.loop
        memcpy(e.r + MODEL.n_r, _data(self.hidden), (FIRST_STATE - MODEL.n_r) * sizeof(double))


def inputs_along(Function function, Inputs inputs, times, states):
    """All inputs of a run at many states, (n_t, n_r + n_hidden): the inputs, zeros for hidden inputs, and the states.

    ``times`` (n_t,), ``states`` (n_t, n_q + n_u + n_s). Exceptions of Python inputs are raised.
    """
    cdef Run run = Run(function, inputs)
    cdef size_t i, n_t, width
    t, y = _as_array(times, "times"), _as_array(states, "states")
    n_t, width = y.shape[0], y.shape[1]
    run.evaluation.first_state = <int>width - N_S
    result = numpy.empty((n_t, function.n_r))
    for i in range(n_t):
        if _inputs_at(&run.evaluation, _data(t)[i], _data(y) + i * width) == STATUS_PYTHON:
            raise run.error
        memcpy(_data(result) + i * function.n_r, run.evaluation.r, function.n_r * sizeof(double))
    return result


def along(Function function, Inputs inputs, Control control, times, states, others=()):
    """Values of compiled functions at many states: one array (n_t, n_out) for each of (function, *others).

    ``times`` (n_t,), ``states`` (n_t, n_q + n_u + n_s, and the controls if they are part of the state). ``control``: source of
    the controls; None: ``inputs``. Rows are NaN where a function cannot be evaluated. Exceptions of Python inputs are
    raised.
    """
    cdef list functions = [function, *others]
    cdef Run run = Run(function, inputs)
    cdef const double *state
    cdef size_t i, n_t, width
    cdef int status
    if control is not None:
        control.attach(&run.evaluation)
    t, y = _as_array(times, "times"), _as_array(states, "states")
    n_t, width = y.shape[0], y.shape[1]
    run.evaluation.first_state = <int>width - N_S
    results = [numpy.full((n_t, (<Function>item).n_out), numpy.nan) for item in functions]
    for i in range(n_t):
        state = _data(y) + i * width
        status = _inputs_at(&run.evaluation, _data(t)[i], state)
        if status == STATUS_PYTHON:
            raise run.error
        if status >= 0:
            for item, result in zip(functions, results):
                _value_of(
                    <Function>item, _data(t)[i], state, state + MODEL.n_q, run.evaluation.r,
                    _data(result) + i * (<Function>item).n_out
                )
    return results

