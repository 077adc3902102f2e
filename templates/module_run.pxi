# The state of one integration: the stepper, what it stores, and the loop without the GIL.

cdef struct Buffer:
    double *data
    size_t count, capacity


cdef double *_grow(Buffer *buffer, size_t n) noexcept nogil:
    """Room for n more values, counted as used; NULL when memory is exhausted."""
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


cdef object _to_array(const Buffer *buffer, tuple shape):
    array = numpy.empty(shape)
    if buffer.count:
        memcpy(_data(array), buffer.data, buffer.count * sizeof(double))
    return array


cdef object _require_right_hand_side(Function function):
    """Refuse what is no right-hand side."""
    fewest = function.n_q if function.name == "momentum_rhs" else function.n_q + function.n_u  # reduced momenta
    most = function.n_out if function.name == "rhs_controlled" else function.n_q + function.n_u
    if function.dimensions != 1 or not fewest <= function.n_out <= most:
        raise SolveError(f"{function.name} has shape {function.shape}; only a right-hand side can be integrated")


cdef int _project(Evaluation *e, kg_projection *projection, kg_stepper *stepper, int outcome) noexcept nogil:
    """Project the state the stepper has accepted with that outcome; returns the outcome or why not."""
    cdef int status = _inputs_at(e, stepper.t, stepper.y)
    if status >= 0:
        status = kg_module_project(projection, stepper, e.r, outcome)
    if status >= 0 or status == KG_INCONSISTENT:
        return status
    stepper.rhs_status = status
    return KG_RHS_FAILED


