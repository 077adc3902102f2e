# Integration without the GIL, and the C function pointer for other integrators.

METHODS = {kg_module_method_name(i).decode(): i for i in range(KG_METHODS)}
STATUS_FINISHED, STATUS_INTERRUPTED = KG_FINISHED, KG_INTERRUPTED
STATUS_RHS_FAILED, STATUS_SINGULAR = KG_RHS_FAILED, KG_SINGULAR
MOST_STEPS = 2**63 - 1


def integrate(
    function, inputs, t0, t1, q0, u0, s0=(), *, {% for name, option in options.items() %}{{ name }}={{ option.default.__repr__() }}, {% endfor %}

    t_eval=None, dense=False, progress=None, projection=None, control=None, events=None, modes=None, instants=None,
):
    """Integrate a right-hand side from t0 to t1 without Python in the loop; returns a RunResult.

    ``method`` and so on: the options of `Solver.integrate`; ``rtol``, ``atol``: numbers or (n_q + n_u + n_s,). ``t_eval``: times at which the solution is stored, sorted in the direction of the run; None: every step.
    ``progress``: called with the current t about every 20 ms. ``projection``: (every, tolerance, integrals, any_rank)
    to project the state onto the constraints and the named integrals of motion after ``every`` steps; any_rank:
    constraints can become dependent during the run. ``events``: indices of the model's events to detect; None: all.
    ``modes``: index of contact to mode at the start. ``control``: a Control, or several, which
    compute inputs in place of ``inputs``; one is evaluated after those before it. ``instants``: ascending times (n,) at
    which inputs jump or have a kink; the steps of adaptive methods end there, and where the model switches. Wrong arguments raise SolveError; later failures are reported by
    the RunResult, which holds all results up to the failure.
    """
    cdef kg_stepper_options options
    cdef Run run
    cdef int status
    cdef double start, end
    _require_function(function)
    _require_inputs(inputs)
    controls = _controls(control)
    start, end = _span(t0, t1)
    _require_right_hand_side(function)
    _check_inputs(function, inputs, start, end)
    y0 = _state_at_start(function, controls, q0, u0, s0)
    if not isinstance(method, str) or method not in METHODS:
        raise SolveError(f"method is {_shown(method)}; expected one of {', '.join(METHODS)}")
    options.method = METHODS[method]
    # None leaves the choice to the stepper.
{% for name, option in options.items() if option.kind.name == "SECONDS" %}
    options.{{ name }} = 0.0 if {{ name }} is None else _real({{ name }}, "{{ name }}", 0.0)
{% endfor %}
{% for name, option in options.items() if option.kind.name == "COUNT" %}
    options.{{ name }} = 0 if {{ name }} is None else _whole({{ name }}, "{{ name }}", 0, MOST_STEPS)
{% endfor %}
    if progress is not None and not callable(progress):
        raise SolveError(f"progress is {_shown(progress)}; expected something to call as progress(t), or None")
    events = range(MODEL.n_events) if events is None else _listed(events, "events")
{% if has.events %}
    run = (HybridRun if CONTACTS or events else Run)(function, inputs, options.method)
{% else %}
    run = Run(function, inputs, options.method)
{% endif %}
    relative, absolute = _tolerance(rtol, run.n, "rtol"), _tolerance(atol, run.n, "atol")
    times = None if t_eval is None else _requested(t_eval, start, end)
    known = _new_vector(0) if instants is None else _as_array(instants, "instants")
    run.kept = (times, y0, relative, absolute, known)
    if projection is not None:
        _project_as(run, projection)
{% if has.implicit_methods %}
    if kg_module_method_is_implicit(options.method):
        run.linearize(method)
{% endif %}
    if dense:
        run.keep_dense_output(kg_module_dense_rows(options.method))
    options.rtol, options.atol = _data(relative), _data(absolute)
    if times is not None:
        run.run.t_eval, run.run.n_eval = _data(times), times.size
    for control in controls:
        _check_samples(function, control, start, end)
    run.close_loop(controls, run.n)
    run.sample(abs(end - start))
    if kg_module_method_is_adaptive(options.method):
        run.stop_at(known)
{% if has.events %}
    if isinstance(run, HybridRun):
        (<HybridRun>run).watch(events, modes or {})
{% endif %}
    status = kg_module_run_begin(&run.run, start, _data(y0), end)
    if status < 0:
        _refuse_start(&run.evaluation, run.stepper.rhs_status, run.error)
    status = run.start(&options, _data(y0))
    if status == KG_INVALID_ARGUMENT:
        raise SolveError(
            f"{method} cannot start: {kg_module_status_message(status).decode()} (t0={t0!r}, t1={t1!r}"
            f"{% for name, option in options.items() if option.kind.name in ("SECONDS", "COUNT") %}, {{ name }}={ {{- name }}!r}{% endfor %})"
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


cdef object _span(object t0, object t1):
    """The start and the end of a run; its length must be a number, too."""
    cdef double start = _real(t0, "t0"), end = _real(t1, "t1")
    if not (end - start) - (end - start) == 0.0:
        raise SolveError(f"the run from t0={start!r} to t1={end!r} is longer than the largest number of seconds")
    return start, end


cdef object _state_at_start(Function function, tuple controls, object q0, object u0, object s0):
    """The state of a run, with the controls that are part of it."""
    # The reduced form has fewer momenta than speeds.
    speeds = SPEEDS[:function.n_out - function.n_q - N_S] if function.name == "momentum_rhs" else SPEEDS
    q, u, s = _as_vector(q0, COORDINATES, "q0"), _as_vector(u0, speeds, "u0"), _as_vector(s0, STATES, "s0")
    _check_finite(q, COORDINATES, "q0")
    _check_finite(u, speeds, "u0")
    _check_finite(s, STATES, "s0")
    y0 = _joined([q, u, s, *[(<Control>control).start for control in controls]])
    if y0.size != function.n_out:
        raise SolveError(
            f"the state of {function.name} has {function.n_out} values; q0, u0, s0 and the start of control have {y0.size}"
        )
    return y0


cdef object _project_as(Run run, object projection):
    """Read (every, tolerance, integrals, any_rank)."""
    if not isinstance(projection, (tuple, list)) or len(projection) != 4 or not isinstance(projection[2], (tuple, list)):
        raise SolveError(
            f"projection is {_shown(projection)}; expected (every, tolerance, names of functions of integrals, any_rank)"
        )
    every, tolerance, integrals, any_rank = projection
    run.project_every(
        _whole(every, "every in projection", 1, MOST_STEPS), _real(tolerance, "tolerance in projection", 0.0),
        tuple(integrals), bool(any_rank),
    )


cdef object _check_inputs(Function function, Inputs inputs, double start, double end):
    """Raise SolveError for inputs that are not defined during the run."""
    inputs.check_range(start, end)
    if function.name.startswith("momentum"):
        _of_time(inputs, "a run in momenta")


cdef object _check_samples(Function function, Control control, double start, double end):
    """Raise SolveError for samples that do not change t, and for samples backwards in time."""
    if control.inputs is not None:
        _check_inputs(function, control.inputs, start, end)
    if not control.loop.is_held:
        return
    if not control.sample_time > 1e-14 * max(abs(start), abs(end)):
        raise SolveError(
            f"sample_time is {control.sample_time!r}; expected more seconds than the rounding errors of t from "
            f"{start!r} to {end!r}"
        )
    if end < start:
        raise SolveError(f"sampled controls cannot run backwards, from t = {start!r} to {end!r} s: leave out sample_time")


cdef object _refuse_start(Evaluation *e, int status, object error):
    """Raise the error of the controls at the start."""
    if error is not None:
        raise error
    raise SolveError(f"the controls cannot be evaluated at the start: {kg_module_status_message(status).decode()}")


def interpolate(t_old, h, coefficients, times):
    """States (n_t, n_q + n_u + n_s) at ``times`` (n_t,) from the dense output of a run; times outside it extrapolate."""
    cdef int rows, n
    cdef size_t i, j
    wanted, t_old, h = _as_array(times, "t"), _as_array(t_old, "t_old"), _as_array(h, "h")
    coefficients = _as_array(coefficients, "coefficients")
    if wanted.ndim > 1:
        raise SolveError(f"the times have shape {wanted.shape}; expected (n_t,)")
    if (
        t_old.ndim != 1 or t_old.size < 1 or h.shape != t_old.shape or coefficients.ndim != 3
        or len(coefficients) != len(t_old) or coefficients.shape[1] < 1
    ):
        raise SolveError(
            f"the dense output has t_old {t_old.shape}, h {h.shape} and coefficients {coefficients.shape}; expected (m,), "
            "(m,) and (m, k, n) with m >= 1 and k >= 1"
        )
    rows, n = coefficients.shape[1], coefficients.shape[2]
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
    """The times at which the solution is stored; without NumPy's functions, which take as long as some runs."""
    cdef double first = min(t0, t1), last = max(t0, t1)
    cdef double *times
    cdef npy_intp n, i
    array = _as_array(t_eval, "t_eval")
    if array.ndim != 1:
        raise SolveError(f"t_eval has shape {array.shape}; expected (n,)")
    times, n = _data(array), PyArray_DIM(<PyArrayObject *>array, 0)
    for i in range(n):
        if not first <= times[i] <= last:
            raise SolveError(f"t_eval leaves the run from t={t0!r} to {t1!r}")
    for i in range(1, n):
        if not (times[i] - times[i - 1]) * (t1 - t0) >= 0.0:
            raise SolveError(f"t_eval is not sorted in the direction of the run, from t={t0!r} to {t1!r}")
    return array


cdef int _low_level_function(double t, double *y, double *dydt, void *user_data) noexcept nogil:
    cdef int status = _right_hand_side(user_data, t, y, dydt)
    return status if status < 0 or kg_module_all_finite((<Evaluation *>user_data).n_out, dydt) else KG_NOT_FINITE


cdef void _free_low_level(object capsule) noexcept:
    # The context is the Evaluation inside a Run to which the capsule holds a reference.
    run = <Run>(<Evaluation *>PyCapsule_GetContext(capsule)).source.run
    _decref(run)


cdef extern from "Python.h":
    void _incref "Py_INCREF"(object)
    void _decref "Py_DECREF"(object)


cdef object _low_level(Function function, object r, tuple controls):
    cdef Control control
    cdef Run run
    if r is None:
        function._require_inputs()
        r = function.inputs
    inputs = r if isinstance(r, Inputs) else Inputs.constant(r)
    if (<Inputs>inputs).kind == INPUT_PYTHON:
        raise SolveError("a C function pointer cannot take inputs that are Python code; pass an array or Inputs in C")
    for control in controls:
        if control.loop.law == NULL or control.loop.is_held:
            raise SolveError("a C function pointer can take controls only from a law that is not sampled")
    _require_right_hand_side(function)
    run = Run(function, inputs)
    run.close_loop(controls, run.n)
    capsule = PyCapsule_New(
        <void *>_low_level_function, "int (double, double *, double *, void *)", _free_low_level
    )
    PyCapsule_SetContext(capsule, &run.evaluation)
    _incref(run)
    return capsule
