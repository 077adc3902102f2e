# The times at which functions of time and parameters of the model switch, for hosts with integrators of their own.

cdef extern from "module_steppers.h" nogil:
    int kg_module_switches_next(kg_switches *, double, double, double, double *)


def switching_times(prepared, t0, t1):
    """The times (n,) between t0 and t1, in the direction of a run, at which the model jumps or has a kink.

    Raises SolveError where a function that switches has no value.
    """
    cdef kg_switches switches
    cdef double *work
    cdef double start, end, t, direction
    cdef int status
    _require_prepared(prepared)
    start, end = _span(t0, t1)
    times = []
    work = <double *>malloc((kg_module_switches_work(MODEL) + 1) * sizeof(double))
    if work == NULL:
        raise MemoryError
    try:
        direction = 1.0 if end >= start else -1.0
        status = kg_module_switches_open(&switches, MODEL, (<Prepared>prepared).values, work)
        t = start
        while status >= 0 and t != end:
            PyErr_CheckSignals()
            status = kg_module_switches_next(&switches, t, direction, end, &t)
            if status >= 0 and t != end:
                times.append(t)
    finally:
        free(work)
    if status < 0:
        raise SolveError(f"the times at which {NAME!r} switches: {kg_module_status_message(status).decode()}")
    return numpy.array(times)
