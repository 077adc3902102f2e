# Reading arguments: a float64 C-contiguous array of the right length costs a few nanoseconds; other real numbers
# (integers, lists, other floats, strided arrays) are converted; anything else raises SolveError with its name.

cdef inline void _point_to(kg_point *a, const double *inputs) noexcept nogil:
    """Let a point read all inputs: those of the user, then multipliers, free vector and states."""
    a.r = inputs
    a.forces = inputs + MODEL.n_r
    a.free = a.forces + MODEL.n_rows
    a.s = inputs + FIRST_STATE


cdef inline double *_data(object array) noexcept:
    return <double *>PyArray_DATA(<PyArrayObject *>array)


cdef inline kg_point _point(double t, object q, object u, object inputs) noexcept:
    """The point with these arrays, which must stay alive; ``inputs``: all of them (`_as_inputs`)."""
    cdef kg_point a
    a.t, a.q, a.u = t, _data(q), _data(u)
    _point_to(&a, _data(inputs))
    return a


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


cdef object _as_inputs(object value, str what):
    """All inputs, (n_r + n_hidden,), from the inputs (n_r,), with zeros for the hidden ones, or from all inputs."""
    if _is_vector(value, MODEL.n_r + N_HIDDEN):
        return value
    if not _is_vector(value, MODEL.n_r):
        value = _as_array(value, what)
        if N_HIDDEN and value.shape == (len(INPUTS) + len(HIDDEN),):
            return value
        value = _as_vector(value, INPUTS, what)
    if N_HIDDEN == 0:
        return value
    array = _new_vector(MODEL.n_r + N_HIDDEN)
    memcpy(_data(array), _data(value), MODEL.n_r * sizeof(double))
    memset(_data(array) + MODEL.n_r, 0, N_HIDDEN * sizeof(double))
    return array


cdef object _check_finite(object array, tuple names, str what):
    if _is_vector(array, len(names)) and _is_finite(_data(array), <int>len(names)):
        return None
    for i, name in enumerate(names):
        if not numpy.isfinite(array[i]):
            raise SolveError(f"{name} ({what}[{i}]) is {float(array[i])}; every entry of {what} must be finite")


cdef object _refuse_infinite(object t, object q, object u, object r):
    """Raise SolveError naming the entry that is NaN or infinite, if there is one."""
    if not numpy.isfinite(float(t)):
        raise SolveError(f"t is {float(t)}; expected a finite time")
    _check_finite(numpy.asarray(q), COORDINATES, "q")
    _check_finite(numpy.asarray(u), SPEEDS, "u")
    _check_finite(numpy.asarray(r), INPUTS + HIDDEN, "r")


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
