# States that satisfy the constraints: make_consistent, and the projection after a step of an integration.

cdef extern from "module_runtime.h" nogil:
    enum:
        KG_INCONSISTENT
{{ structs(("kg_manifold", "kg_integrals", "kg_projection"), known=("kg_function",)) }}
    size_t kg_module_consistent_work(const kg_manifold *)
    int kg_module_make_consistent(const kg_manifold *, const kg_point *, double *, double *, const double *,
                                  const int *, double, double *, int *)
    size_t kg_module_projection_work(const kg_projection *)
    void kg_module_projection_start(kg_projection *)
    int kg_module_projection_renew(kg_projection *, const kg_point *)
    int kg_module_project(kg_projection *, kg_stepper *, const kg_point *, int)


cdef int _fill_manifold(kg_manifold *c) except -1:
    """The functions of the constraints of the model; NULL for a level without constraints."""
    c.n_q, c.n_u, c.angles = MODEL.n_q, MODEL.n_u, MODEL.angles
    c.position = _find("position_level") if "position_level" in FUNCTIONS else NULL
    c.velocity = _find("velocity_level") if "velocity_level" in FUNCTIONS else NULL
    c.displacements = _find("displacements") if c.position != NULL else NULL
    c.mass = _find("Q") if c.position != NULL or c.velocity != NULL else NULL
    return 0


def make_consistent(prepared, t, q, u, r, fixed, tolerance, s=None):
    """Correct a state so that it satisfies the constraints: (status, q, u, corrections); the arrays are always new.

    ``q`` (n_q,), ``u`` (n_u,), ``r`` (n_r,), ``s`` (n_s,), zero by default; ``fixed``: indices of components of (q, u) that do not change. Status 0:
    satisfied, KG_INCONSISTENT: no correction from this state, other negative ones: a function of the model failed.
    """
    cdef kg_manifold manifold
    cdef kg_point at
    cdef int corrections = 0, status
    cdef double *work
    cdef int *flags
    cdef double limit = _real(tolerance, "tolerance", 0.0)
    _require_prepared(prepared)
    _fill_manifold(&manifold)
    arguments = _read_state(t, q, u, r, s, &at)
    q, u = arguments[1].copy(), arguments[2].copy()
    at.q, at.u = _data(q), _data(u)
    stays = numpy.zeros(MODEL.n_q + MODEL.n_u, dtype=numpy.intc)
    indices, n_fixed = _indices(fixed, MODEL.n_q + MODEL.n_u, "fixed")
    stays[indices[:n_fixed]] = 1
    flags = <int *>PyArray_DATA(<PyArrayObject *>stays)
    work = <double *>malloc(kg_module_consistent_work(&manifold) * sizeof(double))
    if work == NULL:
        raise MemoryError
    try:
        status = kg_module_make_consistent(
            &manifold, &at, _data(q), _data(u), (<Prepared>prepared).values, flags, limit, work, &corrections
        )
    finally:
        free(work)
    return status, q, u, corrections
