# Integration without the GIL, and the C function pointer for other integrators.

METHODS = {kg_module_method_name(i).decode(): i for i in range(KG_METHODS)}
STATUS_FINISHED, STATUS_INTERRUPTED = KG_FINISHED, KG_INTERRUPTED
STATUS_RHS_FAILED, STATUS_SINGULAR = KG_RHS_FAILED, KG_SINGULAR


def integrate(
    Function function, Inputs inputs, double t0, double t1, q0, u0, s0=(), *, str method="dopri5", rtol=1e-8, atol=1e-10,
    step=None, first_step=None, max_step=None, max_steps=None, t_eval=None, bint dense=False, progress=None,
    projection=None, Control control=None, events=None, modes=None,
):
    """Integrate a right-hand side from t0 to t1 without Python in the loop; returns a RunResult.

    ``method``: a key of METHODS. ``rtol``, ``atol``: numbers or (n_q + n_u + n_s,). ``step``: size of the fixed steps
    (s). ``t_eval``: times at which the solution is stored, sorted in the direction of the run; None: every step.
    ``progress``: called with the current t about every 20 ms. ``projection``: (every, tolerance, integrals, any_rank)
    to project the state onto the constraints and the named integrals of motion after ``every`` steps; any_rank:
    constraints can become dependent during the run. ``events``: indices of the model's events to detect; None: all.
    ``modes``: index of contact to mode at the start. Wrong arguments raise SolveError; later failures are reported by
    the RunResult, which holds all results up to the failure.
    """
    cdef kg_stepper_options options
    cdef Run run
    cdef int status
    if method not in METHODS:
        raise SolveError(f"method is {method!r}; expected one of {', '.join(METHODS)}")
    # The reduced form has fewer momenta than speeds.
    speeds = SPEEDS[:function.n_out - function.n_q - N_S] if function.name == "momentum_rhs" else SPEEDS
    q, u, s = _as_vector(q0, COORDINATES, "q0"), _as_vector(u0, speeds, "u0"), _as_vector(s0, STATES, "s0")
    _check_finite(q, COORDINATES, "q0")
    _check_finite(u, speeds, "u0")
    _check_finite(s, STATES, "s0")
    inputs.check_range(t0, t1)
    _require_right_hand_side(function)
    events = range(MODEL.n_events) if events is None else events
{% if has.events %}
    run = (HybridRun if CONTACTS or len(events) else Run)(function, inputs, METHODS[method])
{% else %}
    run = Run(function, inputs, METHODS[method])
{% endif %}
    y0 = numpy.concatenate([q, u, s] if control is None else [q, u, s, control.start])
    relative, absolute = _tolerance(rtol, run.n, "rtol"), _tolerance(atol, run.n, "atol")
    times = None if t_eval is None else _requested(t_eval, t0, t1)
    run.kept = (times, y0, relative, absolute)
    if projection is not None:
        run.project_every(projection[0], projection[1], projection[2], projection[3])
{% if has.implicit_methods %}
    if kg_module_method_is_implicit(METHODS[method]):
        run.linearize(method, 1.0 if t1 >= t0 else -1.0)
{% endif %}
    if dense:
        run.keep_dense_output(kg_module_dense_rows(METHODS[method]))
    options.method = METHODS[method]
    options.step = 0.0 if step is None else step
    options.first_step = 0.0 if first_step is None else first_step
    options.max_step = 0.0 if max_step is None else max_step
    options.max_steps = 0 if max_steps is None else max_steps
    options.rtol, options.atol = _data(relative), _data(absolute)
    if times is not None:
        run.run.t_eval, run.run.n_eval = _data(times), times.size
    if control is not None:
        run.close_loop(control)
{% if has.events %}
    if isinstance(run, HybridRun):
        (<HybridRun>run).watch(events, modes or {})
{% endif %}
    status = kg_module_run_begin(&run.run, t0, _data(y0), t1)
    if status < 0:
        _refuse_start(&run.evaluation, run.stepper.rhs_status, run.error)
    status = run.start(&options, _data(y0))
    if status == KG_INVALID_ARGUMENT:
        raise SolveError(
            f"{method} cannot start: {kg_module_status_message(status).decode()} (t0={t0!r}, t1={t1!r}, step={step!r}, "
            f"first_step={first_step!r}, max_step={max_step!r}, max_steps={max_steps!r})"
        )
    try:
        while status == KG_OK:
            with nogil:
                status = run.advance()
            PyErr_CheckSignals()
            if progress is not None:
                progress(run.stepper.t)
    except BaseException as error:  # stored with the results, so that the caller can raise it with them
        run.error = error
    return run.outcome(status)


cdef object _refuse_start(Evaluation *e, int status, object error):
    """Raise the error of the controls at the start."""
    if error is not None:
        raise error
    raise SolveError(f"the controls cannot be evaluated at the start: {kg_module_status_message(status).decode()}")


def interpolate(t_old, h, coefficients, times):
    """States (n_t, n_q + n_u + n_s) at ``times`` (n_t,) from the dense output of a run; times outside it extrapolate."""
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
    cdef int status = _right_hand_side(user_data, t, y, dydt)
    return status if status < 0 or kg_module_all_finite((<Evaluation *>user_data).n_out, dydt) else KG_NOT_FINITE


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
    _require_right_hand_side(function)
    run = Run(function, inputs)
    capsule = PyCapsule_New(
        <void *>_low_level_function, "int (double, double *, double *, void *)", _free_low_level
    )
    PyCapsule_SetContext(capsule, &run.evaluation)
    _incref(run)
    return capsule
