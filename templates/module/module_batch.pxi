# Evaluation at many states: calls of the code on vector lanes for one function, a library of its own (kg_batch.h).

cdef struct BatchArray:  # kg_array
    double *first
    npy_intp step
    npy_intp size[2][2]

cdef struct BatchCall:  # kg_batch
    const kg_model *model
    const kg_function *function
    const BatchArray *arguments
    const BatchArray *results
    const double *p
    const int *varied
    const int *needed
    unsigned char *failed
    int n_arguments
    int n_results
    int n_varied
    int n_needed

ctypedef size_t (*batch_memory)(const BatchCall *) noexcept nogil
ctypedef npy_intp (*batch_run)(const BatchCall *, double *, npy_intp, npy_intp) noexcept nogil


cdef class Batch:
    """The code on vector lanes for the function ``name``; ``memory``, ``run``: addresses of its two entry points."""

    cdef const kg_function *function
    cdef batch_memory memory
    cdef batch_run entry
    cdef object spare  # work space that no call of run_contiguous() uses, or None

    def __cinit__(self, name, size_t memory, size_t run):
        self.function = _find(name)
        self.memory = <batch_memory>memory
        self.entry = <batch_run>run

    def run(self, arguments, results, p, varied, needed, failed, pieces):
        """Evaluate the rows of the ``pieces`` (first, end); returns how many failed.

        ``arguments``: t (1,), q, u, r, forces, free and s, those without entries can be left out, and with varied
        parameters their values, where arrays with one dimension more have a value for each row; ``results``: arrays
        (N, ...). All float64, aligned. ``p``: parameters and gains. ``varied``, ``needed``: indices of parameters, and of constants that must be finite, int32. ``failed``
        (N,), uint8, zero: becomes 1 in rows that fail.
        """
        cdef BatchArray places[16]
        cdef BatchCall call
        cdef npy_intp start, stop, failures = 0
        cdef double *work
        call.n_arguments, call.n_results = len(arguments), len(results)
        for k, array in enumerate(arguments):
            _place_rows(array, PyArray_NDIM(<PyArrayObject *>array) - 1, &places[k])
        for k, array in enumerate(results):
            _place_rows(array, 1, &places[call.n_arguments + k])
        call.arguments, call.results = places, places + call.n_arguments
        call.p, call.failed = _data(p), <unsigned char *>_data(failed)
        call.varied, call.needed = <int *>_data(varied), <int *>_data(needed)
        call.n_varied, call.n_needed = len(varied), len(needed)
        call.model, call.function = MODEL, self.function
        memory = _new_vector(self.memory(&call))
        work = _data(memory)
        for first, end in pieces:
            start, stop = first, end
            with nogil:
                failures += self.entry(&call, work, start, stop)
            PyErr_CheckSignals()
        return failures

    def run_contiguous(self, double t, q, u, tuple others, tuple results, tuple shapes, p, npy_intp piece):
        """The same for row-major or column-major arrays (N, ...) that share no memory, with little work before it.

        ``others``: r, forces, free and s, as far as they have entries. ``shapes``: those of the results without N. Signals are noticed after each ``piece``.
        Returns which rows failed, as in `run`, or an empty array if none did; None, without evaluating, for other
        arguments.
        """
        cdef BatchArray places[16]
        cdef BatchCall call
        cdef npy_intp start, count = _contiguous_rows(q, u, results, shapes)
        cdef npy_intp needed, failures = 0
        cdef double *work
        cdef int n_arguments = 3 + len(others)
        if count < 1 or len(others) > 4 or len(results) > 6:
            return None
        failed = PyArray_SimpleNew(1, &count, NPY_UBYTE)
        memset(_data(failed), 0, count)
        places[0].first, places[0].step = &t, 0
        places[0].size = [[1, 0], [1, 0]]
        _place_rows(q, 1, &places[1])
        _place_rows(u, 1, &places[2])
        for k, array in enumerate(others):
            _place_rows(array, 0, &places[3 + k])
        for k, array in enumerate(results):
            _place_rows(array, 1, &places[n_arguments + k])
        call.n_arguments, call.n_results, call.n_varied, call.n_needed = n_arguments, len(results), 0, 0
        call.arguments, call.results, call.varied, call.needed = places, places + n_arguments, NULL, NULL
        call.p, call.failed = _data(p), <unsigned char *>_data(failed)
        call.model, call.function = MODEL, self.function
        needed = self.memory(&call)
        memory, self.spare = self.spare, None  # allocated anew, it can cost page faults in each call
        if memory is None or PyArray_DIM(<PyArrayObject *>memory, 0) < needed:
            memory = _new_vector(needed)
        work = _data(memory)
        for start in range(0, count, piece):
            with nogil:
                failures += self.entry(&call, work, start, min(start + piece, count))
            PyErr_CheckSignals()
        self.spare = memory
        return failed if failures else failed[:0]


cdef npy_intp _contiguous_rows(q, u, tuple results, tuple shapes) except -1:
    """The number N of rows of q, u and results, if they are contiguous, aligned and share no memory; otherwise 0."""
    cdef tuple others = (q, u, *results)
    cdef npy_intp i, k, count
    if not (_is_contiguous(q, MODEL.n_q) and _is_contiguous(u, MODEL.n_u) and len(results) == len(shapes)):
        return 0
    count = PyArray_DIM(<PyArrayObject *>q, 0)
    for array in others[1:]:
        if not _is_contiguous(array, -1) or PyArray_DIM(<PyArrayObject *>array, 0) != count:
            return 0
    for array, shape in zip(results, shapes):
        if not PyArray_ISWRITEABLE(<PyArrayObject *>array) or array.shape[1:] != shape:
            return 0
    for k in range(2, len(others)):
        for i in range(k):
            if _overlap(_data(others[i]), 8 * PyArray_SIZE(<PyArrayObject *>others[i]), _data(others[k]),
                        8 * PyArray_SIZE(<PyArrayObject *>others[k])):
                return 0
    return count


cdef bint _is_contiguous(object value, npy_intp columns) noexcept:
    """Whether a value is a contiguous, aligned array float64 with rows; ``columns`` -1: of any number."""
    cdef PyArrayObject *array = <PyArrayObject *>value
    return (
        PyArray_CheckExact(value) and PyArray_TYPE(array) == NPY_DOUBLE and PyArray_NDIM(array) > 0
        and (columns < 0 or PyArray_NDIM(array) == 2 and PyArray_DIM(array, 1) == columns)
        and (PyArray_ISFARRAY_RO(array) or PyArray_ISCARRAY_RO(array))
    )


cdef int _place_rows(object values, int rows, BatchArray *place) except -1:
    """Describe an array; ``rows``: 1 if its first dimension are the rows, 0 if it is the same in all rows."""
    cdef PyArrayObject *array = <PyArrayObject *>values
    cdef int i, inner = PyArray_NDIM(array) - rows
    place.first = _data(values)
    place.step = PyArray_STRIDE(array, 0) // 8 if rows else 0
    for i in range(2):
        place.size[i][0] = PyArray_DIM(array, rows + i) if i < inner else 1
        place.size[i][1] = PyArray_STRIDE(array, rows + i) // 8 if i < inner else 0
    return 0
