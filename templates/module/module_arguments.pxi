# Reading arguments: a float64 C-contiguous array of the right length costs a few nanoseconds; other real numbers
# (integers, lists, other floats, strided arrays) are converted; anything else raises SolveError with its name.

cdef inline double *_data(object array) noexcept:
    return <double *>PyArray_DATA(<PyArrayObject *>array)


cdef inline void _leave_out(kg_point *a) noexcept:
    """Let a point read zeros in place of states, contact forces and the free vector."""
    a.s = a.forces = a.free = _data(ZEROS)


cdef inline bint _is_vector(object value, npy_intp n) noexcept:
    cdef PyArrayObject *array = <PyArrayObject *>value
    return (
        PyArray_CheckExact(value) and PyArray_TYPE(array) == NPY_DOUBLE and PyArray_NDIM(array) == 1
        and PyArray_DIM(array, 0) == n and PyArray_ISCARRAY_RO(array)
    )


cdef inline bint _is_finite(const double *values, int n) noexcept:
    cdef int i
    cdef double rest = 0.0
    for i in range(n):
        rest += values[i] - values[i]
    return rest == 0.0


cdef inline void _copy(const double *values, double *target, int n) noexcept:
    """Copy a few values: a call of memcpy would take longer."""
    cdef int i
    for i in range(n):
        target[i] = values[i]


cdef inline bint _overlap(const void *a, size_t size_a, const void *b, size_t size_b) noexcept:
    return (<const char *>a) < (<const char *>b) + size_b and (<const char *>b) < (<const char *>a) + size_a


cdef inline object _new_vector(npy_intp n):
    return PyArray_SimpleNew(1, &n, NPY_DOUBLE)


cdef object _joined(list vectors):
    """One vector with the values of several, which are float64 and C-contiguous."""
    cdef npy_intp n = 0
    for vector in vectors:
        n += PyArray_DIM(<PyArrayObject *>vector, 0)
    result = _new_vector(n)
    n = 0
    for vector in vectors:
        memcpy(_data(result) + n, _data(vector), PyArray_DIM(<PyArrayObject *>vector, 0) * sizeof(double))
        n += PyArray_DIM(<PyArrayObject *>vector, 0)
    return result


cdef str _shown(object value):
    """The value in a message, shortened; integers of thousands of digits have no text."""
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__} that cannot be displayed"
    return text if len(text) <= 100 else f"{text[:60]} ... {text[-20:]}"


cdef object _time(object t):
    if isinstance(t, (complex, str, bytes)):
        raise SolveError(f"t is {t!r}, expected a real number (seconds)")
    try:
        return float(t)
    except (TypeError, ValueError, OverflowError) as error:
        raise SolveError(f"t is {_shown(t)}, expected a real number (seconds)") from error


cdef double _real(object value, str what, double least=float("-inf")) except? -1.0:
    """A finite real number that is not below ``least``."""
    number = float("nan")
    if not isinstance(value, (complex, str, bytes)):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    if not (number - number == 0.0 and number >= least):
        expected = "a finite real number" if least == float("-inf") else f"a finite real number from {least!r} on"
        raise SolveError(f"{what} is {_shown(value)}; expected {expected}")
    return number


cdef long long _whole(object value, str what, long long least, long long most) except? -1:
    """An integer from ``least`` to ``most``."""
    try:
        number = _index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        raise SolveError(f"{what} is {_shown(value)}; expected an integer from {least} to {most}")
    return number


cdef list _listed(object values, str what):
    try:
        return list(values)
    except TypeError as error:
        raise SolveError(f"{what} is {_shown(values)}; expected a sequence") from error


cdef object _indices(object values, int n, str what):
    """Integers from 0 to n - 1 as an array of C integers with at least one element, and their number."""
    cdef int i
    given = _listed(values, what)
    array = numpy.zeros(len(given) + 1, dtype=numpy.intc)
    for i in range(len(given)):
        array[i] = _whole(given[i], f"{what}[{i}]", 0, n - 1)
    return array, len(given)


cdef object _as_matrix(object value, Py_ssize_t rows, Py_ssize_t width, str what):
    """A float64 C-contiguous array (rows, width)."""
    array = _as_array(value, what)
    if array.shape != (rows, width):
        raise SolveError(f"{what} has shape {array.shape}; expected ({rows}, {width})")
    return array


