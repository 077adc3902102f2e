# Integration without the GIL, and the C function pointer for hosts that integrate themselves.

METHODS = {"rk4": KG_RK4, "kutta_merson": KG_KUTTA_MERSON, "dopri5": KG_DOPRI5, "dop853": KG_DOP853, "rodas": KG_RODAS}
STATUS_FINISHED, STATUS_INTERRUPTED = KG_FINISHED, KG_INTERRUPTED
STATUS_RHS_FAILED, STATUS_SINGULAR = KG_RHS_FAILED, KG_SINGULAR

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
        fewest = function.n_q if function.name == "momentum_rhs" else function.n_q + function.n_u  # reduced momenta
        most = function.n_out if function.name == "rhs_controlled" else function.n_q + function.n_u
        if function.dimensions != 1 or not fewest <= function.n_out <= most:
            raise SolveError(f"{function.name} has shape {function.shape}; only a right-hand side can be integrated")
        self.function, self.inputs = function, inputs
        self.n = function.n_out
        if method >= 0:
            stepper_work = kg_module_work(method, self.n)
        # Hidden inputs start as zero.
        self.memory = <double *>calloc(function.function.work + function.n_r + stepper_work + 1, sizeof(double))
        if self.memory == NULL:
            raise MemoryError
        e.evaluate, e.p, e.n_q, e.n_r = function.evaluate, function.p, function.n_q, MODEL.n_r
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

    cdef int linearise(self) except -1:
        """Provide the Jacobian to an implicit method."""
        _open_slopes(&self.slopes, self.function, self.direction)
        self.evaluation.slopes = &self.slopes
        self.ode.jacobian = _jacobian
        return 0

    cdef int project_every(self, long long every, double tolerance, tuple integrals) except -1:
        """Project after every so many steps; ``integrals`` are names of functions [I_u | I]."""
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
        c.residuals = _find("residuals") if "residuals" in FUNCTIONS else NULL
        c.p, c.every, c.tolerance = self.evaluation.p, every, tolerance
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
        cdef int status = _inputs_at(&self.evaluation, self.stepper.t, self.stepper.y)
        if status >= 0:
            status = kg_module_project(&self.projection, &self.stepper, self.evaluation.r, outcome)
        if status >= 0 or status == KG_INCONSISTENT:
            return status
        self.stepper.rhs_status = status
        return KG_RHS_FAILED

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
                jacobians=s.jacobians, factorisations=s.factorisations,
            ),
            error=self.error,
            hybrid=None,
            culprit=None,
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


def integrate(
    Function function, Inputs inputs, double t0, double t1, q0, u0, *, str method="dopri5", rtol=1e-8, atol=1e-10,
    step=None, first_step=None, max_step=None, max_steps=None, t_eval=None, bint dense=False, progress=None,
    projection=None, Control control=None,
):
    """Integrate a right-hand side from t0 to t1 without Python in the loop; returns an Outcome.

    ``method``: a key of METHODS. ``rtol``, ``atol``: numbers or (n_q + n_u,). ``step``: size of the fixed steps
    (s). ``t_eval``: increasing in the direction of the run: store there instead of at every step. ``progress``:
    called with the current t about every 20 ms. ``projection``: (every, tolerance, integrals) to project the state
    onto the constraints and the integrals of motion named after every so many steps. Wrong arguments raise SolveError; everything that happens later is
    told by the Outcome, which holds all results up to there.
    """
    cdef kg_stepper_options options
    cdef Run run
    cdef int status
    if method not in METHODS:
        raise SolveError(f"method is {method!r}; expected one of {', '.join(METHODS)}")
    # Reduced momenta in the place of speeds are fewer.
    speeds = SPEEDS[:function.n_out - function.n_q] if function.name == "momentum_rhs" else SPEEDS
    q, u = _as_vector(q0, COORDINATES, "q0"), _as_vector(u0, speeds, "u0")
    _check_finite(q, COORDINATES, "q0")
    _check_finite(u, speeds, "u0")
    inputs.check_range(t0, t1)
    run = Run(function, inputs, METHODS[method])
    y0 = numpy.concatenate([q, u] if control is None else [q, u, control.start])
    relative, absolute = _tolerance(rtol, run.n, "rtol"), _tolerance(atol, run.n, "atol")
    times = None if t_eval is None else _requested(t_eval, t0, t1)
    run.kept = (times, y0, relative, absolute)
    if projection is not None:
        run.project_every(projection[0], projection[1], projection[2])
    run.direction = 1.0 if t1 >= t0 else -1.0
    if METHODS[method] == KG_RODAS:
        run.linearise()
    run.dense_rows = kg_module_dense_rows(METHODS[method]) if dense else 0
    options.method = METHODS[method]
    options.step = 0.0 if step is None else step
    options.first_step = 0.0 if first_step is None else first_step
    options.max_step = 0.0 if max_step is None else max_step
    options.max_steps = 0 if max_steps is None else max_steps
    options.rtol, options.atol = _data(relative), _data(absolute)
    run.t_first, run.t_final = t0, t1
    end, status = t1, KG_OK
    if control is not None:
        run.close_loop(control)
        if control.loop.held:
            end, status = _sample_end(t0, t1, control.sample_time, 0), run.sample(t0, _data(y0))
    if status < 0:
        _refuse_start(&run.evaluation, status, run.error)
    status = kg_module_start(
        &run.stepper, &run.ode, &options, t0, _data(y0), end, run.stepper_memory()
    )
    if status == KG_INVALID_ARGUMENT:
        raise SolveError(
            f"{method} cannot start: {kg_module_status_message(status).decode()} (t0={t0!r}, t1={t1!r}, step={step!r}, "
            f"first_step={first_step!r}, max_step={max_step!r}, max_steps={max_steps!r})"
        )
    if times is None:
        run.store(t0, _data(y0))
    else:
        run.t_eval, run.n_eval = _data(times), times.size
        while run.next_eval < run.n_eval and run.t_eval[run.next_eval] == t0:
            run.store(t0, _data(y0))
            run.next_eval += 1
    if status == KG_OK and run.projection.every:
        status = run.renew()
    try:
        while status == KG_OK:
            with nogil:
                status = run.advance()
            PyErr_CheckSignals()
            if progress is not None:
                progress(run.stepper.t)
    except BaseException as error:  # kept with the results: the caller decides what to raise
        run.error = error
    return run.outcome(status)


