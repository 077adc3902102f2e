# Speeds after impulses that act at one instant.

cdef extern from "module_runtime.h" nogil:
{{ structs(("kg_impulse_rows",), known=("kg_function",)) }}
    size_t kg_module_impulse_work(const kg_impulse_rows *)
    int kg_module_impulse(const kg_impulse_rows *, const kg_point *, double *, const double *, const double *, double *,
                          double *)


cdef int _fill_impulse_rows(kg_impulse_rows *c) except -1:
    """All constraints of the model at velocity and acceleration level."""
    c.n_u, c.rows = MODEL.n_u, NULL
    c.mass = _find(MASS)
    c.jacobian = _find("J") if "J" in FUNCTIONS and FUNCTIONS["J"][0] > 0 else NULL
    c.velocity = _find("velocity_level") if "velocity_level" in FUNCTIONS else NULL
    c.n_c = c.jacobian.rows if c.jacobian != NULL else 0
    return 0


def impulse(prepared, t, q, u, r, generalized, rows=None, s=None):
    """Speeds after generalized impulses (n_u,) at a state: (status, u, multipliers); the arrays are always new.

    ``rows``: ascending indices of independent rows of J on which the others depend; None: all rows. Negative statuses:
    KG_SINGULAR, KG_INCONSISTENT, or the status of a function of the model that failed.
    """
    cdef kg_impulse_rows c
    cdef kg_point at
    cdef int status
    cdef double *work
    _require_prepared(prepared)
    _fill_impulse_rows(&c)
    arguments = _read_state(t, q, u, r, s, &at)
    u = arguments[2].copy()
    at.u = _data(u)
    generalized = _as_vector(generalized, SPEEDS, "impulses")
    _check_finite(generalized, SPEEDS, "impulses")
    picked, n_picked = _indices(range(c.n_c) if rows is None else rows, c.n_c, "rows")
    if (numpy.diff(picked[:n_picked]) <= 0).any():
        raise SolveError(f"rows is {_shown(rows)}; expected ascending indices of rows of J")
    c.rows, c.n_c = <int *>PyArray_DATA(<PyArrayObject *>picked), n_picked
    multipliers = numpy.zeros(n_picked)
    work = <double *>malloc(kg_module_impulse_work(&c) * sizeof(double))
    if work == NULL:
        raise MemoryError
    try:
        status = kg_module_impulse(
            &c, &at, _data(u), (<Prepared>prepared).values, _data(generalized), _data(multipliers), work
        )
    finally:
        free(work)
    return status, u, multipliers