cdef object _require_type(object value, object kind, str what, str advice):
    """Raise SolveError for an object that is not of this class of the module."""
    if not isinstance(value, kind):
        raise SolveError(f"{what} is {_shown(value)}; expected a {kind.__name__} of this module: {advice}")


cdef object _require_prepared(object value):
    _require_type(value, Prepared, "prepared", "Prepared(parameters)")


cdef object _require_function(object value):
    if not isinstance(value, Function):
        _require_type(value, Function, "function", "Function(name, prepared)")


cdef object _require_inputs(object value):
    """Raise SolveError for inputs that were not made by a method of Inputs."""
    if isinstance(value, Inputs) and not ((<Inputs>value).kind == INPUT_CONSTANT and (<Inputs>value).source is None):
        return None
    advice = f"Inputs.constant(r) ({len(INPUTS)} values), Inputs.table, piecewise, compiled or python"
    _require_type(value, Inputs, "inputs", advice)
    raise SolveError(f"inputs have no values; make them by {advice}")


cdef object _as_array(object value, str what):
    """A float64 C-contiguous copy or view of real numbers, of any shape."""
    try:
        array = numpy.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise SolveError(f"{what} cannot be read as an array: {error}") from error
    if array.dtype.kind not in "fiu" and array.size:
        raise SolveError(
            f"{what} holds {array.dtype.name} ({type(value).__name__}), expected real numbers (float64)"
        )
    return numpy.ascontiguousarray(array, dtype=numpy.float64) if array.ndim else array.astype(numpy.float64)


cdef object _as_vector(object value, tuple names, str what):
    if _is_vector(value, len(names)):
        return value
    array = _as_array(value, what)
    if array.shape != (len(names),):
        raise SolveError(f"{what} has shape {array.shape}, expected ({len(names)},): {', '.join(names) or 'no entries'}")
    return array


cdef object _check_finite(object array, tuple names, str what):
    if _is_vector(array, len(names)) and _is_finite(_data(array), <int>len(names)):
        return None
    for i, name in enumerate(names):
        if not numpy.isfinite(array[i]):
            raise SolveError(f"{name} ({what}[{i}]) is {float(array[i])}; every entry of {what} must be finite")


cdef object _refuse_infinite(double t, tuple arguments, Py_ssize_t row=0):
    """Raise SolveError naming the entry of a row that is NaN or infinite, if there is one."""
    if t - t != 0.0:
        raise SolveError(f"t is {t}; expected a finite time")
    for what, names, array in zip(ARGUMENTS[1:], (COORDINATES, SPEEDS, INPUTS, STATES, FORCES, FREE), arguments[1:]):
        if array is not None:
            _check_finite(array[row] if array.ndim == 2 else array, names, what)


cdef object _refuse_output(object out, tuple shape, str what):
    """Raise SolveError with the reason why an output array cannot be written."""
    if not isinstance(out, numpy.ndarray):
        reason = f"is a {type(out).__name__}"
    elif out.shape != shape:
        reason = f"has shape {out.shape}"
    elif out.dtype != numpy.float64 or not out.dtype.isnative:
        reason = f"holds {out.dtype}"
    elif not out.flags.writeable:
        reason = "is read-only"
    elif not out.flags.c_contiguous:
        reason = "is not C-contiguous"
    else:
        reason = f"is a {type(out).__name__} (a plain ndarray is needed) or not aligned"
    raise SolveError(f"{what} {reason}, expected a writeable C-contiguous float64 array of shape {shape}")


cdef object _refuse_overlap(str what, str other):
    raise SolveError(f"{what} shares memory with {other}; outputs must not overlap inputs or each other")


ARGUMENTS = ("t", "q", "u", "r", "s", "forces", "free")


