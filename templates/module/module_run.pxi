# The state of one integration (kg_run.h): memory, callbacks and the conversion of the results.

cdef object _require_right_hand_side(Function function):
    """Raise SolveError for a function that is not a right-hand side."""
    most = function.n_q + function.n_u + N_S
    fewest = function.n_q + N_S if function.name == "momentum_rhs" else most  # reduced momenta
    most = function.n_out if function.name == "rhs_controlled" else most
    if function.dimensions != 1 or not fewest <= function.n_out <= most:
        raise SolveError(f"{function.name} has shape {function.shape}; only a right-hand side can be integrated")


cdef struct RunHost:
    # Data of the callbacks of a run (kg_run.h), which do not call Python, and their results.
    Evaluation *evaluation
    kg_projection *projection
    kg_stepper *stepper
    void *hybrid  # kg_hybrid of a run with contacts or events, else NULL
    kg_clock *clocks
    int n, dense_rows
    Buffer t, y, dense, steps
    Buffer records, phases, places  # places: the phase of each state that is stored
    size_t n_phases


cdef int _store(void *host, double t, const double *y) noexcept nogil:
    cdef RunHost *h = <RunHost *>host
    cdef double *state = _grow(&h.y, h.n)
    cdef double *time = NULL if state == NULL else _grow(&h.t, 1)
    cdef double *place = NULL if time == NULL or h.hybrid == NULL else _grow(&h.places, 1)
    if time == NULL or (h.hybrid != NULL and place == NULL):
        # Store either all values or none.
        h.t.count -= time != NULL
        h.y.count = h.n * h.t.count
        return STATUS_NO_MEMORY
    memcpy(state, y, h.n * sizeof(double))
    time[0] = t
    if place != NULL:
        place[0] = h.n_phases - 1
    return KG_OK


