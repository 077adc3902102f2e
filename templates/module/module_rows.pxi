# Evaluation at many states: arguments with a row for each state, one loop without the interpreter.

cdef object ROWS = object()  # returned by Function._read for arguments with rows


cdef inline int _dimensions(object value):
    if PyFloat_CheckExact(value) or value is None:
        return 0
    if PyArray_CheckExact(value):
        return PyArray_NDIM(<PyArrayObject *>value)
    try:
        return 0 if isinstance(value, (float, int)) else numpy.ndim(value)
    except ValueError:  # lists of unequal lengths; reading them raises SolveError
        return 0


cdef inline bint _has_rows(object t, object q, object u, object r, object s):
    """Whether one of the arguments has a row for each of several states."""
    return (
        _dimensions(t) > 0 or _dimensions(q) > 1 or _dimensions(u) > 1 or _dimensions(r) > 1 or _dimensions(s) > 1
    )


cdef int _arguments_of(const kg_rows *rows, Py_ssize_t i, kg_point *a) noexcept:
    """Fill ``a`` with the arguments of row i. Returns whether they are finite."""
    cdef int finite = kg_module_open_row(rows, i)
    a.t = rows.t[i * rows.next_t]
    a.q, a.u = rows.q + i * rows.next_q, rows.u + i * rows.next_u
    _point_to(a, rows.inputs)
    return finite


cdef int _advance_rows(kg_rows *rows) noexcept nogil:
    """Evaluate rows for about 20 ms. Returns KG_OK, or the status of the row that failed, number ``done``."""
    cdef double start = kg_module_seconds()
    cdef double elapsed = 0.0
    cdef int status = KG_OK
    while status == KG_OK and rows.done < rows.count and 0.0 <= elapsed <= 0.02:
        status = kg_module_advance_rows(rows, 64)
        elapsed = kg_module_seconds() - start
    return status


cdef object _as_rows(object value, tuple widths, str names, str what, dict counts):
    """An array (n,) or (N, n), n one of ``widths``; N is added to ``counts``."""
    array = _as_array(value, what)
    if array.ndim not in (1, 2) or array.shape[array.ndim - 1] not in widths:
        n = widths[0]
        raise SolveError(f"{what} has shape {array.shape}, expected ({n},) or (N, {n}): {names or 'no entries'}")
    if array.ndim == 2:
        counts[what] = array.shape[0]
    return array


cdef object _time_rows(object t, dict counts):
    if _dimensions(t) == 0:
        return numpy.array([_time(t)])
    times = _as_array(t, "t")
    if times.ndim != 1:
        raise SolveError(f"t has shape {times.shape}, expected a number or (N,)")
    counts["t"] = times.shape[0]
    return times


cdef Py_ssize_t _count_of(dict counts) except -1:
    """The number of rows. Raises SolveError if the arguments have different numbers."""
    if len(set(counts.values())) > 1:
        have = ", ".join([f"{what} has {n}" for what, n in counts.items()])
        raise SolveError(f"the numbers of rows differ: {have}; expected the same number N, or no rows (one value for all)")
    return next(iter(counts.values()), 1)


cdef Py_ssize_t _step(object array):
    """The distance between the rows of an array; 0 for an array without rows."""
    return array.shape[1] if array.ndim == 2 else 0


cdef tuple _read_rows(object t, object q, object u, object r, object s, object defaults, kg_rows *rows):
    """Fill ``rows`` from arguments; returns the arrays (t, q, u, r, s, all inputs), which must stay alive.

    ``defaults`` (n_r + n_hidden,): all inputs where ``r`` and ``s`` are None.
    """
    counts = {}
    if s is not None and N_S == 0:
        raise SolveError(f"s is {s!r}, but the model {NAME!r} has no states: leave s out")
    rows.n_q, rows.n_u, rows.n_r, rows.first_state = MODEL.n_q, MODEL.n_u, MODEL.n_r + N_HIDDEN, FIRST_STATE
    rows.first_multiplier, rows.first_free = MODEL.n_r, MODEL.n_r + MODEL.n_rows
    times = _time_rows(t, counts)
    q = _as_rows(q, (MODEL.n_q,), ", ".join(COORDINATES), "q", counts)
    u = _as_rows(u, (MODEL.n_u,), ", ".join(SPEEDS), "u", counts)
    inputs = defaults.copy()
    if r is not None:
        r = _as_rows(r, (MODEL.n_r, FIRST_STATE, rows.n_r), ", ".join(INPUTS), "r", counts)
        if r.ndim == 1:
            inputs[:r.size] = r
    if s is not None:
        s = _as_rows(s, (N_S,), ", ".join(STATES), "s", counts)
        if s.ndim == 1:
            inputs[FIRST_STATE:] = s
    rows.count = _count_of(counts)
    rows.t, rows.q, rows.u, rows.inputs = _data(times), _data(q), _data(u), _data(inputs)
    rows.next_t, rows.next_q, rows.next_u = 1 if "t" in counts else 0, _step(q), _step(u)
    rows.r = rows.s = _data(inputs)
    rows.next_r = rows.next_s = 0
    if r is not None:
        rows.r, rows.next_r = _data(r), _step(r)
    if s is not None:
        rows.s, rows.next_s = _data(s), _step(s)
    return times, q, u, r, s, inputs


