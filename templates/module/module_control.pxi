# Closed loops: groups of inputs that a compiled law, a C function or Python code computes from the state, continuously or
# at samples, or that are part of the state (control constraints).

from libc.math cimport INFINITY


cdef struct Buffer:
    double *data
    size_t count, capacity


cdef double *_grow(Buffer *buffer, size_t n) noexcept nogil:
    """Memory for n more values, which count as used; NULL if memory is exhausted."""
    cdef size_t capacity = buffer.capacity
    cdef double *data
    if buffer.count + n > capacity:
        capacity = 2 * capacity + n + 1024
        data = <double *>realloc(buffer.data, capacity * sizeof(double))
        if data == NULL:
            return NULL
        buffer.data, buffer.capacity = data, capacity
    buffer.count += n
    return buffer.data + buffer.count - n


cdef object _to_array(const Buffer *buffer, npy_intp n, npy_intp width=-1, npy_intp depth=-1):
    """The values as an array (n,), (n, width) or (n, width, depth)."""
    cdef npy_intp[3] shape = [n, width, depth]
    array = PyArray_SimpleNew(1 + (width >= 0) + (depth >= 0), shape, NPY_DOUBLE)
    if buffer.count:
        memcpy(_data(array), buffer.data, buffer.count * sizeof(double))
    return array