cdef int _store_dense(void *host) noexcept nogil:
    cdef RunHost *h = <RunHost *>host
    cdef size_t size = <size_t>h.dense_rows * h.n
    cdef double *rows = _grow(&h.dense, size)
    cdef double *step = NULL if rows == NULL else _grow(&h.steps, 2)
    if step == NULL:
        h.dense.count = size * (h.steps.count // 2)
        return STATUS_NO_MEMORY
    memcpy(rows, h.stepper.dense, size * sizeof(double))
    step[0], step[1] = h.stepper.t_old, h.stepper.h
    return KG_OK


cdef int _sample(void *host, int clock, double t, const double *y) noexcept nogil:
    cdef RunHost *h = <RunHost *>host
    return _take_sample(h.evaluation, clock, t, y)


cdef int _act(void *host, int clock, double t) noexcept nogil:
    cdef RunHost *h = <RunHost *>host
    _start_to_act(h.evaluation, clock, t)
    return KG_OK


cdef int _project(void *host, int outcome) noexcept nogil:
    """Project the state that the stepper accepted with ``outcome``; returns ``outcome`` or the failure."""
    cdef RunHost *h = <RunHost *>host
    cdef int status = _inputs_at(h.evaluation, h.stepper.t, h.stepper.y)
    if status >= 0:
        status = kg_module_project(h.projection, h.stepper, &h.evaluation.at, outcome)
    if status >= 0 or status == KG_INCONSISTENT:
        return status
    h.stepper.rhs_status = status
    return KG_RHS_FAILED


cdef int _renew(void *host) noexcept nogil:
    """Preserve the values of the integrals of motion in the stepper's state from now on."""
    cdef RunHost *h = <RunHost *>host
    cdef kg_stepper *s = h.stepper
    cdef int status = _inputs_at(h.evaluation, s.t, s.y)
    if status >= 0:
        status = kg_module_projection_renew(h.projection, &h.evaluation.at)
    if status >= 0 or status == KG_NOT_FINITE:
        return min(status, KG_OK)
    s.rhs_status = status
    return KG_RHS_FAILED


cdef class Run:
    """State of one integration; it owns the memory."""

    cdef Evaluation evaluation
    cdef kg_run run
    cdef RunHost host
    cdef kg_stepper stepper
    cdef kg_ode ode
    cdef kg_projection projection  # every == 0: none
{% if has.implicit_methods %}
    cdef Slopes slopes
{% endif %}
    cdef kg_feedback feedback  # by `controls`
    cdef kg_instants instants
    cdef kg_switches switches
    cdef double *memory
    cdef double *switching  # work space of the switches
    cdef int n
    cdef Function function
    cdef Inputs inputs
    cdef object error, kept, callers
    cdef tuple controls  # of a closed loop

    def __cinit__(self, function_, inputs_, int method=-1):
        cdef Evaluation *e = &self.evaluation
        cdef size_t stepper_work = 0
        cdef Function function
        cdef Inputs inputs
        _require_function(function_)
        _require_inputs(inputs_)
        self.function, self.inputs = function, inputs = function_, inputs_
        self.n = function.n_out
        if method >= 0:
            stepper_work = self.n + kg_module_work(method, self.n)
        self.memory = <double *>calloc(function.function.work + function.n_r + stepper_work + 1, sizeof(double))
        if self.memory == NULL:
            raise MemoryError
        e.evaluate, e.p, e.n_q = function.evaluate, function.p, function.n_q
        e.n_out, e.first_state = function.n_out, function.n_out - N_S
        e.work = self.memory
        e.r = e.work + function.function.work
        e.at.r = e.r
        _leave_out(&e.at)
        self.callers, self.controls = [inputs.fill(&e.source, self, e.r)], ()
        self.ode.n, self.ode.context = self.n, e
        constant = inputs.kind == INPUT_CONSTANT and N_S == 0
        self.ode.rhs = _with_constant_inputs if constant else _right_hand_side
        self.host.evaluation, self.host.projection, self.host.stepper = e, &self.projection, &self.stepper
        self.host.n = self.n
        self.run.stepper, self.run.host = &self.stepper, &self.host
        self.run.state = e.r + function.n_r
        self.run.store = _store

    def __dealloc__(self):
        cdef RunHost *h = &self.host
        free(self.memory)
        free(self.switching)
        free(self.feedback.held)
        free(self.feedback.samples)
        free(<void *>self.feedback.laws)
        free(<void *>self.evaluation.loops)
        free(self.projection.work)
        free(self.projection.integrals.functions)
{% if has.implicit_methods %}
        free(self.slopes.memory)
{% endif %}
        free(h.t.data)
        free(h.y.data)
        free(h.dense.data)
        free(h.steps.data)
        free(h.clocks)
        free(h.records.data)
        free(h.phases.data)
        free(h.places.data)

{% if has.implicit_methods %}
    cdef int linearize(self, str method) except -1:
        """Provide the Jacobian for an implicit method."""
        _open_slopes(&self.slopes, self.function, method, &self.stepper)
        self.evaluation.slopes = &self.slopes
        self.ode.jacobian = _jacobian
        return 0
{% endif %}

    cdef int project_every(self, long long every, double tolerance, tuple integrals, bint any_rank) except -1:
        """Project after ``every`` steps; ``integrals`` are names of functions [I_u | I]; ``any_rank``: constraints can
        become dependent during the run."""
        cdef kg_projection *c = &self.projection
        cdef int i
        if self.function.n_out < MODEL.n_q + MODEL.n_u + N_S:
            raise SolveError(f"projection needs the state (q, u), which {self.function.name} does not have")
        _fill_manifold(&c.manifold)
        for name in integrals:
            if _find(name).cols != MODEL.n_u + 1:
                functions = [item for item, shape in FUNCTIONS.items() if shape[1:] == (MODEL.n_u + 1,)]
                raise SolveError(
                    f"projection names {name!r}, whose shape is {FUNCTIONS[name]}; the functions of integrals of motion, "
                    f"(k, {MODEL.n_u + 1}), are {', '.join(functions) or 'none'}"
                )
        if integrals:
            c.manifold.mass = _find("Q")
            c.integrals.functions = <const kg_function **>malloc(len(integrals) * sizeof(void *))
            if c.integrals.functions == NULL:
                raise MemoryError
            for i in range(len(integrals)):
                c.integrals.functions[i] = _find(integrals[i])
            c.integrals.n = len(integrals)
        c.p, c.every, c.tolerance, c.any_rank = self.evaluation.p, every, tolerance, any_rank
        c.work = <double *>malloc(kg_module_projection_work(c) * sizeof(double))
        if c.work == NULL:
            raise MemoryError
        kg_module_projection_start(c)
        self.run.accept, self.run.renew = _project, _renew
        return 0

    cdef int close_loop(self, tuple controls, int width) except -1:
        """Make ``controls`` the sources of inputs; ``width``: length of the states."""
        cdef kg_feedback *f = &self.feedback
        cdef Evaluation *e = &self.evaluation
        cdef ControlLoop *c
        cdef int values = 0, work = 0
        self.controls = controls
        if not controls:
            return 0
        if len(set(controls)) < len(controls):
            raise SolveError("a control is given twice")
        for control in controls:
            self.callers.append((<Control>control).attach(self, width))
            c = &(<Control>control).loop
            f.width += c.shape.n
            values = max(values, c.shape.n, 0 if c.law == NULL else _length(c.law))
            work = max(work, 0 if c.law == NULL else c.law.work)
        f.laws = <kg_law *>calloc(len(controls), sizeof(kg_law))
        e.loops = <void **>calloc(len(controls), sizeof(void *))
        f.held = <double *>calloc(f.width + values + work + 1, sizeof(double))
        if f.laws == NULL or e.loops == NULL or f.held == NULL:
            raise MemoryError
        f.values = f.held + f.width
        f.work = f.values + values
        f.p, f.r, f.source, f.host = e.p, e.r, _from_source, e
        for control in controls:
            self.add_law(&(<Control>control).loop)
        e.feedback, self.ode.rhs = f, _right_hand_side
        return 0

    cdef void add_law(self, ControlLoop *c) noexcept:
        """The next law of the feedback; those before it have their places among the values that are held."""
        cdef kg_feedback *f = &self.feedback
        cdef kg_law *law = <kg_law *>f.laws + f.n_laws
        c.held = f.held
        if f.n_laws:
            c.held = (<ControlLoop *>self.evaluation.loops[f.n_laws - 1]).held + law[-1].n
        law[0] = c.shape
        law.clock = f.n_clocks if c.is_held else -1
        law.in_place = _writes_in_place(c)
        self.evaluation.loops[f.n_laws] = c
        f.n_laws += 1
        f.n_clocks += c.is_held

    cdef int sample(self, double span) except -1:
        """Prepare the clocks of the controls that are held, for a run of ``span`` seconds."""
        cdef RunHost *h = &self.host
        cdef kg_feedback *f = &self.feedback
        cdef Control control
        cdef double waiting = 0.0
        cdef int k = 0
        if not self.controls:
            return 0
        h.clocks = <kg_clock *>calloc(len(self.controls), sizeof(kg_clock))
        if h.clocks == NULL:
            raise MemoryError
        for control in self.controls:
            control.forget()
            if control.loop.is_held:
                h.clocks[k].sample_time, h.clocks[k].delay = control.sample_time, control.delay
                waiting = max(waiting, min(control.delay, span) / control.sample_time + 3.0)
                k += 1
        f.clocks, f.waiting = h.clocks, <int>min(waiting, 2147483647.0)
        f.samples = <double *>calloc(<size_t>f.waiting * f.width + 1, sizeof(double))
        if f.samples == NULL:
            raise MemoryError
        kg_feedback_start(f)
        self.run.n_clocks, self.run.clocks, self.run.sample, self.run.act = k, h.clocks, _sample, _act
        return 0

    cdef int stop_at(self, object times) except -1:
        """Stop at ``times`` (n,), ascending, and where the model switches at known times."""
        cdef size_t work = kg_module_switches_work(MODEL)
        cdef int status
        if work:
            self.switching = <double *>malloc(work * sizeof(double))
            if self.switching == NULL:
                raise MemoryError
            status = kg_module_switches_open(&self.switches, MODEL, self.evaluation.p, self.switching)
            if status < 0:
                raise SolveError(f"the times at which the model switches: {kg_module_status_message(status).decode()}")
            self.instants.switches = &self.switches
        self.instants.times, self.instants.n = _data(times), <int>times.size
        if work or times.size:
            self.run.instants = &self.instants
        return 0

    cdef void recall(self, double t) noexcept:
        """Let the samples act that acted at this time of the last run."""
        for control in self.controls:
            if (<Control>control).loop.is_held:
                _recall(&(<Control>control).loop, t)

    cdef int keep_dense_output(self, int rows) except -1:
        self.host.dense_rows, self.run.store_dense = rows, _store_dense
        return 0

    cdef double *stepper_memory(self) noexcept:
        return self.run.state + self.n

    cdef int start(self, const kg_stepper_options *options, double *y0) except *:
        """Start at ``y0`` and store it; returns the status of kg_run_start()."""
        return kg_module_run_start(&self.run, &self.ode, options, y0, self.stepper_memory())

    cdef int advance(self) noexcept nogil:
        """Take steps for about 20 ms. Returns KG_OK if the run is not over."""
        cdef double start = kg_module_seconds()
        cdef double elapsed = 0.0
        cdef int status = KG_OK
        while status == KG_OK and 0.0 <= elapsed <= 0.02:
            status = kg_module_run_advance(&self.run, 8)
            elapsed = kg_module_seconds() - start
        return status

    cdef RunResult outcome(self, int status):
        cdef RunResult result = RunResult.__new__(RunResult)
        cdef RunHost *h = &self.host
        cdef npy_intp n_steps = h.steps.count // 2, first_state = self.function.n_out - N_S
        cdef npy_intp n_u = min(<npy_intp>MODEL.n_u, first_state - MODEL.n_q)  # the reduced form has fewer momenta
        result.rhs_status = self.stepper.rhs_status if status == KG_RHS_FAILED else 0
        if self.error is not None:
            status = KG_INTERRUPTED
        elif status == STATUS_NO_MEMORY:
            status, self.error = KG_INTERRUPTED, MemoryError("no memory is left for more steps")
        result.status, result.error, result.counts = status, self.error, self.stepper.statistics
        result.projections, result.integrals_left = self.projection.moved, self.projection.integrals.left
        result.integral_drift = self.projection.integrals.drift
        result.t = _to_array(&h.t, h.t.count)
        result.q, result.u = _stored_columns(&h.y, self.n, 0, MODEL.n_q), _stored_columns(&h.y, self.n, MODEL.n_q, n_u)
        result.s = _stored_columns(&h.y, self.n, first_state, N_S)
        result.controls = _stored_columns(&h.y, self.n, MODEL.n_q + n_u, first_state - MODEL.n_q - n_u)
        last = _new_vector(self.n)
        memcpy(_data(last), self.stepper.y, self.n * sizeof(double))
        result.last = (self.stepper.t, last)
        if h.dense_rows:
            starts, sizes = _stored_columns(&h.steps, 2, 0, 1).ravel(), _stored_columns(&h.steps, 2, 1, 1).ravel()
            result.dense = (starts, sizes, _to_array(&h.dense, n_steps, h.dense_rows, self.n))
        result.samples = tuple([(<Control>control).samples for control in self.controls])
        return result


cdef class RunResult:
    """The result of `integrate`, also for a run that did not reach its end.

    ``t`` (n,): the stored times; ``q`` (n, n_q), ``u`` (n, n_u), or momenta, and ``s`` (n, n_s): the stored states, and
    ``controls`` (n, n_controls), if they are part of the state; ``last``: (t, y) of the last accepted step; ``dense``:
    None or (t_old (m,), h (m,), coefficients (m, k, n_y)) of every step, for `interpolate`; ``status``: kg_codes.h;
    ``rhs_status``: that of the right-hand side when it failed, else 0; ``error``: the exception that stopped the run
    (Ctrl-C, an error in a Python input or in ``progress``, no memory), else None; ``samples``: `Control.samples` of
    each control. With contacts or events: ``hybrid``: `HybridRecords`; ``culprit``: the contact or event at which the
    run failed; ``conflict``: the contacts without consistent forces.
    """

    cdef public object t, q, u, s, controls, last, dense, error, samples, hybrid, culprit, conflict
    cdef public int status, rhs_status
    cdef kg_statistics counts
    cdef long long projections, integrals_left
    cdef double integral_drift

    @property
    def y(self):
        """The stored states, (n, n_y), with n_y = n_q + n_u + n_s, and the controls if they are part of the state."""
        return numpy.hstack((self.q, self.u, self.controls, self.s))

    @property
    def message(self):
        """What the status means."""
        return kg_module_status_message(self.rhs_status or self.status).decode()

    @property
    def statistics(self):
        """Counts and step sizes of the run by name."""
        cdef kg_statistics *s = &self.counts
        return dict(
            steps=s.steps, rejected=s.rejected, evaluations=s.evaluations, repartitions=s.repartitions,
            smallest_step=s.smallest_step, largest_step=s.largest_step, last_step=s.last_step,
            largest_error=s.largest_error, projections=self.projections, jacobians=s.jacobians,
            factorizations=s.factorizations, integrals_left=self.integrals_left, integral_drift=self.integral_drift,
        )
