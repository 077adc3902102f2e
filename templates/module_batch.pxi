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

    def __cinit__(self, name, size_t memory, size_t run):
        self.function = _find(name)
        self.memory = <batch_memory>memory
        self.entry = <batch_run>run

    def run(self, arguments, results, p, varied, needed, failed, pieces):
        """Evaluate the rows of the ``pieces`` (first, end); returns how many failed.

        ``arguments``: t (1,), q, u, all inputs (n,), and with varied parameters their values, where arrays with one
        dimension more have a value for each row; ``results``: arrays (N, ...). All float64, aligned. ``p``: parameters
        and gains. ``varied``, ``needed``: indices of parameters, and of constants that must be finite, int32. ``failed``
        (N,), uint8, zero: becomes 1 in rows that fail.
        """
        cdef BatchArray places[10]
        cdef BatchCall call
        cdef npy_intp start, stop, failures = 0
        cdef double *work
        call.n_arguments, call.n_results = len(arguments), len(results)
        for k, array in enumerate(arguments):
            _place_rows(array, PyArray_NDIM(<PyArrayObject *>array) - 1, &places[k])
        for k, array in enumerate(results):
            _place_rows(array, 1, &places[call.n_arguments + k])
        call.model, call.function = MODEL, self.function
        call.arguments, call.results = places, places + call.n_arguments
        call.p, call.failed = _data(p), <unsigned char *>_data(failed)
        call.varied, call.needed = <int *>_data(varied), <int *>_data(needed)
        call.n_varied, call.n_needed = len(varied), len(needed)
        memory = numpy.empty(self.memory(&call))
        work = _data(memory)
        for first, end in pieces:
            start, stop = first, end
            with nogil:
                failures += self.entry(&call, work, start, stop)
            PyErr_CheckSignals()
        return failures


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