cdef tuple _read_arguments(
    object t, object q, object u, object r, object s, object forces, object free, kg_rows *rows
):
    """Fill ``rows`` from the arguments of one state, or of N states; returns the arrays, which must stay alive.

    ``t`` (N,), ``q`` (N, n_q), and so on; each of them can also be given without rows, one value for all states. The
    forces of the contact rows can follow the inputs, ``r`` (n_r + n_rows,). What is left out (None) is zero.
    """
    cdef dict counts = {}
    cdef kg_point *a = &rows.first
    rows.model = MODEL
    if s is not None and N_S == 0:
        raise SolveError(f"s is {_shown(s)}, but the model {NAME!r} has no states: leave s out")
    t = _read_times(t, counts, rows)
    q, u = _as_rows(q, COORDINATES, "q", counts), _as_rows(u, SPEEDS, "u", counts)
    if r is not None and forces is None and MODEL.n_rows and not _is_vector(r, MODEL.n_r):
        r = _as_array(r, "r")
        if r.ndim in (1, 2) and r.shape[r.ndim - 1] == MODEL.n_r + MODEL.n_rows:
            r, forces = r[..., :MODEL.n_r], r[..., MODEL.n_r:]
    r = None if r is None else _as_rows(r, INPUTS, "r", counts)
    s = None if s is None else _as_rows(s, STATES, "s", counts)
    forces = None if forces is None else _as_rows(forces, FORCES, "forces", counts)
    free = None if free is None else _as_rows(free, FREE, "free", counts)
    a.q, rows.next_q = _data(q), _step(q)
    a.u, rows.next_u = _data(u), _step(u)
    a.r, rows.next_r = _first(r), _step(r)
    a.s, rows.next_s = _first(s), _step(s)
    a.forces, rows.next_forces = _first(forces), _step(forces)
    a.free, rows.next_free = _first(free), _step(free)
    rows.has_rows, rows.count = len(counts) > 0, _count_of(counts)
    return t, q, u, r, s, forces, free


cdef tuple _read_state(object t, object q, object u, object r, object s, kg_point *a):
    """Fill ``a`` from the arguments of one state, in which ``r`` is given; returns the arrays, which must stay alive."""
    cdef kg_rows rows
    arguments = _read_arguments(t, q, u, _as_array(r, "r") if r is None else r, s, None, None, &rows)
    _open_state(&rows, arguments, a)
    return arguments


cdef int _open_state(const kg_rows *rows, tuple arguments, kg_point *a) except -1:
    """Fill ``a`` from the arguments of one state."""
    if rows.has_rows:
        given = ", ".join([
            f"{what} has shape {array.shape}" for what, array in zip(ARGUMENTS, arguments)
            if array is not None and array.ndim > (what != "t")
        ])
        raise SolveError(f"{given}; expected one state, not one in each row")
    if not kg_module_open_row(rows, 0, a):
        _refuse_infinite(a.t, arguments)
    return 0


cdef inline const double *_first(object array) noexcept:
    return _data(ZEROS if array is None else array)


cdef inline Py_ssize_t _step(object array):
    """The distance between the rows of an array; 0 for an array without rows."""
    if array is None or PyArray_NDIM(<PyArrayObject *>array) < 2:
        return 0
    return PyArray_DIM(<PyArrayObject *>array, 1)


cdef object _as_rows(object value, tuple names, str what, dict counts):
    """An array (n,) or (N, n) with a value for each name; N is added to ``counts``."""
    if _is_vector(value, len(names)):
        return value
    array, n = _as_array(value, what), len(names)
    if array.ndim not in (1, 2) or array.shape[array.ndim - 1] != n:
        raise SolveError(
            f"{what} has shape {array.shape}, expected ({n},) or (N, {n}): {', '.join(names) or 'no entries'}"
        )
    if array.ndim == 2:
        counts[what] = array.shape[0]
    return array


cdef object _read_times(object t, dict counts, kg_rows *rows):
    """Read a number or times (N,); returns the array, None for a number."""
    if PyFloat_Check(t) or PyLong_CheckExact(t) or not _dimensions(t):
        rows.time, rows.times, rows.next_t = _time(t), &rows.time, 0
        return None
    times = _as_array(t, "t")
    if times.ndim != 1:
        raise SolveError(f"t has shape {times.shape}, expected a number or (N,)")
    counts["t"] = times.shape[0]
    rows.times, rows.next_t = _data(times), 1
    return times


cdef inline int _dimensions(object value):
    if PyArray_CheckExact(value):
        return PyArray_NDIM(<PyArrayObject *>value)
    try:
        return 0 if isinstance(value, (float, int)) else numpy.ndim(value)
    except ValueError:  # lists of unequal lengths; reading them raises SolveError
        return 0


cdef Py_ssize_t _count_of(dict counts) except -1:
    """The number of rows. Raises SolveError if the arguments have different numbers."""
    if not counts:
        return 1
    if len(counts) > 1 and len(set(counts.values())) > 1:
        have = ", ".join([f"{what} has {n}" for what, n in counts.items()])
        raise SolveError(f"the numbers of rows differ: {have}; expected the same number N, or no rows (one value for all)")
    return next(iter(counts.values()))
