# Reading arguments: a float64 C-contiguous array of the right length costs a few nanoseconds; other real numbers
# (integers, lists, other floats, strided arrays) are converted; anything else raises SolveError with its name.

cdef struct Arguments:
    double t
    const double *q
    const double *u
    const double *r


cdef inline double *_data(object array) noexcept:
    return <double *>PyArray_DATA(<PyArrayObject *>array)


cdef inline bint _is_vector(object value, npy_intp n) noexcept:
    cdef PyArrayObject *array = <PyArrayObject *>value
    return (
        PyArray_CheckExact(value) and PyArray_TYPE(array) == NPY_DOUBLE and PyArray_NDIM(array) == 1
        and PyArray_DIM(array, 0) == n and PyArray_ISCARRAY_RO(array)
    )


cdef inline bint _is_finite(const double *values, int n) noexcept:
    cdef int i
    cdef bint finite = True
    for i in range(n):
        finite &= values[i] - values[i] == 0.0
    return finite


cdef inline bint _overlap(const void *a, size_t size_a, const void *b, size_t size_b) noexcept:
    return (<const char *>a) < (<const char *>b) + size_b and (<const char *>b) < (<const char *>a) + size_a


cdef inline object _new_vector(npy_intp n):
    return PyArray_SimpleNew(1, &n, NPY_DOUBLE)


cdef object _time(object t):
    if isinstance(t, (complex, str, bytes)):
        raise SolveError(f"t is {t!r}, expected a real number (seconds)")
    try:
        return float(t)
    except (TypeError, ValueError) as error:
        raise SolveError(f"t is {t!r}, expected a real number (seconds)") from error


cdef object _as_array(object value, str what):
    """A float64 C-contiguous copy or view of real numbers, of any shape."""
    try:
        array = numpy.asarray(value)
    except ValueError as error:
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
    if _is_vector(value, MODEL.n_r + MODEL.n_hidden):
        return value
    if not _is_vector(value, MODEL.n_r):
        value = _as_array(value, what)
        if MODEL.n_hidden and value.shape == (len(INPUTS) + len(HIDDEN),):
            return value
        value = _as_vector(value, INPUTS, what)
    if MODEL.n_hidden == 0:
        return value
    array = _new_vector(MODEL.n_r + MODEL.n_hidden)
    memcpy(_data(array), _data(value), MODEL.n_r * sizeof(double))
    memset(_data(array) + MODEL.n_r, 0, MODEL.n_hidden * sizeof(double))
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
