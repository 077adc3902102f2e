# Evaluation at many states: arguments with a row for each state, one loop without the interpreter.

cdef int _advance_rows(kg_rows *rows) noexcept nogil:
    """Evaluate rows for about 20 ms. Returns KG_OK, or the status of the row that failed, number ``done``."""
    cdef double start = kg_module_seconds()
    cdef double elapsed = 0.0
    cdef int status = KG_OK
    while status == KG_OK and rows.done < rows.count and 0.0 <= elapsed <= 0.02:
        status = kg_module_advance_rows(rows, 64)
        elapsed = kg_module_seconds() - start
    return status


cdef object _rows_output(object out, tuple shape, tuple arguments):
    """The array of the results: a new one, or ``out`` if it can be written."""
    if out is None:
        return numpy.empty(shape)
    if not (
        PyArray_CheckExact(out) and out.dtype == numpy.float64 and out.shape == shape and out.flags.carray
    ):
        _refuse_output(out, shape, "out")
    for name, argument in zip(ARGUMENTS, arguments):
        if argument is not None and numpy.may_share_memory(out, argument):
            _refuse_overlap("out", name)
    return out


cdef object _evaluate_rows(Function f, tuple arguments, kg_rows *rows, object out):
    """The values of a function at N states, (N, *shape), a new array or ``out``.

    The first row that cannot be evaluated raises SolveError with its index. The work space is that of this call, because
    other threads run meanwhile.
    """
    cdef int status = KG_OK
    result = _rows_output(out, (rows.count, *f.shape), arguments)
    work = numpy.empty(f.function.work + 1)
    rows.function, rows.p, rows.work, rows.out, rows.n_out = f.function, f.p, _data(work), _data(result), f.n_out
    rows.done = rows.repartitioned = 0
    while rows.done < rows.count and status == KG_OK:
        with nogil:
            status = _advance_rows(rows)
        PyErr_CheckSignals()
    f.repartitioned += rows.repartitioned
    if status != KG_OK:
        _refuse_row(f, rows, arguments, status)
    return result


cdef object _refuse_row(Function f, const kg_rows *rows, tuple arguments, int status):
    """Raise SolveError with the index of the row that cannot be evaluated, and the reason."""
    cdef kg_point a
    cdef Py_ssize_t i = rows.done
    try:
        if not kg_module_open_row(rows, i, &a):
            _refuse_infinite(a.t, arguments, i)
        f._report(status, &a, rows.out + i * f.n_out)
    except SolveError as error:
        raise SolveError(f"row {i} (of {rows.count}, from 0): {error}") from None


cdef object _pair_rows(Function f, tuple arguments, kg_rows *rows, object out):
    """(q', u'), or (q', u', s'), at N states: arrays (N, n_q), (N, n_u), (N, n_s), new ones or those of ``out``."""
    values = _evaluate_rows(f, arguments, rows, None)
    parts = numpy.split(values, [f.n_q, f.n_out - N_S], axis=1)[:2 if N_S == 0 else 3]
    if out is None:
        return tuple([numpy.ascontiguousarray(part) for part in parts])
    out = _as_outputs(out)
    for name, array, part in zip(("qdot", "udot", "sdot"), out, parts):
        if not (PyArray_CheckExact(array) and array.shape == part.shape and array.dtype == numpy.float64 and array.flags.writeable):
            _refuse_output(array, part.shape, f"out ({name})")
        array[...] = part
    return out


def checked_state(t, q, u, r=None, s=None):
    """``q`` (n_q,) and ``u`` (n_u,), or with N rows, as new arrays, for a quantity that needs no compiled function.

    Raises SolveError for the same arguments as a compiled function; inputs ``r`` and states ``s`` are optional.
    """
    cdef kg_rows rows
    cdef kg_point a
    cdef Py_ssize_t i
    arguments = _read_arguments(t, q, u, r, s, None, None, &rows)
    for i in range(rows.count):
        if not kg_module_open_row(&rows, i, &a):
            _refuse_infinite(a.t, arguments, i)
    counts = (rows.count, 1)
    return tuple([numpy.tile(x, counts) if rows.has_rows and x.ndim == 1 else x.copy() for x in arguments[1:3]])