cdef object _refuse_start(Evaluation *e, int status, object error):
    """Say why the controls do not exist at the start."""
    if error is not None:
        raise error
    raise SolveError(f"the controls cannot be evaluated at the start: {kg_module_status_message(status).decode()}")


def interpolate(t_old, h, coefficients, times):
    """States (n_t, n_q + n_u) at ``times`` (n_t,) from the dense output of a run; times outside it extrapolate."""
    cdef int rows = coefficients.shape[1], n = coefficients.shape[2]
    cdef size_t i, j
    wanted = _as_array(times, "t")
    steps = numpy.searchsorted(t_old * numpy.sign(h[0]), wanted * numpy.sign(h[0]), side="right") - 1
    steps = numpy.ascontiguousarray(numpy.clip(steps, 0, t_old.size - 1), dtype=numpy.float64)
    result = numpy.empty((wanted.size, n))
    for i in range(wanted.size):
        j = <size_t>_data(steps)[i]
        kg_module_dense_evaluate(
            rows, n, _data(coefficients) + j * rows * n, _data(t_old)[j], _data(h)[j], _data(wanted)[i],
            _data(result) + i * n
        )
    return result


cdef object _tolerance(object value, int n, str what):
    cdef double number
    cdef int i
    if PyFloat_CheckExact(value):
        number = PyFloat_AS_DOUBLE(value)
        if number >= 0.0 and number - number == 0.0:
            result = _new_vector(n)
            for i in range(n):
                _data(result)[i] = number
            return result
    array = _as_array(value, what)
    if array.shape not in ((), (n,)):
        raise SolveError(f"{what} has shape {array.shape}; expected a number or ({n},)")
    if not (numpy.isfinite(array).all() and (array >= 0.0).all()):
        raise SolveError(f"{what} is {value!r}; expected finite values that are not negative")
    return numpy.array(numpy.broadcast_to(array, (n,)))


cdef object _requested(object t_eval, double t0, double t1):
    times = _as_array(t_eval, "t_eval")
    if times.ndim != 1:
        raise SolveError(f"t_eval has shape {times.shape}; expected (n,)")
    if times.size and not (times.min() >= min(t0, t1) and times.max() <= max(t0, t1)):
        raise SolveError(f"t_eval leaves the run from t={t0!r} to {t1!r}")
    if not (numpy.diff(times) * (t1 - t0) >= 0.0).all():
        raise SolveError(f"t_eval is not sorted in the direction of the run, from t={t0!r} to {t1!r}")
    return times


cdef int _low_level_function(double t, double *y, double *dydt, void *user_data) noexcept nogil:
    return _right_hand_side(user_data, t, y, dydt)


cdef void _free_low_level(object capsule) noexcept:
    # The context is the Evaluation inside a Run to which the capsule holds a reference.
    run = <Run>(<Evaluation *>PyCapsule_GetContext(capsule)).run
    _decref(run)


cdef extern from "Python.h":
    void _incref "Py_INCREF"(object)
    void _decref "Py_DECREF"(object)


cdef object _low_level(Function function, object r):
    cdef Run run
    cdef Arguments defaults
    if r is None:
        function._read_inputs(None, &defaults)
        r = function.inputs
    inputs = r if isinstance(r, Inputs) else Inputs.constant(r)
    if (<Inputs>inputs).kind == INPUT_PYTHON:
        raise SolveError("a C function pointer cannot take inputs that are Python code; pass an array or Inputs in C")
    run = Run(function, inputs)
    capsule = PyCapsule_New(
        <void *>_low_level_function, "int (double, double *, double *, void *)", _free_low_level
    )
    PyCapsule_SetContext(capsule, &run.evaluation)
    _incref(run)
    return capsule