cdef class Run:
    """State of one integration, freed with it however it ends."""

    cdef Evaluation evaluation
    cdef kg_stepper stepper
    cdef kg_ode ode
    cdef kg_projection projection  # every == 0: none
    cdef Slopes slopes
    cdef Buffer t, y, dense, steps, samples
    cdef double *memory
    cdef double *t_eval
    cdef size_t n_eval, next_eval
    cdef double direction
    cdef int n, dense_rows
    cdef Function function
    cdef Inputs inputs
    cdef object error, kept
    cdef Control control  # of a closed loop, else None
    cdef double t_first, t_final

    def __cinit__(self, Function function not None, Inputs inputs not None, int method=-1):
        cdef Evaluation *e = &self.evaluation
        cdef size_t stepper_work = 0
        self.function, self.inputs = function, inputs
        self.n = function.n_out
        if method >= 0:
            stepper_work = kg_module_work(method, self.n)
        # Hidden inputs start as zero.
        self.memory = <double *>calloc(function.function.work + function.n_r + stepper_work + 1, sizeof(double))
        if self.memory == NULL:
            raise MemoryError
        e.evaluate, e.p, e.n_q, e.n_r = function.evaluate, function.p, function.n_q, MODEL.n_r
        e.n_out = function.n_out
        e.work = self.memory
        e.r = e.work + function.function.work
        e.run = <void *>self
        inputs.fill(e)
        self.ode.n, self.ode.context = self.n, e
        self.ode.rhs = _with_constant_inputs if inputs.kind == INPUT_CONSTANT else _right_hand_side

    def __dealloc__(self):
        free(self.memory)
        free(self.projection.work)
        free(self.projection.integrals.functions)
        free(self.slopes.memory)
        free(self.t.data)
        free(self.y.data)
        free(self.dense.data)
        free(self.steps.data)
        free(self.samples.data)

    cdef int linearize(self) except -1:
        """Provide the Jacobian to an implicit method."""
        _open_slopes(&self.slopes, self.function, self.direction)
        self.evaluation.slopes = &self.slopes
        self.ode.jacobian = _jacobian
        return 0

    cdef int project_every(self, long long every, double tolerance, tuple integrals, bint any_rank) except -1:
        """Project after every so many steps; ``integrals`` are names of functions [I_u | I]; ``any_rank``: rows of
        constraints may become dependent on the way."""
        cdef kg_projection *c = &self.projection
        cdef int i
        _fill_manifold(&c.manifold)
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
        return 0

    cdef int close_loop(self, Control control) except -1:
        """Let the controls come from there."""
        self.control = control
        control.attach(&self.evaluation)
        self.ode.rhs = _right_hand_side
        return 0

    cdef int sample(self, double t, const double *y) noexcept nogil:
        """Hold the controls of this state from now on, and keep them."""
        cdef Evaluation *e = &self.evaluation
        cdef ControlLoop *c = <ControlLoop *>e.control
        cdef double *target
        cdef int status = KG_OK
        if e.kind != INPUT_CONSTANT and _fill_inputs(e, t) < 0:
            return STATUS_PYTHON
        status = _evaluate_law(e, t, y)
        if status < 0:
            return status
        target = _grow(&self.samples, c.n + 1)
        if target == NULL:
            return STATUS_NO_MEMORY
        target[0] = t
        memcpy(target + 1, c.tau, c.n * sizeof(double))
        return KG_OK

    cdef int next_sample(self) noexcept nogil:
        """Go on after the end of a sample; returns KG_OK, KG_FINISHED at the end of the run, or why not."""
        cdef ControlLoop *c = <ControlLoop *>self.evaluation.control
        cdef int status = self.sample(self.stepper.t, self.stepper.y)
        if status == STATUS_NO_MEMORY:
            return status
        if status < 0:
            self.stepper.rhs_status = status
            return KG_RHS_FAILED
        if self.stepper.t == self.t_final:
            return KG_FINISHED
        status = kg_module_restart(
            &self.stepper,
            _sample_end(
                self.t_first, self.t_final, self.control.sample_time, <long long>(self.samples.count // (c.n + 1)) - 1
            ),
            0,
        )
        return KG_OK if status == KG_FINISHED else status

    cdef int renew(self) noexcept nogil:
        """Keep the integrals at their values in the stepper's state from now on; returns KG_OK or why not."""
        cdef int status = _inputs_at(&self.evaluation, self.stepper.t, self.stepper.y)
        if status >= 0:
            status = kg_module_projection_renew(
                &self.projection, self.stepper.t, self.stepper.y, self.stepper.y + MODEL.n_q, self.evaluation.r
            )
        if status >= 0 or status == KG_NOT_FINITE:
            return status
        self.stepper.rhs_status = status
        return KG_RHS_FAILED

    cdef int project(self, int outcome) noexcept nogil:
        """Project the state the stepper has accepted with that outcome; returns the outcome or why not."""
        return _project(&self.evaluation, &self.projection, &self.stepper, outcome)

    cdef double *stepper_memory(self) noexcept:
        return self.evaluation.r + self.function.n_r

    cdef int store(self, double t, const double *y) noexcept nogil:
        cdef double *target = _grow(&self.y, self.n)
        cdef double *time
        if target == NULL:
            return STATUS_NO_MEMORY
        time = _grow(&self.t, 1)
        if time == NULL:
            self.y.count -= self.n
            return STATUS_NO_MEMORY
        memcpy(target, y, self.n * sizeof(double))
        time[0] = t
        return KG_OK

    cdef int begin(self, const kg_stepper_options *options, double t0, const double *y0, double end) except *:
        """Start at (t0, y0); returns what kg_stepper_start() does."""
        return kg_module_start(&self.stepper, &self.ode, options, t0, y0, end, self.stepper_memory())

    cdef int store_start(self, double t0, const double *y0) noexcept nogil:
        """Store the start, with t_eval as often as it was asked for."""
        cdef int stored = KG_OK
        if self.t_eval == NULL:
            return self.store(t0, y0)
        while stored == KG_OK and self.next_eval < self.n_eval and self.t_eval[self.next_eval] == t0:
            stored = self.store(t0, y0)
            self.next_eval += 1
        return stored

    cdef int store_requested(self) noexcept nogil:
        """Interpolate at the requested times the last step has passed."""
        cdef double *target
        cdef double t
        while self.next_eval < self.n_eval:
            t = self.t_eval[self.next_eval]
            if self.direction * (t - self.stepper.t) > 0.0:
                break
            target = _grow(&self.y, self.n)
            if target == NULL:
                return STATUS_NO_MEMORY
            if kg_module_interpolate(&self.stepper, t, target) < 0:
                self.y.count -= self.n
                return KG_RHS_FAILED
            target = _grow(&self.t, 1)
            if target == NULL:
                self.y.count -= self.n
                return STATUS_NO_MEMORY
            target[0] = t
            self.next_eval += 1
        return KG_OK

    cdef int store_dense(self) noexcept nogil:
        cdef double *target
        cdef double *step
        if kg_module_dense(&self.stepper) < 0:
            return KG_RHS_FAILED
        target = _grow(&self.dense, <size_t>self.dense_rows * self.n)
        if target == NULL:
            return STATUS_NO_MEMORY
        step = _grow(&self.steps, 2)
        if step == NULL:
            self.dense.count -= <size_t>self.dense_rows * self.n
            return STATUS_NO_MEMORY
        memcpy(target, self.stepper.dense, <size_t>self.dense_rows * self.n * sizeof(double))
        step[0], step[1] = self.stepper.t_old, self.stepper.h
        return KG_OK

    cdef int advance(self) noexcept nogil:
        """Steps for about 20 ms. KG_OK: more to do."""
        cdef double start = kg_module_seconds()
        cdef double elapsed
        cdef int status = KG_OK, stored = KG_OK, count = 0
        while status == KG_OK and stored == KG_OK:
            status = kg_module_step(&self.stepper)
            if status >= 0 and self.projection.every:
                status = self.project(status)
            if status < 0:
                return status
            stored = self.store_requested() if self.t_eval != NULL else self.store(self.stepper.t, self.stepper.y)
            if stored == KG_OK and self.dense_rows:
                stored = self.store_dense()
            if stored == KG_OK and status == KG_FINISHED and self.samples.count:
                status = self.next_sample()
            count += 1
            if count % 8 == 0:
                elapsed = kg_module_seconds() - start
                if elapsed > 0.02 or elapsed < 0.0:
                    break
        return status if stored == KG_OK else stored

    cdef object outcome(self, int status):
        cdef kg_statistics *s = &self.stepper.statistics
        rhs_status = self.stepper.rhs_status if status == KG_RHS_FAILED else 0
        if self.error is not None:
            status = KG_INTERRUPTED
        elif status == STATUS_NO_MEMORY:
            status, self.error = KG_INTERRUPTED, MemoryError("no memory is left for more steps")
        n_steps = self.steps.count // 2
        steps = _to_array(&self.steps, (n_steps, 2))
        last = numpy.empty(self.n)
        memcpy(_data(last), self.stepper.y, self.n * sizeof(double))
        return Outcome(
            t=_to_array(&self.t, (self.t.count,)),
            y=_to_array(&self.y, (self.t.count, self.n)),
            last=(self.stepper.t, last),
            dense=(steps[:, 0].copy(), steps[:, 1].copy(), _to_array(&self.dense, (n_steps, self.dense_rows, self.n)))
            if self.dense_rows else None,
            status=status,
            rhs_status=rhs_status,
            message=kg_module_status_message(rhs_status or status).decode(),
            statistics=dict(
                steps=s.steps, rejected=s.rejected, evaluations=s.evaluations, repartitions=s.repartitions,
                smallest_step=s.smallest_step, largest_step=s.largest_step, last_step=s.last_step,
                largest_error=s.largest_error, projections=self.projection.moved,
                integrals_left=self.projection.integrals.left, integral_drift=self.projection.integrals.drift,
                jacobians=s.jacobians, factorizations=s.factorizations,
            ),
            error=self.error,
            hybrid=None,
            culprit=None,
            conflict=None,
            flat_guard=None,
            samples=None if self.control is None
            else _to_array(&self.samples, (self.samples.count // (self.control.loop.n + 1), self.control.loop.n + 1)),
        )


class Outcome:
    """What `integrate` returns, whether the end was reached or not.

    ``t`` (n,) and ``y`` (n, n_q + n_u): the stored times and states; ``last``: (t, y) of the last accepted step;
    ``dense``: None or (t_old (m,), h (m,), coefficients (m, k, n_q + n_u)) of every step, for `interpolate`;
    ``status``, ``message``: kg_ode.h; ``rhs_status``: that of the right-hand side when it failed, else 0;
    ``statistics``: dict of counts and step sizes; ``error``: the exception that stopped the run (Ctrl-C, an error
    in a Python input or in ``progress``, no memory), else None; ``samples``: the times (first column) and controls of a
    sampled closed loop, without rows for a continuous one, None without control.
    """

    def __init__(self, **fields):
        self.__dict__.update(fields)