cdef object _stored_columns(const Buffer *buffer, npy_intp width, npy_intp first, npy_intp n):
    """The ``n`` columns from ``first`` on of the rows of ``width`` values, as an array (n_rows, n)."""
    cdef npy_intp[2] shape = [buffer.count // width, n]
    cdef npy_intp i
    array = PyArray_SimpleNew(2, shape, NPY_DOUBLE)
    for i in range(shape[0] if n else 0):
        memcpy(_data(array) + i * n, buffer.data + i * width + first, n * sizeof(double))
    return array


cdef struct ControlLoop:
    kg_law shape  # what kg_feedback.h knows of the group
    const kg_function *law  # NULL: `source`
    Source source
    double *inputs  # of the source, (n_r,); NULL: none, the controls follow (q, u) in the state
    double *before  # values before the first sample acts; NaN: those of the first sample
    double *held  # the sample that acts
    bint is_held
    double same_instant  # instants that differ by less (s) are the same
    Buffer samples  # rows of the time, the time from which it acts (infinite: not yet), and the controls


cdef inline int _inputs_at(Evaluation *e, double t, const double *y) noexcept nogil:
    """Let the point read the state y; write the inputs at t into e.r, then the controls of each group for this state."""
    _place(e, t, y)
    if e.source.kind != INPUT_CONSTANT and _fill(&e.source, t, y, e.first_state, e.r) < 0:
        return STATUS_PYTHON
    return KG_OK if e.feedback == NULL else kg_feedback_inputs(e.feedback, &e.at)


cdef int _from_source(void *host, int law, const kg_point *at, double *values) noexcept nogil:
    """The values of a group that no compiled function computes (kg_feedback.source)."""
    cdef Evaluation *e = <Evaluation *>host
    cdef ControlLoop *c = <ControlLoop *>e.loops[law]
    cdef int k, status
    if c.inputs == NULL:
        memcpy(values, at.u + MODEL.n_u, c.shape.n * sizeof(double))
        return KG_OK
    status = _fill(&c.source, at.t, at.q, e.first_state, c.inputs)
    for k in range(c.shape.n):
        values[k] = c.inputs[c.shape.slots[k]]
    return status


cdef int _take_sample(Evaluation *e, int clock, double t, const double *y) noexcept nogil:
    """Sample the group of a clock for this state, and append the sample to the record; it does not act yet."""
    cdef kg_feedback *f = e.feedback
    cdef ControlLoop *c = _loop_of(e, clock)
    cdef int n = c.shape.n, status
    cdef double *row
    cdef const double *values
    # A law reads other inputs, a source does not.
    status = _inputs_at(e, t, y) if c.law != NULL else KG_OK
    row = _grow(&c.samples, n + 2) if status >= 0 else NULL
    if row == NULL:
        return status if status < 0 else STATUS_NO_MEMORY
    _place(e, t, y)
    status = kg_feedback_sample(f, clock, &e.at)
    if status < 0:
        c.samples.count -= n + 2
        return status
    values = f.samples + <size_t>(f.clocks[clock].taken % f.waiting) * f.width + (c.held - f.held)
    row[0], row[1] = t, INFINITY
    memcpy(row + 2, values, n * sizeof(double))
    if f.clocks[clock].taken == 0:
        memcpy(c.before, c.held, n * sizeof(double))
    return KG_OK


cdef void _start_to_act(Evaluation *e, int clock, double t) noexcept nogil:
    """The oldest sample of a clock that waits acts from t on."""
    cdef ControlLoop *c = _loop_of(e, clock)
    c.samples.data[<size_t>e.feedback.clocks[clock].acting * (c.shape.n + 2) + 1] = t
    kg_feedback_act(e.feedback, clock)


cdef bint _writes_in_place(const ControlLoop *c) noexcept nogil:
    """Whether the law can write to r itself: kg_law.in_place."""
    cdef int k
    if c.law == NULL or c.is_held or c.shape.places != NULL or c.shape.n == 0:
        return False
    for k in range(c.shape.n):
        if c.shape.slots[k] != c.shape.slots[0] + k or c.shape.low[k] != -INFINITY or c.shape.high[k] != INFINITY:
            return False
    return True


cdef ControlLoop *_loop_of(Evaluation *e, int clock) noexcept nogil:
    """The group of a clock: each group has its own."""
    cdef int k = 0
    while e.feedback.laws[k].clock != clock:
        k += 1
    return <ControlLoop *>e.loops[k]


cdef void _recall(ControlLoop *c, double t) noexcept nogil:
    """Let the sample of a completed run act that acts from t on, where t may have a rounding error."""
    cdef size_t width = c.shape.n + 2, low = 0, high = c.samples.count // width, middle
    while low < high:
        middle = (low + high) // 2
        if c.samples.data[middle * width + 1] - t <= c.same_instant:
            low = middle + 1
        else:
            high = middle
    memcpy(c.held, c.samples.data + (low - 1) * width + 2 if low else c.before, c.shape.n * sizeof(double))


cdef class Control:
    """The source of a group of inputs, the controls, during a run.

    ``law``: name of the compiled function of the controls; or Inputs, whose values at the slots are the controls; None:
    they are part of the state after (q, u), with the initial values ``start``. ``slots``: their indices in r. ``low``,
    ``high``: limits (n,). ``sample_time``: interval (s) between evaluations of the law, which are at multiples of it
    after the start of a run; 0: continuous. ``free``: the free vector (n_free,), None: zero. ``delay``: time (s)
    from a sample until its values act. ``before``: controls before the first sample acts (n,), NaN for those of the
    first sample. ``first``: values of the first sample (n,), if they are known. ``places``: indices of the controls
    among the values of the law; None: they are all values. After a run, ``samples`` holds its samples.
    """

    cdef ControlLoop loop
    cdef double delay
    cdef readonly double sample_time
    cdef readonly object start
    cdef object arrays, free, inputs, initial

    def __cinit__(
        self, law, slots, low, high, sample_time=0.0, start=(), free=None, delay=0.0, before=None, first=None,
        places=None,
    ):
        cdef ControlLoop *c = &self.loop
        cdef kg_law *shape = &c.shape
        indices, shape.n = _indices(slots, MODEL.n_r, "slots")
        self.inputs = law if isinstance(law, Inputs) else None
        c.law = NULL if law is None or self.inputs is not None else _find(law)
        if self.inputs is not None:
            _require_inputs(law)
        controls = tuple([f"control {i}" for i in range(shape.n)])
        lowest, highest = _as_vector(low, controls, "low").copy(), _as_vector(high, controls, "high").copy()
        if not (lowest <= highest).all():
            raise SolveError(f"low is {_shown(low)} and high {_shown(high)}; expected low <= high for every control")
        self.initial = numpy.full(shape.n, numpy.nan) if before is None else _as_vector(before, controls, "before").copy()
        values, earlier = numpy.zeros(MODEL.n_r), numpy.zeros(shape.n)
        self.arrays = [earlier, indices, lowest, highest, values]
        shape.slots = <int *>PyArray_DATA(<PyArrayObject *>indices)
        c.before = _data(earlier)
        shape.before = c.before
        c.inputs = NULL if self.inputs is None else _data(values)
        if c.law != NULL or c.inputs != NULL:
            shape.low, shape.high = _data(lowest), _data(highest)
        if c.law != NULL:
            shape.function = c.law.evaluate
            self.select(law, places)
        if first is not None:
            known = numpy.clip(_as_vector(first, controls, "first"), lowest, highest)
            _check_finite(known, controls, "first")
            self.arrays.append(known)
            shape.first = _data(known)
        self.read_times(sample_time, delay)
        self.start = _as_array(start, "start")
        if self.start.ndim != 1 or not numpy.isfinite(self.start).all():
            raise SolveError(f"start is {_shown(start)}; expected finite controls (n,)")
        self.free = None if free is None else _as_vector(free, FREE, "free").copy()

    def __dealloc__(self):
        free(self.loop.samples.data)

    cdef int select(self, object law, object places) except -1:
        """Select the values of the law."""
        cdef ControlLoop *c = &self.loop
        if places is None and _length(c.law) != c.shape.n:
            raise SolveError(f"the law {law!r} has {_length(c.law)} values for {c.shape.n} slots")
        if places is None:
            return 0
        chosen, n = _indices(places, _length(c.law), "places")
        if n != c.shape.n:
            raise SolveError(f"places has {n} entries for {c.shape.n} slots")
        self.arrays.append(chosen)
        c.shape.places = <int *>PyArray_DATA(<PyArrayObject *>chosen)
        return 0

    cdef int read_times(self, object sample_time, object delay) except -1:
        self.sample_time, self.delay = _real(sample_time, "sample_time", 0.0), _real(delay, "delay", 0.0)
        self.loop.is_held, self.loop.same_instant = self.sample_time > 0.0, KG_SAME_INSTANT * self.sample_time
        if self.delay > 0.0 and not self.loop.is_held:
            raise SolveError(
                f"delay is {self.delay!r} s, but sample_time is 0: only sampled values can be delayed, because a "
                "continuous delay would make y' depend on earlier states"
            )
        if self.loop.is_held and self.loop.law == NULL and self.inputs is None:
            raise SolveError(f"sample_time is {self.sample_time!r}, but controls that are part of the state are not sampled")
        return 0

    cdef object attach(self, Run run, int width):
        """Make this a source of controls of an evaluation; only one run or call at a time can use it.

        ``width``: length of the state. Returns what must be kept alive. Raises SolveError for a state that is too short
        for the controls in it.
        """
        cdef ControlLoop *c = &self.loop
        kept = None
        if c.law == NULL and c.inputs == NULL and width < MODEL.n_q + MODEL.n_u + N_S + c.shape.n:
            raise SolveError(f"the state has {width} values, without {c.shape.n} controls after q and u")
        if self.inputs is not None:
            kept = (<Inputs>self.inputs).fill(&c.source, run, c.inputs)
        if self.free is not None:
            run.evaluation.at.free = _data(self.free)
        return kept

    cdef void forget(self):
        """Start a run, without samples."""
        cdef ControlLoop *c = &self.loop
        c.samples.count = 0
        memcpy(c.before, _data(self.initial), c.shape.n * sizeof(double))

    @property
    def samples(self):
        """The samples of the last run, (n_samples, 2 + n): time, time from which it acts, and values of the controls.

        A sample that has not acted has an infinite time. With a delay, a row of NaN, -infinity and the values before the
        first sample acts comes first.
        """
        cdef ControlLoop *c = &self.loop
        rows = _to_array(&c.samples, c.samples.count // (c.shape.n + 2), c.shape.n + 2)
        if self.delay > 0.0:
            before = numpy.concatenate([[numpy.nan, -numpy.inf], self.arrays[0]])
            rows = numpy.vstack([before, rows])
        return rows


cdef tuple _controls(object value):
    """A tuple of controls from None, one control, or a sequence."""
    advice = "Control(law, slots, low, high), a sequence of them, or None"
    controls = () if value is None else tuple(value) if isinstance(value, (list, tuple)) else (value,)
    for control in controls:
        _require_type(control, Control, "control", advice)
    return controls


cdef tuple _as_states(object times, object states):
    """Times (n_t,) and states (n_t, n_q + n_u + n_s or more)."""
    t, y = _as_array(times, "times"), _as_array(states, "states")
    if t.ndim != 1 or y.ndim != 2 or len(y) != len(t) or y.shape[1] < MODEL.n_q + MODEL.n_u + N_S:
        raise SolveError(
            f"times have shape {t.shape} and states {y.shape}; expected (n_t,) and (n_t, "
            f"{MODEL.n_q + MODEL.n_u + N_S} or more)"
        )
    return t, y


def inputs_along(function, inputs, times, states, control=None):
    """The inputs of a run at many states, (n_t, n_r).

    ``times`` (n_t,), ``states`` (n_t, n_q + n_u + n_s). ``control``: the controls of the run, None, one or several;
    those that are sampled have the values that acted in their last run. Exceptions of Python inputs are raised.
    """
    cdef Run run = Run(function, inputs)
    cdef size_t i, n_t, width
    cdef int status
    t, y = _as_states(times, states)
    n_t, width = y.shape[0], y.shape[1]
    run.close_loop(_controls(control), <int>width)
    run.evaluation.first_state = <int>width - N_S
    result = numpy.zeros((n_t, MODEL.n_r))
    for i in range(n_t):
        run.recall(_data(t)[i])
        status = _inputs_at(&run.evaluation, _data(t)[i], _data(y) + i * width)
        if status == STATUS_PYTHON:
            raise run.error
        memcpy(_data(result) + i * MODEL.n_r, run.evaluation.r, MODEL.n_r * sizeof(double))
        if status < 0:
            result[i] = numpy.nan
    return result


def along(function, inputs, control, times, states, others=()):
    """Values of compiled functions at many states: one array (n_t, n_out) for each of (function, *others).

    ``times`` (n_t,), ``states`` (n_t, n_q + n_u + n_s, and the controls if they are part of the state). ``control``:
    the controls, as for `inputs_along`. Rows are NaN where a function cannot be evaluated. Exceptions of Python inputs
    are raised.
    """
    cdef list functions = [function, *_listed(others, "others")]
    cdef Run run = Run(function, inputs)
    cdef const double *state
    cdef size_t i, n_t, width
    cdef int status
    for item in functions:
        _require_function(item)
    controls = _controls(control)
    t, y = _as_states(times, states)
    n_t, width = y.shape[0], y.shape[1]
    run.close_loop(controls, <int>width)
    run.evaluation.first_state = <int>width - N_S
    results = [numpy.full((n_t, (<Function>item).n_out), numpy.nan) for item in functions]
    for i in range(n_t):
        run.recall(_data(t)[i])
        state = _data(y) + i * width
        status = _inputs_at(&run.evaluation, _data(t)[i], state)
        if status == STATUS_PYTHON:
            raise run.error
        if status >= 0:
            for item, result in zip(functions, results):
                _value_of(<Function>item, &run.evaluation.at, _data(result) + i * (<Function>item).n_out)
    return results

