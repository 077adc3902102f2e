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

    def __cinit__(self, law, slots, low, high, sample_time=0.0, start=(), hidden=None):
        cdef ControlLoop *c = &self.loop
        places, c.n = _indices(slots, MODEL.n_r + MODEL.n_hidden, "slots")
        c.law = NULL if law is None else _find(law)
        if c.law != NULL and _length(c.law) != c.n:
            raise SolveError(f"the law {law!r} has {_length(c.law)} values for {c.n} slots")
        controls = tuple([f"control {i}" for i in range(c.n)])
        lowest, highest = _as_vector(low, controls, "low").copy(), _as_vector(high, controls, "high").copy()
        if not (lowest <= highest).all():
            raise SolveError(f"low is {_shown(low)} and high {_shown(high)}; expected low <= high for every control")
        tau = numpy.zeros(c.n)
        work = numpy.zeros((0 if c.law == NULL else c.law.work) + 1)
        self.arrays = (places, lowest, highest, tau, work)
        c.slots = <int *>PyArray_DATA(<PyArrayObject *>places)
        c.low, c.high, c.tau, c.work = _data(lowest), _data(highest), _data(tau), _data(work)
        self.sample_time = _real(sample_time, "sample_time", 0.0)
        c.held = self.sample_time > 0.0
        self.start = _as_array(start, "start")
        if self.start.ndim != 1 or not numpy.isfinite(self.start).all():
            raise SolveError(f"start is {_shown(start)}; expected finite controls (n,)")
        self.hidden = numpy.zeros(len(HIDDEN)) if hidden is None else _as_vector(hidden, HIDDEN, "hidden inputs").copy()

    cdef int attach(self, Evaluation *e, int width) except -1:
        """Make this the source of the controls of an evaluation; only one run or call at a time can use it.

        ``width``: length of the state. Raises SolveError for a state that is too short for the controls in it.
        """
        if self.loop.law == NULL and width < MODEL.n_q + MODEL.n_u + N_S + self.loop.n:
            raise SolveError(f"the state has {width} values, without {self.loop.n} controls after q and u")
        e.control = &self.loop
        memcpy(e.r + MODEL.n_r, _data(self.hidden), (FIRST_STATE - MODEL.n_r) * sizeof(double))
        return 0


cdef object _require_control(object value):
    if value is not None:
        _require_type(value, Control, "control", "Control(law, slots, low, high), or None")


cdef tuple _as_states(object times, object states):
    """Times (n_t,) and states (n_t, n_q + n_u + n_s or more)."""
    t, y = _as_array(times, "times"), _as_array(states, "states")
    if t.ndim != 1 or y.ndim != 2 or len(y) != len(t) or y.shape[1] < MODEL.n_q + MODEL.n_u + N_S:
        raise SolveError(
            f"times have shape {t.shape} and states {y.shape}; expected (n_t,) and (n_t, "
            f"{MODEL.n_q + MODEL.n_u + N_S} or more)"
        )
    return t, y


def inputs_along(function, inputs, times, states):
    """All inputs of a run at many states, (n_t, n_r + n_hidden): the inputs, zeros for hidden inputs, and the states.

    ``times`` (n_t,), ``states`` (n_t, n_q + n_u + n_s). Exceptions of Python inputs are raised.
    """
    cdef Run run = Run(function, inputs)
    cdef size_t i, n_t, width
    t, y = _as_states(times, states)
    n_t, width = y.shape[0], y.shape[1]
    run.evaluation.first_state = <int>width - N_S
    result = numpy.empty((n_t, run.function.n_r))
    for i in range(n_t):
        if _inputs_at(&run.evaluation, _data(t)[i], _data(y) + i * width) == STATUS_PYTHON:
            raise run.error
        memcpy(_data(result) + i * run.function.n_r, run.evaluation.r, run.function.n_r * sizeof(double))
    return result


def along(function, inputs, control, times, states, others=()):
    """Values of compiled functions at many states: one array (n_t, n_out) for each of (function, *others).

    ``times`` (n_t,), ``states`` (n_t, n_q + n_u + n_s, and the controls if they are part of the state). ``control``: source of
    the controls; None: ``inputs``. Rows are NaN where a function cannot be evaluated. Exceptions of Python inputs are
    raised.
    """
    cdef list functions = [function, *_listed(others, "others")]
    cdef Run run = Run(function, inputs)
    cdef const double *state
    cdef size_t i, n_t, width
    cdef int status
    for item in functions:
        _require_function(item)
    _require_control(control)
    t, y = _as_states(times, states)
    n_t, width = y.shape[0], y.shape[1]
    if control is not None:
        (<Control>control).attach(&run.evaluation, <int>width)
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