cdef object _rows_output(object out, tuple shape, tuple arguments):
    """The array of the results: a new one, or ``out`` if it can be written."""
    if out is None:
        return numpy.empty(shape)
    if not (
        PyArray_CheckExact(out) and out.dtype == numpy.float64 and out.shape == shape and out.flags.carray
    ):
        _refuse_output(out, shape, "out")
    for name, argument in zip("tqurs", arguments):
        if argument is not None and numpy.may_share_memory(out, argument):
            _refuse_overlap("out", name)
    return out


cdef object _evaluate_rows(Function f, object t, object q, object u, object r, object s, object out):
    """The values of a function at N states, (N, *shape), a new array or ``out``.

    ``t`` (N,), ``q`` (N, n_q), ``u`` (N, n_u), ``r`` (N, n_r) or (N, n_r + n_hidden), ``s`` (N, n_s); each of them can also
    be given without rows, one value for all states. The first row that cannot be evaluated raises SolveError with its
    index. The work space is that of this call, because other threads run meanwhile.
    """
    cdef kg_rows rows
    cdef int status = KG_OK
    arguments = _read_rows(t, q, u, r, s, f.all_inputs, &rows)
    result = _rows_output(out, (rows.count, *f.shape), arguments)
    work = numpy.empty(f.function.work + 1)
    rows.function, rows.p, rows.work, rows.out, rows.n_out = f.function, f.p, _data(work), _data(result), f.n_out
    rows.done = rows.repartitioned = 0
    while rows.done < rows.count and status == KG_OK:
        with nogil:
            status = _advance_rows(&rows)
        PyErr_CheckSignals()
    f.repartitioned += rows.repartitioned
    if status != KG_OK:
        _refuse_row(f, &rows, arguments, status)
    return result


cdef object _refuse_row(Function f, const kg_rows *rows, tuple arguments, int status):
    """Raise SolveError with the index of the row that cannot be evaluated, and the reason."""
    cdef kg_point a
    cdef Py_ssize_t i = rows.done
    finite = _arguments_of(rows, i, &a)
    q, u = [array[i] if array.ndim == 2 else array for array in arguments[1:3]]
    f._check_defaults(arguments[5])  # values that are missing are missing in all rows
    try:
        if not finite:
            _refuse_infinite(a.t, q, u, arguments[5])
        f._report(status, &a, rows.out + i * f.n_out)
    except SolveError as error:
        raise SolveError(f"row {i} (of {rows.count}, from 0): {error}") from None


cdef object _pair_rows(Function f, object t, object q, object u, object r, object s, object out):
    """(q', u'), or (q', u', s'), at N states: arrays (N, n_q), (N, n_u), (N, n_s), new ones or those of ``out``."""
    values = _evaluate_rows(f, t, q, u, r, s, None)
    parts = numpy.split(values, [f.n_q, f.n_out - N_S], axis=1)[:2 if N_S == 0 else 3]
    if out is None:
        return tuple([numpy.ascontiguousarray(part) for part in parts])
    out = _as_outputs(out)
    for name, array, part in zip(("qdot", "udot", "sdot"), out, parts):
        if not (PyArray_CheckExact(array) and array.shape == part.shape and array.dtype == numpy.float64 and array.flags.writeable):
            _refuse_output(array, part.shape, f"out ({name})")
        array[...] = part
    return out


def checked_state(t, q, u, r=None):
    """``q`` (n_q,) and ``u`` (n_u,), or with N rows, as new arrays, for a quantity that needs no compiled function.

    Raises SolveError for the same arguments as a compiled function; inputs ``r`` are optional, and states are not needed.
    """
    cdef kg_rows rows
    cdef kg_point a
    cdef Py_ssize_t i
    if not _has_rows(t, q, u, r, None):
        time, q, u = _time(t), _as_vector(q, COORDINATES, "q").copy(), _as_vector(u, SPEEDS, "u").copy()
        _refuse_infinite(time, q, u, numpy.zeros(len(INPUTS + HIDDEN)) if r is None else _as_inputs(r, "r"))
        return q, u
    times, q, u, r, _, inputs = _read_rows(t, q, u, r, None, numpy.zeros(len(INPUTS + HIDDEN)), &rows)
    for i in range(rows.count):
        if not _arguments_of(&rows, i, &a):
            _refuse_infinite(a.t, q[i] if q.ndim == 2 else q, u[i] if u.ndim == 2 else u, inputs)
    counts = (rows.count, 1)
    return numpy.tile(q, counts) if q.ndim == 1 else q.copy(), numpy.tile(u, counts) if u.ndim == 1 else u.copy()
